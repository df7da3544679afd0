"""What was found when asking whether the graph depends on the covariates, in numbers and in words."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pandas as pd

from graphfield.analysis.held_out_gain import Gain
from graphfield.analysis.tests_of_covariates import Tested
from graphfield.exceptions import DataError, OutputError

FORMAT, FORMAT_VERSION = "graphfield-evidence", 1
# What the words stand for: the largest p-value, and how many standard errors the gain must exceed.
STRONG, PLAIN = (0.01, 3.0), (0.05, 2.0)


def verdict(p_value: float | None, gain: Gain | None) -> str:
    """The word for a p-value (adjusted, if there were several) and a held-out gain.

    >>> verdict(0.005, Gain(0.02, 0.001)), verdict(0.03, Gain(0.0, 0.001)), verdict(0.3, Gain(0.01, 0.001))
    ('strong evidence', 'weak evidence', 'no evidence')
    """
    if p_value is None or gain is None or math.isnan(p_value):
        return "not known"
    p_value -= 1e-9  # 6 / 600 is not quite 0.01 in binary
    if p_value > PLAIN[0]:
        return "no evidence"
    if p_value <= STRONG[0] and gain.value > STRONG[1] * gain.standard_error:
        return "strong evidence"
    return "evidence" if gain.value > PLAIN[1] * gain.standard_error else "weak evidence"


@dataclass(frozen=True)
class CovariateEvidence:
    """One covariate, given all others; ``adjusted_p_value`` accounts for their number (Holm)."""

    name: str
    gain: float
    standard_error: float
    p_value: float | None
    adjusted_p_value: float | None
    n_permutations: int
    verdict: str
    sentence: str


@dataclass(frozen=True)
class Evidence:
    """Whether the graph depends on the covariates: the answer of :func:`graphfield.dependence_test`.

    Attributes
    ----------
    verdict : str
        "strong evidence" (p-value at most .01 and a held-out gain of more than three standard errors),
        "evidence" (.05 and two standard errors), "weak evidence" (.05, but a gain that could be chance),
        "no evidence" (p-value above .05), or "not known" (too few rows or groups to tell).
    sentence : str
        The same with numbers, to be quoted.
    p_value : float or None
        Of the permutation test.
    gain_over_static, gain_over_linear : Gain or None
        ``value`` and ``standard_error`` of the share of held-out squared error that edges as smooth functions
        of z save, against a static graph and against edges linear in z (both as shares of the error of
        the static graph).
    per_covariate : tuple of CovariateEvidence
        Also as a table: :attr:`covariates`.
    n_permutations, n_rows, n_folds : int
    scheme : str
        How covariates were rearranged.
    notes : tuple of str
        What else there is to know: rows or functions left out, limits of the p-value.
    model_gain_over_static, model_gain_over_linear : Gain or None
        The same for the estimator that was given, if any, on one part of the rows held out: over its own
        graph averaged over the other rows, and over :class:`~graphfield.RegGMM`.
    """

    verdict: str
    sentence: str
    p_value: float | None
    gain_over_static: Gain | None
    gain_over_linear: Gain | None
    per_covariate: tuple[CovariateEvidence, ...]
    n_permutations: int
    scheme: str
    n_rows: int
    n_folds: int
    notes: tuple[str, ...] = field(default=())
    model_gain_over_static: Gain | None = None
    model_gain_over_linear: Gain | None = None

    @property
    def covariates(self) -> pd.DataFrame:
        """One line per covariate: gain given all others, p-values, verdict, sentence."""
        columns = list(CovariateEvidence.__dataclass_fields__)
        table = pd.DataFrame([asdict(line) for line in self.per_covariate], columns=columns)
        numbers = ["gain", "standard_error", "p_value", "adjusted_p_value"]
        return table.astype(dict.fromkeys(numbers, float)).set_index("name")

    def __str__(self) -> str:
        lines = [f"{self.verdict.capitalize()}. {self.sentence}"]
        lines += [f"  {line.name}: {line.verdict}. {line.sentence}" for line in self.per_covariate]
        return "\n".join([*lines, f"Test: {self.scheme}.", *self.notes])

    def to_json(self) -> str:
        """The contents of ``evidence.json``; :meth:`from_json` reads it back."""
        values = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "gain_over_static": _gain_json(self.gain_over_static),
            "gain_over_linear": _gain_json(self.gain_over_linear),
            "p_value": self.p_value,
            "n_permutations": self.n_permutations,
            "scheme": self.scheme,
            "covariates": [asdict(line) for line in self.per_covariate],
            "n_rows": self.n_rows,
            "n_folds": self.n_folds,
            "notes": list(self.notes),
            "model_gain_over_static": _gain_json(self.model_gain_over_static),
            "model_gain_over_linear": _gain_json(self.model_gain_over_linear),
        }
        return json.dumps(values, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Evidence:
        """From what :meth:`to_json` wrote."""
        try:
            values = json.loads(text)
            if values["format"] != FORMAT or values["format_version"] > FORMAT_VERSION:
                raise ValueError(f"format {values['format']!r}, version {values['format_version']!r}")
            return cls(
                verdict=values["verdict"],
                sentence=values["sentence"],
                p_value=values["p_value"],
                gain_over_static=Gain.from_json(values["gain_over_static"]),
                gain_over_linear=Gain.from_json(values["gain_over_linear"]),
                per_covariate=tuple(CovariateEvidence(**line) for line in values["covariates"]),
                n_permutations=values["n_permutations"],
                scheme=values["scheme"],
                n_rows=values["n_rows"],
                n_folds=values["n_folds"],
                notes=tuple(values["notes"]),
                model_gain_over_static=Gain.from_json(values["model_gain_over_static"]),
                model_gain_over_linear=Gain.from_json(values["model_gain_over_linear"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"This is not the text of an evidence.json that this version can read ({error}). Write it "
                "again with 'graphfield evidence'."
            ) from error

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write :meth:`to_json` to a file."""
        path = Path(path)
        if path.exists() and not overwrite:
            raise OutputError(f"{path} already exists. Choose another name or pass overwrite=True.")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.to_json() + "\n", encoding="utf-8")
        except OSError as error:
            raise OutputError(f"Cannot write {path}: {error.strerror}.") from error
        return path


def _gain_json(gain: Gain | None) -> dict[str, float] | None:
    return None if gain is None else gain.to_json()


def overall_sentence(names: list[str], test: Tested, gain: Gain) -> str:
    who = names[0] if len(names) == 1 else f"the {len(names)} covariates"
    if 1 < len(names) <= 6:  # together: which of them, is what the other lines say
        who = f"the covariates ({', '.join(names)})"
    words = {
        "no evidence": f"There is no evidence that the graph depends on {who}",
        "weak evidence": f"The graph seems to depend on {who}, but too little to predict from it",
    }
    start = words.get(verdict(test.p_value, gain), f"The graph depends on {who}")
    return f"{start}: {_held_out(gain)}, and {_compared(test)}."


def covariate_sentence(
    name: str, test: Tested | None, adjusted: float | None, gain: Gain, single: bool
) -> str:
    if test is None or adjusted is None:
        return f"{name} cannot be told apart from the other covariates, or varies in too few groups."
    given = "" if single else ", given the others"
    words = {
        "no evidence": f"No evidence that edges move with {name}{given}",
        "weak evidence": f"Edges seem to move with {name}{given}, but too little to predict from it",
    }
    start = words.get(verdict(adjusted, gain), f"Edges move with {name}{given}")
    also = "" if single else f"; adjusted for the number of covariates, p = {_digits(adjusted)}"
    return f"{start}: {_held_out(gain)}, and {_compared(test)}{also}."


def _held_out(gain: Gain) -> str:
    if round(abs(gain.value), 5) == 0:
        return "letting edges vary does not lower held-out squared error"
    error = f"(standard error {_percent(gain.standard_error)})"
    verb = "lowers" if gain.value > 0 else "raises"
    return f"letting edges vary {verb} held-out squared error by {_percent(abs(gain.value))} {error}"


def _compared(test: Tested) -> str:
    p = f"p = {_digits(test.p_value)}"
    if test.p_value <= 1.5 / (test.n_permutations + 1):
        return f"correlations follow more closely than in any of {test.n_permutations:,} rearrangements ({p})"
    more = "no more closely" if test.p_value > PLAIN[0] else "more closely"
    return f"correlations follow {more} than chance allows ({p} from {test.n_permutations:,} rearrangements)"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if abs(share) < 0.1 else f"{100 * share:.0f} %"


def _digits(p_value: float) -> str:
    if p_value < 0.001:
        return f"{p_value:.1g}"
    return f"{p_value:.3f}" if p_value < 0.1 else f"{p_value:.2f}"

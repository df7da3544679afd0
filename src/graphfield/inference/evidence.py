"""What was found when asking whether the graph depends on the covariates, in numbers and in words."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pandas as pd

from graphfield.data.drifting_levels import words_of_drift
from graphfield.data.saved_files import check_seal, sealed
from graphfield.exceptions import DataError
from graphfield.folders import write_file
from graphfield.inference.row_order import AS_IF
from graphfield.inference.running_tests import Tested
from graphfield.inference.verdict_facts import NO, WEAK
from graphfield.inference.verdict_facts import Tested as TestFacts
from graphfield.inference.verdict_words import which_sentence
from graphfield.messages import Message
from graphfield.numbers import Gain, is_significant, p_text

FORMAT, FORMAT_VERSION = "graphfield-evidence", 1
# What "strong" stands for: the largest p-value, and how many standard errors the gain must exceed.
_STRONG = (0.01, 3.0)
_ADJUSTED = "adjusted for the number of covariates"
_AS_SEEN = "as if filled-in values had been seen"
_AS_STEADY = "as if levels of groups did not drift"
_ROUNDING = 1e-9  # 6 / 600 is not quite 0.01 in binary


def verdict(p_value: float | None, gain: Gain | None) -> str:
    """The word for a p-value (adjusted, if there were several) and a held-out gain.

    >>> verdict(0.005, Gain(0.02, 0.001)), verdict(0.03, Gain(0.0, 0.001)), verdict(0.3, Gain(0.01, 0.001))
    ('strong evidence', 'weak evidence', 'no evidence')
    """
    if p_value is None or gain is None or math.isnan(p_value):
        return "not known"
    if not is_significant(p_value):
        return "no evidence"
    if p_value - _ROUNDING <= _STRONG[0] and gain.is_clear_by(_STRONG[1]):
        return "strong evidence"
    return "evidence" if gain.is_clear else WEAK


@dataclass(frozen=True)
class CovariateEvidence:
    """One covariate, given all others; ``adjusted_p_value`` accounts for how many were tested (Holm)."""

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
        By two numbers, the p-value and the held-out gain over edges that do not move:

        - "strong evidence": p at most .01 and a gain of more than three standard errors;
        - "evidence": p at most .05 and a gain of more than two standard errors;
        - "weak evidence": p at most .05, but no gain, or one of two standard errors at most;
        - "no evidence": p above .05, whatever the gain;
        - "not known": no test, for too few rows or groups, or a series that changes too slowly; or one that
          holds only if rows are independent, which they are not, if filled-in values had been seen, or if
          levels of groups did not drift.

        For one covariate, p is its ``adjusted_p_value`` and the gain is that beyond all others.
    sentence : str
        The same with numbers, to be quoted.
    p_value : float or None
        Of the permutation test.
    gain_over_static, gain_over_linear : Gain or None
        ``value`` and ``standard_error`` of the share of the held-out ``error`` that edges which vary with
        z (as splines, or as straight lines where those would be too many) save, against the same regressions
        with edges that do not move and with edges linear in z (both as shares of the error of the former,
        which are no rival of a model: see :func:`graphfield.gain_over_one_graph`). The latter is None where
        they are linear themselves, as they are in the levels of categories.
    per_covariate : tuple of CovariateEvidence
        Also as a table: :attr:`covariates`.
    n_permutations, n_rows, n_folds : int
    scheme : str
        How covariates were rearranged.
    notes : tuple of str
        What else there is to know: rows or functions left out, limits of the p-value.
    error, regressions : str
        What gains are shares of, and of which regressions: where some nodes are no plain numbers, the
        deviance of sparse ones by likelihood.
    model_gain_over_static, model_gain_over_linear : Gain or None
        The same for the estimator that was given, if any, on rows that it has not seen: over its own graph
        averaged over z, and over :class:`~graphfield.RegGMM`.
    caveat : str
        What is to be said first, where rows are like those before them and neither groups nor time were
        given.
    together : tuple of str
        All covariates, of which ``per_covariate`` has those that were asked for.
    filled_in : str
        Where gaps of nodes go with covariates, so that filled in they look like edges that move with these.
    drifting : tuple of str
        Covariates along which levels of groups drift, which looks like edges that move with them, and of
        which differences of neighbouring rows do not show that any does.
    differences : str
        What these differences say, if they could be asked.
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
    error: str = "squared error"
    regressions: str = "ridge regressions"
    model_gain_over_static: Gain | None = None
    model_gain_over_linear: Gain | None = None
    caveat: str = ""
    together: tuple[str, ...] = ()
    filled_in: str = ""
    drifting: tuple[str, ...] = ()
    differences: str = ""

    def as_if_independent(self, caveat: str) -> Evidence:
        """Where rows were taken for independent and are not: what was found is no answer."""
        return replace(self._as_if(AS_IF, [own.name for own in self.per_covariate]), caveat=caveat)

    def as_if_seen(self, covariates: Collection[str], why: str) -> Evidence:
        """Where filled-in values may be what was found of these ``covariates``."""
        return replace(self._as_if(_AS_SEEN, covariates), filled_in=why)

    def as_if_steady(
        self, drifting: Sequence[str], doubted: Collection[str], differences: str, *, whole: bool
    ) -> Evidence:
        """Where levels that drift may be what was found of ``doubted`` covariates, and as a ``whole``."""
        found = replace(self, drifting=tuple(drifting), differences=differences)
        return found._as_if(_AS_STEADY, doubted, whole=whole)

    def _as_if(self, words: str, covariates: Collection[str], *, whole: bool = True) -> Evidence:
        start = words.capitalize()
        lines = tuple(
            replace(own, verdict=_unsure(own.verdict), sentence=f"{start}: {own.sentence}")
            if own.name in covariates
            else own
            for own in self.per_covariate
        )
        if not whole:
            return replace(self, per_covariate=lines)
        sentence = f"{start}: {self.sentence}"
        return replace(self, verdict=_unsure(self.verdict), sentence=sentence, per_covariate=lines)

    @property
    def covariates(self) -> pd.DataFrame:
        """One line per covariate: gain given all others, p-values, verdict, sentence."""
        columns = list(CovariateEvidence.__dataclass_fields__)
        table = pd.DataFrame([asdict(line) for line in self.per_covariate], columns=columns)
        numbers = ["gain", "standard_error", "p_value", "adjusted_p_value"]
        return table.astype(dict.fromkeys(numbers, float)).set_index("name")

    @property
    def paragraph(self) -> str:
        """The answer for all covariates together, and which of them it is as far as that can be told.

        Where only some were asked for one by one, their answers come first.
        """
        tested = TestFacts.of(self)
        if self._are_asked:
            first = [f"{line.verdict.capitalize()}. {line.sentence}" for line in self.per_covariate]
            unseen = tested.answer == NO and tested.matter
            whole = f"All covariates together{', which may hide one' if unseen else ''}: {self.verdict}."
            return " ".join(filter(None, [*self._said_first, *first, whole, self.sentence]))
        which = which_sentence(tested, tested.together)
        whole = f"{self.verdict.capitalize()}. {self.sentence}"
        return " ".join(filter(None, [*self._said_first, whole, which]))

    @property
    def _said_first(self) -> list[str]:
        return [self.caveat, words_of_drift(self.drifting, self.differences), self.filled_in]

    @property
    def _are_asked(self) -> bool:
        """Whether the question was about some of the covariates, beside all together."""
        return 0 < len(self.per_covariate) < len(self.together)

    def __str__(self) -> str:
        return "\n".join([self.paragraph, *self.details()])

    def details(self) -> list[str]:
        """Lines about the covariates one by one, how the test was made, and what else there is to know."""
        more = more_for_covariates(self.n_permutations, [line.n_permutations for line in self.per_covariate])
        how = (
            f"Test: {self.n_permutations:,} random rearrangements{more}: {self.scheme}. p is the share of "
            "them, the table itself counted in, in which correlations follow the covariates as closely as in "
            f"the table{self._which_question}."
        )
        return [*self._by_covariate(), *([] if self.p_value is None else [how]), *self.notes]

    @property
    def _which_question(self) -> str:
        """What p-values are about: the same covariate has others alone, and beside others."""
        if len(self.together) == 1:
            return f": that of {self.together[0]} alone, which beside other covariates may be another"
        return ": first all covariates together, then each given the others (alone, it may have another p)"

    def _by_covariate(self) -> list[str]:
        """Numbers of each covariate that matters given the others, clearest first, and a line for all others.

        The p-values are those that decide, adjusted for the number of covariates where there are several.
        What follows from them is for the paragraph above to say, which has all of those asked for.
        """
        tested = TestFacts.of(self)
        if len(tested.together) < 2 or self._are_asked:
            return []
        adjusted = _ADJUSTED if len(self.per_covariate) > 1 else ""
        lines, rest, untested = [], [], []
        by_name = {line.name: line for line in self.per_covariate}
        for line in (by_name[name] for name in tested.adjusted or ()):
            if line.adjusted_p_value is None:
                untested.append(line.name)
                continue
            p = p_text(line.adjusted_p_value)
            if line.name not in (*tested.matter, *self.drifting):
                rest.append(f"{line.name} ({p})")
                continue
            gain = Gain(line.gain, line.standard_error)
            lines.append(
                f"  {line.name}, given the others: {p}{f' ({adjusted})' if adjusted else ''}; held-out "
                f"{self.error} of {self.regressions} {gain.side} that without it"
                f"{f', {_AS_STEADY}' if line.name in self.drifting else ''}."
            )
        if rest:
            how = f"; p {adjusted}" if adjusted else ""
            lines.append(f"  Given the others, no clearer than chance: {', '.join(rest)}{how}.")
        if untested:
            lines.append(f"  Given the others, nothing is left to test: {', '.join(untested)}.")
        return lines

    def to_json(self) -> str:
        """The contents of ``evidence.json``; :meth:`from_json` reads it back."""
        values = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}
        values["covariates"] = values.pop("per_covariate")
        return json.dumps(sealed(values), indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Evidence:
        """From what :meth:`to_json` wrote."""
        try:
            values = json.loads(text)
            if values["format"] != FORMAT or values["format_version"] > FORMAT_VERSION:
                raise ValueError(f"format {values['format']!r}, version {values['format_version']!r}")
            check_seal(values, "evidence.json")
            values["per_covariate"] = tuple(CovariateEvidence(**line) for line in values["covariates"])
            known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
            gains = {name: Gain.from_json(value) for name, value in known.items() if "gain_over" in name}
            lists = {name: tuple(known.get(name, ())) for name in ("notes", "together", "drifting")}
            return cls(**{**known, **gains, **lists})
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                "This is not the text of an evidence.json that this version can read ({error}). Write it "
                "again with {writer}.",
                error=error,
                writer=Message("Evidence.save", code="save-evidence"),
            ) from error

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write :meth:`to_json` to a file."""
        return write_file(path, (self.to_json() + "\n").encode(), overwrite=overwrite)


def more_for_covariates(n_permutations: int, by_covariate: list[int]) -> str:
    """How many rearrangements single covariates had, where that is more than all of them together had.

    >>> more_for_covariates(199, [299, 199]), more_for_covariates(199, [199])
    (' (up to 299 for single covariates)', '')
    """
    most = max(by_covariate, default=0)
    return f" (up to {most:,} for single covariates)" if most > n_permutations else ""


def _unsure(found: str) -> str:
    """A verdict by p-values that are too small: what even they do not see stays unseen."""
    return found if found == "no evidence" else "not known"


@dataclass(frozen=True)
class Measured:
    """What held-out gains are gains of: see :class:`Evidence`."""

    error: str = Evidence.error
    regressions: str = Evidence.regressions


OF_NUMBERS, OF_KINDS = Measured(), Measured("deviance", "sparse regressions")


def overall_sentence(names: list[str], test: Tested, gain: Gain, of: Measured = OF_NUMBERS) -> str:
    who = names[0] if len(names) == 1 else f"the {len(names)} covariates"
    if 1 < len(names) <= 6:  # together: which of them, is what the other lines say
        who = f"the covariates ({', '.join(names)})"
    words = {
        "no evidence": f"There is no evidence that the graph depends on {who}",
        WEAK: f"The graph seems to depend on {who}, but with no clear gain in prediction",
    }
    start = words.get(verdict(test.p_value, gain), f"The graph depends on {who}")
    return f"{start}: {_both(gain, test, test.p_value, of)}."


def covariate_sentence(
    name: str,
    test: Tested | None,
    adjusted: float | None,
    gain: Gain,
    *,
    is_only: bool,
    n_tested: int,
    of: Measured = OF_NUMBERS,
) -> str:
    """In the words of the p-value adjusted for the number of covariates that were tested."""
    if test is None or adjusted is None:
        return f"{name} cannot be told apart from the other covariates, or varies in too few groups."
    given = "" if is_only else ", given the others"
    words = {
        "no evidence": f"No evidence that edges move with {name}{given}",
        WEAK: f"Edges seem to move with {name}{given}, but with no clear gain in prediction",
    }
    start = words.get(verdict(adjusted, gain), f"Edges move with {name}{given}")
    also = "" if n_tested == 1 else f"; adjusted for the number of covariates, {p_text(adjusted)}"
    return f"{start}: {_both(gain, test, adjusted, of)}{also}."


def percent(share: float) -> str:
    """A share of an error in percent, with two digits however small it is.

    >>> percent(0.0391), percent(7.3e-06), percent(3e-9), percent(0.0)
    ('3.9 %', '0.00073 %', 'less than 0.0001 %', '0 %')
    """
    size = abs(share)
    if size == 0 or size >= 0.1:
        return f"{100 * share:.0f} %"
    return "less than 0.0001 %" if size < 1e-6 else f"{100 * share:.2g} %"


def _both(gain: Gain, test: Tested, p_value: float, of: Measured) -> str:
    """What the cross-validation says and what the test says, joined by "but" where they differ."""
    join = "and" if gain.is_clear == is_significant(p_value) else "but"
    return f"{_held_out(gain, of)}, {join} {_compared(test, p_value)}"


def _held_out(gain: Gain, of: Measured) -> str:
    """Of regressions of every node on all others, those that vary against static ones."""
    start = f"in {of.regressions}, letting edges vary"
    error = f"standard error {percent(gain.standard_error)}"
    if round(abs(gain.value), 5) == 0:
        return f"{start} does not lower held-out {of.error}"
    if gain.value < 0:
        return f"{start} does not lower held-out {of.error} ({percent(-gain.value)} higher, {error})"
    doubt = "" if gain.is_clear else ", which may be chance"
    return f"{start} lowers held-out {of.error} by {percent(gain.value)} ({error}){doubt}"


def _compared(test: Tested, p_value: float) -> str:
    """In the words of ``p_value``, which is that of the test or adjusted."""
    p = p_text(test.p_value)
    of = f"{p} from {test.n_permutations:,} rearrangements"
    if not is_significant(p_value):
        many = " when so many covariates are tested" if is_significant(test.p_value) else ""
        return f"correlations follow no more closely than chance allows{many} ({of})"
    if test.p_value <= 1.5 / (test.n_permutations + 1):
        return f"correlations follow more closely than in any of {test.n_permutations:,} rearrangements ({p})"
    if test.p_value <= 2.5 / (test.n_permutations + 1):  # the smaller of two, doubled
        of = f"{p}, about the least that {test.n_permutations:,} rearrangements can give"
    return f"correlations follow more closely than chance allows ({of})"

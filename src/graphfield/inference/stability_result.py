"""How stable edges and centralities are when rows are left out, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.analysis.wide_tables import WideTable
from graphfield.estimators.inputs import check_number
from graphfield.exceptions import DataError, ParameterError, agreed, check_choice, count, listing
from graphfield.graphs.centrality import CENTRALITIES
from graphfield.inference.selection_bounds import expected_false
from graphfield.inference.stability_folder import About, Resample, StabilityFolder, read_about, read_resamples

_HIDDEN = (
    "Averaging over z hides edges that are there at some z only, or change their sign: for these, ask at "
    "values of the covariates (at)."
)
_DIGITS = 6  # of shares that are compared


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """What half of the rows, most of them, or others like them would have said: see :func:`gf.stability`.

    Everything is about the average graph; :meth:`at` gives the same about the graph at one z.

    Attributes
    ----------
    about : About
        Names of the nodes, how many rows, what was fitted, at which values graphs were asked for.
    graphs : dict of Resample to ndarray of shape (places, pairs)
        Partial correlations of the graph of each fit, zero where there is no edge.
    failures : dict of Resample to str
        Fits that broke down, and why. They count as graphs that agree with nothing.
    place : int
        Which graph is asked about: 0 the average one.
    """

    about: About
    graphs: Mapping[Resample, NDArray[np.float32]]
    failures: Mapping[Resample, str] = field(default_factory=dict)
    place: int = 0

    # -- edges ------------------------------------------------------------------------------

    @property
    def table(self) -> pd.DataFrame:
        """One line per pair: names, what all rows say, and how often half of the rows say so.

        ``partial_correlation`` is that of the graph of all rows, zero where it has no edge; ``frequency`` the
        share of half-samples whose graph has the edge. With rows drawn with replacement, ``low`` and ``high``
        are 2.5 % and 97.5 % quantiles over these; a penalty pulls all of them towards zero alike, so they are
        no confidence interval of the true edge (:func:`gf.infer_edges` has those).
        """
        names = np.array(self.about.node_names, dtype=object)
        first, second = np.triu_indices(len(names), 1)
        columns: dict[str, Any] = {"source": names[first], "target": names[second]}
        columns["partial_correlation"] = self._all_rows
        if self.n_pairs:
            columns["frequency"] = self._frequencies
        draws = self._of_kind("draw")
        if len(draws):
            columns["low"], columns["high"] = np.quantile(draws, (0.025, 0.975), axis=0)
        return WideTable(columns)

    def edges(self, frequency: float = 0.9) -> pd.DataFrame:
        """Pairs with an edge in at least this share of half-samples, most frequent first.

        :meth:`expected_false` bounds how many of them are false, :meth:`frequency_for` goes the other way.
        """
        check_number("frequency", frequency, 0, 1)
        self._need_pairs()
        table = self.table
        found = table[table["frequency"].round(_DIGITS) >= round(frequency, _DIGITS)]
        size = found["partial_correlation"].abs()
        order = np.lexsort([-size, -found["frequency"]])
        return WideTable(found.iloc[order].reset_index(drop=True))

    def expected_false(self, frequency: float = 0.9, assumption: str = "unimodal") -> float:
        """At most so many false ones are expected among the pairs of :meth:`edges`.

        A pair is false here if it is selected from half of the rows with a probability of at most q / N,
        where q of the N pairs are selected on average: no better than by guessing. For that no assumption is
        needed about the estimator or how pairs depend on each other. It is a bound on pairs without an edge
        as long as each of these has at most that probability: so where they are all alike, as Meinshausen
        and Buehlmann assume, but not for a pair that the estimator is drawn to for a reason, such as two
        neighbours of a node whose edges it follows too slowly. Rows, or groups, must be independent.

        ``assumption`` is "none", "unimodal" or "r-concave": see
        :func:`graphfield.inference.selection_bounds.expected_false`. Graphs with many edges have weak bounds:
        the fewer edges the estimator picks, the better (a higher ``threshold``, more penalty).
        """
        check_number("frequency", frequency, 0, 1)
        self._need_pairs()
        halves = self._pairs != 0
        return expected_false(
            halves.shape[-1], float(halves.sum(axis=-1).mean()), self.n_pairs, frequency, assumption
        )

    def frequency_for(self, false: float = 1.0, assumption: str = "unimodal") -> float:
        """The smallest frequency at which at most so many false ones are expected; nan if there is none."""
        check_number("false", false, 0)
        self._need_pairs()
        steps = np.arange(self.n_pairs + 1, 2 * self.n_pairs + 1) / (2 * self.n_pairs)
        fitting = [step for step in steps if self.expected_false(float(step), assumption) <= false]
        return float(min(fitting, default=np.nan))

    # -- centralities -----------------------------------------------------------------------

    def centrality(self, measure: str = "strength", level: float = 0.95) -> pd.DataFrame:
        """One line per node: ``node``, ``estimate`` (all rows), ``low``, ``high``, most central first.

        ``measure`` is "strength" (sum of the sizes of the edges), "closeness" or "betweenness" (paths as long
        as the sum of 1 / size along them).
        """
        check_number("level", level, 0, 1, open_low=True, open_high=True)
        estimate = self._centralities(measure, self._all_rows[None])[0]
        draws = self._of_kind("draw")
        if not len(draws):
            raise ParameterError("Intervals need rows drawn with replacement: n_bootstraps was 0.").about(
                argument="n_bootstraps"
            )
        values = self._centralities(measure, draws)
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
        found = WideTable({"node": self.about.node_names, "estimate": estimate, "low": low, "high": high})
        return WideTable(found.sort_values("estimate", ascending=False, kind="stable").reset_index(drop=True))

    def correlations(self, measure: str = "strength") -> pd.DataFrame:
        """Of each fit without some rows: the share ``dropped``, and the ``correlation`` with all rows.

        That is the correlation between the centralities of both fits over the nodes. It is zero where one of
        both is the same for all nodes, or where the fit broke down.
        """
        kept = [one for one in self.graphs if one.kind in ("half", "drop")]
        failed = [one for one in self.failures if one.kind in ("half", "drop")]
        if not kept and not failed:
            raise ParameterError("No rows were left out: n_drops and n_pairs were 0.").about(
                argument="n_drops"
            )
        whole = self._centralities(measure, self._all_rows[None])[0]
        parts = self._centralities(measure, np.array([self.graphs[one][self.place] for one in kept]))
        values = [_correlation(whole, part) for part in parts] + [0.0] * len(failed)
        dropped = [one.dropped for one in [*kept, *failed]]
        return pd.DataFrame({"dropped": dropped, "correlation": values}).sort_values("dropped", kind="stable")

    def cs_coefficient(
        self, measure: str = "strength", correlation: float = 0.7, probability: float = 0.95
    ) -> float:
        """The largest share of rows that may be dropped with the centralities nearly as before.

        That is: they still correlate ``correlation`` or more with those of all rows, with this
        ``probability``; also at all smaller shares that were tried. Epskamp, Borsboom and Fried (2018) want
        .25 at least, and better .5, before an order of nodes is interpreted. Zero where no share that was
        tried will do; nan where all nodes are equally central, as in a graph without edges.
        """
        check_number("correlation", correlation, 0, 1)
        check_number("probability", probability, 0, 1)
        whole = self._centralities(measure, self._all_rows[None])[0]
        if np.ptp(whole) == 0:
            return float("nan")
        found = self.correlations(measure)
        held = (found["correlation"] >= correlation).groupby(found["dropped"].round(_DIGITS)).mean()
        passed = held.to_numpy() >= probability - 1e-9
        n_passed = len(passed) if passed.all() else int(np.argmin(passed))
        return float(held.index[n_passed - 1]) if n_passed else 0.0

    # -- other graphs, other resamples ------------------------------------------------------

    def at(self, z: Mapping[str, Any] | None) -> Stability:
        """The same about the graph at one of the values that were asked for; None: the average graph."""
        if z is None:
            return replace(self, place=0)
        for number, place in enumerate(self.about.places, start=1):
            if place == dict(z):
                return replace(self, place=number)
        known = listing(self.about.places) or "none"
        raise ParameterError(
            f"No graph was asked for at {dict(z)!r}. Name the values in at; those there are {known}."
        ).about(argument="z")

    def merge(self, *others: Stability) -> Stability:
        """One result from several of the same rows and estimator, with other seeds or other numbers of fits.

        A resample that is in several counts once.
        """
        graphs, failures = dict(self.graphs), dict(self.failures)
        for other in others:
            if not isinstance(other, Stability):
                raise ParameterError(f"merge takes results of stability, got {other!r}.").about(
                    argument="others"
                )
            if other.about.fingerprint != self.about.fingerprint:
                raise DataError(
                    "These results are not of the same rows, estimator and places: "
                    f"{self._subject()} and {other._subject()}. Merge results of one table only."
                ).about(argument="others")
            graphs, failures = {**other.graphs, **graphs}, {**other.failures, **failures}
        return replace(self, graphs=dict(sorted(graphs.items())), failures=failures)

    def save(self, folder: str | Path) -> Path:
        """Write all resamples to a folder, or add them to one about the same; failures are not kept."""
        kept = StabilityFolder(folder, self.about)
        for resample, graphs in self.graphs.items():
            kept.write(resample, graphs)
        return Path(folder)

    @classmethod
    def read(cls, folder: str | Path) -> Stability:
        """What a folder holds, also one of a run that is not finished."""
        about = read_about(Path(folder))
        graphs = read_resamples(Path(folder), about)
        if Resample("all") not in graphs:
            raise DataError(f"{folder} does not have the fit to all rows yet: let the run go on.").about(
                file=str(folder)
            )
        return cls(about, graphs)

    # -- in words ---------------------------------------------------------------------------

    @property
    def n_pairs(self) -> int:
        """Pairs of complementary halves of which both were fitted."""
        return len(self._pairs)

    def __repr__(self) -> str:
        return f"<Stability of {count(len(self.about.node_names), 'node')}>\n{self.summary()}"

    def summary(self, frequency: float = 0.9) -> str:
        """What was found, in a few sentences."""
        edges, pairs = int((self._all_rows != 0).sum()), len(self._all_rows)
        having = f"of {count(pairs, 'pair')} of nodes {agreed(edges, 'has', 'have')}"
        parts = [f"{self._subject()}: {edges} {having} an edge {self._where}."]
        if self.n_pairs:
            found, false = self.edges(frequency), self.expected_false(frequency)
            parts.append(
                f"In {frequency:.0%} or more of {2 * self.n_pairs} half-samples {count(len(found), 'pair')} "
                f"{agreed(len(found), 'does', 'do')}; expected false ones among them: at most {false:.2g}."
            )
        if any(one.kind in ("half", "drop") for one in self.graphs):
            each = ", ".join(f"{name} {self._cs_text(name)}" for name in CENTRALITIES)
            parts.append(
                "Share of rows that may be dropped with centralities much as before (CS coefficient; at "
                f"least .25, better .5): {each}."
            )
        if self.failures:
            first = next(iter(self.failures.values()))
            parts.append(f"{count(len(self.failures), 'fit')} broke down, the first of them: {first}")
        if not self.place:
            parts.append(_HIDDEN)
        return " ".join(parts)

    def _cs_text(self, measure: str) -> str:
        value = self.cs_coefficient(measure)
        if np.isnan(value):
            return "unknown (all nodes are equal)"
        most = value > 0 and value >= self.correlations(measure)["dropped"].max() - 1e-9
        return f"{value:.2f}".removeprefix("0") + (" or more" if most else "")

    def _subject(self) -> str:
        rows = count(self.about.n_rows, "row")
        if self.about.n_units < self.about.n_rows:
            rows += f" of {count(self.about.n_units, 'group')}"
        return f"{self.about.estimator} on {rows}"

    @property
    def _where(self) -> str:
        if not self.place:
            return "in the average graph"
        values = ", ".join(f"{k}={v}" for k, v in self.about.places[self.place - 1].items())
        return f"at {values}"

    # -- arrays -----------------------------------------------------------------------------

    @property
    def _all_rows(self) -> NDArray[np.float32]:
        return self.graphs[Resample("all")][self.place]

    def _of_kind(self, kind: str) -> NDArray[np.float32]:
        """(fits, pairs)."""
        found = [graphs[self.place] for one, graphs in self.graphs.items() if one.kind == kind]
        return np.array(found, dtype=np.float32).reshape(len(found), len(self._all_rows))

    @property
    def _pairs(self) -> NDArray[np.float32]:
        """(pairs of halves, 2, pairs of nodes)."""
        known = self.graphs
        both = [
            [known[one][self.place], known[replace(one, part=1)][self.place]]
            for one in known
            if one.kind == "half" and one.part == 0 and replace(one, part=1) in known
        ]
        return np.array(both, dtype=np.float32).reshape(len(both), 2, len(self._all_rows))

    @property
    def _frequencies(self) -> NDArray[np.float64]:
        return (self._pairs != 0).mean(axis=(0, 1))

    def _need_pairs(self) -> None:
        if not self.n_pairs:
            raise ParameterError(
                "There are no pairs of half-samples: n_pairs was 0, or they broke down."
            ).about(argument="n_pairs")

    def _centralities(self, measure: str, graphs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Of graphs given by their pairs, (m, pairs): (m, p)."""
        check_choice("measure", measure, CENTRALITIES)
        p = len(self.about.node_names)
        first, second = np.triu_indices(p, 1)
        square = np.zeros((len(graphs), p, p))
        square[:, first, second] = square[:, second, first] = np.abs(graphs)
        return CENTRALITIES[measure](square)


def _correlation(whole: NDArray[np.float64], part: NDArray[np.float64]) -> float:
    if np.ptp(whole) == 0 or np.ptp(part) == 0:
        return 0.0
    return float(np.corrcoef(whole, part)[0, 1])

"""What a comparison of graphs found, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariates import CovariateEncoder
from graphfield.data.encoded import Encoded
from graphfield.exceptions import agreed, count, first_few, listing
from graphfield.graphs.false_discoveries import false_words, q_values
from graphfield.inference.asked_values import places_of
from graphfield.inference.curve import clearest_two
from graphfield.inference.edge_record import FDR
from graphfield.inference.movement_words import movement_words, pair_name
from graphfield.inference.overlap import rows_with_levels
from graphfield.inference.question import Question
from graphfield.inference.row_order import AS_IF
from graphfield.numbers import format_beside, is_significant, p_text

_NAMED, _NAMED_VALUES = 3, 4  # pairs and values that the summary names
# A level with fewer groups, rows, or rows for each node, is said to be known roughly, and so is a number that
# fewer rows reach. Strong edges of levels of about 50 rows come out too strong (guide/inference.md).
_FEW_GROUPS, _FEW_ROWS, _FEW_PER_NODE, _FEW_FAR_OUT = 10, 50, 2, 10
_NEAR = 0.02  # of the range of a number: so near to a value, rows reach it


@dataclass(frozen=True)
class Estimates:
    """Partial correlations on each side, (sides, pairs), and their covariances, (pairs, sides, sides)."""

    values: NDArray[np.float64]
    covariance: NDArray[np.float64]

    def words(self, places: Sequence[str], pair: int) -> str:
        """Of one pair: all of a few sides, otherwise the two that differ most clearly."""
        own = self.values[:, pair]
        clearest = clearest_two(own, self.covariance[pair])
        return movement_words(places, own.tolist(), in_order=False, places=clearest)


def summary(table: pd.DataFrame, places: list[str], estimates: Estimates | None, caveat: str) -> str:
    """How many pairs differ, and what the clearest of them are: on each side, or by how much they differ."""
    between = f"{len(places)} values"
    if len(places) <= _NAMED_VALUES:
        between = f"{', '.join(places[:-1])} and {places[-1]}"
    differ = table.index[table["q_value"] <= FDR]
    n_differ = len(differ)
    verb = agreed(max(1, n_differ), "differs", "differ")
    told = (
        f"{n_differ or 'None'} of {count(len(table), 'pair')} {verb} "
        f"between {between}{f', {AS_IF}' if caveat else ''}, at a false-discovery level of {FDR:.2f}"
        f"{beside_all(table['q_value'], table.attrs['p_value'], is_doubtful=bool(caveat))}"
    )
    by_p_values = _by_p_values_alone(table, also="as well" if n_differ else "all the same")
    if not n_differ:
        seen = is_significant(table.attrs["p_value"]) or is_significant(table["p_value"].min())
        return f"{told}{f'; the clearest is {_clearest_pair(table)}' if seen else ''}.{by_p_values}"
    clearest = table.loc[differ].sort_values(["q_value", "p_value"], kind="stable").index[:_NAMED]
    named = [
        f"{pair_name(*table.loc[pair, ['source', 'target']])} ({_difference(table, places, estimates, pair)})"
        for pair in clearest
    ]
    first = "" if len(named) == n_differ else "Clearest: "
    told = f"{told}. {first}{'; '.join(named)}.{by_p_values}"
    if estimates is None or len(places) > _NAMED_VALUES:  # of many values, extremes are those of few rows
        return told
    strongest = np.abs(estimates.values[:, differ]).argmax(axis=0)
    sizes = [int((strongest == side).sum()) for side in range(len(places))]
    counts = [
        f"{count(size, 'pair')} {agreed(size, 'is', 'are')} strongest at {place}"
        for place, size in zip(places, sizes, strict=True)
        if size
    ]
    return f"{told} Of these, {', '.join(counts)}."


def _by_p_values_alone(table: pd.DataFrame, also: str) -> str:
    """Pairs that their q-values leave out, and those that follow from p-values alone would not."""
    more = table[(q_values(table["p_value"].to_numpy()) <= FDR) & (table["q_value"] > FDR)]
    if more.empty:
        return ""
    columns = (more.sort_values("p_value", kind="stable")[name] for name in ("source", "target", "p_value"))
    named = [f"{pair_name(one, other)} ({p_text(p)})" for one, other, p in zip(*columns, strict=True)]
    return (
        f" By p-values alone (Benjamini-Hochberg) {first_few(named, _NAMED)} would count {also}: q-values "
        "go by what all pairs show as well, which makes less of these."
    )


def beside_all(rates: pd.Series | NDArray[np.float64], p_value: float, *, is_doubtful: bool = False) -> str:
    """What a test of all pairs together adds to those that differ by their ``rates``, q-values.

    Also how many of them do not, where that is known.
    """
    p, all_pairs = p_text(p_value), "test of all pairs together"
    n_differ = int((rates <= FDR).sum())
    if not n_differ:
        seen = (
            f", yet a {all_pairs} sees a difference"
            if is_significant(p_value)
            else f"; a {all_pairs}, which looks for single clear ones, sees no difference either"
        )
        return f"{seen} ({p})"
    if is_significant(p_value):
        expected = "" if is_doubtful else false_words(rates, "not to differ", FDR)
        return f"{expected}. A {all_pairs} agrees ({p})"
    hint = agreed(n_differ, "it for a hint", "them for hints")
    return f", but a {all_pairs} does not confirm it ({p}): take {hint}, to be confirmed on more rows"


def _clearest_pair(table: pd.DataFrame) -> str:
    pair = table.iloc[int(table["p_value"].to_numpy().argmin())]
    q = (format_beside(FDR, [pair["q_value"]], 2, "f") % pair["q_value"]).removeprefix("0")
    numbers = f"difference {pair['difference']:.2f}, {p_text(pair['p_value'])}, q = {q}"
    return f"{pair_name(pair['source'], pair['target'])} ({numbers})"


def place_words(side: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_value_text(value)}" for name, value in side.items())


def _value_text(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _difference(table: pd.DataFrame, places: list[str], estimates: Estimates | None, pair: int) -> str:
    if estimates is None:
        return f"by {float(table['difference'].iloc[pair]):+.2f}"
    return estimates.words(places, pair)


def reading(table: pd.DataFrame, places: list[str], level: float) -> str:
    """What stands in the table."""
    what = f"{places[1]} less {places[0]}" if len(places) == 2 else "the largest less the smallest"
    whose = "" if len(places) == 2 else " that hold for any two values"
    told = f"Differences are {what}, with intervals of {100 * level:g} %{whose}."
    if table.sort_values(["p_value", "q_value"])["q_value"].is_monotonic_increasing:
        return told
    return (
        f"{told} Q-values need not have the order of p-values: they go by what all pairs show as well, such "
        "as how many have no edge, the same at all values, or one that comes and goes."
    )


def few_words(question: Question, sides: Sequence[Mapping[str, Any]], places: list[str]) -> str:
    """Which levels few groups or rows have, and which numbers few rows reach."""
    encoder, n_nodes = question.encoder, len(question.inputs.node_names)
    encoded, few = encoder.transform(question.inputs.Z), []
    for place, words in zip(places_of(encoder, sides), places, strict=True):
        rows = rows_with_levels(encoder, encoded, place)
        n_rows = int(rows.sum())
        n_groups = n_rows if question.labels is None else len(np.unique(question.labels[rows]))
        if question.labels is not None and n_groups < _FEW_GROUPS:
            few.append(f"only {count(n_groups, 'group')} ({count(n_rows, 'row')}) with {words}")
        elif n_rows < max(_FEW_ROWS, _FEW_PER_NODE * n_nodes):
            few.append(f"only {count(n_rows, 'row')} for {n_nodes} nodes with {words}")
        few += _far_out(encoder, encoded, place)
    return f"There are {' and '.join(few)}: estimates there are rough." if few else ""


def _far_out(encoder: CovariateEncoder, encoded: Encoded, place: Mapping[str, float]) -> list[str]:
    """Numbers that few rows have or go beyond."""
    few = []
    for column, own in zip(encoder.numeric, encoded.numeric.T, strict=True):
        if column.name not in place:
            continue
        asked = place[column.name]
        near = _NEAR * (column.high - column.low) / column.scale
        reach = min((own >= asked - near).sum(), (own <= asked + near).sum())
        if reach < _FEW_FAR_OUT:
            value = column.text(column.mean + column.scale * asked)
            few.append(f"only {count(int(reach), 'row')} with {column.name} near {value} or beyond")
    return few


def adding_up(names: Sequence[str]) -> str:
    """That differences cannot depend on covariates that all sides have in common."""
    if not names:
        return ""
    return (
        f"Rows are too few to tell how differences depend on {listing(names)}: effects of covariates are "
        f"taken to add up, so that these differences are the same at any value of {listing(names)}."
    )

"""Which rows are held out where the table says when they were measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphfield.exceptions import ParameterError

if TYPE_CHECKING:
    from graphfield.data.roles import TableData

# Stretches of time that stay together where the last rows cannot be the ones that are held out.
N_BLOCKS = 50


def rows_to_fit(data: TableData, model: Any, can_hold_out: bool) -> tuple[dict[str, Any], str | None]:
    """Arguments of ``fit`` and, where time decides what is held out, a line that says so.

    The last rows are held out. Where the graph is to depend on time itself, where these rows have values of
    covariates that no others have, or the estimator takes no rows to hold out, whole stretches of time are
    held out instead; groups, where there are any, go before.
    """
    from graphfield.data.roles import time_values
    from graphfield.data.splits import is_elsewhere, last_in_time, time_blocks

    everything = {"X": data.X, "Z": data.Z, "groups": data.groups}
    if data.time is None:
        return everything, None
    moments = time_values(data.time)
    if moments.min() == moments.max():
        raise ParameterError.of("time", f"{data.time.name} has the same value in every row. Leave it out.")
    if data.groups is not None:
        return everything, f"Held out: whole groups of {data.groups.name!r}, as --group goes before --time."
    stretches = {**everything, "groups": time_blocks(moments, N_BLOCKS)}
    if data.time.name in data.Z.columns or not can_hold_out:
        return stretches, "Held out: whole stretches of time."
    fraction = model.validation_fraction
    if not fraction:
        return everything, None
    train, held_out = last_in_time(moments, fraction)
    if is_elsewhere(data.Z, held_out):
        why = "the last rows have values of covariates that no others have"
        return stretches, f"Held out: whole stretches of time, as {why}."
    options = {"X": data.X.iloc[train], "Z": data.Z.iloc[train]}
    options |= {"X_val": data.X.iloc[held_out], "Z_val": data.Z.iloc[held_out]}
    first = data.time.iloc[held_out].iloc[moments[held_out].argmin()]
    return options, f"Held out: the last {len(held_out):,} rows, from {data.time.name} {first} on."

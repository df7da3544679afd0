"""What a model folder holds besides the model, for the report page; every file may be missing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphfield.analysis import evidence
from graphfield.data import findings
from graphfield.exceptions import ModelFileError

CHECK, EVIDENCE, FIT = "data_check.json", "evidence.json", "fit.json"
# The sentence of a data check about rows that were left out.
_DROPPED = re.compile(r"Dropped ([\d,]+) of ([\d,]+) rows ")
FORMATS = {CHECK: findings.FORMAT, EVIDENCE: evidence.FORMAT}


def fit_record(
    *,
    rows: int,
    nodes: Sequence[str],
    covariates: Sequence[str],
    seconds: float,
    table: str | None = None,
    group: str | None = None,
    unused: Sequence[str] = (),
) -> dict[str, Any]:
    """What ``fit.json`` says of every fit: what it was fitted to, and how long that took."""
    return {
        **({} if table is None else {"table": table}),
        "rows": rows,
        "nodes": list(nodes),
        "covariates": list(covariates),
        "group": group,
        "unused": list(unused),
        "seconds": round(seconds, 2),
    }


@dataclass(frozen=True)
class RowsUsed:
    """Rows that a fit used, and rows of its table that it left out because of missing values."""

    used: int
    left_out: int = 0

    @classmethod
    def of(cls, fit: Mapping[str, Any] | None, check: Mapping[str, Any] | None) -> RowsUsed | None:
        """From ``fit.json`` and what ``data_check.json`` says was dropped; None where neither tells."""
        if not fit or fit.get("rows") is None:
            return None
        rows = int(fit["rows"])
        for change in (check or {}).get("changes") or []:
            found = _DROPPED.match(str(change))
            if found:
                dropped, table = (int(number.replace(",", "")) for number in found.groups())
                return cls(rows - dropped, dropped) if table == rows else cls(rows)
        return cls(rows)

    def left_out_words(self) -> str:
        return f" ({self.left_out:,} left out: missing or infinite values)" if self.left_out else ""


def read_record(folder: Path, name: str) -> dict[str, Any] | None:
    """A JSON file of the folder, or None where there is none."""
    path = folder / name
    if not path.is_file():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} cannot be read: {error}. Remove it, or write it again.") from error
    expected = FORMATS.get(name)
    if not isinstance(record, dict) or (expected and record.get("format") != expected):
        raise ModelFileError(
            f"{path} is not what it should be ({expected or 'a JSON object'}). Write it again."
        )
    return record

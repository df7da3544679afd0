"""``graphfield evidence``: does the graph depend on the covariates at all?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfield.cli.check import read_roles, table_options
from graphfield.exceptions import OutputError

if TYPE_CHECKING:
    from graphfield.analysis.evidence import Evidence
    from graphfield.data.roles import TableData

EVIDENCE_FILE = "evidence.json"
_PERMUTATIONS = 199


def evidence_parser(group: Any) -> None:
    p = group.add_parser("evidence", help="test whether the graph depends on the covariates at all")
    table_options(p)
    p.add_argument("--permutations", type=int, default=_PERMUTATIONS, help="rearrangements (default 199)")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--out", type=Path, metavar="FILE.json", help="also write the numbers to a file")
    p.add_argument("--force", action="store_true", help="replace an existing file")
    p.set_defaults(run=evidence)


def evidence(arguments: argparse.Namespace) -> None:
    out = arguments.out
    if out is not None and out.exists() and not arguments.force:
        raise OutputError(f"{out} already exists. Choose another name or add --force.")
    found = run_test(arguments, read_roles(arguments), arguments.permutations)
    if out is not None:
        found.save(out, overwrite=arguments.force)
        sys.stdout.write(f"Wrote {out}.\n")


def run_test(arguments: argparse.Namespace, data: TableData, n_permutations: int = _PERMUTATIONS) -> Evidence:
    """The test, and what it says on the screen."""
    from graphfield.analysis.dependence import dependence_test

    found = dependence_test(
        data.X,
        data.Z,
        groups=data.groups,
        time=data.time,
        missing=arguments.missing,
        n_permutations=n_permutations,
        random_state=arguments.seed,
    )
    sys.stdout.write(f"{found}\n")
    sys.stdout.flush()
    return found

"""What is said on the screen, and what Python says in the words of the command line."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphfield.cli.options import READING
from graphfield.folders import write_file
from graphfield.messages import Argument, Part, Place, Row, render
from graphfield.numbers import format_beside

if TYPE_CHECKING:
    import pandas as pd

# Options whose argument has another name in Python.
_PYTHON_NAMES = {
    "at": "z",
    "bootstraps": "n_bootstraps",
    "drops": "n_drops",
    "folds": "n_folds",
    "networks": "groups",
    "node_groups": "groups",
    "pairs": "n_pairs",
    "permutations": "n_permutations",
    "sectors": "groups",
    "seed": "random_state",
    "sets": "n_sets",
}
# Hyper-parameters of models that have no option of their own, or not in every command.
_SETTINGS = ("by", "marginals", "missing")
# An option of 'graph' that other commands speak of, too, and one of 'fit'.
_OF_GRAPH, _OF_FIT = "threshold", "node_types"
# What the shell says for messages of these codes.
TEMPLATES = {
    "at-least": "of at least {low:g}",
    "average-unknown": "--set unknown=average when fitting",
    "both-sides": "--between and --and",
    "by-default": "",
    "compare-levels": "graphfield differences TABLE ... --between {name}",
    "compare-values": "graphfield differences TABLE ... --between {a} --and {b}",
    "convert-covariate": "Correct the values that are no numbers",
    "convert-node": "Correct the value, use the column as a covariate, or leave it out with --drop",
    "drop-nodes": "Leave {them} out with --drop",
    "fit-by-rows": "'graphfield fit' takes it by rows; else write fewer rows or columns to another table",
    "fit-resampled": "fit again with --intervals",
    "force": "Add --force",
    "give-threshold": "Give a number with --threshold",
    "groups": "The column of --group",
    "infer-edges": "'graphfield edges'",
    "kind-models": "--model dnncgm, linear, tree, auto or nodewise",
    "leave-out-node": "Leave {them} out with --drop",
    "levels-node": "Use it as a covariate, leave it out with --drop, or fit {models}, whose nodes may be "
    "levels",
    "name-file": "name a file with --out",
    "no-groups": "do without --group",
    "one-column": "one column only is left for them",
    "overwrite": "add --force",
    "pass-groups": "name it with --group",
    "resume": "Add --resume",
    "resume-processes": ", with --checkpoint DIR, and --resume to go on where the fit was",
    "row-blocks": "else a fit chooses by held-out rows that are too easy",
    "save-evidence": "'graphfield evidence'",
    "save-model": "'graphfield fit'",
    "say-date-format": "Say which with --date-format dd/mm/yyyy or --date-format mm/dd/yyyy",
    "subject-as-groups": "pass the subject as groups (--group COLUMN)",
    "time-column": "--time COLUMN",
    "too-few-rows": "At least {least} rows are needed, got {n}. With so few rows every graph fits.",
    "values-twice": "--between {name}=... --and {name}=...",
}
_DIGITS = 4  # of numbers in a list on the screen
# Arguments that are tables whose rows a message may speak of.
_TABLES = ("table", "prices", "phenotypes")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def list_out(text: str, notes: str, arguments: argparse.Namespace) -> None:
    """A list to the output, where it can be piped, with notes beside it; or to the file of ``--out``."""
    if arguments.out is None:
        sys.stderr.write(f"{notes}\n")
        sys.stdout.write(text)
        return
    write_file(arguments.out, text.encode(), overwrite=arguments.force)
    say(f"{notes}\nWrote {arguments.out}.")


def pairs_text(table: pd.DataFrame, arguments: argparse.Namespace) -> str:
    """Tested pairs, comma separated: all digits in a file; on the screen no rate crosses ``--fdr``."""
    if arguments.out is not None:
        return str(table.to_csv(index=False))
    rates = table.filter(regex="^[pq]_").to_numpy().ravel()
    return str(table.to_csv(index=False, float_format=format_beside(arguments.fdr, rates, _DIGITS)))


def render_for_shell(message: str, arguments: argparse.Namespace | None = None) -> str:
    """A message of the library in the words of a command that was given these ``arguments``.

    Arguments become options, and rows, which Python counts from 0, lines of the file.

    >>> from graphfield.messages import Message
    >>> said = Message("{name} must be 19 or more.", name=Argument("n_permutations"))
    >>> render_for_shell(said, argparse.Namespace(permutations=5))
    '--permutations must be 19 or more.'
    """
    given = {} if arguments is None else vars(arguments)
    are_tests = "model" not in given and ("fdr" in given or "permutations" in given)
    templates = TEMPLATES | {"kind-models": "the tests"} if are_tests else TEMPLATES
    return render(message, lambda part: _words(part, given), templates)


def _words(part: Part, given: dict[str, Any]) -> str:
    if isinstance(part, Row) and any(given.get(name) for name in _TABLES):
        return _place(given, part.index)
    if isinstance(part, Place):
        return shlex.quote(f"{part.covariate}={part.value}")
    return _option(part, given) if isinstance(part, Argument) else str(part)


def _option(argument: Argument, given: dict[str, Any]) -> str:
    """An argument as an option of this command, as a setting of its model, or else as Python has it."""
    known = [name for name in given if argument.name in (name, _PYTHON_NAMES.get(name))]
    if (argument.has_value and argument.name == _OF_GRAPH) or argument.name == _OF_FIT:
        known = [argument.name]
    if not known and argument.has_value and argument.name in _SETTINGS:
        return f"--set {argument.name}={_value(argument.value)}"
    if not known:
        return str(argument)
    option = f"--{known[0].replace('_', '-')}"
    return f"{option} {_value(argument.value)}" if argument.has_value else option


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        value = [f"{name}={one}" for name, one in value.items()]
    words = {None: "none", "\t": "tab"}
    text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(words.get(value, value))
    return shlex.quote(text)


def _place(given: dict[str, Any], row: int) -> str:
    """Where a person finds a row, which is counted from 0: the line of a text file, else counted from 1."""
    from graphfield.data.reading import ReadOptions
    from graphfield.data.tables import find_line

    table = next(given[name] for name in _TABLES if given.get(name))
    options: dict[str, Any] = {name: given.get(name) for name in READING}
    line = find_line(table, row, ReadOptions(**options), given.get("reading"))
    return f"row {row + 1}" if line is None else f"line {line}"

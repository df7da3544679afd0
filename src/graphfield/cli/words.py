"""What is said on the screen, and what Python says in the words of the command line."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from typing import Any

from graphfield.cli.options import READING

# Options whose argument has another name in Python.
_PYTHON_NAMES = {
    "at": "z",
    "folds": "n_folds",
    "networks": "groups",
    "node_groups": "groups",
    "permutations": "n_permutations",
    "sectors": "groups",
    "seed": "random_state",
}
# What Python says, as patterns, and the command line.
_SHELL_WORDS = {
    r"missing='(drop|impute)'": r"--missing \1",
    r"marginals='normal'": "--set marginals=normal",
    r" \(marginals='auto'\)": "",
    r"unknown='average'": "--set unknown=average when fitting",
    r"pass overwrite=True": "add --force",
    r"Pass resume=True": "Add --resume",
    r"threshold='(auto|gap)'": r"--threshold \1",
    r"threshold=None has": "--threshold none has",
    r"fit gf\.Ensemble\(estimator=\.\.\., n_members=20, resample=True\)": "fit again with --intervals",
    r"Pass a number as threshold": "Give a number with --threshold",
    r"(Nodes? .* (?:is|are) empty: .*) Leave (it|them) out\.": r"\1 Leave \2 out with --drop.",
    r"Drop (it|them) from X\.": r"Leave \1 out with --drop.",
    r"Convert the column with pandas\.to_numeric, or use it as a covariate": "Correct the value, use the "
    "column as a covariate, or leave it out with --drop",
    r"Convert the column with pandas\.to_numeric": "Correct the values that are no numbers",
    r"pass it as groups": "name it with --group",
    r"Name them with nodes": "Name them with --nodes",
    r"what measures nothing \(drop\)": "what measures nothing (--drop)",
    r"\bcannot be left out \(drop\)": "cannot be left out (--drop)",
    r"^groups has": "The column of --group has",
    r"or leave groups out": "or do without --group",
    r" samples are needed, got n_samples = (\d+)": r" rows are needed, got \1",
    r"but X has one column \(n_features = 1\)": "but one column only is left for them",
    r" in \[([\d.]+), inf\)": r" of at least \1",
    r" \(from_table\(\.\.\., .*?\)\)": "",
}
# Options about the reading of files, as Python writes them.
_READING = re.compile(r"\b(sep|decimal|thousands|encoding|sheet|date_format)='((?:\\.|[^'\\])*)'")
# Arguments that are tables whose rows a message may speak of.
_TABLES = ("table", "prices", "phenotypes")
_ROW = re.compile(r"(?<!['\w])row (\d+)\b(?!')")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def for_the_shell(text: str, arguments: argparse.Namespace | None = None) -> str:
    """A message of the library in the words of a command that was given these ``arguments``.

    Names of arguments become options, and rows, which Python counts from 0, lines of the file.

    >>> for_the_shell("n_permutations must be 19 or more.", argparse.Namespace(permutations=5))
    '--permutations must be 19 or more.'
    """
    for python, shell in _SHELL_WORDS.items():
        text = re.sub(python, shell, text)
    given = {} if arguments is None else vars(arguments)
    if "sep" in given:
        text = _READING.sub(lambda found: f"--{found[1].replace('_', '-')} {shlex.quote(found[2])}", text)
    for name in given:
        python = _PYTHON_NAMES.get(name, name)
        # Names with an underscore are no English words; others are meant where a message begins with them.
        where = rf"(?<!['\w-]){python}(?![\w'])" if "_" in python else rf"^{python}(?= must )"
        text = re.sub(where, f"--{name.replace('_', '-')}", text)
    if not any(given.get(name) for name in _TABLES):
        return text
    return _ROW.sub(lambda found: _place(given, int(found[1])), text)


def _place(given: dict[str, Any], row: int) -> str:
    """Where a person finds a row, which is counted from 0: the line of a text file, else counted from 1."""
    from graphfield.data.reading import ReadOptions
    from graphfield.data.tables import find_line

    table = next(given[name] for name in _TABLES if given.get(name))
    options: dict[str, Any] = {name: given.get(name) for name in READING}
    line = find_line(table, row, ReadOptions(**options), given.get("reading"))
    return f"row {row + 1}" if line is None else f"line {line}"

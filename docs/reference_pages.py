"""Pages of the reference that follow from the code: public names, commands, codes of findings."""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import graphfield as gf
from graphfield.cli.parser import make_parser

SOURCE = Path(gf.__file__).parent
# Subpackages whose public names have pages of their own, with the words above them.
PACKAGES = {
    "analysis": "Questions to a fitted model or field",
    "data": "From tables to numbers",
    "graphs": "Graphs as arrays",
    "metrics": "Scores against a known graph",
    "plots": "Pictures",
    "report": "The page",
    "simulate": "Data with a known graph",
    "studies": "Studies",
    "theory": "The paper's rates",
}


def write_pages(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"api.rst": _api(), "command-line.md": _commands(), "codes.md": _codes()}
    for name, text in pages.items():
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:  # what is new is built again
            file.write_text(text, encoding="utf-8")


def _api() -> str:
    public = {name: getattr(gf, name) for name in gf.__all__ if not name.startswith("_")}
    classes = [name for name, value in public.items() if inspect.isclass(value)]
    faults = [name for name in classes if issubclass(public[name], Exception)]
    estimators = [name for name in classes if hasattr(public[name], "edge_weights")]
    functions = [name for name, value in public.items() if inspect.isfunction(value)]
    results = [name for name in classes if name not in faults and name not in estimators]
    parts = [_heading("API", "=")]
    for title, names in (
        ("Estimators", estimators),
        ("Functions", functions),
        ("Results", results),
        ("Errors and warnings", faults),
    ):
        parts += [_heading(title, "-"), _summary("graphfield", names)]
    for package, title in PACKAGES.items():
        module = import_module(f"graphfield.{package}")
        names = [name for name in _names(module) if not name.startswith("_") and name not in public]
        parts += [_heading(f"{title}: graphfield.{package}", "-"), _summary(module.__name__, names)]
    return "\n".join(parts)


def _names(module: ModuleType) -> list[str]:
    listed = getattr(module, "__all__", None)
    own = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__]
    found = {name: getattr(module, name) for name in (own if listed is None else listed)}
    return [name for name, value in found.items() if callable(value) and inspect.getdoc(value)]


def _heading(title: str, line: str) -> str:
    return f"{title}\n{line * len(title)}\n"


def _summary(module: str, names: list[str]) -> str:
    listed = "\n".join(f"   {name}" for name in names)
    return f".. currentmodule:: {module}\n\n.. autosummary::\n   :toctree: api\n\n{listed}\n"


def _commands() -> str:
    os.environ["COLUMNS"] = "100"  # argparse wraps to the terminal, and a page has none
    parser = make_parser()
    parts = ["# Command line", "", _help(parser)]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                parts += [f"## graphfield {name}", "", _help(command)]
    return "\n".join(parts)


def _help(parser: argparse.ArgumentParser) -> str:
    return f"```text\n{parser.format_help().rstrip()}\n```\n"


def _codes() -> str:
    return "\n".join(
        [
            "# Codes of errors and findings",
            "",
            "Codes stay the same while words may change. Names in braces are filled in.",
            "",
            "## Findings",
            "",
            "What `graphfield check` and `gf.check_data` find: `check.codes()` in Python, `code` in the",
            "JSON of `graphfield check --json`.",
            "",
            *_table("what is said", sorted(set(_findings()))),
            "## Errors",
            "",
            "Every error is a `gf.GraphfieldError`; programs ask for its class and for `error.parts`,",
            "which has what is at fault as data (`argument`, `column`, `row`, `file`, `advice`). Some have",
            "a code as well, `error.message.code`, as have parts of messages whose words differ between",
            "Python and a shell.",
            "",
            *_table("where it is raised or part of what is said", sorted(set(_error_codes()))),
        ]
    )


def _table(title: str, rows: list[tuple[str, str]]) -> list[str]:
    return [f"| code | {title} |", "| --- | --- |", *(f"| `{code}` | {words} |" for code, words in rows), ""]


def _findings() -> Iterator[tuple[str, str]]:
    """The code and the message of each ``Finding(...)`` that the source makes."""
    for file in sorted((SOURCE / "check").glob("*.py")):
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            for call in ast.walk(function):
                if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Finding"):
                    continue
                code = call.args[0] if call.args else None
                if isinstance(code, ast.Constant) and len(call.args) > 2:
                    yield str(code.value), _words(call.args[2], function)


def _error_codes() -> Iterator[tuple[str, str]]:
    """The code and the text of each error, and part of a message, that has one."""
    for file in sorted(SOURCE.rglob("*.py")):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(call, ast.Call) and call.args):
                continue
            code = next((one.value for one in call.keywords if one.arg == "code"), None)
            if isinstance(code, ast.Constant) and code.value:
                yield str(code.value), _words(call.args[0], None)


def _words(message: ast.expr, function: ast.FunctionDef | None) -> str:
    """The text of a message as the source has it; of one that is put together, what its function finds."""
    if isinstance(message, ast.Name) and function is not None:
        given = [
            one.value
            for one in ast.walk(function)
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == message.id
        ]
        message = given[-1] if given else message
    text = _text(message)
    if not any(letter.isalpha() for letter in re.sub(r"\{.*?\}", "", text)) and function is not None:
        text = (ast.get_docstring(function) or text).split("\n\n")[0].replace("\n", " ")
    return text.replace("|", "\\|")


def _text(message: ast.expr) -> str:
    if isinstance(message, ast.Constant):
        return str(message.value)
    if isinstance(message, ast.JoinedStr):
        return "".join(_text(part) for part in message.values)
    if isinstance(message, ast.BinOp):
        return _text(message.left) + _text(message.right)
    if isinstance(message, ast.Call) and getattr(message.func, "id", "") == "Message" and message.args:
        return _text(message.args[0])
    value = message.value if isinstance(message, ast.FormattedValue) else message
    return f"{{{value.id if isinstance(value, ast.Name) else '…'}}}"

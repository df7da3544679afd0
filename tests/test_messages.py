"""Messages have parts: Python and the shell say them in their own words, and names stay as they are."""

from __future__ import annotations

import argparse
import ast
import copy
import pickle
import re
from functools import cache
from pathlib import Path
from string import Formatter

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import small_data
from graphfield.cli import main
from graphfield.cli.parser import make_parser
from graphfield.cli.words import TEMPLATES, render_for_shell
from graphfield.exceptions import OutputError, check_choice
from graphfield.folders import check_folder
from graphfield.messages import Argument, Message, Row, join_messages

SOURCES = Path(gf.__file__).parent
# Names that read like a part of a message, of a template, or of what used to be rewritten.
NAMES = ["missing='drop'", "row 3", "{who}", "{row!r} }{", "threshold=None has"]
DROP = Argument("missing", "drop")


def shell(message: str, **given: object) -> str:
    return render_for_shell(message, argparse.Namespace(**given))


@pytest.mark.parametrize("name", NAMES)
def test_names_are_never_rewritten(name):
    said = Message("{who!r} has a gap in {row}. Use {drop}.", who=name, row=Row(3), drop=DROP)
    assert said == f"{name!r} has a gap in row 3. Use missing='drop'."
    assert shell(said, missing="error") == f"{name!r} has a gap in row 3. Use --missing drop."
    assert shell(Message("In {member}: {said}", member=name, said=said), missing="error").startswith(
        f"In {name}: {name!r} has a gap"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_column_of_an_odd_name_in_the_shell(name, tmp_path, capsys):
    """The row after the header is line 2, so row 3 is line 5; and a finding to copy is for a shell."""
    X, Z = small_data(120, p=3)
    table = X.rename(columns={"n1": name}).assign(age=Z["age"])
    table.loc[3, name] = np.nan
    table.to_csv(tmp_path / "t.csv", index=False)
    options = ["--covariates", "age", "--out", str(tmp_path / "m")]
    assert main(["fit", str(tmp_path / "t.csv"), *options]) == 2
    told = f"node {name!r} has 1 (first at line 5). Use --missing drop to leave out"
    assert told in capsys.readouterr().err
    with pytest.raises(gf.DataError) as caught:
        gf.RegGMM().fit(table.drop(columns="age"), table[["age"]])
    assert f"node {name!r} has 1 (first at row 3). Use missing='drop' to leave out" in str(caught.value)
    assert caught.value.message.code == "missing-values"
    assert caught.value.message.parts["advice"].parts["drop"] == DROP


def test_findings_name_arguments_in_python_and_options_in_the_shell(tmp_path, capsys):
    X, Z = small_data(120, p=3)
    table = X.assign(**{"left foot": 2 * X["n1"]})
    found = gf.check_data(table, Z[["age"]])
    advice = next(one.advice for one in found.warnings if one.code == "duplicate-nodes")
    assert advice.startswith("Keep one of them (drop=['left foot'])")
    table.assign(age=Z["age"]).to_csv(tmp_path / "t.csv", index=False)
    assert main(["check", str(tmp_path / "t.csv"), "--covariates", "age"]) == 0
    assert "Keep one of them (--drop 'left foot')" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("part", "given", "said"),
    [
        (Argument("n_permutations"), {"permutations": 5}, "--permutations"),
        (Argument("n_permutations"), {}, "n_permutations"),
        (Argument("valid_until"), {"valid_until": None}, "--valid-until"),
        (Argument("groups"), {"node_groups": None}, "--node-groups"),
        (Argument("random_state"), {"seed": 0}, "--seed"),
        (Argument("missing", "drop"), {"missing": "error"}, "--missing drop"),
        (Argument("missing", "drop"), {"set": []}, "--set missing=drop"),
        (Argument("marginals", "normal"), {"set": []}, "--set marginals=normal"),
        (Argument("threshold", None), {"threshold": "auto"}, "--threshold none"),
        (Argument("threshold", "auto"), {"out": "report.html"}, "--threshold auto"),
        (Argument("sep", ";"), {"sep": None}, "--sep ';'"),
        (Argument("sep", "\t"), {"sep": None}, "--sep tab"),
        (Argument("encoding", "gbk"), {}, "encoding='gbk'"),
        (Argument("drop", ["a", "left foot"]), {"drop": None}, "--drop 'a,left foot'"),
        (Row(5), {}, "row 5"),
    ],
)
def test_words_of_the_shell(part, given, said):
    assert shell(Message("{part}", part=part), **given) == said


def test_parts_of_parts():
    lines = join_messages("; ", [Message("{drop}", drop=DROP), "{drop}", Argument("nodes")])
    assert lines == "missing='drop'; {drop}; nodes"
    assert shell(Message("Use {lines}.", lines=lines), missing=0, nodes=0) == (
        "Use --missing drop; {drop}; --nodes."
    )


def test_plain_text_is_no_template():
    assert str(gf.DataError("Node '{who}' is odd.")) == "Node '{who}' is odd."
    assert shell("Use missing='drop' in row 3.", missing="error") == "Use missing='drop' in row 3."


def test_programs_ask_errors_what_they_are_about(tmp_path):
    """The sentence stays as it is, in Python and in the shell, where a template would read the braces."""
    X, Z = small_data(60)
    (tmp_path / "t.csv").write_text("a,{a}\n1,2,3\n")
    for ask, name, part in [
        (lambda: gf.read_table(tmp_path / "no.csv"), "file", str(tmp_path / "no.csv")),
        (lambda: gf.read_table(tmp_path / "t.csv"), "file", str(tmp_path / "t.csv")),
        (lambda: gf.RegGMM().fit(X, Z.assign(age=1 + 2j)), "column", "age"),
        (lambda: gf.RegGMM().fit(X[["n1"]], Z.rename(columns={"age": "n1"})), "column", "n1"),
        (lambda: gf.RegGMM().fit(X.to_numpy()[:, 0], Z), "argument", Argument("X")),
        (lambda: gf.make_setting("{G1}"), "argument", Argument("name")),
        (lambda: check_folder(tmp_path / "t.csv", overwrite=False), "file", str(tmp_path / "t.csv")),
    ]:
        with pytest.raises(gf.GraphfieldError) as caught:
            ask()
        assert caught.value.parts[name] == part, caught.value
        assert pickle.loads(pickle.dumps(caught.value)).parts[name] == part
        assert shell(caught.value.message) == str(caught.value)
    known = OutputError("{path} is there.", path="a{b}", code="there").about(argument="out")
    assert (str(known), known.message.code, known.parts["path"]) == ("a{b} is there.", "there", "a{b}")
    assert gf.DataError("plain").parts == {}


class Closed:
    """Something that cannot be sent to another process."""

    def __repr__(self) -> str:
        return "{a} closed thing"

    def __reduce__(self):
        raise TypeError("no")


@pytest.mark.parametrize("remake", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_errors_go_to_other_processes(remake):
    with pytest.raises(gf.ParameterError) as caught:
        check_choice("missing", Closed(), ["drop"])
    written = OutputError("{path} is there, in {row}.", path=Path("a{b}"), row=Row(2), code="there")
    for error in (caught.value, written, gf.TrainingError("{plain}"), OutputError(28, "No space", "x")):
        again = remake(error)
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert shell(again.message, missing="error") == shell(error.message, missing="error")
    assert str(caught.value) == "missing must be one of 'drop', got {a} closed thing."
    assert shell(remake(caught.value).message, missing="error").startswith("--missing must be one of")
    assert remake(written).message.code == "there"
    assert remake(written).message.parts["row"] == Row(2)


def test_advice_is_in_the_words_of_the_shell(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a;b;age\n" + "1,5;2,5;3\n" * 30)
    assert main(["check", str(tmp_path / "t.csv"), "--covariates", "age", "--sep", ","]) == 2
    assert "Give --sep ';' and --decimal , instead" in capsys.readouterr().err
    assert main(["graph", str(tmp_path)]) == 2
    assert "as written by 'graphfield fit'." in capsys.readouterr().err
    with pytest.raises(gf.ParameterError) as caught:
        gf.ByCluster(by="ag").fit(*small_data(60))
    assert shell(caught.value.message).startswith("--set by=ag is no covariate.")


def test_warnings_have_parts():
    table = pd.DataFrame({"id": np.arange(40), "a": np.random.default_rng(0).normal(size=40), "age": 1.5})
    with pytest.warns(gf.DataWarning, match=r"leave out what measures nothing \(drop\)") as caught:
        gf.from_table(table, covariates=["age"])
    assert "(--drop)" in shell(caught[0].message.args[0], drop=None)


@cache
def nodes_of_sources():
    """Every node of the syntax of every source file."""
    return [(path, list(ast.walk(ast.parse(path.read_text())))) for path in SOURCES.rglob("*.py")]


def calls_with_parts():
    """Calls of Message and of errors with their templates and the names of their parts."""
    for path, nodes in nodes_of_sources():
        for node in nodes:
            if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name):
                names = {one.arg for one in node.keywords if one.arg is not None}
                if node.func.id == "Message" or (node.func.id.endswith("Error") and names):
                    yield f"{path.name}:{node.lineno}", node, names


def fields_of(template):
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def test_templates_are_written_out_and_have_their_parts():
    """A name in an f-string would be read as a template."""
    known = {}
    for place, node, names in calls_with_parts():
        template = node.args[0]
        assert not isinstance(template, ast.JoinedStr), place
        if isinstance(template, ast.Constant):
            assert fields_of(template.value) == names - {"code"}, place
        code = next((one.value for one in node.keywords if one.arg == "code"), None)
        for one in ast.walk(code) if code is not None else ():
            if isinstance(one, ast.Constant):
                known[one.value] = names
    for code, template in TEMPLATES.items():
        assert fields_of(template) <= known[code], code


def test_no_option_or_command_is_named_below_the_command_line():
    commands = "|".join(re.findall(r"^    (\w+) +\w", make_parser().format_help(), re.MULTILINE))
    assert "fit|" in commands
    for path, nodes in nodes_of_sources():
        if "cli" in path.relative_to(SOURCES).parts:
            continue
        for one in nodes:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                option = re.search(rf"(^|[\s('])(--[a-z]|graphfield ({commands})\b)", one.value)
                assert not option, f"{path.name}:{one.lineno} {one.value[:80]}"


def parts_of_errors(kind):
    """Where errors of a kind are made, and the names of their parts."""
    for path, nodes in nodes_of_sources():
        found: dict[int, set[str | None]] = {}
        for node in nodes:
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if re.match(rf"{kind}\b", called):
                parts = found.setdefault(node.lineno, set())
                parts.update({"argument"} if called == f"{kind}.of" else {one.arg for one in node.keywords})
        for line, parts in found.items():
            yield path.relative_to(SOURCES).as_posix(), line, parts


# What is wrong in the file of a table gets its argument where the file is read.
NO_ARGUMENT = ["experiments/specs/"]


def test_a_wrong_parameter_names_its_argument():
    without = [
        f"{path}:{line}"
        for path, line, parts in parts_of_errors("ParameterError")
        if "argument" not in parts and not path.startswith(tuple(NO_ARGUMENT))
    ]
    assert not without


# Errors that get the name of their file where it is opened.
IN_FILES = (
    "data/column_files.py",
    "data/npz_tables.py",
    "data/sources.py",
    "data/text_",
    "fmri/scan_files.py",
)


def test_wrong_data_says_where():
    without = [
        f"{path}:{line}"
        for path, line, parts in parts_of_errors("DataError")
        if not parts - {"code"} and not any(known in path for known in IN_FILES)
    ]
    assert not without


# Records that are given as values, of which no file is known yet.
NO_FILE = ("report/folder.py", "inference/edge_record.py", "inference/pairs_at.py")


@pytest.mark.parametrize("kind", ["OutputError", "ModelFileError"])
def test_what_is_wrong_with_a_file_names_it(kind):
    without = [
        f"{path}:{line}"
        for path, line, parts in parts_of_errors(kind)
        if "file" not in parts and path not in NO_FILE
    ]
    assert not without

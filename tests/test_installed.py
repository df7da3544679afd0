"""What is not installed is said before the work; what is installed is enough. The wheel itself: .ci/wheel."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import graphfield as gf
from graphfield.cli import main
from graphfield.exceptions import check_package
from graphfield.graphs.export import to_networkx, write_graph


@pytest.fixture
def without(monkeypatch):
    """Makes a package as good as not installed."""

    def remove(package: str) -> None:
        for name in [m for m in sys.modules if m.split(".")[0] == package] + [package]:
            monkeypatch.setitem(sys.modules, name, None)

    return remove


@pytest.fixture
def no_work(monkeypatch):
    """Loading a model and running cells are work, which must not have begun."""

    def begun(*_: object, **__: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr("graphfield.estimators.persistence.load", begun)
    monkeypatch.setattr("graphfield.experiments.runner._results", begun)


@pytest.mark.parametrize(
    ("package", "extra", "command"),
    [
        ("pyarrow", "parquet", ["graph", "model", "--out", "graph.parquet"]),
        ("pyarrow", "parquet", ["graph", "model", "--out", "graph", "--format", "parquet"]),
        ("pyarrow", "parquet", ["report", "model", "--node-groups", "table.parquet"]),
        ("pyarrow", "parquet", ["fit", "table.parquet", "--covariates", "z", "--out", "model"]),
        (
            "skglm",
            "baselines",
            ["reproduce", "table1", "--methods", "reggmm-sparse-group", "--out", "tables"],
        ),
        ("skglm", "baselines", ["reproduce", "table4", "--out", "tables"]),
    ],
)
def test_a_command_says_what_it_lacks_before_its_work(
    without, no_work, tmp_path, monkeypatch, capsys, package, extra, command
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    without(package)
    assert main(command) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert package in error
    assert f"pip install 'graphfield[{extra}]'" in error


def test_a_graph_in_a_format_that_cannot_be_written_is_heard_of_first(no_work, tmp_path, capsys):
    assert main(["graph", str(tmp_path), "--out", str(tmp_path / "graph.txt")]) == 2
    assert "names no known format" in capsys.readouterr().err


def test_a_graph_is_not_half_written_without_pyarrow(without, tmp_path):
    without("pyarrow")
    graph = to_networkx(~np.eye(2, dtype=bool), np.full((2, 2), 0.5), ["a", "b"])
    with pytest.raises(gf.MissingDependencyError, match="pyarrow"):
        write_graph(graph, tmp_path / "sub" / "graph.parquet")
    assert list(tmp_path.iterdir()) == []


def test_looking_for_a_package_does_not_import_it():
    check = "from graphfield.exceptions import check_package as c; c('skglm', 'baselines', 'This')"
    subprocess.run(
        [sys.executable, "-c", f"{check}\nimport sys; assert not {{'skglm', 'numba'}} & set(sys.modules)"],
        check=True,
        capture_output=True,
    )
    with pytest.raises(ImportError, match=r"This needs the package not_there: pip install 'graphfield\[x\]'"):
        check_package("not_there", "x", "This")


@pytest.mark.parametrize(
    "command",
    [
        ["demo", "--out", "out"],
        ["finance", "prices.csv", "--train-until", "2020-01-01", "--out", "out"],
        ["fmri", "scans", "--phenotypes", "p.csv", "--id", "id", "--score", "age", "--out", "out"],
        ["reproduce", "figures", "--out", "out"],
        ["bench", "--scaling", "--out", "out"],
    ],
    ids=lambda command: command[0],
)
def test_a_command_draws_without_a_screen_whatever_the_environment_says(
    command, tmp_path, monkeypatch, capsys
):
    """A notebook hands its own backend on to the commands that are started from it."""
    monkeypatch.chdir(tmp_path)
    chosen = []

    def use(backend: str) -> None:
        chosen.append(backend)
        raise gf.ParameterError("far enough")

    monkeypatch.setattr("matplotlib.use", use)
    assert main(command) == 2
    assert "far enough" in capsys.readouterr().err
    assert chosen == ["Agg"]

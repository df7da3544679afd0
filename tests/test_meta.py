"""The package itself: public names, lazy imports, layers, examples in docstrings and README."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import networkx as nx
import pytest
from packaging.requirements import Requirement

import graphfield as gf

ROOT = Path(__file__).parents[1]
MODULES = sorted(m.name for m in pkgutil.walk_packages(gf.__path__, "graphfield."))


def test_every_public_name_exists():
    for name in gf.__all__:
        assert getattr(gf, name) is not None
    assert set(gf.__all__) <= set(dir(gf))
    with pytest.raises(AttributeError, match="no attribute 'DNNCMG'"):
        _ = gf.DNNCMG


@pytest.mark.parametrize(
    "code",
    [
        "import graphfield, graphfield.metrics, graphfield.simulate, graphfield.data.roles\n"
        "from graphfield.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "import graphfield as gf, numpy as np; X = np.random.default_rng(0).normal(size=(40, 5))\n"
        "gf.GraphicalLasso(), gf.NodewiseLasso(), gf.ByCluster(), gf.TreeCGM(), gf.AutoCGM(), gf.Ensemble()\n"
        "gf.AutoCGM(candidates=['linear']).fit(X[:, :3], X[:, 3:])\n"
        "gf.Ensemble(estimator=gf.RegGMM(), n_members=2, resample=True).fit(X[:, :3], X[:, 3:])",
    ],
)
def test_torch_and_matplotlib_are_not_imported_until_needed(code):
    unwanted = "{'torch', 'matplotlib', 'polars'}"
    check = f"{code}\nimport sys; bad = {unwanted} & set(sys.modules); assert not bad, bad"
    subprocess.run([sys.executable, "-c", check], check=True, capture_output=True)


def test_import_layers():
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", [m for m in MODULES if not m.endswith("__main__")])
@pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")
def test_docstring_examples(name):
    if "triton" in name:
        pytest.importorskip("triton")
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


# In this order: what one defines, the next may use.
PAGES = [
    "README.md",
    "docs/guide/does-it-depend.md",
    "docs/how-to/page.md",
    "docs/guide/questions.md",
    "docs/guide/groups.md",
    "docs/guide/individual-differences.md",
    "docs/guide/large-data.md",
    "docs/guide/which-estimator.md",
    "docs/guide/settings.md",
    "docs/guide/stability.md",
    "docs/guide/how-many-rows.md",
    "docs/how-to/from-r.md",
]


@pytest.mark.slow
def test_examples_of_readme_and_guide(tmp_path, monkeypatch):
    """Python blocks run as they stand, one after the other."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for page in PAGES:
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
        assert blocks, page
        for block in blocks:
            exec(compile(block, page, "exec"), namespace)


def test_the_readme_is_short_and_its_links_lead_somewhere():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 120
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert broken == []


def test_versions_agree():
    assert gf.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_floors_are_met_by_the_tested_pins():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    )
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    needed = [Requirement(line) for line in [*project["dependencies"], *extras]]
    outside = [f"{one}: {pins.get(one.name)}" for one in needed if not _is_met(one, pins)]
    assert outside == []
    assert pins["torch"] == "2.13.0"


def _is_met(requirement, pins):
    return requirement.name == "graphfield" or requirement.specifier.contains(pins.get(requirement.name, "0"))


def test_small_files():
    long = [f for f in ROOT.glob("src/**/*.py") if len(f.read_text().splitlines()) > 400]
    assert not long


def test_no_file_imports_another_that_imports_it():
    """Not through others either; what type checkers alone see counts."""
    modules = grimp.build_graph("graphfield")
    imports = nx.DiGraph(
        (name, other)
        for name in modules.modules
        for other in modules.find_modules_directly_imported_by(name)
        if "graphfield" not in (name, other)  # the package's own names are imported on first use
    )
    assert [sorted(circle) for circle in nx.strongly_connected_components(imports) if len(circle) > 1] == []


def test_no_seed_is_known_by_its_position():
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
                by_position = node.value.attr.endswith("seeds") and not isinstance(node.slice, ast.Name)
                assert not by_position, f"{path}:{node.lineno}"

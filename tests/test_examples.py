"""The examples run, find what they claim to find, and are the ones shown in the documentation."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What each writes, and what it prints where it found what is there to be found.
EXPECTED = {
    "breast_cancer": (
        ["difference.png", "edges.png"],
        ["'radius', 'perimeter'", "Strong evidence", "radius"],
    ),
    "individual_differences": (
        ["over_age.png", "by_sex.png", "drivers.png"],
        [r"age, given the others: p = ", r"sex, given the others: p = ", r"worry +focus", r"mood +sleep"],
    ),
    "from_table": (
        ["report.html", "model/evidence.json"],
        ["age matters", r"whether sex does cannot be told", "urea,creatinine"],
    ),
    "stocks": (
        ["connectivity.png", "days.png", "averages.png"],
        ["the graph moves with", "A permutation test agrees"],
    ),
    "subjects": (
        ["bands.png", "edge_curves.png"],
        ["the graph moves with", "score matters", r"visual \d memory \d"],
    ),
}
CPU_SECONDS = 120  # about a minute on two cores


@pytest.fixture(scope="module")
def render():
    spec = importlib.util.spec_from_file_location("render_examples", ROOT / "docs" / "render_examples.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_listed(render):
    scripts = {file.stem for file in (ROOT / "examples").glob("*.py")}
    assert scripts == set(render.NAMES) == set(EXPECTED)
    assert render.contents() == (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"docs/examples/{name}.md" in readme for name in EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_page_shows_the_script_as_it_is(render, name):
    """After a change of an example: make examples."""
    text = (ROOT / "docs" / "examples" / f"{name}.md").read_text(encoding="utf-8")
    printed = re.search(r"```text\n(.*?)\n```", text, re.DOTALL)[1]
    drawn = re.findall(rf"\]\({name}-(\w+)\.png\)", text)
    assert text == render.page(name, printed, drawn)
    assert {f"{stem}.png" for stem in drawn} == {file for file in EXPECTED[name][0] if file.endswith(".png")}
    for stem in drawn:
        picture = ROOT / "docs" / "examples" / f"{name}-{stem}.png"
        assert picture.stat().st_size <= render.MOST_BYTES
    for pattern in EXPECTED[name][1]:
        assert re.search(pattern, printed), pattern
    assert "/tmp" not in printed
    assert str(Path.home()) not in printed


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_the_example_runs_in_a_minute_and_finds_what_is_there(name, tmp_path):
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), "--out", str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    files, patterns = EXPECTED[name]
    assert all((tmp_path / file).stat().st_size > 0 for file in files)
    for pattern in patterns:
        assert re.search(pattern, done.stdout), pattern
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < CPU_SECONDS

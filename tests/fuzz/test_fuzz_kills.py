"""Killed at any file operation, nothing is lost, the next run goes on and clears what was left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.fuzz
KILLS = {"save": 40, "fit": 25, "report": 20, "reproduce": 20, "export": 15}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks of one process are killed")
@pytest.mark.parametrize("name", KILLS)
def test_kills_at_random_file_operations(name, tmp_path):
    program = Path(__file__).parents[1] / "kill_scenarios.py"
    command = [sys.executable, str(program), name, str(KILLS[name]), "0", str(tmp_path)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert found["killed"] == KILLS[name]
    assert found["wrong"] == []

"""How many files of the product a replay walks through: `benchmarks.files_called`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MOST = {"engine": 115, "connectors": 30}
PROGRAM = "from benchmarks.files_called import replay_walk; print(*replay_walk(), sep='\\n')"


def test_a_replay_walks_through_few_files() -> None:
    """A replay of a CSV calls functions in few files; more are a reason to merge some."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    found = ran.stdout.split()
    assert "connectors/abers_connectors/replay/run.py" in found
    for part, most in MOST.items():
        assert len([path for path in found if path.startswith(part)]) <= most

"""The first command of the README prints what the README says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
COMMAND = "abers replay examples/scores.csv --report report.html"


def printed(page: str) -> list[str]:
    """Return the lines that a page shows below the command."""
    text = (CHECKOUT / page).read_text("utf-8")
    shown = text.split(f"$ {COMMAND}\n", 1)[1].split("...\n", 1)[0]
    return shown.splitlines()


@pytest.mark.native
def test_the_first_command_works_as_printed(tmp_path: Path) -> None:
    """The answers are those of README and docs, and a report is there."""
    words = COMMAND.replace("examples", str(CHECKOUT / "examples")).split()[1:]
    ran = subprocess.run(
        [sys.executable, "-m", "abers_connectors", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "80", "PYTHONUTF8": "1"},
    )
    shown = ran.stdout.replace("\N{NO-BREAK SPACE}", " ").splitlines()
    for page in ("README.md", "docs/index.md"):
        expected = printed(page)
        assert shown[: len(expected)] == expected
    assert 10_000 < (tmp_path / "report.html").stat().st_size < 1_000_000

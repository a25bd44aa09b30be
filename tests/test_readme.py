"""Commands on pages without tests of their own print what these pages say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
FIRST = "abers replay examples/scores.csv --report report.html"
UNCALIBRATED = "abers replay examples/scores.csv --scores probability --calibrator none"


def printed(page: str, command: str) -> list[str]:
    """Return the lines that a page shows below a command."""
    text = (CHECKOUT / page).read_text("utf-8")
    shown = text.split(f"$ {command}\n", 1)[1].split("...\n", 1)[0]
    return shown.splitlines()


@pytest.mark.native
@pytest.mark.parametrize(
    ("command", "pages"),
    [(FIRST, ("README.md", "docs/index.md")), (UNCALIBRATED, ("docs/monitor_only.md",))],
)
def test_a_command_works_as_printed(tmp_path: Path, command: str, pages: tuple[str, ...]) -> None:
    """The answers are those of the pages, and a report is there if one was asked for."""
    words = command.replace("examples", str(CHECKOUT / "examples")).split()[1:]
    ran = subprocess.run(
        [sys.executable, "-m", "abers_connectors", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "80", "PYTHONUTF8": "1"},
    )
    shown = ran.stdout.replace("\N{NO-BREAK SPACE}", " ").splitlines()
    for page in pages:
        expected = printed(page, command)
        assert shown[: len(expected)] == expected
    if command == FIRST:
        assert 10_000 < (tmp_path / "report.html").stat().st_size < 1_000_000

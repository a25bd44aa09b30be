"""`abers serve` under faults: what is answered is kept, and what is refused leaves no trace."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def attacked(form: str, folder: Path) -> str:
    """Attack in a process of its own, print the summary, and return it."""
    command = [sys.executable, "-m", "tests.connectors.serve.chaos", form, str(folder)]
    ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    print(ran.stdout)  # noqa: T201 - the summary is what the suite is for
    assert ran.returncode == 0
    return ran.stdout


@pytest.mark.once
def test_all_that_is_answered_is_kept(tmp_path: Path) -> None:
    """Ten kills, a full disk (where mounting is allowed), a second server, and clocks set back."""
    said = attacked("short", tmp_path)
    assert "10 kills" in said
    assert "1 disks full" in said or "1 disks that could not be mounted" in said
    assert "lost 0, duplicates 0, state equal, accounts close" in said


@pytest.mark.long
def test_all_that_is_answered_is_kept_for_long(tmp_path: Path) -> None:
    """Two hundred kills, and the other faults again and again."""
    said = attacked("long", tmp_path)
    assert "200 kills" in said
    assert "lost 0, duplicates 0, state equal, accounts close" in said

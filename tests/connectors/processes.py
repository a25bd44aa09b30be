"""Waiting for what a process has done, without taking the core that it works on."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["killed_after", "until"]

PAUSE = 0.005
"""Seconds between two checks."""


def until(process: subprocess.Popen[bytes], done: Callable[[], object]) -> bool:
    """Wait until a process has done something; False if it ended before."""
    while not done():
        try:
            process.wait(PAUSE)
        except subprocess.TimeoutExpired:
            continue
        return False
    return True


def killed_after(process: subprocess.Popen[bytes], output: Path, size: int) -> bool:
    """Kill a process as soon as a file has more bytes than that; False if it ended before."""
    if until(process, lambda: output.exists() and output.stat().st_size > size):
        process.kill()
    process.communicate(timeout=240)
    return process.returncode != 0

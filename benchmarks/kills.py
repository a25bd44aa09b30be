"""Kill a worker of a cluster while a program runs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

import psutil

__all__ = ["cluster_worker", "kill_once", "replay_worker"]

_SOME = 1_000_000  # bytes
_TURN = 0.01  # seconds between two attempts to find a worker
_WORKERS = {
    "dask": rb"spawn_main",
    "ray": rb"^ray::.*MapBatches",
    "spark": rb"CoarseGrainedExecutorBackend",
}
"""What the command line of a worker that works has."""


def kill_once(program: subprocess.Popen[Any], find: Callable[[], int | None]) -> bool:
    """Kill the first process that is found while a program runs; return whether there was one."""
    while (worker := find()) is None:
        with suppress(subprocess.TimeoutExpired):
            program.wait(_TURN)
            return False
    os.kill(worker, signal.SIGKILL)
    return True


def replay_worker(program: int, output: Path) -> int | None:
    """Return a worker of `abers replay`, once rows are written."""
    if not any(path.stat().st_size > _SOME for path in output.glob(".predictions*")):
        return None
    workers = [one for server in psutil.Process(program).children() for one in server.children()]
    return int(workers[0].pid) if workers else None


def cluster_worker(engine: str, program: int, output: Path) -> int | None:
    """Return a worker of a cluster that a program started, once something is written."""
    if not any(path.is_file() for path in output.rglob("*")):
        return None
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (path / "cmdline").read_bytes()
            if re.search(_WORKERS[engine], words) and _descends(path, program):
                return int(path.name)
    return None


def _descends(path: Path, program: int) -> bool:
    """Return whether a process descends from a program."""
    while int(path.name) > 1:
        if int(path.name) == program:
            return True
        parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
        path = path.with_name(parent)
    return False

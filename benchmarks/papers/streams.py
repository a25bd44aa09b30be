"""Calibrators on data streams: what they change, and what forgetting does.

A stream is a task for each delay of its labels, so that each is scored as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.papers import streams_page
from benchmarks.papers.paper import Paper
from benchmarks.papers.runner import Task
from benchmarks.papers.streams_classes import classified
from benchmarks.papers.streams_data import SETS
from benchmarks.papers.streams_numbers import regressed
from benchmarks.papers.streams_protection import ROWS, protected
from benchmarks.papers.streams_several import told_apart

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from benchmarks.papers.runner import Spec

    Work = Callable[[Path, Spec], Any]

__all__ = ["PAPER"]

DELAYS = 0, 1_000
PROTECTED_DELAYS = 0, 100, 1_000
_KINDS: dict[str, Work] = {
    "classes": classified,
    "protection": protected,
    "several": told_apart,
    "numbers": regressed,
}
_QUICK = 4_000  # rows


def tasks(*, quick: bool) -> list[Task]:
    """List the tasks."""
    if quick:
        kinds = ("classes", "Elec2"), ("protection", "Elec2"), ("several", "Insects")
        found = [_task(kind, data, 0, _QUICK) for kind, data in kinds]
        return [*found, _task("numbers", "Chick weights", 0)]
    found = [_task("classes", data, delay) for data in SETS for delay in DELAYS]
    found += [
        _task("protection", data, delay, ROWS.get(data))
        for data in SETS
        for delay in PROTECTED_DELAYS
    ]
    found += [_task("several", data, delay) for data in ("Insects", "MNIST") for delay in DELAYS]
    found += [_task("numbers", "Bike sharing", delay) for delay in DELAYS]
    return found + [_task("numbers", data, 0) for data in ("Trump approval", "Chick weights")]


def _task(kind: str, data: str, delay: int, rows: int | None = None) -> Task:
    spec = {"data": data, "delay": delay, "rows": rows}
    return Task(f"streams/{kind}/{data}/{delay}", _KINDS[kind], spec)


PAPER = Paper("streams", SETS, tasks, streams_page.page)

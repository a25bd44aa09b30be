"""Calibrators on data streams: what they change, and what forgetting does.

A stream is a task for each delay or law of delays of its labels, so that each is scored as a whole;
protected probabilities of two classes are a task for each scorer, under all laws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.papers import streams_page
from benchmarks.papers.paper import Paper
from benchmarks.papers.runner import Task
from benchmarks.papers.streams_classes import classified
from benchmarks.papers.streams_data import SETS
from benchmarks.papers.streams_numbers import regressed
from benchmarks.papers.streams_protected_classes import protected_classes
from benchmarks.papers.streams_protected_numbers import LATEST, protected_numbers
from benchmarks.papers.streams_protection import FROZEN, ONLINE, ROWS, protected
from benchmarks.papers.streams_several import told_apart
from benchmarks.papers.streams_steps import AT_ONCE, BY_LABEL, LAWS, LAWS_OF_NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from benchmarks.papers.runner import Spec

    Work = Callable[[Path, Spec], Any]

__all__ = ["PAPER"]

DELAYS = 0, 1_000
SCORERS = ONLINE, FROZEN
SEVERAL = "Insects", "MNIST"
NUMBERS = (*LATEST,)
_KINDS: dict[str, Work] = {
    "classes": classified,
    "several": told_apart,
    "protected classes": protected_classes,
    "numbers": regressed,
    "protected numbers": protected_numbers,
}
_QUICK = 4_000  # rows
QUICK = AT_ONCE, BY_LABEL


def tasks(*, quick: bool) -> list[Task]:
    """List the tasks."""
    if quick:
        found = [_task("classes", "Elec2", 0, _QUICK)]
        found += [_protection("Elec2", scorer, _QUICK, [*QUICK]) for scorer in SCORERS]
        found += [_task("several", "Insects", 0, _QUICK), _task("numbers", "Chick weights", 0)]
        found += [_under("protected classes", "Insects", law, _QUICK) for law in QUICK]
        return found + [_under("protected numbers", "Chick weights", law) for law in QUICK]
    found = [_task("classes", data, delay) for data in SETS for delay in DELAYS]
    found += [
        _protection(data, scorer, ROWS.get(data), [*LAWS]) for scorer in SCORERS for data in SETS
    ]
    found += [_task("several", data, delay) for data in SEVERAL for delay in DELAYS]
    found += [
        _under("protected classes", data, law, ROWS.get(data)) for law in LAWS for data in SEVERAL
    ]
    found += [_task("numbers", "Bike sharing", delay) for delay in DELAYS]
    found += [_task("numbers", data, 0) for data in ("Trump approval", "Chick weights")]
    return found + [
        _under("protected numbers", data, law) for law in LAWS_OF_NUMBERS for data in NUMBERS
    ]


def _protection(data: str, scorer: str, rows: int | None, laws: list[str]) -> Task:
    spec = {"data": data, "scorer": scorer, "rows": rows, "laws": laws}
    return Task(f"streams/protection/{data}/{scorer}", protected, spec)


def _task(kind: str, data: str, delay: int, rows: int | None = None) -> Task:
    spec = {"data": data, "delay": delay, "rows": rows}
    return Task(f"streams/{kind}/{data}/{delay}", _KINDS[kind], spec)


def _under(kind: str, data: str, law: str, rows: int | None = None) -> Task:
    spec = {"data": data, "law": law, "rows": rows}
    return Task(f"streams/{kind}/{data}/{law}", _KINDS[kind], spec)


PAPER = Paper("streams", SETS, tasks, streams_page.page)

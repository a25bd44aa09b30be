"""Long runs in small tasks that are kept, so that a run goes on where the last one ended.

Governing rule: a task is a function of its specification, seeds included; its answer is kept as
JSON beside the specification and the environment, and used again while the specification is equal.
"""

from __future__ import annotations

import json
import os
import platform
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from importlib.metadata import version
from multiprocessing import get_context
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from abers import backend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

__all__ = ["Answer", "Budget", "Spec", "Task", "kept", "run"]

Spec = dict[str, Any]
_PACKAGES = ("abers", "numpy", "scipy", "scikit-learn")


class Task(NamedTuple):
    """A piece of work: its name is the path of what is kept of it."""

    name: str
    work: Callable[[Path, Spec], Any]
    spec: Spec


class Answer(NamedTuple):
    """What is kept of a task."""

    spec: Spec
    environment: dict[str, str]
    seconds: float
    result: Any


class Budget(NamedTuple):
    """How much a run may take: processes, and minutes in which tasks are begun."""

    processes: int
    minutes: float


def environment() -> dict[str, str]:
    """Say what a result was computed with."""
    return {
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "backend": backend(),
        **{name: version(name) for name in _PACKAGES},
    }


def kept(cache: Path, tasks: Sequence[Task]) -> dict[str, Answer]:
    """Read the answers that are there, by the names of their tasks."""
    found = {}
    for task in tasks:
        path = _path(cache, task)
        if path.is_file():
            answer = Answer(**json.loads(path.read_text(encoding="utf-8")))
            if answer.spec == task.spec:
                found[task.name] = answer
    return found


def run(tasks: Sequence[Task], folder: Path, cache: Path, budget: Budget) -> dict[str, Answer]:
    """Run what has no answer yet, in the order given, and return all answers there are."""
    there = kept(cache, tasks)
    waiting = [task for task in tasks if task.name not in there]
    with _bar() as bar, _pool(budget.processes) as pool:
        shown = bar.add_task("papers", total=len(tasks), completed=len(tasks) - len(waiting))
        for task, answer in _answers(pool, waiting, folder, budget):
            path = _path(cache, task)
            path.parent.mkdir(parents=True, exist_ok=True)
            half = path.with_suffix(".part")
            half.write_text(json.dumps(answer._asdict(), indent=1) + "\n", encoding="utf-8")
            half.replace(path)
            bar.update(shown, advance=1, description=task.name)
    return kept(cache, tasks)


def _answers(
    pool: ProcessPoolExecutor, tasks: Sequence[Task], folder: Path, budget: Budget
) -> Iterator[tuple[Task, Answer]]:
    """Give tasks to the pool, one a process, until there is none or the time is over."""
    started, rest = perf_counter(), iter(tasks)
    busy: dict[Future[Answer], Task] = {}
    while True:
        while len(busy) < budget.processes and perf_counter() - started < 60.0 * budget.minutes:
            task = next(rest, None)
            if task is None:
                break
            busy[pool.submit(_do, task, folder)] = task
        if not busy:
            return
        for done in wait(busy, return_when=FIRST_COMPLETED).done:
            yield busy.pop(done), done.result()


def _do(task: Task, folder: Path) -> Answer:
    started = perf_counter()
    with threadpool_limits(1):
        result = task.work(folder, task.spec)
    return Answer(task.spec, environment(), round(perf_counter() - started, 3), result)


def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"))


def _bar() -> Progress:
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    return Progress(TextColumn("{task.description}"), *columns, console=console)


def _path(cache: Path, task: Task) -> Path:
    return cache / f"{task.name}.json"

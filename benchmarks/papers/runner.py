"""Long runs in small tasks that are kept, so that a run goes on where the last one ended.

A task is a function of its specification, seeds included. Its answer is a line of
the paper's file, after a line that says what it was computed with, and is used again while the
specification is equal; the file is part of the project, so runs on several machines add up.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from importlib.metadata import version
from multiprocessing import connection, get_context, parent_process
from string import digits
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from abers import backend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

__all__ = ["Answer", "Budget", "Left", "Spec", "Task", "kept", "left", "run"]

Spec = dict[str, Any]
_DIGITS = 6
_PACKAGES = ("abers", "numpy", "scipy", "scikit-learn")


class Task(NamedTuple):
    """A piece of work: its name is the path of what is kept of it."""

    name: str
    work: Callable[[Path, Spec], Any]
    spec: Spec


class Answer(NamedTuple):
    """Stored result of a task, with the inputs of its computation."""

    spec: Spec
    environment: dict[str, str]
    seconds: float
    result: Any


class Budget(NamedTuple):
    """How much a run may take: processes, and minutes in which tasks are begun."""

    processes: int
    minutes: float


class Left(NamedTuple):
    """Tasks of a kind without an answer, and the fewest seconds of those with one, or NaN."""

    tasks: int
    seconds: float


def _environment() -> dict[str, str]:
    """Return what a result is computed with."""
    return {
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "backend": backend(),
        **{name: version(name) for name in _PACKAGES},
    }


def kept(path: Path, tasks: Sequence[Task]) -> dict[str, Answer]:
    """Read the answers that are there, by the names of their tasks."""
    wanted = {task.name: task.spec for task in tasks}
    found: dict[str, Answer] = {}
    used: dict[str, str] = {}
    for line in _lines(path):
        if "environment" in line:
            used = line["environment"]
        elif line["spec"] == wanted.get(line["task"]):
            found[line["task"]] = Answer(line["spec"], used, line["seconds"], line["result"])
    return {task.name: found[task.name] for task in tasks if task.name in found}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read a file with a last line that may be torn."""
    if path.is_file():
        with path.open(encoding="utf-8") as file:
            yield from (json.loads(line) for line in file if line.endswith("\n"))


def left(tasks: Sequence[Task], answers: Mapping[str, Answer]) -> dict[str, Left]:
    """Count what is left of each kind of task: a name without its last number, which is the split.

    Other work makes a task slower and never faster, so the fewest seconds say what a core needs.
    """
    fewest: dict[str, float] = {}
    for name, answer in answers.items():
        fewest[_kind(name)] = min(answer.seconds, fewest.get(_kind(name), math.inf))
    counts = Counter(_kind(task.name) for task in tasks if task.name not in answers)
    return {kind: Left(count, fewest.get(kind, math.nan)) for kind, count in counts.items()}


def _kind(name: str) -> str:
    return name.rstrip(digits)


def _waiting(tasks: Sequence[Task], there: Mapping[str, Answer]) -> list[Task]:
    """List what has no answer: kinds never measured first, then those that are complete soonest."""
    rest = left(tasks, there)

    def cost(task: Task) -> float:
        of = rest[_kind(task.name)]
        return 0.0 if math.isnan(of.seconds) else of.tasks * of.seconds

    return sorted((task for task in tasks if task.name not in there), key=cost)


def run(tasks: Sequence[Task], folder: Path, path: Path, budget: Budget) -> None:
    """Run what has no answer yet, and keep each answer as it comes."""
    there = kept(path, tasks)
    waiting = _waiting(tasks, there)
    if not waiting:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    environments = [line["environment"] for line in _lines(path) if "environment" in line]
    used = environments[-1] if environments else None
    with _bar() as bar, _pool(budget.processes) as pool, _opened(path) as file:
        shown = bar.add_task(path.stem, total=len(tasks), completed=len(there))
        for task, answer in _answers(pool, waiting, folder, budget):
            rest = answer._asdict()
            environment = rest.pop("environment")
            if environment != used:
                file.write(_line({"environment": environment}))
                used = environment
            file.write(_line({"task": task.name, **rest}))
            file.flush()
            bar.update(shown, advance=1, description=task.name)


def _opened(path: Path) -> TextIO:
    """Open the file where its last whole line ends."""
    file = path.open("a+", encoding="utf-8")
    file.seek(0)
    text = file.read()
    file.truncate(len(text[: text.rfind("\n") + 1].encode()))
    return file


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n"


def _answers(
    pool: ProcessPoolExecutor, tasks: Sequence[Task], folder: Path, budget: Budget
) -> Iterator[tuple[Task, Answer]]:
    """Return tasks to the pool, one a process, until all are done or the time is over."""
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
        result = _rounded(task.work(folder, task.spec))
    return Answer(task.spec, _environment(), round(perf_counter() - started, 3), result)


def _rounded(result: Any) -> Any:  # noqa: ANN401 - JSON
    """Round to as many digits as other machines agree on; no mean of splits is as sure."""
    if isinstance(result, float):
        return float(f"{result:.{_DIGITS}g}")
    if isinstance(result, dict):
        return {key: _rounded(each) for key, each in result.items()}
    return [_rounded(each) for each in result] if isinstance(result, list) else result


def _pool(processes: int) -> ProcessPoolExecutor:
    context = get_context("spawn")
    return ProcessPoolExecutor(processes, mp_context=context, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """End when the run does, even if it was killed in the middle of a long task."""
    parent = parent_process()
    assert parent is not None  # noqa: S101 - this is called in a process of the pool

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _bar() -> Progress:
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    return Progress(TextColumn("{task.description}"), *columns, console=console)

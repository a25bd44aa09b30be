"""The runner of the papers' tasks; its workers import this module, which imports no paper."""

from __future__ import annotations

import json
import math
import os
import select
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from benchmarks.papers.runner import Budget, Spec, Task, kept, left, run

if TYPE_CHECKING:
    from pathlib import Path


def counted(folder: Path, spec: Spec) -> int:
    """Add a mark to a folder, and count the marks."""
    with (folder / "marks").open("a") as file:
        file.write("x")
    return len((folder / "marks").read_text()) * int(spec["factor"])


def test_runs_go_on_where_they_ended(tmp_path: Path) -> None:
    """A stored result is not computed again, unless the specification differs."""
    budget, path = Budget(1, math.inf), tmp_path / "c" / "a.jsonl"
    for factor, result in ((1, 1), (1, 1), (10, 20)):
        tasks = [Task("a/b", counted, {"factor": factor})]
        run(tasks, tmp_path, path, budget)
        answer = kept(path, tasks)["a/b"]
        assert answer.result == result
        assert answer.environment["abers"]
    tasks = [Task("a/c", counted, {"factor": 1})]
    run(tasks, tmp_path, path, Budget(1, 0.0))
    assert not kept(path, tasks)


def test_a_torn_line_is_computed_again(tmp_path: Path) -> None:
    """A run that was killed while it wrote leaves half a line, which the next one replaces."""
    budget, path = Budget(1, math.inf), tmp_path / "a.jsonl"
    tasks = [Task(f"a/{name}", counted, {"factor": 1}) for name in "bc"]
    run(tasks, tmp_path, path, budget)
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert [*kept(path, tasks)] == ["a/b"]
    run(tasks, tmp_path, path, budget)
    assert [answer.result for answer in kept(path, tasks).values()] == [1, 3]
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line.get("task") for line in lines] == [None, "a/b", "a/c"]


def stuck(folder: Path, _: Spec) -> None:
    """Report the worker, and never end."""
    (folder / "worker").write_text(str(os.getpid()))
    (folder / "begun").open("w").close()  # a reader is waiting
    (folder / "never").open()


def test_workers_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    """No process goes on with a task that nobody waits for."""
    for name in ("begun", "never"):
        os.mkfifo(tmp_path / name)
    tasks, budget = [Task("a/b", stuck, {})], Budget(1, math.inf)
    context = get_context("spawn")
    started = context.Process(target=run, args=(tasks, tmp_path, tmp_path / "a.jsonl", budget))
    started.start()
    (tmp_path / "begun").open().close()
    worker = os.pidfd_open(int((tmp_path / "worker").read_text()))
    started.kill()
    assert select.select([worker], [], [], 60.0)[0]


def test_what_is_left_is_counted_in_seconds(tmp_path: Path) -> None:
    """Each kind of task has its number left, and the fewest seconds of its answers, if any."""
    path = tmp_path / "a.jsonl"
    lines: list[dict[str, Any]] = [{"environment": {}}]
    for name, seconds in (("a/b/0", 1.0), ("a/b/1", 2.0)):
        lines.append({"task": name, "spec": {}, "seconds": seconds, "result": 0})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    tasks = [Task(name, counted, {}) for name in ("a/b/0", "a/b/1", "a/b/2", "a/b/13", "a/c/0")]
    rest = left(tasks, kept(path, tasks))
    assert rest["a/b/"] == (2, 1.0)
    assert rest["a/c/"].tasks == 1
    assert math.isnan(rest["a/c/"].seconds)
    assert left(tasks[:2], kept(path, tasks)) == {}


def test_kinds_that_are_complete_soonest_come_first(tmp_path: Path) -> None:
    """A run begins with tasks of unknown duration, then takes kinds by the time they have left."""
    path = tmp_path / "a.jsonl"
    budget, tasks = Budget(1, math.inf), [Task(f"a/{n}", counted, {"factor": 1}) for n in _NAMES]
    lines: list[dict[str, Any]] = [{"environment": {}}]
    for name, seconds in (("slow/0", 9.0), ("quick/0", 4.0)):
        lines.append({"task": f"a/{name}", "spec": {"factor": 1}, "seconds": seconds, "result": 0})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run(tasks, tmp_path, path, budget)
    done = [
        line["task"] for line in map(json.loads, path.read_text().splitlines()) if "task" in line
    ]
    assert done[2:] == [
        f"a/{name}" for name in ("new/0", "new/1", "slow/1", "quick/1", "quick/2", "quick/3")
    ]


_NAMES = "quick/0", "slow/0", "quick/1", "slow/1", "new/0", "quick/2", "quick/3", "new/1"

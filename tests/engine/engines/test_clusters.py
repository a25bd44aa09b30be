"""Real local clusters of two workers, of which one is killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest
from tests.engine.engines.histories import (
    KINDS,
    add_rows,
    by_one_processor,
    history,
    read_result,
    write_files,
)

from abers.stream import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
PATIENCE = 600.0  # seconds; an executor of Spark takes minutes on a busy machine
ROWS, MODELS = 200_000, 40


def kill_once(program: subprocess.Popen[str], find: Callable[[], int | None]) -> bool:
    """Kill the first process that is found while a program runs; return whether there was one."""
    while (worker := find()) is None:
        with suppress(subprocess.TimeoutExpired):
            program.wait(0.01)
            return False
    os.kill(worker, signal.SIGKILL)
    return True


def worker_with_a_part(output: Path) -> int | None:
    """Return the process that writes a part after the first one, as its hidden name says."""
    folder = output / "predictions"
    if not [*folder.glob("part-*.parquet")]:
        return None
    names = [path.name.split(".") for path in folder.glob(".part-*")]
    return int(names[0][3]) if names else None


def executor_of(program: int, output: Path) -> int | None:
    """Return an executor of Spark, once one has begun to write."""
    if not [*output.glob("_temporary/**/part-*")]:
        return None
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if b"CoarseGrainedExecutorBackend\0" in path.read_bytes() and descends(path, program):
                return int(path.parent.name)
    return None


def descends(path: Path, program: int) -> bool:
    """Return whether a process descends from a program."""
    while (number := int(path.parent.name)) > 1:
        if number == program:
            return True
        parent = path.with_name("stat").read_text().rpartition(")")[2].split()[1]
        path = Path("/proc", parent, "cmdline")
    return False


def run_and_kill(engine: str, data: Path, output: Path, find: Callable[[int], int | None]) -> None:
    """Process a history, kill a worker on the way, and require success."""
    words = [sys.executable, "-W", "ignore", "-m", "benchmarks.clusters", engine]
    log = output.with_suffix(".log")
    with (
        log.open("w") as file,
        subprocess.Popen(
            [*words, data, output], cwd=ROOT, stdout=file, stderr=file, text=True
        ) as program,
    ):
        killed = kill_once(program, lambda: find(program.pid))
        status = program.wait(PATIENCE)
    assert status == 0, log.read_text()[-5_000:]
    assert killed


def in_order(found: dict[str, dict[str, list[Any]]]) -> dict[str, dict[str, list[Any]]]:
    """Return rows sorted within each model: a data frame has no order."""
    return {kind: {name: sorted(rows) for name, rows in one.items()} for kind, one in found.items()}


@pytest.mark.long
@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_a_killed_worker_changes_nothing(engine: str, tmp_path: Path) -> None:
    """With a worker killed in the middle all outputs are those of one processor, to the bit."""
    table = history(ROWS, MODELS)
    write_files(table, tmp_path / "data", 4)
    output = tmp_path / "output"
    run_and_kill(engine, tmp_path / "data", output, lambda _: worker_with_a_part(output))
    assert read_result(output) == by_one_processor(table, Settings())
    names = {path.name for path in output.rglob("*")}
    assert not [name for name in names if name.startswith(".")]
    assert "_SUCCESS" in names
    assert "_split" not in names


@pytest.mark.long
def test_a_killed_executor_changes_nothing(tmp_path: Path) -> None:
    """With an executor killed in the middle all outputs are those of one processor, to the bit."""
    table = history(ROWS, MODELS)
    write_files(table, tmp_path / "data", 4)
    output = tmp_path / "output"
    run_and_kill("spark", tmp_path / "data", output, lambda pid: executor_of(pid, output))
    found: dict[str, dict[str, list[Any]]] = {kind: {} for kind in KINDS}
    rows = ds.dataset(output, partitioning="hive").to_table().to_pylist()
    for kind in KINDS:
        name = kind.removesuffix("s")
        add_rows(found[kind], [row[name] for row in rows if row["kind"] == name])
    assert in_order(found) == in_order(by_one_processor(table, Settings()))

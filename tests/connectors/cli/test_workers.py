"""`abers replay --workers`, as a person meets it."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.conftest import COMMAND
from tests.connectors.processes import until
from tests.connectors.replay.test_parallel_run import rounded

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.conftest import Ran

    Invoke = Callable[..., Ran]

WORKERS = 2


def write_history(path: Path, rows: int = 1_500, models: int = 5) -> None:
    """Write a file of scores and labels of several models."""
    draw = random.Random(3)  # noqa: S311 - not a secret
    lines = ["id,time,model,score,label"]
    for row in range(rows):
        score = draw.random()
        label = int(draw.random() < score**2)
        lines.append(f"a{row},{row * 1000},model {draw.randrange(models)},{score!r},{label}")
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "jsonl.gz", "parquet"])
def test_several_workers_write_what_one_process_writes(
    invoke: Invoke, tmp_path: Path, suffix: str
) -> None:
    """Predictions, table and report are those of one process; the table says who did what."""
    write_history(tmp_path / "in.csv")
    found = []
    for count in (1, WORKERS):
        made = [f"out{count}.{suffix}", f"report{count}.json"]
        ran = invoke(
            *("replay", "in.csv", "--delay", "100", "--json", f"--workers={count}"),
            *("--output", made[0], "--report", made[1]),
        )
        assert ran.code == 0, ran.err
        table = json.loads(ran.out)
        del table["events_per_second"]
        workers = table.pop("workers")
        report = json.loads((tmp_path / made[1]).read_text("utf-8"))
        # Points of evidence and of experts over time are where batches end.
        for name in ("evidence", "experts_over_time"):
            for one in (report, *report["models"]):
                del one[name]
        found.append((_content(tmp_path / made[0]), rounded(table), rounded(report)))
        assert len(workers) == (0 if count == 1 else WORKERS)
        assert count == 1 or sum(one["events"] for one in workers) == 3_000
    assert found[0] == found[1]


def _content(path: Path) -> Any:  # noqa: ANN401 - rows or bytes
    if path.suffix != ".parquet":
        return path.read_bytes()
    import pyarrow.parquet as pq  # noqa: PLC0415 - only here

    return pq.read_table(path).to_pylist()


def test_the_table_says_what_each_worker_did(invoke: Invoke, tmp_path: Path) -> None:
    """A person reads the models and the time of each worker, and why one has nothing to do."""
    write_history(tmp_path / "in.csv", models=1)
    ran = invoke("replay", "in.csv", "--workers", "2")
    assert ran.code == 0, ran.err
    assert "Worker 1: 1 model, 3,000 events, " in ran.err
    assert "Worker 2: 0 models, 0 events, " in ran.err
    assert "There are fewer models than workers, and a model is the work of one." in ran.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["in.csv", "--speed", "10x"], "--speed does not go with --workers: no process has all"),
        (["in.csv", "--live"], "--live does not go with --workers: no process has all models"),
        (["pipe.csv"], "--workers reads the stream again if a worker"),
        (["in.csv", "--workers", "0"], "--workers: '0' is not a whole number from 1 to 256"),
    ],
    ids=["speed", "live", "pipe", "none"],
)
def test_what_does_not_go_with_workers(
    invoke: Invoke, tmp_path: Path, options: list[str], message: str
) -> None:
    """Options that need all models in one process are refused, and so is a pipe."""
    write_history(tmp_path / "in.csv", rows=10)
    os.mkfifo(tmp_path / "pipe.csv")
    ran = invoke("replay", "--workers", "2", *options)
    assert (ran.code, message in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    "options",
    [
        [],
        pytest.param(["--compare=ivap,platt"], marks=pytest.mark.long),
        pytest.param(["--delays=1,100"], marks=pytest.mark.long),
    ],
    ids=str,
)
def test_the_command_says_which_worker_ended(tmp_path: Path, options: list[str]) -> None:
    """Whatever is replayed with workers, a person reads that one ended, and gets all the same."""
    write_history(tmp_path / "in.csv", rows=60_000)
    with subprocess.Popen(
        [COMMAND, "replay", "in.csv", "--workers", "2", *options],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert until(process, lambda: len(workers_of(process.pid)) == WORKERS)
        os.kill(max(workers_of(process.pid)), signal.SIGKILL)
        _, said = process.communicate()
    assert process.returncode == 0, said
    assert b"was ended by SIGKILL, perhaps for lack of memory; its shard is done again." in said


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_workers_end_with_the_command(tmp_path: Path, how: signal.Signals) -> None:
    """However the command ends, its workers do, and no partial output is left under its name."""
    pipe = tmp_path / "out.jsonl"
    write_history(tmp_path / "in.csv", rows=60_000)
    os.mkfifo(pipe)  # the command waits in it, once its first round is written
    with subprocess.Popen(
        [COMMAND, "replay", "in.csv", "--workers", "2", "--output", str(pipe)],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
    ) as process:
        with pipe.open("rb") as reader:
            assert reader.read(1) == b"{"
            workers = workers_of(process.pid)
            assert len(workers) == WORKERS
            ends = [os.pidfd_open(worker) for worker in workers]
            process.send_signal(how)
            process.wait(30)
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert "Traceback" not in said, said
    for end in ends:
        assert select.select([end], [], [], 30)[0], "a worker is left"
        os.close(end)


def workers_of(command: int) -> list[int]:
    """Return the workers of a command, which a server that the command has started forks."""
    return [worker for server in children(command) for worker in children(server)]


def children(parent: int) -> list[int]:
    """Return the processes that a process has started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[1]) == parent:
            found.append(int(status.parent.name))
    return found

"""A history of many models by each engine: `python -m benchmarks.scale [--events N] [--write]`.

It makes a history of interleaved models in Parquet files, processes it in one process and on local
clusters of two workers, and once more with a worker killed in the middle. The predictions must be
equal to the bit. With --write the table goes into docs/scale.md. It needs `make engines` and Java.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.kills import cluster_worker, kill_once, replay_worker
from benchmarks.machine import description
from benchmarks.rivals import ROOT
from benchmarks.timing import NOISE

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = ROOT / "docs" / "scale.md"
BEGIN, END = "<!-- engines: begin -->", "<!-- engines: end -->"
MODELS, FILES = 200, 16
START = 1_735_689_600_000  # the start of 2025, in milliseconds
STEP, DELAY = 100, 3_600_000  # milliseconds between observations, and until the label
_ADOPT = 36  # PR_SET_CHILD_SUBREAPER
_MICRO = 1e6
_FEW = 2_000  # events of a run that is nearly all start-up
_SAMPLE = 0.2  # seconds
_HEAD = [
    "engine",
    "workers",
    "events a second",
    "CPU an event",
    "start-up",
    "a killed worker costs",
]


class Contender(NamedTuple):
    """A way to process the history: commands, and how a worker is found that can be killed."""

    name: str
    workers: int
    command: Callable[[Path, Path], list[str]]
    predictions: Callable[[Path], pa.Table]
    find: Callable[[int, Path], int | None] | None = None


class Cost(NamedTuple):
    """Seconds of a run: until it could begin, of the work, and of all processors."""

    up: float
    work: float
    cpu: float


def _replayed(workers: int, data: Path, output: Path) -> list[str]:
    output.mkdir()
    config = output / "abers.toml"
    config.write_text(
        f'[task]\nscores = "any"\n[input]\nobservations = "{data}"\n[output]\n'
        f'predictions = "{output}/predictions.parquet"\noutcomes = "{output}/outcomes.parquet"\n'
    )
    return [
        str(Path(sys.executable).with_name("abers")),
        "replay",
        str(config),
        f"--workers={workers}",
    ]


def _cluster(engine: str, *places: Path) -> list[str]:
    words = [sys.executable, "-W", "ignore", "-m", "benchmarks.clusters", engine]
    return [*words, *map(str, places)]


def _in_file(output: Path) -> pa.Table:
    return pq.read_table(output / "predictions.parquet")


def _in_files(output: Path) -> pa.Table:
    written = ds.dataset(output, format="parquet")
    return written.to_table(filter=ds.field("kind") == "prediction")


CONTENDERS = [
    Contender("`abers replay`", 1, partial(_replayed, 1), _in_file),
    Contender("`abers replay --workers 2`", 2, partial(_replayed, 2), _in_file, replay_worker),
    *(
        Contender(
            engine.title(),
            2,
            partial(_cluster, engine),
            _in_files,
            partial(cluster_worker, engine),
        )
        for engine in ("dask", "ray", "spark")
    ),
]


def write_history(folder: Path, events: int) -> None:
    """Write observations of models that take turns at random, and their labels an hour later."""
    rng = np.random.default_rng(24)
    rows = events // 2
    scores, times = rng.random(rows), START + STEP * np.arange(rows)
    labels = (rng.random(rows) < scores**2).astype(np.int64)
    models = rng.integers(0, MODELS, rows)
    order = np.argsort(np.concatenate([times, times + DELAY]), kind="stable")
    folder.mkdir()
    for number, part in enumerate(np.array_split(order, FILES)):
        own, late = part % rows, part >= rows
        table = {
            "id": [f"{row:016x}" for row in own.tolist()],
            "time": times[own] + DELAY * late,
            "model": [f"model-{model}" for model in models[own].tolist()],
            "score": pa.array(scores[own], mask=late),
            "label": pa.array(labels[own], mask=~late),
        }
        pq.write_table(pa.table(table), folder / f"part-{number:02}.parquet")


def measure(words: list[str], kill: Callable[[int], int | None] | None = None) -> Cost:
    """Run a command, and kill one of the processes that it starts if asked to."""
    began = perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log, ProcessorTime() as cpu:
        with subprocess.Popen(  # noqa: S603 - our own commands
            words, cwd=ROOT, stdout=out, stderr=log
        ) as program:
            killed = kill is None or kill_once(program, partial(kill, program.pid))
            program.wait()
        whole = perf_counter() - began
        out.seek(0)
        log.seek(0)
        if program.returncode or not killed:
            sys.exit(f"{' '.join(words)} failed, or ended before the kill:\n{log.read().decode()}")
        said: dict[str, float] = {}
        for line in out.read().decode().splitlines():
            said |= json.loads(line) if line.startswith("{") else {}
    return Cost(said.get("up", whole), said.get("done", whole), cpu.total)


class ProcessorTime:
    """Processor time of all descendants, sampled: Ray's processes are not waited for by any."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[int, float], float] = {}
        self._stop = Event()
        self._thread = Thread(target=self._watch)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, and wait for what the command left, which this process adopted."""
        with suppress(ChildProcessError):
            while True:
                os.wait()
        self._stop.set()
        self._thread.join()

    @property
    def total(self) -> float:
        """Seconds so far."""
        return sum(self._seconds.values())

    def _watch(self) -> None:
        own = psutil.Process()
        while not self._stop.wait(_SAMPLE):
            for child in own.children(recursive=True):
                with suppress(psutil.Error):
                    times = child.cpu_times()
                    self._seconds[child.pid, child.create_time()] = times.user + times.system


def _sorted(table: pa.Table) -> pa.Table:
    columns = ["model", "id", "time", "p0", "p1", "p", "n_labels"]
    return table.select(columns).sort_by([("model", "ascending"), ("id", "ascending")])


def _row(one: Contender, events: int, empty: Cost, plain: Cost, killed: Cost | None) -> list[str]:
    lost = "-"
    if killed is not None:
        lost = f"{killed.work - plain.work:+.1f} s, {killed.cpu - plain.cpu:+.1f} s of CPU"
    return [
        one.name,
        str(one.workers),
        f"{events / plain.work:,.0f}",
        f"{(plain.cpu - empty.cpu) / events * _MICRO:.2f} µs",
        f"{empty.up:.1f} s, {empty.cpu:.1f} s of CPU",
        lost,
    ]


def _measured(one: Contender, data: Path, folder: Path, events: int) -> tuple[list[str], pa.Table]:
    sys.stderr.write(f"scale: {one.name} …\n")
    empty = measure(one.command(data.with_name("few"), folder / "few"))
    plain = measure(one.command(data, folder / "plain"))
    found, killed = _sorted(one.predictions(folder / "plain")), None
    if one.find is not None:
        output = folder / "killed"
        find = one.find
        killed = measure(one.command(data, output), lambda pid: find(pid, output))
        if not _sorted(one.predictions(output)).equals(found):
            sys.exit(f"{one.name}: with a worker killed the predictions differ")
    return _row(one, events, empty, plain, killed), found


def main(words: list[str] | None = None) -> None:
    """Measure, print, and write into the page if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--events", type=int, default=8_000_000)
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    parser.add_argument("--only", nargs="+", help="words of the names of the rows")
    arguments = parser.parse_args(words)
    # Processes that outlive the command become children, and their time counts.
    ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    NOISE.listen()
    rows, first = [], None
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data")
        write_history(data, arguments.events)
        write_history(data.with_name("few"), _FEW)
        for number, one in enumerate(CONTENDERS):
            if arguments.only and not any(word in one.name for word in arguments.only):
                continue
            Path(folder, str(number)).mkdir()
            row, found = _measured(one, data, Path(folder, str(number)), arguments.events)
            rows.append(row)
            if first is not None and not found.equals(first):
                sys.exit(f"{one.name}: the predictions differ from those of {rows[0][0]}")
            first = found
    lines = [f"| {' | '.join(cells)} |" for cells in [_HEAD, ["---"] * len(_HEAD), *rows]]
    text = (
        f"{arguments.events:,} events of {MODELS} models, all predictions equal to the bit:\n\n"
        + "\n".join(lines)
        + f"\n\n{description()}"
    )
    sys.stdout.write(f"{text}\n")
    if arguments.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{text.strip()}\n{END}{after}")


if __name__ == "__main__":
    main()

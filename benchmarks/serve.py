"""`abers serve` under load, compared with a bare server: latency, and processor time of a request.

A compiled client runs beside the server on the same cores, so processor time of the server is what
counts; half of the requests are predictions, half their labels. Numbers are those of the second
half of each run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.page import Key, Section, table
from benchmarks.rivals import ROOT, compiler
from benchmarks.timing import NOISE, Spread, digits, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.plan import Plan

CLIENT = Path(__file__).with_name("serve_client.cpp")
FLAGS = ("-O2", "-std=c++20", "-pthread")
LOADS = (
    (200, 1),
    (1_000, 1),
    (0, 1),
    (200, 100),
    (0, 100),
)  # requests a second (0: all it can), events in each
CONNECTIONS = 64
ABERS, BARE = "`abers serve`", "bare uvicorn"
EVENT, RATE = "µs of CPU an event", "events a second"
_SECONDS, _ROUNDS = 5.0, 3  # of a load
_SYNCS = 50
_TICK = os.sysconf("SC_CLK_TCK")
_MICRO = 1e6


class Load(NamedTuple):
    """What a run measured."""

    rate: float  # requests a second
    median: float  # milliseconds
    worst: float  # of 99 %
    processor: float  # seconds of the server, a request


def figure(rate: int, events: int) -> str:
    """Name the processor time of an event under a load."""
    return f"{EVENT}, {rate or 'all'} x {events}"


def http(plan: Plan) -> Section:
    """Measure all loads, each on a new state; without a compiler there is no client."""
    title, cxx = "HTTP", compiler()
    if cxx is None:
        return Section(title, "Not measured: no C++ compiler for the client.", {})
    whole = plan.rounds > _ROUNDS
    values: dict[Key, Spread] = {}
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        synced = _milliseconds_of_a_sync(Path(folder, "file"))
        client = Path(folder, "client")
        subprocess.run([cxx, *FLAGS, str(CLIENT), "-o", str(client)], check=True)  # noqa: S603
        servers: dict[str, Callable[[], list[str]]] = {
            ABERS: partial(_abers, folder),
            BARE: lambda: [sys.executable, "-m", "benchmarks.bare_server"],
        }
        found: dict[tuple[str, int, int], list[Load]] = {}
        for _ in range(_ROUNDS if whole else 1):
            NOISE.listen()
            for rate, events in LOADS:
                for name, command in servers.items():
                    load = (client, rate, events, _SECONDS if whole else 1.0)
                    one = measured(command(), *load)
                    found.setdefault((name, rate, events), []).append(one)
    for (name, rate, events), loads in found.items():
        costs = Spread.of([_MICRO * one.processor / events for one in loads])
        reached = Spread.of([one.rate * events for one in loads])
        values[figure(rate, events), name, events] = costs
        rows.append(
            [
                f"{rate or 'all'} x {events}, {name}",
                reached,
                Spread.of([one.median for one in loads]),
                Spread.of([one.worst for one in loads]),
                costs,
            ]
        )
    body = (
        f"{CONNECTIONS} connections, half of the requests predictions and half their labels, for"
        " some seconds. *Bare uvicorn* decodes the same requests and answers with fixed"
        " predictions; abers writes each event to its state before it answers, on a disk that"
        f" syncs in {digits(synced)} ms. Client and server share the machine.\n\n"
        + table(["requests a second x events", RATE, "median, ms", "99 %, ms", EVENT], rows)
    )
    return Section(title, body, values)


def _milliseconds_of_a_sync(path: Path) -> float:
    """Measure how long the disk takes to have a few bytes; the median."""
    times = []
    with path.open("wb", 0) as file:
        for _ in range(_SYNCS):
            file.write(bytes(100))
            times.append(1e3 * seconds(lambda: os.fsync(file.fileno())))
    return Spread.of(times).median


def _abers(folder: str) -> list[str]:
    """Return the command of a server with a new state."""
    data = tempfile.mkdtemp(dir=folder)
    return [sys.executable, "-m", "abers_connectors", "serve", "--data", data, "--port", "0"]


def measured(command: list[str], client: Path, rate: float, events: int, length: float) -> Load:
    """Run a server, and load it for so many seconds."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as server:  # noqa: S603
        said = iter(server.stderr or ())
        port = next(said).split(";")[0].rpartition(":")[2].strip().strip("/")
        next(said)  # it is ready
        try:
            words = [client, "127.0.0.1", port, CONNECTIONS, rate, events, length]
            load = subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, text=True)  # noqa: S603
            time.sleep(length / 2)
            before = _processor(server.pid)
            out, _ = load.communicate()
            spent = _processor(server.pid) - before
        finally:
            server.terminate()
    count, median, worst = map(float, out.split())
    return Load(2 * count / length, median, worst, spent / max(count, 1))


def _processor(process: int) -> float:
    """Return the processor time of a process in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / _TICK

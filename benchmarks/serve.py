"""`abers serve` under load: latency, and processor time of a request and of an event.

A compiled client runs beside the server on the same cores, so processor time of the server is what
counts; half of the requests are predictions, half their labels. Run as `python -m benchmarks.serve
[SECONDS]`; prints a table of Markdown. Numbers are those of the second half of each run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.page import table
from benchmarks.rivals import compiler

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT = Path(__file__).with_name("serve_client.cpp")
SECONDS = 10.0
FLAGS = ("-O2", "-std=c++20", "-pthread")
LOADS = ((200, 1), (1_000, 1), (0, 1), (200, 100), (0, 100))  # requests a second, events in each
CONNECTIONS = 64
_TICK = os.sysconf("SC_CLK_TCK")


class Load(NamedTuple):
    """What a run measured."""

    rate: float  # requests a second
    median: float  # milliseconds
    worst: float  # of 99 %
    processor: float  # milliseconds of the server, a request


def main(seconds: float) -> None:
    """Measure all loads, each on a new state, and print them."""
    with tempfile.TemporaryDirectory() as folder:
        client = Path(folder) / "client"
        cxx = compiler()
        if cxx is None:
            sys.exit("a C++ compiler is missing; install g++")
        subprocess.run([cxx, *FLAGS, str(CLIENT), "-o", str(client)], check=True)  # noqa: S603
        print(table(HEAD, _rows(Path(folder), client, seconds)))  # noqa: T201 - a program


HEAD = ("requests/s x events", "reached", "p50, p99 ms", "CPU a request, ms", "CPU an event, µs")


def _rows(folder: Path, client: Path, seconds: float) -> Iterator[list[object]]:
    for number, (rate, events) in enumerate(LOADS):
        found = measured(folder / f"state-{number}", client, rate, events, seconds)
        yield [
            f"{rate or 'all'} x {events}",
            f"{found.rate:,.0f}",
            f"{found.median:.1f}, {found.worst:.1f}",
            f"{found.processor:.3f}",
            f"{1e3 * found.processor / events:.1f}",
        ]


def measured(data: Path, client: Path, rate: float, events: int, seconds: float) -> Load:
    """Run a server with a new state, and load it for so many seconds."""
    command = [sys.executable, "-m", "abers_connectors", "serve"]
    command += ["--data", str(data), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603
        said = iter(server.stderr or ())
        port = next(said).split(";")[0].rpartition(":")[2].strip("/")
        next(said)  # it is ready
        try:
            words = [client, "127.0.0.1", port, CONNECTIONS, rate, events, seconds]
            load = subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, text=True)  # noqa: S603
            time.sleep(seconds / 2)
            before = _processor(server.pid)
            out, _ = load.communicate()
            spent = _processor(server.pid) - before
        finally:
            server.terminate()
    count, median, worst = map(float, out.split())
    return Load(2 * count / seconds, median, worst, 1e3 * spent / max(count, 1))


def _processor(process: int) -> float:
    """Return the processor time of a process in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / _TICK


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)

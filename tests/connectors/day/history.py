"""The metrics of a day, and the alerts that a real Prometheus finds in them by the rules.

All processes are scraped again and again, each time with patience. A round of scrapes stands for a
minute: so a busy machine makes the day longer, and raises no alert. At the end the samples become
the storage of a Prometheus, which evaluates the expressions of the rules at each minute.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from ruamel.yaml import YAML
from tests.connectors.day.application import scraped
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.soak.bucket import free_port

from abers_connectors.metrics.alert_rules import alert_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["MINUTE", "Firing", "History", "firing"]

MINUTE = 60
"""Seconds for which a round of scrapes stands."""

_JOB = "abers"
_LOOKBACK = 90  # seconds: after two rounds without it a series is gone
_DAYS = 10 * 86_400  # seconds of the past where the day lies
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Samples:
    """Samples of rounds of scrapes."""

    def __init__(self) -> None:
        # By name and labels: round and value.
        self._series: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)

    def add(self, number: int, name: str, labels: Mapping[str, str], value: float) -> None:
        """Add a sample of a round."""
        written = ",".join(f"{key}={json.dumps(one)}" for key, one in sorted(labels.items()))
        self._series[name, written].append((number, value))

    def write(self, path: Path, began: int) -> None:
        """Write all in OpenMetrics, the first round at a time in seconds since 1970."""
        with path.open("w") as out:
            for (name, labels), samples in sorted(self._series.items()):
                out.writelines(
                    f"{name}{{{labels}}} {value!r} {began + number * MINUTE}\n"
                    for number, value in samples
                )
            out.write("# EOF\n")


class Firing(NamedTuple):
    """An alert that fired from a round to another."""

    alert: str
    labels: Mapping[str, str]
    begin: int
    end: int

    def __str__(self) -> str:
        """Return a line."""
        about = ", ".join(self.labels.get(key, "") for key in ("process", "model", "view"))
        return f"{self.alert} ({about}) in rounds {self.begin} to {self.end}"


class History:
    """Scrapes processes in a thread.

    Parameters
    ----------
    ports
        Port of each process.
    step
        Seconds between two rounds, at least.

    Attributes
    ----------
    samples
        What was scraped, as far as the rules ask for it.
    rounds
        Number of rounds.
    most
        The most memory that each process took, in bytes.
    """

    def __init__(self, ports: Mapping[str, int], step: float) -> None:
        """Start."""
        self.samples, self.rounds = Samples(), 0
        self.most: dict[str, float] = defaultdict(float)
        self._ports, self._step = ports, step
        self._asked = {*re.findall(r"[a-z][a-z0-9_]*", alert_rules())}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def await_rounds(self, count: int) -> None:
        """Wait for so many rounds more."""
        goal = self.rounds + count
        while self.rounds < goal:
            assert self._thread.is_alive()
            time.sleep(self._step / 4)

    def close(self) -> None:
        """End."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._step):
            for name, port in self._ports.items():
                self._scrape(name, port)
            self.rounds += 1

    def _scrape(self, name: str, port: int) -> None:
        target = {"job": _JOB, "instance": name}
        try:
            found = [*scraped(port, self._asked)]
        except OSError:
            found = []
        self.samples.add(self.rounds, "up", target, float(bool(found)))
        for one in found:
            if one.name == "process_resident_memory_bytes":
                self.most[name] = max(self.most[name], one.value)
            self.samples.add(self.rounds, one.name, {**one.labels, **target}, one.value)


def firing(samples: Samples, rounds: int, folder: Path) -> list[Firing]:
    """Return the alerts that fired, and when.

    Parameters
    ----------
    samples, rounds
        What was scraped, and in how many rounds.
    folder
        A folder of its own.
    """
    folder.mkdir()
    began = (int(time.time()) - _DAYS) // 7_200 * 7_200
    ended = began + (rounds - 1) * MINUTE
    text, storage, rules = folder / "samples.txt", folder / "storage", folder / "rules.yml"
    samples.write(text, began)
    rules.write_text(alert_rules())
    _promtool("tsdb", "create-blocks-from", "openmetrics", text, storage)
    with _Prometheus(folder, storage) as recording:
        span = [f"--start={began}", f"--end={ended}", f"--url={recording.url}"]
        words = [*span, f"--output-dir={folder / 'recorded'}", "--eval-interval=60s"]
        _promtool("tsdb", "create-blocks-from", "rules", *words, rules)
    for block in [*(folder / "recorded").glob("*")] if (folder / "recorded").exists() else []:
        block.rename(storage / block.name)
    with _Prometheus(folder, storage) as prometheus:
        return [
            one
            for group in YAML(typ="safe").load(alert_rules())["groups"]
            for rule in group["rules"]
            if "alert" in rule
            for one in _of_rule(prometheus, rule, began, ended)
        ]


def _of_rule(
    prometheus: _Prometheus, rule: Mapping[str, Any], began: int, ended: int
) -> Iterator[Firing]:
    """Yield the times for which a rule was true for longer than its `for`."""
    wait = rule.get("for", "0m")
    least = int(wait[:-1]) * _SECONDS[wait[-1]]
    for labels, times in prometheus.query(rule["expr"], began, ended):
        for run in _runs(times):
            if run[-1] - run[0] >= least:
                first = (run[0] + least - began) // MINUTE
                yield Firing(rule["alert"], labels, first, (run[-1] - began) // MINUTE)


def _runs(times: Sequence[int]) -> Iterable[Sequence[int]]:
    """Split times where a minute is missing.

    >>> [*_runs([0, 60, 180])]
    [[0, 60], [180]]
    """
    found: list[list[int]] = []
    for one in times:
        if found and one - found[-1][-1] == MINUTE:
            found[-1].append(one)
        else:
            found.append([one])
    return found


class _Prometheus:
    """A Prometheus that answers queries about a storage, in a `with` block."""

    def __init__(self, folder: Path, storage: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        config = folder / "prometheus.yml"
        config.write_text("{}")
        words = [
            f"--config.file={config}",
            f"--storage.tsdb.path={storage}",
            "--storage.tsdb.retention.time=10y",
            f"--query.lookback-delta={_LOOKBACK}s",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(["prometheus", *words], stdout=log, stderr=log)  # noqa: S607

    def __enter__(self) -> Self:
        """Wait until it answers."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with urlopen(f"{self.url}/-/ready", timeout=10):  # noqa: S310 - ours
                    return self
            except URLError:
                assert self._process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait()

    def query(
        self, expression: str, began: int, ended: int
    ) -> Iterator[tuple[Mapping[str, str], list[int]]]:
        """Yield the labels of each series of an expression, and the minutes at which it is."""
        words = {"query": expression, "start": began, "end": ended, "step": MINUTE}
        with urlopen(f"{self.url}/api/v1/query_range?{urlencode(words)}", timeout=600) as answer:  # noqa: S310 - ours
            found = json.load(answer)["data"]["result"]
        for one in found:
            yield one["metric"], [round(at) for at, _ in one["values"]]


def _promtool(*words: object) -> None:
    subprocess.run(["promtool", *map(str, words)], check=True, capture_output=True)  # noqa: S607

"""An application that takes over from another, and the check that one of both published."""

from __future__ import annotations

import json
import time
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, Self

from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.chaos.application import Application
from tests.connectors.kafka.chaos.judge import (
    Inputs,
    Replayed,
    history,
    output,
    require_each_once,
    require_same,
)
from tests.connectors.kafka.chaos.traffic import Traffic
from tests.connectors.kafka.chaos.workers import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.runtime.task import ChangelogRecord

__all__ = ["Succession", "Successor", "require_one_publisher"]

_SINKS = ("predictions", "outcomes", "dead_letters")


class Successor(Application):
    """An application with the inputs and outputs of another, its predecessor."""

    def __init__(self, predecessor: Application, folder: Path, **sections: Any) -> None:  # noqa: ANN401
        """Make its changelog."""
        super().__init__(predecessor.broker, folder, predecessor.partitions, **sections)
        self.topics = {**predecessor.topics, "changelog": self.topics["changelog"]}
        self.words = ("--take-over", predecessor.name)


class Succession:
    """Two applications with workers, and traffic for both, in a `with` block.

    Parameters
    ----------
    broker, folder
        The broker, and a folder for both.
    sections
        Sections of the configuration of both.
    instead
        Sections of the successor that are others.
    count
        Number of observations.
    """

    def __init__(
        self,
        broker: Broker,
        folder: Path,
        sections: dict[str, Any],
        instead: dict[str, Any],
        count: int,
    ) -> None:
        """Make the topics."""
        for name in ("old", "new"):
            (folder / name).mkdir()
        self.old = Application(broker, folder / "old", 3, **sections)
        self.new = Successor(self.old, folder / "new", **sections | instead)
        self.olds, self.news = Supervisor(self.old), Supervisor(self.new)
        self.traffic = Traffic(self.old, 7, count)
        self.kills = 0
        self._random = Random(7)  # noqa: S311 - not for secrets

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        self.traffic.close()
        self.olds.close()
        self.news.close()

    def start(self, instances: str = "ab") -> None:
        """Start workers of both, those of the successor once the others serve."""
        for instance in instances:
            self.olds.add(instance)
        for one in self.olds.workers.values():
            one.ready()
        for instance in instances:
            self.news.add(instance, words=self.new.words)

    def kill(self, *supervisors: Supervisor) -> None:
        """Kill a worker, which its supervisor starts again."""
        workers = [one for every in supervisors for one in every.workers.values()]
        self._random.choice(workers).kill()
        self.kills += 1

    def kill_now_and_then(self, times: int, *supervisors: Supervisor) -> None:
        """Kill workers, as soon as they have been started again and later."""
        for _ in range(times):
            time.sleep(self._random.uniform(0.1, 3.0))
            self.kill(*supervisors)

    def stop_old(self) -> None:
        """Stop the predecessor for good."""
        for instance in [*self.olds.workers]:
            self.olds.retire(instance)

    def until_said(self, sentence: str) -> None:
        """Wait until it is the last that each worker of the successor has said of the take-over.

        A worker that has taken over may get a partition that nobody has taken over yet.
        """
        self.until(
            lambda: all(sentence in _last_said(one.said()) for one in self.news.workers.values())
        )

    def until(self, done: Callable[[], object]) -> None:
        """Wait until something is so, while no worker of the successor ends for good."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            self.news.require_all()
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def stop_new(self) -> None:
        """Stop the successor."""
        for instance in [*self.news.workers]:
            self.news.retire(instance)


def _last_said(log: str) -> str:
    """Return the last line of a log that is about the take-over."""
    lines = [line for line in log.splitlines() if "abers_connectors.runtime.take_over" in line]
    return lines[-1] if lines else ""


def require_one_publisher(old: Application, new: Successor, ids: set[str]) -> dict[str, int]:
    """Assert that old published all before the offsets of the handover, and new all from there on.

    `ids` are the observations that were written. Both have read all that they may. Each output must
    be to the byte that of a processor in memory with the settings of its publisher, which takes
    the records in the order of the publisher's changelog. Return counts of what was published.
    """
    there = {sink: old.broker.consume(old.topics[sink]) for sink in _SINKS}
    before, after, inputs = history(old), history(new), Inputs(new)
    counts: Counter[str] = Counter()
    for number in range(old.partitions):
        split = _handover(after[number], before[number], old.name)
        require_each_once(after[number], inputs, number)
        learned, published = after[number][:split], after[number][split:]
        by_old = Replayed(old).take(*_whole(inputs, before[number], number)).said
        replayed = Replayed(new).take(*_whole(inputs, learned, number))
        unpublished = {sink: len(replayed.said[sink]) for sink in _SINKS}
        by_new = replayed.take(*_whole(inputs, published, number)).said
        for sink in _SINKS:
            own = by_new[sink][unpublished[sink] :]
            require_same(output(there[sink], number), by_old[sink] + own, f"{sink}[{number}]")
            counts[f"{sink} of old"] += len(by_old[sink])
            counts[f"{sink} of new"] += len(own)
        predicted = _ids(by_old["predictions"])
        late = _ids(by_new["outcomes"][unpublished["outcomes"] :]) & predicted
        counts["outcomes of new for predictions of old"] += len(late)
    for sink in ("predictions", "outcomes"):
        found = Counter(json.loads(one.value)["id"] for one in there[sink])
        assert max(found.values()) == 1, (sink, found.most_common(3))
        assert found.keys() <= ids
    assert len(there["predictions"]) == len(ids)
    return counts


def _ids(records: Sequence[tuple[Any, ...]]) -> set[str]:
    """Return the ids in the values of outputs."""
    return {json.loads(value)["id"] for _, value, *_ in records}


def _handover(after: Sequence[ChangelogRecord], before: Sequence[ChangelogRecord], old: str) -> int:
    """Return the place of the record of the handover, which has the last offsets of old."""
    (split,) = [n for n, one in enumerate(after) if not one.follows and after[n - 1].follows]
    assert {one.follows for one in after[:split]} == {old}
    assert {one.follows for one in after[split:]} == {""}
    assert after[split].inputs == b""
    assert after[split].next_offsets == before[-1].next_offsets
    return split


def _whole(
    inputs: Inputs, changelog: Sequence[ChangelogRecord], number: int
) -> tuple[list[Any], list[int]]:
    """Return the records of batches, and the size of a single batch of them."""
    records = inputs.applied(changelog, number)
    return records, [len(records)]

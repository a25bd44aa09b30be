"""Check that everything happened exactly once.

The records are read from the broker by committed readers, and compared with those that were
written, and with one processor in memory that processes the inputs in the order of the changelog,
in batches of another size. Where models retire, the batches are those of the changelog, since their
boundaries decide when.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from contextlib import contextmanager
from itertools import accumulate, pairwise
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec
import numpy as np
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.chaos.tasks import BINARY

from abers.stream import Events, Observation, accounts
from abers_connectors.kafka.client import PartitionReader
from abers_connectors.process import Watchdog
from abers_connectors.runtime.application import Application as ServiceApplication
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.restore import Restorer
from abers_connectors.runtime.serializer import Serializer
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.task import Assembler, ChangelogRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker
    from tests.connectors.kafka.chaos.application import Application
    from tests.connectors.kafka.chaos.tasks import Task

    from abers.stream import Processor
    from abers_connectors.runtime.task import StreamTask
    from abers_connectors.runtime.transport import Record

__all__ = [
    "CheckResult",
    "Inputs",
    "Replayed",
    "changes",
    "committed",
    "history",
    "judge",
    "log_of",
    "order",
    "output",
    "poison_once",
    "require_each_once",
    "require_same",
    "restored",
]

_MOST_BYTES = 1_000_000
_BATCH = 777  # of the processor in memory: no worker's batches are like it


class CheckResult(NamedTuple):
    """The result; `predictions` and `records` are counts, the others should be 0 and True."""

    records: int
    predictions: int
    dead_letters: int
    lost: int
    duplicates: int
    states_equal: bool
    restored_from_snapshots: int
    accounts: dict[str, int]  # sums over the partitions, which close


@contextmanager
def log_of(application: Application, group: str | None = None) -> Iterator[PartitionReader]:
    """Open a reader outside a group, that of an application unless given."""
    watchdog = Watchdog(PATIENCE)
    group = group or application.name
    log = PartitionReader(group, settings=application.broker.client, watchdog=watchdog)
    try:
        yield log
    finally:
        log.close()
        watchdog.close()


def committed(application: Application) -> dict[tuple[str, int], tuple[int, int]]:
    """Return the committed offset of each input partition (0 if none), and its end."""
    home = ServiceApplication.of(application.config())
    with log_of(application) as log:
        return {
            one: (log.committed(one) or 0, log.offset_range(one).end)
            for number in range(application.partitions)
            for one in home.input_partitions(number)
        }


def history(application: Application) -> dict[int, list[ChangelogRecord]]:
    """Return the changelog records of each task; a gap raises a StateError."""
    changelog: dict[int, list[ChangelogRecord]] = {n: [] for n in range(application.partitions)}
    return changelog | changes(application.broker, application.topics["changelog"], 0)


def changes(broker: Broker, topic: str, first: int) -> dict[int, list[ChangelogRecord]]:
    """Return the records of a changelog by partition, whose first batch has this number."""
    assemblers: dict[int, Assembler] = defaultdict(lambda: Assembler(first))
    changelog: dict[int, list[ChangelogRecord]] = defaultdict(list)
    for record in broker.consume(topic):
        one = assemblers[record.partition].add(record.value)
        if one is not None:
            changelog[record.partition].append(one)
    return changelog


def restored(  # noqa: PLR0913 - of one task
    application: Application,
    number: int,
    folder: Path | None,
    *,
    home: ServiceApplication | None = None,
    say: Callable[[str], None] = print,
    tick: Callable[[], None] = lambda: None,
) -> StreamTask:
    """Restore a task from the snapshots in a folder and the changelog, or from that alone.

    `home` is the application at its generation, the first unless given.
    """

    def never(_: int) -> StreamTask:
        raise AssertionError

    home = home or ServiceApplication.of(application.config())
    snapshots = None if folder is None else SnapshotStore(str(folder), home.state_id)
    with log_of(application) as log:
        restorer = Restorer(home, log, snapshots, never, lambda _: False, warn=say)
        return restorer.restore(number, None, tick).task


class Inputs:
    """The records of the inputs."""

    def __init__(self, application: Application) -> None:
        topics = [application.topics[key] for key in ("observations", "labels")]
        read = [application.broker.consume(topic) for topic in topics]
        self.records: dict[tuple[int, int, int], Record] = {
            (which, one.partition, one.offset): one
            for which, records in enumerate(read)
            for one in records
        }

    def offsets(self, which: int, partition: int) -> list[int]:
        """Return the offsets of a partition."""
        return sorted(offset for w, p, offset in self.records if (w, p) == (which, partition))

    def applied(self, changelog: Sequence[ChangelogRecord], number: int) -> list[Record]:
        """Return the records of a task in the order in which they were applied."""
        return [self.records[which, number, offset] for which, offset in order(changelog)]


def order(changelog: Sequence[ChangelogRecord]) -> list[tuple[int, int]]:
    """Return input and offset of each record in the order in which they were applied."""
    return [
        (which, offset)
        for one in changelog
        for which, offset in zip(
            one.inputs, np.frombuffer(one.offsets, "<i8").tolist(), strict=True
        )
    ]


def require_each_once(changelog: Sequence[ChangelogRecord], inputs: Inputs, partition: int) -> None:
    """Assert that every offset of both inputs was applied once, in ascending order."""
    applied = order(changelog)
    for which in (0, 1):
        offsets = [offset for w, offset in applied if w == which]
        require_same(offsets, inputs.offsets(which, partition), f"input {which}[{partition}]")
    for one, next_offsets in pairwise(changelog):
        assert all(a <= b for a, b in zip(one.next_offsets, next_offsets.next_offsets, strict=True))
    ends = [(inputs.offsets(which, partition) or [-1])[-1] + 1 for which in (0, 1)]
    assert not applied or [*changelog[-1].next_offsets] == ends


class Replayed:
    """The outputs of one processor in memory for a task, which takes batches of some sizes."""

    def __init__(self, application: Application) -> None:
        config = application.config()
        self.said: dict[str, list[Any]] = defaultdict(list)
        self.dead: list[tuple[int, str]] = []
        self.processor: Processor = ServiceApplication.of(config).new_processor()
        self._deserializer = Deserializer(config, partitions=application.partitions)
        self._serializer = Serializer(max_bytes=_MOST_BYTES)
        self._topics = [application.topics["observations"], application.topics["labels"]]

    def take(self, records: list[Record], sizes: Sequence[int]) -> Self:
        """Process some records."""
        for start, end in pairwise(accumulate(sizes, initial=0)):
            batch = records[start:end]
            inputs = [self._topics.index(one.topic) for one in batch]
            decoded = self._deserializer.decode(batch, inputs)
            outputs = self.processor.process_batch(decoded.events) if len(decoded.events) else None
            for sink, found in self._serializer.serialize(outputs, decoded, batch).items():
                for key, value, headers, timestamp in zip(*found[:4], strict=True):
                    self.said[sink].append((key, value, [*headers], timestamp))
            dead = [(start + row, reason) for row, reason, _ in decoded.dead]
            dead += [(start + row, "tombstone") for row in decoded.tombstones]
            self.dead += sorted(dead)
        return self


def output(records: Sequence[Record], partition: int) -> list[tuple[Any, ...]]:
    """Return what a partition of an output has, as `Replayed.said` has it."""
    return [
        (one.key, one.value, [*one.headers], one.timestamp)
        for one in records
        if one.partition == partition
    ]


def _sizes(application: Application, changelog: Sequence[ChangelogRecord]) -> list[int]:
    """Return the sizes of batches that no worker had, unless these decide what models retire."""
    had = [len(one.inputs) for one in changelog if one.inputs]
    if application.config().settings().retire_after is not None:
        return had
    whole, rest = divmod(sum(had), _BATCH)
    return [_BATCH] * whole + [rest] * (rest > 0)


def _dead(changelog: Sequence[ChangelogRecord]) -> list[tuple[int, str]]:
    found, start = [], 0
    for one in changelog:
        found += [(start + row, reason) for row, reason in one.dead]
        start += len(one.inputs)
    return found


def judge(
    application: Application,
    ids: set[str],
    poison: Mapping[tuple[str, int, int], str],
    task: Task = BINARY,
    *,
    mixed: bool = False,
) -> CheckResult:
    """Assert that everything happened exactly once.

    Parameters
    ----------
    application
        The application, whose workers are at the end of the inputs.
    ids
        Observations that were written; each is predicted once.
    poison
        Records that are not events, by topic, partition and offset, with the reason.
    task
        Task of the application.
    mixed
        Whether workers of other versions took part: their dead letters may have other sentences,
        and snapshots of format 1 count predictions over all models, where those of now count the
        predictions of each model.
    """
    inputs, changelog = Inputs(application), history(application)
    there = {
        sink: application.broker.consume(application.topics[sink])
        for sink in ("predictions", "outcomes", "dead_letters")
    }
    predicted = Counter(json.loads(one.value)["id"] for one in there["predictions"])
    lost = len(ids - predicted.keys())
    duplicates = sum(predicted.values()) - len(predicted)
    unasked = predicted.keys() - ids
    assert (lost, duplicates, len(unasked)) == (0, 0, 0), (lost, duplicates, sorted(unasked)[:5])
    poison_once(there["dead_letters"], poison)
    from_snapshots, parts = 0, list[dict[str, int]]()
    for number in range(application.partitions):
        require_each_once(changelog[number], inputs, number)
        records = inputs.applied(changelog[number], number)
        replayed = Replayed(application).take(records, _sizes(application, changelog[number]))
        require_same(_dead(changelog[number]), replayed.dead, f"dead[{number}]")
        for sink, records in there.items():
            found = output(records, number)
            expected = replayed.said[sink]
            if mixed and sink == "dead_letters":
                found, expected = map(_without_sentences, (found, expected))
            require_same(found, expected, f"{sink}[{number}]")
        known, of = _states_equal(
            application, number, task, _State.of(replayed.processor, task), mixed=mixed
        )
        from_snapshots += known
        parts.append(of)
    whole = accounts.total(parts)
    assert accounts.unbalanced(whole) == []
    assert whole["records"] == len(inputs.records)
    assert whole["tombstones"] == [*poison.values()].count("tombstone")
    assert whole["undecodable"] + whole["dead_letters"] == len(there["dead_letters"])
    assert whole["predictions"] == len(there["predictions"])
    assert whole["learned"] == len(there["outcomes"])
    return CheckResult(
        len(inputs.records),
        len(there["predictions"]),
        len(there["dead_letters"]),
        lost,
        duplicates,
        states_equal=True,
        restored_from_snapshots=from_snapshots,
        accounts=whole,
    )


def _without_sentences(dead: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return dead letters without the sentence that says what is wrong."""
    return [
        (
            key,
            json.loads(value) | {"detail": None},
            [one for one in headers if one[0] != "abers.detail"],
            timestamp,
        )
        for key, value, headers, timestamp in dead
    ]


def require_same(found: Sequence[Any], expected: Sequence[Any], where: str) -> None:
    """Assert that two are equal, and show where they are not."""
    for row, pair in enumerate(zip(found, expected, strict=False)):
        assert pair[0] == pair[1], (where, row, *pair)
    assert len(found) == len(expected), (where, len(found), len(expected))


class _State(NamedTuple):
    """The parts of the state that must be equal."""

    held: bytes
    said: list[bytes]

    @classmethod
    def of(cls, processor: Processor, task: Task) -> _State:
        """Return the state, with the next output of each model, as bytes of learners may differ."""
        random, now, held = Random(0), processor.clock or 0, processor.state_bytes()  # noqa: S311 - not for secrets
        models = sorted({model for model, _ in processor.keys})
        asked = [
            Observation(f"asked-{model}", now, model, **task.asked(random)) for model in models
        ]
        outputs = processor.process_batch(Events.of(asked))
        assert len(outputs.predictions) == len(models)
        return cls(held, [msgspec.json.encode(one) for one in outputs.predictions])

    def without_numbers(self) -> _State:
        """Return the state without the numbers of the predictions that wait for a label."""
        held = msgspec.msgpack.decode(self.held) | {"made": None}
        return self._replace(held=msgspec.msgpack.encode(held))


def _states_equal(
    application: Application, number: int, task: Task, expected: _State, *, mixed: bool
) -> tuple[int, dict[str, int]]:
    """Assert that each way to restore a task gives this state, with accounts that close.

    Return the number of ways that have snapshots, and the accounts.
    """
    folders = sorted(application.folder.glob("snapshots-*"))
    kept = [one for one in folders if [*one.glob(f"{application.name}/{number}/*.abers")]]
    of: dict[str, int] = {}
    for folder in (None, *kept):
        there = restored(application, number, folder)
        assert accounts.unbalanced(there.accounts) == [], (number, folder)
        assert (of or there.accounts) == there.accounts, (number, folder)
        of, found = there.accounts, _State.of(there.processor, task)
        if mixed:
            found, expected = found.without_numbers(), expected.without_numbers()
        assert found == expected, (number, folder)
    return len(kept), of


def poison_once(records: Sequence[Record], poison: Mapping[tuple[str, int, int], str]) -> None:
    """Assert that each bad record has one dead letter, and only unmatched labels have others."""
    found: Counter[tuple[str, int, int, str]] = Counter()
    for one in records:
        said = json.loads(one.value or b"")
        if "offset" in said:
            found[said["topic"], said["partition"], said["offset"], said["reason"]] += 1
        else:
            assert said["reason"] == "unknown-id"
    due = Counter((*place, reason) for place, reason in poison.items() if reason != "tombstone")
    assert found == due, [*(found - due).items(), *(due - found).items()][:5]

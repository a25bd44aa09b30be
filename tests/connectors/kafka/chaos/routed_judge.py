"""Check of an application with routers: each record once, and each model as if it were alone.

The routed records are those that a reader has followed. They are decoded here, and each model has a
processor of its own, which takes them in the order of the topics of all generations.
"""

from __future__ import annotations

import json
import math
import struct
from collections import Counter, defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
from kafka.partitioner.default import murmur2
from tests.connectors.kafka.chaos.judge import changes, order, poison_once, require_same, restored

from abers.stream import Events, Label, Observation, Processor, accounts
from abers.stream.repartition import split
from abers.stream.snapshot import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kafka.consumer.fetcher import ConsumerRecord
    from tests.connectors.kafka.chaos.elastic_application import ElasticApplication

    from abers.stream.events import Event
    from abers.stream.snapshot import Snapshot

__all__ = ["SLOTS", "Backlog", "Place", "RoutedResult", "decoded", "judge_routed", "slot_of"]

_BATCH = 777  # of a processor in memory: no task's batches are like it
SLOTS = 4096
_ORIGIN = struct.Struct(">BIqq")
_UNREAD = 2  # bit of the first byte
_NOT_OF_EVENTS = {"counters", "history"}  # components of a state that depend on more than events
_DEFAULT = "default"  # model of a record that has no field of it
_CROWD = "too-many-models"  # of an event that a processor of one model alone would take
Place: TypeAlias = tuple[str, int, int]  # topic, partition and offset
_Written: TypeAlias = tuple[bytes | None, bytes, list[tuple[str, bytes]], int]


class Backlog(NamedTuple):
    """The ends of the inputs when the routers of a generation were started."""

    generation: int
    ends: Mapping[tuple[str, int], int]


class RoutedResult(NamedTuple):
    """The result."""

    records: int
    predictions: int
    dead_letters: int
    routed: dict[int, int]  # records by generation
    latest: int  # milliseconds by which a record came behind a later one of its partition
    latest_in_backlog: int
    accounts: dict[str, int]


class _Routed(NamedTuple):
    """A routed record, and where it comes from."""

    generation: int
    record: ConsumerRecord
    origin: Place
    unread: bool

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        """The headers of the record of the input."""
        return [*self.record.headers[:-1]]


def judge_routed(  # noqa: PLR0913 - of a campaign
    application: ElasticApplication,
    tapped: Mapping[int, Sequence[ConsumerRecord]],
    ids: set[str],
    poison: Mapping[Place, str],
    backlogs: Sequence[Backlog] = (),
    *,
    read: Callable[[bytes], Any] = json.loads,
) -> RoutedResult:
    """Assert that everything happened exactly once.

    Parameters
    ----------
    application
        The application, whose processes have stopped at the end of the inputs.
    tapped
        Routed records by generation, each by partition and offset.
    ids
        Observations that were written; each is predicted once, unless its model is one too many.
    poison
        Records that are not events, with the reason.
    backlogs
        What waited when routers were started.
    read
        Reads a record of the inputs; raises a ValueError if that cannot be read.
    """
    inputs = _inputs(application)
    routed = [*decoded(application, tapped)]
    partitions = _partitions(application, tapped)
    _each_once(routed, inputs, partitions, poison, read)
    _changed_once(application, tapped)
    by_model: dict[str, list[tuple[_Routed, Event]]] = defaultdict(list)
    for one in routed:
        reason = poison.get(one.origin)
        if reason is None or _is_refused(one.record, reason, read):
            event = _event(one.record, read)
            by_model[event.model].append((one, event))
    models = {model: _ReplayedModel(application, some) for model, some in by_model.items()}
    written = {
        key: application.broker.consume(application.topics[key])
        for key in ("predictions", "outcomes", "dead_letters")
    }
    predicted = Counter(json.loads(one.value)["id"] for one in written["predictions"])
    crowd = (place for place, reason in poison.items() if reason == _CROWD)
    due = Counter(ids - {read(inputs[place].value)["id"] for place in crowd})
    assert predicted == due, ([*(predicted - due)][:5], [*(due - predicted)][:5])
    for key in ("predictions", "outcomes"):
        _same_outputs(written[key], [one.made[key] for one in models.values()], key)
    _same_dead(written["dead_letters"], [*models.values()], poison)
    _states_equal(application, models, partitions[max(partitions)])
    return RoutedResult(
        len(inputs),
        len(written["predictions"]),
        len(written["dead_letters"]),
        {generation: len(records) for generation, records in tapped.items()},
        _latest(routed),
        max((_latest(_of(one, routed)) for one in backlogs), default=0),
        _accounts(application, models, len(inputs), poison),
    )


# The routed records


def _inputs(application: ElasticApplication) -> dict[Place, ConsumerRecord]:
    return {
        (one.topic, one.partition, one.offset): one
        for key in ("observations", "labels")
        for one in application.broker.consume(application.topics[key])
    }


def decoded(
    application: ElasticApplication, tapped: Mapping[int, Sequence[ConsumerRecord]]
) -> Iterator[_Routed]:
    """Yield the routed records with their origins, by generation, partition and offset."""
    topics = application.topics["observations"], application.topics["labels"]
    for generation, records in tapped.items():
        for one in records:
            name, value = one.headers[-1]
            assert name == "abers.origin"
            bits, partition, offset, timestamp = _ORIGIN.unpack(value)
            assert timestamp == one.timestamp
            origin = (topics[bits & 1], partition, offset)
            yield _Routed(generation, one, origin, bool(bits & _UNREAD))


def _partitions(
    application: ElasticApplication, tapped: Mapping[int, Sequence[ConsumerRecord]]
) -> dict[int, int]:
    """Return how many partitions each generation has."""
    topics = {generation: some[0].topic for generation, some in tapped.items()}
    with application.broker.admin() as admin:
        found = {one["name"]: one for one in admin.describe_topics([*topics.values()])}
    return {one: len(found[topic]["partitions"]) for one, topic in topics.items()}


def _each_once(
    routed: Sequence[_Routed],
    inputs: Mapping[Place, ConsumerRecord],
    partitions: Mapping[int, int],
    poison: Mapping[Place, str],
    read: Callable[[bytes], Any],
) -> None:
    """Assert that each record was routed once, as it was, to its partition, and in order."""
    counted = Counter(one.origin for one in routed)
    assert counted == Counter(inputs.keys()), [*(counted - Counter(inputs.keys()))][:5]
    last: dict[tuple[str, int, int], int] = {}
    for one in routed:
        given, found = inputs[one.origin], one.record
        assert (found.key, found.value, found.timestamp) == (
            *(given.key, given.value, given.timestamp),
        )
        assert one.headers == [*given.headers], one
        slot = _slot(found.value, read)
        if one.origin in poison and one.unread:
            slot = None
        assert one.unread == (slot is None), one
        expected = 0 if slot is None else slot * partitions[one.generation] // SLOTS
        assert found.partition == expected, one
        topic, partition, offset = one.origin
        of = (topic, partition, -1 if slot is None else slot)
        assert last.get(of, -1) < offset, one
        last[of] = offset


def _slot(value: bytes | None, read: Callable[[bytes], Any]) -> int | None:
    """Return the slot of the model in a record, None where none can be read."""
    try:
        model = read(value or b"").get("model", _DEFAULT)
    except (ValueError, AttributeError, RecursionError):
        return None
    return slot_of(model) if isinstance(model, str) else None


def slot_of(model: str) -> int:
    """Return the slot of a model."""
    return int((murmur2(model.encode()) & 0x7FFFFFFF) % SLOTS)


def _changed_once(
    application: ElasticApplication, tapped: Mapping[int, Sequence[ConsumerRecord]]
) -> None:
    """Assert that the changelog of each generation has each routed record once, in order."""
    for generation, records in tapped.items():
        topic = f"{application.name}.changelog" + f"-{generation}" * (generation > 1)
        changelog = changes(application.broker, topic, int(generation > 1))
        for partition in {one.partition for one in records} | {*changelog}:
            applied = [offset for _, offset in order(changelog.get(partition, ()))]
            there = [one.offset for one in records if one.partition == partition]
            require_same(applied, there, f"{topic}[{partition}]")


# The outputs


def _event(record: ConsumerRecord, read: Callable[[bytes], Any]) -> Event:
    one = read(record.value or b"")
    known = {"recorded": record.timestamp, "model": one["model"]}
    if "score" in one:
        extra = {"channel": one["channel"]} if "channel" in one else None
        return Observation(one["id"], one["time"], score=one["score"], extra=extra, **known)
    return Label(one["id"], one["time"], value=one["label"], **known)


def _is_refused(record: ConsumerRecord, reason: str, read: Callable[[bytes], Any]) -> bool:
    """Return whether a record is an event all the same, which a processor refuses."""
    if reason == "bad-score":
        score = read(record.value or b"")["score"]
        return not isinstance(score, str) and math.isfinite(score)
    return reason in {"time-in-future", "too-long"}


class _ReplayedModel:
    """What a processor makes of the records of one model.

    Attributes
    ----------
    made
        Predictions and outcomes, each as it is written.
    dead
        Reason, sentence, event and time of labels for which no observation came.
    refused
        Reasons of events that are none, by origin.
    """

    def __init__(
        self, application: ElasticApplication, records: Sequence[tuple[_Routed, Event]]
    ) -> None:
        self.processor = Processor(application.config().settings())
        self.made: dict[str, list[_Written]] = {"predictions": [], "outcomes": []}
        self.dead: list[tuple[str, str, str, int]] = []
        self.refused: dict[Place, str] = {}
        for start in range(0, len(records), _BATCH):
            self._take(records[start : start + _BATCH])

    def _take(self, batch: Sequence[tuple[_Routed, Event]]) -> None:
        outputs = self.processor.process_batch(Events.of([event for _, event in batch]))
        for key, rows, some in (
            ("predictions", outputs.predicted, outputs.predictions),
            ("outcomes", outputs.settled, outputs.outcomes or ()),
        ):
            for row, one in zip(rows.tolist(), some, strict=True):
                cause = batch[row][0]
                self.made[key].append(
                    (
                        cause.record.key,
                        msgspec.json.encode(one),
                        cause.headers,
                        cause.record.timestamp,
                    )
                )
        for row, dead in outputs.dead_letters:
            if dead.row is not None:
                self.refused[batch[row][0].origin] = dead.reason
                continue
            event = msgspec.json.encode(dead.event).decode()
            time = batch[row][0].record.timestamp
            self.dead.append((dead.reason, dead.detail, event, time))


def _same_outputs(
    records: Sequence[ConsumerRecord], made: Sequence[Sequence[_Written]], where: str
) -> None:
    """Assert that outputs are those expected, and in the order of their model in a partition."""
    found = [(one.key, one.value, [*one.headers], one.timestamp) for one in records]
    expected = [*chain.from_iterable(made)]
    require_same(sorted(found, key=_by_value), sorted(expected, key=_by_value), where)
    numbers = {
        value: (which, row)
        for which, some in enumerate(made)
        for row, (_, value, *_) in enumerate(some)
    }
    assert len(numbers) == len(expected)
    last: dict[tuple[int, int], int] = {}
    for one in records:
        which, row = numbers[one.value]
        assert last.get((one.partition, which), -1) < row, (where, one)
        last[one.partition, which] = row


def _by_value(one: _Written) -> bytes:
    return one[1]


def _same_dead(
    records: Sequence[ConsumerRecord], models: Sequence[_ReplayedModel], poison: Mapping[Place, str]
) -> None:
    """Assert that each bad record, and each label that nothing waited for, has one dead letter."""
    poison_once(records, poison)
    refused = {place: reason for one in models for place, reason in one.refused.items()}
    assert refused.items() <= poison.items()
    said = [(json.loads(one.value or b""), one.timestamp) for one in records]
    found = [
        (one["reason"], one["detail"], one["raw"], time)
        for one, time in said
        if "offset" not in one
    ]
    expected = [dead for model in models for dead in model.dead]
    require_same(sorted(found), sorted(expected), "dead letters")


# The states


def _states_equal(
    application: ElasticApplication, models: Mapping[str, _ReplayedModel], partitions: int
) -> None:
    """Assert that restored tasks have each model as it is alone, in the partition of its slot."""
    home, found = application.generation().application, list[str]()
    for number in range(partitions):
        task = restored(application, number, application.snapshots(), home=home)
        assert accounts.unbalanced(task.accounts) == [], number
        own = sorted({model for model, _ in task.processor.keys})
        found += own
        for model, part in zip(own, _split(task.processor, own), strict=True):
            assert _payloads(part) == _payloads(read(models[model].processor.snapshot())), model
    assert sorted(found) == sorted(name for name, one in models.items() if one.processor.keys)


def _split(processor: Processor, models: Sequence[str]) -> Sequence[Snapshot]:
    return split(read(processor.snapshot()), len(models), models.index) if models else ()


def _payloads(state: Snapshot) -> dict[str, bytes]:
    parts = state.components.items()
    return {name: bytes(one.payload) for name, one in parts if name not in _NOT_OF_EVENTS}


def _accounts(
    application: ElasticApplication,
    models: Mapping[str, _ReplayedModel],
    records: int,
    poison: Mapping[Place, str],
) -> dict[str, int]:
    """Return the sums that all tasks together must have."""
    whole = accounts.total(one.processor.accounts for one in models.values())
    assert accounts.unbalanced(whole) == []
    topics = {application.topics[key]: key for key in ("observations", "labels")}
    crowd = Counter(topics[one[0]] for one, reason in poison.items() if reason == _CROWD)
    refused = sum(len(one.refused) for one in models.values()) + crowd.total()
    tombstones = [*poison.values()].count("tombstone")
    return whole | {
        "records": records,
        "events": whole["events"] + crowd.total(),
        "observations": whole["observations"] + crowd["observations"],
        "labels": whole["labels"] + crowd["labels"],
        "dead_letters": whole["dead_letters"] + crowd.total(),
        "undecodable": len(poison) - tombstones - refused,
        "tombstones": tombstones,
    }


# The order


def _of(backlog: Backlog, routed: Sequence[_Routed]) -> list[_Routed]:
    """Return the routed records of a backlog."""
    return [
        one
        for one in routed
        if one.generation == backlog.generation
        and one.origin[2] < backlog.ends.get(one.origin[:2], 0)
    ]


def _latest(routed: Sequence[_Routed]) -> int:
    """Return by how much a record came behind a later one, at most.

    A record that is late within its partition of the input has the time of the latest before it.
    """
    at: dict[Place, int] = {}
    reached: dict[tuple[str, int], int] = defaultdict(int)
    for one in sorted(routed, key=lambda one: one.origin):
        reached[one.origin[:2]] = max(reached[one.origin[:2]], one.record.timestamp)
        at[one.origin] = reached[one.origin[:2]]
    highest: dict[tuple[int, int], int] = defaultdict(int)
    latest = 0
    for one in routed:
        of = (one.generation, one.record.partition)
        latest = max(latest, highest[of] - at[one.origin])
        highest[of] = max(highest[of], at[one.origin])
    return latest

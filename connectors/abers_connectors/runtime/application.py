"""What all tasks of an application share, their positions, and what routers write.

A record of the routed topic is seen as the record of the input that it comes from. The router
writes a record as it is, with one more header, its origin. So each message and each output of a
task names the record of the input. The positions of a task are those of the routed topic.

Two processes with equal `Application`s can take over each other's tasks.
"""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from abers.exceptions import ConfigError, StateError
from abers.stream import Processor
from abers_connectors.runtime.transport import BadHeaders, FetchedRecord, TopicPartition
from abers_connectors.secret import state_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from abers.serialization import Piece
    from abers.stream import Settings
    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.runtime.batches import MergedRecords
    from abers_connectors.runtime.transport import Headers, Record

__all__ = [
    "NO_OFFSET",
    "ORIGIN",
    "TOMBSTONE",
    "Application",
    "Beginning",
    "Checkpoint",
    "CommitNote",
    "RecordCounts",
    "RoutedOrigin",
    "RoutedRecord",
    "initial_state_scope",
    "kafka_section",
    "name_at",
    "origins",
    "snapshot_scope",
]

NO_OFFSET = -1
"""The offset of an input that the application does not have."""
TOMBSTONE = "tombstone"
"""Instead of the reason of a dead letter: the record has no value, and is skipped."""


class RecordCounts(msgspec.Struct, frozen=True, array_like=True):
    """Records that a task has read since the beginning of its state, by input."""

    records: tuple[int, int] = (0, 0)  # of observations and labels
    undecodable: tuple[int, int] = (0, 0)  # dead letters that are no events
    tombstones: tuple[int, int] = (0, 0)

    @property
    def decoded(self) -> int:
        """Number of records that are events."""
        return sum(self.records) - sum(self.undecodable) - sum(self.tombstones)

    def plus(self, inputs: Sequence[int], dead: Iterable[tuple[int, str]]) -> Self:
        """Add records by their inputs; `dead` has row and reason of those that are no events."""
        found = Counter((inputs[row], reason == TOMBSTONE) for row, reason in dead)
        return type(self)(
            _sums(self.records, [inputs.count(which) for which in (0, 1)]),
            _sums(self.undecodable, [found[which, False] for which in (0, 1)]),
            _sums(self.tombstones, [found[which, True] for which in (0, 1)]),
        )

    def together(self, other: Self) -> Self:
        """Return the counts of two tasks."""
        fields = self.__struct_fields__
        return type(self)(*(_sums(getattr(self, one), getattr(other, one)) for one in fields))

    def numbers(self) -> dict[str, int]:
        """Return the sums over both inputs, by the names that `abers.stream.accounts` uses."""
        return {name: sum(getattr(self, name)) for name in self.__struct_fields__}


def _sums(one: tuple[int, int], other: Sequence[int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]


class Checkpoint(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"application_id": "app", "changelog_offset": "changelog", "next_offsets": "following"},
):
    """How far a task has come; a snapshot stores it with the state."""

    application_id: str
    partition: int
    batch: int  # number of the next batch
    changelog_offset: int  # at which the changelog continues
    next_offsets: tuple[int, int]  # of observations and labels
    topic_ids: tuple[str, ...] = ()  # of the inputs, in the same order; none if they are unknown
    partitions: int = 0  # number of each input's; 0 if it is unknown
    counts: RecordCounts = RecordCounts()
    follows: str = ""  # id of the application that publishes instead; "" for none

    @classmethod
    def from_position(cls, position: Any) -> Checkpoint:  # noqa: ANN401 - anything a snapshot contains
        """Read the position of a snapshot; raises a StateError if it is not a checkpoint."""
        try:
            return msgspec.convert(position, cls)
        except msgspec.ValidationError:
            msg = "the snapshot is not one of a Kafka application: a run over files saved it"
            raise StateError(msg) from None

    def require(self, application_id: str, partition: int, changelog_offset: int) -> Self:
        """Return the checkpoint; raises a StateError if it is not of this task and offset."""
        expected = (application_id, partition, changelog_offset)
        if (self.application_id, self.partition, self.changelog_offset) != expected:
            mine = snapshot_scope(self.application_id, self.partition, self.changelog_offset)
            msg = f"the snapshot is of {mine}, not of {snapshot_scope(*expected)}"
            raise StateError(msg)
        return self


def snapshot_scope(application_id: str, partition: int, changelog_offset: int) -> str:
    """Return what a snapshot is sealed for: a task, and where its changelog continues."""
    return f"{application_id}[{partition}]@{changelog_offset}"


def initial_state_scope(application_id: str, partition: int) -> str:
    """Return what an initial state is sealed for: a task that has no state yet."""
    return f"the seed of {application_id}[{partition}]"


class CommitNote(NamedTuple):
    """What a router commits with the offset of an input partition.

    Examples
    --------
    >>> CommitNote(1_700_000_000_000, 17).encoded()
    'reached=1700000000000 waiting=17'
    >>> CommitNote.decoded("waiting=17")
    CommitNote(reached=None, waiting=17)
    """

    reached: int | None = None  # timestamp of the records that the router writes next
    waiting: int | None = None  # offset of the first label that waits for its observation

    def encoded(self) -> str:
        """Return the text."""
        known = ((name, value) for name, value in self._asdict().items() if value is not None)
        return " ".join(f"{name}={value}" for name, value in known)

    @classmethod
    def decoded(cls, text: str) -> CommitNote:
        """Return the note in a text; words that are not of a note are ignored."""
        words = dict(word.partition("=")[::2] for word in text.split())
        found = {name: words.get(name, "") for name in cls._fields}
        numbers = {name: int(one) for name, one in found.items() if _is_number(one)}
        return cls(**numbers)


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdecimal()


ORIGIN = "abers.origin"
"""The last header of a routed record."""

_ORIGIN, _SIZE = struct.Struct(">BIqq"), struct.Struct(">I")
_PREVIEW = 1_000  # bytes of a value that is too large to be routed
_LABELS, _UNREAD, _BAD_HEADERS, _LOOKED_UP = 1, 2, 4, 8  # bits of the first byte


class RoutedOrigin(NamedTuple):
    """Where a routed record comes from.

    Examples
    --------
    >>> origin = RoutedOrigin(1, 3, 17, 1_700_000_000_000)
    >>> RoutedOrigin.decoded(origin.encoded()) == origin
    True
    """

    which: int  # input: 0 for observations, 1 for labels
    partition: int
    offset: int
    timestamp: int
    unread: bool = False  # the router could not read its model
    bad_headers: bool = False  # its headers could not be decoded, and are lost
    whole: int = 0  # its bytes, if it is too large to be routed: then only its beginning is there
    looked_up: bool = False  # the header before this says what the router found by its id

    def encoded(self) -> bytes:
        """Return the value of the header."""
        which, partition, offset, timestamp, unread, bad_headers, whole, looked_up = self
        bits = which | _UNREAD * unread | _BAD_HEADERS * bad_headers | _LOOKED_UP * looked_up
        size = _SIZE.pack(whole) if whole else b""
        return _ORIGIN.pack(bits, partition, offset, timestamp) + size

    @classmethod
    def decoded(cls, value: bytes | None) -> RoutedOrigin | None:
        """Return the origin in a header; None if it has the wrong size."""
        size = 0 if value is None else len(value)
        if value is None or size not in {_ORIGIN.size, _ORIGIN.size + _SIZE.size}:
            return None
        bits, partition, offset, timestamp = _ORIGIN.unpack_from(value)
        whole = _SIZE.unpack_from(value, _ORIGIN.size)[0] if size > _ORIGIN.size else 0
        return cls(
            bits & _LABELS,
            partition,
            offset,
            timestamp,
            bool(bits & _UNREAD),
            bool(bits & _BAD_HEADERS),
            whole,
            bool(bits & _LOOKED_UP),
        )


def encoded_origins(
    records: Sequence[Record], inputs: Sequence[int], found: Sequence[object] = ()
) -> list[bytes]:
    """Return `RoutedOrigin.encoded` of records with readable models, faster.

    For each record, `found` has the header with what the router found by its id, or None.
    """
    bits = inputs
    if any(found):
        bits = [
            which if one is None else which | _LOOKED_UP
            for which, one in zip(inputs, found, strict=True)
        ]
    return [
        _ORIGIN.pack(which, one.partition, one.offset, one.timestamp)
        for which, one in zip(bits, records, strict=True)
    ]


class RoutedRecord(FetchedRecord):
    """A record of an input, which a router has routed, without its headers."""

    unread: bool  # the router could not read its model
    whole: int  # its bytes, if it was too large to be routed
    found: Headers = ()  # the header with what the router found by its id, if it looked that up

    @classmethod
    def of(cls, record: Record, origin: RoutedOrigin, topic: str) -> RoutedRecord:
        """Return a record of the routed topic as that of the topic that it comes from."""
        own = -1 - origin.looked_up  # headers of the router
        headers: Headers = BadHeaders() if origin.bad_headers else record.headers[:own]
        return cls(
            topic,
            origin.partition,
            origin.offset,
            origin.timestamp,
            record.key,
            record.value,
            headers,
            origin.unread,
            origin.whole,
            record.headers[own:-1],
        )


class Beginning(NamedTuple):
    """What is routed of a record that is too large: a `runtime.transport.Record`."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    value: bytes
    whole: int  # bytes of the record
    key: None = None
    headers: Headers = ()

    @classmethod
    def of(cls, record: Record, whole: int) -> Beginning:
        """Return the beginning of a record of `whole` bytes."""
        value = (record.value or b"")[:_PREVIEW]
        place = record.topic, record.partition, record.offset
        return cls(*place, record.timestamp, value, whole)


def origins(merged: MergedRecords, topics: Sequence[str]) -> MergedRecords:
    """Return records of the routed topic as those of the inputs, which have these names.

    A record that no router wrote stays as it is. All keep their offsets in the routed topic.
    """
    records: list[Record] = []
    inputs: list[int] = []
    for one in merged.records:
        origin = _origin(one.headers)
        if origin is None:
            records.append(one)
            inputs.append(0)
            continue
        records.append(RoutedRecord.of(one, origin, topics[origin.which]))
        inputs.append(origin.which)
    read_at = [one.offset for one in merged.records]
    return merged._replace(records=records, inputs=inputs, read_at=read_at)


def _origin(headers: Headers) -> RoutedOrigin | None:
    if not headers:
        return None
    name, value = headers[-1]
    return RoutedOrigin.decoded(value) if name == ORIGIN else None


class Application(NamedTuple):
    """An application: what all of its tasks share."""

    id: str  # also the name of the consumer group
    inputs: Sequence[str]  # topics of observations and, if there is another, of labels
    changelog: str  # its topic
    settings: Settings
    outcomes: bool  # whether they are written
    key: bytes | None  # secret that seals the state
    sources: Sequence[str] = ()  # topics that routers route to the only input; empty without them
    generation: int = 1  # of the state, which a change of its number of partitions raises
    finds_models: bool = False  # of labels by their ids, so these have the keys of observations

    @classmethod
    def of(cls, config: Config, generation: int = 1) -> Application:
        """Return the application of a configuration; raises a ConfigError without [kafka].

        Its topics have the names of the generation; see `kafka.generations`.
        """
        kafka = kafka_section(config)
        topics = [kafka.observations]
        if config.second_input and kafka.labels is not None:
            topics.append(kafka.labels)
        routed = kafka.route_by is not None
        return cls(
            kafka.application_id,
            [kafka.routed] if routed else topics,
            kafka.changelog,
            config.settings(),
            kafka.outcomes is not None,
            state_key(file=config.state.key_file),
            topics if routed else (),
            generation,
            config.finds_models,
        )

    @property
    def state_id(self) -> str:
        """The name of the state in snapshots."""
        return name_at(self.id, self.generation)

    @property
    def router_group(self) -> str:
        """The consumer group of the routers."""
        return f"{self.id}-router"

    def seen(self, merged: MergedRecords) -> MergedRecords:
        """Return records as those of the topics that users write."""
        return origins(merged, self.sources) if self.sources else merged

    def input_partitions(self, partition: int) -> list[TopicPartition]:
        """Return the input partitions of a task."""
        return [TopicPartition(topic, partition) for topic in self.inputs]

    def changelog_partition(self, partition: int) -> TopicPartition:
        """Return the changelog partition of a task."""
        return TopicPartition(self.changelog, partition)

    def new_processor(self) -> Processor:
        """Return an empty processor."""
        return Processor(self.settings, outcomes=self.outcomes, front="toml")

    def restore_processor(self, blob: bytes, scope: str) -> Processor:
        """Restore a processor that is sealed for a scope; raises a StateError if that fails."""
        return Processor.restore(
            blob, self.settings, key=self.key, owner=scope, outcomes=self.outcomes, front="toml"
        )

    def snapshot(self, processor: Processor, checkpoint: Checkpoint) -> Iterator[Piece]:
        """Return the snapshot of a processor, in pieces, sealed for its checkpoint."""
        scope = snapshot_scope(
            checkpoint.application_id, checkpoint.partition, checkpoint.changelog_offset
        )
        return processor.snapshot_pieces(msgspec.to_builtins(checkpoint), self.key, scope)


def name_at(name: str, generation: int) -> str:
    """Return the name of a topic or of a state at a generation.

    Examples
    --------
    >>> name_at("app.routed", 1), name_at("app.routed", 2)
    ('app.routed', 'app.routed-2')
    """
    return name if generation == 1 else f"{name}-{generation}"


def kafka_section(config: Config) -> KafkaSection:
    """Return the section [kafka]; raises a ConfigError without it."""
    if config.kafka is None:
        raise ConfigError(["kafka: missing; a section [kafka] names the topics"])
    return config.kafka

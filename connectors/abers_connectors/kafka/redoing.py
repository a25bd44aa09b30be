"""What topics tell, done once more: from the inputs anew, or from the changelog as it was.

Governing rule: there is one processor a shard, as in the service; the inputs are
decided anew, in the order of their times, while what the changelog tells was
decided then, and comes out as it did, byte by byte.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from abers.exceptions import StateError
from abers.stream import Processor
from abers_connectors.kafka.changelog import Assembler
from abers_connectors.kafka.decoding import Decoder
from abers_connectors.kafka.home import snapshot_of
from abers_connectors.kafka.shard import NONE, Place, Shard
from abers_connectors.kafka.snapshots import Snapshots
from abers_connectors.kafka.targets import Made
from abers_connectors.kafka.transport import Partition
from abers_connectors.state_key import state_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers_connectors.config import Config
    from abers_connectors.kafka.history import History, Read, Span
    from abers_connectors.kafka.transport import Record
    from abers_connectors.pace import Pace

__all__ = ["Afresh", "Batch", "Logged", "Redone"]


class Batch(NamedTuple):
    """What came of some records.

    Parameters
    ----------
    records
        How many they are.
    made
        What came of them, by shard.
    places
        Place of the record of each prediction among all of them, for each of `made`.
    """

    records: int
    made: Sequence[Made]
    places: Sequence[Sequence[int]]


class Redone(Protocol):
    """Something that was done once more."""

    @property
    def processors(self) -> Sequence[Processor]:
        """One a shard."""
        ...

    def batches(self) -> Iterator[Batch]:
        """Do it."""
        ...

    def fraction(self) -> float | None:
        """Give the share of what is read that is done; None if there is nothing."""
        ...

    def following(self, shard: int) -> tuple[int, int]:
        """Give the offsets of both inputs that follow what was done."""
        ...


class _Passed:
    """How much of some parts of partitions is done; transactions leave offsets without a record."""

    def __init__(self, spans: Mapping[Partition, Span]) -> None:
        self._spans = spans
        self._at = {one: span.start for one, span in spans.items()}

    def up_to(self, offsets: Mapping[Partition, int]) -> None:
        """Note the last record that is done of each partition."""
        self._at |= {one: offset + 1 for one, offset in offsets.items()}

    def all(self) -> None:
        """Note that nothing follows."""
        self._at = {one: span.end for one, span in self._spans.items()}

    def fraction(self) -> float | None:
        """Give the share of the offsets."""
        whole = sum(span.end - span.start for span in self._spans.values())
        done = sum(self._at[one] - span.start for one, span in self._spans.items())
        return done / whole if whole else None


class Afresh:
    """The inputs, decided anew.

    Parameters
    ----------
    config
        What they mean.
    history
        Reads them.
    spans
        The part of them.
    pace
        How fast; None is as fast as can be.
    """

    def __init__(
        self, config: Config, history: History, spans: Mapping[Partition, Span], pace: Pace | None
    ) -> None:
        settings = config.settings()
        self.processors = [Processor(settings, outcomes=False) for _ in range(history.shards)]
        self._decoder = Decoder(config, partitions=history.shards)
        self._history, self._spans, self._pace = history, spans, pace
        self._topics, self._passed = [*dict.fromkeys(one.topic for one in spans)], _Passed(spans)
        self._most = 2000 if config.kafka is None else config.kafka.max_records

    def batches(self) -> Iterator[Batch]:
        """Take the records, those together that are due together."""
        reads = self._history.read(self._spans)
        while batch := list(islice(reads, self._most)):
            if self._pace is None:
                yield self._batch(batch)
                continue
            for due in self._pace.due([one.record.timestamp for one in batch]):
                yield self._batch(batch[due])
        self._passed.all()

    def fraction(self) -> float | None:
        """Give the share of the inputs that is taken."""
        return self._passed.fraction()

    def following(self, shard: int) -> tuple[int, int]:
        """Give where the part ends."""
        ends = [span.end for one, span in self._spans.items() if one.number == shard]
        return ends[0], ends[1] if len(ends) > 1 else NONE

    def _batch(self, reads: Sequence[Read]) -> Batch:
        parts: dict[int, list[int]] = {}
        for place, one in enumerate(reads):
            parts.setdefault(one.shard, []).append(place)
        made, places = [], []
        for shard, rows in parts.items():
            came, order = self._made(shard, [reads[row] for row in rows])
            made.append(came)
            places.append([rows[row] for row in order])
        self._passed.up_to(
            {Partition(self._topics[one.which], one.shard): one.record.offset for one in reads}
        )
        return Batch(len(reads), made, places)

    def _made(self, shard: int, reads: Sequence[Read]) -> tuple[Made, list[int]]:
        records: list[Record] = [one.record for one in reads]
        decoded = self._decoder.decode(records, [one.which for one in reads])
        if not len(decoded.events):
            return Made(shard, None, decoded, records), []
        outputs = self.processors[shard].take(decoded.events)
        order = [decoded.rows[row] for row in outputs.predicted.tolist()]
        return Made(shard, outputs, decoded, records), order


class Logged:
    """The changelog, as it was decided.

    Parameters
    ----------
    config
        Of the service that wrote it.
    history
        Reads it.
    spans
        The part of it.
    snapshots
        Where those of the service are, for a changelog whose beginning is gone, or a part that
        begins later; None if nowhere.
    """

    def __init__(
        self,
        config: Config,
        history: History,
        spans: Mapping[Partition, Span],
        snapshots: Snapshots | None,
    ) -> None:
        self._config, self._history, self._told = config, history, spans
        self._topic = next(iter(spans)).topic
        self._whole = history.part()
        self._passed = _Passed({})
        self._shards = [self._before(one, span, snapshots) for one, span in spans.items()]

    @property
    def processors(self) -> Sequence[Processor]:
        """One a shard."""
        return [shard.processor for shard in self._shards]

    def following(self, shard: int) -> tuple[int, int]:
        """Give where the last batch of the part says that the inputs go on."""
        return self._shards[shard].place.following

    def fraction(self) -> float | None:
        """Give the share of the changelog that is redone, with what comes before the part."""
        return self._passed.fraction()

    def batches(self) -> Iterator[Batch]:
        """Redo the batches; of those before the part nothing is told."""
        spans = {
            one: span._replace(start=shard.place.changelog)
            for (one, span), shard in zip(self._told.items(), self._shards, strict=True)
        }
        self._passed = _Passed(spans)
        assemblers = [Assembler() for _ in spans]
        for shard, _, record in self._history.read(spans):
            where = Partition(self._topic, shard)
            try:
                applied = assemblers[shard].add(record.value or b"")
                outputs = None if applied is None else self._shards[shard].redo(applied)
            except StateError as error:
                msg = f"{where.topic}[{shard}]@{record.offset}: {error}"
                raise StateError(msg) from None
            self._passed.up_to({where: record.offset})
            if applied is None:
                continue
            told = outputs is not None and record.offset >= self._told[where].start
            yield Batch(
                len(applied.inputs) if record.offset >= self._told[where].start else 0,
                [Made(shard, outputs)] if told else [],
                [range(len(outputs.predictions))] if told and outputs is not None else [],
            )
        self._passed.all()

    def _before(self, part: Partition, span: Span, snapshots: Snapshots | None) -> Shard:
        """Give the state from which a part can be redone."""
        start, number = self._whole[part].start, part.number
        app = "" if self._config.kafka is None else self._config.kafka.app
        why = "there is no snapshot"
        for name, blob in () if snapshots is None else snapshots.newest(number):
            offset = Snapshots.offset(name)
            if not start <= offset <= span.start:
                why = f"snapshot {name} goes on at @{offset}"
                continue
            try:
                processor = Processor.restore(
                    blob,
                    self._config.settings(),
                    key=state_key(),
                    place=snapshot_of(app, number, offset),
                    outcomes=False,
                )
                place = Place.of(processor.position).expected(app, number, offset)
            except StateError as error:
                why = f"snapshot {name} cannot be used ({error})"
                continue
            return Shard(processor, place)
        if start == 0:
            processor = Processor(self._config.settings(), outcomes=False)
            return Shard(processor, Place(app, number, 0, 0, (NONE, NONE)))
        msg = (
            f"{part.topic}[{number}] begins at @{start}, and no state is known from there up to "
            f"@{span.start}, where the part begins: {why}; give --since a later time, or name the "
            "place of the snapshots in state.path"
        )
        raise StateError(msg)

"""`abers replay` of the topics of a configuration.

Predictions go to a file, or to a topic that no service uses. A replay never writes to a topic that
the service reads or writes. Each record keeps the timestamp of the record that caused
it; if the topic would not keep it, a warning says so before the first write.

A replay starts with an empty state, and changes neither the service nor its group, topics and
snapshots. Its final state can be saved for a service, which continues where the replay ended.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import msgspec
import typer

from abers.exceptions import ConfigError, DeadLettersError, ParameterError, RecordError
from abers.stream import make_task
from abers.stream.cells import BadRecordError
from abers.stream.outputs import DeadLetterRecord
from abers.stream.times import TimeReader
from abers_connectors import terminal
from abers_connectors.config.model import load
from abers_connectors.config.sections import dead_letters_beside
from abers_connectors.config.values import duration, moment
from abers_connectors.dashboard.replay_document import FinishedReplay, observed
from abers_connectors.dashboard.server import ReplayPage
from abers_connectors.files import STANDARD, FileUse, require_apart
from abers_connectors.kafka.connection import (
    client_settings,
    connection_errors,
    headers_to_client,
    new_producer,
    open_admin,
)
from abers_connectors.kafka.generations import generation_in_use
from abers_connectors.kafka.topic_history import TimeOrOffset, TopicHistory
from abers_connectors.kafka.topics import NEEDED, topic_configs
from abers_connectors.replay.options import given, keys_of
from abers_connectors.replay.run import DeadLetterLimit, Pace, parse_speed
from abers_connectors.replay.summary import Summary, summarize
from abers_connectors.runtime.application import Checkpoint, initial_state_scope, kafka_section
from abers_connectors.runtime.reprocessor import ChangelogReplayer, InputReprocessor
from abers_connectors.runtime.serializer import OutputRecords, Serializer
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.schemas.outputs import as_json, registered_encoder
from abers_connectors.secret import KEYLESS, state_key
from abers_connectors.sinks.alarm_record import AlarmRecord
from abers_connectors.sinks.base import LazySink, SinkOptions, open_sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers.pages.blocks import Detail
    from abers.stream import Outputs, Processor, Settings
    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.replay.options import ReplayOptions
    from abers_connectors.runtime.reprocessor import ReprocessedBatch, Reprocessor, TaskOutputs
    from abers_connectors.schemas.outputs import Encoder
    from abers_connectors.sinks.base import Sink

__all__ = ["replay"]

_TIMEOUT = 60  # seconds of writing a batch
_MAX_REQUEST_BYTES = 1 << 20  # the default of the client
_FOREVER = -1

Item: TypeAlias = Any
"""A prediction as a target takes it; bytes are a dead letter instead."""


class ReplayTarget(Protocol):
    """Writes predictions."""

    def items(self, part: TaskOutputs) -> list[Item]:
        """Return the predictions as items for `write`."""
        ...

    def write(self, items: Sequence[Item]) -> list[bytes]:
        """Write predictions; return the dead letters of those that are too large."""
        ...

    def close(self) -> None:
        """Finish writing."""
        ...

    def discard(self) -> None:
        """Stop writing, and remove what can be removed."""
        ...


class FileTarget:
    """A file, which appears when it is complete, or standard output."""

    def __init__(self, path: str, settings: Settings) -> None:
        self._sink = open_sink(path, make_task(settings).prediction)

    def items(self, part: TaskOutputs) -> list[Item]:
        """Return the rows."""
        return [] if part.outputs is None else [*part.outputs.predictions]

    def write(self, items: Sequence[Item]) -> list[bytes]:
        """Write rows; none is too large."""
        self._sink.write(items)
        return []

    def close(self) -> None:
        """Complete the file."""
        self._sink.close()

    def discard(self) -> None:
        """Remove the file."""
        self._sink.discard()


class TopicTarget:
    """A topic; what was written before a failure stays there.

    Before the first write, `warn` is called with a sentence about each loss that the settings of
    the topic cause. `encode` encodes predictions.
    """

    def __init__(
        self,
        topic: str,
        settings: Mapping[str, Any],
        compression: str,
        warn: Callable[[str], None],
        encode: Encoder = as_json,
    ) -> None:
        self._encode = encode
        self._topic, self._settings, self._warn = topic, settings, warn
        self._started = False
        with connection_errors(settings):
            self._config = _config_of(topic, settings)
            self._producer = new_producer(
                settings,
                compression,
                batch_size=1 << 18,
                linger_ms=50,
                max_request_size=_MAX_REQUEST_BYTES,
            )
            self._count = len(self._producer.partitions_for(topic))
        largest = int(self._config.get("max.message.bytes", _MAX_REQUEST_BYTES))
        self._serializer = Serializer(
            max_bytes=min(largest, _MAX_REQUEST_BYTES), encoders={"predictions": encode}
        )

    def items(self, part: TaskOutputs) -> list[Item]:
        """Return the arguments of the client for each record, or its dead letter."""
        if part.outputs is None:
            return []
        number = part.partition % self._count
        records, too_large = self._serialized(part.outputs, part)
        items: list[Item] = [
            (self._topic, value, key, headers_to_client(headers), number, timestamp)
            for key, value, headers, timestamp in zip(*records[:4], strict=True)
        ]
        for row, dead in too_large.items():
            items[row] = dead
        return items

    def _serialized(
        self, outputs: Outputs, part: TaskOutputs
    ) -> tuple[OutputRecords, dict[int, bytes]]:
        if part.decoded is not None:
            return self._serializer.predictions(outputs, part.decoded, part.records)
        predictions, size = outputs.predictions, len(outputs.predictions)
        known = [at if at >= 0 else None for at in predictions.columns["time"].tolist()]
        values = self._encode(predictions)  # a changelog has no keys and headers
        return OutputRecords([None] * size, values, [()] * size, known), {}

    def write(self, items: Sequence[Item]) -> list[bytes]:
        """Write records, and wait until they are written."""
        dead = [one for one in items if isinstance(one, bytes)]
        records = [one for one in items if not isinstance(one, bytes)]
        if items and not self._started:
            self._started = True
            times = [at for *_, at in records if at is not None]
            for loss in _losses(self._topic, self._config, min(times, default=None)):
                self._warn(loss)
        with connection_errors(self._settings):
            sent = [self._producer.send(*one) for one in records]
            self._producer.flush(_TIMEOUT)
            for future in sent:
                future.get(0)
        return dead

    def close(self) -> None:
        """Close the client."""
        self._producer.close()

    def discard(self) -> None:
        """Close the client without waiting."""
        self._producer.close(timeout=0)


def _losses(topic: str, config: Mapping[str, str], oldest: int | None) -> Iterator[str]:
    """Describe the records and times that a topic will not keep, if `oldest` is the first time."""
    if config.get("message.timestamp.type") == "LogAppendTime":
        yield (
            f"{topic} gives records the time of their writing (message.timestamp.type is "
            "LogAppendTime), so event times are in the predictions only"
        )
        return
    kept = int(config.get("retention.ms", _FOREVER))
    deletes = "delete" in config.get("cleanup.policy", "delete") and kept != _FOREVER
    if deletes and oldest is not None and oldest < time.time() * 1000 - kept:
        yield (
            f"{topic} deletes records older than {duration(kept)} (retention.ms), and the first "
            f"are of {moment(oldest)}; set retention.ms to -1 to keep them"
        )


def _config_of(topic: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the configuration of a topic; raise a ParameterError if it does not exist."""
    with open_admin(settings) as admin:
        if topic not in admin.list_topics():
            msg = f"--output: there is no topic {topic}; create it with retention.ms = -1"
            raise ParameterError(msg)
        config = topic_configs(admin, [topic])[topic]
    return {name: str(value) for name, value in config.items() if value is not None}


def require_unused(topic: str, kafka: KafkaSection) -> None:
    """Raise a ParameterError if a service of this configuration reads or writes a topic."""
    for name in NEEDED:
        if getattr(kafka, name) == topic:
            msg = f"--output: {topic} is kafka.{name}, which belongs to the service; "
            msg += "write to another topic"
            raise ParameterError(msg)


CHANGELOG = "changelog"
"""The value of --from for the changelog."""

_TOPIC = "kafka:"
_UNMATCHED = "unknown-id"
_NO_LIMIT = 1 << 62  # bytes


class TopicReplay:
    """A replay, with the number of records, the dead letters by reason, and all alarms so far.

    If only a part of the history is processed (`partly`), labels with observations before it are no
    dead letters. Each observer is called with a processor and its outputs, for each part of a
    batch.
    """

    def __init__(
        self,
        reprocessor: Reprocessor,
        target: ReplayTarget,
        dead_letters: Sink,
        tolerance: DeadLetterLimit,
        *,
        partly: bool,
    ) -> None:
        self.records = 0
        self.dead: Counter[str] = Counter()
        self.alarms: list[AlarmRecord] = []
        self.observers: list[Callable[[Processor, Outputs], object]] = []
        self.reprocessor, self._target, self._dead_letters = reprocessor, target, dead_letters
        self._tolerance, self._partly = tolerance, partly
        self._serializer = Serializer(max_bytes=_NO_LIMIT)

    def run(self) -> Iterator[int]:
        """Process all records, and yield their number so far after each batch."""
        for batch in self.reprocessor.batches():
            self._write(batch)
            self.records += batch.records
            self._tolerance.require(self.dead, self.records)
            yield self.records

    def _write(self, batch: ReprocessedBatch) -> None:
        """Write the outputs of a batch in input order, and call the observers."""
        items: list[tuple[int, Any]] = []
        dead: list[bytes] = []
        for part, rows in zip(batch.parts, batch.rows, strict=True):
            items += zip(rows, self._target.items(part), strict=True)
            if part.outputs is not None:
                self.alarms += [AlarmRecord.of(alarm) for _, alarm in part.outputs.alarms]
            if part.decoded is not None:
                found = self._serializer.dead_letters(part.outputs, part.decoded, part.records)
                dead += found.values
        items.sort(key=itemgetter(0))
        dead += self._target.write([item for _, item in items])
        self._write_dead([msgspec.json.decode(one, type=DeadLetterRecord) for one in dead])
        for part in batch.parts:
            if part.outputs is not None:
                for observer in self.observers:
                    observer(self.reprocessor.processors[part.partition], part.outputs)

    def _write_dead(self, dead: list[DeadLetterRecord]) -> None:
        rows = [one for one in dead if not (self._partly and one.reason == _UNMATCHED)]
        if rows and self._tolerance.stop:
            first = rows[0]
            msg = f"{first.topic}[{first.partition}]@{first.offset}: {first.detail}"
            raise RecordError(msg)
        self.dead.update(row.reason for row in rows)
        if rows:
            self._dead_letters.write(rows)


class _Progress(NamedTuple):
    """Name and progress of the replay, for the progress bar."""

    name: str
    fraction: Callable[[], float | None]


def replay(options: ReplayOptions, *, as_json: bool = False, detail: Detail = "usual") -> None:
    """Run a replay of topics, and print its answers, or its summary as JSON.

    They go to standard error if the predictions go to standard output.
    """
    config = load(options.stream, flags=keys_of(options), front="flag")
    kafka = _section(config, options)
    output = options.output or STANDARD
    _require_files_apart(output, options)
    saved = _state_store(config, kafka, options)
    multiple = parse_speed(options.speed)
    pace = None if multiple is None else Pace(multiple)
    with ExitStack() as last:
        with ExitStack() as stack:
            reprocessor = _reprocessor(config, kafka, options, pace, stack)
            zone = config.input.timezone or "UTC"
            page = last.enter_context(ReplayPage(options.stream, zone)) if options.live else None
            running = stack.enter_context(_opened(config, kafka, output, reprocessor, options))
            counts = running.run() if page is None else _with_page(running, page, pace)
            progress = _Progress(options.from_ or kafka.observations, reprocessor.fraction)
            started = perf_counter()
            with terminal.watching(progress, hidden=output == STANDARD) as watched:
                for _ in watched(counts):
                    pass
            seconds = perf_counter() - started
        if saved is not None:
            key = state_key(file=config.state.key_file)
            _save(saved, kafka.application_id, reprocessor, key)
        summary = _summary_of_replay(running, seconds)
        if as_json:
            typer.echo(msgspec.json.encode(summary), err=output == STANDARD)
        else:
            zone = config.input.timezone or "UTC"
            processors = reprocessor.processors
            run = FinishedReplay(
                options.stream, None, progress.name, zone, processors, summary, observed(processors)
            )
            _print(run, options, output, detail)
        if page is not None:
            page.stay()


def _section(config: Config, options: ReplayOptions) -> KafkaSection:
    """Return the section [kafka], after a check of the arguments."""
    of_files = {
        "compare": options.compare,
        "report": options.report,
        "model": options.models or None,
        "workers": None if options.workers == 1 else options.workers,
    }
    for option in given(of_files):
        msg = f"--{option} goes with files, and {options.stream} has topics"
        raise ParameterError(msg)
    if config.kafka is None:
        msg = f"{options.stream} has no [kafka]"
        raise ParameterError(msg)
    if options.output is not None and options.output.startswith(_TOPIC):
        require_unused(options.output.removeprefix(_TOPIC), config.kafka)
    if options.from_ == CHANGELOG and options.speed != "max":
        msg = "--speed goes with inputs; a changelog is applied as fast as possible"
        raise ParameterError(msg)
    return config.kafka


def _reprocessor(
    config: Config, kafka: KafkaSection, options: ReplayOptions, pace: Pace | None, stack: ExitStack
) -> Reprocessor:
    """Open the history, and return its reprocessor."""
    since, until = _bound("since", options.since), _bound("until", options.until)
    if since and until and None not in (since.time, until.time) and since >= until:
        msg = "--until is not after --since, so nothing is left; give a later time"
        raise ParameterError(msg)
    from_changelog = options.from_ == CHANGELOG
    if from_changelog:
        in_use = generation_in_use(config)
        kafka = kafka_section(in_use.config)
    elif kafka.route_by is not None:
        msg = (
            "a replay does not route the records of the inputs by their models, as "
            "kafka.route_by says; replay what the tasks have taken, by --from changelog"
        )
        raise ParameterError(msg)
    inputs = [options.from_ or kafka.observations, *([kafka.labels] if kafka.labels else [])]
    history = TopicHistory(
        [kafka.changelog] if from_changelog else inputs,
        client_settings(kafka),
        timeout=kafka.stall_timeout / 1000,
    )
    stack.callback(history.close)
    ranges = history.ranges(since, until)
    if from_changelog:
        path = config.state.path
        snapshots = None if path is None else SnapshotStore(path, in_use.application.state_id)
        return ChangelogReplayer(in_use.application, history, ranges, snapshots)
    if pace is None:
        return InputReprocessor(config, history, ranges)
    return InputReprocessor(config, history, ranges, pace.due)


def _with_page(running: TopicReplay, page: ReplayPage, pace: Pace | None) -> Iterator[int]:
    """Run a replay with a live page, which is also updated while no record is due."""
    if pace is not None:
        pace.meanwhile(page.refresh)
    page.watch(running.reprocessor.processors, running.dead, running.reprocessor.fraction)
    running.observers.append(page.take)
    for records in running.run():
        page.refresh()
        yield records


@contextmanager
def _opened(
    config: Config,
    kafka: KafkaSection,
    output: str,
    reprocessor: Reprocessor,
    options: ReplayOptions,
) -> Iterator[TopicReplay]:
    """Open a replay in a `with` block; its outputs are discarded if that fails."""
    with ExitStack() as left:
        target = _target(config, kafka, output)
        left.callback(target.discard)
        beside = _beside(output)
        derived = SinkOptions(derived=True)
        dead_letters = LazySink(lambda: open_sink(beside, DeadLetterRecord, derived), beside)
        left.callback(dead_letters.discard)
        stops = config.output.on_bad_record == "stop"
        tolerance = DeadLetterLimit(stops, config.output.max_dead_letter_ratio)
        partly = options.since is not None
        try:
            yield TopicReplay(reprocessor, target, dead_letters, tolerance, partly=partly)
            target.close()
        except DeadLettersError:  # the dead letters show what is wrong
            dead_letters.close()
            raise
        dead_letters.close()
        left.pop_all()


def _target(config: Config, kafka: KafkaSection, output: str) -> ReplayTarget:
    if not output.startswith(_TOPIC):
        return FileTarget(output, config.settings())
    topic, kind = output.removeprefix(_TOPIC), make_task(config.settings()).prediction
    encode = registered_encoder(config, topic, kind)
    return TopicTarget(topic, client_settings(kafka), kafka.compression, terminal.say, encode)


def _require_files_apart(output: str, options: ReplayOptions) -> None:
    """Raise a ParameterError if an output would overwrite the configuration."""
    uses = [
        FileUse("the configuration", options.stream, reads=True),
        FileUse("the dead letters", _beside(output), derived=True),
    ]
    if not output.startswith(_TOPIC):
        uses.append(FileUse("--output", output))
    require_apart(uses)


def _beside(output: str) -> str:
    return dead_letters_beside(STANDARD if output.startswith(_TOPIC) else output)


def _bound(option: str, text: str | None) -> TimeOrOffset | None:
    """Parse a time, or an offset after "@"."""
    if text is None:
        return None
    if text.startswith("@"):
        if text[1:].isdecimal():
            return TimeOrOffset(offset=int(text[1:]))
        msg = f"--{option}: {text!r} is not an offset; write @ and a whole number"
        raise ParameterError(msg)
    try:
        return TimeOrOffset(time=TimeReader().one(text))
    except BadRecordError as error:
        msg = f"--{option}: {error.said('flag')}"
        raise ParameterError(msg) from None


def _state_store(
    config: Config, kafka: KafkaSection, options: ReplayOptions
) -> SnapshotStore | None:
    """Open the empty store in which to save the state."""
    if options.save_state is None:
        return None
    if config.settings().learner is not None and state_key(file=config.state.key_file) is None:
        raise ConfigError([f"--save-state: {KEYLESS}"])
    snapshots = SnapshotStore(options.save_state, kafka.application_id)
    if found := snapshots.stored():
        msg = f"--save-state: there is a state already, {found[0].name}; name another folder or URL"
        raise ParameterError(msg)
    return snapshots


def _save(snapshots: SnapshotStore, app: str, reprocessor: Reprocessor, key: bytes | None) -> None:
    """Save the state of each partition as an initial state of a service."""
    for number, processor in enumerate(reprocessor.processors):
        checkpoint = Checkpoint(
            app,
            number,
            0,
            0,
            reprocessor.next_offsets(number),
            partitions=len(reprocessor.processors),
            counts=reprocessor.counts(number),
        )
        position, scope = msgspec.to_builtins(checkpoint), initial_state_scope(app, number)
        snapshots.save(number, 0, processor.snapshot(position, key, scope))


def _summary_of_replay(running: TopicReplay, seconds: float) -> Summary:
    processors = running.reprocessor.processors
    events = sum(one.counters["observations"] + one.counters["labels_in"] for one in processors)
    summary = summarize(processors, running.records, running.dead, events, seconds)
    return msgspec.structs.replace(summary, alarms=running.alarms)


def _print(run: FinishedReplay, options: ReplayOptions, output: str, detail: Detail) -> None:
    """Print answers, notes, and where the outputs and the state are."""
    outputs = {"predictions": output, "dead_letters": _beside(output)}
    terminal.show_finished(run, outputs, detail)
    if options.save_state is not None and detail != "answers":
        terminal.say(
            f"The state is in {options.save_state}; start a service from it by "
            f"abers run {options.stream} --initial-state {options.save_state}"
        )

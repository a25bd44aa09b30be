"""`abers replay` of the topics of a configuration.

A replay starts with an empty state, and changes neither the service nor its group, topics and
snapshots. Its final state can be saved for a service, which continues where the replay ended.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import typer

from abers.exceptions import ConfigError, DeadLettersError, ParameterError, RecordError
from abers.stream import make_task
from abers.stream.cells import BadRecordError
from abers.stream.dead_letter_record import DeadLetterRecord
from abers.stream.times import TimeReader
from abers_connectors import terminal
from abers_connectors.config.model import load
from abers_connectors.config.sections import dead_letters_beside
from abers_connectors.dashboard.finished_replay import FinishedReplay, observed
from abers_connectors.dashboard.stream_pages import ReplayPage
from abers_connectors.files import aliases
from abers_connectors.files.formats import STANDARD
from abers_connectors.kafka.generations import generation_in_use
from abers_connectors.kafka.replay_target import FileTarget, TopicTarget, require_unused
from abers_connectors.kafka.settings import client_settings
from abers_connectors.kafka.topic_history import TimeOrOffset, TopicHistory
from abers_connectors.replay.options import given, keys_of
from abers_connectors.replay.pace import Pace, parse_speed
from abers_connectors.replay.run import DeadLetterLimit
from abers_connectors.replay.summary import Summary, summarize
from abers_connectors.runtime.application import kafka_section
from abers_connectors.runtime.checkpoint import Checkpoint, initial_state_scope
from abers_connectors.runtime.reprocessor import ChangelogReplayer, InputReprocessor
from abers_connectors.runtime.serializer import Serializer
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.schemas.output_encoder import registered_encoder
from abers_connectors.sinks.alarm_record import AlarmRecord
from abers_connectors.sinks.base import LazySink, SinkOptions
from abers_connectors.sinks.registry import open_sink
from abers_connectors.state_key import KEYLESS, state_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from abers.pages.blocks import Detail
    from abers.stream import Outputs, Processor
    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.kafka.replay_target import ReplayTarget
    from abers_connectors.replay.options import ReplayOptions
    from abers_connectors.runtime.reprocessor import ReprocessedBatch, Reprocessor
    from abers_connectors.sinks.base import Sink

__all__ = ["TopicReplay", "replay"]

CHANGELOG = "changelog"
"""The value of --from for the changelog."""

_TOPIC = "kafka:"
_UNMATCHED = "unknown-id"
_UNLIMITED = 1 << 62  # bytes


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
        self._serializer = Serializer(max_bytes=_UNLIMITED)

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
    """Run a replay with a live page, which is updated also while no record is due."""
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
        aliases.FileUse("the configuration", options.stream, reads=True),
        aliases.FileUse("the dead letters", _beside(output), derived=True),
    ]
    if not output.startswith(_TOPIC):
        uses.append(aliases.FileUse("--output", output))
    aliases.require_apart(uses)


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

"""`abers replay` of the topics of a configuration.

Governing rule: a replay begins with an empty state and leaves the service, its
group, its topics and its snapshots as they are; what it found can be handed over
to a service, which goes on where the replay ended.
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
from abers_connectors import terminal, values
from abers_connectors._config_checks import dead_letters_beside
from abers_connectors.alarms import AlarmRecord
from abers_connectors.config import load
from abers_connectors.files import aliases
from abers_connectors.files.lazy import LazySink
from abers_connectors.files.naming import STANDARD
from abers_connectors.files.writing import open_sink
from abers_connectors.kafka.client_settings import client_settings
from abers_connectors.kafka.history import History, Moment
from abers_connectors.kafka.home import seed_of
from abers_connectors.kafka.redoing import Afresh, Logged
from abers_connectors.kafka.shard import Place
from abers_connectors.kafka.snapshots import Snapshots
from abers_connectors.kafka.targets import FileTarget, TopicTarget, require_apart
from abers_connectors.kafka.wording import DeadRecord, Wording
from abers_connectors.live.replay import ReplayPage
from abers_connectors.pace import Pace, speed
from abers_connectors.records import BadRecordError
from abers_connectors.replaying import require_in_file
from abers_connectors.running import Tolerance
from abers_connectors.state_key import KEYLESS, state_key
from abers_connectors.summary import Summary, put_together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers.stream import Outputs, Processor
    from abers_connectors.config import Config, Kafka
    from abers_connectors.files.base import FileSink
    from abers_connectors.kafka.redoing import Batch, Redone
    from abers_connectors.kafka.targets import Target
    from abers_connectors.kafka.wording import Outgoing
    from abers_connectors.replaying import Words

__all__ = ["Replay", "replay"]

CHANGELOG = "changelog"
"""What --from says for it."""

_TOPIC = "kafka:"
_WAITED = "unknown-id"
_NO_LIMIT = 1 << 62  # bytes


class Replay:
    """A replay; a context manager that closes what it writes, or discards it if something fails.

    Parameters
    ----------
    redone
        What is done once more.
    target
        Takes the predictions.
    letters
        Takes the dead letters.
    tolerance
        How many dead letters are too many.
    partly
        Whether it is a part of history only: then labels whose observations came before it are
        no dead letters.

    Attributes
    ----------
    redone
        What is done once more.
    records, dead, alarms
        How many records that was, how many dead letters by reason, and all alarms.
    onlookers
        Called with a processor and what it put out.
    """

    def __init__(
        self,
        redone: Redone,
        target: Target,
        letters: FileSink,
        tolerance: Tolerance,
        *,
        partly: bool,
    ) -> None:
        self.records = 0
        self.dead: Counter[str] = Counter()
        self.alarms: list[AlarmRecord] = []
        self.onlookers: list[Callable[[Processor, Outputs], object]] = []
        self.redone, self._target, self._letters = redone, target, letters
        self._tolerance, self._partly = tolerance, partly
        self._wording = Wording(max_bytes=_NO_LIMIT)

    def run(self) -> Iterator[int]:
        """Do it, and give the number of records so far after each batch."""
        for batch in self.redone.batches():
            self._take(batch)
            self.records += batch.records
            self._tolerance.require(self.dead, self.records)
            yield self.records

    def _take(self, batch: Batch) -> None:
        items: list[tuple[int, Any]] = []
        dead: list[Outgoing] = []
        for made, places in zip(batch.made, batch.places, strict=True):
            items += zip(places, self._target.items(made), strict=True)
            if made.outputs is not None:
                self.alarms += [AlarmRecord.of(alarm) for _, alarm in made.outputs.alarms]
            if made.decoded is not None:
                dead += self._wording.letters(made.outputs, made.decoded, made.records)
        items.sort(key=itemgetter(0))
        dead += self._target.write([item for _, item in items])
        self._bury([one for one in dead if not (self._partly and one.reason == _WAITED)])
        for made in batch.made:
            if made.outputs is not None:
                for onlooker in self.onlookers:
                    onlooker(self.redone.processors[made.shard], made.outputs)

    def _bury(self, dead: list[Outgoing]) -> None:
        rows = [msgspec.json.decode(one.value, type=DeadRecord) for one in dead]
        if rows and self._tolerance.stop:
            first = rows[0]
            msg = f"{first.topic}[{first.partition}]@{first.offset}: {first.detail}"
            raise RecordError(msg)
        self.dead.update(row.reason for row in rows)
        if rows:
            self._letters.write(rows)


class _Progress(NamedTuple):
    """What a progress bar asks."""

    name: str
    fraction: Callable[[], float | None]


def replay(told: Words, *, as_json: bool = False) -> None:
    """Carry out a replay, and say what came of it.

    Parameters
    ----------
    told
        The words of the command, which name a configuration.
    as_json
        Whether the table is printed as JSON, to standard output unless predictions go there.

    Raises
    ------
    ParameterError
        If the words do not go together, or a topic is not there.
    ConfigError
        If there are mistakes in the configuration, or the brokers refuse it.
    BrokerError
        If no broker answers.
    StateError
        If the changelog cannot be redone.
    DeadLettersError
        If there are too many.
    """
    config = load(told.stream)
    kafka = _section(config, told)
    output = told.output or STANDARD
    _require_files_apart(output, told)
    saved = _place_of_state(config, kafka, told)
    pace = _pace(told)
    with ExitStack() as last:
        with ExitStack() as stack:
            redone = _redone(config, kafka, told, pace, stack)
            page = last.enter_context(ReplayPage(told.stream)) if told.live else None
            running = stack.enter_context(_started(config, kafka, output, redone, told))
            counts = running.run() if page is None else _shown(running, page, pace)
            progress = _Progress(told.from_ or kafka.observations, redone.fraction)
            started = perf_counter()
            with terminal.watching(progress, hidden=output == STANDARD) as watched:
                for _ in watched(counts):
                    pass
            seconds = perf_counter() - started
        if saved is not None:
            _save(saved, kafka.app, redone)
        _say(_summary(running, seconds), redone.processors, told, output, as_json=as_json)
        if page is not None:
            page.stay()


def _section(config: Config, told: Words) -> Kafka:
    """Give the section of topics, if all that is said goes with it."""
    require_in_file(told)
    for option in ("compare", "report"):
        if getattr(told, option) is not None:
            msg = f"--{option} goes with files, and {told.stream} has topics"
            raise ParameterError(msg)
    if config.kafka is None:
        msg = f"{told.stream} has no [kafka]"
        raise ParameterError(msg)
    if told.output is not None and told.output.startswith(_TOPIC):
        require_apart(told.output.removeprefix(_TOPIC), config.kafka)
    if told.from_ == CHANGELOG and told.speed != "max":
        msg = "--speed goes with topics of records; a changelog is redone as fast as can be"
        raise ParameterError(msg)
    return config.kafka


def _pace(told: Words) -> Pace | None:
    multiple = speed(told.speed)
    return None if multiple is None else Pace(multiple)


def _redone(
    config: Config, kafka: Kafka, told: Words, pace: Pace | None, stack: ExitStack
) -> Redone:
    """Find what is to be redone."""
    since, until = _moment("since", told.since), _moment("until", told.until)
    if since and until and None not in (since.time, until.time) and since >= until:
        msg = "--until is not after --since, so nothing is left; give a later one"
        raise ParameterError(msg)
    logged = told.from_ == CHANGELOG
    inputs = [told.from_ or kafka.observations, *([kafka.labels] if kafka.labels else [])]
    history = History(
        [kafka.changelog] if logged else inputs,
        client_settings(kafka),
        patience=kafka.watchdog / 1000,
    )
    stack.callback(history.close)
    spans = history.part(since, until)
    if logged:
        place = config.state.path
        snapshots = None if place is None else Snapshots(place, kafka.app)
        return Logged(config, history, spans, snapshots)
    return Afresh(config, history, spans, pace)


def _shown(running: Replay, page: ReplayPage, pace: Pace | None) -> Iterator[int]:
    """Run it on a page, which moves too while nothing is due, or nothing yet is to be told."""
    if pace is not None:
        pace.meanwhile(page.look)
    page.watch(running.redone.processors, running.dead, running.redone.fraction)
    running.onlookers.append(page.take)
    for records in running.run():
        page.look()
        yield records


@contextmanager
def _started(
    config: Config, kafka: Kafka, output: str, redone: Redone, told: Words
) -> Iterator[Replay]:
    """Open what is written, for a `with` block; it is discarded if something fails there."""
    settings = config.settings()
    with ExitStack() as left:
        target: Target = (
            TopicTarget(
                output.removeprefix(_TOPIC),
                client_settings(kafka),
                kafka.compression,
                terminal.say,
            )
            if output.startswith(_TOPIC)
            else FileTarget(output, settings)
        )
        left.callback(target.discard)
        beside = _beside(output)
        letters = LazySink(lambda: open_sink(beside, DeadRecord, derived=True), beside)
        left.callback(letters.discard)
        stops = config.output.on_bad_record == "stop"
        tolerance = Tolerance(stops, config.output.max_dead_per_1000)
        running = Replay(redone, target, letters, tolerance, partly=told.since is not None)
        try:
            yield running
            target.close()
        except DeadLettersError:  # of too many one wants to see some
            letters.close()
            raise
        letters.close()
        left.pop_all()


def _require_files_apart(output: str, told: Words) -> None:
    """Refuse, with a ParameterError, to write the configuration."""
    uses = [
        aliases.Use("the configuration", told.stream, reads=True),
        aliases.Use("the dead letters", _beside(output), derived=True),
    ]
    if not output.startswith(_TOPIC):
        uses.append(aliases.Use("--output", output))
    aliases.require_apart(uses)


def _beside(output: str) -> str:
    return dead_letters_beside(STANDARD if output.startswith(_TOPIC) else output)


def _moment(option: str, text: str | None) -> Moment | None:
    """Read a time, or the offset that "@" stands before."""
    if text is None:
        return None
    if text.startswith("@"):
        if text[1:].isdecimal():
            return Moment(offset=int(text[1:]))
        msg = f"--{option}: {text!r} is no offset; write @ and a whole number"
        raise ParameterError(msg)
    try:
        return Moment(time=values.time(values.number_or_text(text)))
    except BadRecordError as error:
        msg = f"--{option}: {error}"
        raise ParameterError(msg) from None


def _place_of_state(config: Config, kafka: Kafka, told: Words) -> Snapshots | None:
    """Open the place where the state is to be saved, in which no other may be."""
    if told.save_state is None:
        return None
    if config.learner is not None and state_key() is None:
        raise ConfigError([f"--save-state: {KEYLESS}"])
    snapshots = Snapshots(told.save_state, kafka.app)
    if found := snapshots.stored():
        msg = f"--save-state: there is a state already, {found[0].name}; name another place"
        raise ParameterError(msg)
    return snapshots


def _save(snapshots: Snapshots, app: str, redone: Redone) -> None:
    """Save the state of each shard, as a service starts from it."""
    for number, processor in enumerate(redone.processors):
        place = Place(app, number, 0, 0, redone.following(number))
        blob = processor.snapshot(msgspec.to_builtins(place), state_key(), seed_of(app, number))
        snapshots.save(number, 0, blob)


def _summary(running: Replay, seconds: float) -> Summary:
    processors = running.redone.processors
    events = sum(one.counters["observations"] + one.counters["labels_in"] for one in processors)
    summary = put_together(processors, running.records, running.dead, events, seconds)
    return msgspec.structs.replace(summary, alarms=running.alarms)


def _say(
    summary: Summary, processors: Sequence[Processor], told: Words, output: str, *, as_json: bool
) -> None:
    if as_json:
        typer.echo(msgspec.json.encode(summary), err=output == STANDARD)
        return
    terminal.show_summary(summary, told.stream)
    terminal.show_models(processors)
    terminal.show_outputs(summary, {"predictions": output, "dead_letters": _beside(output)})
    if told.save_state is not None:
        terminal.say(
            f"The state is in {told.save_state}; start a service from it by "
            f"abers run {told.stream} --seed {told.save_state}"
        )

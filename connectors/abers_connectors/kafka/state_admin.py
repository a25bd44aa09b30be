"""`abers state`: status, accounts, rebuild, reset and rescale of an application's state.

A new state has the committed offsets and the end of the changelog, so that a service continues from
it as from any snapshot. Nothing changes while the group has a member, and nothing is published.

`abers state rescale`: the state of an application with routers, in more or fewer partitions. The
states are split by model and joined anew, in snapshots and topics of the next generation. Last, the
offsets of the group are committed on its routed topic, by one request: before it nothing has
changed, and after it the next generation is in use.
"""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from abers.exceptions import AbersError, ConfigError, ParameterError, StateError
from abers.stream.snapshot import write
from abers_connectors.kafka.assembly import snapshot_store
from abers_connectors.kafka.connection import client_settings, open_admin
from abers_connectors.kafka.generations import (
    Generation,
    generation_in_use,
    generation_with_state,
    next_generation,
)
from abers_connectors.kafka.group_members import commit_offsets, require_no_members
from abers_connectors.kafka.topic_checks import create_generation
from abers_connectors.kafka.topic_history import TimeOrOffset, TopicHistory
from abers_connectors.process import Watchdog
from abers_connectors.runtime.application import (
    NO_OFFSET,
    Checkpoint,
    RecordCounts,
    kafka_section,
    snapshot_scope,
)
from abers_connectors.runtime.partition_count import (
    partition_count,
    partition_counts,
    require_partitions,
)
from abers_connectors.runtime.reprocessor import InputReprocessor
from abers_connectors.runtime.rescaled_tasks import SavedTasks, rescaled
from abers_connectors.runtime.restore import PartitionStatus, Restorer
from abers_connectors.runtime.task import last_changelog_record
from abers_connectors.runtime.transport import OffsetRange, open_transport

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers.stream import Processor
    from abers_connectors.config.model import Config
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.rescaled_tasks import RescaledTask, SavedTask
    from abers_connectors.runtime.snapshots import SnapshotStore, StoredSnapshot
    from abers_connectors.runtime.task import StreamTask
    from abers_connectors.runtime.transport import Reader, TopicPartition

__all__ = ["StateAdmin", "open_state_admin", "rescale"]


@contextmanager
def open_state_admin(config: Config) -> Iterator[StateAdmin]:
    """Open the state of an application in a `with` block."""
    if config.kafka is None:
        raise ConfigError(["kafka: there is no section [kafka]; the state of files is one file"])
    watchdog = Watchdog(config.kafka.stall_timeout / 1000)
    with closing(watchdog):
        reader = open_transport(config.kafka, watchdog).reader(config.kafka.application_id)
        with closing(reader):
            found = generation_in_use(config)
            yield StateAdmin(found.config, found.application, reader)


class StateAdmin:
    """The state of an application; see `open_state_admin`."""

    def __init__(self, config: Config, application: Application, reader: Reader) -> None:
        self._config, self._kafka, self._reader = config, kafka_section(config), reader
        self._application = application
        self._snapshots = snapshot_store(config, application)
        self._restorer = Restorer(
            self._application,
            self._reader,
            self._snapshots,
            self._no_state,
            lambda _: False,
            warn=lambda _: None,
        )

    def numbers(self, wanted: Sequence[int] = ()) -> list[int]:
        """Return the wanted numbers of partitions, by default all; raise if one does not exist."""
        count = partition_count(self._reader, self._application)
        if wrong := [number for number in wanted if not 0 <= number < count]:
            msg = f"--partition: there is no partition {wrong[0]}; there are 0 to {count - 1}"
            raise ParameterError(msg)
        return sorted({*wanted}) or [*range(count)]

    def status(self, number: int) -> PartitionStatus:
        """Return the status of a partition; damage is part of it."""
        log = self._application.changelog_partition(number)
        offsets, unread = self._reader.offset_range(log), list[str]()
        stored = self._stored(unread)
        checked = (
            self._restorer.checked_snapshots(number, offsets, failed=unread.append)
            if stored
            else ()
        )
        committed = {str(one): offset for one, offset in self._committed(number).items()}
        changelog = (str(log), offsets)
        return PartitionStatus.of(number, committed, changelog, stored, checked, unread)

    def accounts(self, numbers: Sequence[int]) -> dict[int, dict[str, int]]:
        """Restore partitions, and return their accounts.

        Raises a StateError if the group has a member, or a partition cannot be restored.
        """
        self._require_no_members()
        return {number: self._restorer.restore(number, None).task.accounts for number in numbers}

    def _stored(self, unread: list[str]) -> list[StoredSnapshot]:
        """List the snapshots, or add why that fails."""
        try:
            return [] if self._snapshots is None else self._snapshots.stored()
        except OSError as error:
            unread.append(f"snapshots cannot be listed: {error}")
            return []

    def rebuild(self, numbers: Sequence[int], *, allow_truncated_input: bool = False) -> list[str]:
        """Rebuild the state of partitions from the inputs, up to the committed offsets.

        The inputs are read from `kafka.starting_offset` if that is a time, and otherwise from their
        beginning: where "latest" was when the application started is unknown. The result describes
        what was done. Raises a ConfigError without a store of snapshots, and a StateError if the
        application has routers, the group has a member, or the inputs have lost their first records
        and that is not allowed.
        """
        if self._application.sources:
            msg = (
                "the state cannot be rebuilt from the inputs: routers have put them in an order "
                "that only the changelog has; put back a snapshot, or start with an empty state by "
                "`abers state reset CONFIG --accept-data-loss`"
            )
            raise StateError(msg)
        checkpoints = self._checkpoints(numbers)
        history = TopicHistory(
            self._application.inputs,
            client_settings(self._kafka),
            timeout=self._kafka.stall_timeout / 1000,
        )
        with closing(history):
            ranges, lost = self._ranges(history, checkpoints)
            if lost and not allow_truncated_input:
                msg = (
                    f"{'; '.join(lost)}: the state cannot be rebuilt from the beginning; add "
                    "--allow-truncated-input to rebuild it from what is left"
                )
                raise StateError(msg)
            reprocessor = InputReprocessor(self._config, history, ranges)
            for _ in reprocessor.batches():
                pass
        done = [f"{one}; rebuilt from what is left" for one in lost]
        counts = {number: reprocessor.counts(number) for number in numbers}
        return done + self._replace(checkpoints, reprocessor.processors, counts)

    def reset(
        self, numbers: Sequence[int], model: str | None = None, *, accept_data_loss: bool
    ) -> list[str]:
        """Replace the state of one model, or of all, in some partitions by an empty state.

        It continues at the committed offsets. The result describes what was done. Raises a
        ParameterError if the loss is not accepted (the message describes it), or the model is
        unknown; a ConfigError without a store of snapshots; a StateError if the group has a member,
        or there is no state.
        """
        checkpoints, counts = self._checkpoints(numbers), dict[int, RecordCounts]()
        if model is None:
            lost = [self._learned(number) for number in numbers]
            processors = {number: self._application.new_processor() for number in numbers}
        else:
            lost, processors, counts = self._without(numbers, model)
        if not accept_data_loss:
            found = "\n".join(lost)
            msg = f"{found}\nthis permanently deletes the state; add --accept-data-loss to confirm"
            raise ParameterError(msg)
        replaced = {number: checkpoints[number] for number in processors}
        return lost + self._replace(replaced, processors, counts)

    def _without(
        self, numbers: Sequence[int], model: str
    ) -> tuple[list[str], dict[int, Processor], dict[int, RecordCounts]]:
        """Reset a model; return the losses, the processors that knew it, and their records."""
        tasks = {number: self._restorer.restore(number, None).task for number in numbers}
        found = {number: task.processor for number, task in tasks.items()}
        models = {name for one in found.values() for name, _ in one.keys}
        if model not in models:
            known = ", ".join(sorted(models)) or "none"
            msg = f"--model: no model {model} is known in these partitions; known: {known}"
            raise ParameterError(msg)
        processors = {
            number: one for number, one in found.items() if model in {name for name, _ in one.keys}
        }
        for one in processors.values():
            one.reset_model(model)
        lost = [f"{self._name(number)}: all that was learned of {model}" for number in processors]
        return lost, processors, {number: tasks[number].checkpoint.counts for number in processors}

    def _name(self, number: int) -> str:
        return f"{self._application.id}[{number}]"

    def _committed(self, number: int) -> dict[TopicPartition, int | None]:
        inputs = self._application.input_partitions(number)
        return {one: self._reader.committed(one) for one in inputs}

    def _checkpoints(self, numbers: Sequence[int]) -> dict[int, Checkpoint]:
        """Return the checkpoints of new states; the group has no member that could move them."""
        if self._snapshots is None:
            why = "the service finds the new state there"
            raise ConfigError([f"state.path: name the folder or URL of the snapshots; {why}"])
        count = partition_count(self._reader, self._application)
        checkpoints = {number: self._checkpoint(number, count) for number in numbers}
        self._require_no_members()
        return checkpoints

    def _checkpoint(self, number: int, count: int) -> Checkpoint:
        """Return the checkpoint of a new state of one of `count` partitions."""
        committed = [*self._committed(number).values()]
        log = self._application.changelog_partition(number)
        offsets = self._reader.offset_range(log)
        last = last_changelog_record(self._reader, log, offsets)
        if {*committed} == {None} and last is not None:
            committed = [*last.next_offsets]  # brokers delete the offsets of an empty group
        next_offsets = [offset for offset in committed if offset is not None]
        if len(next_offsets) < len(committed):
            msg = f"{self._name(number)} has no offsets; `abers run` creates a new state"
            raise StateError(msg)
        first, second = [*next_offsets, NO_OFFSET][:2]
        batch = 1 if last is None else last.number + 1
        if last is not None and last.partitions:
            counts = dict.fromkeys(self._application.inputs, count)
            require_partitions(self._application, counts, last.partitions)
        return Checkpoint(
            self._application.state_id,
            number,
            batch,
            offsets.end,
            (first, second),
            partitions=count,
            follows="" if last is None else last.follows,
        )

    def _ranges(
        self, history: TopicHistory, checkpoints: Mapping[int, Checkpoint]
    ) -> tuple[dict[TopicPartition, OffsetRange], list[str]]:
        """Return the ranges of the inputs to read, and sentences about lost records."""
        start = self._kafka.starting_offset
        begins = history.ranges(TimeOrOffset(start)) if isinstance(start, int) else {}
        ranges, lost = {}, []
        for one, part in history.ranges().items():
            first = begins.get(one, part).start
            ranges[one] = OffsetRange(first, first)
            if one.partition not in checkpoints:
                continue
            which = self._application.inputs.index(one.topic)
            end = checkpoints[one.partition].next_offsets[which]
            ranges[one] = OffsetRange(min(first, end), min(part.end, end))
            # With a start time the first offset may once have been smaller.
            if part.start == first > 0 or end > part.end:
                found = f"{one} has @{part.start} to @{part.end}"
                lost.append(f"{found}, and all before @{end} was applied")
        return ranges, lost

    def _replace(
        self,
        checkpoints: Mapping[int, Checkpoint],
        processors: Sequence[Processor] | Mapping[int, Processor],
        counts: Mapping[int, RecordCounts],
    ) -> list[str]:
        """Save new states with their counts of records, and remove all other snapshots."""
        assert self._snapshots is not None  # noqa: S101 - _checkpoints has checked it
        if self._checkpoints([*checkpoints]) != checkpoints:
            msg = "the offsets were moved meanwhile; nothing was changed. Run the command again"
            raise StateError(msg)
        done = []
        for number, checkpoint in checkpoints.items():
            read = msgspec.structs.replace(checkpoint, counts=counts.get(number, RecordCounts()))
            blob = self._application.snapshot(processors[number], read)
            name = self._snapshots.save(number, checkpoint.changelog_offset, blob)
            self._snapshots.remove(number, but=checkpoint.changelog_offset)
            inputs = self._application.input_partitions(number)
            pairs = zip(inputs, checkpoint.next_offsets, strict=False)
            at = ", ".join(one.at(offset) for one, offset in pairs)
            done.append(f"{name}: {_content(processors[number])}; it continues at {at}")
        return done

    def _learned(self, number: int) -> str:
        offsets = self._reader.offset_range(self._application.changelog_partition(number))
        for one in self._restorer.checked_snapshots(number, offsets):
            if one.task is not None:
                return f"{one.name}: {_content(one.task.processor)}, and what came after it"
        return f"{self._name(number)}: no snapshot can be used; all that was learned"

    def _require_no_members(self) -> None:
        """Raise a StateError if the consumer group has members."""
        with open_admin(client_settings(self._kafka)) as admin:
            require_no_members(admin, self._application.id)

    def _no_state(self, number: int) -> StreamTask:
        msg = f"{self._name(number)} has no state"
        raise StateError(msg)


def _content(processor: Processor) -> str:
    of, pending = processor.accounts, processor.waiting[0]
    return f"{of['learned'] + of['assumed']:,} labels learned, {pending:,} pending observations"


_FIRST = 1  # batch of a new changelog: with 0, a lost snapshot would seem to be an empty state


def rescale(config: Config, partitions: int) -> list[str]:
    """Change the number of partitions of an application's state; return what was done.

    Raises
    ------
    ConfigError
        If the application routes no inputs, has no store of snapshots, or the brokers reject a new
        topic.
    StateError
        If a group has members, the tasks have not read all that was routed, a state cannot be
        restored, the states do not fit together, or the application has run meanwhile.
    BrokerError
        If a broker does not answer.
    """
    kafka = kafka_section(config)
    _require_possible(config)
    with closing(Watchdog(kafka.stall_timeout / 1000)) as watchdog:
        reader = open_transport(kafka, watchdog).reader(kafka.application_id)
        with closing(reader):
            return _Rescaling(config, generation_with_state(config), reader).run(partitions)


def _require_possible(config: Config) -> None:
    if kafka_section(config).route_by is None:
        why = "without it the state has the partitions of the inputs, and these stay as they are"
        raise ConfigError([f'kafka.route_by: missing; {why}. Set it to "model"'])
    if config.state.path is None:
        why = "the new snapshots are saved there"
        raise ConfigError([f"state.path: name the folder or URL of the snapshots; {why}"])


class _Rescaling:
    """A change of the number of partitions, from a generation to the next."""

    def __init__(self, config: Config, before: Generation, reader: Reader) -> None:
        self._config, self._old, self._reader = config, before, reader
        self._application = before.application
        self._settings = client_settings(kafka_section(config))
        self._count = partition_count(reader, before.application)
        self._next_offsets: dict[TopicPartition, int] = {}  # of the inputs of the old tasks

    def run(self, partitions: int) -> list[str]:
        """Rescale the state, and return what was done."""
        app = self._application
        if app.sources and self._count == partitions:
            return [f"{app.id} has {partitions:,} partitions already; nothing was changed"]
        partition_counts(self._reader, app.sources)
        self._require_stopped()
        new, unused = next_generation(self._config, self._old.number)
        create_generation(new.config, partitions)
        with self._discarded_on_error(new, partitions):
            ids = self._reader.topic_ids(new.application.inputs)
            for one in self._rescaled(partitions):
                _save(new, one, ids, partitions)
            self._require_unchanged()
        self._switch(new, partitions)
        stored = [one for one in self._earlier() if _store(one).stored()]
        names = dict.fromkeys(one.application.state_id for one in stored)
        snapshots = [f"the snapshots of {', '.join(names)} in state.path"] if names else []
        left = [*snapshots, f"the topics {', '.join(unused)}"]
        return [*_done(self._count, partitions, new, left)]

    def _earlier(self) -> list[Generation]:
        """Return the generations up to the one that was in use."""
        return [*(Generation.of(self._config, n) for n in range(1, self._old.number)), self._old]

    def _require_stopped(self) -> None:
        """Raise a StateError if a process runs, or tasks have not read all that was routed."""
        app = self._application
        with open_admin(self._settings) as admin:
            for group in (app.id, app.router_group):
                require_no_members(admin, group)
        for number in range(self._count if app.sources else 0):
            self._require_read(*app.input_partitions(number))

    def _require_unchanged(self) -> None:
        """Raise a StateError if a process runs, or has run since the states were read."""
        self._require_stopped()
        now = self._reader.all_committed([*self._next_offsets])
        moved = [one for one, found in now.items() if found.offset != self._next_offsets[one]]
        if moved or generation_with_state(self._config).topics != self._old.topics:
            msg = "the application has run meanwhile; nothing was changed. Run the command again"
            raise StateError(msg)

    def _require_read(self, routed: TopicPartition) -> None:
        committed = self._reader.committed(routed)
        end = self._reader.offset_range(routed).end
        if committed is None or not any(map(len, self._reader.read(routed, committed, end))):
            return
        msg = (
            f"no task has read {routed.at(committed)} and what follows; run `abers run CONFIG "
            "--stage tasks` until it has read all, stop it, then repeat"
        )
        raise StateError(msg)

    def _rescaled(self, partitions: int) -> Iterator[RescaledTask]:
        """Yield the new states."""
        sources = self._application.sources
        topics = len(sources or self._application.inputs)
        return rescaled(self._saved(), self._count if sources else None, partitions, topics)

    def _saved(self) -> Iterator[SavedTask]:
        """Yield the old states."""
        app, snapshots = self._application, _store(self._old)
        restorer = Restorer(
            app, self._reader, snapshots, self._no_state, lambda _: False, warn=lambda _: None
        )
        tasks = SavedTasks(app, self._reader, snapshots, restorer)
        for number in range(self._count):
            one = tasks.read(number)
            pairs = zip(app.input_partitions(number), one.checkpoint.next_offsets, strict=False)
            self._next_offsets |= dict(pairs)
            yield one

    def _no_state(self, number: int) -> StreamTask:
        msg = f"{self._application.id}[{number}] has no state yet; `abers run` creates it"
        raise StateError(msg)

    @contextmanager
    def _discarded_on_error(self, new: Generation, partitions: int) -> Iterator[None]:
        """Delete the topics and snapshots of the new generation if the block fails."""
        try:
            yield
        except BaseException:
            with suppress(AbersError, OSError):
                for number in range(partitions):
                    _store(new).remove(number)
                with open_admin(self._settings) as admin:
                    admin.delete_topics([*new.topics])
            raise

    def _switch(self, new: Generation, partitions: int) -> None:
        """Commit offsets: of the routers, if they have none, and last those of the tasks."""
        app = new.application
        with open_admin(self._settings) as admin:
            if not self._application.sources:
                commit_offsets(admin, app.router_group, self._next_offsets)
            first = {
                part: 0 for number in range(partitions) for part in app.input_partitions(number)
            }
            commit_offsets(admin, app.id, first)


def _store(generation: Generation) -> SnapshotStore:
    found = snapshot_store(generation.config, generation.application)
    assert found is not None  # noqa: S101 - _require_possible has checked it
    return found


def _save(new: Generation, one: RescaledTask, ids: tuple[str, ...], partitions: int) -> None:
    """Save the first snapshot of a new partition, as a service restores it."""
    app, number = new.application, one.partition
    first = (0, NO_OFFSET)
    checkpoint = Checkpoint(app.state_id, number, _FIRST, 0, first, ids, partitions, one.counts)
    scope, snapshots = snapshot_scope(app.state_id, number, 0), _store(new)
    position = msgspec.to_builtins(checkpoint)
    snapshots.save(number, 0, write(one.state, position, app.key, scope))
    snapshots.remove(number, but=0)  # those of deleted topics of this name


def _done(before: int, after: int, new: Generation, left: Sequence[str]) -> Iterator[str]:
    """Yield what was done, and what may be deleted."""
    yield (
        f"{new.application.id} has {after:,} instead of {before:,} partitions now, in topics "
        f"{' and '.join(new.topics)}; start it with the same configuration"
    )
    yield (
        f"{', and '.join(left)} are no longer used; delete them when each partition has saved a "
        "snapshot"
    )

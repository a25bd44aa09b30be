"""`abers state`: status, accounts, rebuild and reset of an application's state.

A new state has the committed offsets and the end of the changelog, so that a service continues from
it as from any snapshot. Nothing changes while the group has a member, and nothing is published.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import msgspec

from abers.exceptions import ConfigError, ParameterError, StateError
from abers_connectors.kafka.assembly import snapshot_store
from abers_connectors.kafka.connection import open_admin
from abers_connectors.kafka.generations import generation_in_use
from abers_connectors.kafka.group_members import require_no_members
from abers_connectors.kafka.settings import client_settings
from abers_connectors.kafka.topic_history import TimeOrOffset, TopicHistory
from abers_connectors.runtime.application import kafka_section
from abers_connectors.runtime.changelog import last_changelog_record
from abers_connectors.runtime.checkpoint import NO_OFFSET, Checkpoint, RecordCounts
from abers_connectors.runtime.partition_count import partition_count, require_partitions
from abers_connectors.runtime.partition_status import PartitionStatus
from abers_connectors.runtime.reprocessor import InputReprocessor
from abers_connectors.runtime.restore import Restorer
from abers_connectors.runtime.transport import OffsetRange, open_transport
from abers_connectors.runtime.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers.stream import Processor
    from abers_connectors.config.model import Config
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.snapshots import StoredSnapshot
    from abers_connectors.runtime.task import StreamTask
    from abers_connectors.runtime.transport import Reader, TopicPartition

__all__ = ["StateAdmin", "open_state_admin"]


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
        """Return the numbers of all partitions, or of those that are wanted."""
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

        A StateError is raised if the group has a member, or a partition cannot be restored.
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
        what was done. A StateError is raised if the group has a member, or if the inputs have lost
        their first records and that is not allowed.
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
        """Replace the state of one model, or of all, in some partitions by an empty one.

        It continues at the committed offsets. The result describes what was done. A ParameterError
        is raised if the loss is not accepted (the message describes it), or the model is unknown;
        a StateError, if the group has a member, or there is no state.
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
        """Return the checkpoints of new states, while the group has no member to move them."""
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
            # What is left from a time on may once have started earlier.
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
        """Save new states, which have read so many records, and remove all other snapshots."""
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

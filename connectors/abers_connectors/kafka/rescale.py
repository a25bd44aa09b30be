"""`abers state rescale`: the state of an application with routers, in more or fewer partitions.

The states are split by model and joined anew, in snapshots and topics of the next generation. Last,
the offsets of the group are committed on its topic of routers, by one request: before it nothing
has changed, and after it the next generation is in use.
"""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from abers.exceptions import AbersError, ConfigError, StateError
from abers.stream.snapshot import write
from abers_connectors.kafka.assembly import snapshot_store
from abers_connectors.kafka.connection import open_admin
from abers_connectors.kafka.generations import Generation, generation_with_state, next_generation
from abers_connectors.kafka.group_members import commit_offsets, require_no_members
from abers_connectors.kafka.settings import client_settings
from abers_connectors.kafka.topic_creation import create_generation
from abers_connectors.runtime.application import kafka_section
from abers_connectors.runtime.checkpoint import NO_OFFSET, Checkpoint, snapshot_scope
from abers_connectors.runtime.partition_count import partition_count, partition_counts
from abers_connectors.runtime.rescaled_tasks import rescaled
from abers_connectors.runtime.restore import Restorer
from abers_connectors.runtime.saved_task import SavedTasks
from abers_connectors.runtime.transport import open_transport
from abers_connectors.runtime.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers_connectors.config.model import Config
    from abers_connectors.runtime.rescaled_tasks import RescaledTask
    from abers_connectors.runtime.saved_task import SavedTask
    from abers_connectors.runtime.snapshots import SnapshotStore
    from abers_connectors.runtime.task import StreamTask
    from abers_connectors.runtime.transport import Reader, TopicPartition

__all__ = ["rescale"]

_FIRST = 1  # batch of a new changelog: with 0, a lost snapshot would seem to be an empty state


def rescale(config: Config, partitions: int) -> list[str]:
    """Bring the state of an application to so many partitions; return what was done.

    Raises
    ------
    ConfigError
        If the application routes no inputs, or has no store of snapshots.
    StateError
        If a group has members, the tasks have not read all that was routed, a state cannot be
        restored, or the states do not fit together.
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
        why = "the partitions of the inputs are those of the state without it, and stay as they are"
        raise ConfigError([f'kafka.route_by: missing; {why}. Set it to "model"'])
    if config.state.path is None:
        raise ConfigError(["state.path: name the folder or URL of the snapshots; they are written"])


class _Rescaling:
    """A change of the number of partitions, from a generation to the next."""

    def __init__(self, config: Config, before: Generation, reader: Reader) -> None:
        self._config, self._old, self._reader = config, before, reader
        self._application = before.application
        self._settings = client_settings(kafka_section(config))
        self._count = partition_count(reader, before.application)
        self._next_offsets: dict[TopicPartition, int] = {}  # of the inputs of the old tasks

    def run(self, partitions: int) -> list[str]:
        """Do all of it."""
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
        msg = f"{self._application.id}[{number}] has no state yet; `abers run` makes it"
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
        f"not used any more are {', and '.join(left)}; delete them when each partition has saved a "
        "snapshot"
    )

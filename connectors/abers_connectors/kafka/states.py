"""`abers state`: what there is of the state of an application, and what is done when it is lost.

Governing rule: a state that is put in the place of another stands at the offsets
that the group has committed and at the end of the changelog, so that a service
goes on from it as from any snapshot. While a member of the group is there
nothing is changed, and nothing is ever published.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from abers.exceptions import BrokerError, ConfigError, ParameterError, StateError
from abers_connectors.kafka.client_settings import client_settings, reaching
from abers_connectors.kafka.history import History, Moment, Span
from abers_connectors.kafka.home import named
from abers_connectors.kafka.redoing import Afresh
from abers_connectors.kafka.restoring import Restorer
from abers_connectors.kafka.serving import home_of, partitions_of, snapshots_of
from abers_connectors.kafka.shard import NONE, Place, Shard
from abers_connectors.kafka.standing import last_batch, standing
from abers_connectors.kafka.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers.stream import Processor
    from abers_connectors.config import Config, Kafka
    from abers_connectors.kafka.client import Log
    from abers_connectors.kafka.snapshots import Stored
    from abers_connectors.kafka.standing import Standing
    from abers_connectors.kafka.transport import Partition

__all__ = ["States", "states"]


class _Here(NamedTuple):
    """The section of topics, and the settings of a client."""

    config: Config
    kafka: Kafka
    log: Log


@contextmanager
def states(config: Config) -> Iterator[States]:
    """Open the states of an application, for a `with` block.

    Parameters
    ----------
    config
        With a section [kafka].

    Raises
    ------
    ConfigError
        If there is no such section, or the brokers refuse it.
    BrokerError
        If no broker answers.
    """
    from abers_connectors.kafka.client import Log  # noqa: PLC0415 - an extra

    kafka = config.kafka
    if kafka is None:
        raise ConfigError(["kafka: there is no such section; the state of files is one file"])
    watchdog = Watchdog(kafka.watchdog / 1000, lambda _: None)
    try:
        log = Log(kafka.app, settings=client_settings(kafka), watchdog=watchdog)
        try:
            yield States(_Here(config, kafka, log))
        finally:
            log.close()
    finally:
        watchdog.close()


class States:
    """The states of an application; made by `states`."""

    def __init__(self, here: _Here) -> None:
        self._config, self._kafka, self._log = here
        self._home, self._snapshots = home_of(self._config), snapshots_of(self._config)
        self._restorer = Restorer(
            self._home,
            self._log,
            self._snapshots,
            self._none,
            lambda _: False,
            say=lambda _: None,
        )

    def numbers(self, wanted: Sequence[int] = ()) -> list[int]:
        """Give the numbers of partitions, all or those that are wanted."""
        count = partitions_of(self._log, self._home)
        if wrong := [number for number in wanted if not 0 <= number < count]:
            msg = f"--partition: there is no partition {wrong[0]}; there are 0 to {count - 1}"
            raise ParameterError(msg)
        return sorted({*wanted}) or [*range(count)]

    def standing(self, number: int) -> Standing:
        """Say what there is of a shard; whatever is damaged is no error here."""
        bounds = self._log.bounds(self._home.log(number))
        unread: list[str] = []
        stored = self._stored(unread)
        weighed = self._restorer.weighed(number, bounds, failed=unread.append) if stored else ()
        committed = {named(one): offset for one, offset in self._committed(number).items()}
        log = named(self._home.log(number))
        return standing(number, committed, (log, bounds), stored, weighed, unread)

    def _stored(self, unread: list[str]) -> list[Stored]:
        """List the snapshots, or say why that cannot be."""
        try:
            return [] if self._snapshots is None else self._snapshots.stored()
        except OSError as error:
            unread.append(f"snapshots cannot be listed: {error}")
            return []

    def rebuild(self, numbers: Sequence[int], *, since_what_is_there: bool = False) -> list[str]:
        """Derive the states of shards anew from the inputs, up to the committed offsets.

        They are read from where `kafka.start` says, if that is a time; where the latest records
        were when the application began nobody knows, so it counts as earliest.

        Parameters
        ----------
        numbers
            Of their partitions.
        since_what_is_there
            Whether inputs will do that have lost their first records.

        Returns
        -------
        list of str
            What was done, a sentence a line.

        Raises
        ------
        StateError
            If a member of the group is there, or records are lost.
        """
        places = self._places(numbers)
        history = History(
            self._home.inputs, client_settings(self._kafka), patience=self._kafka.watchdog / 1000
        )
        try:
            spans, lost = self._spans(history, places)
            if lost and not since_what_is_there:
                msg = (
                    f"{'; '.join(lost)}: the state cannot be derived from its beginning; add "
                    "--since-what-is-there to derive it from what is left"
                )
                raise StateError(msg)
            afresh = Afresh(self._config, history, spans, None)
            for _ in afresh.batches():
                pass
        finally:
            history.close()
        said = [f"{one}; derived from what is left" for one in lost]
        return said + self._replaced(places, afresh.processors)

    def reset(
        self, numbers: Sequence[int], model: str | None = None, *, accept_loss: bool
    ) -> list[str]:
        """Put empty states in the place of those of shards, at the committed offsets.

        Parameters
        ----------
        numbers
            Of their partitions.
        model
            Of which alone all is forgotten; by default of all.
        accept_loss
            Whether all that was learned may be lost.

        Returns
        -------
        list of str
            What was done, a sentence a line.

        Raises
        ------
        ParameterError
            If the loss is not accepted; it says what would be lost. If no such model is known.
        StateError
            If a member of the group is there, or there is no state.
        """
        places = self._places(numbers)
        if model is None:
            lost = [self._lost(number) for number in numbers]
            anew = {number: self._home.processor() for number in numbers}
        else:
            lost, anew = self._without(numbers, model)
        if not accept_loss:
            said = "\n".join(lost)
            msg = f"{said}\nthis would be lost for ever; add --accept-loss if it may be"
            raise ParameterError(msg)
        return lost + self._replaced({number: places[number] for number in anew}, anew)

    def _without(
        self, numbers: Sequence[int], model: str
    ) -> tuple[list[str], dict[int, Processor]]:
        """Forget a model; what that loses, and the shards that knew it."""
        found = {
            number: self._restorer.restore(number, None, lambda: None).shard.processor
            for number in numbers
        }
        models = {name for one in found.values() for name, _ in one.keys}
        if model not in models:
            known = ", ".join(sorted(models)) or "none at all"
            msg = f"--model: no model {model} is known in these partitions; known: {known}"
            raise ParameterError(msg)
        anew = {
            number: one for number, one in found.items() if model in {name for name, _ in one.keys}
        }
        for one in anew.values():
            one.forget(model)
        return [
            f"{self._home.app}[{number}]: all that was learned of {model}" for number in anew
        ], anew

    def _committed(self, number: int) -> dict[Partition, int | None]:
        return {one: self._log.committed(one) for one in self._home.partitions(number)}

    def _places(self, numbers: Sequence[int]) -> dict[int, Place]:
        """Find where new states stand, with nobody there who could move it."""
        if self._snapshots is None:
            msg = "state.path: name the place of the snapshots; a service finds the new state there"
            raise ConfigError([msg])
        places = {number: self._place(number) for number in numbers}
        self._require_nobody()
        return places

    def _place(self, number: int) -> Place:
        """Find where a new state of a shard stands."""
        committed = [*self._committed(number).values()]
        bounds = self._log.bounds(self._home.log(number))
        last = last_batch(self._log, self._home.log(number), bounds)
        if {*committed} == {None} and last is not None:
            committed = [*last.following]  # the group forgets offsets when nobody is there
        following = [offset for offset in committed if offset is not None]
        if len(following) < len(committed):
            msg = f"{self._home.app}[{number}] has no offsets; `abers run` begins a new state"
            raise StateError(msg)
        seen, told = [*following, NONE][:2]
        batch = 1 if last is None else last.number + 1
        return Place(self._home.app, number, batch, bounds.end, (seen, told))

    def _spans(
        self, history: History, places: Mapping[int, Place]
    ) -> tuple[dict[Partition, Span], list[str]]:
        """Give what is to be read of the inputs, and say what of it is lost."""
        start = self._kafka.start
        begins = history.part(Moment(start)) if isinstance(start, int) else {}
        spans, lost = {}, []
        for one, span in history.part().items():
            first = begins.get(one, span).start
            spans[one] = Span(first, first)
            if one.number not in places:
                continue
            end = places[one.number].following[self._home.inputs.index(one.topic)]
            spans[one] = Span(min(first, end), min(span.end, end))
            # What is left from a time on may once have begun earlier.
            if span.start == first > 0 or end > span.end:
                there = f"{named(one)} has @{span.start} to @{span.end}"
                lost.append(f"{there}, and all before @{end} was applied")
        return spans, lost

    def _replaced(
        self, places: Mapping[int, Place], processors: Sequence[Processor] | Mapping[int, Processor]
    ) -> list[str]:
        """Save new states, and remove all others."""
        assert self._snapshots is not None  # noqa: S101 - _places has seen to it
        if self._places([*places]) != places:
            msg = "the offsets were moved meanwhile; nothing was changed. Do it again"
            raise StateError(msg)
        said = []
        for number, place in places.items():
            blob = self._home.saved(processors[number], place)
            name = self._snapshots.save(number, place.changelog, blob)
            self._snapshots.remove(number, but=place.changelog)
            at = ", ".join(
                named(one, offset)
                for one, offset in zip(self._home.partitions(number), place.following, strict=False)
            )
            said.append(f"{name}: {_held(processors[number])}; it goes on at {at}")
        return said

    def _lost(self, number: int) -> str:
        bounds = self._log.bounds(self._home.log(number))
        for one in self._restorer.weighed(number, bounds):
            if one.shard is not None:
                return f"{one.name}: {_held(one.shard.processor)}, and what came after it"
        return f"{self._home.app}[{number}]: no snapshot can be used; all that was learned"

    def _require_nobody(self) -> None:
        from kafka import KafkaAdminClient  # noqa: PLC0415 - an extra

        settings, app = client_settings(self._kafka), self._home.app
        with reaching(settings), KafkaAdminClient(**settings) as admin:
            group = admin.describe_groups([app])[app]
        if group["error"] is not None and group["group_state"] != "Dead":
            msg = f"group {app}: {group['error']}"
            raise BrokerError(msg)
        if seats := [one["group_instance_id"] or one["member_id"] for one in group["members"]]:
            msg = (
                f"{', '.join(sorted(seats))}: there are members in the group of {app}; stop them "
                "and wait for kafka.session_timeout, for so long a seat is kept"
            )
            raise StateError(msg)

    def _none(self, number: int) -> Shard:
        msg = f"{self._home.app}[{number}] has no state"
        raise StateError(msg)


def _held(processor: Processor) -> str:
    labels, waiting = processor.counters["labels"], processor.waiting[0]
    return f"{labels:,} labels learned, {waiting:,} observations wait"

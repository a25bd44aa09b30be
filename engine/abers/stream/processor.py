"""The stream processor: a deterministic state machine from events to outputs.

A score is used at prediction time, the label joins it at label time, nothing is scored again. Only
the events decide: there is no clock but theirs, no randomness and no I/O. The same events in order
give the same outputs and state, however batched; only models are retired where batches begin.

A batch takes two steps. The join validates events and matches observations with labels, and the
calibration step runs each calibrator in one call.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from abers.exceptions import ParameterError
from abers.serialization import CopiedWhole
from abers.stream import accounts, journal, snapshot
from abers.stream.columns import Events, as_events, require_events
from abers.stream.journal import record_few
from abers.stream.pending_store import EARLY, FINISHED, PENDING
from abers.stream.settings import Settings
from abers.stream.snapshot import dump
from abers.stream.state import ProcessorState, known_count, known_ids, step
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from abers.learners import Learner
    from abers.monitoring import TaskMonitor
    from abers.stream.alarms import ModelHistory
    from abers.stream.events import Event, Output
    from abers.stream.journal import JournalEntry
    from abers.stream.option import Front
    from abers.stream.outputs import Outputs
    from abers.stream.state import KnownIds

__all__ = ["ModelHoldings", "PickledSnapshot", "Processor", "ProcessorView"]


class ModelHoldings(NamedTuple):
    """What a processor keeps of a model, in all its segments."""

    keys: Sequence[int]  # numbers of its pairs of model and segment
    labels: int  # in its calibrators
    pending: int  # observations that wait for labels
    known: int  # labels that wait for observations, and finished ids that are remembered


class ProcessorView:
    """The properties of a processor; reading them changes nothing."""

    _state: ProcessorState

    @property
    def clock(self) -> int | None:
        """The latest clock of all models, in milliseconds; None before the first event."""
        return self._state.join.store.clock

    @property
    def counters(self) -> dict[str, int]:
        """Counts of events by kind and result."""
        return self._state.join.counters

    @property
    def waiting(self) -> tuple[int, int]:
        """Number of observations that wait for labels, and of labels that wait for observations."""
        store = self._state.join.store
        return store.count(PENDING), store.count(EARLY)

    @property
    def known_count(self) -> int:
        """Number of ids that are known: those that wait, and finished ids."""
        return known_count(self._state.join)

    def known_ids(self) -> Iterator[KnownIds]:
        """Yield the ids that are known; see `abers.stream.state`."""
        return known_ids(self._state.join, self._state.task)

    def waits(self) -> Events:
        """Return the end of each wait for a label, as events.

        A processor that takes them waits for no label, as if each wait were over: it is for the end
        of a stream that is all there is.
        """
        return self._state.join.waits()

    @property
    def accounts(self) -> dict[str, int]:
        """How all events and predictions ended, or wait; see `abers.stream.accounts`."""
        store = self._state.join.store
        return accounts.numbers(self.counters, store.undecided(), store.count(EARLY))

    @property
    def late_delays(self) -> Sequence[int]:
        """Delays of the last 1,000 late labels, in milliseconds, since the processor was made."""
        return [*self._state.join.late_delays]

    @property
    def held(self) -> tuple[int, int]:
        """Number of labels that all calibrators hold, and of finished ids that are remembered."""
        return self._state.calibration.labels, self._state.join.store.count(FINISHED)

    @property
    def keys(self) -> Sequence[tuple[str, str]]:
        """Model and segment of each calibrator, by its number."""
        return [*self._state.join.names.pairs]

    @property
    def made(self) -> Sequence[int]:
        """Number of predictions of each calibrator since the beginning of the state."""
        found: list[int] = self._state.calibration.made.tolist()
        return found

    def holdings(self, models: Collection[str]) -> dict[str, ModelHoldings]:
        """Return what is kept of some models; those that are not known are left out.

        Examples
        --------
        >>> from abers.stream import Label, Observation, Processor
        >>> processor = Processor()
        >>> pair = [Observation("a", 1, score=0.5), Label("a", 2, value=1)]
        >>> _ = processor.process_many([*pair, Observation("b", 3, score=0.5)])
        >>> processor.holdings(["default", "other"])
        {'default': ModelHoldings(keys=[0], labels=1, pending=1, known=1)}
        """
        keys: dict[str, list[int]] = {}
        for key, (model, _) in enumerate(self.keys):
            if model in models:
                keys.setdefault(model, []).append(key)
        return {model: self._holdings_of(model, of_model) for model, of_model in keys.items()}

    def _holdings_of(self, model: str, keys: Sequence[int]) -> ModelHoldings:
        store, number = self._state.join.store, self._state.join.names.models[model]
        size = self._state.calibration.calibrators.size
        pending, early, finished = (
            store.count_of(kind, number) for kind in (PENDING, EARLY, FINISHED)
        )
        return ModelHoldings(keys, sum(map(size, keys)), pending, early + finished)

    @property
    def monitors(self) -> Sequence[TaskMonitor]:
        """Monitors of the predictions, one for each model and segment; none if switched off."""
        return self._state.watched().monitors or ()

    @property
    def histories(self) -> Sequence[ModelHistory]:
        """Histories of the predictions, one for each model and segment; none if switched off."""
        return self._state.watched().histories

    @property
    def monitor(self) -> TaskMonitor | None:
        """Monitor of all predictions together; None before the first."""
        many = self.monitors
        return type(many[0]).total(many) if many else None


class PickledSnapshot(CopiedWhole):
    """Base of a processor: a pickle is its snapshot, with its learners.

    Loading a pickle can run any code, so its writer must be trusted.
    """

    settings: Settings
    trusted_types: Sequence[str] | None
    position: Any
    _state: ProcessorState

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[bytes, Settings], dict[str, Any]]:
        """Pickle and copy the snapshot, under a key of its own if there are learners."""
        state = self._state.sound()
        learners, trusted, kind = state.join.learners, self.trusted_types, cast("Any", type(self))
        restore = partial(kind.restore, outcomes=state.outcomes, trusted_types=trusted)
        key = None
        if learners is not None:
            key = os.urandom(32)
            restore = partial(restore, learner=learners.shared, key=key)
        pieces = dump(state, None, key, "", trusted, finished_ids=True)
        return restore, (b"".join(pieces), self.settings), {"position": self.position}


class Processor(ProcessorView, PickledSnapshot):
    """Predict observations, and learn their labels whenever they arrive.

    Parameters
    ----------
    settings
        The task, the calibrators and the limits.
    learner
        Scores the features, instead of the learner that the settings name: an object with
        `score(x)` and `learn(x, value)`, shared by all models.
    outcomes
        Whether a label that settles a prediction gives an `Outcome`.
    trusted_types
        If given, skops saves learners, and nothing is pickled: names of types it does not know.
    front
        Where options are named in dead letters: "python", "toml", "env" or "flag".

    Attributes
    ----------
    settings
        The settings.
    position
        Position of the snapshot that this processor was restored from.

    Notes
    -----
    **Guarantee.** That of the calibrator. Of "ivap", see `abers.VennAbers`: with a fixed scorer,
    exchangeable observations and equal weights, one of p0 and p1 is perfectly calibrated, provided
    that delay and absence of a label do not depend on it. Of "protected" p has the bound of
    `abers.ProtectedVennAbers` on any stream.

    **Rules.** An event that cannot be used becomes a `DeadLetter` and changes nothing but a
    counter. A second observation or label of an id is ignored and counted. Early labels wait for
    their observation. Expiry, and all limits in time, go by event time. Each model has a clock, the
    largest time of its events; an event further ahead than `max_jump` is used, but moves the clock
    only where others agree. As long as neither `max_bytes` nor `max_models` binds, the outputs of a
    model do not depend on other models, except through a learner that all share.

    Examples
    --------
    >>> from abers.stream import Label, Observation, Processor
    >>> processor = Processor()
    >>> processor.process(Observation("a1", time=1_000, score=0.83))[0].p
    0.5
    >>> processor.process(Label("a1", time=9_000, value=1))[0].label
    1
    >>> prediction, = processor.process(Observation("a2", time=9_500, score=0.9))
    >>> prediction.p0, prediction.p1, prediction.n_labels
    (0.5, 1.0, 1)
    >>> processor
    <Processor of 'ivap': 2 predictions, 1 labels, 1 pending>
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        learner: Learner | None = None,
        outcomes: bool = True,
        trusted_types: Sequence[str] | None = None,
        front: Front = "python",
    ) -> None:
        self.settings = Settings() if settings is None else settings
        if not isinstance(self.settings, Settings):
            msg = f"settings={shown(settings)}: pass Settings, such as Settings(window=5)"
            raise ParameterError(msg)
        self.trusted_types = trusted_types
        self.position: Any = None
        self._state = ProcessorState(self.settings, learner, outcomes=outcomes, front=front)

    def __repr__(self) -> str:
        """Return the calibrator, numbers of predictions and labels, and what waits."""
        name, counts, waits = self.settings.calibrator_name, self.counters, self.waiting[0]
        made, known = counts["predictions"], counts["labels"] + counts["assumed"]
        return f"<Processor of {name!r}: {made:,} predictions, {known:,} labels, {waits:,} pending>"

    @property
    def front(self) -> Front:
        """Where options are named in dead letters: "python", "toml", "env" or "flag"."""
        return self._state.join.validator.front

    # Events

    def process(self, event: Event) -> list[Output]:
        """Process one event, as `process_many` does several.

        Plain events, nearly all of them, are much faster here than as batches of one. Monitors and
        histories that the properties returned before may lag behind by a few hundred events.
        """
        outputs = None if self._state.broken else self._state.single.process(event)
        return self.process_many([event]) if outputs is None else outputs

    def process_many(self, events: Iterable[Event]) -> list[Output]:
        """Process events in order of arrival; return what they cause, in their order.

        Raises
        ------
        ParameterError
            If one of them is neither; nothing of the batch is processed then.
        """
        batch = Events.of([*events] if isinstance(events, Iterable) else events)
        return self.process_batch(batch).in_order() if len(batch) else []

    def process_batch(self, events: Events | object) -> Outputs:
        """Process events by columns, which is faster than `process_many`.

        Parameters
        ----------
        events
            Events, or a table of Arrow or a data frame, which `Events.from_arrow` reads.

        Returns
        -------
        Outputs
            By kind.

        Examples
        --------
        >>> from abers.stream import Events, Observation
        >>> events = Events.of([Observation(f"a{i}", time=i, score=0.5) for i in range(3)])
        >>> Processor().process_batch(events).predictions.columns["p"].tolist()
        [0.5, 0.5, 0.5]
        """
        return step(self._state.sound(), as_events(events, self.settings))[0]

    def reset_model(self, model: str) -> None:
        """Forget all that was learned of a model, as if its labels had never come.

        This resets the calibrators, monitors and tests of all its segments, its clock, and its
        learner unless all models share one. Observations that wait for labels keep waiting, and
        their labels are learned.

        Parameters
        ----------
        model
            Name of the model.

        Raises
        ------
        ParameterError
            If there was no observation of this model; nothing is forgotten then.

        Examples
        --------
        >>> from abers.stream import Label, Observation
        >>> processor = Processor()
        >>> _ = processor.process_many([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
        >>> processor.reset_model("default")
        >>> processor.process(Observation("b", 3, score=0.5))[0].n_labels
        0
        """
        self._state.sound().reset_model(model)

    # Journal

    def process_logged(self, events: Events | list[Event] | object) -> tuple[Outputs, JournalEntry]:
        """Process events as `process_batch` does, and return a journal entry of them.

        Parameters
        ----------
        events
            As of `process_batch`, or a list of events. A list of a few plain events is much faster
            than the same as columns.

        Returns
        -------
        Outputs, JournalEntry
            The outputs, and what `apply` takes. Those of a list of a few events can be without
            `settled_batch` and alarms, which the properties have.

        Raises
        ------
        ParameterError
            If an extra field cannot be encoded, or a list has anything but events; nothing is
            processed then.

        Examples
        --------
        >>> from abers.stream import Events, Observation
        >>> live, other = Processor(), Processor()
        >>> outputs, entry = live.process_logged(Events.of([Observation("a1", 0, score=0.3)]))
        >>> other.apply(entry).in_order() == outputs.in_order()
        True
        >>> other.state_bytes() == live.state_bytes()
        True
        """
        if type(events) is list:
            require_events(events)
            if (found := record_few(self._state, events)) is not None:
                return found
            events = Events.of(events)
        return journal.record(self._state.sound(), as_events(events, self.settings))

    def unsettled(self) -> bytes:
        """Return the results of labels that settled nothing since the last call, in their order.

        The first call begins to note them; see `abers.stream.pending_store.WAITS`.
        """
        return self._state.join.store.unsettled()

    def apply(self, entry: JournalEntry) -> Outputs:
        """Apply a journal entry of another processor.

        Parameters
        ----------
        entry
            What `process_logged` returned. Entries are applied in their order, each once, by a new
            processor, or one restored from a snapshot between two of them.

        Returns
        -------
        Outputs
            Those of the other processor; only dead letters of rejected events are missing, since
            an entry has only their rows and reasons.

        Raises
        ------
        StateError
            If the entry does not come next, is damaged, of other settings, or does not lead to the
            counters that it has. If that is found before anything changes, the state is as it was;
            otherwise the state is broken, and every later call raises a StateError.

        Notes
        -----
        **Guarantee.** The state is that of the other processor, to the last byte of `state_bytes`.
        Nothing is validated, scored or predicted again, except for whole distributions. Learners
        learn the same features and labels in the same order, without scoring in between.
        """
        return journal.apply(self._state.sound(), entry)

    def apply_many(self, entries: Iterable[JournalEntry]) -> None:
        """Apply journal entries in their order, as `apply` does each, and put nothing out.

        Entries of small batches are joined first, which is many times faster.

        Parameters
        ----------
        entries
            As of `apply`, consecutive.

        Raises
        ------
        StateError
            As of `apply`; the entries before may be applied then.

        Examples
        --------
        >>> from abers.stream import Label, Observation
        >>> live, other = Processor(), Processor()
        >>> events = [Observation("a", 0, score=0.3), Label("a", 1, value=1)]
        >>> other.apply_many([live.process_logged(Events.of([one]))[1] for one in events])
        >>> other.state_bytes() == live.state_bytes()
        True
        """
        for entry in journal.joined(entries):
            self.apply(entry)

    # Snapshots

    def state_bytes(self) -> bytes:
        """Return the state without learners; equal settings and events give equal bytes."""
        return b"".join(snapshot.dump_state(self._state.sound()))

    def snapshot(
        self,
        position: Any = None,  # noqa: ANN401
        key: bytes | None = None,
        owner: str = "",
    ) -> bytes:
        """Save the processor: versioned, with a checksum and its settings.

        Parameters
        ----------
        position
            Where reading resumes, stored for the caller; anything that JSON can hold.
        key
            Secret of 16 to 64 random bytes that seals all of it. A reader of a pickle must trust
            its writer, so learners need a key unless there are `trusted_types`.
        owner
            Name of the owner of the state, under the seal; `restore` refuses that of another.

        Returns
        -------
        bytes
            What `restore` takes.

        Raises
        ------
        StateError
            If a learner is to be a pickle without a key, or something cannot be saved.
        ParameterError
            If the key is too short or too long.
        """
        return b"".join(self.snapshot_pieces(position, key, owner))

    def snapshot_pieces(
        self,
        position: Any = None,  # noqa: ANN401
        key: bytes | None = None,
        owner: str = "",
        *,
        finished_ids: bool = True,
    ) -> Iterator[bytes | memoryview]:
        """Save the processor in pieces, so that the whole snapshot is never in memory.

        The pieces, joined, are the bytes of `snapshot`, which has the same parameters and errors.
        The processor must not take events before the last piece. Without `finished_ids` a restored
        processor takes an event that comes again as a new event: for the end of a stream.
        """
        state, trusted = self._state.sound(), self.trusted_types
        return snapshot.dump(state, position, key, owner, trusted, finished_ids=finished_ids)

    @classmethod
    def restore(  # noqa: PLR0913 - its parameters, and those of the seal
        cls,
        blob: bytes,
        settings: Settings | None = None,
        *,
        key: bytes | None = None,
        owner: str = "",
        learner: Learner | None = None,
        outcomes: bool = True,
        trusted_types: Sequence[str] | None = None,
        front: Front = "python",
    ) -> Processor:
        """Restore a processor, which continues as the saved one would have.

        Parameters
        ----------
        blob
            What `snapshot` returned.
        settings, learner, outcomes, trusted_types, front
            As of the saved processor. The learner is replaced by the saved one.
        key, owner
            As of `snapshot`. A snapshot under another key, or under none, is refused.

        Returns
        -------
        Processor
            Its `position` is that of `snapshot`.

        Raises
        ------
        StateError
            If the bytes are damaged, or of another version, settings or owner, learners are of
            untrusted types, or the key is wrong; nothing is read before the key is verified.
        ParameterError
            If the key is too short or too long.

        Examples
        --------
        >>> processor = Processor()
        >>> Processor.restore(processor.snapshot({"line": 1})).position
        {'line': 1}
        """
        processor = cls(
            settings,
            learner=learner,
            outcomes=outcomes,
            trusted_types=trusted_types,
            front=front,
        )
        processor.position = snapshot.load(processor._state, blob, key, owner, trusted_types)
        return processor

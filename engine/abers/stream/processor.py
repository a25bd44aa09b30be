"""The stream processor: a deterministic state machine from events to outputs.

Governing rule: score at prediction time, pair at label time, never re-score.
Nothing but the events decides: no clock but theirs, no randomness, no I/O, so
the same events in the same order give the same outputs and the same state,
however they are batched; only models are retired where batches begin.

A batch goes through two rooms: one decides what becomes of each event, the next
lets each calibrator run its steps in one call, and words the outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers._shown import shown
from abers.exceptions import ParameterError, StateError
from abers.stream import journal, redoing, retirement, snapshot
from abers.stream.answering import Answering
from abers.stream.columns import Events
from abers.stream.deciding import Deciding
from abers.stream.events import Label, Observation
from abers.stream.kinds import task_of
from abers.stream.outputs import Outputs
from abers.stream.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from abers.learners import Learner
    from abers.stream.deciding import Decided
    from abers.stream.events import Event, Output
    from abers.stream.facts import Facts
    from abers.stream.journal import Entry
    from abers.stream.outputs import Judged
    from abers.stream.retirement import Retired
    from abers.stream.tasks import Answers, Monitor

__all__ = ["Processor"]


class Processor:
    """Predict observations, and learn their labels whenever they come.

    Parameters
    ----------
    settings
        The task, the calibrators and the limits.
    learner
        What scores the features, in place of the learner that the settings name; an object
        with `score(x)` and `learn(x, value)`, shared by all models.
    outcomes
        Whether a label that settles a prediction gives an `Outcome`.

    Attributes
    ----------
    position
        What the snapshot that this processor was restored from had as its position.

    Notes
    -----
    **Guarantee.** That of the calibrator, see `abers.VennAbers`: with a fixed scorer and
    exchangeable observations one of p0 and p1 is perfectly calibrated, provided that delay
    and absence of a label do not depend on it.

    **Rules.** An event that cannot be used becomes a `DeadLetter` and changes nothing but a
    counter. A second observation or label with the same id is ignored and counted. Labels
    that come before their observation wait for it. Expiry, and all other limits in time, go
    by the events' own time. Each model has a clock, the largest time of its events; an event
    further ahead than `max_jump` is used, but moves the clock only where others agree.

    Examples
    --------
    >>> from abers.stream import Label, Observation, Processor
    >>> processor = Processor()
    >>> processor.process(Observation("a1", time=1_000, score=0.83))[0].p
    0.5
    >>> processor.process(Label("a1", time=9_000, value=1))[0].label
    1
    >>> prediction, = processor.process(Observation("a2", time=9_500, score=0.9))
    >>> prediction.p0, prediction.p1, prediction.n
    (0.5, 1.0, 1)
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        learner: Learner | None = None,
        outcomes: bool = True,
    ) -> None:
        self.settings = settings = settings or Settings()
        self.position: Any = None
        self._outcomes = outcomes
        self._task = task_of(settings)
        self._mark = journal.marked(settings)
        self._spoiled = False
        self._deciding = Deciding(settings, self._task, learner)
        self._answering = Answering(self._task, settings)

    @property
    def clock(self) -> int | None:
        """The latest clock of all models, in milliseconds; None before the first event."""
        return self._deciding.clock

    @property
    def counters(self) -> dict[str, int]:
        """How many events of each kind came, and what became of them."""
        return self._deciding.counters

    @property
    def waiting(self) -> tuple[int, int]:
        """How many observations wait for labels, and labels for observations."""
        ledger = self._deciding.ledger
        return ledger.count(0), ledger.count(1)

    @property
    def keys(self) -> Sequence[tuple[str, str]]:
        """Model and segment of each calibrator, by its number."""
        return [*self._deciding.admission.keys]

    @property
    def monitors(self) -> Sequence[Monitor]:
        """What judges the predictions, one for each model and segment; none if switched off."""
        return self._answering.monitors or ()

    @property
    def monitor(self) -> Monitor | None:
        """What judges all predictions together; None if nothing is judged yet."""
        many = self.monitors
        return type(many[0]).total(many) if many else None

    def facts(self, judged: Judged) -> Facts:
        """Tell what labels say of predictions, in numbers that can be added up.

        Parameters
        ----------
        judged
            Of the outputs of this processor.

        Returns
        -------
        Facts
            A row for each prediction.

        Examples
        --------
        >>> from abers.stream import Events, Label, Observation, Processor
        >>> processor = Processor()
        >>> events = Events.of([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
        >>> facts = processor.facts(processor.take(events).judged)
        >>> facts.forecasts["calibrated"].squares.tolist(), facts.widths.tolist()
        ([0.25], [1.0])
        """
        return self._task.facts(judged.rows, judged.values)

    def forget(self, model: str) -> None:
        """Forget all that was learned of a model, as if its labels had never come.

        Parameters
        ----------
        model
            Its calibrators, monitors and bets begin anew, those of all its segments, its clock,
            and its learner, unless that is one for all models. Observations that wait for labels
            go on waiting, and their labels are learned.

        Raises
        ------
        ParameterError
            If no observation was of such a model; nothing is forgotten then.

        Examples
        --------
        >>> from abers.stream import Label, Observation, Processor
        >>> processor = Processor()
        >>> _ = processor.process_many([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
        >>> processor.forget("default")
        >>> processor.process(Observation("b", 3, score=0.5))[0].n
        0
        """
        self._require_sound()
        of = [number for number, key in enumerate(self.keys) if key[0] == model]
        if not of:
            msg = f"model {shown(model)} is not known; no observation was of it"
            raise ParameterError(msg)
        for number in of:
            self._answering.forget(number)
        self._deciding.forget(model)

    def process(self, event: Event) -> list[Output]:
        """Take one event.

        Parameters
        ----------
        event
            An `Observation` or a `Label`.

        Returns
        -------
        list
            What is to be said of it: predictions, outcomes, dead letters.
        """
        return self.process_many([event])

    def process_many(self, events: Iterable[Event]) -> list[Output]:
        """Take events in their order; as `process` for each.

        Parameters
        ----------
        events
            Observations and labels, in order of arrival.

        Returns
        -------
        list
            The outputs, in the order of the events.

        Raises
        ------
        ParameterError
            If something in the batch is neither; nothing of the batch is taken then.
        """
        batch = list(events)
        if not {*map(type, batch)} <= {Observation, Label}:
            row, event = next(
                (row, event)
                for row, event in enumerate(batch)
                if type(event) not in {Observation, Label}
            )
            msg = f"row {row}: {shown(event)} is no Observation and no Label"
            raise ParameterError(msg)
        return self.take(Events.of(batch)).in_order() if batch else []

    def take(self, events: Events) -> Outputs:
        """Take events by columns; as `process_many`, and as fast as can be.

        Parameters
        ----------
        events
            At least one.

        Returns
        -------
        Outputs
            What is to be said of them, each kind by itself.

        Examples
        --------
        >>> from abers.stream import Events, Observation, Processor
        >>> events = Events.of([Observation(f"a{i}", time=i, score=0.5) for i in range(3)])
        >>> Processor().take(events).predictions.columns["p"].tolist()
        [0.5, 0.5, 0.5]
        """
        self._require_sound()
        retired = retirement.begin(self, events)
        outputs, _ = self._answer(self._deciding.decide(events, retired.letters), retired)
        return outputs

    def take_noted(self, events: Events) -> tuple[Outputs, Entry]:
        """Take events as `take` does, and write down what was decided of them.

        Parameters
        ----------
        events
            At least one.

        Returns
        -------
        Outputs, Entry
            What is to be said of the events, and what `redo` takes.

        Raises
        ------
        ParameterError
            If something that is passed through cannot be written down; nothing is taken then.

        Examples
        --------
        >>> from abers.stream import Events, Observation, Processor
        >>> live, other = Processor(), Processor()
        >>> events = Events.of([Observation("a1", time=0, score=0.3)])
        >>> outputs, entry = live.take_noted(events)
        >>> other.redo(entry).in_order() == outputs.in_order()
        True
        >>> other.state_bytes() == live.state_bytes()
        True
        """
        self._require_sound()
        return journal.take(self, events)

    def redo(self, entry: Entry) -> Outputs:
        """Do what another processor did, without deciding anything again.

        Parameters
        ----------
        entry
            What `take_noted` gave. Entries are redone in their order, each once, by a new
            processor, or one restored from a snapshot between two of them.

        Returns
        -------
        Outputs
            Those of the other processor; only dead letters of events that did not come in are
            missing, since an entry has no more of them than row and reason.

        Raises
        ------
        StateError
            If the entry does not come next, is damaged, of other settings, or does not bring
            about the counters that it should. If that is seen before anything is changed, the
            state is as it was; otherwise the processor is spoiled, and refuses whatever is asked
            of it afterwards with a StateError.

        Notes
        -----
        **Guarantee.** The state is that of the other processor, to the last byte of
        `state_bytes`. Nothing is admitted, scored or predicted again, except where whole
        distributions are told or judged. Learners learn the same features and labels in the
        same order, without scoring in between.
        """
        self._require_sound()
        return redoing.redo(self, entry)

    def _spoil(self) -> None:
        """Note that what is remembered means nothing any more."""
        self._spoiled = True

    def _require_sound(self) -> None:
        if self._spoiled:
            msg = (
                "the processor is spoiled by an entry that it could not redo; throw it away, and "
                "restore one from a snapshot"
            )
            raise StateError(msg)

    def _answer(
        self, decided: Decided, retired: Retired, known: Answers | None = None
    ) -> tuple[Outputs, Answers]:
        """Answer what was decided, and word it; with answers that are known as they are."""
        admitted, taken, letters, dropped = decided
        keys = self._deciding.admission.keys
        self._answering.make_room(len(keys), self._deciding.ledger.capacity())
        said = self._answering.run(
            admitted, taken, dropped, list(keys), known, outcomes=self._outcomes
        )
        learns, rows = taken.learns == 1, admitted.rows[taken.rows]
        outputs = Outputs(
            said.predictions,
            said.outcomes,
            letters,
            rows[~learns],
            rows[learns],
            said.judged,
            [(int(admitted.rows[row]), alarm) for row, alarm in said.alarms],
            retired.names,
        )
        return outputs, said.answers

    # Saving

    def state_bytes(self) -> bytes:
        """Give the state in canonical form; learners are left out.

        Returns
        -------
        bytes
            Equal for processors of equal settings that took the same events.
        """
        self._require_sound()
        return b"".join(snapshot.state(self))

    def snapshot(
        self,
        position: Any = None,  # noqa: ANN401
        key: bytes | None = None,
        place: str = "",
    ) -> bytes:
        """Save the processor: versioned, with a checksum and its settings.

        Parameters
        ----------
        position
            Where reading goes on, kept for the caller; anything that JSON can hold.
        key
            Secret of 16 to 64 random bytes that seals all of it. Required with learners, for
            their state is a pickle, which must not be read unless it is known who wrote it.
        place
            Whose state it is, part of what the key seals; `restore` refuses that of another.

        Returns
        -------
        bytes
            What `restore` takes.

        Raises
        ------
        StateError
            If there are learners and no key, or something cannot be saved.
        ParameterError
            If the key is too short or too long.
        """
        return b"".join(self.snapshot_pieces(position, key, place))

    def snapshot_pieces(
        self,
        position: Any = None,  # noqa: ANN401
        key: bytes | None = None,
        place: str = "",
    ) -> Iterator[bytes | memoryview]:
        """Save the processor in pieces, so that the whole snapshot is never in memory.

        Parameters
        ----------
        position, key, place
            As for `snapshot`.

        Yields
        ------
        bytes or memoryview
            The bytes of `snapshot`, one piece behind the other. The processor must not take
            events before the last piece.

        Raises
        ------
        StateError
            If there are learners and no key, or something cannot be saved.
        ParameterError
            If the key is too short or too long.

        Examples
        --------
        >>> from abers.stream import Processor
        >>> b"".join(Processor().snapshot_pieces()) == Processor().snapshot()
        True
        """
        self._require_sound()
        return snapshot.dump(self, position, key, place)

    @classmethod
    def restore(  # noqa: PLR0913 - what it was made of, and what seals it
        cls,
        blob: bytes,
        settings: Settings | None = None,
        *,
        key: bytes | None = None,
        place: str = "",
        learner: Learner | None = None,
        outcomes: bool = True,
    ) -> Processor:
        """Restore a processor, which goes on as the saved one would have.

        Parameters
        ----------
        blob
            What `snapshot` gave.
        settings, learner, outcomes
            Those of the saved processor. The learner is replaced by the saved one.
        key, place
            The secret, and the place, that `snapshot` was given. With a key, what is not under
            it is refused; without one, what is under any.

        Returns
        -------
        Processor
            The processor; its `position` is what `snapshot` was given.

        Raises
        ------
        StateError
            If the bytes are damaged, of an unknown version, of other settings or of another
            place, or the key is missing or wrong. Nothing of them is read before the key has
            shown who wrote them.
        ParameterError
            If the key is too short or too long.

        Examples
        --------
        >>> from abers.stream import Observation, Processor
        >>> processor = Processor()
        >>> _ = processor.process(Observation("a1", time=0, score=0.3))
        >>> Processor.restore(processor.snapshot({"line": 1})).position
        {'line': 1}
        """
        processor = cls(settings, learner=learner, outcomes=outcomes)
        snapshot.load(processor, blob, key, place)
        return processor

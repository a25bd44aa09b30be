"""What was answered, by id: who asks again gets the same, so that a request may be repeated.

A processor remembers an id and ignores its second event. Here each id has its prediction, as it was
answered, and its label, for as long as the processor knows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.exceptions import StateError
from abers.serialization import REMEDY, seal, unseal
from abers.stream.events import Observation
from abers.stream.pending_store import EARLY
from abers.stream.tasks import make_task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.stream.events import DeadLetter, Event
    from abers.stream.outputs import Outputs
    from abers.stream.processor import Processor
    from abers.stream.settings import Settings

    _Key = tuple[str, str]  # model and id

__all__ = ["AnswerMemory", "EventAnswer", "without_answers"]

_MAGIC = b"abersDA\x01"
_encode_lines = msgspec.json.Encoder().encode_lines
_ANY = object()  # a label that came before answers were kept
_SLACK, _SPARE = 1.25, 1_000  # ids, so that adjusting takes little time for each event
_NUMBER_BYTES, _ANSWER_BYTES = 30, 400  # of a number of a prediction, and of all else
_FINISHED_BYTES = 110  # what a finished id counts, in pending_store.hpp


def without_answers(settings: Settings) -> Settings:
    """Return settings whose `max_bytes` leaves room for the answer of each id.

    Examples
    --------
    >>> from abers.stream import Settings
    >>> without_answers(Settings(max_bytes=1_000_000)).max_bytes
    174603
    """
    task = make_task(settings)
    answer = _ANSWER_BYTES + _NUMBER_BYTES * (task.score_width + task.prediction_width)
    share = settings.max_bytes * _FINISHED_BYTES // (_FINISHED_BYTES + answer)
    return msgspec.structs.replace(settings, max_bytes=share)


class EventAnswer(NamedTuple):
    """The answer to one event.

    Attributes
    ----------
    status
        Of an observation "predicted", "known" (the prediction is that of before), "forgotten" (it
        was predicted before answers were kept). Of a label "learned", "waiting" (for
        its observation), "duplicate" (the id has this label, learned or waiting), "conflict" (the
        id has another label, which counts), "late" (the observation no longer waits). Of both
        "refused".
    prediction
        The prediction as JSON, if there is one.
    dead_letter
        Why the event is refused.
    """

    status: str
    prediction: bytes | None = None
    dead_letter: DeadLetter | None = None


_LEARNED, _LATE, _WAITING = EventAnswer("learned"), EventAnswer("late"), EventAnswer("waiting")
_DUPLICATE, _CONFLICT = EventAnswer("duplicate"), EventAnswer("conflict")
_AGAIN = {"duplicate", "conflict", "late"}


class _Remembered(NamedTuple):
    prediction: bytes | None  # None if it was made before answers were kept
    label: Any = None


class AnswerMemory:
    """The predictions and labels of all ids that a processor knows.

    A processor forgets an id `dedup_ttl` after it is finished, or to stay within its limits, and
    its answer goes with it: at the latest when a quarter of the answers are of ids that it forgot,
    and before an answer could contradict the processor.

    Examples
    --------
    >>> from abers.stream import Label, Observation, Processor
    >>> processor, answers = Processor(), AnswerMemory()
    >>> events = [Observation("a", 1, score=0.5), Label("a", 2, value=1), Label("a", 3, value=0)]
    >>> outputs, _ = processor.process_logged(events)
    >>> [one.status for one in answers.take(events, outputs, processor)]
    ['predicted', 'learned', 'conflict']
    """

    def __init__(self) -> None:
        self._known: dict[_Key, _Remembered] = {}
        self._waiting: dict[_Key, Any] = {}  # labels before their observations
        self._early = 0  # of these, all that ever came

    def __len__(self) -> int:
        """Return the number of ids with predictions."""
        return len(self._known)

    def take(
        self, events: Sequence[Event], outputs: Outputs, processor: Processor
    ) -> list[EventAnswer]:
        """Note the outputs of events, and return the answer to each."""
        rows = _OutputRows.of(outputs)
        found: list[EventAnswer] = []
        for row, event in enumerate(events):
            key = (event.model, event.id)
            for gone in rows.unmatched.get(row, ()):
                self._waiting.pop(gone, None)
            if type(event) is Observation:
                found.append(self._of_observation(row, key, rows))
            else:
                found.append(self._of_label(row, event, key, rows))
            for settled, (label, _) in rows.settled.get(row, {}).items():
                self._settle(settled, label)
        early = processor.counters["early_labels"]
        expected = self._early + [one.status for one in found].count("waiting")
        if early != expected:  # an id was known here that the processor has forgotten
            known = self._known
            self.adjust(processor)
            self._correct(events, rows, found, known)
        elif len(self._known) > _SPARE + _SLACK * processor.known_count:
            self.adjust(processor)
        self._early = early
        return found

    def note(self, outputs: Outputs) -> None:
        """Note outputs, without answers to anybody; `adjust` follows behind the last."""
        made = [(one.model, one.id) for one in outputs.predictions]
        texts = map(_Remembered, _texts(outputs.predictions))
        self._known.update(zip(made, texts, strict=True))
        rows = dict(zip(made, outputs.predicted.tolist(), strict=True))
        for row, one in zip(outputs.settled.tolist(), outputs.outcomes or (), strict=True):
            key = (one.model, one.id)
            if row >= rows.get(key, 0) and not getattr(one, "assumed", False):
                self._settle(key, one.label)

    def adjust(self, processor: Processor) -> None:
        """Know the ids that a processor knows, and no others."""
        before = self._known
        known: dict[_Key, _Remembered] = {}
        waiting: dict[_Key, Any] = {}
        for some in processor.known_ids():
            if some.kind == EARLY:
                waiting.update(zip(some.names, some.labels, strict=False))
                continue
            for key, labelled in zip(some.names, some.labels, strict=False):
                known[key] = before.get(key) or _Remembered(None, _ANY if labelled else None)
        self._known, self._waiting = known, waiting
        self._early = processor.counters["early_labels"]

    def state(self, key: bytes | None) -> bytes:
        """Return what `load` takes, sealed under a key."""
        rows = [
            [*names, *known] for names, known in self._known.items() if known.prediction is not None
        ]
        return seal(_MAGIC, msgspec.msgpack.encode(rows), key)

    def load(self, state: bytes, key: bytes | None, name: str) -> None:
        """Load what was saved in a file; a StateError is raised if it is damaged."""
        payload = unseal(_MAGIC, state, f"{name}: a file of answers", key)
        try:
            rows = msgspec.msgpack.decode(payload, type=_ROWS)
        except (msgspec.MsgspecError, ValueError) as error:
            msg = f"{name} is garbled ({error}); {REMEDY}"
            raise StateError(msg) from None
        self._known = {
            (model, id_): _Remembered(encoded, label) for model, id_, encoded, label in rows
        }

    def _of_observation(self, row: int, key: _Key, rows: _OutputRows) -> EventAnswer:
        if (made := rows.made.get(row)) is not None:
            self._known[key] = _Remembered(made)
            self._waiting.pop(key, None)
            return EventAnswer("predicted", made)
        if (letter := rows.refused.get(row)) is not None:
            return EventAnswer("refused", dead_letter=letter)
        known = self._known.get(key)
        if known is None or known.prediction is None:
            return EventAnswer("forgotten")
        return EventAnswer("known", known.prediction)

    def _of_label(self, row: int, event: Event, key: _Key, rows: _OutputRows) -> EventAnswer:
        if (settled := rows.settled.get(row)) is not None and key in settled:
            return _LATE if settled[key][1] else _LEARNED
        if (letter := rows.refused.get(row)) is not None:
            return EventAnswer("refused", dead_letter=letter)
        value = getattr(event, "value", None)
        if (known := self._known.get(key)) is not None:
            return _LATE if known.label is None else _again(known.label, value)
        if key in self._waiting:
            return _again(self._waiting[key], value)
        self._waiting[key] = value
        return _WAITING

    def _correct(
        self,
        events: Sequence[Event],
        rows: _OutputRows,
        found: list[EventAnswer],
        known: Mapping[_Key, _Remembered],
    ) -> None:
        """Correct the answers to labels of ids that were known here, and not to the processor."""
        left, came = rows.left(), dict[tuple[str, str], Any]()
        for row, event in enumerate(events):
            key, value = (event.model, event.id), getattr(event, "value", None)
            if type(event) is Observation or found[row].status not in _AGAIN or key not in known:
                continue
            if key in came:
                found[row] = _again(came[key], value)
            elif key in self._waiting or row <= left.get(key, -1):
                came[key], found[row] = value, _WAITING

    def _settle(self, key: _Key, label: Any) -> None:  # noqa: ANN401 - as the task has it
        if (known := self._known.get(key)) is not None:
            self._known[key] = known._replace(label=label)


class _OutputRows(NamedTuple):
    """Outputs by the rows of the events that caused them."""

    made: dict[int, bytes]  # predictions as JSON
    refused: dict[int, DeadLetter]
    unmatched: dict[int, list[_Key]]  # labels that wait no longer
    settled: dict[int, dict[_Key, tuple[Any, bool]]]  # label of each id, and whether it was late

    @classmethod
    def of(cls, outputs: Outputs) -> _OutputRows:
        """Return the rows of outputs."""
        made = dict(zip(outputs.predicted.tolist(), _texts(outputs.predictions), strict=True))
        rows = cls(made, {}, {}, {})
        for row, letter in outputs.dead_letters:
            if letter.row is None:
                rows.unmatched.setdefault(row, []).append((letter.event.model, letter.event.id))
            else:
                rows.refused[row] = letter
        for row, one in zip(outputs.settled.tolist(), outputs.outcomes or (), strict=True):
            if not getattr(one, "assumed", False):
                late = getattr(one, "late", False)
                rows.settled.setdefault(row, {})[one.model, one.id] = one.label, late
        return rows

    def left(self) -> dict[_Key, int]:
        """Return the row at which each label that had waited was learned, or given up."""
        left = {key: row for row, keys in self.unmatched.items() for key in keys}
        for row in self.settled.keys() & self.made.keys():
            left |= dict.fromkeys(self.settled[row], row)
        return left


def _texts(predictions: Sequence[Any]) -> list[bytes]:
    """Return predictions as JSON: together, which takes a fraction of the time of each."""
    return _encode_lines([*predictions]).split(b"\n")[:-1]


def _again(first: Any, value: Any) -> EventAnswer:  # noqa: ANN401 - as the task has it
    """Return the answer to a label of an id that has one."""
    return _DUPLICATE if first is _ANY or first == value else _CONFLICT


_ROWS = list[tuple[str, str, bytes, Any]]

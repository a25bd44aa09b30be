"""What was answered, by id: who asks again gets the same, so that a request may be repeated.

A processor remembers an id and ignores its second event. Here each id has its prediction, as it was
answered, and its label, for as long as the processor knows it.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.exceptions import StateError
from abers.serialization import REMEDY, seal, unseal
from abers.stream.events import Label, Observation
from abers.stream.pending_store import EARLY
from abers.stream.tasks import make_task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.stream.events import DeadLetter, Event
    from abers.stream.outputs import Outputs
    from abers.stream.processor import Processor
    from abers.stream.settings import Settings

    _Key = tuple[str, str]  # model and id
    _Remembered = tuple[bytes | None, Any]  # prediction, if answers were kept then, and label

__all__ = ["AnswerMemory", "EventAnswer", "without_answers"]

_MAGIC = b"abersDA\x01"
_encode_lines = msgspec.json.Encoder().encode_lines
_ANY = object()  # a label that came before answers were kept
_SLACK, _SPARE = 1.25, 1_000  # ids, so that adjusting takes little time for each event
_NUMBER_BYTES, _ANSWER_BYTES = 30, 400  # of a number of a prediction, and of all else
_FINISHED_BYTES = 110  # what a finished id counts, in pending_store.hpp


def without_answers(settings: Settings) -> Settings:
    """Return settings with a smaller `max_bytes`, which leaves room for the answer of each id.

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


class EventAnswer(msgspec.Struct, frozen=True, gc=False):
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
_AGAIN = (_DUPLICATE, _CONFLICT, _LATE)
_NOTHING = (None, None)


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
        self._most = 0.0  # ids, above which some are perhaps forgotten

    def __len__(self) -> int:
        """Return the number of ids with predictions."""
        return len(self._known)

    def take(
        self, events: Sequence[Event], outputs: Outputs, processor: Processor
    ) -> list[EventAnswer]:
        """Note the outputs of events, and return the answer to each."""
        rows = _OutputRows.of(outputs, assumes=processor.settings.unlabelled is not None)
        made, settled, known = rows.made, rows.settled, self._known
        found: list[EventAnswer] = []
        others = False  # labels that were not learned
        for row, event in enumerate(events):
            key = (event.model, event.id)
            for gone in rows.unmatched.get(row, ()) if rows.unmatched else ():
                self._waiting.pop(gone, None)
            if type(event) is Observation:
                if (text := made.get(row)) is None:
                    found.append(self._seen(row, key, rows))
                    continue
                known[key] = (text, self._waiting.pop(key, None) if row in settled else None)
                found.append(EventAnswer("predicted", text))
            elif row in settled:
                known[key] = (known.get(key, _NOTHING)[0], _value(event))
                found.append(_LATE if row in rows.late else _LEARNED)
            else:
                others = True
                found.append(self._of_label(row, event, key, rows))
        if others:
            self._compare(events, rows, found, processor)
        if len(known) > self._most:
            self._most = _SPARE + _SLACK * processor.known_count
            if len(known) > self._most:
                self.adjust(processor)
        return found

    def note(self, outputs: Outputs) -> None:
        """Note outputs, without answers to anybody; `adjust` follows behind the last."""
        made = [(one.model, one.id) for one in outputs.predictions]
        texts = _texts(outputs.predictions)
        self._known.update(zip(made, zip(texts, repeat(None), strict=False), strict=True))
        rows = dict(zip(made, outputs.predicted.tolist(), strict=True))
        for row, one in zip(outputs.settled.tolist(), outputs.outcomes or (), strict=True):
            key = (one.model, one.id)
            if row >= rows.get(key, 0) and not getattr(one, "assumed", False):
                self._known[key] = (self._known.get(key, _NOTHING)[0], one.label)

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
                known[key] = before.get(key) or (None, _ANY if labelled else None)
        self._known, self._waiting = known, waiting
        self._early = processor.counters["early_labels"]

    def state(self, key: bytes | None) -> bytes:
        """Return what `load` takes, sealed under a key."""
        rows = [[*names, *known] for names, known in self._known.items() if known[0] is not None]
        return seal(_MAGIC, msgspec.msgpack.encode(rows), key)

    def load(self, state: bytes, key: bytes | None, name: str) -> None:
        """Load what was saved in a file; a StateError is raised if it is damaged."""
        payload = unseal(_MAGIC, state, f"{name}: a file of answers", key)
        try:
            rows = msgspec.msgpack.decode(payload, type=_ROWS)
        except (msgspec.MsgspecError, ValueError) as error:
            msg = f"{name} is garbled ({error}); {REMEDY}"
            raise StateError(msg) from None
        self._known = {(model, id_): (encoded, label) for model, id_, encoded, label in rows}

    def _seen(self, row: int, key: _Key, rows: _OutputRows) -> EventAnswer:
        """Return the answer to an observation that was not predicted."""
        if (letter := rows.refused.get(row)) is not None:
            return EventAnswer("refused", dead_letter=letter)
        text = self._known.get(key, _NOTHING)[0]
        return EventAnswer("forgotten" if text is None else "known", text)

    def _of_label(self, row: int, event: Event, key: _Key, rows: _OutputRows) -> EventAnswer:
        """Return the answer to a label that was not learned."""
        if (letter := rows.refused.get(row)) is not None:
            return EventAnswer("refused", dead_letter=letter)
        if (known := self._known.get(key)) is not None:
            return _LATE if known[1] is None else _again(known[1], _value(event))
        if key in self._waiting:
            return _again(self._waiting[key], _value(event))
        self._waiting[key] = _value(event)
        return _WAITING

    def _compare(
        self,
        events: Sequence[Event],
        rows: _OutputRows,
        found: list[EventAnswer],
        processor: Processor,
    ) -> None:
        """Compare the number of labels that wait with that of the processor."""
        self._early += sum(one is _WAITING for one in found)
        if self._early != processor.counters["early_labels"]:
            known = self._known  # some of them the processor has forgotten
            self.adjust(processor)
            self._correct(events, rows, found, known)

    def _correct(
        self,
        events: Sequence[Event],
        rows: _OutputRows,
        found: list[EventAnswer],
        known: Mapping[_Key, _Remembered],
    ) -> None:
        """Correct the answers to labels of ids that were known here, and not to the processor."""
        left = {key: row for row, keys in rows.unmatched.items() for key in keys}
        left |= {
            (events[row].model, events[row].id): row for row in rows.settled & rows.made.keys()
        }
        came: dict[_Key, Any] = {}
        for row, event in enumerate(events):
            key = (event.model, event.id)
            if type(event) is Observation or found[row] not in _AGAIN or key not in known:
                continue
            if key in came:
                found[row] = _again(came[key], _value(event))
            elif key in self._waiting or row <= left.get(key, -1):
                came[key], found[row] = _value(event), _WAITING


class _OutputRows(NamedTuple):
    """Outputs by the rows of the events that caused them."""

    made: dict[int, bytes]  # predictions as JSON
    settled: set[int]  # rows of events that settled with their own labels
    late: set[int]  # those of them with a label that came after another was assumed
    refused: dict[int, DeadLetter]
    unmatched: dict[int, list[_Key]]  # labels that wait no longer

    @classmethod
    def of(cls, outputs: Outputs, *, assumes: bool) -> _OutputRows:
        """Return the rows of outputs, of a processor that assumes labels or not."""
        made = dict(zip(outputs.predicted.tolist(), _texts(outputs.predictions), strict=True))
        settled = outputs.settled.tolist()
        late: set[int] = set()
        if assumes:
            outcomes = [*zip(settled, outputs.outcomes or (), strict=True)]
            settled = [row for row, one in outcomes if not one.assumed]
            late = {row for row, one in outcomes if one.late}
        rows = cls(made, {*settled}, late, {}, {})
        for row, letter in outputs.dead_letters:
            if letter.row is None:
                rows.unmatched.setdefault(row, []).append((letter.event.model, letter.event.id))
            else:
                rows.refused[row] = letter
        return rows


def _texts(predictions: Sequence[Any]) -> list[bytes]:
    """Return predictions as JSON: together, which takes a fraction of the time of each."""
    return _encode_lines([*predictions]).split(b"\n")[:-1]


def _again(first: Any, value: Any) -> EventAnswer:  # noqa: ANN401 - as the task has it
    """Return the answer to a label of an id that has one."""
    return _DUPLICATE if first is _ANY or first == value else _CONFLICT


def _value(event: Event) -> Any:  # noqa: ANN401 - as the task has it
    return event.value if type(event) is Label else None


_ROWS = list[tuple[str, str, bytes, Any]]

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
from abers.stream.pending_store import EARLY, REPEATS, WAITS
from abers.stream.tasks import make_task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream.columns import Events
    from abers.stream.events import DeadLetter, Event
    from abers.stream.outputs import Outputs
    from abers.stream.processor import Processor
    from abers.stream.settings import Settings

    _Key = tuple[str, str]  # model and id
    _Remembered = tuple[bytes | None, Any]  # prediction, if answers were kept then, and label

__all__ = ["AnswerMemory", "EventAnswer", "without_answers"]

_MAGIC = b"abersDA\x01"
_encode_lines = msgspec.json.Encoder().encode_lines
_ANY = object()  # a label from before answers were kept
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
_NOTHING = (None, None)
_UNSCORED = ("bad-score", "learner-failed")  # by the learner


class AnswerMemory:
    """The predictions and labels of all ids that a processor knows.

    A processor forgets an id `dedup_ttl` after it is finished, or to stay within its limits. It
    says of each event that it takes whether its id is known, so the answer of a forgotten id is not
    read then: it is replaced if the id comes again, and goes before a quarter of all are so.

    Examples
    --------
    >>> from abers.stream import Label, Observation, Processor
    >>> processor, answers = Processor(), AnswerMemory()
    >>> answers.adjust(processor)
    >>> events = [Observation("a", 1, score=0.5), Label("a", 2, value=1), Label("a", 3, value=0)]
    >>> outputs, _ = processor.process_logged(events)
    >>> [one.status for one in answers.take(events, outputs, processor)]
    ['predicted', 'learned', 'conflict']
    """

    def __init__(self) -> None:
        self._known: dict[_Key, _Remembered] = {}  # labels that wait, too
        self._most = 0.0  # ids, above which some are perhaps forgotten

    def __len__(self) -> int:
        """Return the number of ids."""
        return len(self._known)

    def take(
        self, events: Sequence[Event] | Events, outputs: Outputs, processor: Processor
    ) -> list[EventAnswer]:
        """Note the outputs of events, the last of a processor, and return the answer to each."""
        rows = _OutputRows.of(outputs, assumes=processor.settings.unlabelled is not None)
        made, settled, known = rows.made, rows.settled, self._known
        unsettled = iter(processor.unsettled())
        found: list[EventAnswer] = []
        for row, event in enumerate(events):
            key = (event.model, event.id)
            if (text := made.get(row)) is not None:
                known[key] = (text, known[key][1] if row in settled else None)
                found.append(EventAnswer("predicted", text))
            elif row in settled:
                known[key] = (known[key][0], _value(event))
                found.append(_LATE if row in rows.late else _LEARNED)
            elif (letter := rows.refused.get(row)) is not None:
                found.append(self._refused(event, letter))
            elif type(event) is Observation:
                text = known[key][0]
                found.append(EventAnswer("forgotten" if text is None else "known", text))
            else:
                found.append(self._of_label(key, _value(event), next(unsettled)))
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
        """Know the ids that a processor knows, and no others, and what it takes from now on."""
        known: dict[_Key, _Remembered] = {}
        for some in processor.known_ids():
            for key, label in zip(some.names, some.labels, strict=False):
                if some.kind == EARLY:
                    known[key] = (None, label)
                else:
                    known[key] = self._known.get(key) or (None, _ANY if label else None)
        self._known = known
        processor.unsettled()

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

    def _refused(self, event: Event, letter: DeadLetter) -> EventAnswer:
        """Return the answer to an event that is refused.

        A learner scores an observation that comes again, too: that it cannot any more is no reason
        to refuse what it could.
        """
        if letter.reason in _UNSCORED and type(event) is Observation and event.x is not None:
            text = self._known.get((event.model, event.id), _NOTHING)[0]
            if text is not None:
                return EventAnswer("known", text)
        return EventAnswer("refused", dead_letter=letter)

    def _of_label(self, key: _Key, value: Any, what: int) -> EventAnswer:  # noqa: ANN401
        """Return the answer to a label that settled nothing."""
        if what == WAITS:
            self._known[key] = (None, value)
            return _WAITING
        if what != REPEATS:
            return _LATE
        first = self._known[key][1]
        return _DUPLICATE if first is _ANY or first == value else _CONFLICT


class _OutputRows(NamedTuple):
    """Outputs by the rows of the events that caused them."""

    made: dict[int, bytes]  # predictions as JSON
    settled: set[int]  # rows of events that settled with their own labels
    late: set[int]  # those of them with a label that came after another was assumed
    refused: dict[int, DeadLetter]

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
        refused = {row: one for row, one in outputs.dead_letters if one.row is not None}
        return cls(made, {*settled}, late, refused)


def _texts(predictions: Sequence[Any]) -> list[bytes]:
    """Return predictions as JSON: together, which takes a fraction of the time of each."""
    return _encode_lines([*predictions]).split(b"\n")[:-1]


def _value(event: Event) -> Any:  # noqa: ANN401 - as the task has it
    return event.value if type(event) is Label else None


_ROWS = list[tuple[str, str, bytes, Any]]

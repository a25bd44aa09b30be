"""What was answered, by id: who asks again gets the same, so that a request may be repeated.

A processor remembers an id and ignores its second event. Here each id has its prediction, as it was
answered, and its label. Labels that wait for their observation are not here.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.exceptions import StateError
from abers.serialization import REMEDY, seal, unseal
from abers.stream.events import Observation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from abers.stream.events import DeadLetter, Event
    from abers.stream.outputs import Outputs

__all__ = ["AnswerMemory", "EventAnswer"]

_MAGIC = b"abersDA\x01"
_encode = msgspec.json.Encoder().encode


class EventAnswer(NamedTuple):
    """The answer to one event.

    Attributes
    ----------
    status
        Of an observation "predicted", "known" (the prediction is that of before), "forgotten" (it
        was predicted, and the prediction is no longer there). Of a label "learned", "waiting" (for
        its observation), "duplicate", "conflict" (another label of this id came before), "late"
        (the observation no longer waits). Of both "refused".
    prediction
        The prediction as JSON, if there is one.
    dead_letter
        Why the event is refused.
    """

    status: str
    prediction: bytes | None = None
    dead_letter: DeadLetter | None = None


class _Remembered(NamedTuple):
    prediction: bytes
    label: Any = None


class AnswerMemory:
    """The predictions and labels of the last ids of all models.

    Parameters
    ----------
    most
        Number of ids beyond which the oldest is forgotten; each takes about 400 bytes.

    Examples
    --------
    >>> from abers.stream import Label, Observation, Processor
    >>> processor, answers = Processor(), AnswerMemory(1_000)
    >>> events = [Observation("a", 1, score=0.5), Label("a", 2, value=1), Label("a", 3, value=0)]
    >>> [one.status for one in answers.take(events, processor.process_logged(events)[0])]
    ['predicted', 'learned', 'conflict']
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[tuple[str, str], _Remembered] = {}

    def __len__(self) -> int:
        """Return the number of ids."""
        return len(self._known)

    def take(self, events: Iterable[Event], outputs: Outputs) -> list[EventAnswer]:
        """Note the outputs of events, and return the answer to each."""
        known = self._known
        refused = {row: one for row, one in outputs.dead_letters if one.row is not None}
        learned = self._learned(outputs)
        made = dict(zip(outputs.predicted.tolist(), outputs.predictions, strict=True))
        found: list[EventAnswer] = []
        for row, event in enumerate(events):
            key = (event.model, event.id)
            if type(event) is not Observation:
                found.append(self._of_label(event, key, learned.get(row, {}), refused.get(row)))
            elif (prediction := made.get(row)) is not None:
                encoded = _encode(prediction)
                known[key] = _Remembered(encoded)
                found.append(EventAnswer("predicted", encoded))
            elif row in refused:
                found.append(EventAnswer("refused", dead_letter=refused[row]))
            else:
                found.append(_again(known.get(key)))
            for settled, (label, _) in learned.get(row, {}).items():
                self._settle(settled, label)
        self._forget()
        return found

    def note(self, outputs: Outputs) -> None:
        """Note outputs, without answers to anybody."""
        for one in outputs.predictions:
            self._known[one.model, one.id] = _Remembered(_encode(one))
        for one in outputs.outcomes or ():
            self._settle((one.model, one.id), one.label)
        self._forget()

    def state(self, key: bytes | None) -> bytes:
        """Return what `load` takes, sealed under a key."""
        rows = [[*names, *known] for names, known in self._known.items()]
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
        self._forget()

    def _learned(self, outputs: Outputs) -> dict[int, dict[tuple[str, str], tuple[Any, bool]]]:
        """Return label and lateness of each id that settled, by the row that caused it."""
        learned: dict[int, dict[tuple[str, str], tuple[Any, bool]]] = {}
        for row, one in zip(outputs.settled.tolist(), outputs.outcomes or (), strict=True):
            late = getattr(one, "late", False)
            learned.setdefault(row, {})[one.model, one.id] = one.label, late
        return learned

    def _of_label(
        self,
        event: Event,
        key: tuple[str, str],
        learned: Mapping[tuple[str, str], tuple[Any, bool]],
        letter: DeadLetter | None,
    ) -> EventAnswer:
        if key in learned:
            return EventAnswer("late" if learned[key][1] else "learned")
        if letter is not None:
            return EventAnswer("refused", dead_letter=letter)
        known = self._known.get(key)
        if known is None:
            return EventAnswer("waiting")
        if known.label is None:
            return EventAnswer("late")
        return EventAnswer(
            "duplicate" if known.label == getattr(event, "value", None) else "conflict"
        )

    def _settle(self, key: tuple[str, str], label: Any) -> None:  # noqa: ANN401 - as the task has it
        if (known := self._known.get(key)) is not None:
            self._known[key] = known._replace(label=label)

    def _forget(self) -> None:
        for key in [*islice(self._known, max(0, len(self._known) - self._most))]:
            del self._known[key]


def _again(known: _Remembered | None) -> EventAnswer:
    """Return the answer to an observation that was predicted before."""
    return EventAnswer("forgotten") if known is None else EventAnswer("known", known.prediction)


_ROWS = list[tuple[str, str, bytes, Any]]

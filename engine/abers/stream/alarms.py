"""E-processes against the predictions of all keys, and the alarms that they raise.

Observations are numbered as they are predicted, those of all keys together. For the tests, an
observation expires when `most` others were predicted after it and its label has not come, so no
more than that many ever wait.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from abers.arrays import raw
from abers.monitoring.e_processes import EXPIRES, EProcessSteps
from abers.monitoring.tested_view import ALARM_TEST
from abers.serialization import column, count, require
from abers.stream.alarm_message import alarm_message
from abers.stream.columns import by_key
from abers.stream.events import Alarm
from abers.stream.msgpack_encoder import ARRAY, encode, encode_array, header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers.arrays import Floats, Integers
    from abers.monitoring.e_processes import EProcess, OpenedIncident
    from abers.serialization import Piece
    from abers.stream.joined_batch import ExpiredObservations, JoinedSteps

__all__ = ["KeyedEProcesses", "SavedEProcesses", "alarms"]

_UNKNOWN = -1  # number of an observation that is not tested
_NEVER = np.iinfo(np.int64).max
_SPARE = 8  # the numbers grow by one part in so many at least


_Test: TypeAlias = tuple[float, int, int, tuple[int, int, int, float] | None, int | None, int]
_Shift: TypeAlias = tuple[float, int, int, list[float]]
_Block: TypeAlias = tuple[tuple[float, memoryview], tuple[int, int, int, int], int, int]
_Verdicts: TypeAlias = tuple[int, int, bool, list[Any] | None, _Block]
_Losses: TypeAlias = tuple[int, float, float, int, int, int]
_Key: TypeAlias = tuple[
    list[bytes],
    tuple[memoryview, memoryview, memoryview, memoryview],
    tuple[int, int, int],
    list[tuple[list[_Test], _Shift | None, list[_Verdicts]]],
    _Losses | None,
]


class SavedEProcesses(msgspec.Struct, array_like=True):
    """State of all e-processes."""

    made: int  # number of observations that were numbered
    numbers: memoryview  # those of the observations that wait for labels, as little-endian i8
    keys: list[_Key | None]  # state of the e-process of each key


class _Ends(NamedTuple):
    """Observations that expired, a row each."""

    rows: Integers
    keys: Integers
    numbers: Integers


class KeyedEProcesses:
    """The e-process of each key, and the numbers of the observations."""

    def __init__(self, make: Callable[[], EProcess], most: int) -> None:
        self._make, self._most = make, most
        self.by_key: list[EProcess] = []
        self._made = 0
        self._numbers = np.full(1, _UNKNOWN)  # by slot
        self._heads = np.empty(0, np.int64)  # by key: the first number that waits

    def add(self) -> EProcess:
        """Add and return the e-process of one more key."""
        self.by_key.append(self._make())
        self._heads = np.append(self._heads, _NEVER)
        return self.by_key[-1]

    def renew(self, key: int) -> EProcess:
        """Replace the e-process of a key by a new one; what waits is no longer tested."""
        self.by_key[key], self._heads[key] = self._make(), _NEVER
        return self.by_key[key]

    def keep(self, keys: Integers, slots: Integers) -> None:
        """Keep only these keys and slots, in their order."""
        self.by_key = [self.by_key[key] for key in keys.tolist()]
        self._heads = self._heads[keys]
        self._numbers = np.concatenate(([_UNKNOWN], self._numbers[slots]))

    def reserve(self, slots: int) -> None:
        """Reserve a number for every slot."""
        if (more := slots - len(self._numbers)) > 0:
            spare = np.full(more + slots // _SPARE, _UNKNOWN)
            self._numbers = np.concatenate((self._numbers, spare))

    def run(
        self,
        joined: JoinedSteps,
        expired: ExpiredObservations,
        forecasts: Floats,
        outcomes: Floats,
    ) -> list[tuple[int, int, OpenedIncident]]:
        """Add predictions, and settle what is labelled or expires in a batch.

        Forecasts and outcomes are the values of each prediction, and of each label, a row each.
        Return the incidents that opened, in the order of the events, with row and key of each.
        """
        predicts = joined.learns == 0
        newest = self._made - 1 + np.cumsum(predicts)
        made = np.arange(self._made, self._made + len(forecasts))
        self._made += len(forecasts)
        self._numbers[joined.slots[predicts]] = made
        numbers = self._numbers[joined.slots]
        numbers[newest - numbers >= self._most] = _UNKNOWN
        values = np.empty((len(numbers), forecasts.shape[1]))
        values[predicts], values[~predicts] = forecasts, outcomes
        steps = EProcessSteps(joined.learns, numbers, joined.times, values)
        rows, keys = joined.rows, joined.keys
        ends = [_Ends(expired.rows, expired.keys, self._numbers[expired.slots])]
        ends.append(self._overdue(made, rows[predicts], keys[predicts]))
        if any(len(one.rows) for one in ends):
            rows, keys, steps = _merged(rows, keys, steps, ends)
        return self._run(rows, keys, steps)

    def _overdue(self, made: Integers, rows: Integers, keys: Integers) -> _Ends:
        """Return what expires, since `most` others were predicted after it."""
        limit = self._made - self._most
        here = made < limit
        found = [(made[here], keys[here])]
        for key in np.flatnonzero(self._heads < limit).tolist():
            waiting = self.by_key[key].waiting
            waiting = waiting[waiting < limit]
            found.append((waiting, np.full(len(waiting), key)))
        numbers, owners = (np.concatenate(column) for column in zip(*found, strict=True))
        return _Ends(rows[numbers + (self._most - self._made + len(made))], owners, numbers)

    def _run(
        self, rows: Integers, keys: Integers, steps: EProcessSteps
    ) -> list[tuple[int, int, OpenedIncident]]:
        found = []
        for key, part in by_key(keys):
            columns: list[Any] = [column[part] for column in steps]
            process = self.by_key[key]
            opened = process.run(EProcessSteps(*columns))
            found += [(int(rows[part][one.step]), key, one) for one in opened]
            self._heads[key] = process.first
        return sorted(found, key=itemgetter(0, 1))

    # Saving

    def save(self, slots: Integers) -> Iterator[Piece] | None:
        """Encode the state with what waits in these slots; None before the first observation."""
        return self._encoded(slots) if self._made else None

    def _encoded(self, slots: Integers) -> Iterator[Piece]:
        yield header(ARRAY, 3)
        yield from encode(self._made)
        yield from encode(raw(self._numbers[slots]))
        yield from encode_array(len(self.by_key), (one.state() for one in self.by_key))

    def load(self, saved: SavedEProcesses) -> int:
        """Load a state for the slots from the second on; return how many observations wait.

        A ValueError is raised if it cannot be one.
        """
        self._made = count(saved.made, "numbers of observations")
        numbers = column(saved.numbers, "<i8", "numbers of observations")
        require(((numbers >= _UNKNOWN) & (numbers < self._made)).all(), "numbers of observations")
        require(len(numbers) < len(self._numbers), "numbers of observations")
        self._numbers[1 : len(numbers) + 1] = numbers
        for key, (process, state) in enumerate(zip(self.by_key, saved.keys, strict=True)):
            process.load(state)
            waiting = process.waiting
            sound = waiting >= self._made - self._most
            require((sound & (waiting < self._made)).all(), "observations that wait")
            self._heads[key] = process.first
        return len(numbers)


def _merged(
    rows: Integers, keys: Integers, steps: EProcessSteps, ends: Sequence[_Ends]
) -> tuple[Integers, Integers, EProcessSteps]:
    """Merge ends into steps, each behind the other steps of its row."""
    end_rows, end_keys, numbers = (np.concatenate(column) for column in zip(*ends, strict=True))
    more = len(end_rows)
    rows = np.concatenate((rows, end_rows))
    order = np.argsort(rows, kind="stable")
    merged = EProcessSteps(
        np.concatenate((steps.kinds, np.full(more, EXPIRES, np.uint8)))[order],
        np.concatenate((steps.numbers, numbers))[order],
        np.concatenate((steps.times, np.zeros(more, np.int64)))[order],
        np.concatenate((steps.values, np.zeros((more, steps.values.shape[1]))))[order],
    )
    return rows[order], np.concatenate((keys, end_keys))[order], merged


def alarms(
    opened: Sequence[tuple[int, int, OpenedIncident]],
    keys: Sequence[tuple[str, str]],
    e_processes: Sequence[EProcess],
) -> list[tuple[int, Alarm]]:
    """Return the alarms among incidents that opened, with the row of each.

    The incidents have their rows and keys; of each key there are model and segment, and e-process.
    """
    made = []
    for row, key, one in opened:
        if one.test != ALARM_TEST:
            continue
        process = e_processes[key]
        of = (one.view, one.test)
        (test,) = (each for each in process.evidence() if (each.view, each.name) == of)
        number, time, _, wealth = one.incident
        message = alarm_message(*keys[key], process, one, test)
        alarm = Alarm(*keys[key], *of, number, time, wealth, test.log_threshold, message)
        made.append((row, alarm))
    return made

"""E-processes against the predictions of all keys, and the alarms that they raise.

Observations are numbered as they are predicted, those of each key apart, so a key knows nothing of
the others. For the tests, an observation expires when `most` others of its key were predicted after
it and its label has not come, so no more than that many of a key ever wait.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np

from abers.arrays import raw
from abers.monitoring.e_processes import EXPIRES, PREDICTS, EProcessSteps
from abers.monitoring.tested_view import ALARM_TEST
from abers.serialization import column, require
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

    numbers: memoryview  # those of the observations that wait for labels, as little-endian i8
    keys: list[_Key | None]  # state of the e-process of each key


class KeyedEProcesses:
    """The e-process of each key, and the numbers of the observations that wait."""

    def __init__(self, make: Callable[[], EProcess], most: int) -> None:
        self._make, self._most = make, most
        self.by_key: list[EProcess] = []
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

    def run(  # noqa: PLR0913, PLR0917 - a column each
        self,
        joined: JoinedSteps,
        expired: ExpiredObservations,
        numbers: Integers,
        made: Integers,
        forecasts: Floats,
        outcomes: Floats,
    ) -> list[tuple[int, int, OpenedIncident]]:
        """Add predictions, and settle what is labelled or expires in a batch.

        Numbers and forecasts are those of each prediction, outcomes the values of each label, a row
        each; `made` is the number of predictions of each key after them. Return the incidents that
        opened, in the order of the events, with row and key of each.
        """
        predicts = joined.learns == 0
        self._numbers[joined.slots[predicts]] = numbers
        values = np.empty((len(predicts), forecasts.shape[1]))
        values[predicts], values[~predicts] = forecasts, outcomes
        steps = EProcessSteps(joined.learns, self._numbers[joined.slots], joined.times, values)
        rows, keys = joined.rows, joined.keys
        if len(expired.rows):
            rows, order = _order_with_ends(rows, expired.rows)
            keys = np.concatenate((keys, expired.keys))[order]
            steps = _with_ends(steps, self._numbers[expired.slots], order)
        found = []
        for key, part in by_key(keys):
            columns: list[Any] = [column[part] for column in steps]
            limit = int(made[key]) - self._most
            found += self._run(key, limit, rows[part], EProcessSteps(*columns))
        return sorted(found, key=itemgetter(0, 1))

    def _run(
        self, key: int, limit: int, rows: Integers, steps: EProcessSteps
    ) -> list[tuple[int, int, OpenedIncident]]:
        """Run the steps of a key; numbers below the limit are overdue after them."""
        process = self.by_key[key]
        if self._heads[key] < limit or len(rows) > self._most:  # else no number is that low
            rows, steps = self._with_overdue(key, limit, rows, steps)
        opened = process.run(steps)
        self._heads[key] = process.first
        return [(int(rows[one.step]), key, one) for one in opened]

    def _with_overdue(
        self, key: int, limit: int, rows: Integers, steps: EProcessSteps
    ) -> tuple[Integers, EProcessSteps]:
        """Let each observation expire at the prediction of its key that is `most` later."""
        predicts = steps.kinds == PREDICTS
        made, waiting = steps.numbers[predicts], self.by_key[key].waiting
        numbers = np.concatenate((waiting[waiting < limit], made[made < limit]))
        ends = rows[predicts][numbers - limit + len(made)]
        rows, order = _order_with_ends(rows, ends)
        return rows, _with_ends(steps, numbers, order)

    # Saving

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the state with what waits in these slots."""
        yield header(ARRAY, 2)
        yield from encode(raw(self._numbers[slots]))
        yield from encode_array(len(self.by_key), (one.state() for one in self.by_key))

    def load(self, saved: SavedEProcesses, made: Integers) -> int:
        """Load a state for the slots from the second on; return how many observations wait.

        Of each key so many observations were made. A ValueError is raised if it cannot be one.
        """
        numbers = column(saved.numbers, "<i8", "numbers of observations")
        most = max(made.tolist(), default=0)
        require(((numbers >= _UNKNOWN) & (numbers < most)).all(), "numbers of observations")
        require(len(numbers) < len(self._numbers), "numbers of observations")
        self._numbers[1 : len(numbers) + 1] = numbers
        for key, (process, state) in enumerate(zip(self.by_key, saved.keys, strict=True)):
            process.load(state)
            waiting = process.waiting
            sound = waiting >= made[key] - self._most
            require((sound & (waiting < made[key])).all(), "observations that wait")
            self._heads[key] = process.first
        return len(numbers)


def _order_with_ends(rows: Integers, ends: Integers) -> tuple[Integers, Integers]:
    """Return rows of steps and of ends in order, each end behind the steps of its row."""
    rows = np.concatenate((rows, ends))
    order = np.argsort(rows, kind="stable")
    return rows[order], order


def _with_ends(steps: EProcessSteps, numbers: Integers, order: Integers) -> EProcessSteps:
    """Return steps and the ends of observations with these numbers, in an order."""
    more = len(numbers)
    return EProcessSteps(
        np.concatenate((steps.kinds, np.full(more, EXPIRES, np.uint8)))[order],
        np.concatenate((steps.numbers, numbers))[order],
        np.concatenate((steps.times, np.zeros(more, np.int64)))[order],
        np.concatenate((steps.values, np.zeros((more, steps.values.shape[1]))))[order],
    )


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

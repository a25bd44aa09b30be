"""E-processes against the predictions of all keys, and the alarms that they raise.

Observations are numbered as they are predicted, those of each key apart, so a key knows nothing of
the others. For the tests, an observation expires when `most` others of its key were predicted after
it and its label has not come, so no more than that many of a key ever wait.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np

from abers.arrays import raw
from abers.monitoring.e_processes import EXPIRES, EProcessSteps
from abers.monitoring.tested_view import ALARM_TEST
from abers.serialization import column, require
from abers.stream.alarm_message import alarm_message
from abers.stream.events import Alarm
from abers.stream.key_groups import grouped
from abers.stream.msgpack_encoder import ARRAY, encode, encode_array, header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers.arrays import Floats, Integers
    from abers.monitoring.e_processes import EProcess, OpenedIncident
    from abers.monitoring.shift import Shift
    from abers.serialization import Piece
    from abers.stream.joined_batch import ExpiredObservations, JoinedSteps

__all__ = ["KeyedEProcesses", "SavedEProcesses", "alarms"]

_UNKNOWN = -1  # number of an observation that is not tested
_SPARE = 8  # the numbers grow by one part in so many at least


_Losses: TypeAlias = tuple[int, float, float, int, int, int]
_Key: TypeAlias = tuple[
    list[bytes],
    tuple[memoryview, memoryview, memoryview, memoryview],
    tuple[int, int, int],
    list[tuple[bytes, list[memoryview]]],
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

    def add(self) -> EProcess:
        """Add and return the e-process of one more key."""
        self.by_key.append(self._make())
        return self.by_key[-1]

    def renew(self, key: int) -> EProcess:
        """Replace the e-process of a key by a new e-process; what waits is no longer tested."""
        self.by_key[key] = self._make()
        return self.by_key[key]

    def keep(self, keys: Integers, slots: Integers) -> None:
        """Keep only these keys and slots, in their order."""
        self.by_key = [self.by_key[key] for key in keys.tolist()]
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
        numbers: Integers,
        forecasts: Floats,
        outcomes: Floats,
    ) -> list[tuple[int, int, OpenedIncident]]:
        """Add predictions, and settle what is labelled or expires in a batch.

        Numbers and forecasts are those of each prediction, outcomes the values of each label, a row
        each. Return the incidents that opened, in the order of the events, with row and key of
        each.
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
        present, order, offsets = grouped(keys)
        if not present:
            return []
        if len(present) > 1:
            rows, steps = rows[order], steps.part(order)
        processes = [self.by_key[key] for key in present]
        found = [
            (int(rows[one.step]), present[at], one)
            for at, one in processes[0].run_many(processes, offsets[1:], steps, self._most)
        ]
        return sorted(found, key=itemgetter(0, 1))

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
        made.append((row, _sized(alarm, process, one.shift)))
    return made


def _sized(alarm: Alarm, process: EProcess, shift: Shift | None) -> Alarm:
    """Return an alarm with the labels since the fault probably began."""
    if shift is None:
        return alarm
    return msgspec.structs.replace(
        alarm,
        fault=process.faults[shift.direction],
        since=shift.since,
        labels=shift.labels,
        outcome=shift.outcome,
        promised=shift.expected,
        came=shift.observed,
    )

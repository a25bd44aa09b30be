"""The bets against the predictions of all keys, and the alarms they raise.

Governing rule: observations are numbered as they are predicted, those of all keys together. For the
bets, one has expired when `most` others were predicted after it and its label has not come; so no
more than that many ever wait.
"""

from __future__ import annotations

import math
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from abers._arrays import raw
from abers._saved import column, count, require
from abers._shown import shown
from abers.monitoring.settling import EXPIRES, Steps
from abers.stream.events import Alarm
from abers.stream.grouping import by_key
from abers.stream.pieces import ARRAY, header, pieces, several

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from abers._sealed import Piece
    from abers.monitoring.settling import Opened
    from abers.stream.answering import Dropped, Taken
    from abers.stream.settings import Settings
    from abers.stream.tasks import KeyBets

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Bets", "Saved", "alarms", "betting"]

_UNKNOWN = -1  # number of an observation on which there is no bet
_NEVER = np.iinfo(np.int64).max
_SPARE = 8  # the numbers grow by one part in so many at least
_ALARMING = (
    "change"  # the test whose episodes are told: of the others, one may look at the evidence
)


_Test: TypeAlias = tuple[float, int, int, tuple[int, int, int, float] | None]
_Key: TypeAlias = tuple[
    list[bytes],
    tuple[memoryview, memoryview, memoryview, memoryview],
    tuple[int, int],
    list[_Test],
]


class Saved(msgspec.Struct, array_like=True):
    """What bets remember.

    Attributes
    ----------
    made
        How many observations were numbered.
    numbers
        Of the observations that wait for labels, as little-endian i8.
    keys
        The state of the bets of each key.
    """

    made: int
    numbers: memoryview
    keys: list[_Key | None]


class _Ends(NamedTuple):
    """Observations that wait no longer, a row each."""

    rows: Integers
    keys: Integers
    numbers: Integers


class Bets:
    """The bets of each key, and the numbers of the observations.

    Parameters
    ----------
    make
        Makes the bets of a key.
    most
        After how many others an observation waits no longer.

    Attributes
    ----------
    by_key
        The bets of each key.
    """

    def __init__(self, make: Callable[[], KeyBets], most: int) -> None:
        self._make, self._most = make, most
        self.by_key: list[KeyBets] = []
        self._made = 0
        self._numbers = np.full(1, _UNKNOWN)  # by slot
        self._heads = np.empty(0, np.int64)  # by key: the first number that waits

    def add(self) -> KeyBets:
        """Make the bets of one more key."""
        self.by_key.append(self._make())
        self._heads = np.append(self._heads, _NEVER)
        return self.by_key[-1]

    def renew(self, key: int) -> KeyBets:
        """Begin anew with the bets of a key; what waits is bet on no more."""
        self.by_key[key], self._heads[key] = self._make(), _NEVER
        return self.by_key[key]

    def keep(self, keys: Integers, slots: Integers) -> None:
        """Keep the bets of these keys and slots alone, in their order."""
        self.by_key = [self.by_key[key] for key in keys.tolist()]
        self._heads = self._heads[keys]
        self._numbers = np.concatenate(([_UNKNOWN], self._numbers[slots]))

    def make_room(self, slots: int) -> None:
        """Have a number for every slot."""
        if (more := slots - len(self._numbers)) > 0:
            spare = np.full(more + slots // _SPARE, _UNKNOWN)
            self._numbers = np.concatenate((self._numbers, spare))

    def run(
        self, taken: Taken, dropped: Dropped, staked: Floats, learned: Floats
    ) -> list[tuple[int, int, Opened]]:
        """Bet on what is predicted, and settle what is labelled or dropped.

        Parameters
        ----------
        taken, dropped
            What became of a batch.
        staked, learned
            What the bets are told of each prediction, and of each label, a row each.

        Returns
        -------
        list
            Row and key of each episode that opened, and it, in the order of the events.
        """
        predicts = taken.learns == 0
        newest = self._made - 1 + np.cumsum(predicts)
        made = np.arange(self._made, self._made + len(staked))
        self._made += len(staked)
        self._numbers[taken.slots[predicts]] = made
        numbers = self._numbers[taken.slots]
        numbers[newest - numbers >= self._most] = _UNKNOWN
        values = np.empty((len(numbers), staked.shape[1]))
        values[predicts], values[~predicts] = staked, learned
        steps = Steps(taken.learns, numbers, taken.times, values)
        rows, keys = taken.rows, taken.keys
        ends = [_Ends(dropped.rows, dropped.keys, self._numbers[dropped.slots])]
        ends.append(self._overdue(made, rows[predicts], keys[predicts]))
        if any(len(one.rows) for one in ends):
            rows, keys, steps = _merged(rows, keys, steps, ends)
        return self._run(rows, keys, steps)

    def _overdue(self, made: Integers, rows: Integers, keys: Integers) -> _Ends:
        """Find what waits for nothing more, since `most` others were predicted after it."""
        limit = self._made - self._most
        here = made < limit
        found = [(made[here], keys[here])]
        for key in np.flatnonzero(self._heads < limit).tolist():
            waiting = self.by_key[key].waiting
            waiting = waiting[waiting < limit]
            found.append((waiting, np.full(len(waiting), key)))
        numbers, of = (np.concatenate(column) for column in zip(*found, strict=True))
        return _Ends(rows[numbers + (self._most - self._made + len(made))], of, numbers)

    def _run(self, rows: Integers, keys: Integers, steps: Steps) -> list[tuple[int, int, Opened]]:
        found = []
        for key, part in by_key(keys):
            columns: list[Any] = [column[part] for column in steps]
            bets, of = self.by_key[key], rows[part]
            found += [(int(of[one.step]), key, one) for one in bets.run(Steps(*columns))]
            self._heads[key] = bets.first
        return sorted(found, key=itemgetter(0, 1))

    # Saving

    def save(self, slots: Integers) -> Iterator[Piece] | None:
        """Encode what is remembered, with observations waiting in these slots, as a `Saved`.

        None if there is nothing.
        """
        return self._encoded(slots) if self._made else None

    def _encoded(self, slots: Integers) -> Iterator[Piece]:
        yield header(ARRAY, 3)
        yield from pieces(self._made)
        yield from pieces(raw(self._numbers[slots]))
        yield from several(len(self.by_key), (one.state() for one in self.by_key))

    def load(self, saved: Saved) -> int:
        """Remember what was saved, for the slots from the second on; how many.

        Raises
        ------
        ValueError
            If it cannot be what was remembered.
        """
        self._made = count(saved.made, "numbers of observations")
        numbers = column(saved.numbers, "<i8", "numbers of observations")
        require(((numbers >= _UNKNOWN) & (numbers < self._made)).all(), "numbers of observations")
        require(len(numbers) < len(self._numbers), "numbers of observations")
        self._numbers[1 : len(numbers) + 1] = numbers
        for key, (bets, state) in enumerate(zip(self.by_key, saved.keys, strict=True)):
            bets.load(state)
            waiting = bets.waiting
            sound = waiting >= self._made - self._most
            require((sound & (waiting < self._made)).all(), "observations that wait")
            self._heads[key] = bets.first
        return len(numbers)


def _merged(
    rows: Integers, keys: Integers, steps: Steps, ends: Sequence[_Ends]
) -> tuple[Integers, Integers, Steps]:
    """Put ends among steps, each behind the other steps of its row."""
    ended, of, numbers = (np.concatenate(column) for column in zip(*ends, strict=True))
    more = len(ended)
    rows = np.concatenate((rows, ended))
    order = np.argsort(rows, kind="stable")
    merged = Steps(
        np.concatenate((steps.kinds, np.full(more, EXPIRES, np.uint8)))[order],
        np.concatenate((steps.numbers, numbers))[order],
        np.concatenate((steps.times, np.zeros(more, np.int64)))[order],
        np.concatenate((steps.values, np.zeros((more, steps.values.shape[1]))))[order],
    )
    return rows[order], np.concatenate((keys, of))[order], merged


def betting(settings: Settings) -> dict[str, Any]:
    """Give the options of bets that settings tell."""
    return {
        "distance": settings.alarm_distance,
        "quiet": settings.alarm_quiet,
        "least": settings.tests_after,
    }


def alarms(
    opened: Sequence[tuple[int, int, Opened]],
    keys: Sequence[tuple[str, str]],
    bets: Sequence[KeyBets],
) -> list[tuple[int, Alarm]]:
    """Word the episodes that are alarms.

    Parameters
    ----------
    opened
        Row and key of each, and it.
    keys
        Model and segment of each key.
    bets
        The bets of each key.

    Returns
    -------
    list
        Row and alarm of each.
    """
    made = []
    for row, key, (_, name, episode) in opened:
        if name != _ALARMING:
            continue
        (test,) = (one for one in bets[key].evidence() if one.name == name)
        model, segment = keys[key]
        whose = f"model {shown(model)}" + (f", segment {shown(segment)}" if segment else "")
        sentence = (
            f"{whose}: the predictions no longer mean what they say; the evidence of a change is "
            f"{_power(episode.log_wealth)}, the alarm line {_power(test.line)}. {test.guarantee}"
        )
        number, time, _, wealth = episode
        made.append((row, Alarm(model, segment, name, number, time, wealth, test.line, sentence)))
    return made


def _power(logarithm: float) -> str:
    return "infinite" if math.isinf(logarithm) else f"10^{logarithm / math.log(10.0):.1f}"

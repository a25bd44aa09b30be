"""Predictions that leave in order, and bets on them, against plain Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.reorder_buffer import ReorderBuffer

from abers.backends import core
from abers.reference import CalibrationSet

PREDICTS, LEARNS, EXPIRES = range(3)
FORECASTS = st.one_of(st.floats(0, 1), st.sampled_from((0.0, 0.5, 1.0, 0.25, 1 / 8192, 3 / 8192)))
LIVES = st.lists(
    st.one_of(
        st.tuples(st.just(PREDICTS), st.just(0), FORECASTS),
        st.tuples(st.sampled_from((LEARNS, EXPIRES)), st.integers(0, 9), st.sampled_from((0, 1))),
    ),
    max_size=80,
)
Life = list[tuple[int, int, float]]


def columns(life: Life) -> tuple[Any, ...]:
    """Return the columns of steps: numbers are multiples of three, labels refer to earlier ones."""
    kinds, numbers, values, made = [], [], [], 0
    for kind, back, value in life:
        kinds.append(kind)
        made += kind == PREDICTS
        numbers.append(3 * (made if kind == PREDICTS else max(made - back, 0)))
        values.append(float(value))
    times = np.arange(len(life)) * 7
    return np.array(kinds, np.uint8), np.array(numbers, np.int64), times, np.array(values)


class Bets:
    """A buffer of the core or of the oracle, and its two sets of labels."""

    def __init__(self, least: int, beside: int = 0, *, plain: bool = False) -> None:
        """Start empty; labels bring some more numbers."""
        self.least, self.beside, self.plain = least, beside, plain
        buffer, kind = (
            (ReorderBuffer, CalibrationSet) if plain else (core.ReorderBuffer, core.CalibrationSet)
        )
        self.queue: Any = buffer(4 + beside, least)
        self.sets: list[Any] = [kind(0, 0.0, 0.0), kind(5, 0.0, 0.0)]

    def bet(self, part: tuple[Any, ...]) -> list[list[Any]]:
        """Bet on steps, and return the rows that left."""
        *columns, values = part
        more = values[:, np.newaxis] + np.arange(10.0, 10.0 + self.beside)
        table = np.hstack((values[:, np.newaxis], more))
        count = self.queue.bet(self.sets, 1.5, *columns, table)
        out = *np.empty((3, count), np.int64), np.empty((count, 6 + self.beside))
        self.queue.settled(*out)
        return [column.tolist() for column in out]

    def held(self) -> tuple[bytes, ...]:
        """Return the bytes of all rows, and the counters."""
        n = self.queue.size()
        rows: list[Any] = [np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.uint8)]
        rows.append(np.empty((n, 4 + self.beside)))
        self.queue.columns(*rows)
        rows[3] = np.nan_to_num(rows[3], nan=-1.0)
        queue = self.queue
        counts = np.array([queue.came, queue.skipped, queue.gap, queue.first()])
        return tuple(column.tobytes() for column in (*rows, counts))

    def moved(self) -> Bets:
        """Return another buffer with the same rows and sets."""
        other, n = Bets(self.least, self.beside, plain=self.plain), self.queue.size()
        rows: list[Any] = [np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.uint8)]
        rows.append(np.empty((n, 4 + self.beside)))
        self.queue.columns(*rows)
        other.queue.load(*rows)
        for name in ("came", "skipped", "gap"):
            setattr(other.queue, name, getattr(self.queue, name))
        other.sets = self.sets
        return other


@given(life=LIVES, least=st.integers(0, 3), at=st.integers(0, 80), beside=st.integers(0, 2))
def test_bets_equal_their_oracle(life: Life, least: int, at: int, beside: int) -> None:
    """Rows, factors and the steps at which they leave are equal, also from saved rows."""
    ours, theirs = Bets(least, beside), Bets(least, beside, plain=True)
    steps = columns(life)
    first, rest = (tuple(column[part] for column in steps) for part in (slice(at), slice(at, None)))
    found = ours.bet(first)
    assert found == theirs.bet(first)
    for row in found[-1]:  # what a label of 0 or 1 brought
        assert row[6:] == [row[1] + 10.0 + one for one in range(beside)]
    assert ours.held() == theirs.held()
    ours, theirs = ours.moved(), theirs.moved()
    assert ours.bet(rest) == theirs.bet(rest)
    assert ours.held() == theirs.held()


@given(life=LIVES, least=st.integers(0, 3))
def test_waiting_equals_its_oracle(life: Life, least: int) -> None:
    """Rows leave as in plain Python, in the order of the observations."""
    kinds, numbers, times, values = columns(life)
    found = []
    for buffer in (core.ReorderBuffer, ReorderBuffer):
        queue = buffer(2, least)
        count = queue.run(kinds, numbers, times, np.column_stack((numbers * 0.5, values)))
        out = *np.empty((3, count), np.int64), np.empty((count, 2))
        queue.settled(*out)
        found.append(([column.tolist() for column in out], queue.skipped, queue.first()))
    assert found[0] == found[1]


@given(life=LIVES)
def test_order(life: Life) -> None:
    """Each row leaves once, at the first step that completes it and all rows before it.

    With it comes the number of rows without a label directly before it.
    """
    kinds, numbers, times, values = columns(life)
    queue = core.ReorderBuffer(1, 0)
    count = queue.run(kinds, numbers, times, values[:, np.newaxis])
    out = *np.empty((3, count), np.int64), np.empty((count, 1))
    queue.settled(*out)
    made: dict[int, int] = {}
    ended: dict[int, tuple[int, float]] = {}  # by number: the step, and the label if there is one
    for step, (kind, number) in enumerate(zip(kinds.tolist(), numbers.tolist(), strict=True)):
        if kind == PREDICTS:
            made[number] = step
        elif number in made and number not in ended:
            ended[number] = step, values[step] if kind == LEARNS else math.nan
    expected: list[tuple[int, int, int, float]] = []
    last = gap = skipped = 0
    for number, predicted in made.items():
        if number not in ended:
            break
        last = max(last, ended[number][0])
        if math.isnan(ended[number][1]):
            gap, skipped = gap + 1, skipped + 1
        else:
            expected.append((7 * predicted, last, gap, ended[number][1]))
            gap = 0
    assert [*zip(*(column.ravel().tolist() for column in out), strict=True)] == expected
    assert (queue.skipped, queue.gap) == (skipped, gap)


def test_a_row_that_is_none_is_named() -> None:
    """An invalid forecast or label is reported by its position, and nothing is done."""
    bets = Bets(0)
    numbers = np.arange(3)
    for kinds, values, at in (([0, 0, 0], [0.5, 1.5, 2.0], 1), ([0, 0, 1], [0.5, 1.0, 0.5], 2)):
        part = (np.array(kinds, np.uint8), numbers, numbers, np.array(values)[:, np.newaxis])
        assert bets.queue.bet(bets.sets, 1.5, *part) == at - 3
        assert bets.queue.size() == 0
    with pytest.raises(ValueError, match="no place for a label"):
        core.ReorderBuffer(0, 0)
    with pytest.raises(ValueError, match=r"differ in length|zip\(\)"):
        core.ReorderBuffer(4, 0).run(part[0], numbers[:2], numbers, np.zeros((3, 4)))

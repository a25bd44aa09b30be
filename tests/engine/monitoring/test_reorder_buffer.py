"""Predictions that leave in order, against plain Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.reorder_buffer import ReorderBuffer

from abers.backends import core

PREDICTS, LEARNS, EXPIRES = range(3)
LIVES = st.lists(
    st.one_of(
        st.tuples(st.just(PREDICTS), st.just(0), st.floats(0, 1)),
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


def rows_of(queue: Any) -> list[Any]:  # noqa: ANN401 - of the core or of the oracle
    """Return all rows of two numbers that a buffer has."""
    n = queue.size()
    rows: list[Any] = [np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.uint8)]
    rows.append(np.empty((n, 2)))
    queue.columns(*rows)
    return rows


def moved(queue: Any, other: Any) -> Any:  # noqa: ANN401
    """Move what a buffer has to another."""
    other.load(*rows_of(queue))
    for name in ("came", "skipped", "gap"):
        setattr(other, name, getattr(queue, name))
    return other


@given(
    life=LIVES,
    least=st.integers(0, 3),
    most=st.sampled_from((None, 3, 6, 30)),
    at=st.integers(0, 80),
)
def test_rows_equal_their_oracle(life: Life, least: int, most: int | None, at: int) -> None:
    """Rows leave as in plain Python, also from saved rows, and where few may wait."""
    kinds, numbers, times, values = columns(life)
    table = np.column_stack((numbers * 0.5, values))
    found = []
    for kind in (core.ReorderBuffer, ReorderBuffer):
        queue: Any = kind(2, least)
        parts = []
        for part in (slice(at), slice(at, None)):
            left = queue.run(kinds[part], numbers[part], times[part], table[part], most)
            parts.append([column.tolist() for column in left])
            rows = [np.nan_to_num(one, nan=-1.0).tolist() for one in rows_of(queue)]
            parts.append([*rows, queue.came, queue.skipped, queue.gap])
            queue = moved(queue, kind(2, least))
        found.append(parts)
    assert found[0] == found[1]


@given(life=LIVES)
def test_order(life: Life) -> None:
    """Each row leaves once, at the first step that completes it and all rows before it.

    With it comes the number of rows without a label directly before it.
    """
    kinds, numbers, times, values = columns(life)
    queue = core.ReorderBuffer(1, 0)
    out = queue.run(kinds, numbers, times, values[:, np.newaxis])
    made: dict[int, int] = {}
    ended: dict[int, tuple[int, float]] = {}  # by number: the step, and the label if there is one
    for step, (kind, number) in enumerate(zip(kinds.tolist(), numbers.tolist(), strict=True)):
        if kind == PREDICTS:
            made[number] = step
        elif number in made and number not in ended:
            ended[number] = step, values[step] if kind == LEARNS else math.nan
    expected: list[tuple[int, int, int, int, float]] = []
    last = gap = skipped = 0
    for number, predicted in made.items():
        if number not in ended:
            break
        last = max(last, ended[number][0])
        if math.isnan(ended[number][1]):
            gap, skipped = gap + 1, skipped + 1
        else:
            expected.append((number, 7 * predicted, last, gap, ended[number][1]))
            gap = 0
    assert [*zip(*(column.ravel().tolist() for column in out), strict=True)] == expected
    assert (queue.skipped, queue.gap) == (skipped, gap)


@given(life=LIVES, most=st.integers(1, 20))
def test_no_more_waits_than_may(life: Life, most: int) -> None:
    """Of rows that wait no number is lower than the last by as much as may be."""
    kinds, numbers, times, values = columns(life)
    queue = core.ReorderBuffer(1, 0)
    for at in range(len(life)):
        part = slice(at, at + 1)
        queue.run(kinds[part], numbers[part], times[part], values[part, np.newaxis], most)
        rows = (np.empty(queue.size(), kind) for kind in (np.int64, np.int64, np.uint8))
        waiting, *others = rows
        queue.columns(waiting, *others, np.empty((queue.size(), 1)))
        made = numbers[: at + 1][kinds[: at + 1] == PREDICTS]
        assert not len(waiting) or waiting[0] > made.max() - most


def test_columns_that_do_not_fit() -> None:
    """A row has a place for its label, and columns are of one length."""
    for kind in (core.ReorderBuffer, ReorderBuffer):
        with pytest.raises(ValueError, match="no place for a label"):
            kind(0, 0)
        with pytest.raises(ValueError, match=r"differ in length|zip\(\)"):
            kind(4, 0).run(np.zeros(3, np.uint8), np.arange(2), np.arange(3), np.zeros((3, 4)))

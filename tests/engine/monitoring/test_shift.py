"""The size of a change, `abers.monitoring.shift`."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.monitoring import ShiftEstimate

ROWS = st.lists(
    st.tuples(
        st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0]),  # factor
        st.sampled_from([0.0, 0.25, 0.5, 0.75]),  # forecast
        st.integers(0, 1),  # label
        st.sampled_from([False, False, False, True]),  # alarm
    ),
    max_size=50,
)


def by_definition(rows: list[Any]) -> list[tuple[Any, ...]]:
    """Return the rows of each shift by definition, with wealth in exact fractions."""
    found, run, wealth = [], list[Any](), Fraction(1)
    for number, row in enumerate(rows):
        if wealth <= 1:
            run, wealth = [], Fraction(1)
        run.append((number, row))
        wealth *= Fraction(row[0])
        if row[3]:
            observed = sum(one[2] for _, one in run)
            expected = sum(Fraction(one[1]) for _, one in run)
            variance = sum(Fraction(one[1]) * (1 - Fraction(one[1])) for _, one in run)
            sums = (float(observed), float(expected), math.sqrt(variance))
            found.append((10 * run[0][0], len(run), "labels 1", *sums))
            wealth = Fraction(1)
    return found


def fed(estimate: ShiftEstimate, rows: list[Any], begin: int) -> list[tuple[Any, ...]]:
    """Feed rows, whose numbers start at `begin`."""
    p, y = (np.array([[row[at]] for row in rows], float).reshape(-1, 1) for at in (1, 2))
    times = [10 * (begin + at) for at in range(len(rows))]
    alarms = [at for at, row in enumerate(rows) if row[3]]
    return [*map(tuple, estimate.update([row[0] for row in rows], p, y, times, alarms))]


@given(rows=ROWS, sizes=st.lists(st.integers(0, 7)))
def test_oracle(rows: list[Any], sizes: list[int]) -> None:
    """In batches of any size, from the last row at which the factors had won nothing."""
    estimate, whole, found, done = ShiftEstimate(["labels 1"]), ShiftEstimate(["labels 1"]), [], 0
    for size in [*sizes, len(rows)]:
        part = rows[done : done + size]
        found += fed(estimate, part, done)
        done += len(part)
        restored = ShiftEstimate(["labels 1"])
        restored.load(estimate.state())
        assert restored.state() == estimate.state()
        estimate = restored
    assert found == [pytest.approx(one) for one in by_definition(rows)]
    assert fed(whole, rows, 0) == found
    assert whole.state() == estimate.state()


def test_the_outcome_that_is_furthest_off() -> None:
    """Of several outcomes, that of the largest difference in standard deviations is reported."""
    estimate = ShiftEstimate(["near", "far"])
    forecasts, labels = np.full((40, 2), 0.5), np.zeros((40, 2))
    labels[:19, 0] = labels[:30, 1] = 1.0
    (shift,) = estimate.update([1.5] * 40, forecasts, labels, [5] * 40, [39])
    assert shift == (5, 40, "far", 30.0, 20.0, math.sqrt(10.0))
    assert shift.direction == -1


@pytest.mark.parametrize(
    "state",
    [
        (math.nan, 0, 0, [0.0] * 3),
        (-1.0, 0, 0, [0.0] * 3),
        (1.0, 2**64, 0, [0.0] * 3),
        (1.0, 0, -1, [0.0] * 3),
        (1.0, 0, 2, [3.0, 0.0, 0.0]),
        (1.0, 0, 2, [0.0] * 2),
    ],
)
def test_states_that_cannot_be(state: tuple[Any, ...]) -> None:
    """A state that no rows bring about is refused."""
    with pytest.raises(ValueError, match=r"wealth|times|labels|sums"):
        ShiftEstimate(["labels 1"]).load(state)

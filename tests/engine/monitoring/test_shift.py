"""The size of a change, as the tests of a view report it, `abers.monitoring.tested_view`."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.backends import core
from abers.monitoring import Shift

LENGTH = 5
ROWS = st.lists(
    st.tuples(
        st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0]),  # factor
        st.sampled_from([0.0, 0.25, 0.5, 0.75]),  # forecast
        st.integers(0, 1),  # label
    ),
    max_size=50,
)


def by_definition(rows: list[Any]) -> list[tuple[Any, ...]]:
    """Return the shift of each alarm by definition, with wealth in exact fractions."""
    found, run, wealth, statistic = [], list[Any](), Fraction(1), Fraction(0)
    for number, (factor, p, label) in enumerate(rows):
        if wealth <= 1:
            run, wealth = [], Fraction(1)
        run.append((number, p, label))
        wealth *= Fraction(factor)
        if factor != 1.0:
            statistic = (statistic + 1) * Fraction(factor)
        if statistic >= LENGTH:
            observed = sum(label for *_, label in run)
            expected = sum(Fraction(p) for _, p, _ in run)
            variance = sum(Fraction(p) * (1 - Fraction(p)) for _, p, _ in run)
            sums = (float(observed), float(expected), math.sqrt(variance))
            found.append((10 * run[0][0], len(run), 0, *sums))
            wealth, statistic = Fraction(1), Fraction(0)
    return found


def detector(columns: int = 1) -> Any:  # noqa: ANN401 - of the core
    """Return a detector with a short run length, each of whose crossings is an alarm."""
    return core.ViewTests([core.SequentialTest.of_change(LENGTH, 1.0, 0)], columns)


def fed(held: Any, rows: list[Any], begin: int) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """Feed rows, whose numbers start at `begin`; return the shifts."""
    factors, p, y = (np.array([row[at] for row in rows], float) for at in range(3))
    times = 10 * (begin + np.arange(len(rows)))
    raised = held.alarms(factors, p.reshape(-1, 1), y.reshape(-1, 1), times)
    return [shift for *_, shift in raised]


@given(rows=ROWS, sizes=st.lists(st.integers(0, 7)))
def test_oracle(rows: list[Any], sizes: list[int]) -> None:
    """In batches of any size, from the last row at which the factors had won nothing."""
    held, whole, found, done = detector(), detector(), list[Any](), 0
    for size in [*sizes, len(rows)]:
        part = rows[done : done + size]
        found += fed(held, part, done)
        done += len(part)
        restored = detector()
        restored.load(held.save())
        assert restored.save() == held.save()
        held = restored
    assert found == [pytest.approx(one) for one in by_definition(rows)]
    assert fed(whole, rows, 0) == found
    assert whole.save() == held.save()


def test_the_outcome_that_is_furthest_off() -> None:
    """Of several outcomes, that of the largest difference in standard deviations is reported."""
    forecasts, labels = np.full((40, 2), 0.5), np.zeros((40, 2))
    labels[:19, 0] = labels[:30, 1] = 1.0
    factors = np.full(40, 1.0)
    factors[[0, -1]] = 1.5, 100.0
    ((row, _, shift),) = detector(2).alarms(factors, forecasts, labels, np.full(40, 5))
    assert row == 39
    assert shift == (5, 40, 1, 30.0, 20.0, math.sqrt(10.0))


@pytest.mark.parametrize(("observed", "direction"), [(30.0, 1), (55.0, 0), (70.0, -1)])
def test_direction(observed: float, direction: int) -> None:
    """Forecasts are too high where fewer labels came, by more than two standard deviations."""
    assert Shift(0, 100, "labels 1", observed, 50.0, 5.0).direction == direction

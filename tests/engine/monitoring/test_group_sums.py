"""Sums of groups of forecasts, against plain Python."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import group_sums, tally

from abers.backends import core
from abers.monitoring.forecast_groups import GRID

if TYPE_CHECKING:
    from types import ModuleType

    from abers.arrays import Floats

TOLERANCES = np.array([1.25, *GRID])
EDGES = [k / 10 for k in range(11)]
FORECASTS = st.one_of(
    st.floats(0, 1),
    st.sampled_from([*EDGES, *(math.nextafter(edge, 0.0) for edge in EDGES[1:]), 1e-9, 5e-324]),
)
PAIRS = st.lists(st.tuples(FORECASTS, st.integers(0, 1)), max_size=60)


def columns(pairs: list[tuple[float, int]]) -> tuple[Floats, Floats]:
    """Return forecasts and labels."""
    return np.array([p for p, _ in pairs], float), np.array([y for _, y in pairs], float)


def summed(module: ModuleType, pairs: list[tuple[float, int]], cuts: list[int]) -> bytes:
    """Add rows in batches that end at the cuts, each by groups that were loaded."""
    groups = module.GroupSums(TOLERANCES)
    sums = np.zeros(groups.size())
    for start, end in pairwise([0, *sorted(min(cut, len(pairs)) for cut in cuts), len(pairs)]):
        groups = module.GroupSums(TOLERANCES)
        groups.load(sums)
        groups.add(*columns(pairs[start:end]))
        groups.sums(sums)
    return sums.tobytes()


@given(pairs=PAIRS, cuts=st.lists(st.integers(0, 60), max_size=3))
def test_batches_make_no_difference(pairs: list[tuple[float, int]], cuts: list[int]) -> None:
    """However rows are batched, saved and loaded, the sums are equal to the bit."""
    assert summed(core, pairs, cuts) == summed(core, pairs, [])


@given(pairs=PAIRS)
def test_sums_equal_their_oracle(pairs: list[tuple[float, int]]) -> None:
    """The sums are those of plain Python, to the last bit."""
    assert summed(core, pairs, []) == summed(group_sums, pairs, [])


@given(pairs=PAIRS, tolerance=st.integers(0, 15))
def test_groups_equal_their_oracle(pairs: list[tuple[float, int]], tolerance: int) -> None:
    """The groups that are read from the sums are those of plain Python, to the last bit."""
    found = []
    for module in (core, group_sums):
        groups = module.GroupSums(TOLERANCES)
        groups.add(*columns(pairs))
        rows = [*groups.groups(), *groups.main_groups(tolerance)]
        found.append((groups.labels, groups.cut, [tuple(row) for row in rows]))
    assert found[0] == found[1]


@pytest.mark.parametrize("module", [core, group_sums])
def test_tolerances_that_are_too_few(module: ModuleType) -> None:
    """Groups have 16 tolerances."""
    with pytest.raises(ValueError, match="16 tolerances"):
        module.GroupSums(TOLERANCES[:4])


TRIPLES = st.lists(st.tuples(FORECASTS, FORECASTS, st.integers(0, 1)), max_size=60)


def differences(module: ModuleType, rows: list[tuple[float, float, int]], cut: int) -> list[float]:
    """Add the differences of losses of rows in two batches."""
    losses = module.LossDifference()
    times = np.arange(len(rows)) * 7 % 5
    for part in (slice(cut), slice(cut, None)):
        first, second, labels = np.array(rows[part], float).reshape(-1, 3).T.copy()
        losses.add(first, second, labels, times[part])
    return [
        getattr(losses, name) for name in ("total", "squares", "clipped", "count", "start", "until")
    ]


@given(rows=TRIPLES, cut=st.integers(0, 60))
def test_differences_of_losses(rows: list[tuple[float, float, int]], cut: int) -> None:
    """A row adds its log loss by the first forecast minus that by the second, clipped to 3 nats."""
    total = squares = 0.0
    clipped = 0
    for p, q, y in rows:
        one, other = (max(r if y else 1.0 - r, 1e-6) for r in (p, q))
        difference = math.log(other) - math.log(one)
        total += max(-3.0, min(3.0, difference))
        squares += min(difference**2, 9.0)
        clipped += abs(difference) > 3.0
    found = differences(core, rows, cut)
    assert found[:2] == pytest.approx([total, squares], abs=1e-9)
    assert found[2] == clipped


@given(rows=TRIPLES, cut=st.integers(0, 60))
def test_differences_equal_their_oracle(rows: list[tuple[float, float, int]], cut: int) -> None:
    """The sums of differences are those of plain Python, to the last bit."""
    assert differences(core, rows, cut) == differences(tally, rows, 0)


@pytest.mark.parametrize("module", [core, tally])
@pytest.mark.parametrize(
    ("forecasts", "labels", "row"),
    [
        ([], [], 0),
        ([0.0, 1.0], [0, 1], 2),
        ([0.5, 1.5], [0, 1], 1),
        ([np.nan], [0], 0),
        ([1], [2], 0),
    ],
)
def test_first_unscored(
    module: ModuleType, forecasts: list[float], labels: list[float], row: int
) -> None:
    """The first row without a probability or a label is found, or the number of rows."""
    assert module.first_unscored(np.array(forecasts, float), np.array(labels, float)) == row

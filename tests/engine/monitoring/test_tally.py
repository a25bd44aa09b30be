"""Sums over forecasts and their labels, against plain Python."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import tally
from tests.oracles.tally import BINS, PARTS

from abers.backends import core

if TYPE_CHECKING:
    from types import ModuleType

    from abers.arrays import Floats, Integers

EDGES = [k / BINS for k in range(BINS + 1)]
NEAR = [math.nextafter(edge, 0.0) for edge in EDGES] + [(k + 0.5) / PARTS for k in range(4)]
FORECASTS = st.one_of(st.floats(0, 1), st.sampled_from(EDGES + NEAR))
PAIRS = st.lists(st.tuples(FORECASTS, st.integers(0, 1)), max_size=60)
BATCHES = st.lists(PAIRS, min_size=1, max_size=3)
Pairs = list[tuple[float, int]]


def columns(pairs: Pairs) -> tuple[Floats, Floats]:
    """Return forecasts and labels."""
    return np.array([p for p, _ in pairs], float), np.array([y for _, y in pairs], float)


def scored(module: ModuleType, batches: list[Pairs]) -> tuple[list[float], list[int]]:
    """Add up batches."""
    sums, counts = np.zeros(2 + BINS), np.zeros(1 + 2 * BINS, np.int64)
    for pairs in batches:
        assert module.add_scores(*columns(pairs), sums, counts) == len(pairs)
    return sums.tolist(), counts.tolist()


def grouped(tally: tally.Tally) -> tuple[Integers, Integers, Integers]:
    """Return the groups of a tally."""
    groups = tuple(np.empty(tally.size(), np.int64) for _ in range(3))
    tally.groups(*groups)
    return groups  # type: ignore[return-value]


@given(batches=BATCHES)
def test_scores_equal_their_oracle(batches: list[Pairs]) -> None:
    """The terms and their order are those of plain Python, to the last bit."""
    assert scored(core, batches) == scored(tally, batches)


SHARES = st.floats(0, 1)
BINS_BET_ON = st.integers(1, 12).flatmap(
    lambda bins: st.tuples(
        st.lists(st.lists(SHARES, min_size=bins, max_size=bins), max_size=30),
        st.lists(st.floats(0.01, 1), min_size=bins, max_size=bins),
        st.lists(st.floats(0, 100), min_size=bins, max_size=bins),
    )
)


def bet(
    module: ModuleType, parts: list[Floats], null: Floats, held: Floats, *, capped: bool
) -> tuple[bytes, ...]:
    """Bet on parts of a batch."""
    counts, found = held.copy(), []
    for part in parts:
        found.append(np.empty(len(part)))
        module.bet_on_bins(part, null, 0.5 * null, counts, 0.998, found[-1], capped=capped)
    return np.concatenate(found).tobytes(), counts.tobytes()


@given(case=BINS_BET_ON, capped=st.booleans(), at=st.integers(0, 30))
def test_bets_equal_their_oracle(
    case: tuple[list[list[float]], list[float], list[float]], at: int, *, capped: bool
) -> None:
    """Bets are those of plain Python, to the last bit, however labels are batched."""
    rows, null, held = case
    shares = np.array(rows).reshape(len(rows), len(null))
    columns = (np.array(null), np.array(held))
    whole = bet(tally, [shares], *columns, capped=capped)
    assert bet(core, [shares[:at], shares[at:]], *columns, capped=capped) == whole


@pytest.mark.parametrize("capped", [False, True])
def test_a_bet_on_bins(*, capped: bool) -> None:
    """A factor is the mean of the bet over the null."""
    counts, factors = np.array([1.0, 3.0]), np.empty(2)
    null, prior = np.array([0.5, 0.5]), np.array([0.5, 0.5])
    shares = np.array([[1.0, 0.0], [0.25, 0.75]])
    core.bet_on_bins(shares, null, prior, counts, 0.5, factors, capped=capped)
    # Bets 1.5 and 3.5 of 5; then half of 1 and 3 is left, and 1 is counted: 2 and 2 of 4.
    assert factors.tolist() == [1.0 if capped else 0.6, 1.0]
    assert counts.tolist() == [(0.5 + 1) * 0.5 + 0.25, 1.5 * 0.5 + 0.75]


@given(terms=st.lists(st.floats(-1e9, 1e9), max_size=60), total=st.floats(0, 1e9))
def test_sums_of_terms_equal_their_oracle(terms: list[float], total: float) -> None:
    """Terms are added one after the other."""
    column = np.array(terms, float)
    assert core.added(total, column) == tally.added(total, column)


@pytest.mark.parametrize("module", [core, tally])
def test_terms_are_added_in_their_order(module: ModuleType) -> None:
    """A term that is too small for the sum is lost, as it is one by one."""
    terms = np.array([1.0, 1.0, -1e16])
    assert module.added(1e16, terms) == 0.0
    assert module.added(0.0, terms[:0]) == 0.0


@given(batches=BATCHES)
def test_counts_equal_their_oracle(batches: list[Pairs]) -> None:
    """Forecasts are rounded and counted as in plain Python."""
    native, plain = core.Tally(), tally.Tally()
    for pairs in batches:
        native.add(*columns(pairs))
        plain.add(*columns(pairs))
    np.testing.assert_array_equal(grouped(native), grouped(plain))


@pytest.mark.parametrize("module", [core, tally])
@pytest.mark.parametrize(
    ("pairs", "row"),
    [
        ([(0.5, 1), (1.5, 1)], 1),
        ([(-0.1, 1), (0.5, 2)], 0),
        ([(math.nan, 0)], 0),
        ([(0.5, 0), (0.5, 1), (0.5, 2)], 2),
    ],
)
def test_a_row_that_cannot_be_scored(module: ModuleType, pairs: Pairs, row: int) -> None:
    """The first row without probability and label is returned, and nothing is added."""
    sums, counts = np.zeros(2 + BINS), np.zeros(1 + 2 * BINS, np.int64)
    assert module.add_scores(*columns(pairs), sums, counts) == row
    assert not sums.any()
    assert not counts.any()


@pytest.mark.parametrize("module", [core, tally])
def test_half_a_part_is_rounded_to_even(module: ModuleType) -> None:
    """A forecast in the middle of two multiples of 1/4096 goes to the even one."""
    tally = module.Tally()
    tally.add(np.array([0.5, 1.5, 2.5, 3.5, PARTS]) / PARTS, np.array([1.0, 0, 0, 1, 1]))
    assert [column.tolist() for column in grouped(tally)] == [
        [0, 2, 4, PARTS],
        [1, 2, 1, 1],
        [1, 0, 1, 1],
    ]


@pytest.mark.parametrize("module", [core, tally])
def test_groups_are_added_to_what_is_there(module: ModuleType) -> None:
    """Loaded counts equal single ones, and more can be added."""
    tally = module.Tally()
    tally.add(np.array([0.5]), np.array([1.0]))
    tally.load(*(np.array(column) for column in ([7, 2048], [5, 10], [2, 3])))
    assert [column.tolist() for column in grouped(tally)] == [[7, 2048], [5, 11], [2, 4]]


def test_columns_of_different_lengths() -> None:
    """The core refuses columns of different lengths."""
    one, two, whole = np.ones(1), np.ones(2), np.ones(2, np.int64)
    sums, counts = np.zeros(2 + BINS), np.zeros(1 + 2 * BINS, np.int64)
    tally = core.Tally()
    for call, given_ in (
        (core.add_scores, (one, two, sums, counts)),
        (core.add_scores, (one, one, one, counts)),
        (core.add_scores, (one, one, sums, whole)),
        (tally.add, (one, two)),
        (tally.load, (whole, whole, whole[:1])),
        (tally.groups, (whole, whole, whole)),
    ):
        with pytest.raises(ValueError, match="differ in length"):
            call(*given_)

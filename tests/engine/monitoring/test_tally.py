"""Sums over forecasts and their labels, against plain Python."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import tally
from tests.oracles.tally import BINS, CELL_EDGES

from abers.backends import core

if TYPE_CHECKING:
    from types import ModuleType

    from abers.arrays import Floats, Integers

EDGES = [k / BINS for k in range(BINS + 1)]
ENDS = [*EDGES, *CELL_EDGES]
NEAR = [math.nextafter(edge, 0.0) for edge in ENDS] + [(k + 0.5) * 2.0**-64 for k in range(4)]
FORECASTS = st.one_of(st.floats(0, 1), st.sampled_from(ENDS + NEAR))
PAIRS = st.lists(st.tuples(FORECASTS, st.integers(0, 1)), max_size=60)
BATCHES = st.lists(PAIRS, min_size=1, max_size=3)
Pairs = list[tuple[float, int]]


def columns(pairs: Pairs) -> tuple[Floats, Floats]:
    """Return forecasts and labels."""
    return np.array([p for p, _ in pairs], float), np.array([y for _, y in pairs], float)


def scored(module: ModuleType, batches: list[Pairs]) -> tuple[list[float], list[int], bytes]:
    """Add up batches."""
    scores = module.BinaryScores()
    for pairs in batches:
        assert scores.add(*columns(pairs)) == len(pairs)
    kept = np.array(celled(scores.tally)).tobytes()
    return scores.sums.tolist(), scores.counts.tolist(), kept


def celled(tally: tally.Tally) -> tuple[Floats, Integers, Integers]:
    """Return the cells of a tally."""
    size = tally.size()
    cells = (np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64))
    tally.cells(*cells)
    return cells


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
def test_cells_equal_their_oracle(batches: list[Pairs]) -> None:
    """Sums and counts of cells are those of plain Python, to the last bit."""
    native, plain = core.Tally(), tally.Tally()
    for pairs in batches:
        native.add(*columns(pairs))
        plain.add(*columns(pairs))
    for one, expected in zip(celled(native), celled(plain), strict=True):
        np.testing.assert_array_equal(one, expected)


@given(forecast=FORECASTS)
def test_a_cell_is_closed_on_the_left(forecast: float) -> None:
    """The cell of a forecast is the number of edges that are not above it."""
    found = np.empty(1, np.int64)
    core.Tally.cells_of(np.array([forecast]), found)
    assert found.tolist() == [sum(edge <= forecast for edge in CELL_EDGES)]


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
    scores = module.BinaryScores()
    assert scores.add(*columns(pairs)) == row
    assert not scores.sums.any()
    assert not scores.counts.any()
    assert not scores.tally.size()


@pytest.mark.parametrize("module", [core, tally])
def test_half_a_unit_is_rounded_to_even(module: ModuleType) -> None:
    """A forecast in the middle of two multiples of 2**-64 counts as the even one."""
    for halves, units in ((1, 0), (3, 2), (5, 2)):
        tally = module.Tally()
        tally.add(np.array([halves * 2.0**-65]), np.array([1.0]))
        assert [column.tolist() for column in celled(tally)] == [[units * 2.0**-64], [1], [1]]


@pytest.mark.parametrize("module", [core, tally])
def test_cells_of_another_are_added(module: ModuleType) -> None:
    """The mean forecast of a cell is that of both, and the other stays as it was."""
    one, other = module.Tally(), module.Tally()
    one.add(np.array([0.5]), np.array([1.0]))
    other.add(np.array([0.515625, 0.9375]), np.array([0.0, 1.0]))
    one.include(other)
    assert [column.tolist() for column in celled(one)] == [[0.5078125, 0.9375], [2, 1], [1, 1]]
    assert [column.tolist() for column in celled(other)] == [[0.515625, 0.9375], [1, 1], [0, 1]]


@pytest.mark.parametrize("module", [core, tally])
def test_a_tally_may_be_added_to_itself(module: ModuleType) -> None:
    """All sums double."""
    tally = module.Tally()
    tally.add(np.array([0.25, 0.75]), np.array([1.0, 0.0]))
    tally.include(tally)
    assert [column.tolist() for column in celled(tally)] == [[0.25, 0.75], [2, 2], [2, 0]]


def test_columns_of_different_lengths() -> None:
    """The core refuses columns of different lengths."""
    one, two, whole = np.ones(1), np.ones(2), np.ones(2, np.int64)
    tally = core.Tally()
    for call, given_ in (
        (core.BinaryScores().add, (one, two)),
        (tally.add, (one, two)),
        (tally.cells, (two, whole, whole)),
        (tally.cells_of, (one, whole)),
    ):
        with pytest.raises(ValueError, match="differ in length"):
            call(*given_)

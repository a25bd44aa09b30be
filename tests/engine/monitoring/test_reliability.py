"""The reliability of all forecasts, against the exact diagram of the means of cells."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.tally import CELL_EDGES, UNIT

from abers import LabelError, ScoreError
from abers.monitoring import Diagram, Reliability, corp

Pairs = list[tuple[float, int]]

FORECASTS = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 0.515625, 1.0]))
PAIRS = st.lists(st.tuples(FORECASTS, st.integers(0, 1)), min_size=1, max_size=60)


def watched(pairs: Pairs, cuts: tuple[int, ...] = ()) -> Reliability:
    """Count forecasts, in batches that end at the cuts."""
    reliability = Reliability()
    for start, end in pairwise([0, *sorted(min(cut, len(pairs)) for cut in cuts), len(pairs)]):
        batch = pairs[start:end]
        reliability.update_many([p for p, _ in batch], [y for _, y in batch])
    return reliability


def blocks(diagram: Diagram) -> list[list[float]]:
    """Return all columns of a diagram."""
    columns = (diagram.lower, diagram.upper, diagram.probability, diagram.count, diagram.positives)
    return [column.tolist() for column in columns]


def means(pairs: Pairs) -> list[float]:
    """Replace each forecast by the mean of its cell, in fractions."""
    cells: dict[int, list[Fraction]] = {}
    for p, _ in pairs:
        units = round(Fraction(p) * UNIT)
        cells.setdefault(bisect_right(CELL_EDGES, p), []).append(Fraction(units, UNIT))
    mean = {cell: float(sum(some) / len(some)) for cell, some in cells.items()}
    return [mean[bisect_right(CELL_EDGES, p)] for p, _ in pairs]


@given(pairs=PAIRS)
def test_it_is_the_exact_diagram_of_the_means_of_cells(pairs: Pairs) -> None:
    """Forecasts are pooled at the mean of their cell, and nothing else is lost."""
    reliability = watched(pairs)
    exact = corp(means(pairs), [y for _, y in pairs])
    assert blocks(reliability.diagram()) == blocks(exact)
    assert reliability.decomposition() == exact.decomposition()
    assert reliability.count == len(pairs)


@given(p=st.floats(2**-12, 1), labels=st.lists(st.integers(0, 1), min_size=1, max_size=60))
def test_equal_forecasts_stay_exact(p: float, labels: list[int]) -> None:
    """A forecast that is alone in its cell is its mean, to the bit."""
    assert watched([(p, y) for y in labels]).diagram().upper.tolist() == [p]


@given(pairs=PAIRS, cuts=st.tuples(st.integers(0, 60), st.integers(0, 60)), seed=st.integers(0, 9))
def test_neither_batches_nor_order_make_a_difference(
    pairs: Pairs, cuts: tuple[int, int], seed: int
) -> None:
    """However forecasts are batched, and in whatever order they come, the state is the same."""
    order = np.random.default_rng(seed).permutation(len(pairs)).tolist()
    assert watched([pairs[i] for i in order], cuts).state() == watched(pairs).state()


@given(pairs=PAIRS, more=PAIRS)
def test_restored(pairs: Pairs, more: Pairs) -> None:
    """A restored `Reliability` goes on as the saved one would have."""
    restored = Reliability.restore(watched(pairs).state())
    restored.update_many([p for p, _ in more], [y for _, y in more])
    assert restored.state() == watched(pairs + more).state()


@given(parts=st.lists(PAIRS, max_size=3))
def test_total(parts: list[Pairs]) -> None:
    """The total of different forecasts is that of all forecasts."""
    total = Reliability.total([watched(part) for part in parts])
    assert total.state() == watched([pair for part in parts for pair in part]).state()


def test_memory_is_bounded() -> None:
    """However many forecasts come, there are 148 cells at most."""
    rng = np.random.default_rng(1)
    reliability = Reliability()
    for _ in range(30):
        forecasts = 1 / (1 + np.exp(rng.uniform(-9, 9, 10_000)))
        reliability.update_many(forecasts, rng.integers(0, 2, 10_000))
    assert len(reliability.cells().forecasts) == len(CELL_EDGES) + 1 == 148
    assert len(reliability.state()) < 148 * 20


def test_a_total_is_a_copy() -> None:
    """A total does not change its parts."""
    one = watched([(0.5, 1)])
    Reliability.total([one]).update_many([0.5], [0])
    assert one.count == 1


def test_nothing_yet() -> None:
    """Before the first forecast there is no block, and no decomposition."""
    reliability = Reliability()
    assert reliability.count == 0
    assert blocks(reliability.diagram()) == [[]] * 5
    assert all(map(math.isnan, reliability.decomposition()))
    assert Reliability.restore(reliability.state()).state() == reliability.state()


@pytest.mark.parametrize(
    ("forecasts", "labels", "error"), [([0.5, 1.5], [0, 1], ScoreError), ([0.5], [2], LabelError)]
)
def test_bad_rows(forecasts: list[float], labels: list[int], error: type[Exception]) -> None:
    """An invalid forecast or label is refused, and nothing is counted."""
    reliability = Reliability()
    with pytest.raises(error):
        reliability.update_many(forecasts, labels)
    assert reliability.count == 0


def saved(*cells: tuple[int, int, int, int]) -> bytes:
    """Write cells: number, forecasts, ones, and the sum of the forecasts in units of 2**-64."""
    return b"".join(bytes([cell]) + b"".join(map(short, sums)) for cell, *sums in cells)


def short(value: int) -> bytes:
    """Write a number with seven bits a byte, the lowest first."""
    more = value >> 7
    return bytes([value & 127 | 128]) + short(more) if more else bytes([value])


LOW, HIGH = 0, len(CELL_EDGES)  # the cells of 0 and 1


def test_the_form_of_a_state() -> None:
    """Cells come in ascending order, each with its sums."""
    state = watched([(1.0, 1), (0.0, 0), (2.0**-64, 1)]).state()
    assert state == saved((LOW, 2, 1, 1), (HIGH, 1, 1, UNIT))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (saved((LOW, 2, 1, 1))[:-1], "cut short"),
        (saved((LOW, 0, 0, 0)), "counts"),
        (saved((LOW, 1, 2, 0)), "counts"),
        (saved((LOW, 2**48 + 1, 0, 0)), "counts"),
        (saved((LOW, 2**48, 0, 0), (HIGH, 1, 0, UNIT)), "counts"),
        (saved((LOW, 1, 0, UNIT)), "forecasts"),
        (saved((HIGH, 1, 0, 1)), "forecasts"),
        (saved((HIGH, 1, 0, UNIT + 1)), "forecasts"),
        (saved((HIGH + 1, 1, 0, UNIT)), "cells"),
        (saved((LOW, 1, 0, 0), (LOW, 1, 0, 0)), "cells"),
        (saved((HIGH, 1, 0, UNIT), (LOW, 1, 0, 0)), "form"),
        (bytes([LOW, 0x81, 0x00, 0, 0]), "form"),
        (bytes([LOW, 1, 0]) + b"\xff" * 20, "cells"),
    ],
)
def test_what_is_no_state(state: bytes, message: str) -> None:
    """A state that no `Reliability` has is refused."""
    with pytest.raises(ValueError, match=message):
        Reliability.restore(state)

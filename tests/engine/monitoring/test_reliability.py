"""The reliability of all forecasts, against the exact diagram of the rounded ones."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import LabelError, ScoreError
from abers.monitoring import Diagram, Reliability, corp

Pairs = list[tuple[float, int]]

FORECASTS = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 0.5 + 1 / 8192, 1.0]))
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


@given(pairs=PAIRS)
def test_it_is_the_exact_diagram_of_rounded_forecasts(pairs: Pairs) -> None:
    """Forecasts are rounded to 1/4096, half to even, and nothing else is lost."""
    reliability = watched(pairs)
    exact = corp([round(4096 * p) / 4096 for p, _ in pairs], [y for _, y in pairs])
    assert blocks(reliability.diagram()) == blocks(exact)
    assert reliability.decomposition() == exact.decomposition()
    assert reliability.count == len(pairs)


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
    """However many forecasts come, there are 4,097 groups at most."""
    rng = np.random.default_rng(1)
    reliability = Reliability()
    for _ in range(30):
        reliability.update_many(rng.random(10_000), rng.integers(0, 2, 10_000))
    assert len(reliability.diagram().bands(resamples=1).forecast) == 4_097
    assert len(reliability.state()) < 4_097 * 6 + 100


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


STATE = watched([(0.25, 1), (0.5, 0), (0.5, 1)]).state()


@pytest.mark.parametrize(
    "state",
    [
        STATE[:-1],
        STATE[:20],
        STATE.replace(b"H", b"d"),
        STATE.replace((1024).to_bytes(2, "little"), (4_097).to_bytes(2, "little")),  # ascending
        STATE[:-1] + b"\3",  # more positives than forecasts
        STATE + b"B" + bytes(8),
    ],
)
def test_what_is_no_state(state: bytes) -> None:
    """A state that no `Reliability` has is refused."""
    with pytest.raises((ValueError, TypeError, KeyError)):
        Reliability.restore(state)

"""The native set of labels without bounds against the reference, bit for bit.

The two are driven through the very same calls; after each batch everything that can be read from
one is equal to what is read from the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.cases import EXTREMES, FEW, GAPS, SCORES, SEEDS, native_exists

from abers import reference
from abers.arrays import LEARN, PREDICT, REMOVE

if not native_exists():
    pytest.skip("needs the native core", allow_module_level=True)

from abers import _core

pytestmark = pytest.mark.native

Pair = tuple[_core.MeanSet, reference.MeanSet]
Batch = tuple[Any, ...]  # steps, scores, labels, times

RULES: dict[str, tuple[int, float]] = {
    "unlimited": (0, 0.0),
    "window": (40, 0.0),
    "narrow window": (3, 0.0),
    "max_age": (0, 20.0),
}
EVERY_RULE = pytest.mark.parametrize("options", RULES.values(), ids=RULES)
SHAPES = st.tuples(st.sampled_from((1, 1, 2, 5)), st.sampled_from((2.0**-20, 0.5, 0.1)))
LABELS = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e6, 1e6),
    st.sampled_from((0.0, 1e9, -1e9, 1e15, 2.0**57, -(2.0**59), 1e300)),
)


def both(shape: tuple[int, float], options: tuple[int, float]) -> Pair:
    """Make a set of each implementation."""
    return _core.MeanSet(*shape, *options), reference.MeanSet(*shape, *options)


def run(pair: Pair, batch: Batch, *, timed: bool) -> int:
    """Run a batch through both, and compare what they predict and where they stop."""
    steps, scores, labels, times = batch
    answers = []
    for each in pair:
        out, sizes = np.full((4, len(steps)), np.nan), np.zeros(len(steps), np.int64)
        done = each.run(steps, scores, labels, times if timed else None, out, sizes)
        answers.append((done, out, sizes))
    (done, out, sizes), (expected, wanted, counted) = answers
    assert done == expected
    assert np.array_equal(out, wanted, equal_nan=True)
    assert np.array_equal(sizes, counted)
    return done


def contents(held: Any) -> list[Any]:  # noqa: ANN401
    """Read everything that a set says of itself."""
    count = held.observation_count()
    rows = (np.empty(count), np.empty(count, np.int64), np.empty(count))
    held.observations(*rows)
    columns = [rows[0].tobytes(), rows[1].tobytes(), np.nan_to_num(rows[2], nan=-1.0).tobytes()]
    options = [held.m, held.resolution, held.window, held.lifetime]
    return [*options, held.size, held.late, columns]


def same(pair: Pair) -> None:
    """Assert that both say the same, that both are sound, and that what one keeps the other reads.

    Predictions in arrays are asked for twice, since the second time a table answers.
    """
    ours, theirs = pair
    assert contents(ours) == contents(theirs)
    ours.check()
    theirs.check()
    queries = np.concatenate([np.linspace(-0.1, 1.1, 70), EXTREMES]) + 0.0
    found = []
    for each in (ours, ours, theirs):
        out = np.full((4, len(queries)), np.nan)
        each.run(np.zeros(len(queries), np.uint8), queries, queries, None, out)
        found.append(out)
    assert np.array_equal(found[0], found[2])
    assert np.array_equal(found[1], found[2])
    count = theirs.observation_count()
    rows = (np.empty(count), np.empty(count, np.int64), np.empty(count))
    theirs.observations(*rows)
    restored = _core.MeanSet(ours.m, ours.resolution, ours.window, ours.lifetime)
    assert restored.load_observations(*rows, theirs.late)
    assert contents(restored) == contents(theirs)
    restored.check()


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Draw a batch of steps with ties, wild labels and times that go back and forth."""
    few = draw(st.booleans())
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from((PREDICT, LEARN, LEARN, REMOVE)),
                st.sampled_from((*FEW, *EXTREMES)) if few else SCORES,
                LABELS,
                GAPS,
            ),
            max_size=60,
        )
    )
    steps, scores, labels, gaps = zip(*rows, strict=True) if rows else ((),) * 4
    return (
        np.array(steps, np.uint8),
        np.array(scores, float) + 0.0,
        np.array(labels, float) + 0.0,
        np.cumsum(np.array(gaps, float)),
    )


@EVERY_RULE
@given(SHAPES, st.lists(batches(), max_size=3))
def test_any_steps(
    options: tuple[int, float], shape: tuple[int, float], drawn: list[Batch]
) -> None:
    """Any steps, also refused ones, give the same answers, contents and stops."""
    pair = both(shape, options)
    for batch in drawn:
        if any(options):
            batch[0][batch[0] == REMOVE] = LEARN
        done = run(pair, batch, timed=bool(options[1]))
        same(pair)
        run(pair, tuple(column[done + 1 :] for column in batch), timed=bool(options[1]))
    same(pair)


def labels_of(kind: int, rng: np.random.Generator, n: int) -> Any:  # noqa: ANN401
    """Make labels of a kind: even, few, heavy tails, far from 0, or drifting down."""
    return (
        rng.normal(size=n),
        rng.integers(-2, 3, n).astype(float),
        rng.standard_cauchy(n) * 10.0,
        rng.normal(1e5, 1.0, n),
        rng.normal(size=n) - np.arange(n) * 0.5,
    )[kind]


@EVERY_RULE
@pytest.mark.parametrize("seed", SEEDS)
def test_long_streams(options: tuple[int, float], seed: int) -> None:
    """Long streams of every kind, with removals of what is there, are taken alike."""
    rng = np.random.default_rng(seed)
    pair = both((int(rng.choice([1, 2, 5])), 2.0**-20), options)
    clock = 0.0
    for kind in rng.permutation(5).tolist():
        n = 120
        steps = rng.choice(np.array([PREDICT, LEARN, LEARN, REMOVE], np.uint8), n)
        scores = np.where(rng.random(n) < 0.5, rng.integers(0, 6, n) / 6, rng.random(n))
        labels = labels_of(kind, rng, n)
        if any(options):
            steps[steps == REMOVE] = LEARN
        for row in np.flatnonzero(steps == REMOVE):
            before = np.flatnonzero(steps[:row] == LEARN)
            if before.size:
                at = rng.choice(before)
                scores[row], labels[row] = scores[at], labels[at]
        times = clock + np.cumsum(rng.choice([0.0, 0.1, 0.5, -0.3, 4.0], n))
        clock = float(times[-1])
        batch: Batch = (steps, scores, labels, times)
        while len(batch[0]):
            done = run(pair, batch, timed=bool(options[1]))
            batch = tuple(column[done + 1 :] for column in batch)
        same(pair)
    many: Batch = (np.ones(400, np.uint8), rng.random(400), rng.normal(size=400), np.empty(400))
    if not any(options):
        out = np.empty((4, 400))
        for each in pair:
            each.run(many[0], many[1], many[2], None, out)
        same(pair)

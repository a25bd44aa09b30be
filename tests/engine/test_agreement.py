"""The native core against the reference, class to class, bit for bit.

The two are driven through the very same calls, and after each batch everything
that can be read from one is equal to what is read from the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.cases import EXTREMES, FEW, GAPS, LABELS, SCORES, native_exists

from abers import reference
from abers.arrays import LEARN, ONE, PREDICT, REMOVE

if not native_exists():
    pytest.skip("needs the native core", allow_module_level=True)

from abers import _core

pytestmark = pytest.mark.native

Pair = tuple[_core.CalibrationSet, reference.CalibrationSet]
Batch = tuple[Any, ...]

Options = tuple[Any, ...]  # of a set: those of forgetting, and rates of labels

RULES: dict[str, Options] = {
    "unlimited": (0, 0.0, 0.0),
    "window": (300, 0.0, 0.0),
    "narrow window": (3, 0.0, 0.0),
    "max_age": (0, 40.0, 0.0),
    "half_life": (0, 0.0, 6.0),
    "short half_life": (0, 0.0, 0.05),
    "label_rates": (0, 0.0, 0.0, (0.5, 1.0)),
    "label_rates with window": (300, 0.0, 0.0, (1.0, 0.3)),
    "label_rates with half_life": (0, 0.0, 6.0, (0.7, 0.25)),
}
EVERY_RULE = pytest.mark.parametrize("options", RULES.values(), ids=RULES)

UNITS = st.one_of(
    st.just(ONE),
    st.integers(1, 40),
    st.integers(1, 1 << 50),
    st.sampled_from((1, ONE // 3, 3 * ONE)),
)


def both(options: Options) -> Pair:
    """Make a set of each implementation."""
    return _core.CalibrationSet(*options), reference.CalibrationSet(*options)


def run(pair: Pair, batch: Batch, *, timed: bool) -> int:
    """Run a batch through both, and compare what they predict and where they stop."""
    steps, scores, labels, units, times = batch
    answers = []
    for held in pair:
        p0, p1 = np.full(len(steps), np.nan), np.full(len(steps), np.nan)
        when = times if timed else None
        answers.append((held.run(steps, scores, labels, units, when, p0, p1), p0, p1))
    (done, p0, p1), (expected, q0, q1) = answers
    assert done == expected
    assert np.array_equal(p0, q0, equal_nan=True)
    assert np.array_equal(p1, q1, equal_nan=True)
    return done


def contents(held: Any) -> list[Any]:  # noqa: ANN401
    """Read everything that a set tells about itself."""
    n, blocks, kept = held.group_count(), held.block_count(), held.observation_count()
    groups = (np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64))
    hull = (
        np.empty(blocks),
        np.empty(blocks),
        np.empty(blocks, np.int64),
        np.empty(blocks, np.int64),
        np.empty(blocks),
    )
    rows = (np.empty(kept), np.empty(kept, np.uint8), np.empty(kept, np.int64), np.empty(kept))
    held.groups(*groups)
    held.blocks(*hull)
    held.observations(*rows)
    columns = [column.tobytes() for column in (*groups, *hull, *rows[:3])]
    times = np.nan_to_num(rows[3], nan=-1.0).tobytes()  # one NaN is as good as another
    around = [held.around(score) for score in (-1.0, 0.0, 0.3, 0.5, 1.0, 1e308)]
    return [held.size, held.total, held.late, held.limit, held.lifetime, columns, times, around]


def same(pair: Pair) -> None:
    """Assert that both tell the same, and that both are sound."""
    ours, theirs = pair
    assert contents(ours) == contents(theirs)
    ours.check()
    theirs.check()


# Short and hostile


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Draw a batch of steps with ties, wild weights and times that go back and forth."""
    few = draw(st.booleans())
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from((PREDICT, LEARN, LEARN, REMOVE)),
                st.sampled_from((*FEW, *EXTREMES)) if few else SCORES,
                LABELS,
                UNITS,
                GAPS,
            ),
            max_size=60,
        )
    )
    steps, scores, labels, units, gaps = zip(*rows, strict=True) if rows else ((),) * 5
    return (
        np.array(steps, np.uint8),
        np.array(scores, float) + 0.0,
        np.array(labels, np.uint8),
        np.array(units, np.int64),
        np.cumsum(np.array(gaps, float)),
    )


@EVERY_RULE
@given(batches(), st.lists(SCORES, min_size=64, max_size=80))
def test_many_predictions_at_once(options: Options, bag: Batch, queries: list[float]) -> None:
    """Scores enough for the native core to make a table are predicted alike, whatever is kept."""
    bag[0][:] = LEARN
    pair = both(options)
    done = run(pair, bag, timed=any(options[1:3]))
    asked = np.concatenate([np.array(queries) + 0.0, bag[1][:done]])
    n = len(asked)
    batch = (np.zeros(n, np.uint8), asked, np.zeros(n, np.uint8), None, np.empty(n))
    assert run(pair, batch, timed=False) == n
    same(pair)


@EVERY_RULE
@given(
    st.lists(st.tuples(batches(), st.integers(0, 3)), max_size=4),
    st.lists(SCORES, min_size=64, max_size=70),
)
def test_predictions_between_changes(
    options: Options, drawn: list[tuple[Batch, int]], queries: list[float]
) -> None:
    """Batches of predictions between any steps are alike, also those that a kept table answers."""
    pair = both(options)
    timed = any(options[1:3])
    for batch, times in drawn:
        if any(options[:3]):
            batch[0][batch[0] == REMOVE] = LEARN
        run(pair, batch, timed=timed)
        asked = np.concatenate([np.array(queries) + 0.0, batch[1]])
        none = np.zeros(len(asked), np.uint8)
        for _ in range(times):
            run(pair, (none, asked, none, None, np.empty(0)), timed=False)
        pair[0].check()  # of the kept table too
    same(pair)


@EVERY_RULE
@given(st.lists(batches(), max_size=3))
def test_any_steps(options: Options, drawn: list[Batch]) -> None:
    """Any steps, also refused ones, give the same answers, contents and stops."""
    pair = both(options)
    timed = any(options[1:3])
    for batch in drawn:
        if any(options[:3]):
            batch[0][batch[0] == REMOVE] = LEARN
        done = run(pair, batch, timed=timed)
        same(pair)
        run(pair, tuple(column[done + 1 :] for column in batch), timed=timed)
        same(pair)


@EVERY_RULE
@given(batches(), batches())
def test_restored_sets_agree(options: Options, before: Batch, after: Batch) -> None:
    """What one writes the other reads, and both go on alike."""
    pair = both(options)
    timed = any(options[1:3])
    for batch in (before, after):
        batch[0][batch[0] == REMOVE] = LEARN
    run(pair, before, timed=timed)
    ours, theirs = both(options)
    for source, target in ((pair[0], theirs), (pair[1], ours)):
        if any(options[:3]):
            kept = source.observation_count()
            rows = (
                np.empty(kept),
                np.empty(kept, np.uint8),
                np.empty(kept, np.int64),
                np.empty(kept),
            )
            source.observations(*rows)
            target.load_observations(*rows, source.late)
        else:
            n = source.group_count()
            groups = (np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64))
            source.groups(*groups)
            target.load_groups(*groups, source.size)
    same((ours, theirs))
    run((ours, theirs), after, timed=timed)
    run(pair, after, timed=timed)
    assert contents(ours) == contents(pair[0])
    same((ours, theirs))


@pytest.mark.parametrize("weight", [1, ONE, (1 << 62) - 1, 1 << 62])
@pytest.mark.parametrize("labels", [(1, 0, 1, 0), (1, 1, 1, 1), (0, 0, 0, 0), (0, 0, 1, 1)])
def test_the_largest_sums(labels: tuple[int, ...], weight: int) -> None:
    """At the limit of the total and of a query's weight nothing overflows."""
    pair = both((0, 0.0, 0.0))
    steps = np.array([LEARN] * 4 + [PREDICT] * 5 + [LEARN], np.uint8)
    scores = np.array([0.1, 0.2, 0.3, 0.4, 0.05, 0.15, 0.25, 0.35, 0.5, 0.9])
    column = np.array([*labels, 0, 0, 0, 0, 0, 1], np.uint8)
    quarter = 1 << 61
    units = np.array([quarter, quarter, quarter, quarter - 1, *[weight] * 5, 1], np.int64)
    assert run(pair, (steps, scores, column, units, scores), timed=False) == 9
    same(pair)


@pytest.mark.parametrize("weight", [1, ONE, (1 << 62) - 1, 1 << 62])
@pytest.mark.parametrize("start", [0.0, 0.05, 0.5, 0.95, 0.999])
def test_the_largest_products(start: float, weight: int) -> None:
    """At those limits no comparison of two slopes overflows, along a hull of many steep edges."""
    pair = both((0, 0.0, 0.0))
    groups = 63
    rates = start + np.arange(groups) / groups * 0.001
    positives = (rates * 2.0**57).astype(np.int64)
    units = np.concatenate([positives, (1 << 57) - positives, np.full(3 * groups, weight)])
    scores = np.concatenate([np.arange(groups)] * 2 + [np.arange(3 * groups) / 3 - 1.0])
    labels = np.repeat(np.array([1, 0], np.uint8), [groups, 4 * groups])
    steps = np.repeat(np.array([LEARN, PREDICT], np.uint8), [2 * groups, 3 * groups])
    held = np.flatnonzero(units > 0)
    batch = tuple(column[held] for column in (steps, scores, labels, units, scores))
    assert run(pair, batch, timed=False) == len(held)
    same(pair)


# Long

KINDS = ("smooth", "parted", "ties", "two", "wild", "ascending", "descending")


def long_batch(rng: np.random.Generator, kind: str, n: int) -> Batch:
    """Make a batch of a stream: a quarter predictions, with weights and times of one kind."""
    scores = {
        "smooth": rng.random(n),
        "parted": rng.random(n),
        "ties": np.round(rng.random(n), 2),
        "two": rng.integers(0, 2, n) / 3,
        "wild": rng.choice(np.array(EXTREMES), n) + 0.0,
        "ascending": np.sort(rng.random(n)),
        "descending": -np.sort(rng.random(n)),
    }[kind]
    rates = np.clip(np.abs(scores), 0.1, 0.9)
    if kind == "parted":  # long runs of one label, seldom broken
        rates = np.where(np.abs(scores - 0.5) < 0.02, 0.5, scores > 0.5)
        rates = np.clip(rates, 0.0005, 0.9995)
    labels = (rng.random(n) < rates).astype(np.uint8)
    weights = {
        "unit": np.full(n, ONE),
        "few": rng.choice(np.array([ONE, 2 * ONE, ONE // 2]), n),
        "wild": (2.0 ** rng.uniform(0, 50, n)).astype(np.int64),
    }[("unit", "few", "wild")[rng.integers(3)]]
    times = np.cumsum(rng.choice(np.array([0.0, 0.01, 0.2, -0.3, 2.0]), n))
    steps = rng.choice(np.array([PREDICT, LEARN, LEARN, LEARN], np.uint8), n)
    return steps, scores, labels, weights, times


def live(options: Options, kind: str, seed: int, n: int) -> None:
    """Go through a long stream, with removals where nothing is forgotten."""
    rng = np.random.default_rng(seed)
    pair, timed, now = both(options), any(options[1:3]), 0.0
    learned: list[Batch] = []
    for _ in range(n // 200):
        batch = long_batch(rng, kind, 200)
        batch[4].__iadd__(now)
        now = float(batch[4].max())
        assert run(pair, batch, timed=timed) == 200
        if not any(options[:3]):
            learned.append(tuple(column[batch[0] == LEARN] for column in batch))
            if len(learned) > 4 and rng.random() < 0.4:
                gone = learned.pop(rng.integers(len(learned)))
                gone[0][:] = REMOVE
                order = rng.permutation(len(gone[0]))
                assert run(pair, tuple(c[order] for c in gone), timed=False) == len(order)
        same(pair)


@EVERY_RULE
@pytest.mark.parametrize("kind", KINDS)
def test_long_streams(options: Options, kind: str) -> None:
    """A stream of thousands of steps gives the same answers and contents throughout."""
    live(options, kind, seed=0, n=1_200)


@pytest.mark.long
@EVERY_RULE
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_very_long_streams(options: Options, kind: str, seed: int) -> None:
    """Streams of tens of thousands of steps give the same answers and contents throughout."""
    live(options, kind, seed=1 + seed, n=20_000)


# Deep trees, where the reference answers few questions


@pytest.mark.large(800)
@EVERY_RULE
def test_deep_trees(options: Options, size: int) -> None:
    """With many observations kept, sampled questions get the same answers."""
    deep(options, size)


@pytest.mark.long
@pytest.mark.large(2_000)
@EVERY_RULE
def test_deeper_trees(options: Options, size: int) -> None:
    """With more observations kept, sampled questions still get the same answers."""
    deep(options, size)


def deep(options: Options, size: int) -> None:
    """Compare a few answers on each of several streams of a size."""
    rng = np.random.default_rng(11)
    larger = (options[0] * 20, options[1] * 50, options[2] * 50, *options[3:])
    pair, timed = both(larger), any(options[1:3])
    for kind in ("smooth", "parted", "ties", "ascending", "parted", "smooth"):
        steps, scores, labels, units, times = long_batch(rng, kind, size)
        steps[:] = LEARN
        steps[rng.integers(0, size, 30)] = PREDICT
        run(pair, (steps, scores, labels, units, np.abs(times)), timed=timed)
        same(pair)


@pytest.mark.large(2_000)
@pytest.mark.parametrize("weights", ["unit", "few", "wild"])
def test_runs_of_one_label(weights: str, size: int) -> None:
    """In long runs of one label every question gets the same answer, as runs grow and break."""
    rng = np.random.default_rng(12)
    pair = both((0, 0.0, 0.0))
    scores = rng.permutation(size) / size
    units = {
        "unit": np.full(size, ONE),
        "few": rng.choice(np.array([ONE, 2 * ONE, ONE // 2]), size),
        "wild": (2.0 ** rng.uniform(0, 40, size)).astype(np.int64),
    }[weights]
    labels = (scores > 0.6).astype(np.uint8)
    learn, none = np.full(size, LEARN, np.uint8), np.zeros(size)
    assert run(pair, (learn, scores, labels, units, none), timed=False) == size
    same(pair)
    for _ in range(12):  # a label that breaks a run, questions about it, and it is gone again
        at = rng.integers(0, size, 1)
        asked = np.concatenate([scores[rng.integers(0, size, 8)], scores[at], rng.random(3)])
        broken = (learn[:1], scores[at], 1 - labels[at], units[at], none[:1])
        questions = (
            np.full(12, PREDICT, np.uint8),
            asked,
            np.zeros(12, np.uint8),
            units[:12],
            none[:12],
        )
        for part in (broken, questions):
            run(pair, part, timed=False)
        same(pair)
        if rng.random() < 0.5:
            gone = (np.full(1, REMOVE, np.uint8), *broken[1:])
            assert run(pair, gone, timed=False) == 1
        run(pair, questions, timed=False)
        same(pair)


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 8))]
)
def test_few_scores_for_long(seed: int) -> None:
    """Where many points lie on one line, every question gets the same answer."""
    rng = np.random.default_rng(seed)
    top = int(rng.integers(10, 300))
    scores = rng.integers(0, top, 600)
    rules = ((scores // 16) % 2 + rng.random(600) < 0.7, rng.random(600) < 0.1, scores > top / 2)
    labels = rules[seed % 3].astype(np.uint8)
    asked = np.arange(top)
    pair = both((0 if seed % 2 else 200, 0.0, 0.0))
    for start in range(0, 600, 40):
        column = np.concatenate([scores[start : start + 40], asked]) / 4096.0
        answers = np.concatenate([labels[start : start + 40], np.zeros(top, np.uint8)])
        steps = np.repeat(np.array([LEARN, PREDICT], np.uint8), (40, top))
        n = len(steps)
        assert run(pair, (steps, column, answers, np.full(n, ONE), np.zeros(n)), timed=False) == n
    same(pair)

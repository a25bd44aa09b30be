"""The set behind predictive distributions, on both backends, against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.cases import EXTREMES, FEW, GAPS, SCORES, WEIGHTS, native_exists
from tests.engine.oracle import units
from tests.engine.regression.oracle import RegressionOracle, naive_steps

from abers import reference
from abers.arrays import LEARN, ONE, PREDICT, REMOVE
from abers.backends import core
from abers.reference.isotonic import pool

RULES: dict[str, tuple[int, float, float]] = {
    "unlimited": (0, 0.0, 0.0),
    "window": (9, 0.0, 0.0),
    "max_age": (0, 4.0, 0.0),
    "half_life": (0, 0.0, 0.7),
}
EVERY_RULE = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
LEVELS = np.array([0.05, 0.3, 0.5, 0.77, 0.9])


def as_steps(table: Any) -> list[tuple[float, float, float]]:  # noqa: ANN401
    """List the columns of an answer."""
    return [tuple(column) for column in table.T.tolist()]


def quantiles(held: Any, score: float, time: float = float("nan")) -> Any:  # noqa: ANN401
    """Ask for the quantiles at LEVELS by way of `run`."""
    found = np.full((3, 1, len(LEVELS)), np.nan)
    times = None if np.isnan(time) else np.array([time])
    kinds, column = np.array([PREDICT], np.uint8), np.array([score])
    held.run(kinds, column, column, None, times, LEVELS, found)
    return found[:, 0]


def reached(table: Any) -> Any:  # noqa: ANN401
    """Find the quantiles at LEVELS in a whole answer, by definition."""
    thresholds, lower, upper = table
    cdfs = (1.0 / (1.0 + (1.0 - lower) / upper), upper, lower)
    return np.array(
        [
            [
                next((t for t, v in zip(thresholds, cdf, strict=True) if v >= q), np.inf)
                for q in LEVELS
            ]
            for cdf in cdfs
        ]
    )


# The definition


@pytest.mark.large(3_000, reference=150)
def test_definition_with_ties(size: int) -> None:
    """In thousands of bags with ties every answer is one binary prediction a threshold."""
    rng = np.random.default_rng(20)
    for _ in range(size):
        n, few, kinds = rng.integers(0, 16), rng.integers(1, 9), rng.integers(1, 9)
        scores, labels = rng.integers(0, few, n) / 4, rng.integers(0, kinds, n) / 2
        if rng.random() < 0.3:  # hardly a tie
            scores, labels = rng.random(n), scores + rng.random(n)
        held = core.PredictiveSet()
        for pair in zip(scores.tolist(), labels.tolist(), strict=True):
            held.learn(*pair)
        for query in (-1.0, 0.0, 0.25, 0.3, 0.5, 0.8, 1.0, 9.0):
            smallest, largest, table = held.predict(query)
            assert as_steps(table) == naive_steps(scores, labels, query)
            if n:
                assert (smallest, largest) == (min(labels), max(labels))
            assert np.array_equal(quantiles(held, query), reached(table))


@pytest.mark.large(400, reference=60)
def test_definition_with_larger_bags(size: int) -> None:
    """Bags of hundreds, where runs of labels are merged and dropped, obey the definition too."""
    rng = np.random.default_rng(21)
    for i in range(max(1, size // 20)):
        n = size
        scores = rng.normal(size=n).round(rng.integers(1, 6))
        noise = (0.1, 1.0, 10.0)[i % 3]
        labels = (scores + noise * rng.normal(size=n)).round(rng.integers(0, 5))
        held = core.PredictiveSet()
        for pair in zip(scores.tolist(), labels.tolist(), strict=True):
            held.learn(*pair)
        for query in (*rng.normal(size=3), scores[0], max(scores), -9.0):
            table = held.predict(float(query))[2]
            assert as_steps(table) == naive_steps(scores, labels, float(query))
            assert np.array_equal(quantiles(held, float(query)), reached(table))


def scattered(kind: str, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Make scores and labels that depend on them in one way or another."""
    scores = rng.normal(size=n)
    if kind == "tied":
        scores = scores.round(1)
    elif kind == "one great tie":
        scores = np.where(rng.random(n) < 0.4, 0.0, scores)
    noise = rng.standard_t(1.5, n) if kind == "outliers" else rng.normal(size=n)
    signal = {"none": 0.0, "reversed": -1.0, "two levels": 0.0}.get(kind, 1.0)
    steps = 4.0 * (scores > 0.3) if kind == "two levels" else 0.0
    return scores, (signal * scores + steps + 0.4 * noise).round(3) + 0.0


@pytest.mark.once
@pytest.mark.large(4_000, reference=120)
@pytest.mark.parametrize(
    "kind", ["plain", "tied", "one great tie", "outliers", "none", "reversed", "two levels"]
)
def test_what_is_far_from_a_query(size: int, kind: str) -> None:
    """Bags of many blocks, of which a query reads few, obey the definition while they grow."""
    rng = np.random.default_rng(23)
    scores, labels = scattered(kind, rng, size)
    held = core.PredictiveSet()
    grid = np.sort(rng.choice(labels, 40, replace=False)).tolist()
    binary = [core.CalibrationSet() for _ in grid]
    for i, (score, label) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True)):
        weight = ONE if kind != "tied" else int(rng.choice([ONE, ONE // 3, 5 * ONE]))
        held.learn(score, label, weight)
        for t, one in zip(grid, binary, strict=True):
            one.learn(-score + 0.0, label <= t, weight)
        if i % (size // 5):
            continue
        for query in (*rng.normal(size=3).tolist(), score, -9.0, 9.0):
            smallest, largest, (thresholds, *cdfs) = held.predict(query)
            assert (smallest, largest) == (labels[: i + 1].min(), labels[: i + 1].max())
            at = np.searchsorted(thresholds, grid, "right") - 1
            found = np.array([cdf[at] for cdf in cdfs]).T
            expected = [one.predict(-query + 0.0) for one in binary]
            assert [tuple(pair) for pair in found.tolist()] == expected
            assert np.array_equal(quantiles(held, query), reached(held.predict(query)[2]))
            assert held.quantile(query, 0.3) == quantiles(held, query)[0, 1]


def test_looking_ahead_hides_nothing_for_good() -> None:
    """A query at a later time sees less; the next one at the usual time sees everything again."""
    held, rng = core.PredictiveSet(0, 50.0, 0.0), np.random.default_rng(24)
    rows = rng.normal(size=(300, 2)).tolist()
    for i, (score, label) in enumerate(rows):
        held.learn(score, label, ONE, i / 10)
    now = held.predict(0.1)
    few = core.PredictiveSet()
    for score, label in rows[200:]:
        few.learn(score, label)
    ahead = held.predict(0.1, 70.0)
    assert ahead[:2] == few.predict(0.1)[:2]
    assert np.array_equal(ahead[2], few.predict(0.1)[2])
    assert np.array_equal(held.predict(0.1)[2], now[2])


EVENTS = st.lists(
    st.tuples(
        st.sampled_from((*FEW, *EXTREMES)) | SCORES,
        st.sampled_from((*FEW, *EXTREMES, 7.0)),
        WEIGHTS,
        GAPS,
    ),
    max_size=8,
)


@EVERY_RULE
@given(EVENTS, st.sampled_from((*FEW, *EXTREMES)) | SCORES, st.sampled_from((-9.0, 0.0, 0.5, 50.0)))
def test_definition_in_fractions(
    rule: tuple[int, float, float],
    events: list[tuple[float, float, float, float]],
    query: float,
    ahead: float,
) -> None:
    """With any weights, times and rule of forgetting, the answer is the binary oracle's."""
    held, timed = core.PredictiveSet(*rule), any(rule[1:])
    oracle = RegressionOracle(rule[0] or None, rule[1] or None, rule[2] or None)
    now = 0.0
    for score, label, weight, gap in events:
        now += gap
        time = now if timed else float("nan")
        held.learn(score + 0.0, label + 0.0, units(weight), time)
        oracle.learn(score, label, weight, *([now] if timed else []))
    held.check()
    assert (held.size, held.late) == (len(oracle), oracle.late)
    asked = held.predict(query + 0.0, now + ahead) if timed else held.predict(query + 0.0)
    assert as_steps(asked[2]) == oracle.steps(query, *([now + ahead] if timed else []))


def test_leave_one_out() -> None:
    """Without an observation the CDF that belongs to its label is the full bag's isotonic fit."""
    rng = np.random.default_rng(5)
    scores, labels = rng.integers(0, 9, 40) / 8, rng.integers(0, 7, 40) / 2
    held = core.PredictiveSet()
    for pair in zip(scores.tolist(), labels.tolist(), strict=True):
        held.learn(*pair)
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        held.remove(score, label)
        thresholds, lower, upper = held.predict(score)[2]
        for t in np.unique(labels):
            groups = [
                (s, (int(np.sum(labels[scores == s] <= t)), int(np.sum(labels[scores == s] > t))))
                for s in np.unique(scores).tolist()
            ]
            fit = next(b for b in pool(groups) if b.upper >= score)
            mine = (upper if label <= t else lower)[np.searchsorted(thresholds, t, "right") - 1]
            assert mine == (fit.weight - fit.positives) / fit.weight
        held.learn(score, label)


# The two backends


def twins(rule: tuple[int, float, float]) -> tuple[Any, Any]:
    """Make a set of each implementation."""
    if not native_exists():
        pytest.skip("needs the native core")
    from abers import _core  # noqa: PLC0415 - absent without a compiler

    return _core.PredictiveSet(*rule), reference.PredictiveSet(*rule)


def contents(held: Any) -> list[Any]:  # noqa: ANN401
    """Read everything that a set tells about itself."""
    held.check()
    kept, pairs = held.observation_count(), held.pooled_count()
    rows = (np.empty(kept), np.empty(kept), np.empty(kept, np.int64), np.empty(kept))
    held.observations(*rows)
    pooled = (np.empty(pairs), np.empty(pairs), np.empty(pairs, np.int64))
    if not held.lifetime:
        held.pooled(*pooled)
    columns = [np.nan_to_num(column, nan=-1.0).tobytes() for column in (*rows, *pooled)]
    return [held.size, held.total, held.late, held.limit, held.lifetime, held.window, columns]


def batch(rng: np.random.Generator, n: int, *, removing: bool) -> tuple[Any, ...]:
    """Make steps with ties, unequal weights and times that mostly grow."""
    steps = rng.choice([PREDICT, LEARN, LEARN, LEARN, REMOVE if removing else LEARN], n)
    scores, labels = rng.integers(0, 12, n) / 4, rng.integers(0, 12, n) / 2
    weights = rng.choice([ONE, ONE, ONE, 2 * ONE, ONE // 3, 1], n)
    times = np.cumsum(rng.choice([0.0, 0.1, 0.5, -0.3, 4.0], n, p=[0.3, 0.3, 0.2, 0.15, 0.05]))
    return steps.astype(np.uint8), scores, labels, weights.astype(np.int64), times


@pytest.mark.native
@EVERY_RULE
def test_native_equals_reference(rule: tuple[int, float, float]) -> None:
    """The same steps give the same answers, contents and stops, to the last bit."""
    rng = np.random.default_rng(8)
    timed = any(rule[1:])
    for _ in range(8):
        both = twins(rule)
        for _ in range(4):
            steps, scores, labels, weights, times = batch(rng, 40, removing=not any(rule))
            answers = []
            for held in both:
                found = np.full((3, 40, len(LEVELS)), np.nan)
                sizes = np.zeros(40, np.int64)
                when = times if timed else None
                done = held.run(steps, scores, labels, weights, when, LEVELS, found, sizes)
                answers.append((done, sizes[:done].tolist(), found.tobytes()))
            assert answers[0] == answers[1]
            assert contents(both[0]) == contents(both[1])
            queries = np.array([-1.0, 0.25, 1.1, 9.0])
            whens = np.full(4, times[-1] + 1.0) if timed else None
            for mine, theirs in zip(
                *(held.predict_many(queries, whens) for held in both), strict=True
            ):
                assert mine[:2] == theirs[:2]
                assert np.array_equal(mine[2], theirs[2])


@pytest.mark.native
@pytest.mark.parametrize("weight", [1, ONE, (1 << 61) - 1])
def test_the_largest_sums(weight: int) -> None:
    """At the limit of the total weight nothing overflows, and more is refused."""
    both = twins((0, 0.0, 0.0))
    for held in both:
        for i, label in enumerate((3.0, 1.0, 2.0, 0.0)):
            assert held.learn(i / 4, label, weight if i < 3 else (1 << 63) - 1 - 3 * weight)
        assert not held.learn(0.1, 1.0, 1)
    for query in (-1.0, 0.0, 0.3, 0.5, 0.75, 2.0):
        mine, theirs = (held.predict(query)[2] for held in both)
        assert np.array_equal(mine, theirs)


@pytest.mark.native
@pytest.mark.parametrize("order", ["ascending", "descending", "equal", "two"])
@pytest.mark.parametrize("n", [8_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_hostile_labels(order: str, n: int) -> None:
    """Labels in the order of the scores, or against it, or hardly different, are no trouble."""
    labels = {
        "ascending": np.arange(n, dtype=float),
        "descending": -np.arange(n, dtype=float),
        "equal": np.zeros(n),
        "two": np.arange(n) % 2.0,
    }[order]
    held, _ = twins((0, 0.0, 0.0))
    steps, scores = np.full(n, LEARN, np.uint8), np.arange(n, dtype=float)
    held.run(steps, scores, labels, None, None, LEVELS[:0], np.empty((3, n, 0)))
    held.check()
    _, lower, upper = held.predict(n / 2)[2]
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) >= 0).all()
    assert (lower <= upper).all()

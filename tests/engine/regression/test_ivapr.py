"""The calibrator, `abers.regression.ivapr`: what it predicts, learns, refuses and guarantees."""

from __future__ import annotations

import copy
import math
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from benchmarks.resident import resident
from tests.engine.cases import aging

from abers import (
    ForgettingError,
    LabelError,
    NotHeldError,
    ParameterError,
    ScoreError,
    TimeError,
    VennAbers,
    WeightError,
)
from abers.arrays import LEARN, PREDICT, REMOVE
from abers.regression import IVAPR
from abers.regression.ivapr import Quantiles

OPTIONS: dict[str, dict[str, Any]] = {
    "unlimited": {},
    "window": {"window": 7},
    "max_age": {"max_age": 5.0},
    "half_life": {"half_life": 0.7},
    "grid": {"grid": [0.5, 1.0, 2.5]},
    "grid in a window": {"grid": [0.5, 1.0, 2.5], "window": 7},
    "grid with an age": {"grid": [0.5, 1.0, 2.5], "half_life": 3.0},
}
EVERY_RULE = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
LEVELS = [0.05, 0.3, 0.5, 0.9]


def stream(n: int, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Make scores, labels, weights and times, with ties in all of them."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 8, n) / 8
    labels = (scores * 4 + rng.normal(size=n)).round(1) + 0.0
    weights = rng.choice([1.0, 1.0, 0.7, 2.5], n)
    times = np.cumsum(rng.choice([0.0, 0.1, 0.5, -0.3, 2.0], n))
    return scores, labels, weights, times


def taught(options: dict[str, Any], n: int = 40, seed: int = 0) -> IVAPR:
    """Make a calibrator that has learned `stream(n, seed)`."""
    calibrator = IVAPR(**options)
    scores, labels, weights, times = stream(n, seed)
    calibrator.learn_many(scores, labels, weights=weights, times=times if aging(options) else None)
    return calibrator


# Answers


def test_each_threshold_is_a_binary_prediction() -> None:
    """At every threshold the band is the binary calibrator's interval for "above it"."""
    scores, labels, weights, _ = stream(60)
    calibrator = IVAPR()
    calibrator.learn_many(scores, labels, weights=weights)
    predicted = calibrator.predict_one(0.4)
    for t in (-9.0, *np.unique(labels).tolist()):
        binary = VennAbers()
        binary.learn_many(scores, labels > t, weights=weights)
        p0, p1 = predicted.probability_above(t)
        assert (p0, p1) == pytest.approx(binary.predict_one(0.4), abs=1e-15)


def test_empty_is_vacuous() -> None:
    """Without an observation every CDF is possible, and nothing is an error."""
    for calibrator in (IVAPR(), IVAPR(half_life=2.0), IVAPR(grid=[0.0, 1.0])):
        predicted = calibrator.predict_one(0.3)
        assert predicted.lower([-5.0, 5.0]).tolist() == [0.0, 0.0]
        assert predicted.upper([-5.0, 5.0]).tolist() == [1.0, 1.0]
        assert predicted.interval(0.9) == (-math.inf, math.inf)
        assert predicted.mass_below == predicted.mass_above == 0.5
        assert calibrator
        assert len(calibrator) == 0


def test_support() -> None:
    """The masses at infinity go to the support, by default to the extreme labels kept."""
    calibrator = IVAPR(window=3)
    calibrator.learn_many([0.1, 0.2, 0.3, 0.4], [-50.0, 1.0, 3.0, 2.0])
    assert calibrator.predict_one(0.25).support == (1.0, 3.0)
    bounded = IVAPR(support=(0.0, 10.0))
    bounded.learn_many([0.1, 0.2], [1.0, 3.0])
    assert bounded.predict_one(0.15).support == bounded.support == (0.0, 10.0)
    grid = IVAPR(grid=[-1.0, 5.0])
    grid.learn_one(0.3, 2.0)
    assert grid.predict_one(0.3).support == pytest.approx((-1.0, 5.0))


@EVERY_RULE
def test_quantiles_are_those_of_the_distribution(options: dict[str, Any]) -> None:
    """What prune and search finds is what the whole distribution says, band and merge."""
    calibrator = taught(options)
    queries = [-1.0, 0.0, 0.3, 0.5, 0.99, 2.0]
    found = calibrator.quantiles_many(queries, LEVELS)
    for i, predicted in enumerate(calibrator.predict_many(queries)):
        assert predicted == calibrator.predict_one(queries[i])
        assert found.merged[i].tolist() == predicted.quantile(LEVELS).tolist()
        low, high = predicted.interval(0.8, band=True)
        ends = calibrator.quantiles_many([queries[i]], [0.1, 0.9])
        assert (ends.low[0, 0], ends.high[0, 1]) == pytest.approx((low, high))
        assert calibrator.quantile_one(queries[i], 0.5) == predicted.quantile(0.5)


@pytest.mark.large(6_000, reference=40)
@pytest.mark.parametrize("signal", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("options", [{}, {"half_life": 5e3}], ids=repr)
def test_levels_may_be_solved_apart(
    size: int,
    signal: float,
    ties: bool,  # noqa: FBT001 - a parameter of the test
    options: dict[str, Any],
) -> None:
    """Levels in any number and order have the quantiles of each alone, and of the distribution."""
    rng = np.random.default_rng(5)
    scores = np.round(rng.normal(size=size), 1 if ties else 9)
    labels = signal * scores + rng.normal(size=size)
    calibrator = IVAPR(**options)
    calibrator.learn_many(scores, labels, times=np.arange(size) if options else None)
    queries = [-9.0, -0.7, 0.0, 0.1234, 1.5, 9.0]
    for levels in ([0.5, 0.05], [0.9, 0.1, 0.5, 0.5], [0.2, 0.5, 0.8], np.linspace(0.02, 0.98, 12)):
        found = calibrator.quantiles_many(queries, levels)
        alone = [calibrator.quantiles_many(queries, [level]) for level in levels]
        for several, single in zip(found, zip(*alone, strict=True), strict=True):
            assert np.array_equal(several, np.hstack(single))
        for merged, predicted in zip(found.merged, calibrator.predict_many(queries), strict=True):
            inside = np.isfinite(merged)  # beyond them the support says where
            assert (merged == predicted.quantile(levels))[inside].all()


def test_the_band_holds_isotonic_distributional_regression() -> None:
    """The fit without the query lies between the CDFs, at its scores and every threshold."""
    scores, labels, _, _ = stream(50, seed=4)
    calibrator = IVAPR()
    calibrator.learn_many(scores, labels)
    for t in np.unique(labels).tolist():
        binary = VennAbers()
        binary.learn_many(scores, labels > t)
        for score in np.unique(scores).tolist():
            predicted = calibrator.predict_one(score)
            fit = 1.0 - float(binary.isotonic(score) or 0.0)
            assert predicted.lower(t) - 1e-15 <= fit <= predicted.upper(t) + 1e-15


# Batches


@EVERY_RULE
def test_run_is_its_steps(options: dict[str, Any]) -> None:
    """A run of steps answers, counts and remembers as the same calls one by one."""
    scores, labels, weights, times = stream(60, seed=2)
    when = times if aging(options) else None
    kinds = np.random.default_rng(1).choice([PREDICT, LEARN], 60)
    one, many = IVAPR(**options), IVAPR(**options)
    held = np.zeros(60, np.int64)
    blind = np.where(kinds == PREDICT, np.nan, labels)
    found = many.run(kinds, scores, blind, levels=LEVELS, weights=weights, times=when, held=held)
    assert isinstance(found, Quantiles)
    for i in range(60):
        at = {"time": times[i]} if when is not None else {}
        if kinds[i] == LEARN:
            one.learn_one(scores[i], labels[i], weight=weights[i], **at)
            assert np.isnan(found.merged[i]).all()
        else:
            predicted = one.predict_one(scores[i], **at)
            assert found.merged[i].tolist() == predicted.quantile(LEVELS).tolist()
        assert held[i] == len(one)
    assert one.to_bytes() == many.to_bytes()


@pytest.mark.parametrize("options", [{}, {"grid": [0.5, 1.0]}])
def test_a_refused_run_changes_nothing(options: dict[str, Any]) -> None:
    """A run whose removal fails names the row, and what was done before is undone."""
    calibrator = taught(options)
    before = calibrator.to_bytes()
    answer = calibrator.predict_one(0.3)
    with pytest.raises(NotHeldError, match=r"^row 3: no weight 1 of score 0\.9 with label 5\.0"):
        calibrator.run(
            [LEARN, PREDICT, REMOVE, REMOVE],
            [0.9, 0.1, 0.9, 0.9],
            [4.0, 0.0, 4.0, 5.0],
            levels=[0.5],
        )
    assert calibrator.to_bytes() == before
    assert calibrator.predict_one(0.3) == answer


@EVERY_RULE
def test_too_much_weight_changes_nothing(options: dict[str, Any]) -> None:
    """A batch whose total weight is too large is refused with its row and learned in no part."""
    calibrator = taught(options)
    before = calibrator.to_bytes()
    heavy = [2.0**26] * 6 if "half_life" in options else [2.0**31] * 6
    times = [1e3] * 6 if aging(options) else None
    with pytest.raises(WeightError, match=r"^row \d: the total weight would pass"):
        calibrator.learn_many([0.1] * 6, [1.0] * 6, weights=heavy, times=times)
    assert calibrator.to_bytes() == before


def test_bad_rows_are_named() -> None:
    """One bad row of a batch is named, and nothing of the batch is learned."""
    calibrator = IVAPR(support=(0.0, 9.0))
    with pytest.raises(LabelError, match=r"^row 1: label inf is not a finite number"):
        calibrator.learn_many([0.1, 0.2], [1.0, math.inf])
    with pytest.raises(LabelError, match=r"^row 1: label 12\.0 lies outside the support"):
        calibrator.learn_many([0.1, 0.2], [1.0, 12.0])
    with pytest.raises(LabelError, match=r"^row 0: label nan"):
        calibrator.run([LEARN, PREDICT], [0.1, 0.2], [math.nan, 1.0], levels=[0.5])
    with pytest.raises(ParameterError, match="labels has 3 rows, scores has 2"):
        calibrator.run([LEARN, PREDICT], [0.1, 0.2], [1.0, 1.0, 1.0], levels=[0.5])
    assert len(calibrator) == 0


# Learning, removing, refusing


@pytest.mark.parametrize("options", [{}, {"grid": [0.5, 1.0, 2.5]}])
def test_removal_is_exact(options: dict[str, Any]) -> None:
    """Learning more and removing it again, in any order, restores the bytes and the answers."""
    calibrator = taught(options)
    before, answer = calibrator.to_bytes(), calibrator.predict_one(0.4)
    scores, labels, weights, _ = stream(30, seed=9)
    calibrator.learn_many(scores, labels, weights=weights)
    assert calibrator.predict_one(0.4) != answer
    for i in np.random.default_rng(0).permutation(30):
        calibrator.remove_one(scores[i], labels[i], weight=weights[i])
    assert calibrator.to_bytes() == before
    assert calibrator.predict_one(0.4) == answer


def test_order_of_arrival_does_not_matter() -> None:
    """Any order of the same observations gives the same bytes."""
    scores, labels, weights, _ = stream(40)
    order = np.random.default_rng(3).permutation(40)
    one, other = IVAPR(), IVAPR()
    one.learn_many(scores, labels, weights=weights)
    other.learn_many(scores[order], labels[order], weights=weights[order])
    assert one.to_bytes() == other.to_bytes()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda c: c.learn_one(math.nan, 1.0), ScoreError, "score nan"),
        (lambda c: c.learn_one(0.1, math.nan), LabelError, "label nan"),
        (lambda c: c.learn_one(0.1, math.inf), LabelError, "label inf"),
        (lambda c: c.learn_one(0.1, "high"), LabelError, "label 'high'"),
        (lambda c: c.learn_one(0.1, 1.0, weight=0.0), WeightError, "weight 0.0"),
        (lambda c: c.learn_one(0.1, 1.0, time=3.0), TimeError, "time 3.0"),
        (lambda c: c.remove_one(0.1, 1.0), NotHeldError, "no weight 1 of score 0.1"),
        (lambda c: c.predict_one(math.inf), ScoreError, "score inf"),
        (lambda c: c.predict_many([0.1, math.nan]), ScoreError, "row 1: score nan"),
        (lambda c: c.quantile_one(0.1, 1.0), ParameterError, r"levels=1\.0"),
        (lambda c: c.quantiles_many([0.1], [[0.5]]), ParameterError, "levels="),
        (lambda c: c.run([0], [0.1], [0.0], levels=[math.nan]), ParameterError, "levels="),
        (lambda c: c.run([4], [0.1], [0.0], levels=[0.5]), ParameterError, "row 0: step 4"),
        (
            lambda c: c.run([0], [0.1], [0.0], levels=[0.5], held=np.zeros(2, np.int64)),
            ParameterError,
            "held is int64",
        ),
    ],
)
def test_bad_input_changes_nothing(call: Any, error: type[Exception], message: str) -> None:  # noqa: ANN401
    """What cannot be used is refused by name, and the state stays as it was."""
    calibrator = IVAPR()
    calibrator.learn_many([0.5, 0.6], [1.0, 2.0])
    before = calibrator.to_bytes()
    with pytest.raises(error, match=message):
        call(calibrator)
    assert calibrator.to_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 3, "max_age": 1.0}, "exclude each other"),
        ({"window": 0}, "window=0"),
        ({"half_life": -1.0}, "half_life=-1.0"),
        ({"support": (3.0, 1.0)}, "support="),
        ({"support": (0.0, math.inf)}, "support="),
        ({"support": 3.0}, "support="),
        ({"support": (0, 10**400)}, "support="),
        ({"grid": "abc"}, "grid='abc'"),
        ({"grid": [10**400]}, "grid="),
        ({"grid": []}, "grid="),
        ({"grid": [2.0, 1.0]}, "grid="),
        ({"grid": [1.0, math.nan]}, "grid="),
        ({"grid": [1.0, float(np.nextafter(1.0, 2.0))]}, "grid="),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    """Options that make no sense are refused by name."""
    with pytest.raises(ParameterError, match=message):
        IVAPR(**options)


@pytest.mark.parametrize("level", ["a", 10**400, 0.0, 1.0, math.nan])
def test_levels_are_checked(level: Any) -> None:  # noqa: ANN401
    """A level is a number inside (0, 1), wherever it is asked for."""
    calibrator = IVAPR()
    with pytest.raises(ParameterError, match="levels="):
        calibrator.quantile_one(1.0, level)
    with pytest.raises(ParameterError, match="levels="):
        calibrator.quantiles_many([1.0], [0.5, level])


def test_removing_from_what_forgets() -> None:
    """A calibrator that forgets by itself cannot be instructed to remove."""
    calibrator = IVAPR(window=3)
    calibrator.learn_one(0.1, 1.0)
    with pytest.raises(ForgettingError):
        calibrator.remove_one(0.1, 1.0)
    with pytest.raises(ForgettingError):
        calibrator.run([REMOVE], [0.1], [1.0], levels=[0.5])


def test_times_are_required_where_things_age() -> None:
    """With an age a label needs its event time; what comes too late is counted."""
    calibrator = IVAPR(max_age=5.0)
    with pytest.raises(TimeError, match="time is missing"):
        calibrator.learn_one(0.1, 1.0)
    calibrator.learn_one(0.1, 1.0, time=10.0)
    calibrator.learn_one(0.1, 2.0, time=4.0)
    assert (len(calibrator), calibrator.late) == (1, 1)
    assert calibrator.predict_one(0.1, time=16.0).thresholds.tolist() == []
    assert calibrator.predict_one(0.1).thresholds.tolist() == [1.0]


def test_repr_names_what_it_is() -> None:
    """The options and the number of observations are named."""
    calibrator = IVAPR(window=9, support=(0.0, 1.0), grid=[0.2, 0.5])
    calibrator.learn_one(0.1, 1.0)
    expected = "<IVAPR(window=9, support=(0.0, 1.0), grid of 2) of 1 observations>"
    assert repr(calibrator) == expected
    assert (IVAPR().support, IVAPR().grid) == (None, None)
    grid = calibrator.grid
    assert grid is not None
    assert grid.tolist() == [0.2, 0.5]


# The grid


def test_a_grid_is_exact_at_its_thresholds_and_brackets_between() -> None:
    """At a threshold of the grid both CDFs are those of all thresholds; between they enclose."""
    grid = np.linspace(-2.0, 6.0, 17)
    coarse, exact = IVAPR(grid=grid), IVAPR()
    scores, labels, weights, _ = stream(80, seed=6)
    for calibrator in (coarse, exact):
        calibrator.learn_many(scores, labels, weights=weights)
    for query in (-1.0, 0.0, 0.2, 0.5, 0.875, 3.0):
        mine, theirs = coarse.predict_one(query), exact.predict_one(query)
        assert mine.lower(grid).tolist() == theirs.lower(grid).tolist()
        assert mine.upper(grid).tolist() == theirs.upper(grid).tolist()
        everywhere = np.unique(np.concatenate([labels, labels + 0.05, grid - 0.01]))
        assert (mine.lower(everywhere) <= theirs.lower(everywhere)).all()
        assert (mine.upper(everywhere) >= theirs.upper(everywhere)).all()


# Threads and memory


@pytest.mark.native
@pytest.mark.once
def test_batches_release_the_interpreter() -> None:
    """While one thread predicts a batch another runs Python."""
    calibrator = IVAPR()
    rng = np.random.default_rng(0)
    scores = rng.normal(size=20_000)
    calibrator.learn_many(scores, scores + rng.normal(size=20_000))
    done = threading.Event()

    def work() -> None:
        calibrator.predict_many(scores[:50])
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    ticks = 0
    while not done.is_set():  # one turn at a time would be a handful of them
        ticks += 1
    worker.join()
    assert ticks > 10_000


@pytest.mark.native
@pytest.mark.once
def test_memory_grows_with_the_observations() -> None:
    """After predictions the core holds a bounded number of bytes for each observation."""
    calibrator = IVAPR()
    rng = np.random.default_rng(0)
    scores = rng.normal(size=30_000)
    calibrator.learn_many(scores, scores + rng.normal(size=30_000))
    calibrator.predict_many(scores[:20])
    assert sys.getsizeof(calibrator._held) < 120 * 30_000  # noqa: SLF001 - C++ tells its size


@pytest.mark.native
@pytest.mark.once
def test_predictions_of_many_take_the_room_of_a_single_one() -> None:
    """Forty calibrators of 4,000 labels keep no room for their next predictions: a thread does."""
    rng, many = np.random.default_rng(0), []
    for _ in range(40):
        many.append(IVAPR())
        many[-1].learn_many(rng.random(4_000), rng.normal(size=4_000))
    many[0].predict_one(0.5)
    before = resident()
    found = [calibrator.predict_one(0.5).mean for calibrator in many]
    assert resident() - before < 10 << 20
    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(lambda one: one.predict_one(0.5).mean, many)] == found


@EVERY_RULE
def test_copies_go_on_alike(options: dict[str, Any]) -> None:
    """A copy answers as the original, and learning in one leaves the other alone."""
    calibrator = taught(options)
    other = copy.deepcopy(calibrator)
    before = other.to_bytes()
    at = {"time": 1e3} if aging(options) else {}
    calibrator.learn_one(0.3, 1.0, **at)
    assert other.to_bytes() == before
    other.learn_one(0.3, 1.0, **at)
    assert other.to_bytes() == calibrator.to_bytes()
    assert other.predict_one(0.2) == calibrator.predict_one(0.2)


# What is guaranteed


@pytest.mark.once
@pytest.mark.large(2_000, reference=40)
def test_coverage_on_exchangeable_data(size: int) -> None:
    """Central intervals hold their share of exchangeable labels, more with few; the band's too."""
    rng = np.random.default_rng(17)
    rounds, asked = 40, 20
    inside = np.zeros((2, 2))
    for _ in range(rounds):
        scores = rng.normal(size=size + asked)
        labels = scores + (0.5 + np.abs(scores)) * rng.normal(size=size + asked)
        calibrator = IVAPR()
        calibrator.learn_many(scores[:size], labels[:size])
        found = calibrator.quantiles_many(scores[size:], [0.05, 0.25, 0.75, 0.95])
        for i, (a, b) in enumerate(((1, 2), (0, 3))):
            y = labels[size:]
            inside[0, i] += np.mean((found.merged[:, a] <= y) & (y <= found.merged[:, b]))
            inside[1, i] += np.mean((found.low[:, a] <= y) & (y <= found.high[:, b]))
    merged, band = inside / rounds
    levels = np.array([0.5, 0.9])
    assert (merged >= levels - 0.04).all()
    assert (merged <= levels + 0.04 + size**-0.5).all()  # few labels leave mass open at both ends
    assert (band >= levels).all()


@pytest.mark.large(20_000, reference=2_000)
def test_one_of_the_two_cdfs_is_calibrated(size: int) -> None:
    """The CDF of the true label means what it says at a threshold, and the other one does not."""
    rng = np.random.default_rng(23)
    n, t = 10, 0.2
    scores = rng.integers(0, 6, (size, n + 1)) / 6
    labels = scores - 0.3 + 0.5 * rng.normal(size=(size, n + 1))
    chosen, other, hit = np.empty(size), np.empty(size), labels[:, n] <= t
    for i in range(size):
        calibrator = IVAPR(grid=[t])
        calibrator.learn_many(scores[i, :n], labels[i, :n])
        predicted = calibrator.predict_one(float(scores[i, n]))
        pair = predicted.lower(t), predicted.upper(t)
        chosen[i], other[i] = pair if not hit[i] else pair[::-1]

    def largest_z(claimed: Any) -> float:  # noqa: ANN401
        bins = np.minimum((claimed * 5).astype(int), 4)
        variance = claimed * (1.0 - claimed)
        return max(
            float(
                abs(np.sum((hit - claimed)[bins == b])) / np.sqrt(np.sum(variance[bins == b]) + 1.0)
            )
            for b in range(5)
        )

    assert largest_z(chosen) < 3.5
    assert largest_z(other) > 7.0

"""Protected cross Venn-Abers prediction: the bound, what it rests on, and the state."""

from __future__ import annotations

import math
import random
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.calibration.models import PRIORS, saved
from tests.engine.cases import SEEDS
from tests.engine.oracle import Oracle
from tests.oracles.elementary import geometric_means

from abers import (
    CrossVennAbers,
    LabelError,
    ParameterError,
    ProtectedCrossVennAbers,
    ScoreError,
    StateError,
    WeightError,
    checks,
)
from abers.backends import core
from abers.mathematics import EXPIRE, LEARN, PREDICT, interleaved
from abers.serialization import pack, seal, unpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.arrays import Floats, Integers
    from abers.calibration.protected import Kind

pytestmark = pytest.mark.native

CLIP = 1e-6
K = 3
RULES: list[dict[str, Any]] = [{}, {"window": 5}, {"half_life": 9.0}, {"max_age": 30.0}]


def loss(p: float, label: int) -> float:
    """Return the log loss of a forecast."""
    return -math.log(p if label else 1.0 - p)


def raw(scores: list[float]) -> float:
    """Return the raw probability of scores as the page defines it."""
    return min(max(median(scores), CLIP), 1.0 - CLIP)


def stream(n: int, seed: int, folds: int = K) -> tuple[Floats, Integers]:
    """Return scores of learners, and the labels of a world in which all are wrong half-way."""
    rng = np.random.default_rng(seed)
    base = rng.random(n)
    scores = np.clip(base[:, None] + rng.normal(0.0, 0.1, (n, folds)), 0.0, 1.0)
    truth = np.where(np.arange(n) < n // 2, base, 1.0 - base)
    return scores, (rng.random(n) < truth).astype(np.int64)


@pytest.mark.parametrize(
    "options", [{"folds": 2}, {"scores": "any"}, {"folds": 4, "scores": "logit"}]
)
def test_contract(options: dict[str, Any]) -> None:
    """The contract of a calibrator holds with other options than those of test_checks.py."""
    checks.check_calibrator(partial(ProtectedCrossVennAbers, **options))


# The promise


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bound_holds_for_any_order(seed: int) -> None:
    """Random delays, orders and lost labels: at most C ln(1/weight) over each expert.

    The losses of raw are added up here, of the medians of scores.
    """
    dice = random.Random(seed)  # noqa: S311 - no secret
    n, folds = 200, dice.randint(2, 5)
    scores, labels = stream(n, seed, folds)
    scores[::9] = dice.choice([0.0, 1.0])  # learners that are certain, and wrong
    calibrator = ProtectedCrossVennAbers(folds)
    theirs = ours = 0.0
    waiting: dict[int, float] = {}
    most = 0
    for number in range(n):
        row = scores[number].tolist()
        waiting[number] = calibrator.predict_one(row, number=number).probability
        most = max(most, len(waiting))
        while waiting and dice.random() < 0.52:
            of = dice.choice([*waiting])
            served = waiting.pop(of)
            if dice.random() < 0.1:
                calibrator.expire_one(of)
                continue
            # The contrary of what the mixture believes comes true, as often as not.
            label = int(served < 0.5) if dice.random() < 0.3 else int(labels[of])
            calibrator.learn_one(scores[of].tolist(), label, number=of, id=of)
            ours += loss(served, label)
            theirs += loss(raw(scores[of].tolist()), label)
    assert calibrator.lanes == most
    assert calibrator.price == pytest.approx(most * math.log(4.0))
    assert ours <= theirs + calibrator.price
    losses = calibrator.expert_losses()
    assert (losses["raw"], losses.pop("protected")) == pytest.approx((theirs, ours))
    for (name, its), weight in zip(losses.items(), PRIORS["folds"], strict=True):
        assert ours <= its + most * -math.log(weight) + 1e-9, name


@pytest.mark.parametrize(
    ("scores", "kind", "expected"),
    [
        ([0.2, 0.9, 0.4], "probability", 0.4),
        ([0.2, 0.9, 0.4, 0.3], "probability", 0.35),
        ([0.0, 0.0, 1.0], "probability", CLIP),
        ([0.0, math.log(3.0)], "logit", 0.625),  # of 1/2 and 3/4
        ([-1e300, 0.0, 1e300], "logit", 0.5),
        ([-40.0, 7.0, 1e300], "any", 0.5),
    ],
)
def test_without_labels_raw_is_the_median(
    scores: list[float],
    kind: Kind,
    expected: float,
) -> None:
    """It is never that of log odds; the answer is near it, the same however many wait."""
    calibrator = ProtectedCrossVennAbers(len(scores), scores=kind)
    single = calibrator.predict_one(scores, number=0)
    assert (single.p0, single.p1) == (0.0, 1.0)
    assert said(calibrator, 0)[0] == pytest.approx(expected, rel=1e-15)
    assert single.probability == pytest.approx(expected, abs=0.02)
    again = calibrator.predict_many([scores] * 50, numbers=np.zeros(50, int))
    assert set(again.probability.tolist()) == {single.probability}


def test_it_learns() -> None:
    """Where the learners are wrong the probabilities are better, and experts are weighed for it."""
    rng = np.random.default_rng(3)
    scores = rng.random((400, K))
    labels = (rng.random(400) < 1.0 - np.median(scores, axis=1)).astype(int)
    calibrator = ProtectedCrossVennAbers(K)
    calibrator.prequential(scores, labels, delay=5)
    losses, weights = calibrator.expert_losses(), calibrator.expert_weights()
    assert losses["protected"] < losses["raw"] - 40.0
    assert losses["cross_venn_abers"] < losses["raw"] - 40.0
    assert tuple(weights) == calibrator.experts == (*losses,)[:-1]
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights["raw"] < 0.01


def test_a_base_rate_stands_for_scores_of_any_kind() -> None:
    """With scores="any" the raw probability is the share of label 1, one of each added."""
    batch, loop = (ProtectedCrossVennAbers(2, scores="any") for _ in range(2))
    labels = [1, 1, 0, 1]
    expected = sum(loss(p, y) for p, y in zip([1 / 2, 2 / 3, 3 / 4, 3 / 5], labels, strict=True))
    for number, label in enumerate(labels):
        loop.predict_one([7.0, -400.0], number=number)
        loop.learn_one([7.0, -400.0], label, number=number)
    batch.prequential([[7.0, -400.0]] * 4, labels)
    assert loop.expert_losses()["raw"] == pytest.approx(expected)
    assert batch == loop
    restored = ProtectedCrossVennAbers.from_bytes(loop.to_bytes())
    assert restored.predict_one([0.0, 0.0]) == loop.predict_one([0.0, 0.0])


# The cross calibrator


def said(calibrator: ProtectedCrossVennAbers, lane: int) -> list[float]:
    """Return what the methods said of the observation that holds a lane."""
    columns = saved(calibrator._mixture)  # noqa: SLF001 - what is kept with a prediction
    found: list[float] = columns["forecasts"][lane].tolist()
    return found


def merged(oracles: list[Oracle], scores: list[float], time: float) -> tuple[float, float, float]:
    """Return the ends and the merge of K oracles: geometric means, as roots of products."""
    pairs = [one.predict(score, time=time) for one, score in zip(oracles, scores, strict=True)]
    for_0 = math.prod(1.0 - p0 for p0, _ in pairs) ** (1.0 / len(pairs))
    for_1 = math.prod(p1 for _, p1 in pairs) ** (1.0 / len(pairs))
    low, high = sorted((1.0 - for_0, for_1))
    return low, high, for_1 / (for_0 + for_1)


@pytest.mark.parametrize("delay", [0, 4])
@pytest.mark.parametrize("own", [{}, {"window": 4}], ids=str)
def test_the_cross_calibrator_obeys_the_definition(delay: int, own: dict[str, Any]) -> None:
    """K oracles, whose merge is drawn to the median."""
    n = 60
    scores, labels = stream(n, 8)
    scores = np.round(scores, 1)
    calibrator = ProtectedCrossVennAbers(K, **own)
    oracles = [Oracle(**own) for _ in range(K)]
    for i in range(n):
        row = scores[i].tolist()
        found = calibrator.predict_one(row, number=i)
        low, high, p = merged(oracles, row, -math.inf)
        evidence = 1.0 / max(high - low, 1e-9) - 1.0
        expected = [raw(row), (evidence * p + 30.0 * raw(row)) / (evidence + 30.0)]
        assert said(calibrator, i % (delay + 1))[:2] == pytest.approx(expected, rel=1e-12)
        assert (found.p0, found.p1) == pytest.approx((low, high), abs=1e-15)
        if i >= delay:
            of = i - delay
            fold = calibrator.fold_of(f"id-{of}")
            calibrator.learn_one(scores[of].tolist(), labels[of], id=f"id-{of}", number=of)
            oracles[fold].learn(scores[of, fold], labels[of])


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_interval_is_that_of_cross_venn_abers(rule: dict[str, Any]) -> None:
    """The interval is that of the rule of forgetting, untouched; the folds are the same."""
    scores, labels = stream(150, 4)
    options: dict[str, Any] = {"delay": 7, "ids": [*map(str, range(150))]}
    options["times"] = None if "window" in rule or not rule else np.arange(150.0)
    protected = ProtectedCrossVennAbers(K, **rule)
    found = protected.prequential(scores, labels, **options)
    cross = CrossVennAbers(K, **rule)
    plain = cross.prequential(scores, labels, **options)
    np.testing.assert_allclose(found.p0, plain.low, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(found.p1, plain.high, rtol=1e-13)
    assert (len(protected), protected.late) == (len(cross), cross.late)


def test_geometric_means() -> None:
    """Means of columns, right to the last digits, however small; 0 where one number is."""
    rng = np.random.default_rng(1)
    rows = rng.random((7, 500)) ** rng.integers(1, 40, (7, 500))
    rows[:, 0], rows[:, 1], rows[3, 2] = 1.0, 2.0**-60, 0.0
    found = np.empty(500)
    core.geometric_means(rows, found)
    assert found[[0, 2]].tolist() == [1.0, 0.0]
    rows[3, 2], found[2] = 1.0, 0.0
    expected = np.exp(np.log(rows).mean(axis=0))
    expected[2] = 0.0
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    with pytest.raises(ValueError, match=r"columns differ|broadcast"):
        core.geometric_means(rows, np.empty(499))


def test_geometric_means_equal_their_oracle() -> None:
    """The means are those of plain Python, to the bit."""
    rng = np.random.default_rng(2)
    rows = rng.random((5, 2000)) ** rng.integers(1, 40, (5, 2000))
    one, other = np.empty((2, 2000))
    core.geometric_means(rows, one)
    geometric_means(rows, other)
    assert one.tolist() == other.tolist()


# Batches, numbers, and the state


@pytest.mark.parametrize("delay", [0, 1, 10])
@pytest.mark.parametrize("lost", [0.0, 0.3])
@pytest.mark.parametrize("rule", [*RULES, {"scores": "logit"}, {"scores": "any"}], ids=str)
def test_a_stream_in_one_call_is_a_loop(delay: int, lost: float, rule: dict[str, Any]) -> None:
    """`prequential`, and `run` where labels are lost, equal a loop with numbers and expiries."""
    rng = np.random.default_rng(delay)
    n = 50
    scores, labels = stream(n, delay)
    times = np.arange(n) * 1.5 if {"half_life", "max_age"} & {*rule} else None
    never, ids = rng.random(n) < lost, [f"id-{i}" for i in range(n)]
    loop, found, waiting = ProtectedCrossVennAbers(K, **rule), [], []
    for i in range(n + delay):
        if i < n:
            when = None if times is None else times[i]
            found.append(loop.predict_one(scores[i].tolist(), number=i, time=when))
            waiting.append(i)
        if i >= delay or i >= n:
            of = waiting.pop(0)
            when = None if times is None else times[of]
            row = scores[of].tolist()
            if never[of]:
                loop.expire_one(of)
            else:
                loop.learn_one(row, labels[of], number=of, id=ids[of], time=when)
    batch = ProtectedCrossVennAbers(K, **rule)
    if lost:
        numbers, kinds = interleaved(n, delay)
        kinds[(kinds == LEARN) & never[numbers]] = EXPIRE
        columns: dict[str, Any] = {
            "numbers": numbers,
            "ids": [ids[one] for one in numbers],
            "times": None if times is None else times[numbers],
        }
        every = batch.run(kinds, scores[numbers], labels[numbers], **columns)
        answers = [column[kinds == PREDICT] for column in every]
    else:
        answers = [*batch.prequential(scores, labels, delay=delay, ids=ids, times=times)]
    assert np.column_stack(answers).tolist() == [[*one] for one in found]
    assert batch.to_bytes() == loop.to_bytes()
    assert (batch.awaiting, batch.lanes) == (0, delay + 1)


@given(st.integers(0, 20), st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_batches_and_restores_change_nothing(delay: int, seed: int) -> None:
    """Any split into batches, with a restore between them, gives the same bytes."""
    n = 30
    scores, labels = stream(n, seed)
    rng = np.random.default_rng(seed)
    whole = ProtectedCrossVennAbers(K, window=5)
    expected = whole.prequential(scores, labels, delay=delay)
    split, found = ProtectedCrossVennAbers(K, window=5), []
    for i in range(n + delay):
        if i < n:
            found.append([*split.predict_one(scores[i].tolist(), number=i)])
        if 0 <= i - delay < n:  # without an id: folds take turns
            split.learn_one(scores[i - delay].tolist(), labels[i - delay], number=i - delay)
        if rng.random() < 0.1:
            split = ProtectedCrossVennAbers.from_bytes(split.to_bytes())
    assert found == np.column_stack(expected).tolist()
    assert split.to_bytes() == whole.to_bytes()


def test_numbers_that_are_repeated_or_unknown() -> None:
    """A repeated number gets its first probability; an unknown label touches no lane."""
    calibrator = ProtectedCrossVennAbers(K)
    row = [0.7, 0.6, 0.9]
    first = calibrator.predict_one(row, number=5)
    for number in range(10, 60):
        calibrator.predict_one(row, number=number)
        calibrator.learn_one(row, int(number % 4 == 0), number=number)
    again = calibrator.predict_one(row, number=5)
    assert again.probability == first.probability
    assert again.p1 < first.p1
    assert calibrator.predict_one(row).probability < first.probability
    lanes, losses = calibrator.lanes, calibrator.expert_losses()
    calibrator.learn_one(row, 1, number=999)
    assert (calibrator.lanes, calibrator.expert_losses()) == (lanes, losses)
    calibrator.expire_one(5)
    assert calibrator.awaiting == 0
    assert calibrator.fold_of() == 51 % K
    assert repr(calibrator) == "<ProtectedCrossVennAbers(folds=3) of 51 observations>"


def test_a_label_without_a_number_is_predicted_first() -> None:
    """Its forecasts do not know it: the losses are those of a prediction before each label."""
    scores, labels = stream(80, 9)
    predicted, learned = ProtectedCrossVennAbers(K), ProtectedCrossVennAbers(K)
    predicted.prequential(scores, labels)
    learned.learn_many(scores, labels)
    assert learned.expert_losses() == predicted.expert_losses()
    assert learned == predicted


# What is refused

HEAVY = float(1 << 27)


@pytest.mark.parametrize(
    "refused",
    [
        lambda one: one.learn_one([0.6] * K, 1, weight=HEAVY, number=1, fold=1, time=1),
        lambda one: one.learn_many(
            [[0.6] * K] * 2,
            [1, 1],
            weights=[1.0, HEAVY],
            numbers=[1, 2],
            folds=[0, 1],
            times=[1, 1],
        ),
    ],
)
def test_a_refused_label_changes_nothing(refused: Callable[[Any], None]) -> None:
    """A label that the decaying set of its fold cannot take is refused by the mixture too."""
    calibrator = ProtectedCrossVennAbers(K, half_life=9.0)
    calibrator.learn_one([0.3] * K, 1, weight=HEAVY, fold=1, time=0)
    calibrator.learn_one([0.3] * K, 1, weight=HEAVY - 1, fold=1, time=0)
    calibrator.predict_one([0.6] * K, number=1)
    before = calibrator.to_bytes()
    with pytest.raises(WeightError, match="the total weight would pass"):
        refused(calibrator)
    assert calibrator.to_bytes() == before
    calibrator.learn_one([0.6] * K, 1, number=1, fold=1, time=1)
    assert calibrator.awaiting == 0


@pytest.mark.parametrize("weight", [0.0, 1.0, -1.0, math.nan, 2.0, None, "x"])
def test_prior_weights_that_are_refused(weight: Any) -> None:  # noqa: ANN401 - anything
    """The weight of the raw probability is between 0 and 1, without the ends."""
    with pytest.raises(ParameterError, match=r"raw_weight=.* must be a number above 0 and below 1"):
        ProtectedCrossVennAbers(raw_weight=weight)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"folds": 1}, "folds"),
        ({"scores": "odds"}, "scores='odds' is unknown"),
        ({"window": 5, "max_age": 1.0}, "exclude each other"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], says: str) -> None:
    """There are two folds or more, scores of a known kind, and at most one rule."""
    with pytest.raises(ParameterError, match=says):
        ProtectedCrossVennAbers(**options)


@pytest.mark.parametrize(
    ("scores", "error", "says"),
    [
        ([0.1, 1.5, 0.2], ScoreError, r"fold 1: .*score 1\.5 is not a probability in \[0, 1\]; de"),
        ([0.1, 0.2, -0.1], ScoreError, r"fold 2: .*score -0\.1 is not a probability"),
        ([0.1, math.nan, 0.2], ScoreError, "fold 1: .*score nan"),
    ],
)
def test_scores_that_are_refused(scores: list[float], error: type[Exception], says: str) -> None:
    """All scores of an observation are probabilities; nothing is changed by others."""
    calibrator = ProtectedCrossVennAbers(K)
    before = calibrator.to_bytes()
    with pytest.raises(error, match=says):
        calibrator.predict_one(scores, number=0)
    with pytest.raises(error, match=says):
        calibrator.learn_one(scores, 1, number=0)
    with pytest.raises(error, match=says.replace(".*", "row 1: ")):
        calibrator.predict_many([[0.5] * K, scores], numbers=[0, 1])
    with pytest.raises(ParameterError, match="scores has 2 values"):
        calibrator.predict_one([0.1, 0.2])
    with pytest.raises(LabelError):
        calibrator.learn_one([0.5] * K, 2)
    with pytest.raises(ParameterError, match="removes nothing"):
        calibrator.remove_one([0.5] * K, 1, fold=0)
    with pytest.raises(ParameterError, match="number="):
        calibrator.learn_one([0.5] * K, 1, number=-1)
    assert calibrator.to_bytes() == before


# Saved state


def damaged(calibrator: ProtectedCrossVennAbers, piece: int, at: int, value: bytes) -> bytes:
    """Return saved bytes with some bytes of one piece changed, under a right seal."""
    pieces = [bytes(one) for one in unpack(memoryview(calibrator.state_bytes()))]
    changed = bytearray(pieces[piece])
    changed[at : at + len(value)] = value
    pieces[piece] = bytes(changed)
    return seal(b"abersPC\x01", pack(pieces))


@pytest.mark.parametrize(
    ("at", "values"),
    [
        (9, (-1, 1, 1 << 49)),  # predictions: there are 20
        (17, (-1, 21)),  # labels of awaited observations
        (25, (-1, 1 << 49)),  # lanes
        (33, (-1, 1, 1 << 49)),  # labels
        (41, (-1, 21)),  # labels 1
    ],
)
def test_saved_counts_that_no_mixture_has(at: int, values: tuple[int, ...]) -> None:
    """Saved counts that contradict the calibration sets, or each other, are a StateError."""
    calibrator = ProtectedCrossVennAbers(K)
    for number in range(20):
        calibrator.predict_one([0.3] * K, number=number)
        calibrator.learn_one([0.3] * K, number % 2, number=number)
    for value in values:
        blob = damaged(calibrator, 0, at, np.int64(value).tobytes())
        with pytest.raises(StateError):
            ProtectedCrossVennAbers.from_bytes(blob)
    for bad in (0.0, 1.0, -0.25, math.nan):
        blob = damaged(calibrator, 0, 1, np.float64(bad).tobytes())
        with pytest.raises(StateError):
            ProtectedCrossVennAbers.from_bytes(blob)
    with pytest.raises(StateError):
        ProtectedCrossVennAbers.from_bytes(damaged(calibrator, 0, 0, b"\x03"))


def test_calibrators_that_do_not_belong_together() -> None:
    """Sets that are missing, or of another rule, are a StateError."""
    calibrator, other = ProtectedCrossVennAbers(2), ProtectedCrossVennAbers(2, window=9)
    for one in (calibrator, other):
        one.learn_one([0.3, 0.4], 1, number=0)
    pieces, of_other = (
        [bytes(part) for part in unpack(memoryview(one.state_bytes()))]
        for one in (calibrator, other)
    )
    for bad in (pieces[:-1], pieces[:-2], [*pieces[:-1], of_other[-1]], [*pieces, b""]):
        with pytest.raises(StateError):
            ProtectedCrossVennAbers.from_bytes(seal(b"abersPC\x01", pack(bad)))

"""Protected class probabilities: the bound against any adversary, oracles, and the saved state."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.cases import SEEDS
from tests.oracles import class_aggregation as oracle

from abers import LabelError, OneVsRest, ParameterError, ProtectedMultiClass, ScoreError, StateError
from abers.backends import core
from abers.calibration import sets
from abers.serialization import pack, seal, unpack
from abers.steps import EXPIRE, LEARN, PREDICT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers._core import ClassAggregation
    from abers.arrays import Bytes, Floats, Integers

    Mixture = ClassAggregation | oracle.ClassAggregation

pytestmark = pytest.mark.native

CLIP = 1e-6
NAMES = ("a", "b", "c")
PRIOR = [1 / 4, 3 / 8 / 4, 3 / 8 / 4, 3 / 8 / 4, 3 / 8 / 4, 3 / 8]


def raw_vector(scores: Floats) -> Floats:
    """Return the raw vector as the page defines it: clipped, and divided by the sum."""
    clipped = [min(max(one, CLIP), 1.0 - CLIP) for one in scores.tolist()]
    return np.array([one / math.fsum(clipped) for one in clipped])


def simplex(rng: np.random.Generator, *shape: int) -> Floats:
    """Return random vectors of probabilities along the last axis."""
    return rng.dirichlet(np.ones(shape[-1]) * 0.7, shape[:-1]) * 0.999 + 0.001 / shape[-1]


def step(mixture: Mixture, kind: int, number: int, label: int, vectors: Floats) -> Floats:
    """Run one step; return the vector of a prediction."""
    p: Floats = np.full((1, vectors.shape[1]), np.nan)
    kinds, labels = np.array([kind], np.uint8), np.array([label])
    mixture.run(kinds, np.array([number]), labels, np.ascontiguousarray(vectors[None]), p)
    return p.reshape(-1)


def saved(mixture: Mixture) -> dict[str, NDArray[Any]]:
    """Return the state of a mixture as columns."""
    lanes, experts = mixture.lane_rows, mixture.experts
    columns: dict[str, Any] = {
        "own": np.empty(mixture.parameter_count),
        "exponents": np.empty(experts + 1, np.int64),
        "numbers": np.empty(lanes, np.int64),
        "moments": np.empty(lanes, np.int64),
        "weights": np.empty(lanes * experts),
        "forecasts": np.empty(lanes * experts * mixture.classes),
    }
    mixture.save(*columns.values())
    return columns


# The mixture


class Oracle:
    """The mixture of raw, one expert and fixed share over both, with labels at once, in fractions.

    Fixed share mixes five rates; at rate r a share r of all weight goes back to the first weights.
    """

    def __init__(self) -> None:
        self.held = [Fraction(1, 4), Fraction(3, 8), Fraction(3, 8)]
        self.shared = [[Fraction(1, 2)] * 2 for _ in range(5)]

    def forecasts(self, two: Floats, *, first: bool) -> list[list[Fraction]]:
        """Return the vectors of the three experts."""
        given_here = [[Fraction(p) for p in vector] for vector in two.tolist()]
        if first:  # all say raw
            return [given_here[0]] * 3
        weights = [sum(column) for column in zip(*self.shared, strict=True)]
        return [*given_here, mean(weights, given_here)]

    def learn(self, vectors: list[list[Fraction]], label: int) -> None:
        """Weigh by the probabilities of the label."""
        p = [vector[label] for vector in vectors]
        self.held = [w * q for w, q in zip(self.held, p, strict=True)]
        for at, rate in enumerate([0, 1e-4, 1e-3, 1e-2, 1e-1]):
            r = Fraction(rate)
            grown = [w * q for w, q in zip(self.shared[at], p, strict=False)]
            self.shared[at] = [(1 - r) * w + r * sum(grown) / 2 for w in grown]


def mean(weights: list[Fraction], vectors: list[list[Fraction]]) -> list[Fraction]:
    """Return the mean of vectors by weight."""
    return [
        sum((w * q for w, q in zip(weights, column, strict=True)), Fraction(0)) / sum(weights)
        for column in zip(*vectors, strict=True)
    ]


@pytest.mark.parametrize("classes", [2, 4])
def test_a_lane_is_the_exact_mixture(classes: int) -> None:
    """Labels at once: the mixture is that of Bayes over vectors, in fractions."""
    rng = np.random.default_rng(classes)
    n = 25
    vectors = rng.integers(1, 9, (n, 2, classes)).astype(float)
    vectors /= vectors.sum(axis=2, keepdims=True)
    labels = rng.integers(0, classes, n).tolist()
    mixture, oracle = core.ClassAggregation(classes, 1, 0.25), Oracle()
    for row, (two, label) in enumerate(zip(vectors, labels, strict=True)):
        every = oracle.forecasts(two, first=row == 0)
        expected = [float(one) for one in mean(oracle.held, every)]
        assert step(mixture, PREDICT, row, 0, two) == pytest.approx(expected, rel=1e-12)
        step(mixture, LEARN, row, label, two)
        oracle.learn(every, label)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bound_holds_for_any_order(seed: int) -> None:
    """Random delays, orders and lost labels: at most C ln(1/weight) over each expert.

    Losses are added up here, from what each expert said when the observation was predicted.
    """
    rng, dice = np.random.default_rng(seed), random.Random(seed)  # noqa: S311 - no secret
    classes, shrunk = dice.randint(2, 5), dice.randint(1, 5)
    mixture = core.ClassAggregation(classes, shrunk, 0.25)
    prior = [0.25, *[0.375 / shrunk] * shrunk, 0.375]
    theirs, ours = np.zeros(len(prior)), 0.0
    waiting: dict[int, tuple[Floats, Floats]] = {}
    most = 0
    for number in range(200):
        vectors = simplex(rng, shrunk + 1, classes)
        p = step(mixture, PREDICT, number, 0, vectors)
        assert math.fsum(p) == pytest.approx(1.0)
        columns = saved(mixture)
        lane = columns["numbers"].tolist().index(number)
        said = columns["forecasts"].reshape(mixture.lane_rows, -1, classes)[lane]
        waiting[number] = p, said
        most = max(most, len(waiting))
        while waiting and dice.random() < 0.52:
            of = dice.choice([*waiting])
            served, every = waiting.pop(of)
            if dice.random() < 0.1:
                step(mixture, EXPIRE, of, 0, vectors)
                continue
            # Whoever is best of late is wrong next, as often as not.
            label = int(np.argmin(served)) if dice.random() < 0.3 else int(rng.choice(classes))
            step(mixture, LEARN, of, label, vectors)
            ours -= math.log(served[label])
            theirs -= np.log(every[:, label])
    assert mixture.lane_count == most
    for loss, weight in zip(theirs.tolist(), prior, strict=True):
        assert ours <= loss + most * -math.log(weight) + 1e-9
    losses = np.empty(len(prior) + 1)
    mixture.losses(losses)
    assert losses == pytest.approx([*theirs, ours])


@pytest.mark.parametrize("delay", [1, 10, 100])
def test_an_adversary_gains_no_more_than_the_price(delay: int) -> None:
    """All labels of a delay contradict the mixture; lanes lose at most C ln(1/rho)."""
    mixture = core.ClassAggregation(3, 1, 0.25)
    vectors = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05]])
    excess = 0.0
    for first in range(0, 60 * delay, delay):
        numbers = range(first, first + delay)
        served = np.array([step(mixture, PREDICT, one, 0, vectors) for one in numbers])
        label = int(np.argmin(served.mean(axis=0)[:2]))
        excess += float(np.sum(np.log(vectors[0, label]) - np.log(served[:, label])))
        for one in numbers:
            step(mixture, LEARN, one, label, vectors)
    assert mixture.lane_count == delay
    assert excess <= delay * math.log(4.0) + 1e-6


@pytest.mark.parametrize("delay", [10, 100])
def test_one_weight_vector_has_no_bound(delay: int) -> None:
    """The adversary is one: it takes nats without bound from weights that all labels share."""
    weights, excess = np.array([0.25, 0.75]), 0.0
    vectors = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05]])
    for _ in range(60):
        served = weights @ vectors
        label = int(np.argmin(served[:2]))
        excess += delay * math.log(vectors[0, label] / served[label])
        weights = weights * vectors[:, label] ** delay
        weights = np.maximum(weights / weights.sum(), 1e-300)
    assert excess > 10 * delay * math.log(4.0)


def test_identical_experts_give_raw() -> None:
    """A mixture of equal vectors is that vector, to the bit, whatever was learned."""
    rng = np.random.default_rng(5)
    mixture = core.ClassAggregation(4, 3, 0.25)
    for number in range(200):
        vector = simplex(rng, 4)
        vectors = np.repeat(vector[None], 4, axis=0)
        assert step(mixture, PREDICT, number, 0, vectors).tolist() == vector.tolist()
        step(mixture, LEARN, number, int(rng.choice(4)), vectors)


# The calibrator


def stream(n: int, seed: int, classes: int = 3) -> tuple[Floats, Integers]:
    """Return scores, and the labels of a world in which the scorer is wrong half-way."""
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(classes), n)
    truth = np.where(np.arange(n)[:, None] < n // 2, scores, np.roll(scores, 1, axis=1))
    labels = [int(rng.choice(classes, p=row)) for row in truth]
    return scores, np.array(labels)


@pytest.mark.parametrize("seed", range(4))
def test_the_price_of_the_calibrator(seed: int) -> None:
    """Over the raw vector, whose losses are added up here, it is at most C ln 4."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    n = 120
    scores, labels = stream(n, seed)
    scores[::7] = [1.0, 0.0, 0.0]  # a scorer that is certain, and wrong
    calibrator = ProtectedMultiClass(NAMES)
    raw = ours = 0.0
    waiting: dict[int, float] = {}
    most = 0
    for number in range(n):
        row = dict(zip(NAMES, scores[number].tolist(), strict=True))
        p = calibrator.predict_one(row, number=number).p
        waiting[number] = p[NAMES[labels[number]]]
        most = max(most, len(waiting))
        while waiting and dice.random() < 0.53:
            of = dice.choice([*waiting])
            served = waiting.pop(of)
            if dice.random() < 0.1:
                calibrator.expire_one(of)
                continue
            its = dict(zip(NAMES, scores[of].tolist(), strict=True))
            calibrator.learn_one(its, NAMES[labels[of]], number=of)
            ours -= math.log(served)
            raw -= math.log(raw_vector(scores[of])[labels[of]])
    assert calibrator.lanes == most
    assert calibrator.price == pytest.approx(most * math.log(4.0))
    assert ours <= raw + calibrator.price
    losses = calibrator.expert_losses()
    assert (losses["raw"], losses["protected"]) == pytest.approx((raw, ours))
    for (name, theirs), weight in zip(losses.items(), PRIOR, strict=False):
        assert ours <= theirs + most * -math.log(weight) + 1e-9, name


def test_it_learns() -> None:
    """Where the scores are wrong the probabilities are better, and experts are weighed for it."""
    rng = np.random.default_rng(3)
    n = 200
    scores = rng.dirichlet(np.ones(3), n)
    labels = [NAMES[int(rng.choice(3, p=np.roll(row, 1)))] for row in scores]
    calibrator = ProtectedMultiClass(NAMES)
    calibrator.prequential(scores, labels, delay=5)
    losses, weights = calibrator.expert_losses(), calibrator.expert_weights()
    assert losses["protected"] < losses["raw"] - 20.0
    assert losses["one_vs_rest"] < losses["raw"] - 20.0
    assert losses["one_vs_one"] < losses["raw"] - 20.0
    assert tuple(weights) == calibrator.experts == (*losses,)[:-1]
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights["raw"] < 0.01


def test_without_labels_the_answer_is_the_raw_vector() -> None:
    """Before the first label the probabilities are the scores, however many wait."""
    rng = np.random.default_rng(6)
    scores = rng.dirichlet(np.ones(3), 50)
    scores[0] = [1.0, 0.0, 0.0]
    found = ProtectedMultiClass(NAMES).predict_many(scores, numbers=np.arange(50))
    expected = np.array([raw_vector(row) for row in scores])
    np.testing.assert_allclose(found.p, expected, rtol=1e-15)
    assert (found.low == 0.0).all()
    assert (found.high == 1.0).all()


def test_experts_are_shrunk_to_the_raw_vector() -> None:
    """One-vs-rest: each merged probability counts 1/width - 1 labels, the raw one 30."""
    scores, labels = stream(120, 7)
    names = [NAMES[one] for one in labels]
    plain, protected = OneVsRest(NAMES), ProtectedMultiClass(NAMES)
    plain.learn_many(scores, names)
    protected.learn_many(scores, names, numbers=np.arange(120))
    row = np.array([0.2, 0.7, 0.1])
    low, high = (one[0] for one in plain.predict_many(row[None])[1:])
    protected.predict_many(row[None], numbers=[1_000])
    columns = saved(protected._mixture)  # noqa: SLF001 - what the experts said
    said = columns["forecasts"].reshape(protected.lanes, -1, 3)[0]
    evidence = 1.0 / (high - low) - 1.0
    shrunk = (evidence * high / (1.0 - low + high) + 30.0 * row) / (evidence + 30.0)
    assert said[0] == pytest.approx(row)
    assert said[1] == pytest.approx(shrunk / shrunk.sum())
    assert said.sum(axis=1) == pytest.approx(np.ones(6))


@pytest.mark.parametrize("rule", [{}, {"window": 20}, {"half_life": 9.0}, {"max_age": 30.0}])
def test_the_intervals_are_those_of_one_vs_rest(rule: dict[str, Any]) -> None:
    """The intervals are those of the rule of forgetting, untouched."""
    scores, labels = stream(120, 4)
    names = [NAMES[one] for one in labels]
    times = None if "window" in rule or not rule else np.arange(120.0)
    protected = ProtectedMultiClass(NAMES, **rule)
    found = protected.prequential(scores, names, delay=7, times=times)
    plain = OneVsRest(NAMES, **rule).prequential(scores, names, delay=7, times=times)
    assert found.low.tolist() == plain.low.tolist()
    assert found.high.tolist() == plain.high.tolist()


def test_numbers_that_are_repeated_or_unknown() -> None:
    """A repeated number gets its first vector; an unknown label touches no lane."""
    calibrator = ProtectedMultiClass(NAMES)
    row = {"a": 0.7, "b": 0.2, "c": 0.1}
    first = calibrator.predict_one(row, number=5)
    for number in range(10, 60):
        calibrator.predict_one(row, number=number)
        calibrator.learn_one(row, "b", number=number)
    assert calibrator.predict_one(row, number=5).p == first.p
    assert calibrator.predict_one(row).p["a"] < first.p["a"]
    lanes, losses = calibrator.lanes, calibrator.expert_losses()
    calibrator.learn_one(row, "a", number=999)
    assert (calibrator.lanes, calibrator.expert_losses()) == (lanes, losses)
    calibrator.expire_one(5)
    assert calibrator.awaiting == 0
    assert repr(calibrator) == "<ProtectedMultiClass(3 classes) of 51 observations>"


@given(st.integers(0, 20), st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_batches_and_restores_change_nothing(delay: int, seed: int) -> None:
    """Any split into batches, with a restore between them, gives the same bytes."""
    n = 30
    scores, labels = stream(n, seed)
    rng = np.random.default_rng(seed)
    whole = ProtectedMultiClass(NAMES, window=15)
    expected = whole.prequential(scores, [NAMES[one] for one in labels], delay=delay)
    split, found = ProtectedMultiClass(NAMES, window=15), []
    for i in range(n + delay):
        if i < n:
            row = dict(zip(NAMES, scores[i].tolist(), strict=True))
            found.append([*split.predict_one(row, number=i).p.values()])
        if 0 <= i - delay < n:
            row = dict(zip(NAMES, scores[i - delay].tolist(), strict=True))
            split.learn_one(row, NAMES[labels[i - delay]], number=i - delay)
        if rng.random() < 0.1:
            split = ProtectedMultiClass.from_bytes(split.to_bytes())
    assert found == expected.p.tolist()
    assert split.to_bytes() == whole.to_bytes()


# Classes that come later


@pytest.mark.parametrize("rule", [{}, {"window": 20}, {"half_life": 9.0}, {"max_age": 30.0}])
def test_a_class_that_comes_later(rule: dict[str, Any]) -> None:
    """The sets are those of a calibrator that knew the class, whose scores were 0, all along."""
    n, rng = 60, np.random.default_rng(2)
    scores = rng.dirichlet(np.ones(2), n)
    scores[::9] = [0.0, 1.0]  # a label of a class without a score too
    times = np.arange(n) // 2 * 1.0 if {"half_life", "max_age"} & {*rule} else None
    labels = [NAMES[one] for one in rng.integers(0, 2, n)]
    grown, known = ProtectedMultiClass(NAMES[:2], **rule), ProtectedMultiClass(NAMES, **rule)
    grown.prequential(scores, labels, delay=3, times=times)
    known.prequential(np.column_stack((scores, np.zeros(n))), labels, delay=3, times=times)
    grown.predict_one({"a": 0.5, "b": 0.5}, number=n)  # awaits its label
    known.predict_one({"a": 0.5, "b": 0.5}, number=n)
    price, losses = grown.price, grown.expert_losses()
    grown.add_class("c")
    assert (grown.classes, grown.awaiting, grown.price) == (NAMES, 0, price)
    assert grown.expert_losses() == losses
    # A new pair has what the window of all classes holds of one, not its own last 20 labels.
    alike = slice(None, -2) if "window" in rule else slice(None)
    for mine, theirs in zip(held(grown)[alike], held(known)[alike], strict=True):
        assert sets.dump(mine) == sets.dump(theirs)
    assert ProtectedMultiClass.from_bytes(grown.to_bytes()) == grown
    row = {"a": 0.2, "b": 0.2, "c": 0.6}
    found = grown.predict_one(row, number=n)  # no more its first answer
    assert math.fsum(found.p.values()) == pytest.approx(1.0)
    grown.learn_one(row, "c", number=n, time=None if times is None else 99.0)
    assert grown.expert_losses()["raw"] == pytest.approx(losses["raw"] - math.log(0.6))


def held(calibrator: ProtectedMultiClass) -> list[Any]:
    """Return all calibration sets."""
    parts = [*calibrator._rests, calibrator._pairs]  # noqa: SLF001 - what is kept
    return [one for part in parts for one in part]


def test_a_class_that_cannot_be_added() -> None:
    """A known class, one too many and what is no label are refused, and change nothing."""
    calibrator = ProtectedMultiClass(NAMES, max_classes=3)
    before = calibrator.to_bytes()
    for label, error in (("a", ParameterError), ("d", ParameterError), (None, LabelError)):
        with pytest.raises(error):
            calibrator.add_class(label)  # type: ignore[arg-type]
    assert calibrator.to_bytes() == before


# What is refused


@pytest.mark.parametrize("weight", [0.0, 1.0, -1.0, math.nan, 2.0])
def test_prior_weights_that_are_refused(weight: float) -> None:
    """The weight of the raw vector is between 0 and 1, without the ends."""
    with pytest.raises(ParameterError, match=r"raw_weight=.* must be a number between 0 and 1"):
        ProtectedMultiClass(NAMES, raw_weight=weight)


@pytest.mark.parametrize("classes", [None, "abc", ["a"], ["a", "a"], range(101)])
def test_classes_that_are_refused(classes: Any) -> None:  # noqa: ANN401 - anything
    """Classes are given: 2 to `max_classes` different labels."""
    with pytest.raises(ParameterError, match="classes="):
        ProtectedMultiClass(classes)


@pytest.mark.parametrize(
    "scores",
    [
        {"a": 0.5, "b": 0.2, "c": 0.1},
        {"a": 1.5, "b": 0.2},
        {"a": -0.1, "b": 1.1},
        {"a": 1e308, "b": 1e308},
        {"a": math.nan},
        {},
        0.5,
    ],
)
def test_scores_that_are_no_probabilities(scores: Any) -> None:  # noqa: ANN401 - anything
    """Scores of one observation, and rows of them, sum to 1; nothing is changed by others."""
    calibrator = ProtectedMultiClass(NAMES)
    before = calibrator.to_bytes()
    with pytest.raises(ScoreError):
        calibrator.predict_one(scores, number=0)
    if isinstance(scores, dict):
        row = [scores.get(name, 0.0) for name in NAMES]
        with pytest.raises(ScoreError, match="row 1"):
            calibrator.predict_many([[0.2, 0.3, 0.5], row], numbers=[0, 1])
    assert calibrator.to_bytes() == before


def test_a_class_that_is_not_known() -> None:
    """A score or a label of another class is a LabelError, and nothing is learned."""
    calibrator = ProtectedMultiClass(NAMES)
    with pytest.raises(LabelError, match="class 'd' is not among"):
        calibrator.predict_one({"a": 0.5, "d": 0.5}, number=0)
    with pytest.raises(LabelError, match="class 'd' is not among"):
        calibrator.learn_one({"a": 1.0}, "d", number=0)
    assert len(calibrator) == calibrator.awaiting == 0


# The native core against plain Python


def steps(n: int, seed: int) -> tuple[Bytes, Integers]:
    """Return kinds and numbers of all sorts of steps."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    found: list[tuple[int, int]] = []
    waiting: list[int] = []
    new = 0
    for _ in range(n):
        u = rng.random()
        if u < 0.5:
            found.append((PREDICT, new))
            waiting.append(new)
            new += 1
        elif u < 0.85 and waiting:
            kind = LEARN if u < 0.8 else EXPIRE
            found.append((kind, waiting.pop(rng.randrange(len(waiting)))))
        elif u < 0.9:
            found.append((rng.choice([PREDICT, LEARN]), -1))
        elif u < 0.95:
            found.append((rng.choice([LEARN, EXPIRE]), rng.randrange(new + 5)))
        elif waiting:
            found.append((PREDICT, rng.choice(waiting)))
    kinds, numbers = zip(*found, strict=True)
    return np.array(kinds, np.uint8), np.array(numbers, np.int64)


@pytest.mark.parametrize("seed", range(6))
def test_a_mixture_equals_its_oracle(seed: int) -> None:
    """Vectors and state are those of plain Python, to the bit."""
    kinds, numbers = steps(900, seed)
    rng = np.random.default_rng(seed)
    n, classes, shrunk = len(kinds), 2 + seed, 1 + seed % 4
    labels, vectors = rng.integers(0, classes, n), simplex(rng, n, shrunk + 1, classes)
    native, plain = (one.ClassAggregation(classes, shrunk) for one in (core, oracle))
    for first in range(0, n, 300):
        rows = slice(first, first + 300)
        size = len(kinds[rows])
        results = []
        for one in (native, plain):
            moments, known = np.empty(size), np.empty(size, np.uint8)
            p = np.full((size, classes), np.nan)
            one.moments(kinds[rows], numbers[rows], moments, known)
            one.run(kinds[rows], numbers[rows], labels[rows], vectors[rows], p)
            losses, weights = np.empty(shrunk + 3), np.empty(shrunk + 2)
            one.losses(losses)
            one.weights(weights)
            counts = np.array([one.moment, one.labels, one.taught, one.awaiting_count])
            results.append([moments, known, p, losses, weights, counts, *saved(one).values()])
        for left, right in zip(*results, strict=True):
            np.testing.assert_array_equal(left, right)


# Saved state


def damaged(calibrator: ProtectedMultiClass, piece: int, at: int, value: float) -> bytes:
    """Return saved bytes with one number of one piece changed, under a right seal."""
    pieces = [bytes(one) for one in unpack(memoryview(calibrator.state_bytes()))]
    kind = np.float64 if isinstance(value, float) else np.int64
    changed = bytearray(pieces[piece])
    changed[8 * at : 8 * at + 8] = kind(value).tobytes()
    pieces[piece] = bytes(changed)
    return seal(b"abersPM\x01", pack(pieces))


@pytest.mark.parametrize(
    ("piece", "at", "values"),
    [
        (1, 0, (0.0, 1.0, -0.25, math.nan)),  # the weight of raw
        (1, 1, (-1, 1, 1 << 49)),  # predictions, of which there are 20
        (1, 2, (-1, 21)),  # labels of awaited observations
        (1, 3, (-1, 1 << 49)),  # labels
        (1, 4, (-1, 1, 1 << 49)),  # lanes
        (2, 0, (0.0, -1.0, 1.5, math.nan, math.inf)),  # weights of fixed share
        (3, 0, (1, -(1 << 62))),  # exponents of losses
        (4, 0, (-2, 1 << 62)),  # numbers: of no observation, of another lane
        (5, 0, (-1, 20)),  # moments
        (6, 0, (0.0, 2.0, math.nan)),  # weights of a lane
        (7, 0, (0.0, 1.0, -0.5, math.nan)),  # vectors
    ],
)
def test_saved_numbers_that_no_mixture_has(
    piece: int, at: int, values: tuple[float | int, ...]
) -> None:
    """Saved numbers that cannot be computed with are a StateError."""
    calibrator = ProtectedMultiClass(NAMES)
    row = {"a": 0.3, "b": 0.3, "c": 0.4}
    calibrator.predict_one(row, number=0)
    calibrator.predict_one(row, number=1 << 62)
    for number in range(1, 19):
        calibrator.predict_one(row, number=number)
        calibrator.learn_one(row, NAMES[number % 3], number=number)
    for value in values:
        with pytest.raises(StateError):
            ProtectedMultiClass.from_bytes(damaged(calibrator, piece, at, value))


def test_calibrators_that_do_not_belong_together() -> None:
    """Sets that are missing, too many, of other rules or of other sizes are a StateError."""
    calibrator = ProtectedMultiClass(NAMES)
    calibrator.learn_one({"a": 0.3, "b": 0.3, "c": 0.4}, "a", number=0)
    pieces = [bytes(one) for one in unpack(memoryview(calibrator.state_bytes()))]
    empty = [bytes(one) for one in unpack(memoryview(ProtectedMultiClass(NAMES).state_bytes()))]
    for bad in (
        pieces[:-1],
        [*pieces, pieces[-1]],
        [*pieces[:8], pieces[11], *pieces[9:]],
        [*pieces[:8], empty[8], *pieces[9:]],
        [*pieces, *pieces[8:11]],
        [b'["a","b"]', *pieces[1:]],
    ):
        with pytest.raises(StateError):
            ProtectedMultiClass.from_bytes(seal(b"abersPM\x01", pack(bad)))

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
from tests.engine.calibration.models import CLASSES, PRIORS, made, run, saved
from tests.engine.calibration.models import given as drawn

from abers import LabelError, OneVsRest, ParameterError, ProtectedMultiClass, ScoreError, StateError
from abers.calibration import sets
from abers.mathematics import LEARN, PREDICT
from abers.serialization import pack, seal, unpack

if TYPE_CHECKING:
    from abers.arrays import Floats, Integers

pytestmark = pytest.mark.native

CLIP = 1e-6
NAMES = ("a", "b", "c")
PRIOR = PRIORS["classes"]


def raw_vector(scores: Floats) -> Floats:
    """Return the raw vector as the page defines it: clipped, and divided by the sum."""
    clipped = [min(max(one, CLIP), 1.0 - CLIP) for one in scores.tolist()]
    return np.array([one / math.fsum(clipped) for one in clipped])


# The mixture


def mean(weights: list[Fraction], vectors: list[list[Fraction]]) -> list[Fraction]:
    """Return the mean of vectors by weight."""
    return [
        sum((w * q for w, q in zip(weights, column, strict=True)), Fraction(0)) / sum(weights)
        for column in zip(*vectors, strict=True)
    ]


def vectors_of(kept: list[float]) -> list[list[float]]:
    """Return the vectors of the methods among what an observation keeps."""
    return [kept[at : at + CLASSES] for at in range(0, len(PRIOR) * CLASSES, CLASSES)]


def test_a_lane_is_the_exact_mixture() -> None:
    """Labels at once: the mixture is that of Bayes over vectors, in fractions."""
    rng = np.random.default_rng(1)
    model = made("classes")
    first = [Fraction(1, 4), *[Fraction(3, 40)] * 5, *[Fraction(1, 8)] * 3]
    held = [*first]
    for number in range(40):
        scores, label = drawn("classes", rng), int(rng.integers(CLASSES))
        (row,) = run(model, PREDICT, [number], scores=scores).tolist()
        (kept,) = saved(model.mixture)["forecasts"].tolist()
        every = [[Fraction(one) for one in vector] for vector in vectors_of(kept)]
        expected = [float(one) for one in mean(held, every)]
        assert row[:CLASSES] == pytest.approx(expected, rel=1e-12)
        assert math.fsum(row[:CLASSES]) == pytest.approx(1.0)
        held = [w * vector[label] for w, vector in zip(held, every, strict=True)]
        run(model, LEARN, [number], label, scores)


@pytest.mark.parametrize("delay", [1, 10, 100])
def test_an_adversary_gains_no_more_than_the_price(delay: int) -> None:
    """All labels of a delay contradict the mixture; lanes lose at most C ln(1/rho)."""
    model, scores = made("classes"), [0.85, 0.05, 0.05, 0.05]
    excess = 0.0
    for first in range(0, 60 * delay, delay):
        numbers = range(first, first + delay)
        served = np.array([run(model, PREDICT, [one], scores=scores)[0, :4] for one in numbers])
        label = int(np.argmin(served.mean(axis=0)))
        excess += float(np.sum(math.log(scores[label]) - np.log(served[:, label])))
        run(model, LEARN, numbers, label, scores)
    assert model.mixture.lane_count == delay
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
    assert losses["stack_all"] < losses["raw"] - 20.0
    assert tuple(weights) == calibrator.experts == (*losses,)[:-1]
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights["raw"] < 0.01


def test_without_labels_the_answer_is_the_raw_vector() -> None:
    """Before the first label the probabilities are the scores, however many wait."""
    scores = np.random.default_rng(6).dirichlet(np.full(3, 5.0), 50)
    found = ProtectedMultiClass(NAMES).predict_many(scores, numbers=np.arange(50))
    np.testing.assert_allclose(found.p, scores, rtol=1e-12)
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
    said = columns["forecasts"][0, :27].reshape(9, 3)
    evidence = 1.0 / (high - low) - 1.0
    shrunk = (evidence * high / (1.0 - low + high) + 30.0 * row) / (evidence + 30.0)
    assert said[0] == pytest.approx(row)
    assert said[1] == pytest.approx(shrunk / shrunk.sum())
    assert said.sum(axis=1) == pytest.approx(np.ones(9))


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
    for mine, theirs in zip(grown._held, known._held, strict=True):  # noqa: SLF001 - what is kept
        assert sets.dump(mine) == sets.dump(theirs)
    assert ProtectedMultiClass.from_bytes(grown.to_bytes()) == grown
    row = {"a": 0.2, "b": 0.2, "c": 0.6}
    found = grown.predict_one(row, number=n)  # no more its first answer
    assert math.fsum(found.p.values()) == pytest.approx(1.0)
    grown.learn_one(row, "c", number=n, time=None if times is None else 99.0)
    assert grown.expert_losses()["raw"] == pytest.approx(losses["raw"] - math.log(0.6))


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
    with pytest.raises(ParameterError, match=r"raw_weight=.* must be a number above 0 and below 1"):
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


# Saved state


def pieces_of(calibrator: ProtectedMultiClass) -> list[bytes]:
    """Return the pieces of the state of the core."""
    _, state = unpack(memoryview(calibrator.state_bytes()))
    return [bytes(one) for one in unpack(memoryview(state))]


def blob(pieces: list[bytes], text: bytes = b'[100, "a", "b", "c"]') -> bytes:
    """Return saved bytes of these, under a right seal."""
    return seal(b"abersPM\x01", pack([text, pack(pieces)]))


@pytest.mark.parametrize(
    ("piece", "at", "values"),
    [
        (0, 1, (0.0, 1.0, -0.25, math.nan)),  # the weight of raw
        (0, 9, (-1, 1, 1 << 49)),  # predictions: there are 20
        (0, 17, (-1, 21)),  # labels of awaited observations
        (0, 25, (-1, 1, 1 << 49)),  # lanes
        (0, 33, (-1, 1 << 49)),  # labels
        (1, 0, (0.0, -1.0, 1.5, 5e-324, math.nan, math.inf)),  # weights of fixed share
        (1, 8 * 70, (math.nan, math.inf, 1e200)),  # lines and curvatures
        (1, -8 * 11, (33.0, -1e99, math.nan)),  # averages
        (1, -8, (0.0, 1.5, 5e-324, math.nan)),  # the product behind the loss of the mixture
        (2, 0, (1, -(1 << 62))),  # exponents of losses
        (3, 0, (-2, 1 << 62)),  # numbers: of no observation, of another lane
        (4, 0, (-1, 20)),  # moments
        (5, 0, (0.0, 2.0, math.nan)),  # weights of a lane
        (6, 0, (0.0, 1.0, -0.5, math.nan)),  # vectors
        (6, 8 * 27, (33.0, -1e99, math.nan)),  # features
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
    pieces = pieces_of(calibrator)
    assert ProtectedMultiClass.from_bytes(blob(pieces)) == calibrator
    for value in values:
        changed = bytearray(pieces[piece])
        kind = np.float64 if isinstance(value, float) else np.int64
        first = at % len(changed)
        changed[first : first + 8] = kind(value).tobytes()
        with pytest.raises(StateError):
            ProtectedMultiClass.from_bytes(
                blob([*pieces[:piece], bytes(changed), *pieces[piece + 1 :]])
            )


def test_calibrators_that_do_not_belong_together() -> None:
    """Sets that are missing, too many, of other rules or of other sizes are a StateError."""
    calibrator, other = ProtectedMultiClass(NAMES), ProtectedMultiClass(NAMES, window=9)
    for one in (calibrator, other):
        one.learn_one({"a": 0.3, "b": 0.3, "c": 0.4}, "a", number=0)
    pieces, empty = pieces_of(calibrator), pieces_of(ProtectedMultiClass(NAMES))
    for bad in (
        pieces[:-1],
        [*pieces, pieces[-1]],
        [*pieces[:-1], pieces_of(other)[-1]],
        [*pieces[:-1], empty[-1]],
    ):
        with pytest.raises(StateError):
            ProtectedMultiClass.from_bytes(blob(bad))
    with pytest.raises(StateError):
        ProtectedMultiClass.from_bytes(blob(pieces, b'[100, "a", "b"]'))

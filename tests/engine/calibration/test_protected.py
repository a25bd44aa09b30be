"""Protected Venn-Abers prediction: its bound against any adversary, its oracle, its state."""

from __future__ import annotations

import copy
import csv
import gzip
import math
import os
import pickle
import random
import struct
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.calibration.models import given as drawn
from tests.engine.calibration.models import made, run, saved
from tests.engine.cases import SEEDS
from tests.oracles import elementary

from abers import LabelError, ParameterError, ScoreError, StateError, VennAbers, checks
from abers.backends import core
from abers.calibration.protected import ProtectedVennAbers
from abers.mathematics import EXPIRE, LEARN, PREDICT, interleaved
from abers.serialization import pack, seal, unpack

pytestmark = pytest.mark.native

CLIP = 1e-6
PRIOR = [1 / 4, *[3 / 56] * 7, *[1 / 8] * 3]


def loss(p: float, label: int) -> float:
    """Return the log loss of a forecast."""
    return -math.log(p if label else 1.0 - p)


@pytest.mark.parametrize("options", [{"scores": "any"}, {"scores": "logit"}, {"raw_weight": 0.5}])
def test_contract(options: dict[str, Any]) -> None:
    """The contract of a calibrator holds with other options than those of test_checks.py."""
    checks.check_calibrator(lambda **rule: ProtectedVennAbers(**options, **rule))


# The mixture


def test_a_lane_is_the_exact_mixture() -> None:
    """Labels at once: the mixture is that of Bayes, in fractions."""
    rng = np.random.default_rng(1)
    model = made("one")
    held = [Fraction(1, 4), *[Fraction(3, 56)] * 7, *[Fraction(1, 8)] * 3]
    for number in range(60):
        scores, label = drawn("one", rng), int(rng.integers(2))
        ((*_, p),) = run(model, PREDICT, [number], scores=scores).tolist()
        (kept,) = saved(model.mixture)["forecasts"].tolist()
        every = [Fraction(one) for one in kept[:11]]
        expected = sum(w * q for w, q in zip(held, every, strict=True)) / sum(held)
        assert p == pytest.approx(float(expected), rel=1e-12)
        held = [w * (q if label else 1 - q) for w, q in zip(held, every, strict=True)]
        run(model, LEARN, [number], label, scores)


def adversary(delay: int, rounds: int) -> tuple[float, float, int]:
    """Return the losses of the mixture and of raw where whatever the mixture believes is wrong.

    All labels of a delay contradict the mean forecast of that delay.
    """
    model = made("one")
    total = raw = 0.0
    for first in range(0, rounds * delay, delay):
        numbers = range(first, first + delay)
        forecasts = [run(model, PREDICT, [one])[0, 2] for one in numbers]
        label = int(np.mean(forecasts) < 0.5)
        total += sum(loss(one, label) for one in forecasts)
        raw += delay * loss(0.9, label)
        run(model, LEARN, numbers, label)
    return total, raw, model.mixture.lane_count


@pytest.mark.parametrize("delay", [1, 10, 100])
def test_an_adversary_gains_no_more_than_the_price(delay: int) -> None:
    """Where one weight vector loses without bound, lanes lose at most C ln(1/rho)."""
    total, raw, lanes = adversary(delay, 60)
    assert lanes == delay
    assert total - raw <= lanes * math.log(4.0) + 1e-6


@pytest.mark.parametrize("delay", [10, 100])
def test_one_weight_vector_has_no_bound(delay: int) -> None:
    """The adversary is one: it takes nats without bound from weights that all labels share."""
    rounds, weights, excess = 60, [0.25, 0.75], 0.0
    for _ in range(rounds):
        p = (weights[0] * 0.9 + weights[1] * 0.1) / sum(weights)
        label = int(p < 0.5)
        excess += delay * (loss(p, label) - loss(0.9, label))
        right = [delay * loss(q, label) for q in (0.9, 0.1)]
        weights = [w * math.exp(-one) for w, one in zip(weights, right, strict=True)]
        weights = [max(w / max(weights), 1e-300) for w in weights]
    assert excess > 10 * delay * math.log(4.0)


@pytest.mark.large(600)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_bound_holds_for_any_order(seed: int, size: int) -> None:
    """Random delays, orders and lost labels: at most C ln(1/weight) over each expert."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    calibrator = ProtectedVennAbers(raw_weight=0.25)
    waiting: list[tuple[int, float]] = []
    most, shift = 0, rng.random()
    for number in range(size):
        score = rng.random()
        calibrator.predict_one(score, number=number)
        waiting.append((number, score))
        most = max(most, len(waiting))
        while waiting and rng.random() < 0.52:
            of, its = waiting.pop(rng.randrange(len(waiting)))
            if rng.random() < 0.1:
                calibrator.expire_one(of)
                continue
            truth = its if of % 200 < 100 else 1.0 - its  # the scorer is turned round and back
            calibrator.learn_one(its, int(rng.random() < truth * shift), number=of)
    assert calibrator.lanes == most
    losses = calibrator.expert_losses()
    served = losses.pop("protected")
    prior = PRIOR
    for (name, theirs), weight in zip(losses.items(), prior, strict=True):
        assert served <= theirs + most * -math.log(weight) + 1e-9, name


def test_losses_are_those_of_the_forecasts() -> None:
    """The reported losses are sums of log losses, of labels of predictions with numbers alone."""
    calibrator = ProtectedVennAbers()
    raw = served = 0.0
    rng = random.Random(2)  # noqa: S311 - no secret
    for number in range(300):
        score, label = rng.random(), int(rng.random() < 0.3)
        served += loss(calibrator.predict_one(score, number=number).probability, label)
        raw += loss(min(max(score, CLIP), 1 - CLIP), label)
        calibrator.learn_one(score, label, number=number)
    calibrator.learn_one(0.5, 1, number=10**6)  # unknown: teaches the experts alone
    losses = calibrator.expert_losses()
    assert losses["protected"] == pytest.approx(served)
    assert losses["raw"] == pytest.approx(raw)
    assert sum(calibrator.expert_weights().values()) == pytest.approx(1.0)


def test_without_labels_the_answer_is_near_the_raw_score() -> None:
    """Before the first label the probability leans a little to 1/2, however many wait."""
    calibrator = ProtectedVennAbers()
    scores = np.linspace(0.01, 0.99, 50)
    found = calibrator.predict_many(scores, numbers=np.arange(50))
    assert np.abs(found.probability - scores).max() < 0.02
    assert (found.p0 == 0.0).all()


def test_numbers_that_are_repeated_or_unknown() -> None:
    """A repeated number gets its first probability; an unknown label touches no lane."""
    calibrator = ProtectedVennAbers()
    first = calibrator.predict_one(0.7, number=5)
    for number in range(10, 60):
        calibrator.predict_one(0.7, number=number)
        calibrator.learn_one(0.7, 0, number=number)
    assert calibrator.predict_one(0.7, number=5).probability == first.probability
    assert calibrator.predict_one(0.7).probability < first.probability
    lanes, losses = calibrator.lanes, calibrator.expert_losses()
    calibrator.learn_one(0.7, 1, number=999)
    assert (calibrator.lanes, calibrator.expert_losses()) == (lanes, losses)
    calibrator.expire_one(5)
    assert calibrator.awaiting == 0


# The interval and the experts


@pytest.mark.parametrize("rule", [{}, {"window": 20}, {"half_life": 9.0}])
def test_the_interval_is_that_of_venn_abers(rule: dict[str, Any]) -> None:
    """The interval is the Venn-Abers interval of the rule of forgetting, untouched."""
    rng = np.random.default_rng(4)
    scores, labels = rng.random(200), rng.integers(0, 2, 200)
    times = np.arange(200.0) if "half_life" in rule else None
    protected = ProtectedVennAbers(**rule).prequential(scores, labels, delay=7, times=times)
    plain = VennAbers(**rule).prequential(scores, labels, delay=7, times=times)
    assert protected.p0.tolist() == plain.p0.tolist()
    assert protected.p1.tolist() == plain.p1.tolist()


@given(st.integers(0, 30), st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_batches_and_restores_change_nothing(delay: int, seed: int) -> None:
    """Any split into batches, with a restore between them, gives the same bytes."""
    rng = np.random.default_rng(seed)
    n = 80
    scores, labels = rng.random(n), rng.integers(0, 2, n)
    whole = ProtectedVennAbers()
    expected = whole.prequential(scores, labels, delay=delay).probability.tolist()
    split, found = ProtectedVennAbers(), []
    for i in range(n + delay):
        if i < n:
            found.append(split.predict_one(scores[i], number=i).probability)
        if 0 <= i - delay < n:
            split.learn_one(scores[i - delay], labels[i - delay], number=i - delay)
        if rng.random() < 0.1:
            split = ProtectedVennAbers.from_bytes(split.to_bytes())
    assert found == expected
    assert split.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("delay", [0, 1, 10])
@pytest.mark.parametrize("lost", [0.0, 0.3])
@pytest.mark.parametrize("rule", [{}, {"window": 20}, {"scores": "logit"}, {"scores": "any"}])
def test_a_stream_in_one_call_is_a_loop(delay: int, lost: float, rule: dict[str, Any]) -> None:
    """`prequential`, and `run` where labels are lost, equal a loop with numbers and expiries."""
    rng = np.random.default_rng(delay)
    n = 60
    scores, labels = rng.random(n), rng.integers(0, 2, n)
    never = rng.random(n) < lost
    loop, found, waiting = ProtectedVennAbers(**rule), [], []
    for i in range(n + delay):
        if i < n:
            found.append(loop.predict_one(scores[i], number=i))
            waiting.append(i)
        if i >= delay or i >= n:
            first = waiting.pop(0)
            if never[first]:
                loop.expire_one(first)
            else:
                loop.learn_one(scores[first], labels[first], number=first)
    batch = ProtectedVennAbers(**rule)
    if lost:
        numbers, kinds = interleaved(n, delay)
        kinds[(kinds == LEARN) & never[numbers]] = EXPIRE
        every = batch.run(kinds, scores[numbers], labels[numbers], numbers=numbers)
        answers = [column[kinds == PREDICT] for column in every]
    else:
        answers = [*batch.prequential(scores, labels, delay=delay)]
    assert np.column_stack(answers).tolist() == [[*one] for one in found]
    assert batch.to_bytes() == loop.to_bytes()
    assert (batch.awaiting, batch.lanes) == (0, delay + 1)


def test_a_base_rate_stands_for_scores_of_any_kind() -> None:
    """With scores="any" the raw probability is the share of label 1, one of each added."""
    calibrator = ProtectedVennAbers(scores="any")
    assert calibrator.predict_one(-400.0, number=0).probability == pytest.approx(0.5)
    calibrator.learn_one(-400.0, 1, number=0)
    calibrator.predict_one(7.0, number=1)
    calibrator.learn_one(7.0, 1, number=1)
    losses = calibrator.expert_losses()
    assert losses["raw"] == pytest.approx(loss(1 / 2, 1) + loss(2 / 3, 1))


def test_a_share_of_label_1_below_the_clip() -> None:
    """After millions of labels 0 one call still equals a batch: the share is clipped in both."""
    calibrator = ProtectedVennAbers(scores="any")
    for number in range(3):
        calibrator.predict_one(0.5, number=number)
        calibrator.learn_one(0.5, 0, number=number)
    header, *pieces = (bytes(one) for one in unpack(memoryview(calibrator.state_bytes())))
    counts = struct.pack("<qqqqq", 3, 3, 1, 4_000_000, 0)  # four million labels were learned
    blob = seal(b"abersPV\x01", pack([header[:-40] + counts, *pieces]))
    many = ProtectedVennAbers.from_bytes(blob)
    assert many.predict_one(0.5) == tuple(one.item() for one in many.predict_many([0.5]))


def test_prior_weights_of_any_real_type() -> None:
    """A weight is a float, whatever real number was given."""
    calibrator = ProtectedVennAbers(raw_weight=np.float32(0.5))  # type: ignore[arg-type]
    assert repr(calibrator) == "<ProtectedVennAbers(raw_weight=0.5) of 0 observations>"
    assert calibrator == ProtectedVennAbers(raw_weight=0.5)


def test_before_the_first_label_all_losses_are_zero() -> None:
    """A new calibrator has lost nothing, and has no price."""
    calibrator = ProtectedVennAbers()
    assert [str(loss) for loss in calibrator.expert_losses().values()] == ["0.0"] * 12
    assert (calibrator.price, calibrator.lanes, calibrator.awaiting) == (0.0, 0, 0)


@pytest.mark.parametrize("weight", [0, 0.0, 1, 1.0, -1.0, math.nan, 2.0, True, None, "x"])
def test_prior_weights_that_are_refused(weight: Any) -> None:  # noqa: ANN401 - anything
    """The weight of the raw probability is between 0 and 1, without the ends."""
    with pytest.raises(ParameterError, match=r"raw_weight=.* must be a number above 0 and below 1"):
        ProtectedVennAbers(raw_weight=weight)


@given(steps=st.lists(st.integers(0, 12), min_size=1, max_size=40), cut=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_arguments_that_are_refused_change_nothing(steps: list[int], cut: int) -> None:
    """Whatever waits: a bad score, label, number, weight or time is an error, and nothing else."""
    calibrator = ProtectedVennAbers()
    for number in steps:
        calibrator.predict_one(number / 12, number=number)
        if number % 3 == 0:
            calibrator.learn_one(number / 12, number % 2, number=number)
    before = calibrator.to_bytes()
    scores: list[Any] = [math.nan, math.inf, 1.2, -0.1, "0.5", None]
    for score in scores:
        for call in (calibrator.predict_one, partial(calibrator.learn_one, label=1)):
            with pytest.raises(ScoreError):
                call(score, number=steps[0])
    for label in (2, None, "yes", math.nan, 0.5):
        with pytest.raises(LabelError, match="map the positive class to 1"):
            calibrator.learn_one(0.5, label, number=steps[0])  # type: ignore[arg-type]
    bad: list[Any] = [-1, 2**63, 2**64, 1.5, "7", True, math.nan]
    for one in bad:
        for act in (calibrator.predict_one, partial(calibrator.learn_one, label=1)):
            with pytest.raises(ParameterError, match="number="):
                act(0.5, number=one)
        with pytest.raises(ParameterError, match="number="):
            calibrator.expire_one(one)
    with pytest.raises(ScoreError, match="row 1"):
        calibrator.prequential([0.5, 1.2], [0, 1], delay=1)
    calibrator.expire_one(999)
    assert calibrator.to_bytes() == before
    with pytest.raises(StateError):
        ProtectedVennAbers.from_bytes(before[: cut % len(before)])


def test_a_copy_goes_on_by_itself() -> None:
    """A pickle and both kinds of copy have the state, the labels awaited too, and share nothing."""
    calibrator = ProtectedVennAbers()
    for number in range(9):
        calibrator.predict_one(number / 9, number=number)
        calibrator.learn_one(number / 9, 1, number=number - number % 2)
    for other in (
        pickle.loads(pickle.dumps(calibrator)),  # noqa: S301 - our own
        copy.copy(calibrator),
        copy.deepcopy(calibrator),
    ):
        assert other == calibrator
        assert other.awaiting == calibrator.awaiting == 4
        other.learn_one(1 / 9, 0, number=1)
        assert (other.awaiting, calibrator.awaiting) == (3, 4)


def test_scores_that_are_no_probabilities() -> None:
    """A score outside [0, 1] is refused; 0 and 1 are taken, at a bounded loss."""
    calibrator = ProtectedVennAbers()
    with pytest.raises(ScoreError, match=r"1\.5 is not a probability in"):
        calibrator.predict_one(1.5, number=0)
    assert calibrator.awaiting == 0
    for number, score in enumerate([0.0, 1.0]):
        p = calibrator.predict_one(score, number=number).probability
        assert CLIP <= p <= 1.0 - CLIP
        calibrator.learn_one(score, 1 - int(score), number=number)


# Functions


def test_the_logistic_function() -> None:
    """The logistic function of the core equals that of plain Python, and is right."""
    scores = np.concatenate((np.linspace(-40, 40, 4001), [-1e300, 1e300, 0.0]))
    one, other = np.empty((2, len(scores)))
    core.logistics(scores, one)
    elementary.logistics(scores, other)
    assert one.tolist() == other.tolist()
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(one, 1.0 / (1.0 + np.exp(-scores)), rtol=1e-14, atol=1e-300)


# Saved state


@pytest.mark.parametrize("at", [0, 26, 27, 146, 147, 260, -14, -13, -1])
def test_saved_parameters_that_no_mixture_has(at: int) -> None:
    """Saved weights, lines, curvatures and products that cannot be are a StateError."""
    calibrator = ProtectedVennAbers()
    for number in range(20):
        calibrator.predict_one(0.3, number=number)
        calibrator.learn_one(0.3, number % 2, number=number)
    payload = calibrator.state_bytes()
    _, own, *_ = unpack(memoryview(payload))
    start = bytes(payload).index(bytes(own)) + at % (len(own) // 8) * 8
    for bad in (math.nan, math.inf, -1e300):
        damaged = bytearray(payload)
        damaged[start : start + 8] = np.float64(bad).tobytes()
        blob = seal(b"abersPV\x01", bytes(damaged))
        with pytest.raises(StateError, match="inconsistent"):
            ProtectedVennAbers.from_bytes(blob)


@pytest.mark.data
@pytest.mark.simulation
def test_the_regret_on_elec2() -> None:
    """With labels at once, the regret to each expert is at most ln(1/weight) on Elec2."""
    path = Path(os.environ["ABERS_DATA"]) / "elec2.csv.gz"
    with gzip.open(path, "rt") as file:
        rows = [*csv.DictReader(file)]
    features = [name for name in rows[0] if name.startswith(("nsw", "vic", "transfer", "period"))]
    x = np.array([[float(row[name]) for name in features] for row in rows])
    y = np.array([str(row[[*row][-1]]).strip().upper() in {"UP", "1"} for row in rows])
    assert x.shape[1] > 0
    assert 0.3 < y.mean() < 0.7
    weights, logits = np.zeros(x.shape[1]), np.empty(len(y))
    for row, (one, label) in enumerate(zip(x, y, strict=True)):  # online logistic regression
        logits[row] = one @ weights
        weights += 0.1 * (label - 1.0 / (1.0 + math.exp(-logits[row]))) * one
    calibrator = ProtectedVennAbers(scores="logit")
    p = calibrator.prequential(logits, y.astype(int)).probability
    served = -np.log(np.where(y, p, 1.0 - p)).sum()
    losses = calibrator.expert_losses()
    assert losses.pop("protected") == pytest.approx(served)
    prior = PRIOR
    for (name, theirs), weight in zip(losses.items(), prior, strict=True):
        assert served <= theirs - math.log(weight) + 1e-6, name

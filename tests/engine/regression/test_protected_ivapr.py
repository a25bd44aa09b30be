"""Protected regression: its contract, its bound, its experts, its refusals, its state."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest

from abers import LabelError, ParameterError, ScoreError, StateError, checks
from abers.regression import IVAPR, PredictiveDistribution, ProtectedIVAPR, expert_forecasts
from abers.serialization import seal
from abers.steps import EXPIRE, LEARN, PREDICT

if TYPE_CHECKING:
    from abers.arrays import Floats

pytestmark = pytest.mark.native

SUPPORT = (0.0, 10.0)


def test_contract() -> None:
    """The contract of a calibrator holds for quantiles; test_checks.py has it for numbers."""
    checks.check_calibrator(partial(ProtectedIVAPR, (0.0, 1.0), scores="quantiles", members=7))


# The experts


def test_the_base_is_the_score_plus_its_residuals() -> None:
    """Quantile i of m is the score plus the residual at the level (i - 1/2) / m."""
    residuals = [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert expert_forecasts.moved(5.0, residuals, 5).tolist() == [3.0, 4.0, 5.0, 6.0, 7.0]
    assert expert_forecasts.moved(5.0, residuals, 2).tolist() == [4.0, 6.0]  # at 1/4 and 3/4
    assert expert_forecasts.moved(5.0, [], 3).tolist() == [5.0, 5.0, 5.0]
    for n in range(1, 30):
        sample = np.arange(n) - 7.0
        levels = (np.arange(8) + 0.5) / 8
        ranks = np.array([min(r for r in range(n) if (r + 1) / n >= q) for q in levels])
        assert expert_forecasts.moved(0.0, sample.tolist(), 8).tolist() == sample[ranks].tolist()


def test_the_level_of_a_label_inverts_the_quantiles() -> None:
    """The PIT value is 0 and 1 outside, linear between quantiles, the middle of equal ones."""
    base = np.array([1.0, 2.0, 4.0, 4.0])
    at = {0.0: 0.0, 1.0: 1 / 8, 1.5: 2 / 8, 2.0: 3 / 8, 3.0: 4 / 8, 4.0: 0.8125, 5.0: 1.0}
    found = {label: expert_forecasts.pit(base, label) for label in at}
    assert found == pytest.approx(at)


def test_quantile_calibration_is_drawn_to_the_base() -> None:
    """Without labels it is the base; when all labels lie low, its quantiles move down."""
    base = np.linspace(0.0, 9.0, 10)
    none = np.zeros(10, np.int64)
    assert expert_forecasts.recalibrated(base, none).tolist() == base.tolist()
    even = expert_forecasts.recalibrated(base, none + 40)
    assert even == pytest.approx(base)
    low = none.copy()
    low[0] = 30  # half of the weight: the CDF at level u is 1/2 + u/2 from 1/10 on
    moved = expert_forecasts.recalibrated(base, low)
    shares = np.concatenate(([0.0], [0.5 + (i + 1) / 20 for i in range(10)]))
    levels = np.interp(expert_forecasts.levels(10), shares, np.arange(11) / 10)
    assert moved == pytest.approx(np.clip(levels * 10 - 0.5, -0.5, 9.5))
    assert (np.diff(moved) >= 0.0).all()


def test_venn_abers_is_drawn_to_the_base() -> None:
    """A narrow band is nearly its merged CDF, a vacuous one is the base; the tails are the base."""
    base = np.linspace(0.0, 9.0, 10)
    vacuous = np.array([[-np.inf], [0.0], [1.0]])
    assert expert_forecasts.shrunk(vacuous, base).tolist() == base.tolist()
    held = IVAPR(support=SUPPORT)
    held.learn_many(np.full(3000, 1.0), np.tile([2.0, 3.0, 7.0], 1000))
    band = held.predict_one(1.0)
    at = np.concatenate(([-np.inf], band.thresholds))
    table = np.array([at, band.lower(at), band.upper(at)])
    table[1:, 0] = 0.0, 1.0 / 3001
    found = expert_forecasts.shrunk(table, base)
    assert found.tolist() == [2.0] * 3 + [3.0] * 4 + [7.0] * 3
    few = np.array([[-np.inf, 5.0], [0.0, 0.95], [0.05, 1.0]])
    drawn = expert_forecasts.shrunk(few, base)
    assert set(drawn.tolist()) <= {*base.tolist(), 5.0}
    assert 0.0 < np.abs(drawn - base).sum() < np.abs(5.0 - base).sum() / 2


def test_no_labels_give_the_base() -> None:
    """Before the first label the answer is the base, whatever is predicted."""
    rng = np.random.default_rng(0)
    calibrator = ProtectedIVAPR(SUPPORT, scores="quantiles", members=9)
    for number in range(20):
        base = np.sort(rng.random(9)) * 12.0 - 1.0
        found = calibrator.predict_one(base.tolist(), number=number)
        clipped = np.clip(base, *SUPPORT)
        expected = PredictiveDistribution(*steps_of(clipped), support=SUPPORT)
        assert found.thresholds.tolist() == expected.thresholds.tolist()
        assert found.values == pytest.approx(expected.values)


def steps_of(members: Floats) -> tuple[Floats, Floats]:
    """Return the steps of equally likely members."""
    at = np.unique(members)
    return at, np.concatenate(([0.0], [(members <= one).mean() for one in at]))


# The bound


def stream(seed: int, n: int) -> tuple[Floats, Floats]:
    """Return scores and labels whose relation changes half-way."""
    rng = np.random.default_rng(seed)
    scores = rng.random(n) * 10.0
    moved = np.where(np.arange(n) < n // 2, scores, 10.0 - scores)
    return scores, np.clip(moved + rng.normal(size=n), *SUPPORT)


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_holds_for_any_order(seed: int) -> None:
    """Random delays, orders and lost labels: the price holds against the base and each expert."""
    order = random.Random(seed)  # noqa: S311 - no secret
    scores, labels = stream(seed, 80)
    calibrator = ProtectedIVAPR(SUPPORT, members=10, base_weight=0.25 + 0.125 * (seed % 4))
    waiting: dict[int, PredictiveDistribution] = {}
    total, most = 0.0, 0
    for number, score in enumerate(scores.tolist()):
        waiting[number] = calibrator.predict_one(score, number=number)
        most = max(most, len(waiting))
        while waiting and order.random() < 0.52:
            of = order.choice([*waiting])
            served = waiting.pop(of)
            if order.random() < 0.1:
                calibrator.expire_one(of)
                continue
            y = float(labels[of])
            total += served.crps(y)
            calibrator.learn_one(float(scores[of]), y, number=of)
    found = calibrator.expert_losses()
    assert found.pop("protected") == pytest.approx(total)
    assert calibrator.lanes == most
    assert calibrator.awaiting == len(waiting)
    weight = calibrator.base_weight
    prior = dict.fromkeys(calibrator.experts, (1.0 - weight) / 3.0) | {"base": weight}
    assert calibrator.price == pytest.approx(most * 20.0 * -np.log(weight))
    for name, one in found.items():
        assert total - one <= most * 20.0 * -np.log(prior[name]) + 1e-9


def test_the_pool_beats_its_base_where_the_base_is_wrong() -> None:
    """A score in a wrong unit: the base is poor, and the weights leave it."""
    rng = np.random.default_rng(2)
    scores = rng.random(1500)
    labels = np.clip(10.0 * scores + rng.normal(size=1500), *SUPPORT)
    calibrator = ProtectedIVAPR(SUPPORT, members=20)
    calibrator.prequential(scores, labels)
    found = calibrator.expert_losses()
    assert found["protected"] < 0.6 * found["base"]
    assert calibrator.expert_weights()["base"] < 1e-3


# Steps


def test_labels_of_unknown_numbers_teach_the_experts_alone() -> None:
    """Such a label changes forecasts, but no lane and no score."""
    calibrator = ProtectedIVAPR(SUPPORT)
    calibrator.learn_one(4.0, 5.0, number=3)
    assert (len(calibrator), calibrator.lanes) == (1, 0)
    assert set(calibrator.expert_losses().values()) == {0.0}
    assert calibrator.predict_one(4.0).quantile(0.5) == 5.0


def test_a_repeated_number_gets_its_first_answer() -> None:
    """What is predicted again while it waits is answered as before."""
    calibrator = ProtectedIVAPR(SUPPORT)
    first = calibrator.predict_one(4.0, number=1)
    calibrator.learn_one(4.0, 5.0)
    again = calibrator.predict_one(7.0, number=1)
    assert again.thresholds.tolist() == first.thresholds.tolist()


@pytest.mark.parametrize("at", [0, 37, 90])
def test_a_restart_changes_nothing(at: int) -> None:
    """Saved with labels outstanding and restored, it goes on bit for bit."""
    scores, labels = stream(5, 60)
    rng = np.random.default_rng(6)
    kinds = rng.choice([PREDICT, PREDICT, LEARN, LEARN, EXPIRE], 120)
    rows = rng.integers(0, 60, 120)
    whole, part = ProtectedIVAPR(SUPPORT, members=8), ProtectedIVAPR(SUPPORT, members=8)

    def run(one: ProtectedIVAPR, some: slice) -> list[Any]:
        steps = kinds[some], scores[rows[some]], labels[rows[some]]
        found = one.run(*steps, numbers=rows[some], levels=[0.1, 0.5, 0.9])
        return [*found.merged[kinds[some] == PREDICT].tolist()]

    at_once = run(whole, slice(0, 120))
    first = run(part, slice(0, at))
    restored = ProtectedIVAPR.from_bytes(part.to_bytes())
    assert first + run(restored, slice(at, 120)) == at_once
    assert restored.to_bytes() == whole.to_bytes()
    assert restored.expert_losses() == whole.expert_losses()


def test_the_last_thousand_residuals_are_restored() -> None:
    """After more labels than the window, a restored base is the same."""
    calibrator = ProtectedIVAPR(SUPPORT, members=4)
    rng = np.random.default_rng(8)
    for score, label in (rng.random((1005, 2)) * 10.0).tolist():
        calibrator.learn_one(score, label, number=0)
    restored = ProtectedIVAPR.from_bytes(calibrator.to_bytes())
    found = [one.predict_one(5.0) for one in (calibrator, restored)]
    assert found[0].thresholds.tolist() == found[1].thresholds.tolist()
    calibrator.learn_one(1.0, 9.0)
    restored.learn_one(1.0, 9.0)
    assert restored == calibrator


LARGEST = np.finfo(float).max


@pytest.mark.parametrize("support", [(-1e290, 1e290), (0.0, 1e-290), (0.0, 1.0)])
@pytest.mark.parametrize("scores", ["number", "quantiles"])
@pytest.mark.parametrize("base_weight", [5e-324, np.nextafter(1.0, 0.0)])
def test_the_widest_and_the_narrowest_supports(
    support: tuple[float, float], scores: Literal["number", "quantiles"], base_weight: float
) -> None:
    """Predictions, weights, losses and state stay numbers, for scores that are any numbers."""
    given = (-LARGEST, LARGEST, -5e-324, 5e-324, -0.0, 1.0)
    make = partial(ProtectedIVAPR, scores=scores, members=3, base_weight=float(base_weight))
    calibrator = make(support)
    for number in range(60):
        score: Any = given[number % 6]
        if scores == "quantiles":
            score = sorted((score, score, given[number // 6 % 6]))
        predicted = calibrator.predict_one(score, number=number)
        found = [*predicted.quantile([0.1, 0.5, 0.9]), predicted.mean]
        assert all(support[0] <= one <= support[1] for one in found)
        calibrator.learn_one(score, support[number % 7 % 2], number=number)
        assert np.isfinite([*calibrator.expert_weights().values()]).all()
        assert np.isfinite([*calibrator.expert_losses().values(), calibrator.price]).all()
        assert ProtectedIVAPR.from_bytes(calibrator.to_bytes()) == calibrator


# Refusals


def test_refused_options() -> None:
    """A support is required, and options are checked; each message says what to do."""
    with pytest.raises(ParameterError, match=r"give support=\(lowest, highest\)"):
        ProtectedIVAPR()
    for support in [
        *((1.0, 1.0), (2.0, 1.0), (0.0, np.inf), (0.0, np.nan), (0.0,)),
        *((-1e301, 1.0), (0.0, 2e290), (0.0, 3e-310), (0.0, 5e-324)),
    ]:
        with pytest.raises(ParameterError, match="support"):
            ProtectedIVAPR(support)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="use number, quantiles"):
        ProtectedIVAPR(SUPPORT, scores="logit")  # type: ignore[arg-type]
    for weight in (0.0, 1.0, "half"):
        with pytest.raises(ParameterError, match="base_weight"):
            ProtectedIVAPR(SUPPORT, base_weight=weight)  # type: ignore[arg-type]
    for members in (1, 1001, 2.5):
        with pytest.raises(ParameterError, match="members"):
            ProtectedIVAPR(SUPPORT, members=members)  # type: ignore[arg-type]


def test_labels_outside_the_support_change_nothing() -> None:
    """Such a label is an error that names the support, alone and in a batch."""
    calibrator = ProtectedIVAPR(SUPPORT)
    calibrator.predict_one(4.0, number=1)
    before = calibrator.to_bytes()
    with pytest.raises(LabelError, match="outside the support"):
        calibrator.learn_one(4.0, 10.5, number=1)
    with pytest.raises(LabelError, match=r"row 1: label -0\.5 lies outside the support"):
        calibrator.learn_many([4.0, 4.0], [1.0, -0.5])
    assert calibrator.to_bytes() == before


def test_quantiles_that_are_none() -> None:
    """Quantiles must ascend, and be as many as was said."""
    calibrator = ProtectedIVAPR(SUPPORT, scores="quantiles", members=3)
    with pytest.raises(ScoreError, match=r"row 0: quantiles do not ascend"):
        calibrator.predict_one([1.0, 3.0, 2.0])
    for few in ([1.0, 2.0], 1.0):
        with pytest.raises(ScoreError, match=r"shape \(n, 3\)"):
            calibrator.predict_one(few)
    assert calibrator.predict_many([]) == []


def test_a_state_that_no_calibrator_wrote() -> None:
    """Sound checksums over impossible counts or forecasts are refused."""
    calibrator = ProtectedIVAPR(SUPPORT, members=4)
    calibrator.predict_one(4.0, number=1)
    calibrator.learn_one(4.0, 5.0)
    payload = calibrator.state_bytes()
    kind = b"abersPR\x01"
    assert ProtectedIVAPR.from_bytes(seal(kind, payload)) == calibrator
    refused = 0
    for at in range(8, len(payload)):
        bad = payload[:at] + bytes([payload[at] ^ 0x55]) + payload[at + 1 :]
        try:
            one = ProtectedIVAPR.from_bytes(seal(kind, bad))
        except StateError:
            refused += 1
            continue
        one.predict_one(4.0)  # what is accepted is used without harm
        one.learn_one(4.0, 5.0, number=1)
    assert refused > len(payload) / 3

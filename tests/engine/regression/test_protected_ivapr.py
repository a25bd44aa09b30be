"""Protected regression: its contract, its bound, its methods, its refusals, its state."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest

from abers import LabelError, ParameterError, ScoreError, StateError, checks
from abers.mathematics import EXPIRE, LEARN, PREDICT
from abers.regression import PredictiveDistribution, ProtectedIVAPR
from abers.serialization import seal

if TYPE_CHECKING:
    from abers.arrays import Floats

pytestmark = pytest.mark.native

SUPPORT = (0.0, 10.0)


def test_contract() -> None:
    """The contract of a calibrator holds for quantiles; test_checks.py has it for numbers."""
    checks.check_calibrator(partial(ProtectedIVAPR, (0.0, 1.0), scores="quantiles", members=7))


# The methods


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


# What the pool gains


def stream(seed: int, n: int) -> tuple[Floats, Floats]:
    """Return scores and labels whose relation changes half-way."""
    rng = np.random.default_rng(seed)
    scores = rng.random(n) * 10.0
    moved = np.where(np.arange(n) < n // 2, scores, 10.0 - scores)
    return scores, np.clip(moved + rng.normal(size=n), *SUPPORT)


def test_quantile_calibration_ignores_bases_of_no_width() -> None:
    """Labels of one distribution, 1,000 late: the first bases have no width, and teach no level."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=4000)
    labels = np.clip(scores + 0.5 * rng.normal(size=4000), -10.0, 10.0)
    calibrator = ProtectedIVAPR((-10.0, 10.0), members=20)
    calibrator.prequential(scores, labels, delay=1000)
    found = calibrator.expert_losses()
    assert found["recalibrated"] < 1.02 * found["base"]


def test_late_residuals_that_depend_on_each_other_are_followed() -> None:
    """Errors that drift: the line loses half as much as the base, and the pool trusts it."""
    rng = np.random.default_rng(3)
    error, scores, labels = 0.0, rng.random(1500) * 4.0, np.empty(1500)
    for i in range(1500):
        error = 0.95 * error + 0.3 * rng.normal()
        labels[i] = min(max(3.0 + scores[i] + error, 0.0), 10.0)
    calibrator = ProtectedIVAPR(SUPPORT)
    calibrator.prequential(scores, labels)
    found = calibrator.expert_losses()
    assert found["line_gaussian"] < 0.5 * found["base"]
    assert found["protected"] < 0.6 * found["base"]


def test_the_window_bounds_what_is_kept() -> None:
    """`IVAPR` keeps the last labels; by default 5,000 of them."""
    calibrator = ProtectedIVAPR(SUPPORT, window=50, members=4)
    rng = np.random.default_rng(8)
    calibrator.learn_many(rng.random(80) * 10.0, rng.random(80) * 10.0)
    assert (len(calibrator), calibrator.window) == (50, 50)
    assert ProtectedIVAPR(SUPPORT).window == 5_000
    for window in (0, 2**20 + 1, 2.5, None):
        with pytest.raises(ParameterError, match="window"):
            ProtectedIVAPR(SUPPORT, window=window)  # type: ignore[arg-type]


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
    """Such a label changes forecasts, but no lane, no score, and not the line."""
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


@pytest.mark.parametrize(
    ("scores", "score"), [("number", 4.0), ("quantiles", [1.0, 2.0, 4.0, 5.0])]
)
def test_a_state_that_no_calibrator_wrote(
    scores: Literal["number", "quantiles"], score: float | list[float]
) -> None:
    """Sound checksums over impossible counts or forecasts are refused."""
    calibrator = ProtectedIVAPR(SUPPORT, scores=scores, members=4)
    calibrator.predict_one(score, number=1)
    for _ in range(12):
        calibrator.learn_one(score, 5.0)
    calibrator.learn_one(score, 6.0, number=3)
    payload = calibrator.state_bytes()
    kind = b"abersPR\x01"
    assert ProtectedIVAPR.from_bytes(seal(kind, payload)) == calibrator
    refused = 0
    for at in range(len(payload)):
        bad = payload[:at] + bytes([payload[at] ^ 0x55]) + payload[at + 1 :]
        try:
            one = ProtectedIVAPR.from_bytes(seal(kind, bad))
        except StateError:
            refused += 1
            continue
        one.predict_one(score)  # what is accepted is used without harm
        one.learn_one(score, 5.0, number=1)
        assert np.isfinite([*one.expert_losses().values()]).all()
    assert refused > len(payload) / 3

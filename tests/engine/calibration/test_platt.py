"""Platt scaling against its definition, minimised by scipy, and against scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.calibration import _sigmoid_calibration

from abers import Platt

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def minimum(scores: Floats, labels: Floats, weights: Floats) -> tuple[float, float]:
    """Minimise the log loss of Platt's smoothed targets: slope and intercept."""
    n1, n0 = weights[labels == 1].sum(), weights[labels == 0].sum()
    targets = np.where(labels == 1, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))

    def loss(theta: Floats) -> float:
        z = theta[0] * scores + theta[1]
        return float(-(weights * (targets * log_expit(z) + (1 - targets) * log_expit(-z))).sum())

    found = minimize(
        loss,
        np.zeros(2),
        method="Nelder-Mead",
        options={"xatol": 1e-11, "fatol": 1e-15, "maxiter": 5_000},
    )
    return float(found.x[0]), float(found.x[1])


@pytest.mark.parametrize("seed", range(5))
def test_the_fit_is_the_minimum(seed: int) -> None:
    """Slope and intercept minimise the loss of the smoothed targets, weights and ties included."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(size=60), 1)
    labels = (rng.random(60) < expit(2 * scores - 0.5)).astype(float)
    weights = rng.choice(np.array([0.5, 1.0, 3.0]), 60)
    calibrator = Platt()
    calibrator.learn_many(scores, labels, weights=weights)
    slope, intercept = minimum(scores, labels, weights)
    assert calibrator.slope == pytest.approx(slope, abs=1e-6)
    assert calibrator.intercept == pytest.approx(intercept, abs=1e-6)
    p = calibrator.predict_many([-1.0, 0.0, 2.0])
    assert p == pytest.approx(expit(slope * np.array([-1.0, 0.0, 2.0]) + intercept), abs=1e-6)


def test_it_agrees_with_scikit_learn() -> None:
    """scikit-learn's sigmoid calibration has the same curve, to its own tolerance."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=400)
    labels = (rng.random(400) < expit(1.5 * scores + 0.3)).astype(int)
    calibrator = Platt()
    calibrator.learn_many(scores, labels)
    a, b = _sigmoid_calibration(scores, labels)
    assert calibrator.slope == pytest.approx(-a, abs=1e-3)
    assert calibrator.intercept == pytest.approx(-b, abs=1e-3)


@pytest.mark.parametrize(("label", "count"), [(0, 1), (1, 1), (0, 30), (1, 30)])
def test_one_class_only_is_smoothed(label: int, count: int) -> None:
    """With one label alone, the probability is Platt's target for it, whatever the score."""
    calibrator = Platt()
    calibrator.learn_many(np.linspace(-1, 1, count), [label] * count)
    target = (count + 1) / (count + 2)
    wanted = target if label else 1 - target
    assert calibrator.predict_many([-0.7, 0.0, 0.7]) == pytest.approx([wanted] * 3, abs=1e-6)


def test_nothing_learned_is_a_half() -> None:
    """Before the first label every score means 1/2."""
    assert Platt().predict_one(-3.0) == 0.5


def test_separable_labels_have_a_finite_fit() -> None:
    """Labels that a score separates perfectly leave probabilities inside (0, 1)."""
    calibrator = Platt()
    calibrator.learn_many(np.arange(100), np.arange(100) >= 50)
    p = calibrator.predict_many([0, 99])
    assert 0 < p[0] < 0.05
    assert 0.95 < p[1] < 1
    assert np.isfinite([calibrator.slope, calibrator.intercept]).all()


def test_equal_scores_have_no_slope() -> None:
    """One score alone says nothing of a slope: the level is the mean target."""
    calibrator = Platt()
    calibrator.learn_many([0.3] * 4, [0, 1, 1, 1])
    assert calibrator.slope == 0.0
    assert calibrator.predict_one(0.9) == pytest.approx((1 / 3 + 3 * 4 / 5) / 4)


def test_scores_may_point_downwards() -> None:
    """Where large scores mean label 0, the slope is negative."""
    calibrator = Platt()
    calibrator.learn_many([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0])
    assert calibrator.slope < 0


@pytest.mark.parametrize("unit", [1e-320, 1e-150, 1.0, 1e150, 1e307])
def test_scores_of_any_size_are_fitted_alike(unit: float) -> None:
    """The probability of a score does not depend on the unit of the scores."""
    base = np.array([-8.0, -3.0, -1.0, 2.0, 4.0, 9.0])
    labels = [0, 1, 0, 1, 0, 1]
    plain, scaled = Platt(), Platt()
    plain.learn_many(base, labels)
    scaled.learn_many(base * unit, labels)
    near = 1e-2 if unit == 1e-320 else 1e-9  # scores of few digits
    assert scaled.predict_many(base * unit) == pytest.approx(plain.predict_many(base), abs=near)
    extremes = scaled.predict_many([-1.7e308, 0.0, 1.7e308])
    assert np.isfinite(extremes).all()
    assert (np.diff(extremes) >= 0).all()


def test_a_warm_start_ends_where_a_cold_one_does() -> None:
    """Fits that start from the last one and move with their scores find the same curve."""
    rng = np.random.default_rng(3)
    scores = np.concatenate([rng.normal(size=300), 50 + 1e-3 * rng.normal(size=300)])
    labels = rng.integers(0, 2, 600)
    warm, cold = Platt(window=100, refit=0.0), Platt()
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        warm.learn_one(score, label)
    cold.learn_many(scores[-100:], labels[-100:])
    asked = scores[-100:]
    assert warm.predict_many(asked) == pytest.approx(cold.predict_many(asked), abs=1e-7)

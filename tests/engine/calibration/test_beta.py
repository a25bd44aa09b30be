"""Beta calibration against its definition, minimised by scipy under its bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from abers import BetaCalibration

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def minimum(scores: Floats, labels: Floats, weights: Floats) -> Floats:
    """Minimise the log loss under a, b >= 0: the three parameters."""
    x, y = np.log(scores), -np.log1p(-scores)

    def loss(theta: Floats) -> tuple[float, Floats]:
        z = theta[0] * x + theta[1] * y + theta[2]
        slope = weights * (expit(z) - labels)
        value = -(weights * (labels * log_expit(z) + (1 - labels) * log_expit(-z))).sum()
        return float(value), np.array([(slope * x).sum(), (slope * y).sum(), slope.sum()])

    bounds = [(0, None), (0, None), (None, None)]
    options = {"ftol": 1e-16, "gtol": 1e-10, "maxiter": 10_000}
    found = minimize(loss, [1.0, 1.0, 0.0], jac=True, bounds=bounds, options=options)
    theta: Floats = found.x
    return theta


def fitted(calibrator: BetaCalibration) -> list[float]:
    """List the parameters."""
    return [calibrator.a, calibrator.b, calibrator.c]


CURVES: dict[str, Callable[[Floats], Floats]] = {
    "free": lambda s: s**2 / (s**2 + (1 - s) ** 0.5),
    "a is 0": lambda s: 0.9 - 0.5 * s * (s < 0.5),
    "b is 0": lambda s: 0.1 + 0.5 * (1 - s) * (s > 0.5),
    "both are 0": lambda s: 1 - s,
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("seed", range(3))
def test_the_fit_is_the_minimum(name: str, seed: int) -> None:
    """The parameters are those of the best curve that never falls, weights and ties included."""
    rng = np.random.default_rng(seed)
    scores = np.clip(np.round(rng.random(400), 2), 0.01, 0.99)
    labels = (rng.random(400) < CURVES[name](scores)).astype(float)
    weights = rng.choice(np.array([0.5, 1.0, 3.0]), 400)
    calibrator = BetaCalibration()
    calibrator.learn_many(scores, labels, weights=weights)
    assert fitted(calibrator) == pytest.approx(minimum(scores, labels, weights), abs=2e-4)
    a, b, c = fitted(calibrator)
    p = calibrator.predict_many([0.2, 0.7])
    wanted = [expit(a * np.log(s) - b * np.log1p(-s) + c) for s in (0.2, 0.7)]
    assert p == pytest.approx(wanted, abs=1e-14)


def test_the_bounds_bind_where_they_should() -> None:
    """The curves above reach all four cases: free, a = 0, b = 0, both 0."""
    reached = set()
    for curve in CURVES.values():
        rng = np.random.default_rng(0)
        scores = rng.random(2_000)
        calibrator = BetaCalibration()
        calibrator.learn_many(scores, rng.random(2_000) < curve(scores))
        reached.add((calibrator.a > 0, calibrator.b > 0))
        assert min(calibrator.a, calibrator.b) >= 0
    assert reached == {(True, True), (False, True), (True, False), (False, False)}


def test_it_contains_the_identity() -> None:
    """Scores that are calibrated already are left nearly alone."""
    rng = np.random.default_rng(1)
    scores = rng.random(50_000)
    calibrator = BetaCalibration()
    calibrator.learn_many(scores, rng.random(50_000) < scores)
    assert fitted(calibrator) == pytest.approx([1.0, 1.0, 0.0], abs=0.05)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_only_is_the_identity(label: int) -> None:
    """Until both labels are kept, scores stay what they are; also once one has left the window."""
    calibrator = BetaCalibration(window=5)
    assert calibrator.predict_one(0.3) == pytest.approx(0.3)
    calibrator.learn_many([0.2, 0.8, 0.3], [label] * 3)
    assert calibrator.predict_one(0.3) == pytest.approx(0.3)
    calibrator.learn_many([0.5, 0.6], [1 - label] * 2)
    assert calibrator.predict_one(0.3) != pytest.approx(0.3)
    calibrator.learn_many([0.4] * 5, [label] * 5)
    assert calibrator.predict_one(0.3) == pytest.approx(0.3)


def test_separable_labels_have_a_finite_fit() -> None:
    """Labels that the score separates perfectly, and scores of 0 and 1, leave a finite curve."""
    calibrator = BetaCalibration()
    calibrator.learn_many([0.0, 0.1, 0.9, 1.0], [0, 0, 1, 1])
    assert np.isfinite(fitted(calibrator)).all()
    p = calibrator.predict_many([0.0, 0.1, 0.5, 0.9, 1.0])
    assert (np.diff(p) >= 0).all()
    assert p[1] < 0.01
    assert p[3] > 0.99

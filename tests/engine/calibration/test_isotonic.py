"""The isotonic baseline against scikit-learn and against `VennAbers`."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from abers import Isotonic, VennAbers


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_scikit_learn(seed: int) -> None:
    """Within, between and beyond the scores kept, the fit is scikit-learn's, ties pooled."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(size=200), 1)
    labels, weights = rng.integers(0, 2, 200), rng.choice(np.array([0.5, 1.0, 4.0]), 200)
    calibrator = Isotonic()
    calibrator.learn_many(scores, labels, weights=weights)
    oracle = IsotonicRegression(out_of_bounds="clip").fit(scores, labels, sample_weight=weights)
    asked = rng.normal(scale=2, size=300)
    assert calibrator.predict_many(asked) == pytest.approx(oracle.predict(asked), abs=1e-12)


def test_it_is_the_fit_that_venn_abers_keeps() -> None:
    """At every step of a stream the probability is `VennAbers.isotonic`, to the last bit."""
    rng = np.random.default_rng(0)
    calibrator, keeper = Isotonic(window=20), VennAbers(window=20)
    for score, label in zip(rng.random(60).tolist(), rng.integers(0, 2, 60).tolist(), strict=True):
        calibrator.learn_one(score, label)
        keeper.learn_one(score, label)
        assert calibrator.predict_one(0.4) == keeper.isotonic(0.4)


def test_nothing_learned_is_a_half() -> None:
    """Before the first label every score means 1/2."""
    assert Isotonic().predict_one(9.0) == 0.5
    assert Isotonic().predict_many([]).tolist() == []

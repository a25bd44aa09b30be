"""Forecasts as quantiles, by their definitions; the core equals them to the bit.

`test_distribution_protection.py` compares the two.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from tests.oracles import quantile_forecasts

from abers.regression import IVAPR

SUPPORT = (0.0, 10.0)


def test_the_base_is_the_score_plus_its_residuals() -> None:
    """Quantile i of m is the score plus the residual at the level (i - 1/2) / m."""
    residuals = [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert quantile_forecasts.moved(5.0, residuals, 5).tolist() == [3.0, 4.0, 5.0, 6.0, 7.0]
    assert quantile_forecasts.moved(5.0, residuals, 2).tolist() == [4.0, 6.0]  # at 1/4 and 3/4
    assert quantile_forecasts.moved(5.0, [], 3).tolist() == [5.0, 5.0, 5.0]
    for n in range(1, 30):
        sample = np.arange(n) - 7.0
        levels = (np.arange(8) + 0.5) / 8
        ranks = np.array([min(r for r in range(n) if (r + 1) / n >= q) for q in levels])
        assert quantile_forecasts.moved(0.0, sample.tolist(), 8).tolist() == sample[ranks].tolist()


def test_the_level_of_a_label_inverts_the_quantiles() -> None:
    """The PIT value is 0 and 1 outside, linear between quantiles, the middle of equal ones."""
    base = np.array([1.0, 2.0, 4.0, 4.0])
    at = {0.0: 0.0, 1.0: 1 / 8, 1.5: 2 / 8, 2.0: 3 / 8, 3.0: 4 / 8, 4.0: 0.8125, 5.0: 1.0}
    found = {label: quantile_forecasts.pit(base, label) for label in at}
    assert found == pytest.approx(at)


def test_quantile_calibration_is_drawn_to_the_base() -> None:
    """Without labels it is the base; when all labels lie low, its quantiles move down."""
    base = np.linspace(0.0, 9.0, 10)
    none = np.zeros(10, np.int64)
    assert quantile_forecasts.recalibrated(base, none).tolist() == base.tolist()
    even = quantile_forecasts.recalibrated(base, none + 40)
    assert even == pytest.approx(base)
    low = none.copy()
    low[0] = 30  # half of the weight: the CDF at level u is 1/2 + u/2 from 1/10 on
    moved = quantile_forecasts.recalibrated(base, low)
    shares = np.concatenate(([0.0], [0.5 + (i + 1) / 20 for i in range(10)]))
    levels = np.interp(quantile_forecasts.levels(10), shares, np.arange(11) / 10)
    assert moved == pytest.approx(np.clip(levels * 10 - 0.5, -0.5, 9.5))
    assert (np.diff(moved) >= 0.0).all()


def test_venn_abers_is_drawn_to_the_base() -> None:
    """A narrow band is nearly its merged CDF, a vacuous one is the base; the tails are the base."""
    base = np.linspace(0.0, 9.0, 10)
    vacuous = np.array([[-np.inf], [0.0], [1.0]])
    assert quantile_forecasts.shrunk(vacuous, base).tolist() == base.tolist()
    held = IVAPR(support=SUPPORT)
    held.learn_many(np.full(3000, 1.0), np.tile([2.0, 3.0, 7.0], 1000))
    band = held.predict_one(1.0)
    at = np.concatenate(([-np.inf], band.thresholds))
    table = np.array([at, band.lower(at), band.upper(at)])
    table[1:, 0] = 0.0, 1.0 / 3001
    found = quantile_forecasts.shrunk(table, base)
    assert found.tolist() == [2.0] * 3 + [3.0] * 4 + [7.0] * 3
    few = np.array([[-np.inf, 5.0], [0.0, 0.95], [0.05, 1.0]])
    drawn = quantile_forecasts.shrunk(few, base)
    assert set(drawn.tolist()) <= {*base.tolist(), 5.0}
    assert 0.0 < np.abs(drawn - base).sum() < np.abs(5.0 - base).sum() / 2


def test_normal_quantiles() -> None:
    """Quantiles of the standard normal distribution are those of the library of Python."""
    for level in np.arange(1, 2000) / 2000.0:
        expected = NormalDist().inv_cdf(float(level))
        assert quantile_forecasts.normal_quantile(float(level)) == pytest.approx(
            expected, rel=1e-13, abs=1e-15
        )

"""The network with dropout: its gradient, what it learns, and where its spread comes from."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.papers.dropout import Network, begun, kept, loss


def test_gradient() -> None:
    """The gradient is that of the loss by finite differences, in every part and with dropout."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 3)), rng.normal(size=12)
    weights = [part + 0.1 * rng.normal(size=part.shape) for part in begun(3, rng)]
    masks = kept(12, rng)
    slopes = loss(weights, x, y, masks)[1]
    for part, slope in zip(weights, slopes, strict=True):
        for at in rng.choice(part.size, min(part.size, 20), replace=False):
            place = np.unravel_index(at, part.shape)
            ends, middle = [], part[place]
            for step in (1e-6, -1e-6):
                part[place] = middle + step
                ends.append(loss(weights, x, y, masks)[0])
            part[place] = middle
            assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-7)


def test_half_of_the_units_stay() -> None:
    """Each unit is left out with probability 1/2, and counts twice where it is not."""
    masks = kept(1_000, np.random.default_rng(0))
    assert all(set(np.unique(mask)) == {0.0, 2.0} for mask in masks)
    assert [mask.mean() for mask in masks] == pytest.approx([1.0, 1.0], abs=0.02)
    assert abs(np.corrcoef(masks[0].ravel(), masks[1].ravel())[0, 1]) < 0.02


def test_learns_a_known_function() -> None:
    """A bent function of two features is found where a line leaves all of its variance."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-2.0, 2.0, size=(600, 2))
    y = 5.0 * np.abs(x[:, 0]) + 0.1 * rng.normal(size=600)
    mean, std = Network.fitted(x[:400], y[:400], seed=0, most=25_000).predict(x[400:])
    line = np.polynomial.Polynomial.fit(x[:400, 0], y[:400], 1)(x[400:, 0])
    assert np.mean((mean - y[400:]) ** 2) < 0.1 * np.mean((line - y[400:]) ** 2)
    assert (std**2 > 4e-4 * 200).all()


def test_spread_is_that_of_the_passes() -> None:
    """Where no unit counts only the noise is left, which grows with the rows asked for."""
    parts = [0.0 * part for part in begun(2, np.random.default_rng(0))]
    parts[-1] += 3.0
    for n in (25, 100):
        mean, std = Network(parts, seed=0).predict(np.ones((n, 2)))
        assert mean.tolist() == [3.0] * n
        assert (std**2).tolist() == pytest.approx([4e-4 * n] * n)
    parts[1] += 1.0  # every unit of the first layer is 1, and feeds one unit of the second,
    parts[2][:, 0] = 1.0 / 128
    parts[4][0] = 1.0  # which is left out half of the times
    mean, std = Network(parts, seed=0).predict(np.ones((100, 2)))
    assert mean.mean() == pytest.approx(4.0, abs=0.05)
    assert (std**2 - 0.04).mean() == pytest.approx(2.0 * (1.0 + 1 / 128) - 1.0, abs=0.05)


def test_seeds() -> None:
    """A fit and a prediction are functions of the seed."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    once, again, other = (Network.fitted(x, y, seed, most=400).predict(x)[0] for seed in (0, 0, 1))
    assert (once == again).all()
    assert not (once == other).any()

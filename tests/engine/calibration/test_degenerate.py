"""Protected calibrators on a million events that say little: nothing becomes NaN."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.calibration.models import CLASSES, FOLDS, made, saved

from abers.arrays import LEARN, PREDICT

pytestmark = [pytest.mark.native, pytest.mark.simulation]

EVENTS = 1_000_000
BATCH = 50_000
STREAMS = ("constant", "certain", "one class", "alternating", "far apart")


def batch(sets: str, stream: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and labels of some observations."""
    count = CLASSES if sets == "classes" else 2
    labels = rng.integers(0, count, BATCH)
    if stream == "one class":
        labels[:] = 1
    if stream == "alternating":
        labels = np.arange(BATCH) % count
    if sets == "classes":
        scores = np.full((BATCH, CLASSES), 0.25)
        if stream in {"certain", "far apart"}:
            top = labels if stream == "certain" else (labels + 1) % CLASSES  # always wrong
            scores = np.eye(CLASSES)[top]
        if stream == "alternating":
            scores = np.eye(CLASSES)[np.arange(BATCH) // 2 % CLASSES] * 0.9 + 0.025
        return scores, labels
    score = np.full(BATCH, 0.4)
    if stream in {"certain", "far apart"}:
        score = labels * 1.0 if stream == "certain" else 1.0 - labels
    if stream == "alternating":
        score = np.arange(BATCH) // 2 % 2 * 0.8 + 0.1
    return np.column_stack((*[score] * FOLDS, np.arange(BATCH) % FOLDS)), labels


@pytest.mark.parametrize("sets", ["folds", "classes"])
@pytest.mark.parametrize("stream", STREAMS)
def test_a_million_degenerate_events(sets: str, stream: str) -> None:
    """Answers and state stay finite, and the price within the bound."""
    rng, model = np.random.default_rng(1), made(sets)
    kinds = np.tile(np.array([PREDICT, LEARN], np.uint8), BATCH)
    for first in range(0, EVENTS, BATCH):
        scores, labels = (np.repeat(one, 2, axis=0) for one in batch(sets, stream, rng))
        numbers = np.repeat(np.arange(first, first + BATCH), 2)
        out = np.empty((2 * BATCH, model.forecast_width))
        model.run(kinds, scores, labels, None, None, numbers, out, None)
        assert np.isfinite(out[::2]).all()
        assert (out[::2] >= 0.0).all()
        assert (out[::2] <= 1.0).all()
    state = saved(model.mixture)
    assert np.isfinite(state["own"]).all()
    losses = np.empty(model.mixture.experts + 1)
    model.mixture.losses(losses)
    assert losses[-1] <= losses[0] + np.log(4.0) + 1e-6
    assert losses[-1] <= losses[1:-1].min() + np.log(40.0) + 1e-6

"""Labels that are late by class, stop for a while, or have not come, with scores that are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.engine.calibration.models import CLASSES, FOLDS, SETS, made

from abers.arrays import LEARN, PREDICT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

pytestmark = [pytest.mark.native, pytest.mark.simulation]

NEVER = 10**9


def right(sets: str, n: int, seed: int) -> tuple[Floats, Integers]:
    """Draw scores, and labels from them."""
    rng = np.random.default_rng(seed)
    if sets == "classes":
        scores = rng.dirichlet(np.full(CLASSES, 0.7), n)
        return scores, (scores.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    p = rng.beta(0.7, 0.7, n)
    labels = (rng.random(n) < p).astype(np.int64)
    if sets == "one":
        return p[:, np.newaxis], labels
    return np.column_stack((*[p] * FOLDS, np.arange(n) % FOLDS)), labels


def ordered(delays: Integers) -> tuple[NDArray[np.uint8], Integers]:
    """Return kinds and rows of the steps: each label after so many later predictions."""
    n = len(delays)
    rows = np.flatnonzero(delays < NEVER)
    at = np.concatenate((np.arange(n) * 2, (rows + delays[rows]) * 2 + 1))
    order = np.argsort(at, kind="stable")
    kinds = np.repeat(np.array([PREDICT, LEARN], np.uint8), (n, len(rows)))
    return kinds[order], np.concatenate((np.arange(n), rows))[order]


def excess(sets: str, scores: Floats, labels: Integers, delays: Integers) -> float:
    """Return the log loss of what was served, less that of raw, in total."""
    model = made(sets)
    kinds, rows = ordered(delays)
    out = np.empty((len(rows), model.forecast_width))
    model.run(kinds, scores[rows], labels[rows], None, None, rows, out, None)
    losses = np.empty(model.mixture.experts + 1)
    model.mixture.losses(losses)
    return float(losses[-1] - losses[0])


@pytest.mark.parametrize("sets", SETS)
def test_labels_that_have_not_come_change_nothing(sets: str) -> None:
    """With other scores and labels from a step on, all predictions before are the same."""
    n, cut = 600, 350
    scores, labels = right(sets, n, 1)
    delays = np.random.default_rng(2).integers(0, 60, n)
    kinds, rows = ordered(delays)
    outs = []
    first = int(np.flatnonzero(rows == cut)[0])
    for changed in (False, True):
        its, own = scores[rows].copy(), labels[rows].copy()
        if changed:
            its[first:] = its[first:][::-1]
            own[first:] = (own[first:] + 1) % (CLASSES if sets == "classes" else 2)
        model = made(sets)
        out = np.empty((len(rows), model.forecast_width))
        model.run(kinds, its, own, None, None, rows, out, None)
        outs.append(out[:first])
    np.testing.assert_array_equal(outs[0], outs[1])


@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("seed", range(3))
def test_delays_that_tell_the_label(sets: str, seed: int) -> None:
    """Where one class comes late, what is right already loses at most .002 nats an event."""
    n = 20_000
    scores, labels = right(sets, n, seed)
    assert excess(sets, scores, labels, np.where(labels == 0, 1_000, 10)) <= 0.002 * n


@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("seed", range(3))
def test_labels_of_a_class_that_stop(sets: str, seed: int) -> None:
    """100 late, and then those of a class not for 2,000 events: at most 20 nats over raw."""
    n = 10_000
    scores, labels = right(sets, n, seed)
    delays = np.full(n, 100)
    stopped = (labels == 0) & (np.arange(n) >= 5_000) & (np.arange(n) < 7_000)
    delays[stopped] = 7_100 - np.flatnonzero(stopped)
    assert excess(sets, scores, labels, delays) <= 20.0

"""What exchangeability guarantees: one of p0 and p1 is perfectly calibrated.

Given the true label, select p_Y (p1 if Y = 1, else p0); then E[(Y - p_Y) g(p_Y)]
is 0 for every bounded g (Vovk & Petej 2014, Theorem 1). Here g are indicators of bins of p_Y, over
independent small bags, each with a test point of its own, all in one call of `run`. The bounds
hold for all bins at once with a probability of 1 - 1e-6, and planted faults must break them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.validity import EDGES, miscalibrated

from abers import VennAbers
from abers.arrays import LEARN, PREDICT, REMOVE

if TYPE_CHECKING:
    from numpy.typing import NDArray

pytestmark = pytest.mark.large(20_000, reference=6_000)

RULES: dict[str, dict[str, Any]] = {
    "unlimited": {},
    "window": {},  # of the size of the bag
    "max_age": {"max_age": 500.0},
    "half_life": {"half_life": 3.0},
}

Draws = tuple["NDArray[np.float64]", "NDArray[np.int64]"]
Pairs = tuple["NDArray[np.float64]", "NDArray[np.float64]"]


def draws(size: int, bag: int) -> Draws:
    """Independent rows of `bag` observations and a test point: scores with ties, fair to neither.

    The rate of label 1 falls where the score is large, so the model is worse than uncalibrated.
    """
    rng = np.random.default_rng(bag)
    scores = rng.random((size, bag + 1))
    scores = np.where(rng.random(scores.shape) < 0.5, np.round(scores, 1), scores)
    rates = np.where(scores < 0.8, 0.1 + 0.7 * scores, 0.3)
    return scores, (rng.random(scores.shape) < rates).astype(np.int64)


@cache
def predicted(size: int, rule: str, bag: int) -> tuple[Pairs, Draws]:
    """Predict the test point of each row from its bag; (p0, p1) and (scores, labels) of tests.

    Each row's bag replaces the one before: it fills the window, is too far ahead in time for the
    older to be kept, or is removed again.
    """
    options = {**RULES[rule], **({"window": bag} if rule == "window" else {})}
    scores, labels = draws(size, bag)
    steps = np.tile([LEARN] * bag + [PREDICT], (size, 1))
    times = np.arange(bag + 1) + 1000.0 * np.arange(size)[:, None]
    columns = [steps, scores, labels, times]
    if not options:
        columns = [np.concatenate([c, c[:, :bag]], axis=1) for c in columns]
        columns[0][:, bag + 1 :] = REMOVE
    steps, *rest, times = (column.ravel() for column in columns)
    aging = "max_age" in options or "half_life" in options
    p0, p1 = VennAbers(**options).run(steps, *rest, times=times if aging else None)
    return (p0[steps == PREDICT], p1[steps == PREDICT]), (scores[:, bag], labels[:, bag])


@pytest.mark.once
@pytest.mark.parametrize("bag", [5, 12])
@pytest.mark.parametrize("rule", ["unlimited", "window", "max_age"])
def test_selected_probability_is_calibrated(size: int, rule: str, bag: int) -> None:
    """With equal weights p_Y is calibrated in every bin, without and with forgetting."""
    (p0, p1), (_, labels) = predicted(size, rule, bag)
    p = np.where(labels == 1, p1, p0)
    assert len(np.unique(np.digitize(p, EDGES))) > 8
    assert miscalibrated(p, labels) == []


def test_a_swapped_pair_is_found(size: int) -> None:
    """The check fails where p0 and p1 are swapped."""
    (p0, p1), (_, labels) = predicted(size, "unlimited", 12)
    assert miscalibrated(np.where(labels == 1, p0, p1), labels)


@pytest.mark.parametrize("which", [0, 1])
def test_neither_probability_alone_is_calibrated(size: int, which: int) -> None:
    """The check fails for p0 by itself, and for p1 by itself."""
    pair, (_, labels) = predicted(size, "unlimited", 12)
    assert miscalibrated(pair[which], labels)


def test_half_life_weights_are_found(size: int) -> None:
    """The check fails with a half-life of three observations, which carries no guarantee."""
    (p0, p1), (_, labels) = predicted(size, "half_life", 12)
    assert miscalibrated(np.where(labels == 1, p1, p0), labels)


def test_score_as_probability_is_found(size: int) -> None:
    """The check fails for the uncalibrated scores themselves."""
    _, (scores, labels) = predicted(size, "unlimited", 5)
    assert miscalibrated(scores, labels)

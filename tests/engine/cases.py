"""Calibrators, streams and hypothesis strategies that several tests share.

What is drawn is hostile: few distinct scores so that ties abound, magnitudes from
the smallest to the largest double, and weights from one unit of 2**-30 to 2**20.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from abers import VennAbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXTREMES = (0.0, -0.0, 5e-324, -5e-324, 1.797e308, -1.797e308, 2.0**-1022, 1.0, 1.0 + 2.0**-52)
FEW = (0.1, 0.2, 0.25, 1 / 3, 0.5, 0.75)

SCORES = st.one_of(
    st.sampled_from(FEW),
    st.sampled_from(EXTREMES),
    st.integers(0, 9).map(lambda tenths: tenths / 10),
    st.floats(-1.797e308, 1.797e308),
)
BEYOND = 1.7975e308
"""Larger than every score that is drawn."""
LABELS = st.sampled_from((0, 1))
WEIGHTS = st.one_of(
    st.just(1.0),
    st.sampled_from((2.0**-30, 0.1, 0.5, 1 / 3, 3.0, 2.0**20)),
    st.floats(2.0**-30, 2.0**20),
)
GAPS = st.sampled_from((0.0, 0.0, 0.25, 1.0, 1 / 3, -0.5, -2.0, 7.0, 40.0))
"""From one event time to the next; some go back."""

SEEDS: list[Any] = [
    *range(6),
    *(pytest.param(seed, marks=pytest.mark.once) for seed in range(6, 40)),
    *(pytest.param(seed, marks=pytest.mark.long) for seed in range(40, 200)),
]
"""Seeds of long random streams: six on every build, and most in the long tests alone."""

OPTIONS: dict[str, dict[str, Any]] = {
    "unlimited": {},
    "window": {"window": 7},
    "max_age": {"max_age": 5.0},
    "half_life": {"half_life": 0.7},
}
"""One calibrator of each rule of forgetting."""

WORKED = ((0.1, 0.4, 0.35, 0.8), (0, 1, 0, 1))
"""The worked example: scores and labels."""


class Stream(NamedTuple):
    """A stream of observations; times only where the rule of forgetting has them."""

    scores: NDArray[np.float64]
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]
    times: NDArray[np.float64] | None


def aging(options: dict[str, Any]) -> bool:
    """Return whether a calibrator of these options wants times."""
    return "max_age" in options or "half_life" in options


def stream(options: dict[str, Any], n: int, seed: int = 0) -> Stream:
    """Make a stream with ties, unequal weights and times that mostly grow."""
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random(n) < 0.5, rng.integers(0, 8, n) / 8, rng.random(n))
    labels = (rng.random(n) < scores).astype(np.int64)
    weights = rng.choice(np.array([1.0, 1.0, 0.7, 2.5, 2.0**-30, 100.0]), n)
    gaps = rng.choice(np.array([0.0, 0.1, 0.5, -0.3, 4.0]), n, p=[0.3, 0.3, 0.2, 0.15, 0.05])
    times = np.cumsum(gaps)
    return Stream(scores, labels, weights, times if aging(options) else None)


def taught(options: dict[str, Any], n: int, seed: int = 0) -> VennAbers:
    """Make a calibrator that has learned `stream(options, n, seed)`."""
    calibrator = VennAbers(**options)
    scores, labels, weights, times = stream(options, n, seed)
    calibrator.learn_many(scores, labels, weights=weights, times=times)
    return calibrator


def native_exists() -> bool:
    """Return whether the native core was built (a folder of its sources is no module)."""
    spec = importlib.util.find_spec("abers._core")
    return spec is not None and spec.origin is not None


def check(calibrator: VennAbers) -> None:
    """Assert every invariant of the core."""
    calibrator._check()  # noqa: SLF001 - made for these tests


@st.composite
def observations(
    draw: st.DrawFn, max_size: int = 25, *, weighted: bool = True
) -> list[tuple[float, int, float]]:
    """Draw a bag of (score, label, weight)."""
    weights = WEIGHTS if weighted else st.just(1.0)
    return draw(st.lists(st.tuples(SCORES, LABELS, weights), max_size=max_size))

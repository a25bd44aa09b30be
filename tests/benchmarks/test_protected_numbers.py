"""Protected distributions on a real stream, against their base and IVAPR."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks import protected_numbers as study
from benchmarks.papers.streams_data import numbers
from benchmarks.papers.streams_numbers import fitted


@pytest.mark.native  # the reference takes minutes
@pytest.mark.parametrize("delay", [0, 100])
def test_chick_weights(delay: int) -> None:
    """The CRPS is below those of the base and of IVAPR; the coverage is within its bound."""
    stream = numbers(Path(), "Chick weights")
    mean, std, first = fitted(stream.x, stream.y, delay)
    y = stream.y[first:]
    base = mean[:, np.newaxis] + std[:, np.newaxis] * study.AT
    held, tracker, _ = study.protected(base, y, delay, stream.support)
    found = held.expert_losses()["protected"] / len(y)
    assert found < study.of_normal(mean, std, y, stream.support)
    assert found < study.of_ivapr(mean, y, delay, stream.support)
    assert held.lanes == delay + 1
    assert abs(tracker.coverage - study.LEVEL) <= tracker.bound

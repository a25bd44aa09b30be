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
    found = study.protected(base, y, delay, stream.support)
    scores = {
        "base": study.of_normal(mean, std, y, stream.support),
        "IVAPR": study.of_ivapr(mean, y, delay, stream.support),
        "protected": found.held.expert_losses()["protected"] / len(y),
    }
    study.require("", scores, found)
    assert found.held.lanes == delay + 1
    assert found.bound == (study.SLACK + delay + 1) / len(y)
    with pytest.raises(RuntimeError, match="not below"):
        study.require("", scores | {"base": 0.0}, found)
    with pytest.raises(RuntimeError, match="not within"):
        study.require("", scores, found._replace(bound=0.0))


def test_the_worst_labels_in_sequence() -> None:
    """The smallest share of hits is over 500 labels in sequence, or over all if there are fewer."""
    hits = np.repeat([1.0, 0.0, 1.0], [600, 100, 300])
    assert study.worst(hits) == 400 / 500
    assert study.worst(hits[550:650]) == 50 / 100

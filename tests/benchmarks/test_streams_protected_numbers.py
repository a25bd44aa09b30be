"""Protected distributions on a real stream, against their base and IVAPR."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers import streams_protected_numbers as study


@pytest.mark.parametrize("delay", [0, 100])
def test_chick_weights(delay: int) -> None:
    """The CRPS is below those of the base and of IVAPR; the coverage is within its bound."""
    spec = {"data": "Chick weights", "delay": delay, "rows": None}
    found = study.protected_numbers(Path(), spec)
    crps = found["CRPS"]
    assert crps["protected"] < min(crps["base"], crps["IVAPR"])
    assert crps["protected"] <= found["experts"]["base"] + found["price"]
    assert found["experts"]["base"] == pytest.approx(crps["base"], rel=5e-4)
    assert found["points"]["protected"] < found["points"]["base"]
    assert found["labels"] == 478 - delay
    assert found["price"] == pytest.approx((delay + 1) * 2 * 400 * np.log(2) / found["labels"])
    assert found["bound"] == (100 + delay + 1) / found["labels"]
    assert abs(found["coverage"]["tracked"]["share"] - study.LEVEL) <= found["bound"]


def test_coverage_and_width() -> None:
    """Ends are in the interval; an empty interval covers nothing, and its width is 0."""
    ends = np.array([[1.0, 2.0], [1.0, 2.0], [10.0, 0.0], [3.0, 8.0]])
    found = study.coverage(ends, np.array([2.0, 2.5, 5.0, 3.0]))
    assert found == {"share": 0.5, "worst": 0.5, "width": 7.0 / 4.0}


def test_the_worst_labels_in_sequence() -> None:
    """The smallest share of hits is over 500 labels in sequence, or over all if there are fewer."""
    hits = np.repeat([1.0, 0.0, 1.0], [600, 100, 300])
    assert study.worst(hits) == 400 / 500
    assert study.worst(hits[550:650]) == 50 / 100

"""Protected distributions on a real stream, against their base and rivals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers import streams_protected_numbers as study
from benchmarks.papers.streams_rivals_numbers import LEVEL
from benchmarks.papers.streams_worst import worst

SUPPORT = (0.0, 10.0)


@pytest.mark.parametrize(("law", "delay"), [("at once", 0), ("very late", 100), ("by label", None)])
def test_chick_weights(law: str, delay: int | None) -> None:
    """The CRPS is below those of the base and of IVAPR; the coverage is within its bound."""
    found = study.protected_numbers(Path(), {"data": "Chick weights", "law": law, "rows": None})
    methods, experts, labels = found["methods"], found["experts"], found["labels"]
    crps = {name: row["CRPS"] for name, row in methods.items() if "CRPS" in row}
    assert crps["protected"] < min(crps["base"], crps["IVAPR"])
    assert crps["protected"] <= experts["base"] + found["price"]
    assert experts["base"] == pytest.approx(crps["base"], rel=1e-3)
    assert experts["residuals_100"] == pytest.approx(crps["residuals, 100"], rel=5e-3)
    assert found["points"]["protected"] < found["points"]["base"]
    assert abs(methods["tracked"]["share"] - LEVEL) <= found["bound"]
    intervals = {"tracked", "PID, C 5", "PID, C by length", "ACI", "SAOCP"}
    assert {*methods} - {*crps} == intervals
    if delay is not None:
        assert labels == 478 - delay
        assert found["price"] == pytest.approx((delay + 1) * 2 * 400 * np.log(2) / labels)
        assert found["bound"] == (100 + delay + 1) / labels


def test_intervals() -> None:
    """Ends are in the interval; an empty one covers nothing, has width 0, and its middle's loss."""
    ends = np.array([[1.0, 2.0], [-5.0, 2.0], [np.inf, -np.inf], [3.0, 8.0]])
    found = study.of_interval(ends, np.array([2.0, 2.5, 3.0, 3.0]), SUPPORT)
    pinball = 0.1 * 1.0, 0.1 * 2.5 + 0.9 * 0.5, (0.1 + 0.9) * 2.0, 0.1 * 5.0
    assert found["score"] == pytest.approx(sum(pinball) / 4)
    assert (found["share"], found["least"], found["width"]) == (0.5, 0.5, 8.0 / 4.0)


def test_the_worst_labels_in_sequence() -> None:
    """The largest mean loss is over 500 labels in sequence, or over all if there are fewer."""
    losses = np.repeat([0.0, 1.0, 0.0], [600, 100, 300])
    assert worst(losses) == 100 / 500
    assert worst(losses[550:650]) == 50 / 100

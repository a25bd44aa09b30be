"""The page of verdicts on real streams, on a stream whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.verdict_real_streams import section, shares, watch


def test_shares_are_of_the_lower_and_the_upper_half() -> None:
    """Each half has its mean forecast and its share of label 1."""
    found = shares(np.array([0.125, 0.75, 0.25, 1.0]), np.array([0, 1, 1, 1]))
    assert found == (0.1875, 0.5, 0.875, 1.0)


def test_a_section_has_verdicts_beside_the_shares() -> None:
    """Every row is forecast once, before its label; scores with twice the odds are too high."""
    rng = np.random.default_rng(2)
    scores = rng.uniform(0.05, 0.95, 2_500)
    odds = scores / (1.0 - scores) / 2.0
    labels = (rng.random(2_500) < odds / (1.0 + odds)).astype(np.int64)
    found = watch(scores, labels, 100)
    assert len(found.served) == 2_500
    assert found.served[:100] == pytest.approx(scores[:100], abs=0.02), "no label has come"
    raw, _ = found.monitor.verdicts
    assert raw.status == "too high"
    text = section("A stream", found)
    assert text.count("\n| 2,000 to 2,500 |") == 2
    lower, _, upper, share = (f"{one:.3f}" for one in shares(scores[2_000:], labels[2_000:]))
    assert f"| {lower} |" in text
    assert f"| {upper} | {share} |" in text
    assert f"**Raw scores.** {raw.sentence}" in text

"""Guide to how many labels a verdict needs, `abers.monitoring.forecast_groups`."""

from __future__ import annotations

import numpy as np
import pytest

from abers.monitoring import ForecastGroups, VerdictSequence, label_needs

LEVEL = 0.05 / 2  # of the first block
# docs/evidence/verdicts.md; benchmarks/verdict_reference.py computes it with scipy, without abers.
REFERENCE = 10_706


def sums(n: int, seed: int, tolerance: float = 1.25) -> ForecastGroups:
    """Return the sums of right forecasts from Beta(2, 5)."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 5, n)
    groups = ForecastGroups(tolerance)
    groups.update(p, rng.random(n) < p)
    return groups


def test_the_guide_is_near_the_reference() -> None:
    """The number for right forecasts is that of the evidence page, up to what chance explains."""
    for n, error in ((50_000, 0.05), (300, 0.3)):
        right, _ = label_needs(sums(n, 1), LEVEL)
        assert right.labels == pytest.approx(REFERENCE, rel=error)


@pytest.mark.once
@pytest.mark.parametrize(("factor", "status"), [(1.0, "trustworthy"), (1.5, "too high")])
def test_with_as_many_labels_the_statement_is_made(factor: float, status: str) -> None:
    """With as many labels as the guide names, nearly every stream has the verdict."""
    needs = label_needs(sums(1_000, 1), LEVEL)
    needed = needs[factor > 1.0].labels
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.beta(2, 5, needed)
        odds = p / (1.0 - p) / factor
        sequence = VerdictSequence("raw", 1.25)
        labels = (rng.random(needed) < odds / (1.0 + odds)).astype(float)
        sequence.update(p, labels, np.arange(needed))
        found += sequence.verdict().status == status
    assert found >= 38


def test_what_came_is_taken_off() -> None:
    """The labels that are missing are the needed ones less those that came, and never below 0."""
    needs = label_needs(sums(3_000, 1), LEVEL)
    assert [one.more for one in needs] == [
        pytest.approx(one.labels - 3_000, abs=100) for one in needs
    ]
    assert [one.more for one in label_needs(sums(50_000, 1), LEVEL)] == [0, 0]


def test_a_narrow_tolerance_needs_more() -> None:
    """A tolerance of 1.1 needs more labels than one of 1.25; one of 1 is never established."""
    few, more = (label_needs(sums(300, 1, one), LEVEL)[0].labels for one in (1.25, 1.1))
    assert more > 3 * few
    (wrong,) = label_needs(sums(300, 1, 1.0), LEVEL)
    assert "1.2 times too high" in wrong.statement


def test_nothing_to_say() -> None:
    """Without labels, or with forecasts of 0 and 1 alone, there is no guide."""
    groups = ForecastGroups(1.25)
    assert label_needs(groups, LEVEL) == []
    groups.update([0.0, 1.0], [0, 1])
    assert label_needs(groups, LEVEL) == []


def test_a_sequence_asks_at_its_own_level() -> None:
    """A later block has a smaller level, and needs more labels."""
    sequence = VerdictSequence("raw", 1.25)
    rng = np.random.default_rng(1)
    p = rng.beta(2, 5, 300)
    rows = p, (rng.random(300) < p).astype(float), np.arange(300)
    sequence.update(*rows)
    first = sequence.label_needs()
    sequence.restart(300)
    assert sequence.label_needs() == []
    sequence.update(*rows)
    assert sequence.label_needs()[0].labels > first[0].labels

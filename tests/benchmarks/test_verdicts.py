"""Verdicts on streams of known truth, in a shorter form than the page of evidence."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from benchmarks import verdict_reference as reference
from benchmarks import verdicts
from benchmarks.verdict_streams import (
    ALPHA,
    Case,
    borderline,
    is_true,
    off,
    others,
    powerful,
    simulate,
)

from abers.monitoring import ForecastGroup
from abers.monitoring.forecast_groups import OVER_CONFIDENT, TOO_HIGH, TOO_LOW, TRUSTWORTHY

if TYPE_CHECKING:
    from pathlib import Path

MANY = pytest.mark.parametrize("runs", [40, pytest.param(60, marks=pytest.mark.long)])
SOME = pytest.mark.parametrize("runs", [12, pytest.param(20, marks=pytest.mark.long)])


def most(runs: int) -> float:
    """Return the number of runs that may have wrong claims: alpha and three standard errors."""
    return runs * ALPHA + 3.0 * math.sqrt(runs * ALPHA * (1.0 - ALPHA))


@pytest.mark.simulation
@MANY
@pytest.mark.parametrize("case", borderline(), ids=lambda case: case.name)
def test_wrong_claims(case: Case, runs: int) -> None:
    """Few runs have a claim that is wrong at any time, also where truth is on the tolerance."""
    case = case._replace(labels=10_000)
    wrong = sum(simulate(case, [1, seed]).wrong for seed in range(runs))
    assert wrong <= most(runs)


@pytest.mark.simulation
@MANY
@pytest.mark.parametrize(
    "case", [one for one in powerful() if one.labels < 20_000], ids=lambda case: case.name
)
def test_right_verdicts(case: Case, runs: int) -> None:
    """Where the reference has a power of 99 %, nearly all verdicts are right."""
    results = [simulate(case, [2, seed]) for seed in range(runs)]
    assert sum(one.right for one in results) >= 0.94 * runs
    assert sum(one.wrong for one in results) <= most(runs)


@pytest.mark.simulation
@SOME
@pytest.mark.parametrize(
    "case", [one for one in others() if one.labels <= 60_000], ids=lambda case: case.name
)
def test_other_streams(case: Case, runs: int) -> None:
    """Verdicts follow a stream that changes, and hold for classes."""
    results = [simulate(case, [3, seed]) for seed in range(runs)]
    assert sum(one.right for one in results) >= 0.9 * runs
    assert sum(one.wrong for one in results) <= most(runs)


def group(observed: float) -> ForecastGroup:
    """Return a group of 10 forecasts of 0.5 with a sum of true probabilities."""
    return ForecastGroup(10.0, observed, 5.0, 2.5, 4.0, 6.0)


@pytest.mark.parametrize(
    ("sums", "status", "index", "true"),
    [
        ((5.0, 5.0, 5.0), TRUSTWORTHY, 0, True),
        ((5.0, 4.0, 5.0), TRUSTWORTHY, 0, False),  # on the edge
        ((3.9, 5.0, 5.0), TOO_HIGH, 0, True),
        ((4.0, 5.0, 5.0), TOO_HIGH, 0, False),
        ((5.0, 3.9, 3.9), TOO_HIGH, 0, True),
        ((5.0, 6.1, 5.0), TOO_LOW, 1, True),
        ((5.0, 5.0, 3.0), OVER_CONFIDENT, 2, True),
        ((5.0, 3.0, 3.0), OVER_CONFIDENT, 2, False),
    ],
)
def test_truth(sums: tuple[float, ...], status: str, index: int, *, true: bool) -> None:
    """A claim is true only strictly beyond, or within, the tolerance."""
    groups = [group(one) for one in sums] + [group(5.0)] * 10
    assert is_true(groups, status, index) is true


def test_labels_needed() -> None:
    """The reference has its power at the number of labels that it returns, and not much before."""
    p = reference.quantiles(2, 5)
    model = reference.Model(p, off(p, 1.5))
    for boundary, alpha in ((reference.mixture, 0.025), (reference.fixed, 0.05)):
        n = reference.labels_needed(model, reference.TOO_HIGH, 1.25, boundary, alpha)
        power = [
            reference.power(model, reference.TOO_HIGH, 1.25, of * n, boundary, alpha)
            for of in (0.98, 1.0)
        ]
        assert power[0] < 0.99 <= power[1]


def test_fixed_boundary_by_simulation() -> None:
    """At a fixed n the reference's power is that of labels that are drawn."""
    p = np.full(3, 0.5)
    model = reference.Model(p, np.full(3, 0.4))
    n, end = 1_000, 0.5 / (0.5 + 0.5 * 1.25)
    labels = np.random.default_rng(1).binomial(n, 0.4, 20_000)
    found = (n * end - labels >= reference.fixed(n * 0.25, 0.05 / 8)).mean()
    power = reference.power(model, reference.TOO_HIGH, 1.25, n, reference.fixed, 0.05)
    assert found == pytest.approx(power, abs=0.02)


def test_page(tmp_path: Path) -> None:
    """The page is written from what is kept, without a run."""
    lines = [
        verdicts.Answer(kind, case.name, case.labels, 1_000, 990, 700, 12, 5_000.0)
        for kind in verdicts.KINDS
        for case in verdicts.cases(kind)
    ]
    file, page = tmp_path / "answers", tmp_path / "page"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    given = ["--workers", "1", "--streams", "1"]
    verdicts.main(["--answers", str(file), "--output", str(page), *given])
    right = [line for line in page.read_text().splitlines() if line.startswith("| right | 1,000")]
    assert right == [
        "| right | 1,000 | 7,245 | 70.0% | 10,706 | 99.0% | 1.2% | 5,000 |",
        "| right | 1,000 | 50,000 | 1.2% |",
    ]

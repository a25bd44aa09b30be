"""CORP reliability diagrams, against their definition in fractions and a published table."""

from __future__ import annotations

import csv
import math
import os
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from abers import LabelError, ParameterError, ScoreError
from abers.monitoring import Decomposition, Diagram, corp

Pairs = list[tuple[float, int]]

FORECASTS = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
PAIRS = st.lists(st.tuples(FORECASTS, st.integers(0, 1)), min_size=1, max_size=40)
INNER = st.lists(st.tuples(st.floats(0.01, 0.99), st.integers(0, 1)), min_size=1, max_size=40)


def drawn(pairs: Pairs) -> Diagram:
    """Make the diagram of forecasts with their labels."""
    return corp([p for p, _ in pairs], [y for _, y in pairs])


def recalibrated(pairs: Pairs) -> dict[float, Fraction]:
    """Return the recalibrated forecasts: max over lower ends of min over upper ends."""
    labels = {
        p: [y for _, y in group] for p, group in groupby(sorted(pairs), key=lambda one: one[0])
    }
    values = [*labels]

    def share(first: int, last: int) -> Fraction:
        inside = [y for p in values[first : last + 1] for y in labels[p]]
        return Fraction(sum(inside), len(inside))

    return {
        p: max(min(share(a, b) for b in range(i, len(values))) for a in range(i + 1))
        for i, p in enumerate(values)
    }


def brier(pairs: list[tuple[Fraction, int]]) -> Fraction:
    """Return the mean squared distance of forecast and label."""
    return sum((y - p) ** 2 for p, y in pairs) / Fraction(len(pairs))


def log_loss(pairs: Pairs) -> float:
    """Return the mean negative log probability of the label."""
    return -math.fsum(math.log(p if y else 1.0 - p) for p, y in pairs) / len(pairs)


@given(pairs=PAIRS)
def test_blocks_are_the_isotonic_regression(pairs: Pairs) -> None:
    """Each forecast lies in one block, whose probability is the max-min of shares, rounded once."""
    diagram, expected = drawn(pairs), recalibrated(pairs)
    blocks = zip(
        diagram.lower, diagram.upper, diagram.probability, diagram.count, diagram.positives,
        strict=True,
    )  # fmt: skip
    before = -1.0
    for lower, upper, probability, count, positives in blocks:
        inside = [(p, y) for p, y in pairs if lower <= p <= upper]
        assert {float(expected[p]) for p, _ in inside} == {probability}
        assert (len(inside), sum(y for _, y in inside)) == (count, positives)
        assert probability > before
        before = probability
    assert diagram.count.sum() == len(pairs)


@given(pairs=PAIRS)
def test_brier_decomposition(pairs: Pairs) -> None:
    """Score, miscalibration, discrimination and uncertainty are those of the definition."""
    fit, share = recalibrated(pairs), Fraction(sum(y for _, y in pairs), len(pairs))
    score, best, worst = (
        brier([(of(p), y) for p, y in pairs]) for of in (Fraction, fit.__getitem__, lambda _: share)
    )
    assert score >= best <= worst  # so that nothing but rounding is cut off
    found = drawn(pairs).decomposition()
    expected = (score, score - best, worst - best, worst)
    assert found == pytest.approx([*map(float, expected)], abs=1e-14)
    assert min(found) >= 0.0
    assert found.score == pytest.approx(
        found.miscalibration - found.discrimination + found.uncertainty, abs=1e-14
    )


@given(pairs=INNER)
def test_log_loss_decomposition(pairs: Pairs) -> None:
    """The same blocks decompose the log loss."""
    fit, share = recalibrated(pairs), sum(y for _, y in pairs) / len(pairs)
    best = log_loss([(float(fit[p]), y) for p, y in pairs])
    worst = log_loss([(share, y) for _, y in pairs])
    score = log_loss(pairs)
    found = drawn(pairs).decomposition("log")
    assert found == pytest.approx([score, score - best, worst - best, worst], abs=1e-12)
    assert min(found) >= 0.0


@given(pairs=PAIRS, seed=st.integers(0, 99))
def test_order_makes_no_difference(pairs: Pairs, seed: int) -> None:
    """The diagram is one of a set of forecasts: their order does not matter."""
    order = np.random.default_rng(seed).permutation(len(pairs)).tolist()
    one, other = drawn(pairs), drawn([pairs[i] for i in order])
    assert one.lower.tolist() == other.lower.tolist()
    assert one.decomposition() == other.decomposition()


def test_scikit_learn_fits_the_same() -> None:
    """On continuous forecasts the fit is that of scikit-learn."""
    rng = np.random.default_rng(1)
    forecasts = rng.random(500)
    labels = (rng.random(500) < forecasts**2).astype(int)
    diagram = corp(forecasts, labels)
    found = diagram.probability[np.searchsorted(diagram.upper, forecasts)]
    assert found == pytest.approx(IsotonicRegression().fit_transform(forecasts, labels), abs=1e-12)


def test_an_impossible_label_costs_an_infinite_log_loss() -> None:
    """A label with forecast 0 makes the miscalibration infinite, and the other parts finite."""
    found = corp([0.0, 0.0, 1.0], [0, 1, 1]).decomposition("log")
    assert (found.score, found.miscalibration) == (math.inf, math.inf)
    assert (
        0.0
        < found.discrimination
        < found.uncertainty
        == pytest.approx(math.log(3) - 2 / 3 * math.log(2))
    )


def test_forecasts_that_are_certain_and_right_lose_nothing() -> None:
    """Certain and correct forecasts have no loss in any part."""
    assert corp([0.0, 1.0], [0, 1]).decomposition("log")[:2] == (0.0, 0.0)


def test_nothing_yet() -> None:
    """Without a forecast there is no block, and every part is not a number."""
    diagram = corp([], [])
    assert diagram.probability.shape == diagram.bands().forecast.shape == (0,)
    assert all(map(math.isnan, diagram.decomposition()))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "score", "miscalibration", "discrimination"),
    [
        ("Logistic", 0.205746, 0.017076, 0.055541),
        ("EMOS", 0.232025, 0.018283, 0.030469),
        ("ENS", 0.266168, 0.066072, 0.044115),
        ("EPC", 0.234282, 0.022350, 0.032279),
    ],
)
def test_precipitation(
    name: str, score: float, miscalibration: float, discrimination: float
) -> None:
    """The published decompositions of precipitation forecasts are reproduced to the last digit."""
    path = Path(os.environ["ABERS_DATA"]) / "precip_niamey_2016.csv"
    with path.open() as file:
        rows = [*csv.DictReader(file)]
    found = drawn([(float(row[name]), int(float(row["obs"]))) for row in rows]).decomposition()
    rounded = Decomposition(*(round(part, 6) for part in found))
    assert rounded == (score, miscalibration, discrimination, 0.244211)


# Consistency bands


def test_bands_hold_calibrated_forecasts() -> None:
    """Of diagrams of calibrated forecasts nine in ten lie in the band at each forecast."""
    rng = np.random.default_rng(2)
    forecasts = np.repeat(np.arange(1, 20) / 20, 60)
    bands = corp(forecasts, np.zeros(len(forecasts))).bands(0.9, resamples=1_000)
    inside = []
    for _ in range(400):
        diagram = corp(forecasts, rng.random(len(forecasts)) < forecasts)
        found = diagram.probability[np.searchsorted(diagram.upper, bands.forecast)]
        inside.append((bands.lower <= found) & (found <= bands.upper))
    assert np.mean(inside, axis=0) == pytest.approx(0.91, abs=0.05)


def test_bands_do_not_hold_forecasts_that_are_wrong() -> None:
    """A diagram of forecasts that are far too low leaves its band."""
    forecasts = np.repeat([0.1, 0.2, 0.3], 200)
    diagram = corp(forecasts, np.random.default_rng(3).random(600) < forecasts + 0.2)
    assert (diagram.probability > diagram.bands().upper).all()


def test_bands_hold_the_diagonal() -> None:
    """The band contains a forecast even if nearly all diagrams lie on one side of it."""
    bands = corp([0.1, 0.9], [0, 1]).bands(0.5)
    assert (bands.lower.tolist(), bands.upper.tolist()) == ([0.0, 0.9], [0.1, 1.0])


def test_what_is_certain_has_a_band_without_width() -> None:
    """Labels of forecasts of 0 and 1 can only be drawn in one way."""
    bands = corp([0.0, 1.0], [0, 1]).bands()
    assert bands.lower.tolist() == bands.upper.tolist() == [0.0, 1.0]


def test_bands_are_of_their_seed() -> None:
    """Equal seeds draw equal bands, others do not."""
    diagram = corp(np.arange(1, 100) / 100, np.arange(99) % 2)
    one, same, other = (diagram.bands(seed=seed).lower.tolist() for seed in (4, 4, 5))
    assert one == same != other


def test_a_higher_level_has_a_wider_band() -> None:
    """A higher level gives a wider band."""
    diagram = corp(np.arange(1, 100) / 100, np.arange(99) % 2)
    narrow, wide = diagram.bands(0.5), diagram.bands(0.95)
    assert (wide.lower <= narrow.lower).all()
    assert (wide.upper - wide.lower).sum() > (narrow.upper - narrow.lower).sum()


# What is refused


@pytest.mark.parametrize("level", [0.0, 1.0, math.nan])
def test_a_level_that_is_none(level: float) -> None:
    """A level must lie strictly between 0 and 1."""
    with pytest.raises(ParameterError, match="level="):
        corp([0.5], [1]).bands(level)


def test_bands_of_no_draw() -> None:
    """Bands need at least one draw."""
    with pytest.raises(ParameterError, match="resamples=0"):
        corp([0.5], [1]).bands(resamples=0)


@pytest.mark.parametrize(
    ("forecasts", "labels", "error"),
    [
        ([0.5, 1.5], [0, 1], ScoreError),
        ([0.5, "a"], [0, 1], ScoreError),
        ([0.5, [0.5, 0.5]], [0, 1], ParameterError),
        ("a", [0], ParameterError),
        ([0.5], [2], LabelError),
        ([0.5], [1, 0], ParameterError),
    ],
)
def test_bad_rows(forecasts: Any, labels: list[int], error: type[Exception]) -> None:  # noqa: ANN401
    """Invalid forecasts and labels, and unequal numbers of them, are refused."""
    with pytest.raises(error):
        corp(forecasts, labels)


def test_a_diagram_shows_its_parts() -> None:
    """The repr has the number of labels and blocks, and the parts of the Brier score."""
    diagram = corp([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 0])
    parts = "score 0.1875, miscalibration 0.0625, discrimination 0.0625, uncertainty 0.1875"
    assert repr(diagram) == f"Diagram of 4 labels in 2 blocks: Brier {parts}"
    assert repr(corp([], [])).startswith("Diagram of 0 labels in 0 blocks: Brier score nan")

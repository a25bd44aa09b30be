"""Weights of `abers.report` and of `plotting.reliability`; the oracle repeats rows."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import abers
from abers import ParameterError, WeightError, plotting

if TYPE_CHECKING:
    from pathlib import Path

PARTS = 4096
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(1, PARTS - 1), st.integers(0, 3)),
    min_size=1,
    max_size=40,
).filter(lambda rows: any(weight for *_, weight in rows))


def columns(rows: list[tuple[int, int, int]]) -> tuple[list[int], list[float], list[int]]:
    """Return labels, forecasts and weights."""
    return [y for y, _, _ in rows], [n / PARTS for _, n, _ in rows], [w for *_, w in rows]


def shown(figure: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a figure
    """Return what a figure has of the labels: the diagram, the histogram, the rows of its table."""
    return figure.data["views"], figure.data["counts"], figure.rows


@given(ROWS)
def test_a_weight_counts_as_repeated_rows(rows: list[tuple[int, int, int]]) -> None:
    """Scores, diagram and histogram are those of each row as often as its weight says."""
    y, p, weight = columns(rows)
    found = abers.report(y, p, weight=weight)
    repeated = abers.report(np.repeat(y, weight), np.repeat(p, weight))
    assert found.log_loss == pytest.approx(repeated.log_loss, rel=1e-13)
    assert found.brier == pytest.approx(repeated.brier, rel=1e-13)
    assert found.ece == pytest.approx(repeated.ece, rel=1e-12, abs=1e-15)
    assert found.weight == sum(weight) == repeated.labels
    assert found.labels == sum(one > 0 for one in weight)
    assert shown(found.figures[0]) == shown(repeated.figures[0])


@given(ROWS)
def test_scores_by_their_definition(rows: list[tuple[int, int, int]]) -> None:
    """Brier score and calibration error are the fractions of their definitions, rounded."""
    y, p, weight = columns(rows)
    halves = [one / 2 for one in weight]
    found = abers.report(y, p, weight=halves)
    total = Fraction(sum(weight), 2)
    squares = [w * (y - Fraction(n, PARTS)) ** 2 / 2 for y, n, w in rows]
    assert found.brier == pytest.approx(float(sum(squares) / total), rel=1e-14)
    gaps: dict[int, Fraction] = {}
    for label, number, w in rows:
        share = Fraction(number, PARTS)
        gaps[int(10 * share)] = gaps.get(int(10 * share), Fraction(0)) + w * (share - label) / 2
    error = sum((abs(one) for one in gaps.values()), Fraction(0)) / total
    assert found.ece == pytest.approx(float(error), rel=1e-13, abs=1e-16)


def test_equal_weights_change_nothing_but_their_sum() -> None:
    """With weights that are all equal, scores, verdicts and the table are those without any."""
    rng = np.random.default_rng(1)
    p = rng.integers(1, PARTS, 3_000) / PARTS
    y, time = (rng.random(3_000) < p).astype(int), rng.permutation(3_000)
    names = np.where(p < 0.5, "low", "high")
    plain = abers.report(y, p, time, names)
    found = abers.report(y, p, time, names, weight=np.full(3_000, 0.25))
    assert found.verdict == plain.verdict
    assert found.verdicts == plain.verdicts
    assert found.answers == plain.answers
    assert found.weight == 750.0
    for name in ("log_loss", "brier", "ece"):
        assert getattr(found, name) == pytest.approx(getattr(plain, name), rel=1e-12)
    views = (found.figures[0].data["views"], plain.figures[0].data["views"])
    assert views[0] == views[1]


def test_rows_of_weight_zero_are_left_out() -> None:
    """The report is that without them, also of the verdicts, however the rows are sorted."""
    y, p, time = [0, 1, 1, 0, 1], [0.25, 0.5, 0.0, 0.75, 0.5], [5, 4, 3, 2, 1]
    found = abers.report(y, p, time, [*"aabba"], weight=[1.0, 2.0, 0.0, 0.5, 1])
    left_y, left_p, left_time = ([*one[:2], *one[3:]] for one in (y, p, time))
    expected = abers.report(left_y, left_p, left_time, [*"aaba"], weight=[1.0, 2.0, 0.5, 1])
    assert found == expected
    assert math.isfinite(found.log_loss)
    assert abers.report(y, p, weight=[0, 0, 1e-6, 0, 0]).log_loss == math.inf


def test_the_band_is_that_of_the_labels_that_there_are() -> None:
    """A few rows of great weight have as wide a band as without: drawn labels are independent."""
    y, p = [0, 1] * 30, [0.5] * 60
    bands = [
        abers.report(y, p, weight=weight).figures[0].data["bands"]["forecasts"]
        for weight in ([1] * 60, [1_000] * 60)
    ]
    assert bands[0] == bands[1]
    [low], [high] = bands[0][1:]
    assert 0.35 < low < 0.45
    assert 0.55 < high < 0.65


def test_text_page_and_json_say_what_weights_do(tmp_path: Path) -> None:
    """All have scores by weight, and say that answers count each label once."""
    report = abers.report([0, 1, 1], [0.25, 0.75, 0.5], weight=[0.5, 1.25, 2_000])
    note = "Weights count in the scores and in .plots(). Answers count each label once; they are"
    said, html = " ".join(str(report).split()), report._repr_html_()
    assert f"3 labels by weight: log loss {report.log_loss:.3f}" in said
    assert f"Brier score {report.brier:.4f}" in said
    assert note in said
    assert note in html
    assert "weights add up to 2,001.75" in html
    assert f"{report.brier:.4f}" in html
    report.save(tmp_path / "report.json")
    saved = json.loads((tmp_path / "report.json").read_text())
    assert saved["weight"] == 2001.75
    assert saved["brier"] == report.brier
    assert saved["notes"][0].startswith(note)
    assert saved["figures"][0]["columns"][-1] == "weight"
    plain = abers.report([0, 1], [0.25, 0.75])
    assert (plain.weight, note in plain._repr_html_()) == (None, False)


@pytest.mark.parametrize("call", [abers.report, plotting.reliability])
@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        ([1, -1], WeightError, "row 1: weight -1.* is out of range"),
        ([1, np.nan], WeightError, "row 1: weight nan is not a finite number"),
        ([np.inf, 1], WeightError, "row 0: weight inf is not a finite number"),
        ([1, None], WeightError, "row 1: weight None is not a finite number"),
        (["a", 1], WeightError, "row 0: weight 'a' is not a finite number"),
        ([1e-12, 1], WeightError, "row 0: weight 1e-12 is out of range"),
        ([8e9, 8e9], WeightError, "the weights add up to more than 8589934591; divide all of them"),
        ([1, 1, 1], ParameterError, "weight has 3 rows, p has 2"),
        ([[1, 1]], ParameterError, "weight must be one-dimensional"),
        ([0, 0], ParameterError, "weight is zero in every row"),
    ],
)
def test_weights_that_cannot_be_used(
    call: Any,  # noqa: ANN401 - either function
    weight: Any,  # noqa: ANN401 - anything
    error: type[Exception],
    message: str,
) -> None:
    """Each weight is a finite number of 0 or more; the error names the row."""
    with pytest.raises(error, match=message):
        call([0, 1], [0.25, 0.75], weight=weight)


def test_weights_of_any_kind() -> None:
    """Columns of Arrow, truths and whole numbers are weights; nothing is one of no rows."""
    plain = abers.report([0, 1, 1], [0.25, 0.75, 0.5], weight=[1.0, 0.0, 1.0])
    for weight in (pa.array([1, 0, 1]), [True, False, True], np.array([1, 0, 1], np.uint8)):
        assert abers.report([0, 1, 1], [0.25, 0.75, 0.5], weight=weight) == plain
    assert abers.report([], [], weight=[]).labels == 0


@given(ROWS)
def test_drawn_points_are_those_of_repeated_rows(rows: list[tuple[int, int, int]]) -> None:
    """Mean forecast and share of each bin are those of each row as often as its weight says."""
    y, p, weight = columns(rows)
    found = plotting.reliability(y, p, weight=weight).data[1]
    repeated = plotting.reliability(np.repeat(y, weight), np.repeat(p, weight)).data[1]
    for name in ("x", "y"):
        assert getattr(found, name) == pytest.approx(getattr(repeated, name), rel=1e-14)


def test_error_bars_of_weights() -> None:
    """They are two standard errors of as many rows of equal weight as are worth these."""
    y, p, weight = [0, 1, 1, 0], [0.5] * 4, np.array([1.0, 2.0, 3.0, 4.0])
    [bar] = plotting.reliability(y, p, weight=weight).data[1].error_y.array
    worth = weight.sum() ** 2 / (weight**2).sum()
    assert bar == pytest.approx(2.0 * math.sqrt(0.5 * 0.5 / worth), rel=1e-14)

"""Mistakes in the columns of a report: each is an error that names value, place and remedy."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

import abers
from abers import InputError, LabelError, ParameterError, ScoreError, TimeError
from abers.plotting import reliability

DAY = datetime(2026, 1, 1, tzinfo=UTC)
NAN = float("nan")

COLUMNS: list[tuple[dict[str, Any], type[InputError], str]] = [
    ({"y": [0, 1], "p": [0.1]}, ParameterError, "y has 2 rows, p has 1"),
    ({"y": [0, 2], "p": [0.1, 0.2]}, LabelError, "row 1: label 2 is not 0 or 1; map the positive"),
    ({"y": [0, -1], "p": [0.1, 0.2]}, LabelError, "row 1: label -1 is not 0 or 1; map"),
    ({"y": ["no", "yes"], "p": [0.1, 0.2]}, LabelError, "row 0: label 'no' is not 0 or 1; map"),
    ({"y": [0.1, 0.9], "p": [0, 1]}, LabelError, "row 0: label 0.1 .* labels are the first"),
    ({"y": 1, "p": [0.5]}, ParameterError, r"y must be .*\(\); pass a list or an array"),
    ({"y": [[0], [1]], "p": [0.1, 0.2]}, ParameterError, r"y must be one-dimensional.*\[:, 0\]"),
    ({"y": [0, 1], "p": [0.1, NAN]}, ScoreError, "row 1: score nan is not a finite .* drop the"),
    ({"y": [0, 1], "p": [0.1, 20]}, ScoreError, r"row 1: forecast 20\.0 .* divide percentages"),
    ({"y": [0, 1], "p": [-0.1, 0]}, ScoreError, r"row 0: forecast -0\.1 is not a probability"),
    ({"y": [0, 1], "p": ["a", "b"]}, ScoreError, "row 0: score 'a' is not a finite number"),
    (
        {"y": [0, 1], "p": [[0.9, 0.1], [0.8, 0.2]]},
        ParameterError,
        r"p must be one-dimensional, not of shape \(2, 2\); pass one column, such as p\[:, 1\]",
    ),
]
UNKNOWN: list[tuple[dict[str, Any], type[InputError], str]] = [
    ({"y": [0, None], "p": [0.1, 0.2]}, LabelError, "row 1: label None is not .* drop rows "),
    ({"y": [0, NAN], "p": [0.1, 0.2]}, LabelError, "row 1: label nan is not .* drop rows without"),
    (
        {"y": pd.Series([1, None], dtype="Int64"), "p": [0.1, 0.2]},
        LabelError,
        "row 1: label .* drop rows without a label",
    ),
    (
        {"y": np.ma.array([0, 1], mask=[False, True]), "p": [0.1, 0.2]},
        LabelError,
        "row 1: label nan .* drop rows without a label",
    ),
]
OTHERS: list[tuple[dict[str, Any], type[InputError], str]] = [
    ({"p": np.ones((2, 3)) / 3}, ParameterError, "p has 3 columns; of several classes pass a dict"),
    ({"time": [1]}, ParameterError, "time has 1 rows, p has 2"),
    ({"time": [1, None]}, TimeError, "row 1: time None is not a time; times are milliseconds"),
    ({"time": [1, NAN]}, TimeError, "row 1: time nan is not a time"),
    ({"time": [1, 1e300]}, TimeError, r"row 1: time 1e\+300 is not a time"),
    ({"time": ["2026-01-01", "b"]}, TimeError, "row 0: time '2026-01-01' .* pandas.to_datetime"),
    ({"time": [DAY, pd.NaT]}, TimeError, "row 1: time NaT is not a time"),
    ({"time": pd.to_datetime(["2026-01-01", None])}, TimeError, "row 1: time None is not a time"),
    ({"model": ["a"]}, ParameterError, "model has 1 rows, p has 2"),
    ({"segment": ["a"] * 3}, ParameterError, "segment has 3 rows, p has 2"),
    ({"model": ["a", None]}, ParameterError, "row 1: the model is missing; name it, or drop"),
    ({"model": [1.0, NAN]}, ParameterError, "row 1: the model is missing"),
    ({"segment": pd.Series(["a", pd.NA])}, ParameterError, "row 1: the segment is missing"),
    ({"tolerance": 0.5}, ParameterError, "tolerance=0.5 must be a finite number"),
]


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [*COLUMNS, *(({"y": [0, 1], "p": [0.1, 0.2], **one}, *rest) for one, *rest in OTHERS)],
)
def test_a_mistake_is_named(columns: dict[str, Any], error: type[InputError], message: str) -> None:
    """A report names what is wrong, where, and how to fix it."""
    with pytest.raises(error, match=message):
        abers.report(**columns)


@pytest.mark.parametrize(("columns", "error", "message"), UNKNOWN)
def test_a_monitor_takes_labels_that_came(
    columns: dict[str, Any], error: type[InputError], message: str
) -> None:
    """A monitor refuses rows whose label is not known yet; a report leaves them out."""
    with pytest.raises(error, match=message):
        abers.monitor().update(**columns)
    found = abers.report(**columns)
    assert (found.labels, found.unlabelled) == (1, 1)
    assert "Rows without a label yet, which are not scored: 1." in " ".join(str(found).split())


@pytest.mark.parametrize(("columns", "error", "message"), [*COLUMNS, *UNKNOWN])
def test_a_figure_names_the_same(
    columns: dict[str, Any], error: type[InputError], message: str
) -> None:
    """`plotting.reliability` has the same errors."""
    with pytest.raises(error, match=message):
        reliability(**columns)

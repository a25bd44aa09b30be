"""Reports on the columns of a frame, and on several classes: `abers.report(data=…)`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import abers
from abers import LabelError, ParameterError, ScoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

N = 2_000
CLASSES = ("low", "mid", "high")


class OtherFrame:
    """A frame of another library, which has the C stream interface alone."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._table = pa.table(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the stream."""
        return self._table.__arrow_c_stream__(requested_schema)


def flights() -> dict[str, Any]:
    """Return columns of flights, the latest first, as a model that is too high forecast them."""
    rng = np.random.default_rng(3)
    p = rng.beta(2, 5, N)
    return {
        "when": np.arange(N)[::-1] * 60_000,
        "prob": p,
        "late": (rng.random(N) < p**1.4).astype(int),
        "carrier": [*("AA", "UA") * (N // 2)],
        "value": rng.integers(1, 4, N).astype(float),
    }


def sizes() -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return labels of three classes, and probabilities that are not sure enough of them."""
    rng = np.random.default_rng(4)
    table = rng.dirichlet([3, 2, 1], N)
    sharp = table**1.6 / (table**1.6).sum(axis=1, keepdims=True)
    chosen = (sharp.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1)
    return np.array(CLASSES)[chosen], table


@pytest.mark.parametrize(
    "made",
    [
        dict,
        pd.DataFrame,
        lambda columns: pd.DataFrame(columns, index=range(N, 0, -1)),
        pl.DataFrame,
        pa.table,
        lambda columns: pa.table(columns).to_batches()[0],
        OtherFrame,
    ],
    ids=["dict", "pandas", "pandas by an index", "polars", "Arrow", "batch", "another library"],
)
def test_names_are_columns_of_the_frame(made: Callable[[dict[str, Any]], Any]) -> None:
    """Names of columns give the report of the columns, whatever library the frame is of."""
    columns = flights()
    found = abers.report(
        data=made(columns), y="late", p="prob", time="when", segment="carrier", weight="value"
    )
    y, p, time, segment, weight = (
        columns[name] for name in ("late", "prob", "when", "carrier", "value")
    )
    assert found == abers.report(y, p, time, segment=segment, weight=weight)
    assert [*found.answers_by_group] == ["AA", "UA"]


def test_names_and_arrays_together() -> None:
    """An array together with a frame is taken as it is."""
    columns = flights()
    found = abers.report(data=columns, y=columns["late"] == 1, p="prob")
    assert found == abers.report(columns["late"], columns["prob"])


def test_columns_are_found_by_their_usual_names() -> None:
    """Without y or p all columns are found, and a note says which; else only those named count."""
    columns = flights()
    names = {"when": "prediction_ts", "prob": "prediction_score", "late": "actual_label"}
    arize = pd.DataFrame(columns).rename(columns=names)
    found = abers.report(data=arize)
    note = "Columns: y = actual_label, p = prediction_score, time = prediction_ts."
    assert found.notes == (note,)
    assert note in " ".join(str(found).split())
    y, p = columns["late"], columns["prob"]
    assert found.answers == abers.report(y, p, columns["when"]).answers
    named = abers.report(data=arize, y="actual_label", p="prediction_score")
    assert (named.notes, named.answers) == ((), abers.report(y, p).answers)
    half = abers.report(data=arize, p="prediction_score", model="carrier")
    assert half.notes == (
        "Columns: y = actual_label, p = prediction_score, time = prediction_ts, model = carrier.",
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"data": flights(), "y": "Late", "p": "prob"}, "y='Late' is no column; the columns are "),
        ({"data": flights(), "y": "lat", "p": "prob"}, "value; did you mean late\\?"),
        ({"data": flights(), "y": "late", "p": {"a": "proba"}}, "p\\['a'\\]='proba' is no column"),
        ({"data": flights(), "y": "late", "p": ["prob", "b"]}, "p\\['b'\\]='b' is no column"),
        ({"data": flights(), "p": "prob"}, "no column has a usual name of y; name one of when, "),
        ({"data": pl.LazyFrame({"y": [1]}), "y": "y", "p": "p"}, "such as a lazy one"),
        ({"data": [1, 2], "y": "y", "p": "p"}, "list is not a table .* or a dict of columns"),
        ({"y": "late", "p": "prob"}, "y names the column 'late'; pass its table in data"),
        ({"y": [0], "p": {"a": "prob"}}, "p names the column 'prob'; pass its table in data"),
        ({"y": [0, 1]}, "p is missing; pass labels in y and forecasts in p, or a table in data"),
        ({}, "y is missing"),
        (
            {"y": ["a", "b"], "p": {"a": [0.5, 0.5], "b": [0.5, 0.5]}, "weight": [1, 2]},
            "weight is for two classes; leave it out where p has several",
        ),
    ],
)
def test_a_wrong_name_is_an_error(given: dict[str, Any], message: str) -> None:
    """The error has the name, the columns and the nearest one, or what is missing."""
    with pytest.raises(ParameterError, match=message):
        abers.report(**given)


def test_two_columns_of_one_name() -> None:
    """A frame with two columns of one name is an error."""
    frame = pd.DataFrame([[0, 1, 0.5]], columns=["y", "y", "p"])
    with pytest.raises(ParameterError, match="two columns have the name y; rename one of them"):
        abers.report(data=frame, y="y", p="p")


def test_the_answer_of_several_classes_is_about_the_first_choice() -> None:
    """The answer is that on the largest probability and whether its class came."""
    y, table = sizes()
    found = abers.report(y, dict(zip(CLASSES, table.T, strict=True)))
    right = np.array(CLASSES)[table.argmax(axis=1)] == y
    first = abers.report(right, table.max(axis=1))
    for name in ("now", "whole"):
        mine, theirs = getattr(found.answers, name), getattr(first.answers, name)
        assert mine.views == theirs.views
        assert mine.labels == theirs.labels
    assert found.answers["model"].state == first.answers["model"].state == "no"
    assert found.answers["model"].sentence.startswith("First choice ≥ ")
    assert (found.labels, found.ece) == (N, first.ece)
    p = table[np.arange(N), [CLASSES.index(one) for one in y]]
    assert found.log_loss == pytest.approx(-np.log(p).mean())
    hot = y[:, np.newaxis] == np.array(CLASSES)
    assert found.brier == pytest.approx(((table - hot) ** 2).sum(axis=1).mean())


def test_each_class_has_its_numbers(tmp_path: Path) -> None:
    """Promised and came of a class are means over the rows after the warm-up."""
    y, table = sizes()
    found = abers.report(y, dict(zip(CLASSES, table.T, strict=True)))
    assert found.answers.whole is not None
    for name, p, one in zip(CLASSES, table.T, found.answers.whole.classes, strict=True):
        row = one.views["raw"].rows[0]
        assert (one.name, row.labels, row.came_count) == (name, N - 50, (y[50:] == name).sum())
        assert row.promised == pytest.approx(p[50:].mean())
    assert "class" in str(found)
    found.save(tmp_path / "report.html")
    assert "Each class" in (tmp_path / "report.html").read_text("utf-8")
    found.save(tmp_path / "report.json")
    saved = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert saved["record"]["model"]["state"] == "no"


def test_classes_of_a_frame() -> None:
    """A dict names the column of each class; a list has columns that are named like classes."""
    y, table = sizes()
    expected = abers.report(y, dict(zip(CLASSES, table.T, strict=True)))
    frame = pd.DataFrame(table, columns=["p_low", "p_mid", "p_high"]).assign(size=y)
    named = {one: f"p_{one}" for one in CLASSES}
    assert abers.report(data=frame, y="size", p=named) == expected
    plain = frame.rename(columns={column: name for name, column in named.items()})
    assert abers.report(data=plain, y="size", p=[*CLASSES]) == expected


def test_classes_in_the_order_of_time_and_by_segment() -> None:
    """Rows are sorted by time, and each segment has the answer of a report of its own rows."""
    y, table = sizes()
    p = dict(zip(CLASSES, table.T, strict=True))
    segment = np.where(np.arange(N) % 3 == 0, "a", "b")
    found = abers.report(y, p, np.arange(N), segment=segment)
    back = {name: one[::-1] for name, one in p.items()}
    assert abers.report(y[::-1], back, np.arange(N)[::-1], segment=segment[::-1]) == found
    for name, answers in found.answers_by_group.items():
        rows = segment == name
        own = {of: one[rows] for of, one in p.items()}
        assert answers == abers.report(y[rows], own, np.arange(N)[rows]).answers


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_classes_without_a_label_yet(missing: object) -> None:
    """Rows without a label are counted and not scored."""
    y, table = sizes()
    given = [*y[:-3], *[missing] * 3]
    found = abers.report(given, dict(zip(CLASSES, table.T, strict=True)))
    known = abers.report(y[:-3], dict(zip(CLASSES, table[:-3].T, strict=True)))
    assert (found.unlabelled, found.labels, found.answers) == (3, N - 3, known.answers)
    assert found.notes == ("Rows without a label yet, which are not scored: 3.",)


def test_numbers_of_classes() -> None:
    """Classes may be whole numbers, and labels these numbers as floats."""
    y, table = sizes()
    numbers = np.array([CLASSES.index(one) for one in y])
    p = dict(enumerate(table.T))
    assert abers.report(numbers, p) == abers.report(numbers.astype(float), p)
    no_rows = abers.report([], {0: [], 1: []})
    assert (no_rows.labels, no_rows.answers["model"].state) == (0, "waiting")


@pytest.mark.parametrize(
    ("y", "p", "error", "message"),
    [
        (["c"], {"a": [0.5], "b": [0.5]}, LabelError, r"row 0: class 'c' is not among .*; p maps"),
        ([1.5], {0: [0.5], 1: [0.5]}, LabelError, r"row 0: label 1\.5 must be a string, a whole"),
        (["a"], {"a": [0.5], "b": [0.4]}, ScoreError, r"row 0: forecasts \[0\.5, 0\.4\] do not s"),
        (["a"], {"a": [1.5], "b": [-0.5]}, ScoreError, r"class 'a': row 0: forecast 1\.5 is not"),
        (["a"], {"a": [None], "b": [1.0]}, ScoreError, "class 'a': row 0: score None is not a fi"),
        (["a"], {"a": [1.0]}, ParameterError, "p has the class 'a' alone; give a column for each"),
        (["a"], {"a": [0.5, 1], "b": [0.5, 0]}, ParameterError, "y has 1 rows, p has 2"),
        (["a"], {"a": [0.5], "b": [0.5, 0]}, ParameterError, "class 'b' has 2 rows, class 'a' "),
    ],
)
def test_mistakes_in_classes(y: Any, p: Any, error: type[Exception], message: str) -> None:  # noqa: ANN401
    """A label, a probability or a length that is wrong is named with its row and its class."""
    with pytest.raises(error, match=message):
        abers.report(y, p)

"""Usual names of columns, by which a file or a frame needs no options."""

from __future__ import annotations

from collections import Counter

import pytest

from abers.exceptions import ParameterError
from abers.frames import USUAL_NAMES, usual_column

TOOLS = {
    "scikit-learn": (["y_true", "y_score"], {"label": "y_true", "score": "y_score"}),
    "NannyML": (
        ["car_value", "timestamp", "y_pred_proba", "y_pred", "y_true", "identifier"],
        {
            "score": "y_pred_proba",
            "label": "y_true",
            "time": "timestamp",
            "id": "identifier",
        },
    ),
    "Evidently": (
        ["id", "datetime", "age", "target", "prediction"],
        {"score": "prediction", "label": "target", "time": "datetime", "id": "id"},
    ),
    "Arize": (
        ["prediction_id", "prediction_ts", "prediction_label", "prediction_score", "actual_label"],
        {
            "score": "prediction_score",
            "label": "actual_label",
            "time": "prediction_ts",
            "id": "prediction_id",
        },
    ),
    "MLflow": (
        ["prediction", "prediction_proba", "target", "feature_0"],
        {"score": "prediction_proba", "label": "target"},
    ),
    "Databricks": (
        ["timestamp_ms", "model_id", "probability", "prediction", "label"],
        {
            "score": "probability",
            "label": "label",
            "time": "timestamp_ms",
            "model": "model_id",
        },
    ),
    "Amazon Fraud Detector": (
        ["EVENT_ID", "EVENT_TIMESTAMP", "EVENT_LABEL", "LABEL_TIMESTAMP", "score"],
        {
            "score": "score",
            "label": "EVENT_LABEL",
            "time": "EVENT_TIMESTAMP",
            "label_time": "LABEL_TIMESTAMP",
            "id": "EVENT_ID",
        },
    ),
    "H2O": (["predict", "p0", "p1", "y"], {"score": "p1", "label": "y"}),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_columns_of_other_tools_are_found(tool: str) -> None:
    """Each field has the column that the tool means, and no field has any other."""
    columns, expected = TOOLS[tool]
    found = {field: usual_column(field, columns) for field in USUAL_NAMES}
    assert {field: name for field, name in found.items() if name} == expected


def test_a_name_is_of_one_field_alone() -> None:
    """No usual name is of two fields, and all are in lower case, in which they are compared."""
    names = [name for usual in USUAL_NAMES.values() for name in usual]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert names == [name.casefold() for name in names]


def test_two_columns_that_differ_in_case_are_an_error() -> None:
    """Neither of two columns is taken, unless one has the exact name."""
    with pytest.raises(ParameterError, match="the columns Score and SCORE both may be the score"):
        usual_column("score", ["Score", "SCORE"])
    assert usual_column("score", ["Score", "score"]) == "score"

"""Usual names of the columns of scores and labels, by which they are found.

They are those of tables that other tools read or write:

- scikit-learn's arguments: `y_true`, `y_score`, `y_prob`, `y_pred`
- NannyML: `y_pred_proba`, `y_true`, `timestamp`, `identifier`
- Evidently, by default: `target`, `prediction`, `id`, `datetime`
- Arize, in the example of its schema: `prediction_id`, `prediction_ts`, `prediction_score`,
  `actual_label`
- MLflow's evaluation of tables: `prediction_proba`, `target`, `label`
- Spark ML and Databricks: `probability`, `label`, `model_id`, `timestamp_ms`
- Amazon Fraud Detector: `EVENT_ID`, `EVENT_TIMESTAMP`, `EVENT_LABEL`, `LABEL_TIMESTAMP`
- H2O: `p1`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["REQUIRED", "USUAL_NAMES", "usual_column"]

USUAL_NAMES = {
    "score": (
        *("score", "prob", "proba", "probability", "p", "y_prob", "y_proba", "y_score"),
        *("pred_proba", "pred_prob", "y_pred_proba", "y_pred_prob", "prediction_proba"),
        *("prediction_probability", "prediction_score", "predicted_proba", "predicted_prob"),
        *("predicted_probability", "predicted_score", "model_score", "p1"),
        # These may be decisions, so a probability in the same table goes first.
        *("prediction", "y_pred", "pred", "forecast", "y_hat", "yhat"),
    ),
    "label": (
        *("label", "y", "y_true", "target", "outcome", "actual", "class", "truth"),
        *("true_label", "ground_truth", "actual_label", "actual_value", "event_label"),
    ),
    "id": (
        *("id", "event_id", "uuid", "key", "transaction_id", "txn_id", "order_id", "row_id"),
        *("prediction_id", "inference_id", "observation_id", "record_id", "identifier"),
    ),
    "time": (
        *("time", "timestamp", "ts", "event_time", "datetime", "date", "created_at"),
        *("event_timestamp", "prediction_ts", "prediction_timestamp", "prediction_time"),
        *("predicted_at", "inference_time", "inference_timestamp", "scored_at", "timestamp_ms"),
    ),
    "label_time": (
        *("label_time", "label_timestamp", "label_ts", "labelled_at", "labeled_at"),
        *("outcome_time", "settled_at", "resolved_at", "label_updated_at"),
        *("actual_ts", "actual_timestamp", "actual_time"),
    ),
    "model": ("model", "model_name", "model_id"),
    "segment": ("segment", "slice", "cohort"),
}
"""Names of the column of each field, the likeliest first."""
REQUIRED = ("score", "label", "id", "time")
"""Fields that every file has; those of id and time may be the number of the record."""


def usual_column(field: str, columns: Iterable[str]) -> str | None:
    """Return the column of a field by its usual names, or None without one.

    A name in another case is the same name, unless the exact one is there.

    Raises
    ------
    ParameterError
        If several columns have the name in another case.

    Examples
    --------
    >>> usual_column("score", ["ID", "y_true", "y_prob"]), usual_column("time", ["score"])
    ('y_prob', None)
    >>> usual_column("model", ["Model", "model"]), usual_column("model", ["MODEL"])
    ('model', 'MODEL')
    """
    for name in USUAL_NAMES[field]:
        found = [one for one in columns if one.casefold() == name]
        if name in found:
            return name
        if len(found) > 1:
            msg = f"the columns {' and '.join(found)} both may be the {field}; rename one of them"
            raise ParameterError(msg)
        if found:
            return found[0]
    return None

"""Usual names of the columns of a file of scores and labels, by which they are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["USUAL_NAMES", "usual_column"]

USUAL_NAMES = {
    "score": (
        *("score", "prob", "proba", "probability", "p", "y_prob", "y_proba", "y_score"),
        *("pred_proba", "y_pred_proba", "prediction", "y_pred", "pred", "forecast"),
    ),
    "label": ("label", "y", "y_true", "target", "outcome", "actual", "class", "truth"),
    "id": ("id", "event_id", "uuid", "key", "transaction_id", "txn_id", "order_id", "row_id"),
    "time": ("time", "timestamp", "ts", "event_time", "datetime", "date", "created_at"),
    "label_time": (
        *("label_time", "label_timestamp", "label_ts", "labelled_at", "labeled_at"),
        *("outcome_time", "settled_at", "resolved_at"),
    ),
}
"""Names of the column of each field, the likeliest first; case does not matter."""


def usual_column(field: str, columns: Sequence[str]) -> str | None:
    """Return the column of a field by its usual names; None if there is none.

    Examples
    --------
    >>> usual_column("score", ["ID", "y_true", "y_prob"]), usual_column("time", ["score"])
    ('y_prob', None)
    """
    by_case = {column.casefold(): column for column in reversed(columns)}
    return next((by_case[name] for name in USUAL_NAMES[field] if name in by_case), None)

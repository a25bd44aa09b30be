"""Usual names of the columns of a file of scores and labels, by which they are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["REQUIRED", "USUAL_NAMES", "usual_column"]

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
    "model": ("model", "model_name"),
    "segment": ("segment",),
}
REQUIRED = ("score", "label", "id", "time")
"""Fields that every file has; those of id and time may be the number of the record."""
"""Names of the column of each field, the likeliest first."""


def usual_column(field: str, columns: Iterable[str]) -> str | None:
    """Return the column of a field by its usual names, or None.

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

"""Tables of any library, and their columns by name, usual names included.

Usual names of the columns of scores and labels, by which they are found. They are those of tables
that other tools read or write:

- scikit-learn's arguments: `y_true`, `y_score`, `y_prob`, `y_pred`
- NannyML: `y_pred_proba`, `y_true`, `timestamp`, `identifier`
- Evidently, by default: `target`, `prediction`, `id`, `datetime`
- Arize, in the example of its schema: `prediction_id`, `prediction_ts`, `prediction_score`,
  `actual_label`
- MLflow's evaluation of tables: `prediction_proba`, `target`, `label`
- Spark ML and Databricks: `probability`, `label`, `model_id`, `timestamp_ms`
- Amazon Fraud Detector: `EVENT_ID`, `EVENT_TIMESTAMP`, `EVENT_LABEL`, `LABEL_TIMESTAMP`
- H2O: `p1`

pandas, polars and others are read through what they have in common, and none of them is imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from abers.arrays import require_pyarrow
from abers.exceptions import ParameterError
from abers.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

__all__ = ["REQUIRED", "USUAL_NAMES", "FrameColumns", "arrow_table", "usual_column"]

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


class FrameColumns:
    """Columns of a table by name.

    Parameters
    ----------
    data
        A dict of columns; a data frame of pandas, polars or another library that has the C stream
        interface of Arrow; or a table or a record batch of Arrow.

    Raises
    ------
    ParameterError
        If it is not one of these, or has two columns of one name.

    Examples
    --------
    >>> frame = FrameColumns({"prob": [0.25, 0.5], "label": [0, 1]})
    >>> frame.names, frame.column("label", "y")
    (['prob', 'label'], [0, 1])
    """

    def __init__(self, data: object) -> None:
        self._data: Any = data
        self.names = _names(data)
        if not self.names:
            self._data = arrow_table(data, "a dict of columns")
            self.names = self._data.column_names
        _require_distinct(self.names)

    def column(self, name: str, field: str) -> Any:  # noqa: ANN401 - of the library
        """Return a column, or raise a ParameterError that names the nearest."""
        if name not in self.names:
            msg = f"{field}={name!r} is no column; the columns are {', '.join(self.names)}"
            raise ParameterError(msg + did_you_mean(name, self.names))
        return self._data[name]


def _names(data: object) -> list[str]:
    """Return the names by which `data` itself gives columns; none if it has to be converted."""
    if isinstance(data, Mapping):
        return [one for one in data if isinstance(one, str)]
    if not hasattr(data, "__arrow_c_stream__"):  # not a lazy frame: it finds its columns slowly
        return []
    return [one for one in getattr(data, "columns", ()) if isinstance(one, str)]


def arrow_table(data: Any, other: str) -> pa.Table:  # noqa: ANN401 - of any library
    """Return a table of what is one; pyarrow's other conversions would import pandas.

    Parameters
    ----------
    data
        A table or a record batch, or an object that has the C stream interface of Arrow.
    other
        What else a caller may pass, for the message.

    Raises
    ------
    ParameterError
        If it is not one of these, or has two columns of one name.
    """
    arrow = require_pyarrow()
    _require_distinct(_names(data))
    if isinstance(data, arrow.RecordBatch):
        data = arrow.Table.from_batches([data])
    try:
        if not isinstance(data, arrow.Table):
            data = arrow.RecordBatchReader.from_stream(data).read_all()
    except (TypeError, ValueError, arrow.ArrowException) as error:
        msg = f"{type(data).__name__} is not a table of Arrow ({error}); pass a record batch, a "
        msg += "table, a data frame that has __arrow_c_stream__ and values of one type in each "
        msg += f"column, such as a lazy one that is collected, or {other}"
        raise ParameterError(msg) from None
    _require_distinct(data.column_names)
    return data


def _require_distinct(names: Sequence[str]) -> None:
    """Raise a ParameterError for two columns of one name."""
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        msg = f"two columns have the name {repeated[0]}; rename one of them"
        raise ParameterError(msg)

"""Tables of any library, and their columns by name.

pandas, polars and others are read through what they have in common, and none of them is imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from abers.arrow_values import require_pyarrow
from abers.exceptions import ParameterError
from abers.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

__all__ = ["FrameColumns", "arrow_table"]


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

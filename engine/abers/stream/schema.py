"""The only way from records to events.

A source decodes its format to raw columns, by field, and a schema reads these. A lone record is a
record among others: its columns have one cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from abers.stream.columns import Events
from abers.stream.schema_columns import ColumnSchema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.arrays import Integers
    from abers.stream.cells import BadRecordError, RawColumns, Refused
    from abers.stream.option import Front

__all__ = ["Reading", "Schema"]


class Reading(NamedTuple):
    """What records become."""

    events: Events
    rows: Integers  # row of the record of each event
    refused: Sequence[Refused]  # the other rows, in order
    front: Front  # where their user writes options


class Schema(ColumnSchema):
    """How records become events; the parameters are those of `ColumnSchema`."""

    def read(
        self,
        raw: RawColumns,
        numbers: Sequence[int],
        broken: Mapping[int, BadRecordError] | None = None,
    ) -> Reading:
        """Return the events of records; the parameters are those of `columns`.

        Examples
        --------
        >>> import numpy as np
        >>> from abers.stream.cells import Cells
        >>> from abers.stream.fields import Fields
        >>> raw = {"id": Cells(np.array(["a", "b"], object)), "time": Cells(np.array([1, 2]))}
        >>> raw["score"] = Cells(np.array(["0.5", "high"], object))
        >>> reading = Schema(Fields()).read(raw, [1, 2])
        >>> reading.events.scores, reading.rows, reading.refused[0].reason
        (array([0.5]), array([0]), 'bad-score')
        """
        columns, rows, refused = self.columns(raw, numbers, broken)
        return Reading(Events(*columns), rows, refused, self.readers.front)

"""What the footer of a Parquet file says of its row groups, before any of them is read.

Times and names are those of the statistics, where the writer left some; without them nothing is
skipped, and the file may begin at any time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["BEFORE_ALL", "Part", "least_time", "wanted_groups"]

BEFORE_ALL = -(2**63)
_TICKS = {"milliseconds": 1, "microseconds": 1_000, "nanoseconds": 1_000_000}


class Part(NamedTuple):
    """The part of a stream that is wanted: times in milliseconds, and names of models."""

    since: int | None = None
    until: int | None = None
    models: Collection[str] = ()  # all if empty

    def may_have_time(self, bounds: tuple[int, int] | None) -> bool:
        """Return whether a time within bounds may be wanted."""
        if bounds is None:
            return True
        least, most = bounds
        late = self.until is not None and least >= self.until
        return not late and (self.since is None or most >= self.since)

    def may_have_model(self, bounds: tuple[str, str] | None) -> bool:
        """Return whether a name within bounds may be wanted."""
        if bounds is None or not self.models:
            return True
        return any(bounds[0] <= one <= bounds[1] for one in self.models)


def wanted_groups(file: Any, part: Part, time: str, model: str) -> list[int]:  # noqa: ANN401
    """Return the numbers of the row groups that may have wanted rows; of a `ParquetFile`."""
    return [
        group
        for group in range(file.metadata.num_row_groups)
        if part.may_have_time(_times(file, group, time))
        and part.may_have_model(_names(file, group, model))
    ]


def least_time(file: Any, groups: Sequence[int], time: str) -> int:  # noqa: ANN401
    """Return a time that no row of these row groups is before."""
    bounds = [_times(file, group, time) for group in groups]
    return min((BEFORE_ALL if one is None else one[0] for one in bounds), default=BEFORE_ALL)


def _statistics(file: Any, group: int, column: str) -> tuple[Any, Any] | None:  # noqa: ANN401
    """Return the statistics of a column in a row group, and its logical type; None if unknown."""
    for number in range(file.metadata.num_columns):
        found = file.metadata.row_group(group).column(number)
        if found.path_in_schema == column:
            known = found.is_stats_set and found.statistics.has_min_max
            return (found.statistics, file.schema.column(number).logical_type) if known else None
    return None


def _times(file: Any, group: int, column: str) -> tuple[int, int] | None:  # noqa: ANN401
    """Return the least and the largest time in milliseconds; None if unknown."""
    if (found := _statistics(file, group, column)) is None:
        return None
    statistics, logical = found
    if statistics.physical_type not in {"INT64", "INT32"}:
        return None
    kind = json.loads(logical.to_json())
    least, most = statistics.min_raw, statistics.max_raw
    if kind["Type"] == "Timestamp" and kind["isAdjustedToUTC"]:
        ticks = _TICKS[kind["timeUnit"]]
        return least // ticks, most // ticks
    return (least, most) if kind["Type"] in {"None", "Int"} else None


def _names(file: Any, group: int, column: str) -> tuple[str, str] | None:  # noqa: ANN401
    """Return the least and the largest name, in the order of characters; None if unknown."""
    if (found := _statistics(file, group, column)) is None:
        return None
    statistics, _ = found
    if statistics.null_count != 0 or not isinstance(statistics.min, str) or not statistics.min:
        return None  # records without a name belong to a model, too
    return statistics.min, statistics.max

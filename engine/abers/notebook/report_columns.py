"""The columns of a report: arrays, or columns of a table by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.column_names import usual_column
from abers.exceptions import ParameterError
from abers.frames import FrameColumns

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ReportColumns", "report_columns"]

_USUAL = {"y": "label", "p": "score", "time": "time", "model": "model", "segment": "segment"}


class ReportColumns(NamedTuple):
    """The columns of a report, as a library has them.

    Attributes
    ----------
    y, p, time, model, segment, weight
        As in `report`, without names; `p` of several classes is a dict with a column for each.
    notes
        Which columns were found by their usual names.
    """

    y: Any
    p: Any
    time: Any
    model: Any
    segment: Any
    weight: Any
    notes: tuple[str, ...] = ()


def report_columns(data: object, **given: Any) -> ReportColumns:  # noqa: ANN401 - names or columns
    """Return the columns of a report: those that are named are taken from a table.

    Raises
    ------
    ParameterError
        If the table has no such column, if a name has no table, or if y or p is missing.

    Examples
    --------
    >>> table = {"prob": [0.25, 0.5], "label": [0, 1], "ts": [2, 1]}
    >>> named = dict.fromkeys(["y", "p", "time", "model", "segment", "weight"])
    >>> found = report_columns(table, **named)
    >>> found.y, found.p, found.time, found.notes
    ([0, 1], [0.25, 0.5], [2, 1], ('Columns: y = label, p = prob, time = ts.',))
    """
    if data is None:
        _require_arrays(given)
        return ReportColumns(**given)
    frame, notes = FrameColumns(data), list[str]()
    if given["y"] is None or given["p"] is None:
        given |= _found(frame, given)
        named = ", ".join(f"{field} = {name}" for field, name in _named(given))
        notes.append(f"Columns: {named}.")
    columns = {field: _column(frame, field, one) for field, one in given.items()}
    return ReportColumns(**columns, notes=(*notes,))


def _require_arrays(given: Mapping[str, Any]) -> None:
    """Raise a ParameterError unless there are labels and forecasts, and no names."""
    single = {field: one for field, one in given.items() if not isinstance(one, list | tuple)}
    for field, name in _named(single):  # a list of texts is no column that could be meant
        msg = f"{field} names the column {name!r}; pass its table in data, too"
        raise ParameterError(msg)
    if isinstance(given["y"], Mapping) or hasattr(given["y"], "columns"):
        msg = 'y is a table; pass it in data, as in report(data=frame, y="label", p="prob")'
        raise ParameterError(msg)
    for field in ("y", "p"):
        if given[field] is None:
            msg = f"{field} is missing; pass labels in y and forecasts in p, or a table in data"
            raise ParameterError(msg)


def _found(frame: FrameColumns, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns with a usual name of all fields that are not given."""
    named = {name for _, name in _named(given)}
    unnamed = [name for name in frame.names if name not in named]
    usual = {
        field: usual_column(of, unnamed) for field, of in _USUAL.items() if given[field] is None
    }
    for field in ("y", "p"):
        if field in usual and usual[field] is None:
            msg = f"no column has a usual name of {field}; name one of {', '.join(frame.names)}"
            raise ParameterError(msg)
    return {field: name for field, name in usual.items() if name is not None}


def _named(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names of columns, each behind the argument that it is in."""
    for field, one in given.items():
        if isinstance(one, str):
            yield field, one
        elif field == "p":
            for name in one.values() if isinstance(one, Mapping) else _listed(one):
                if isinstance(name, str):
                    yield field, name


def _listed(given: object) -> list[str]:
    """Return the names in a list of names; nothing of all else."""
    several = isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)
    return [*given] if several else []  # type: ignore[misc]


def _column(frame: FrameColumns, field: str, given: Any) -> Any:  # noqa: ANN401 - a name, or a column
    """Return the column that a name means; a dict of them for several classes."""
    if field == "p" and _listed(given):
        given = {name: name for name in given}
    if field == "p" and isinstance(given, Mapping):
        return {of: _column(frame, f"p[{of!r}]", one) for of, one in given.items()}
    return frame.column(given, field) if isinstance(given, str) else given

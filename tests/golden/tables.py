"""Tables of records, small enough to be checked in.

A table has names and values apart: the values are digested by blocks, which no name can change, and
some of them stand beside, to be read. What people or codes say is kept whole.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from tests.golden.names import Names

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NAMES", "compact", "flat", "rounded", "table"]

_WHOLE = 12  # values that are all kept
_BLOCK = 64
_ABSENT = "(absent)"

NAMES = Names.read()
"""The map that is checked in."""
digested = True
"""Whether anything is digested; otherwise all values are whole, to be compared by eye."""


def flat(record: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Put nested records into one, by dotted paths; an empty one is kept."""
    found: dict[str, Any] = {}
    for name, value in record.items():
        path = f"{above}{name}"
        found |= flat(value, f"{path}.") if isinstance(value, dict) and value else {path: value}
    return found


def rounded(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Round all numbers in a record to ten digits."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [*map(rounded, value)]
    return float(f"{value:.10g}") if type(value) is float else value


def table(kind: str, records: Sequence[dict[str, Any]], names: Names = NAMES) -> dict[str, Any]:
    """Make a table of records, of which some may lack fields.

    Parameters
    ----------
    kind
        What they are, for the map of names.
    records
        In their order.
    names
        The map, which says what fields hold sentences or codes; they are kept whole.
    """
    rows = [flat(one) for one in records]
    shapes = [*dict.fromkeys(tuple(one) for one in rows)]
    fields = [*dict.fromkeys(name for shape in shapes for name in shape)]
    shape = [shapes.index(tuple(one)) for one in rows]
    columns = {name: [one.get(name, _ABSENT) for one in rows] for name in fields}
    for name, before in names.of("digested", kind).items():
        if name in columns:
            columns[name] = [before.get(one, one) for one in columns[name]]
    found = {"kind": kind, "rows": len(rows), "shapes": [*map(list, shapes)]}
    return found | {
        "shape": compact(shape) if len(shapes) > 1 else 0,
        "columns": {
            name: _column(f"{kind}.{name}", column, names) for name, column in columns.items()
        },
    }


def _column(path: str, column: list[Any], names: Names) -> Any:  # noqa: ANN401 - JSON
    """Make a column; records within it become tables."""
    spoken = path.rpartition(".")[2] in names.spoken
    made = [_value(path, one, names) for one in column]
    nested = any(isinstance(one, dict) for one in made)
    return made if spoken or nested or len(made) <= _WHOLE else compact(made)


def _value(path: str, value: Any, names: Names) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(value, list):
        return value
    if value and all(isinstance(one, dict) for one in value):
        return table(path, value, names)
    spoken = path.rpartition(".")[2] in names.spoken
    return value if spoken or len(value) <= _WHOLE else compact(value)


def compact(values: Sequence[Any]) -> Any:  # noqa: ANN401 - JSON
    """Digest many values by blocks, and show the first of each block."""
    if not digested:
        return values
    starts = range(0, len(values), _BLOCK)
    blocks = [json.dumps(values[at : at + _BLOCK], ensure_ascii=False).encode() for at in starts]
    return {
        "length": len(values),
        "digests": [blake2b(block, digest_size=6).hexdigest() for block in blocks],
        "sample": [values[at] for at in starts],
    }

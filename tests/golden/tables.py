"""Tables of records, small enough to be checked in.

A table has names and values apart: the values are digested by blocks, which no name can change, and
some of them stand next to, to be read. What people or codes say is kept whole.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from tests.golden.names import Names

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NAMES", "compact", "compacted", "flat", "named", "rounded", "table"]

_WHOLE = 12  # values that are all kept
_BLOCK = 64
_ABSENT = "(absent)"
_METRIC = re.compile(r"abers_\w+{")
_LABEL = re.compile(r'(?<=[{,])(\w+)="[^"]*",?')

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
    """Make a table of records, of which some may lack fields; nothing in it is digested yet."""
    rows = [flat(one) for one in records]
    shapes = [*dict.fromkeys(tuple(one) for one in rows)]
    fields = [*dict.fromkeys(name for shape in shapes for name in shape)]
    columns = {name: [one.get(name, _ABSENT) for one in rows] for name in fields}
    for name, before in names.of("digested", kind).items():
        if name in columns:
            columns[name] = [before.get(one, one) for one in columns[name]]
    found = {"kind": kind, "rows": len(rows), "shapes": [*map(list, shapes)]}
    return found | {
        "shape": [shapes.index(tuple(one)) for one in rows],
        "columns": {
            name: [_cell(f"{kind}.{name}", one, names) for one in column]
            for name, column in columns.items()
        },
    }


def _cell(path: str, value: Any, names: Names) -> Any:  # noqa: ANN401 - JSON
    """Make a table of a list of records."""
    several = isinstance(value, list) and value and all(isinstance(one, dict) for one in value)
    return table(path, value, names) if several else value


def named(found: Any, old: Any) -> Any:  # noqa: ANN401 - JSON
    """Leave of what is found only what an old file names.

    Parameters
    ----------
    found
        Tables, which are not digested, texts and lists of lines, by name.
    old
        The same of an old file, in the names of now. Of fields it names those of a table, of lines
        all that it has, of metrics the labels, too.
    """
    if isinstance(old, list):
        return _lines(found, old) if isinstance(found, list) else found
    if not isinstance(old, dict) or not isinstance(found, dict):
        return found
    if "kind" in old and "columns" in found:
        return _fields(found, old)
    return {name: named(one, old[name]) for name, one in found.items() if name in old}


def _fields(found: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """Leave of a table the columns that an old one has."""
    columns = {
        name: _cells(one, old["columns"][name])
        for name, one in found["columns"].items()
        if name in old["columns"]
    }
    if "shape" not in found:
        return found | {"columns": columns}
    shapes = [tuple(one for one in shape if one in columns) for shape in found["shapes"]]
    left = [*dict.fromkeys(shapes)]
    shape = [left.index(shapes[one]) for one in found["shape"]]
    return found | {"shapes": [*map(list, left)], "shape": shape, "columns": columns}


def _cells(found: Any, old: Any) -> Any:  # noqa: ANN401 - JSON
    """Leave of the tables in a column what those of an old one have."""
    if not isinstance(found, list) or not isinstance(old, list) or len(found) != len(old):
        return found
    pairs = zip(found, old, strict=True)
    return [named(one, was) if isinstance(was, dict) else one for one, was in pairs]


def _lines(found: list[Any], old: list[Any]) -> list[Any]:
    """Leave of lines those that there were, and of metrics the labels that there were.

    A line of a table may go on, since a new column is the last.
    """
    labels = {label for line in old if _METRIC.match(line) for label in _LABEL.findall(line)}

    def known(label: re.Match[str]) -> str:
        return label[0] if label[1] in labels else ""

    without = (
        _LABEL.sub(known, line).replace(",}", "}").replace("{}", "")
        if _METRIC.match(line)
        else line
        for line in found
    )
    begun = (line if line in old else _begun(line, old) for line in without)
    return [line for line in begun if line in old]


def _begun(line: str, old: list[str]) -> str | None:
    """Return the line that a longer one begins with, where a table has more columns."""
    return next((was for was in old if line.startswith(f"{was} ")), None)


def compacted(found: Any, names: Names = NAMES) -> Any:  # noqa: ANN401 - JSON
    """Digest the long columns of tables, but for those with sentences or codes."""
    if not isinstance(found, dict):
        return found
    if "shape" not in found:
        return {name: compacted(one, names) for name, one in found.items()}
    shape = compact(found["shape"]) if len(found["shapes"]) > 1 else 0
    columns = {name: _column(name, column, names) for name, column in found["columns"].items()}
    return found | {"shape": shape, "columns": columns}


def _column(path: str, column: list[Any], names: Names) -> Any:  # noqa: ANN401 - JSON
    """Digest a column that is long."""
    spoken = path.rpartition(".")[2] in names.spoken
    made = [
        compact(one)
        if isinstance(one, list) and len(one) > _WHOLE and not spoken
        else compacted(one, names)
        for one in column
    ]
    nested = any(isinstance(one, dict) for one in made)
    return made if spoken or nested or len(made) <= _WHOLE else compact(made)


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

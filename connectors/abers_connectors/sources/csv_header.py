"""The fault of a header of CSV, as a sentence that says how to fix it.

Records that are all bad for one reason are an error of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["SEPARATORS", "require_fit", "require_separator"]

SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar"}
"""The characters that separate fields in files that people have, and their names."""

_SHOWN = 80  # characters of a line
_ENOUGH = 2  # records that say the same


def require_separator(name: str, line: str, header: Sequence[str], separator: str) -> None:
    """Raise a RecordError if the names in the header of a file have another separator."""
    for other in SEPARATORS if len(header) == 1 else ():
        if other != separator and other in line:
            msg = (
                f"{name}: the names in the first line, {_quoted(line)}, are separated by "
                f"{SEPARATORS[other]}s, not by {SEPARATORS[separator]}s; name it in input.delimiter"
            )
            raise RecordError(msg)


def require_fit(name: str, line: str, header: Sequence[str], sizes: Iterable[int | None]) -> None:
    """Raise a RecordError if all records have the same number of fields, and the header another.

    Records of one field are junk, which says nothing of the header.

    Parameters
    ----------
    name
        The file, for the message.
    line, header
        The first line, and the names in it.
    sizes
        Numbers of fields of the first records; None for an unreadable record.
    """
    found = [*sizes]
    if len(found) < _ENOUGH or len({*found}) > 1 or found[0] in {None, 1, len(header)}:
        return
    size = found[0] or 0
    if line.startswith("#") or len(header) == 1:
        what = f"the first line, {_quoted(line)}, does not name the {size} columns"
        remedy = "remove the lines above the names"
    elif len(header) > size:
        what = f"the first line has {len(header)} names, and each line below has {size} fields"
        remedy = "remove the names that have no values, or complete the lines"
    else:
        what = f"the first line has {len(header)} names, and each line below has {size} fields"
        remedy = "name every column, and remove what stands above the names"
    msg = f"{name}: {what}; {remedy}"
    raise RecordError(msg)


def _quoted(line: str) -> str:
    return repr(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…")

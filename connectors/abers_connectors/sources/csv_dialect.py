"""How a CSV file separates its fields, and writes decimals."""

from __future__ import annotations

import csv
import math
import re
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from abers.stream.cells import BadRecordError
from abers.stream.readers import number
from abers_connectors.files.compression import chunks
from abers_connectors.files.formats import file_format
from abers_connectors.sources.csv_header import SEPARATORS
from abers_connectors.sources.lines import is_blank, lines, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Dialect", "has_decimal_commas"]

_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*%?\s*", re.ASCII)
_POINT = re.compile(r"\s*[+-]?\d*\.\d+\s*%?\s*", re.ASCII)
_SAMPLE = 100  # lines


class Dialect(NamedTuple):
    """How fields are separated, and in which columns decimals follow a comma."""

    delimiter: str = ","
    given: bool = False  # whether the first line has no say in the delimiter
    commas: frozenset[str] = frozenset()

    def seen(self, line: str) -> Dialect:
        """Return the dialect of a file with this first line, if it shows only one delimiter.

        Examples
        --------
        >>> Dialect().seen("id;score").delimiter, Dialect().seen("id;a,b").delimiter
        (';', ',')
        """
        found = [one for one in SEPARATORS if one in line]
        known = self.given or len(found) != 1
        return self._replace(delimiter=self.delimiter if known else found[0], given=True)

    def plain(self, column: str, cells: Sequence[str]) -> Sequence[str]:
        """Return the cells of a column with a point before decimals; a BadRecordError if it can't.

        Examples
        --------
        >>> Dialect(commas=frozenset(["p"])).plain("p", ["0,5", "1", "-"])
        ['0.5', '1', '-']
        """
        if column not in self.commas or {",", "."}.isdisjoint("".join(cells)):
            return cells
        return [*map(_plain, cells)]


def _plain(cell: str) -> str:
    if "." in cell and math.isfinite(_number(cell)):
        detail = f"{cell!r} has a point, where decimals follow a comma; write 0,5, or no point"
        raise BadRecordError("bad-record", detail)
    plain = cell.replace(",", ".")
    return plain if math.isfinite(_number(plain)) else cell


def _number(cell: str) -> float:
    return number(cell.rstrip().removesuffix("%"))


def has_decimal_commas(path: str) -> bool:
    """Return whether the first lines of a CSV file have commas in numbers, and points in none.

    Commas that separate fields are in no number.
    """
    given = file_format(path)
    if given.format != "csv":
        return False
    try:
        header, *texts = _first_lines(path, given.compression)
        cells = [*_cells(texts, Dialect(given.separator).seen(header).delimiter)]
    except (ValueError, csv.Error):  # no line, or damaged; the run says what is wrong
        return False
    return any(map(_COMMA.fullmatch, cells)) and not any(map(_POINT.fullmatch, cells))


def _first_lines(path: str, compression: str | None) -> list[str]:
    with Path(path).open("rb") as file:
        found = chain.from_iterable(lines(chunks(file, compression), 1 << 20))
        return [shown(one) for one in islice(found, _SAMPLE) if not is_blank(one)]


def _cells(texts: Iterable[str], delimiter: str) -> Iterable[str]:
    """Return the fields of lines that are not quoted."""
    return chain.from_iterable(csv.reader(texts, delimiter=delimiter, quoting=csv.QUOTE_NONE))

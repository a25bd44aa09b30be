"""The two formats of files: each gives numbered records, a line at a time.

Governing rule: a record is a mapping from column to value, whatever the format;
a line that is none raises a RecordError with its number.
"""

from __future__ import annotations

import csv
from collections import Counter
from typing import TYPE_CHECKING, TextIO, TypeAlias

import msgspec

from abers.exceptions import RecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Record: TypeAlias = Mapping[str, object]
    Reader: TypeAlias = Callable[[str, TextIO], Iterator[tuple[int, Record]]]

__all__ = ["READERS"]

_DECODER = msgspec.json.Decoder(dict[str, object])


def _csv(name: str, file: TextIO) -> Iterator[tuple[int, Record]]:
    rows = csv.reader(file, strict=True, skipinitialspace=True)
    try:
        header = next(rows, [])
        _refuse_twins(name, header)
        for row in rows:
            if len(row) == len(header):
                yield rows.line_num, dict(zip(header, row, strict=True))
            elif row:
                msg = (
                    f"{name} line {rows.line_num} has {len(row)} of the header's {len(header)} "
                    "fields; complete the line, or quote a field that holds a comma"
                )
                raise RecordError(msg)
    except csv.Error as error:
        msg = f"{name} line {rows.line_num}: {error}; see that every quote is closed"
        raise RecordError(msg) from None


def _refuse_twins(name: str, header: list[str]) -> None:
    twins = [column for column, count in Counter(header).items() if count > 1 and column]
    if twins:
        msg = f"{name} line 1: two columns are called {twins[0]}; rename one of them"
        raise RecordError(msg)


def _json_lines(name: str, file: TextIO) -> Iterator[tuple[int, Record]]:
    for number, line in enumerate(file, start=1):
        if line.isspace():
            continue
        try:
            record = _DECODER.decode(line)
        except msgspec.DecodeError as error:
            msg = (
                f"{name} line {number}: {error}; write one JSON object a line "
                "(JSON has no NaN and no Infinity)"
            )
            raise RecordError(msg) from None
        yield number, record


READERS: dict[str, Reader] = {".csv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines}
"""Reader of each suffix: from a file and its name in messages to numbered records."""

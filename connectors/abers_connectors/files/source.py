"""A CSV or JSON Lines file as a stream of scored, labelled observations.

Governing rule: the file is read once, line by line, never whole; its first
record decides which columns there are, and a record that cannot be used stops
the reading with its file, line and field.
"""

from __future__ import annotations

import os
import stat
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from abers.exceptions import ParameterError, RecordError
from abers_connectors._suggest import did_you_mean
from abers_connectors.files import _values
from abers_connectors.files._formats import READERS
from abers_connectors.records import Observation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers_connectors.files._formats import Record

__all__ = ["FileSource", "GivenScores"]

_REQUIRED = {"score": "score", "label": "label"}
_OPTIONAL = {"id": "id", "time": "time"}


class GivenScores:
    """Scorer of observations that bring their score along; it has nothing to learn.

    Parameters
    ----------
    probabilities
        Whether the scores are declared probabilities of label 1.
    """

    def __init__(self, *, probabilities: bool) -> None:
        self.probabilities = probabilities

    def score(self, observation: Observation) -> float:
        """Give the score that came with the observation."""
        score: float = observation.x
        return score

    def learn(self, observation: Observation) -> None:
        """Do nothing: the model that gave the score is elsewhere."""


class FileSource:
    """One CSV or JSON Lines file.

    Parameters
    ----------
    path
        The file; its suffix tells the format.
    columns
        Names of columns by field: "score" and "label", by default called so too; "id" and
        "time", by default called so if there are such columns, else the number of the record.
    probabilities
        Whether the scores are declared probabilities; one outside [0, 1] is a bad record then.

    Raises
    ------
    ParameterError
        If the suffix is unknown.
    """

    def __init__(self, path: str, columns: Mapping[str, str], *, probabilities: bool) -> None:
        suffix = Path(path).suffix.lower()
        if suffix not in READERS:
            msg = f"{path}: unknown kind of file; abers reads {', '.join(READERS)}"
            raise ParameterError(msg)
        self.name = path
        self._records = READERS[suffix]
        self._columns = columns
        self._values = {
            "score": _values.probability if probabilities else _values.score,
            "label": _values.label,
            "id": _values.identity,
            "time": _values.time,
        }
        self._file: TextIO | None = None

    def __iter__(self) -> Iterator[Observation]:
        """Give the observations in the order of the file.

        Raises
        ------
        RecordError
            At the first record that cannot be used.
        ParameterError
            If the first record lacks a column.
        """
        position = 0
        with Path(self.name).open(encoding="utf-8-sig", newline="") as self._file:
            try:
                for observation in self._observations(self._records(self.name, self._file)):
                    position = observation.position
                    yield observation
            except UnicodeDecodeError as error:
                byte = error.object[error.start]
                msg = (
                    f"{self.name} holds a byte {byte:#x} somewhere after line {position}, which "
                    "is not UTF-8; save the file as UTF-8"
                )
                raise RecordError(msg) from None

    def where(self, position: int) -> str:
        """Name file and line."""
        return f"{self.name} line {position}"

    def fraction(self) -> float | None:
        """Give the share of the file that has been read; None for what has no size."""
        if self._file is None or self._file.closed:
            return None
        status = os.fstat(self._file.fileno())
        sized = stat.S_ISREG(status.st_mode) and status.st_size
        return self._file.buffer.tell() / status.st_size if sized else None

    def _observations(self, records: Iterator[tuple[int, Record]]) -> Iterator[Observation]:
        first = next(records, None)
        if first is None:
            msg = (
                f"{self.name} holds no observation; it needs a line for each one, "
                "in CSV below a header with the names of the columns"
            )
            raise RecordError(msg)
        columns = self._resolved(first[1])
        for number, (line, record) in enumerate(chain([first], records), start=1):
            found = {field: self._value(line, record, field, columns[field]) for field in columns}
            yield Observation(
                position=line,
                id=found.get("id", str(number)),
                time=found.get("time", number),
                label=found["label"],
                x=found["score"],
            )

    def _resolved(self, record: Record) -> dict[str, str]:
        """Decide by the first record which column each field is read from."""
        there = {field: column for field, column in _OPTIONAL.items() if column in record}
        columns = {**_REQUIRED, **there, **self._columns}
        for field, column in columns.items():
            if column not in record:
                msg = (
                    f"{self.name} has no column {column}; its columns are {', '.join(record)}; "
                    f"name the right one with --{field}{did_you_mean(column, record)}"
                )
                raise ParameterError(msg)
        return columns

    def _value(self, line: int, record: Record, field: str, column: str) -> Any:  # noqa: ANN401
        try:
            return self._values[field](record[column])
        except KeyError:
            msg = f"{self.where(line)} has no field {column}; the first record has it"
            raise RecordError(msg) from None
        except ValueError as error:
            msg = f"{self.where(line)}, {column}: {error}"
            raise RecordError(msg) from None

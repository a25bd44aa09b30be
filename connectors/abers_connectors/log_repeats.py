"""A filter for log lines that a library repeats.

The first line is written at once. Lines that follow within a minute and differ only in numbers are
counted, and the last of them is written with the count, unless the watchdog ends the process. So an
unreachable broker does not fill the disk.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["RepeatFilter"]

_WINDOW = 60.0  # seconds
_MAX_LINES = 500  # different lines that are remembered
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(\.\d+)*", re.IGNORECASE)


@dataclass
class _Repeat:
    """When a line was written, how often it came again since, and the last of these."""

    written: float
    count: int = 0
    last: logging.LogRecord | None = None


class RepeatFilter:
    """Collapse repeated lines into one line with a count.

    Two lines are equal if they differ only in numbers, such as ports and retries. Lines of the
    logger `always` are never delayed.

    Examples
    --------
    >>> repeats = RepeatFilter("abers_connectors")
    >>> def line(message, at):
    ...     of = {"name": "kafka", "levelno": logging.WARNING, "created": at}
    ...     return logging.makeLogRecord(of | {"msg": message})
    >>> for at, message in enumerate(["port 1 is closed", "port 2 is closed", "port 3 is closed"]):
    ...     print([one.getMessage() for one in repeats.add(line(message, at))])
    ['port 1 is closed']
    []
    []
    >>> [(one.getMessage(), one.repeated) for one in repeats.flush()]
    [('port 3 is closed', 2)]
    """

    def __init__(self, always: str) -> None:
        self._always = always
        self._seen: dict[tuple[str, int, str], _Repeat] = {}

    def add(self, record: logging.LogRecord) -> list[logging.LogRecord]:
        """Add a line and return the lines to write now.

        A line that was delayed for a minute comes before the new line, with its count in the
        field `repeated`. A critical line, after which the process ends, releases all of them.
        """
        now, ends = record.created, record.levelno >= logging.CRITICAL
        found = [*self.flush()] if ends or len(self._seen) >= _MAX_LINES else [*self._due(now)]
        if ends or f"{record.name}.".startswith(f"{self._always}."):
            return [*found, record]
        key = record.name, record.levelno, _NUMBER.sub("#", record.getMessage())
        seen = self._seen.get(key)
        if seen is None:
            self._seen[key] = _Repeat(now)
            return [*found, record]
        seen.count, seen.last = seen.count + 1, record
        return found

    def flush(self) -> Iterator[logging.LogRecord]:
        """Return all delayed lines, and forget them."""
        seen, self._seen = self._seen, {}
        for one in seen.values():
            yield from _counted(one)

    def _due(self, now: float) -> Iterator[logging.LogRecord]:
        for key, one in [*self._seen.items()]:
            if now - one.written < _WINDOW:
                continue
            del self._seen[key]
            if one.count:
                self._seen[key] = _Repeat(now)
                yield from _counted(one)


def _counted(seen: _Repeat) -> Iterator[logging.LogRecord]:
    if seen.last is not None:
        yield logging.makeLogRecord({**vars(seen.last), "repeated": seen.count})

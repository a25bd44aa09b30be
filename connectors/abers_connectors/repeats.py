"""Lines of the log that a library repeats.

Governing rule: a line is written when it comes first; what comes again within a minute is counted,
and the count is written after it, so that nothing disappears and a broker that is gone for an
hour does not fill a disk.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Repeats"]

_WINDOW = 60.0  # seconds
_MOST = 500  # lines that are remembered
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(\.\d+)*", re.IGNORECASE)


@dataclass
class _Seen:
    """A line that was written, and the last of those that came again since."""

    written: float
    count: int = 0
    last: logging.LogRecord | None = None


class Repeats:
    """Holds back what is repeated.

    Two lines are the same if they differ in nothing but numbers, such as of ports and retries.

    Parameters
    ----------
    ours
        Name of the logger whose lines all pass.

    Examples
    --------
    >>> repeats = Repeats("abers_connectors")
    >>> def line(message, at):
    ...     of = {"name": "kafka", "levelno": logging.WARNING, "created": at}
    ...     return logging.makeLogRecord(of | {"msg": message})
    >>> for at, message in enumerate(["port 1 is closed", "port 2 is closed", "port 3 is closed"]):
    ...     print([one.getMessage() for one in repeats.add(line(message, at))])
    ['port 1 is closed']
    []
    []
    >>> [(one.getMessage(), one.repeated) for one in repeats.rest()]
    [('port 3 is closed', 2)]
    """

    def __init__(self, ours: str) -> None:
        self._ours = ours
        self._seen: dict[tuple[str, int, str], _Seen] = {}

    def add(self, record: logging.LogRecord) -> list[logging.LogRecord]:
        """Take a line.

        Parameters
        ----------
        record
            It.

        Returns
        -------
        list
            What is to be written now: the line unless it is held back, and before it the last of
            each that was held back for a minute, with its field `repeated`. A critical line, after
            which the process ends, has all before it.
        """
        now, ends = record.created, record.levelno >= logging.CRITICAL
        found = [*self.rest()] if ends or len(self._seen) >= _MOST else [*self._due(now)]
        if ends or f"{record.name}.".startswith(f"{self._ours}."):
            return [*found, record]
        key = record.name, record.levelno, _NUMBER.sub("#", record.getMessage())
        seen = self._seen.get(key)
        if seen is None:
            self._seen[key] = _Seen(now)
            return [*found, record]
        seen.count, seen.last = seen.count + 1, record
        return found

    def rest(self) -> Iterator[logging.LogRecord]:
        """Give the last of each that is held back, and begin anew."""
        seen, self._seen = self._seen, {}
        for one in seen.values():
            yield from _summed(one)

    def _due(self, now: float) -> Iterator[logging.LogRecord]:
        """Give the last of each that was held back for long enough."""
        for key, one in [*self._seen.items()]:
            if now - one.written < _WINDOW:
                continue
            del self._seen[key]
            if one.count:
                self._seen[key] = _Seen(now)
                yield from _summed(one)


def _summed(seen: _Seen) -> Iterator[logging.LogRecord]:
    if seen.last is not None:
        yield logging.makeLogRecord({**vars(seen.last), "repeated": seen.count})

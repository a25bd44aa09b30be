"""What a service says while it runs, on standard error.

Governing rule: one line is one event, whatever a record or a broker put into it:
text where somebody watches, JSON everywhere else; and what is about a record
names it as topic[partition]@offset.
"""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from abers_connectors._printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TextIO

__all__ = ["logging_to", "place"]

_OURS = "abers_connectors"
# What every record of the standard library has; the rest was given as `extra`.
_USUAL = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}


def place(topic: str, partition: int, offset: int | None = None) -> str:
    """Name a record, or a partition.

    Examples
    --------
    >>> place("scores", 3, 17), place("scores", 3)
    ('scores[3]@17', 'scores[3]')
    """
    return f"{topic}[{partition}]" + ("" if offset is None else f"@{offset}")


@contextmanager
def logging_to(stream: TextIO, **always: str) -> Iterator[None]:
    """Write the log to a stream in a `with` block: ours, and the warnings of all libraries.

    Parameters
    ----------
    stream
        Where to.
    **always
        Fields of every line in JSON, such as the application.

    Examples
    --------
    >>> import io
    >>> stream, log = io.StringIO(), logging.getLogger("abers_connectors.kafka")
    >>> with logging_to(stream):
    ...     log.warning("odd", extra={"topic": "scores", "partition": 3, "offset": 17})
    >>> found = json.loads(stream.getvalue())
    >>> found["level"], found["message"], found["at"]
    ('warning', 'odd', 'scores[3]@17')
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Text() if stream.isatty() else _Json(always))
    root, ours = logging.getLogger(), logging.getLogger(_OURS)
    before = root.level, ours.level
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    ours.setLevel(logging.INFO)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.removeHandler(handler)
        root.setLevel(before[0])
        ours.setLevel(before[1])


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _USUAL}


def _at(fields: Mapping[str, Any]) -> str | None:
    if "topic" not in fields or "partition" not in fields:
        return None
    return place(fields["topic"], fields["partition"], fields.get("offset"))


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Text(logging.Formatter):
    """For people: time, level, message, where, and other fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a line, or several if there is a traceback."""
        fields = _fields(record)
        at = _at(fields)
        rest = {one: fields[one] for one in fields if one not in ("topic", "partition", "offset")}
        words = [_time(record), record.levelname, printable(record.getMessage())]
        words += [printable(at)] if at and at not in record.getMessage() else []
        words += [f"{name}={printable(str(value))}" for name, value in rest.items()]
        lines = [" ".join(words)]
        if record.exc_info:
            lines += map(printable, self.formatException(record.exc_info).split("\n"))
        return "\n".join(lines)


class _Json(logging.Formatter):
    """For machines: an object a line."""

    def __init__(self, always: Mapping[str, str]) -> None:
        super().__init__()
        self._always = dict(always)

    def format(self, record: logging.LogRecord) -> str:
        """Write a line."""
        fields = _fields(record)
        at = _at(fields)
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **({} if at is None else {"at": at}),
            **self._always,
            **fields,
            "logger": record.name,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)  # ASCII, so that any text can be written

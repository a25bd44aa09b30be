"""What a service says while it runs, on standard error.

Governing rule: one line is one event, whatever a record or a broker put into it:
text where somebody watches, JSON everywhere else; and what is about a record
names it as topic[partition]@offset. Where the log is JSON, all of it is: the error
that ends the process and one in a thread too. What a library repeats is summed up.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from abers_connectors._printable import printable
from abers_connectors.repeats import Repeats

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TextIO

__all__ = ["for_people", "logging_to", "place"]

_OURS = "abers_connectors"
_log = logging.getLogger(__name__)
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


def for_people(stream: TextIO) -> bool:
    """Say whether the log of a stream is text; elsewhere it is JSON."""
    return stream.isatty()


@contextmanager
def logging_to(stream: TextIO, **always: str) -> Iterator[None]:
    """Write the log to a stream in a `with` block: ours, and the warnings of all libraries.

    So are errors that nobody handles, in a thread or where an object is deleted.

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
    handler = _Handler(stream)
    handler.setFormatter(_Text() if for_people(stream) else _Json(always))
    root, ours = logging.getLogger(), logging.getLogger(_OURS)
    with ExitStack() as stack:
        for logger, level in ((root, logging.WARNING), (ours, logging.INFO)):
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(level)
        stack.callback(handler.close)
        stack.callback(root.removeHandler, handler)
        root.addHandler(handler)
        stack.callback(logging.captureWarnings, capture=False)
        logging.captureWarnings(capture=True)
        stack.enter_context(_unhandled())
        yield


class _Handler(logging.StreamHandler["TextIO"]):
    """Writes lines, and of those that a library repeats how often they came."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._repeats = Repeats(_OURS)

    def emit(self, record: logging.LogRecord) -> None:
        """Write what is to be written now."""
        for one in self._repeats.add(record):
            super().emit(one)

    def close(self) -> None:
        """Write what was held back."""
        with self.lock or threading.RLock():
            for one in self._repeats.rest():
                super().emit(one)
        super().close()


@contextmanager
def _unhandled() -> Iterator[None]:
    """Log what Python would print of errors that reach nobody."""

    def in_a_thread(args: threading.ExceptHookArgs) -> None:
        name = "a thread" if args.thread is None else f"thread {args.thread.name}"
        _log.error("%s failed", name, exc_info=args.exc_value)

    def anywhere(args: sys.UnraisableHookArgs) -> None:
        what = args.err_msg or "an error that cannot be raised"
        _log.error("%s: %r", what, args.object, exc_info=args.exc_value)

    before = threading.excepthook, sys.unraisablehook
    threading.excepthook, sys.unraisablehook = in_a_thread, anywhere
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = before


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

"""The log of a service, on standard error.

Each event is one line, whatever text a record or a broker puts into it: text on a terminal, one
JSON object a line elsewhere. A line about a record names it as topic[partition]@offset. In JSON
mode uncaught errors are log lines too. `log_repeats` collapses what a library repeats.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from abers_connectors.log_repeats import RepeatFilter
from abers_connectors.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TextIO

__all__ = ["critical_line", "for_people", "location", "logging_to"]

_OURS = "abers_connectors"
_log = logging.getLogger(__name__)
# The attributes of every log record; all others come from `extra`.
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}


def location(topic: str, partition: int, offset: int | None = None) -> str:
    """Name a record, or a partition.

    Examples
    --------
    >>> location("scores", 3, 17), location("scores", 3)
    ('scores[3]@17', 'scores[3]')
    """
    return f"{topic}[{partition}]" + ("" if offset is None else f"@{offset}")


def for_people(stream: TextIO) -> bool:
    """Return whether the log on this stream is text; otherwise it is JSON."""
    return stream.isatty()


@contextmanager
def logging_to(stream: TextIO, **always: str) -> Iterator[None]:
    """Write the log to a stream inside a `with` block.

    The log has lines of abers from level INFO, of other libraries from WARNING, Python warnings,
    and errors that nothing handles, such as those in a thread. The fields `always`, such as the
    application, are in every JSON line.

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
    handler.setFormatter(_TextFormatter() if for_people(stream) else _JsonFormatter(always))
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
        stack.enter_context(_uncaught_errors())
        yield


def critical_line(logger: logging.Logger, message: str) -> tuple[str, str]:
    r"""Return a line of the log in two parts, between which its time belongs.

    It is for a thread that can write a line, and cannot make one.

    Examples
    --------
    >>> critical_line(logging.getLogger("abers_connectors"), "it hangs")
    ('', ' CRITICAL it hangs\n')
    """
    record = logger.makeRecord(logger.name, logging.CRITICAL, "", 0, message, (), None)
    handlers = (one for one in logging.getLogger().handlers if isinstance(one, _Handler))
    handler = next(handlers, None)
    line = _TextFormatter().format(record) if handler is None else handler.format(record)
    before, _, after = line.partition(_time(record))
    return before, f"{after}\n"


class _Handler(logging.StreamHandler["TextIO"]):
    """A stream handler that collapses repeated lines."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._repeats = RepeatFilter(_OURS)

    def emit(self, record: logging.LogRecord) -> None:
        """Write the lines that are due."""
        for one in self._repeats.add(record):
            super().emit(one)

    def close(self) -> None:
        """Write the lines that were delayed."""
        with self.lock or threading.RLock():
            for one in self._repeats.flush():
                super().emit(one)
        super().close()


@contextmanager
def _uncaught_errors() -> Iterator[None]:
    """Log the errors that Python would print as tracebacks."""

    def in_a_thread(args: threading.ExceptHookArgs) -> None:
        name = "a thread" if args.thread is None else f"thread {args.thread.name}"
        _log.error("%s failed", name, exc_info=args.exc_value)

    def unraisable(args: sys.UnraisableHookArgs) -> None:
        what = args.err_msg or "an error that cannot be raised"
        _log.error("%s: %r", what, args.object, exc_info=args.exc_value)

    before = threading.excepthook, sys.unraisablehook
    threading.excepthook, sys.unraisablehook = in_a_thread, unraisable
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = before


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _at(fields: Mapping[str, Any]) -> str | None:
    if "topic" not in fields or "partition" not in fields:
        return None
    return location(fields["topic"], fields["partition"], fields.get("offset"))


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _TextFormatter(logging.Formatter):
    """Text for a terminal: time, level, message, location, other fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and the traceback below it if there is one."""
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


class _JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, always: Mapping[str, str]) -> None:
        super().__init__()
        self._always = dict(always)

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
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
        return json.dumps(line, default=str)  # ASCII, so that any stream can encode it

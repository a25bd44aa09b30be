"""The log of a service, on standard error.

A filter for log lines that a library repeats. The first line is written at once. Lines that follow
within a minute and differ only in numbers are counted, and the last of them is written with the
count, unless the watchdog ends the process. So an unreachable broker does not fill the disk.

Each event is one line, whatever text a record or a broker puts into it: text on a terminal, one
JSON object a line elsewhere. A line about a record names it as topic[partition]@offset. In JSON
mode uncaught errors are log lines too. `log_repeats` collapses what a library repeats.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from abers_connectors.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TextIO

__all__ = ["RepeatFilter", "critical_line", "for_people", "location", "logging_to"]

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

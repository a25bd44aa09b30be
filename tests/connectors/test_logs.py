"""The log of a service: one line an event, text on a terminal and JSON elsewhere."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import threading
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers_connectors.logs import logging_to

LOG = logging.getLogger("abers_connectors.tests")
AT = {"topic": "scores", "partition": 3, "offset": 17}


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def as_json(message: str, *words: object, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Log something and return the JSON line."""
    stream = io.StringIO()
    with logging_to(stream, app="fraud"):
        LOG.info(message, *words, **more)
    (line,) = stream.getvalue().removesuffix("\n").split("\n")
    found: dict[str, Any] = json.loads(line)
    return found


def as_text(message: str, *words: object, **more: Any) -> str:  # noqa: ANN401
    """Log something on a terminal and return the text without the time."""
    stream = Terminal()
    with logging_to(stream, app="fraud"):
        LOG.info(message, *words, **more)
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", stream.getvalue())
    return stream.getvalue().partition(" ")[2].removesuffix("\n")


def test_json() -> None:
    """A JSON line has time, level, message, location and fields."""
    line = as_json("%s of %d", "one", 5, extra=AT | {"reason": "bad-json"})
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "info",
        "message": "one of 5",
        "at": "scores[3]@17",
        "app": "fraud",
        **AT,
        "reason": "bad-json",
        "logger": "abers_connectors.tests",
    }


def test_text() -> None:
    """A text line has the location and the other fields, once each."""
    assert as_text("read", extra=AT | {"reason": "bad-json"}) == (
        "INFO read scores[3]@17 reason=bad-json"
    )
    assert as_text("scores[3]@17: read", extra=AT) == "INFO scores[3]@17: read"
    assert as_text("plain") == "INFO plain"


def test_the_location_of_a_partition() -> None:
    """A line about a partition, not a record, names the partition."""
    assert as_json("x", extra={"topic": "t", "partition": 0})["at"] == "t[0]"
    assert "at" not in as_json("x", extra={"topic": "t"})


def test_errors() -> None:
    """A traceback is a JSON field, or follows the text line."""
    try:
        int("no number")
    except ValueError:
        line = as_json("failed", exc_info=True)
        seen = as_text("failed", exc_info=True)
    assert line["exception"].startswith("Traceback (most recent call last):\n")
    assert seen == f"INFO failed\n{line['exception']}"


def test_a_traceback_is_escaped() -> None:
    """The text of an error cannot move the cursor."""
    try:
        raise ValueError("\x1b[2J\u202eno")  # noqa: TRY301 - the text matters
    except ValueError:
        seen = as_text("failed", exc_info=True)
    assert seen.endswith(r"ValueError: \x1b[2J\u202eno")
    assert all(line.isprintable() for line in seen.split("\n"))


def test_values_of_any_kind() -> None:
    """A field that JSON cannot hold is written as a string."""
    assert as_json("x", extra={"what": {1, 2}, "why": ValueError("no")})["why"] == "no"


@given(st.text(st.characters()))
def test_one_line(text: str) -> None:
    """Any message is one printable line of text, or one JSON object."""
    assert as_text("%s", text).isprintable()
    assert as_json("%s", text)["message"] == text


def test_levels() -> None:
    """The log has lines of abers from INFO, of others from WARNING, and Python warnings."""
    stream = io.StringIO()
    with warnings.catch_warnings(), logging_to(stream):
        warnings.simplefilter("always")
        LOG.debug("no")
        logging.getLogger("another").info("no")
        logging.getLogger("another").warning("yes")
        warnings.warn("indeed", UserWarning, stacklevel=1)
    messages = [json.loads(line)["message"] for line in stream.getvalue().splitlines()]
    assert messages[0] == "yes"
    assert "UserWarning: indeed" in messages[1]


def test_uncaught_errors() -> None:
    """An error that ends a thread, or is raised in `__del__`, is a log line."""

    class Deleted:
        def __del__(self) -> None:
            raise ValueError("two")

    def fail() -> None:
        raise ValueError("one")

    stream = io.StringIO()
    with logging_to(stream, app="fraud"):
        thread = threading.Thread(target=fail, name="worker")
        thread.start()
        thread.join()
        one = Deleted()
        del one
    threaded, deleted = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (threaded["level"], threaded["message"]) == ("error", "thread worker failed")
    assert threaded["exception"].endswith("ValueError: one")
    assert deleted["exception"].endswith("ValueError: two")
    assert {threaded["app"], deleted["app"]} == {"fraud"}


def test_repeated_lines_of_a_library_are_collapsed() -> None:
    """They are written once, then counted; lines of abers are written each time."""
    stream = io.StringIO()
    with logging_to(stream):
        for number in range(5):
            logging.getLogger("kafka.net").warning("port %d is closed", number)
        LOG.info("once")
        LOG.info("once")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(one["message"], one.get("repeated")) for one in lines] == [
        ("port 0 is closed", None),
        ("once", None),
        ("once", None),
        ("port 4 is closed", 4),
    ]


def test_cleanup() -> None:
    """After the block nothing is written, and levels, handlers and hooks are restored."""
    stream = io.StringIO()
    root, ours = logging.getLogger(), logging.getLogger("abers_connectors")
    hooks = threading.excepthook, sys.unraisablehook
    before = root.level, ours.level, root.handlers[:]
    with logging_to(stream):
        pass
    LOG.error("no")
    assert stream.getvalue() == ""
    assert (root.level, ours.level, root.handlers[:]) == before
    assert (threading.excepthook, sys.unraisablehook) == hooks
    with pytest.warns(UserWarning, match="again"):
        warnings.warn("again", UserWarning, stacklevel=1)

"""The log of a service: a line an event, text for people and JSON for machines."""

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
    """A stream that somebody watches."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def as_json(message: str, *words: object, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Log something, and give the line."""
    stream = io.StringIO()
    with logging_to(stream, app="fraud"):
        LOG.info(message, *words, **more)
    (line,) = stream.getvalue().removesuffix("\n").split("\n")
    found: dict[str, Any] = json.loads(line)
    return found


def as_text(message: str, *words: object, **more: Any) -> str:  # noqa: ANN401
    """Log something where somebody watches, and give what is seen less the time."""
    stream = Terminal()
    with logging_to(stream, app="fraud"):
        LOG.info(message, *words, **more)
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", stream.getvalue())
    return stream.getvalue().partition(" ")[2].removesuffix("\n")


def test_json() -> None:
    """A machine gets an object with time, level, message, place and fields."""
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
    """A person gets a line with the place and other fields, once each."""
    assert as_text("read", extra=AT | {"reason": "bad-json"}) == (
        "INFO read scores[3]@17 reason=bad-json"
    )
    assert as_text("scores[3]@17: read", extra=AT) == "INFO scores[3]@17: read"
    assert as_text("plain") == "INFO plain"


def test_a_partition_is_a_place() -> None:
    """What is about a partition and no record names the partition."""
    assert as_json("x", extra={"topic": "t", "partition": 0})["at"] == "t[0]"
    assert "at" not in as_json("x", extra={"topic": "t"})


def test_errors() -> None:
    """The traceback of an error is one more field, or stands below the line."""
    try:
        int("no number")
    except ValueError:
        line = as_json("failed", exc_info=True)
        seen = as_text("failed", exc_info=True)
    assert line["exception"].startswith("Traceback (most recent call last):\n")
    assert seen == f"INFO failed\n{line['exception']}"


def test_a_traceback_is_escaped() -> None:
    """Its lines stay lines, and what the error says moves no cursor."""
    try:
        raise ValueError("\x1b[2J\u202eno")  # noqa: TRY301 - the text matters
    except ValueError:
        seen = as_text("failed", exc_info=True)
    assert seen.endswith(r"ValueError: \x1b[2J\u202eno")
    assert all(line.isprintable() for line in seen.split("\n"))


def test_values_of_any_kind() -> None:
    """A field that is no JSON is written as text."""
    assert as_json("x", extra={"what": {1, 2}, "why": ValueError("no")})["why"] == "no"


@given(st.text(st.characters()))
def test_one_line(text: str) -> None:
    """Whatever is said, it is one line that can be printed, or one object that says it."""
    assert as_text("%s", text).isprintable()
    assert as_json("%s", text)["message"] == text


def test_who_is_heard() -> None:
    """Ours are heard from information on, others when they warn, and warnings of Python too."""
    stream = io.StringIO()
    with warnings.catch_warnings(), logging_to(stream):
        warnings.simplefilter("always")
        LOG.debug("no")
        logging.getLogger("another").info("no")
        logging.getLogger("another").warning("yes")
        warnings.warn("indeed", UserWarning, stacklevel=1)
    told = [json.loads(line)["message"] for line in stream.getvalue().splitlines()]
    assert told[0] == "yes"
    assert "UserWarning: indeed" in told[1]


def test_what_nobody_handles() -> None:
    """An error that ends a thread, or comes where an object is deleted, is a line of the log."""

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


def test_what_a_library_repeats_is_summed_up() -> None:
    """It is written once, and its number at the end at the latest; ours is written each time."""
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


def test_all_is_as_before() -> None:
    """After the block nothing is written any more, and the levels are what they were."""
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

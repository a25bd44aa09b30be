"""From errors to lines of the log and exit codes."""

from __future__ import annotations

import errno
import io
import json
import logging
from typing import Any

import pytest
import typer

from abers.exceptions import (
    AbersError,
    BrokerError,
    ConfigError,
    DeadLettersError,
    DurabilityError,
    ParameterError,
    StateError,
)
from abers_connectors.errors import logged
from abers_connectors.logs import logging_to

LOG = logging.getLogger("abers_connectors.tests")


def ended(error: BaseException) -> tuple[int, list[dict[str, Any]]]:
    """Let a service end with an error; its exit code, and the lines of its log."""
    stream = io.StringIO()
    with pytest.raises(typer.Exit) as caught, logging_to(stream), logged(LOG):
        raise error
    return caught.value.exit_code, [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ConfigError(["one"]), 78, "one"),
        (ParameterError("wrong"), 78, "wrong"),
        (StateError("lost"), 78, "lost"),
        (BrokerError("gone"), 75, "gone"),
        (DurabilityError("full"), 75, "full"),
        (DeadLettersError("many"), 65, "many"),
        (AbersError("so"), 1, "so"),
        (OSError(errno.ENOSPC, "No space left on device", "x"), 1, "x: No space left on device"),
        (TimeoutError("timed out"), 1, "timed out"),
        (KeyboardInterrupt(), 130, "stopped before it started to serve"),
    ],
)
def test_an_error_is_a_critical_line(error: BaseException, code: int, message: str) -> None:
    """Each error ends the process with its code, and the last line of the log says why."""
    found, lines = ended(error)
    assert found == code
    (line,) = lines
    assert (line["level"], line["message"]) == ("critical", message)
    assert "exception" not in line


def test_each_mistake_is_a_line() -> None:
    """Of several mistakes in a configuration each has a line."""
    code, lines = ended(ConfigError(["one", "two"]))
    assert (code, [line["message"] for line in lines]) == (78, ["one", "two"])


def test_a_fault_of_the_program_is_a_line() -> None:
    """The traceback of an error that nobody expects is in the line, and not next to it."""
    code, (line,) = ended(ZeroDivisionError("so it is"))
    assert (code, line["message"]) == (1, "unexpected error: ZeroDivisionError('so it is')")
    assert line["exception"].startswith("Traceback (most recent call last):\n")

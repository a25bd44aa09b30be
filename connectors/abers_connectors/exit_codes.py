"""Exit codes, and errors as one sentence.

Every error of a command ends as a sentence on standard error, or in the log of a service, and an
exit code, never as a bare traceback: 1 failure, 2 usage, 65 too many dead letters, 75 a broker that
is unavailable, 78 an unusable configuration or state, 128 + n for signal n.
"""

# ruff: noqa: PLC0415 - nothing but typer is imported before a command runs

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

from abers_connectors.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from logging import Logger

__all__ = [
    "CONFIG",
    "FAILURE",
    "UNAVAILABLE",
    "USAGE",
    "drop_output",
    "fail",
    "logged",
    "refusal",
    "sentences",
    "show",
]

FAILURE, USAGE, DATA, UNAVAILABLE, CONFIG = 1, 2, 65, 75, 78


def drop_output() -> None:
    """Discard buffered output, so that Python does not fail on it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show(line: str, *, err: bool = False) -> None:
    """Print a line, with control characters escaped."""
    typer.echo(printable(line), err=err)


def _error(line: str) -> None:
    show(f"Error: {line}", err=True)


def fail(message: str, code: int, say: Callable[[str], object] = _error) -> NoReturn:
    """Write a message and exit with a code."""
    _fail_all([message], code, say)


def _fail_all(messages: Iterable[str], code: int, say: Callable[[str], object]) -> NoReturn:
    for message in messages:
        say(message)
    raise typer.Exit(code)


def refusal(error: OSError) -> str:
    """Return the message of an error of the operating system, with the file name."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


@contextmanager
def logged(log: Logger) -> Iterator[None]:
    """Turn any error into a critical log line and its exit code.

    An unexpected error has its traceback in the line.
    """
    try:
        with sentences(CONFIG, log.critical):
            yield
    except typer.Exit:
        raise
    except OSError as error:
        log.critical(refusal(error))
        raise typer.Exit(FAILURE) from None
    except Exception as error:
        log.critical("unexpected error: %r", error, exc_info=True)
        raise typer.Exit(FAILURE) from None


@contextmanager
def sentences(
    parameter: int = USAGE,
    say: Callable[[str], object] = _error,
    reword: Callable[[str], str] = str,
) -> Iterator[None]:
    """Turn an error into its reworded message and exit code, that of a wrong parameter as given."""
    try:
        from abers.exceptions import (
            AbersError,
            BrokerError,
            ConfigError,
            DeadLettersError,
            ParameterError,
            StateError,
        )
    except ImportError as error:  # such as an unavailable backend
        fail(str(error), FAILURE, say)
    except KeyboardInterrupt:
        _stopped(say)
    try:
        yield
    except ParameterError as error:
        fail(reword(str(error)), parameter, say)
    except DeadLettersError as error:
        fail(reword(str(error)), DATA, say)
    except BrokerError as error:
        fail(reword(str(error)), UNAVAILABLE, say)
    except (ConfigError, StateError) as error:
        problems = error.problems if isinstance(error, ConfigError) else [str(error)]
        _fail_all(map(reword, problems), CONFIG, say)
    except AbersError as error:
        fail(reword(str(error)), FAILURE, say)
    except BrokenPipeError:  # the reader has gone, as in `abers replay … | head`
        drop_output()
        raise typer.Exit(128 + signal.SIGPIPE) from None
    except KeyboardInterrupt:
        _stopped(say)


def _stopped(say: Callable[[str], object]) -> NoReturn:
    if say is _error:  # not an error
        typer.echo("Stopped.", err=True)
    else:
        say("stopped before it started to serve")
    raise typer.Exit(128 + signal.SIGINT) from None

"""Exit codes, and errors in a few lines.

Every error of a command ends on standard error, as what is wrong, where, and what to do, a line
each; or as a line in the log of a service. It has an exit code, and is never a bare traceback: 1
failure, 2 usage, 65 too many dead letters, 75 a broker that is unavailable, 78 an unusable
configuration or state, 128 + n for signal n.
"""

# ruff: noqa: PLC0415 - nothing but typer is imported before a command runs

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

from abers_connectors.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from logging import Logger

    from abers.exceptions import AbersError

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
    "show_error",
]

FAILURE, USAGE, DATA, UNAVAILABLE, CONFIG = 1, 2, 65, 75, 78


def drop_output() -> None:
    """Discard buffered output, so that Python does not fail on it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show(line: str, *, err: bool = False) -> None:
    """Print a line, with control characters escaped."""
    typer.echo(printable(line), err=err)


_PARTS = re.compile(r"; (?![^(]*\))")  # of a message, outside of brackets


def show_error(message: str) -> None:
    """Print what is wrong, and below it where, and what to do."""
    what, *rest = _PARTS.split(message)
    colour = sys.stderr.isatty() and not {"NO_COLOR"} & {*os.environ}
    head = f"error: {printable(what)}"
    if colour:
        head = typer.style("error:", fg="red", bold=True) + typer.style(head[6:], bold=True)
    typer.echo("\n".join([head, *(f"  {printable(one)}" for one in rest)]), err=True)


def _message(error: AbersError, say: Callable[[str], object]) -> str:
    """Return the message of an error; for people the place of a bad record comes second."""
    where, detail = getattr(error, "where", None), getattr(error, "detail", "")
    if where is None or say is not show_error:
        return str(error)
    what, _, remedy = detail.partition("; ")
    return "; ".join(filter(None, (what, where, remedy)))


def fail(message: str, code: int, say: Callable[[str], object] = show_error) -> NoReturn:
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
    say: Callable[[str], object] = show_error,
) -> Iterator[None]:
    """Turn an error into its message and exit code, that of a wrong parameter as given."""
    try:
        from abers.exceptions import (
            AbersError,
            BrokerError,
            ConfigError,
            DeadLettersError,
            DurabilityError,
            ParameterError,
            StateError,
        )
    except ImportError as error:
        # A variable asks for a backend that is not there, or the installation is not whole.
        fail(str(error), CONFIG if "ABERS_BACKEND" in os.environ else FAILURE, say)
    except KeyboardInterrupt:
        _stopped(say)
    try:
        yield
    except ParameterError as error:
        _fail_all(getattr(error, "problems", [str(error)]), parameter, say)
    except DeadLettersError as error:
        fail(str(error), DATA, say)
    except (BrokerError, DurabilityError) as error:
        fail(str(error), UNAVAILABLE, say)
    except (ConfigError, StateError) as error:
        problems = error.problems if isinstance(error, ConfigError) else [str(error)]
        _fail_all(problems, CONFIG, say)
    except AbersError as error:
        fail(_message(error, say), FAILURE, say)
    except BrokenPipeError:  # the reader has gone, as in `abers replay … | head`
        drop_output()
        raise typer.Exit(128 + signal.SIGPIPE) from None
    except KeyboardInterrupt:
        _stopped(say)


def _stopped(say: Callable[[str], object]) -> NoReturn:
    if say is show_error:  # not an error
        typer.echo("Stopped.", err=True)
    else:
        say("stopped before it started to serve")
    raise typer.Exit(128 + signal.SIGINT) from None

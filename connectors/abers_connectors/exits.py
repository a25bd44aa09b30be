"""From errors to a sentence and an exit code.

Governing rule: whatever goes wrong ends in a sentence on standard error and an
exit code (1 failure, 2 usage, 65 too many dead letters, 75 a broker that is not
there and may be later, 78 a configuration or state that must not be used,
128 + n for signal n), never in a traceback.
"""

# ruff: noqa: PLC0415 - nothing but typer is imported before a command runs

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

from abers_connectors._printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["CONFIG", "FAILURE", "UNAVAILABLE", "USAGE", "drop_output", "fail", "sentences", "tell"]

FAILURE, USAGE, DATA, UNAVAILABLE, CONFIG = 1, 2, 65, 75, 78


def drop_output() -> None:
    """Let nothing that could not be written fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str, code: int) -> NoReturn:
    """End with a message, a sentence, and an exit code."""
    _fail_all([message], code)


def _fail_all(messages: Iterable[str], code: int) -> NoReturn:
    for message in messages:
        tell(f"Error: {message}", err=True)
    raise typer.Exit(code)


def tell(line: str, *, err: bool = False) -> None:
    """Print a line for a person, to standard output or standard error."""
    typer.echo(printable(line), err=err)


@contextmanager
def sentences(parameter: int = USAGE) -> Iterator[None]:
    """Turn an error into its sentence and exit code, that of a wrong parameter as given."""
    try:
        from abers.exceptions import (
            AbersError,
            BrokerError,
            ConfigError,
            DeadLettersError,
            ParameterError,
            StateError,
        )
    except ImportError as error:  # such as a backend that is asked for and not there
        fail(str(error), FAILURE)
    except KeyboardInterrupt:
        _stopped()
    try:
        yield
    except ParameterError as error:
        fail(str(error), parameter)
    except DeadLettersError as error:
        fail(str(error), DATA)
    except BrokerError as error:
        fail(str(error), UNAVAILABLE)
    except (ConfigError, StateError) as error:
        _fail_all(error.problems if isinstance(error, ConfigError) else [str(error)], CONFIG)
    except AbersError as error:
        fail(str(error), FAILURE)
    except BrokenPipeError:  # the reader has seen enough, as in `abers replay … | head`
        drop_output()
        raise typer.Exit(128 + signal.SIGPIPE) from None
    except KeyboardInterrupt:
        _stopped()


def _stopped() -> NoReturn:
    typer.echo("Stopped.", err=True)
    raise typer.Exit(128 + signal.SIGINT) from None

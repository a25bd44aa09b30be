"""How errors reach people: exit codes, a few lines, and text of others printed safely.

Text that others wrote, in messages: printed safely, and quoted without secrets. Safe printing of
text that others wrote. A name from a record, a file or a broker may contain control characters.
Every line for a terminal passes through `printable`, so it stays one line, moves no cursor and
reverses no text. JSON output has its own escapes. It needs no engine, for a command also says why
that cannot be imported; documents of the engine have the same in `abers.pages.text`.

Exit codes, errors in a few lines, and the time that a signal leaves a process. Every error of a
command ends on standard error, as what is wrong, where, and what to do, a line each; or as a line
in the log of a service. It has an exit code, and is never a bare traceback: 1 failure, 2 usage, 65
too many dead letters, 75 a broker that is unavailable, 78 an unusable configuration or state, 128 +
n for signal n.

A limit of time for a process that got a signal to end. Python runs the handler of a signal in the
main thread, which may wait for a disk, a broker or another thread without end. So may the code that
closes things after the handler has raised. So the first signal also starts a clock, in a thread of
its own.
"""

from __future__ import annotations

import base64
import html
import os
import re
import signal
import sys
from contextlib import contextmanager
from functools import partial
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, NamedTuple, NoReturn
from urllib.parse import unquote, unquote_plus

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from logging import Logger

    from abers.exceptions import AbersError

__all__ = [
    "CONFIG",
    "FAILURE",
    "UNAVAILABLE",
    "USAGE",
    "allow_time",
    "drop_output",
    "fail",
    "logged",
    "printable",
    "quoted",
    "refusal",
    "sentences",
    "show",
    "show_error",
    "watch_signals",
]


def printable(text: str) -> str:
    r"""Return the text with control characters, line ends and bidirectional overrides escaped.

    Examples
    --------
    >>> print(printable("fraud\x1b[2J\n\u202eliam"))
    fraud\x1b[2J\n\u202eliam
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


_HIDDEN = "its answer repeats a secret, and is not shown"
_DEPTH = 3  # encodings, one inside the other
_LONGEST = 64  # characters that encode one of a secret
_MAX_WORK = 4 << 20  # characters that are searched; a text that needs more is not shown
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{2,}")


def quoted(text: str, most: int, *secrets: str) -> str:
    """Return the beginning of a text, or a sentence instead if it has a secret, however encoded.

    A secret may be encoded for a URL or a form, for JSON or HTML, or in Base64, alone or as a part
    of what is encoded, and up to three times.

    Examples
    --------
    >>> quoted("unknown client", 7, "sesame"), quoted("no such key: c2VzYW1l", 99, "sesame")
    ('unknown', 'its answer repeats a secret, and is not shown')
    """
    near = text[: most + _LONGEST * max(map(len, secrets), default=0)]
    return _HIDDEN if _shows(near, [one for one in secrets if one]) else text[:most]


def _shows(text: str, secrets: Sequence[str]) -> bool:
    """Return whether a text, or what it may encode, has a secret in it."""
    forms, seen, work = {text}, set[str](), 0
    for _ in range(_DEPTH + 1):
        for form in forms:
            work += len(form)
            if work > _MAX_WORK or any(one in form for one in secrets):
                return True
        seen |= forms
        forms = {decode(form) for form in forms for decode in _DECODERS} - seen
    return False


def _unescaped(text: str) -> str:
    """Decode the escapes of JSON; other characters behind a backslash are not in any secret."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], text)


def _from_base64(skipped: int, text: str) -> str:
    """Decode all that may be Base64, each from a character on: its beginning may be missing."""

    def decoded(found: re.Match[str]) -> str:
        digits = found[0][skipped:].translate(_STANDARD)
        whole = digits[: len(digits) - (len(digits) % 4 == 1)]  # one digit alone is no byte
        return base64.b64decode(whole + "=" * (-len(whole) % 4)).decode(errors="replace")

    return _BASE64.sub(decoded, text)


_STANDARD = str.maketrans("-_", "+/")
_DECODERS: list[Callable[[str], str]] = [
    unquote,
    unquote_plus,
    html.unescape,
    _unescaped,
    *(partial(_from_base64, skipped) for skipped in range(4)),
]


# ruff: noqa: PLC0415 - nothing but typer is imported before a command runs


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


_ENDING = (signal.SIGTERM, signal.SIGINT)
_SECONDS = 5.0  # for a command to remove what it has begun to write
_LAST_WORD = 1.0  # seconds for a message, as its reader may be what the process waits for


class _Patience(NamedTuple):
    """How long the process may take after the first signal, and what says that it took longer."""

    seconds: float
    say: Callable[[str], object]


class _Ending:
    """Waits for a signal, and then for the end of the process."""

    def __init__(self, patience: _Patience) -> None:
        self.patience = patience

    def watch(self, reading: int) -> None:
        """Read the numbers of signals from a pipe, until one is to end the process."""
        while (number := os.read(reading, 1)[0]) not in _ENDING:
            pass
        sleep(self.patience.seconds)
        message = (
            f"{signal.Signals(number).name} came {self.patience.seconds:g} s ago, and what the "
            "process waits for does not end; ending without it"
        )
        word = Thread(target=self.patience.say, args=(message,), daemon=True)
        word.start()
        word.join(_LAST_WORD)
        os._exit(128 + number)


_ending = _Ending(_Patience(_SECONDS, lambda message: show(f"error: {message}", err=True)))


def watch_signals() -> None:
    """End the process some seconds after its first SIGTERM or SIGINT, if it goes on till then."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    Thread(target=_ending.watch, args=(reading,), name="signals", daemon=True).start()


def allow_time(seconds: float, say: Callable[[str], object]) -> None:
    """Let the process take so long after a signal; `say` takes the message if it takes longer."""
    _ending.patience = _Patience(seconds, say)

"""Secrets from the environment or from files: passwords, keys and tokens, and the key of states.

This is the only module that reads them. A secret hides itself wherever it is printed.

The secret key that seals saved states. The key comes from the environment or from a file. A key
that could be guessed is refused, and no message shows any part of it.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Self

from abers.exceptions import ConfigError
from abers_connectors.regular_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "KEYLESS",
    "NAME",
    "SEALED",
    "Secret",
    "is_exposed",
    "new_key",
    "read_key",
    "read_secret",
    "state_key",
]

_MAX_BYTES = 1 << 16  # of a file; tokens with many claims take some kilobytes


class Secret(str):
    """A string that is never shown; `source` names the variable or the file it comes from.

    Examples
    --------
    >>> password = Secret("open sesame", "the environment variable PASSWORD")
    >>> print(password, f"{password}", [password])
    <secret> <secret> [<secret>]
    >>> password == "open sesame", type(password.reveal())
    (True, <class 'str'>)
    """

    __slots__ = ("source",)
    source: str

    def __new__(cls, value: str, source: str = "") -> Self:
        """Hide a value."""
        made = super().__new__(cls, value)
        made.source = source
        return made

    def __repr__(self) -> str:
        """Return a word instead of the value."""
        return "<secret>"

    __str__ = __repr__

    def reveal(self) -> str:
        """Return the value, for a library that would pass on what it sees."""
        return super().__str__()


def read_secret(
    variable: str, key: str, file: str | None, environ: Mapping[str, str] = os.environ
) -> Secret | None:
    """Return a secret, or None if neither the variable nor the file is given.

    A file is read anew by each call. The newline at its end does not count.

    Parameters
    ----------
    variable
        Environment variable that may have the secret.
    key, file
        Key of the configuration that may name a file, and the file that it names.
    environ
        The environment.

    Raises
    ------
    ConfigError
        If both are given, or the file cannot be used. The message never has the content.

    Examples
    --------
    >>> secret = read_secret("PASSWORD", "section.password_file", None, {"PASSWORD": "sesame"})
    >>> secret, secret.source
    (<secret>, 'the environment variable PASSWORD')
    """
    if file is None:
        given = environ.get(variable)
        return None if given is None else Secret(given, f"the environment variable {variable}")
    if variable in environ:
        msg = f"{key}: the environment variable {variable} is set, too; remove one of the two"
        raise ConfigError([msg])
    try:
        with open_regular(file) as opened:
            content = opened.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError([f"{key}: {file} cannot be read ({error.strerror})"]) from None
    return Secret(_line(content, f"{key}: {file}"), f"the file {file} ({key})")


def _line(content: bytes, where: str) -> str:
    """Return the only line of a file."""
    if len(content) > _MAX_BYTES:
        raise ConfigError([f"{where} has more than {_MAX_BYTES:,} bytes; is it another file?"])
    try:
        line = content.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise ConfigError([f"{where} is not UTF-8 text; is it another file?"]) from None
    if not line:
        raise ConfigError([f"{where} is empty; write the secret into it"])
    if not line.isprintable():
        msg = f"{where} has several lines or control characters; write one line, the secret alone"
        raise ConfigError([msg])
    return line


def is_exposed(file: str) -> bool:
    """Return whether every user of the machine can read a file."""
    try:
        return bool(Path(file).stat().st_mode & stat.S_IROTH)
    except OSError:  # which `read_secret` reports
        return False


NAME = "ABERS_STATE_KEY"
SEALED = (
    f"the saved state of a learner needs a secret key; set {NAME} in the environment, or "
    "state.key_file (`abers state new-key` creates one)"
)
"""The error if a learner has no key, and its state is always saved."""
KEYLESS = f"{SEALED}, or remove state.path"
"""The error if a learner with saved state has no key."""

_KEY = "state.key_file"
_FORM = re.compile(r"([0-9a-fA-F]{2}){16,64}")
_NEW = 32  # bytes
_DIFFERENT = 9  # one random key of 16 bytes in a hundred million has fewer different bytes
_PRINTABLE = range(0x20, 0x7F)


def new_key() -> str:
    """Return a new key, in the form that `read_key` reads."""
    return secrets.token_hex(_NEW)


def state_key(environ: Mapping[str, str] = os.environ, file: str | None = None) -> bytes | None:
    """Return the key from the environment or a file, or None.

    A ConfigError is raised if it is unusable.
    """
    given = read_secret(NAME, _KEY, file, environ)
    return read_key(given, NAME if file is None else f"{_KEY}: {file}") if given else None


def read_key(given: str, name: str = NAME) -> bytes:
    """Read a key of 16 to 64 random bytes in hexadecimal digits; messages have its name.

    Raises
    ------
    ConfigError
        If it has another form, or could be guessed.

    Examples
    --------
    >>> len(read_key(new_key()))
    32
    """
    text = given.strip()  # a variable may end in a newline
    problem = "must have 32 to 128 hexadecimal digits, an even number of them"
    if _FORM.fullmatch(text):
        key = bytes.fromhex(text)
        if not _guessable(key):
            return key
        problem = "is too regular to be random"
    raise ConfigError([f"{name}: the key {problem}; `abers state new-key` creates one"])


def _guessable(key: bytes) -> bool:
    """Return whether the key has a pattern or is text, which random bytes hardly ever are."""
    steps = {(b - a) % 256 for a, b in itertools.pairwise(key)}
    return min(len({*key}), len(steps)) < _DIFFERENT or all(one in _PRINTABLE for one in key)

"""Secrets from the environment or from files: passwords, keys and tokens.

This is the only module that reads them. A secret hides itself wherever it is printed.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Self

from abers.exceptions import ConfigError
from abers_connectors.regular_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Secret", "is_exposed", "read_secret"]

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

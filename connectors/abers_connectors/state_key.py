"""The secret key that seals saved states.

The key comes from the environment or from a file. A key that could be guessed is refused, and no
message shows any part of it.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
from typing import TYPE_CHECKING

from abers.exceptions import ConfigError
from abers_connectors.secret import read_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KEYLESS", "NAME", "SEALED", "new_key", "read_key", "state_key"]

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

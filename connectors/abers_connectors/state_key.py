"""The secret under which states are sealed.

Governing rule: it comes from the environment and from nowhere else, one that somebody could guess
is refused, and no message shows any of it.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
from typing import TYPE_CHECKING

from abers.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KEYLESS", "NAME", "new_key", "read_key", "state_key"]

NAME = "ABERS_STATE_KEY"
KEYLESS = (
    "the state of a learner is kept under a secret key; put one into the environment as "
    f"{NAME} (`abers state new-key` makes one), or leave out state.path"
)
"""What is said where a learner and a state have no key."""

_FORM = re.compile(r"([0-9a-fA-F]{2}){16,64}")
_NEW = 32  # bytes
_DIFFERENT = 9  # fewer are there in one of a hundred million random keys of 16 bytes
_PRINTABLE = range(0x20, 0x7F)


def new_key() -> str:
    """Make a key, in the form that `read_key` takes."""
    return secrets.token_hex(_NEW)


def state_key(environ: Mapping[str, str] = os.environ) -> bytes | None:
    """Give the key that is in the environment, if there is one.

    Raises
    ------
    ConfigError
        If it is none that may be used.
    """
    given = environ.get(NAME, "")
    return read_key(given) if given else None


def read_key(given: str) -> bytes:
    """Read a key: 16 to 64 random bytes as hexadecimal digits.

    Raises
    ------
    ConfigError
        If it is none that may be used.

    Examples
    --------
    >>> len(read_key(new_key()))
    32
    """
    text = given.strip()  # a file has a newline at its end
    why = "is not 32 to 128 hexadecimal digits, an even number of them"
    if _FORM.fullmatch(text):
        key = bytes.fromhex(text)
        if not _guessable(key):
            return key
        why = "is too regular to be random"
    raise ConfigError([f"{NAME}: the key {why}; `abers state new-key` makes one"])


def _guessable(key: bytes) -> bool:
    """Find patterns and texts, which random bytes hardly ever are."""
    steps = {(b - a) % 256 for a, b in itertools.pairwise(key)}
    return min(len({*key}), len(steps)) < _DIFFERENT or all(one in _PRINTABLE for one in key)

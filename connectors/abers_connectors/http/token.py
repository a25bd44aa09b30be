"""Token of the live page.

A token must work both in a header and in an address; any other is refused before anything is
served. No error shows any part of it.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from abers.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TOKEN", "token_of", "token_problem"]

TOKEN = "ABERS_HTTP_TOKEN"  # noqa: S105 - the name of the variable
"""Environment variable of the token."""

_BEARER = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)  # b64token of RFC 6750
_MAX_TOKEN_CHARACTERS = 1_024  # the head of a request holds more


def token_problem(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return what is wrong with the token, without showing it; None if it is good or missing.

    Examples
    --------
    >>> token_problem({}), token_problem({"ABERS_HTTP_TOKEN": "c2VjcmV0+/=="})
    (None, None)
    """
    token = environ.get(TOKEN)
    if token is None or (_BEARER.fullmatch(token) and len(token) <= _MAX_TOKEN_CHARACTERS):
        return None
    if not token:
        return (
            f"{TOKEN}: is empty; give it a value, or unset it to serve the live page to everybody"
        )
    return (
        f"{TOKEN}: cannot be sent in a header and in an address; use 1 to "
        f"{_MAX_TOKEN_CHARACTERS:,} of the "
        "characters A-Z, a-z, 0-9 and -._~+/ with = only at the end, such as from "
        "`openssl rand -hex 32`"
    )


def token_of(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the token, or None if there is none; raise a ConfigError if it cannot be used."""
    if problem := token_problem(environ):
        raise ConfigError([problem])
    return environ.get(TOKEN)

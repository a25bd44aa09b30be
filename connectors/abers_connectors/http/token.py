"""The token that the live page asks for.

Governing rule: a token that is configured works in every form in which it can be given, a header
and an address; one that cannot is refused before anything is served. No error shows any part of it.
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
"""The environment variable that holds the token."""

_BEARER = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)  # b64token of RFC 6750
_MOST = 1_024  # characters; the head of a request holds more


def token_problem(environ: Mapping[str, str] = os.environ) -> str | None:
    """Say what is wrong with the token, without showing it.

    Parameters
    ----------
    environ
        Where it is looked for.

    Returns
    -------
    str or None
        The name of the variable and a sentence; None if there is no token, or a good one.

    Examples
    --------
    >>> token_problem({}), token_problem({"ABERS_HTTP_TOKEN": "c2VjcmV0+/=="})
    (None, None)
    """
    token = environ.get(TOKEN)
    if token is None or (_BEARER.fullmatch(token) and len(token) <= _MOST):
        return None
    if not token:
        return (
            f"{TOKEN}: is empty; give it a value, or unset it to serve the live page to everybody"
        )
    return (
        f"{TOKEN}: cannot be sent in a header and in an address; use 1 to {_MOST:,} letters, "
        "digits and -._~+/ with = only at the end, such as `openssl rand -hex 32` makes"
    )


def token_of(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the token; None if there is none.

    Parameters
    ----------
    environ
        Where it is looked for.

    Raises
    ------
    ConfigError
        If it cannot be used.
    """
    if problem := token_problem(environ):
        raise ConfigError([problem])
    return environ.get(TOKEN)

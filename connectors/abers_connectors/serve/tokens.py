"""Tokens of `abers serve`: one for predictions, one for labels, and one for reading."""

from __future__ import annotations

import hmac
import os
from typing import TYPE_CHECKING

from abers.exceptions import ConfigError
from abers_connectors.http.token import TOKEN, is_local, token_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from abers_connectors.config.sections import HttpSection
    from abers_connectors.secret import Secret

__all__ = ["ServeTokens"]

PREDICT, LABEL = "ABERS_PREDICT_TOKEN", "ABERS_LABEL_TOKEN"


class ServeTokens:
    """What each kind of request must bring in its header `Authorization: Bearer …`.

    A server that others can reach needs all three.

    Raises
    ------
    ConfigError
        If it lacks one, or one cannot be used.
    """

    def __init__(self, http: HttpSection, environ: Mapping[str, str] = os.environ) -> None:
        self._of = {
            "predict": token_of(environ, variable=PREDICT, guards="predictions"),
            "label": token_of(environ, variable=LABEL, guards="labels"),
            "read": token_of(environ, http.token_file),
        }
        names = dict(zip(self._of, (PREDICT, LABEL, TOKEN), strict=True))
        lacking = [names[kind] for kind, token in self._of.items() if token is None]
        if lacking and not is_local(http.host):
            msg = (
                f"http.host = {http.host}: others can reach this server, and the environment lacks "
                f"{', '.join(lacking)}; set what is missing, such as from `openssl rand -hex 32`"
            )
            raise ConfigError([msg])

    def variable(self, kind: str) -> str | None:
        """Return the variable with the token of a kind of request; None if it needs none."""
        return None if self._of[kind] is None else {"predict": PREDICT, "label": LABEL}[kind]

    @property
    def read(self) -> Secret | None:
        """The token for reading, if there is one."""
        return self._of["read"]

    def allows(self, kind: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Return whether a request may pass."""
        token = self._of[kind]
        if token is None:
            return True
        given = next((value for name, value in headers if name == b"authorization"), b"")
        scheme, _, bearer = given.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(
            bearer.strip(), token.reveal().encode()
        )

"""The certificate of the HTTP server."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from abers_connectors.certificate import load_certificate

if TYPE_CHECKING:
    from abers_connectors.config.sections import HttpSection

__all__ = ["require_certificate"]

_REMEDY = "write it without a password, such as by `openssl pkey`, where only the server reads it"


def require_certificate(http: HttpSection) -> None:
    """Raise a ConfigError if a certificate is configured that cannot be used with its key."""
    if http.certfile is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_certificate(context, "http", (http.certfile, http.keyfile), _REMEDY)

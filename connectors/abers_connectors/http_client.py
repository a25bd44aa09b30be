"""HTTP requests that follow no redirection: what they carry goes to the configured URL only."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, build_opener

from abers_connectors.regular_files import open_regular

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

__all__ = ["error_name", "open_requests"]


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def open_requests(cafile: str | None = None) -> OpenerDirector:
    """Return an opener; it trusts the authorities of the system, and those of a file if given."""
    if cafile is None:
        return build_opener(_NoRedirect)
    context = ssl.create_default_context()
    with open_regular(cafile):  # the library would wait in a pipe
        context.load_verify_locations(cafile)
    return build_opener(_NoRedirect, HTTPSHandler(context=context))


def error_name(error: Exception) -> str:
    """Return the type of an error, without its message, which may contain the URL."""
    reason = error.reason if isinstance(error, URLError) else error
    return type(reason).__name__ if isinstance(reason, Exception) else "URLError"

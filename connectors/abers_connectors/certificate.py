"""Certificates with their keys, and errors that name the file: OpenSSL names none."""

from __future__ import annotations

import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING

from abers.exceptions import ConfigError
from abers_connectors.regular_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers_connectors.secret import Secret

__all__ = ["load_certificate", "pem_file"]


def load_certificate(
    context: ssl.SSLContext,
    section: str,
    files: tuple[str, str | None],
    remedy: str,
    secret: Secret | None = None,
) -> None:
    """Load a certificate and its key; OpenSSL would ask the terminal for a missing password.

    Parameters
    ----------
    context
        Gets both.
    section
        Section of the configuration, with the keys certfile and keyfile.
    files
        The file of the certificate, and that of the key, or None if both are in one file.
    remedy
        What to do if the key is encrypted, and there is no password.
    secret
        The password of the key, if there is one.

    Raises
    ------
    ConfigError
        If a file cannot be used, or the key is that of another certificate.
    """
    locked = []

    def password() -> str:
        reason = remedy
        if secret is not None:
            reason = f"the password in {secret.source} does not decrypt it"
        locked.append(f"is encrypted; {reason}")
        return "" if secret is None else secret

    certfile, keyfile = files
    name = f"{section}.certfile"
    with pem_file(name, certfile), open_regular(certfile):
        pass
    if keyfile is not None:
        name = f"{section}.keyfile"
        with pem_file(name, keyfile), open_regular(keyfile):
            pass
    with pem_file(name, keyfile or certfile, locked):
        context.load_cert_chain(certfile, keyfile, password)


@contextmanager
def pem_file(key: str, path: str, locked: Sequence[str] = ()) -> Iterator[None]:
    """Use a file in a `with` block; its errors become a ConfigError with the key and the path."""
    try:
        yield
    except ssl.SSLError as error:
        why = locked[0] if locked else f"cannot be used ({error.reason or 'not in PEM format'})"
        raise ConfigError([f"{key}: {path} {why}"]) from None
    except OSError as error:
        raise ConfigError([f"{key}: {path} cannot be read ({error.strerror})"]) from None

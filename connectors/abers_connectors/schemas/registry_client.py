"""Client of a schema registry with Confluent's interface.

Every question has a deadline, however slowly the registry answers, and the answer a largest size. A
registry that is away, fails or does not answer as a registry is asked again until the deadline.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

import abers
from abers.exceptions import BrokerError, ConfigError
from abers_connectors.http_client import Reply, ask
from abers_connectors.quotation import quoted
from abers_connectors.schemas.registry_login import (
    login_advice,
    login_header,
    secrets_of,
    tls_context,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.config.sections import SchemaRegistrySection

__all__ = ["RegisteredSchema", "SchemaReference", "SchemaRegistry"]

T = TypeVar("T")

_MAX_BYTES = 4 << 20  # of an answer
_PAUSE = 0.25  # seconds between two attempts
_SHARE = 0.5  # of the time-out that one attempt may take, so that there is another
_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_CONTENT = {"Content-Type": _MEDIA_TYPE}
_MAX_ID = 2**31 - 1  # also of versions
_OK, _NOT_FOUND, _ERROR = 200, 404, 500
_NO_LOGIN = {401, 403}
_RETRIED = {408, 429}  # besides all errors of a server
_MISSING = range(40400, 40500)  # codes in the body, which no other server's 404 has
_MAX_CHARACTERS = 1000  # of what the registry says


class SchemaReference(msgspec.Struct, frozen=True):
    """A schema that another schema imports, by the name that it has there."""

    name: str
    subject: str
    version: int


class RegisteredSchema(msgspec.Struct, frozen=True, rename="camel"):
    """A schema as the registry has it."""

    schema: str
    schema_type: str = "AVRO"
    references: tuple[SchemaReference, ...] = ()


class _Identity(msgspec.Struct, frozen=True):
    id: int


class _Problem(msgspec.Struct, frozen=True):
    """What a registry says of a request that it rejects."""

    error_code: int
    message: str = ""


class _Refusal(NamedTuple):
    """An answer of a registry that works: it does not have, or does not do, what was asked."""

    status: int
    message: str


class _FaultError(Exception):
    """An answer that no working registry gives."""


class SchemaRegistry:
    """The registry of a configuration."""

    def __init__(
        self, section: SchemaRegistrySection, environ: Mapping[str, str] = os.environ
    ) -> None:
        parts = urlsplit(section.url)
        self._tls = tls_context(section.cafile) if parts.scheme == "https" else None
        self._timeout = section.timeout / 1000
        self.name = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._headers = {"Accept": _MEDIA_TYPE, "User-Agent": f"abers/{abers.__version__}"}
        self._section, self._login = section, partial(login_header, section, environ)
        self._login()  # so that a missing secret is found before the first record

    def require(self) -> None:
        """Raise a BrokerError if the registry is away, a ConfigError if it refuses the login."""
        self._find("/schemas/ids/1", RegisteredSchema)  # which need not exist

    def schema(self, number: int) -> RegisteredSchema | None:
        """Return the schema of an id; None if the registry does not know it, or refuses to say."""
        # Some registries answer an unknown id as a page that they do not have.
        return self._known(f"/schemas/ids/{number}") if number <= _MAX_ID else None

    def version(self, subject: str, version: int) -> RegisteredSchema | None:
        """Return a version of a subject; None if the registry does not know it, or refuses to."""
        if not subject.strip(".") or version > _MAX_ID:  # a path that leads elsewhere
            return None
        return self._known(f"{_path(subject)}/versions/{version}")

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        """Return the id of a schema, which is registered under a subject if it is not yet.

        A ConfigError has the sentence of a registry that refuses it, as one that does not fit the
        earlier versions.
        """
        body = msgspec.json.encode(schema)
        # Another writer may have registered it before.
        if (known := self._find(_path(subject), _Identity, body)) is not None:
            return known.id
        found = self._ask(f"{_path(subject)}/versions", _Identity, body)
        if isinstance(found, _Refusal):
            msg = f"the schema registry refuses the schema of {subject}: {found.message}"
            raise ConfigError([msg])
        return found.id

    def _known(self, path: str) -> RegisteredSchema | None:
        """Return a schema. The writer of its id or name must not stop a service by a refusal."""
        found = self._ask(path, RegisteredSchema, None)
        return None if isinstance(found, _Refusal) else found

    def _find(self, path: str, kind: type[T], body: bytes | None = None) -> T | None:
        """Return what is at a path, or matches a body; None if there is nothing."""
        found = self._ask(path, kind, body)
        if not isinstance(found, _Refusal):
            return found
        if found.status == _NOT_FOUND:
            return None
        msg = f"the schema registry {self.name} answers {found.status} to {path}: {found.message}"
        raise ConfigError([msg])

    def _ask(self, path: str, kind: type[T], body: bytes | None) -> T | _Refusal:
        """Ask until a working registry answers; a BrokerError is raised if it takes too long.

        A registry that refuses the login is a ConfigError.
        """
        until, login = time.monotonic() + self._timeout, self._login()
        while True:
            seconds = max(_PAUSE, min(until - time.monotonic(), _SHARE * self._timeout))
            try:
                found = _read(self._attempt(path, body, login, seconds), kind)
            except (OSError, HTTPException, ValueError, _FaultError) as error:
                why = quoted(_reason(error), _MAX_CHARACTERS, *secrets_of(login))
            else:
                if not isinstance(found, _Refusal):
                    return found
                if found.status in _NO_LOGIN:
                    raise ConfigError([self._no_login(found.status)])
                said = quoted(found.message, _MAX_CHARACTERS, *secrets_of(login))
                return found._replace(message=said)
            if time.monotonic() + _PAUSE > until:
                break
            time.sleep(_PAUSE)
        msg = (
            f"the schema registry {self.name} gave no answer to {path} within "
            f"{self._timeout:g} s (schema_registry.timeout): {why}"
        )
        raise BrokerError(msg)

    def _no_login(self, status: int) -> str:
        advice = login_advice(self._section)
        return f"schema_registry.username: {self.name} answers {status}; {advice}"

    def _attempt(
        self, path: str, body: bytes | None, login: dict[str, str], seconds: float
    ) -> Reply:
        headers = self._headers | login | ({} if body is None else _CONTENT)
        return ask(
            self.name + path,
            headers,
            body,
            seconds=seconds,
            most=_MAX_BYTES + 1,
            tls=self._tls,
            direct=True,
        )


def _path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _read(answer: Reply, kind: type[T]) -> T | _Refusal:
    """Decode an answer; a fault is one that no registry that works gives."""
    status, body = answer
    if status in _NO_LOGIN:
        return _Refusal(status, "")
    if status >= _ERROR or status in _RETRIED:
        why = f"it answers {status}"
        raise _FaultError(why)
    if len(body) > _MAX_BYTES:
        why = f"its answer has more than {_MAX_BYTES:,} bytes"
        raise _FaultError(why)
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if status == _OK:
            return msgspec.json.decode(body, type=kind)
        problem = msgspec.json.decode(body, type=_Problem)
        if status != _NOT_FOUND or problem.error_code in _MISSING:
            return _Refusal(status, problem.message)
    why = f"it answers {status}, but not as a registry; check schema_registry.url"
    raise _FaultError(why)


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__

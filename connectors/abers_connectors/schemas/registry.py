"""The schema registry: its client, its wire format, and a cache of what schemas compile to.

The wire format is a zero byte, the id of the schema in four bytes, and a body. Between id and body,
a Protobuf record has the indexes of its message type within the file.

The cache finds compiled schemas by schema id, and has a bounded size. It remembers for a while that
the registry does not know an id, and then asks again: it may have been registered since.

A login is a user with a password, or a token without a user. Passwords and tokens come from the
environment or a file, and no message shows them.

The client uses Confluent's interface. Every request has a deadline, however slowly the registry
answers, and the answer has a largest size. A registry that does not answer, fails or does not
answer as a registry is asked again until the deadline.
"""

from __future__ import annotations

import base64
import logging
import os
import ssl
import time
from collections import OrderedDict
from contextlib import nullcontext, suppress
from functools import partial
from http.client import HTTPException
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

import abers
from abers.exceptions import BrokerError, ConfigError
from abers.stream.cells import BadRecordError
from abers_connectors.errors import quoted
from abers_connectors.http_client import Reply, ask
from abers_connectors.regular_files import open_regular
from abers_connectors.secret import read_secret
from abers_connectors.tokens import stored_token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from abers_connectors.config.sections import SchemaRegistrySection

__all__ = [
    "HEAD",
    "REGISTRY_PASSWORD",
    "REGISTRY_TOKEN",
    "RegisteredSchema",
    "SchemaCache",
    "SchemaReference",
    "SchemaRegistry",
    "UnusableSchemaError",
    "decimal_number",
    "head",
    "imported",
    "login_header",
    "message_indexes",
    "schema_id",
]

HEAD = 5
"""Bytes before the body."""

_MAX_DEPTH = 100  # of nested message types, as many as Protobuf's own parsers go down
_MAX_VARINT_BYTES = 5


def head(number: int) -> bytes:
    r"""Return the head of records of a schema.

    >>> head(7)
    b'\x00\x00\x00\x00\x07'
    """
    return b"\0" + number.to_bytes(4)


def schema_id(raw: bytes) -> int:
    r"""Return the schema id of a record, or raise a BadRecordError if it has none.

    >>> schema_id(b"\x00\x00\x00\x00\x07body")
    7
    """
    if len(raw) < HEAD or raw[0]:
        begins = f"begins with {raw[:HEAD].hex(' ')}" if raw else "is empty"
        detail = (
            f"the record {begins}, not with a zero byte and the id of its schema in four bytes; "
            'write it with a serializer of the schema registry, or set input.format = "json"'
        )
        raise BadRecordError("bad-wire-format", detail)
    return int.from_bytes(raw[1:HEAD])


def message_indexes(raw: bytes) -> tuple[tuple[int, ...], int]:
    r"""Return the indexes of the message type of a Protobuf record, and where its body begins.

    The indexes are those of the type in the file, and of each nested type within its parent. The
    first type of a file, the usual one, is written as a single zero.

    >>> message_indexes(b"\x00\x00\x00\x00\x07" + b"\x00" + b"body")
    ((0,), 6)
    >>> message_indexes(b"\x00\x00\x00\x00\x07" + b"\x04\x02\x00" + b"body")
    ((1, 0), 8)
    """
    count, at = _varint(raw, HEAD)
    if not 0 <= count <= _MAX_DEPTH:
        raise _BAD_INDEXES
    found = []
    for _ in range(count):
        index, at = _varint(raw, at)
        if index < 0:
            raise _BAD_INDEXES
        found.append(index)
    return tuple(found) or (0,), at


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """Read a signed number in zigzag form; return it, and where the next begins."""
    found = 0
    for shift, byte in enumerate(raw[at : at + _MAX_VARINT_BYTES]):
        found |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
            return (found >> 1) ^ -(found & 1), at + shift + 1
    raise _BAD_INDEXES


_BAD_INDEXES = BadRecordError(
    "bad-wire-format",
    "no indexes of a message type follow the schema id; write the record with the registry's "
    "serializer of Protobuf",
)


_log = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_CACHED_SCHEMAS = 500
_MAX_ERRORS = 10_000
_REMEMBERED = 30.0  # seconds until an id without a usable schema is looked up again
_AWAY = 10.0  # seconds for which a registry that was away is not asked


class UnusableSchemaError(ValueError):
    """A schema that cannot decode records."""


class _Failure(NamedTuple):
    error: BadRecordError
    until: float


class SchemaCache(Generic[T]):
    """Finds what the schema of an id compiles to.

    `compiled` compiles a schema, or raises an UnusableSchemaError; any other error of its own is
    logged, and its schema is unusable, too. If the registry does not answer, or this machine has no
    room to compile, the cache raises a BrokerError with `stop`; otherwise the records of unknown
    schemas are bad, and the registry gets no request for some seconds. It raises a ConfigError if
    the registry refuses the login. Nothing that producers or the registry send raises another
    error.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        compiled: Callable[[RegisteredSchema], T],
        *,
        stop: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry, self._compiled, self._stop = registry, compiled, stop
        self._clock = clock
        self._found: OrderedDict[int, T] = OrderedDict()
        self._failures: OrderedDict[int, _Failure] = OrderedDict()
        self._away: _Failure | None = None

    def get(self, number: int) -> T:
        """Return what a schema compiles to, or raise a BadRecordError."""
        if (known := self._found.get(number)) is not None:
            self._found.move_to_end(number)
            return known
        now = self._clock()
        for failure in (self._failures.get(number), self._away):
            if failure is not None and now < failure.until:
                raise failure.error
        try:
            found = self._look_up(number)
        except BadRecordError as error:
            _put(self._failures, number, _Failure(error, now + _REMEMBERED), _MAX_ERRORS)
            raise
        _put(self._found, number, found, _MAX_CACHED_SCHEMAS)
        return found

    def _look_up(self, number: int) -> T:
        try:
            return self._compiled(self._schema(number))
        except (BadRecordError, ConfigError):
            raise
        except UnusableSchemaError as error:
            raise BadRecordError("unusable-schema", f"schema {number} {error}") from None
        except (BrokerError, OSError, MemoryError) as error:
            raise self._unavailable(number, error) from None
        except Exception as error:  # noqa: BLE001 - of libraries, at what strangers wrote
            _log.exception("schema %s cannot be used", number)
            detail = f"schema {number} cannot be used ({type(error).__name__}; the log says more)"
            raise BadRecordError("unusable-schema", detail) from None

    def _schema(self, number: int) -> RegisteredSchema:
        schema = self._registry.schema(number)
        if schema is None:
            detail = (
                f"the registry {self._registry.name} has no schema {number}; register the "
                "schema, or name the producer's registry in schema_registry.url"
            )
            raise BadRecordError("unknown-schema", detail)
        return schema

    def _unavailable(self, number: int, error: Exception) -> BrokerError | BadRecordError:
        why = error.strerror if isinstance(error, OSError) else str(error)  # without a path
        detail = f"schema {number} is not known: {why or type(error).__name__}"
        if self._stop:
            return error if isinstance(error, BrokerError) else BrokerError(detail)
        away = BadRecordError("registry-unavailable", detail)
        self._away = _Failure(away, self._clock() + _AWAY)
        return away


def _put(cache: OrderedDict[int, T], key: int, value: T, limit: int) -> None:
    """Put a value into a cache, and remove the oldest if there are too many."""
    cache[key] = value
    if len(cache) > limit:
        cache.popitem(last=False)


REGISTRY_PASSWORD = "ABERS_SCHEMA_REGISTRY_PASSWORD"  # noqa: S105 - the name of the variable
"""Environment variable of the password of `schema_registry.username`."""
REGISTRY_TOKEN = "ABERS_SCHEMA_REGISTRY_TOKEN"  # noqa: S105 - the name of the variable
"""Environment variable of a bearer token."""

_PASSWORD_FILE, _TOKEN_FILE = "schema_registry.password_file", "schema_registry.token_file"


def login_header(section: SchemaRegistrySection, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the header of the login; empty without one.

    Each call reads the file, so a renewed token needs no restart. Raises a ConfigError if a secret
    is missing or cannot be used, and a BrokerError if the token has expired.
    """
    token = read_secret(REGISTRY_TOKEN, _TOKEN_FILE, section.token_file, environ)
    if section.username is None:
        if token is None:
            return {}
        return {"Authorization": f"Bearer {stored_token(token).value.reveal()}"}
    if token is not None:
        msg = f"schema_registry.username: {token.source} has a token, too; remove one of the two"
        raise ConfigError([msg])
    password = read_secret(REGISTRY_PASSWORD, _PASSWORD_FILE, section.password_file, environ)
    if password is None:
        msg = (
            f"schema_registry.username: set the user's password in {REGISTRY_PASSWORD}, or name a "
            f"file that has it in {_PASSWORD_FILE}"
        )
        raise ConfigError([msg])
    login = f"{section.username}:{password.reveal()}".encode()
    return {"Authorization": f"Basic {base64.b64encode(login).decode()}"}


def secrets_of(header: Mapping[str, str]) -> list[str]:
    """Return the password or the token in the header of a login.

    >>> secrets_of({"Authorization": "Bearer abc"}), secrets_of({"Authorization": "Basic dTpwOnc="})
    (['abc'], ['p:w'])
    """
    found = []
    for value in header.values():
        kind, _, secret = value.partition(" ")
        password = base64.b64decode(secret).decode().partition(":")[2] if kind == "Basic" else ""
        found.append(password or secret)
    return found


def login_advice(section: SchemaRegistrySection) -> str:
    """Return what to check after a registry has refused the login."""
    rights = "who may read, and for outputs write"
    if section.username is not None:
        where = f"{REGISTRY_PASSWORD} or {_PASSWORD_FILE}"
        return f"name a user {rights}, and check the password in {where}"
    where = f"{REGISTRY_TOKEN} or {_TOKEN_FILE}"
    return f"name a user {rights}, or check the token in {where}"


def tls_context(cafile: str | None) -> ssl.SSLContext:
    """Return a context that trusts the authorities of a file, by default those of the system."""
    try:
        with nullcontext() if cafile is None else open_regular(cafile):
            return ssl.create_default_context(cafile=cafile)
    except ssl.SSLError as error:
        why = f"cannot be used ({error.reason or 'not in PEM format'})"
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
    raise ConfigError([f"schema_registry.cafile: {cafile} {why}"])


_MAX_ANSWER_BYTES = 4 << 20  # of an answer
_PAUSE = 0.25  # seconds between two attempts
_SHARE = 0.5  # of the time-out that one attempt may take, so that there is another
_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_CONTENT = {"Content-Type": _MEDIA_TYPE}
_MAX_ID = 2**31 - 1  # also of versions
_OK, _NOT_FOUND, _ERROR = 200, 404, 500
_NO_LOGIN = {401, 403}
_RETRIED = {408, 429}  # besides all errors of a server
_MISSING = range(40400, 40500)  # codes in the body, which no other server's 404 has
_MAX_SAID = 1000  # of what the registry says


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
    """The reason that a registry has to reject a request."""

    error_code: int
    message: str = ""


class _Refusal(NamedTuple):
    """An answer of a working registry that lacks the schema, or rejects the request."""

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
        """Raise a BrokerError without an answer, and a ConfigError if the login is refused."""
        self._find("/schemas/ids/1", RegisteredSchema)  # which need not exist

    def schema(self, number: int) -> RegisteredSchema | None:
        """Return the schema of an id; None if the registry does not know it, or refuses to say."""
        # Some registries answer an unknown id as a page that they do not have.
        return self._known(f"/schemas/ids/{number}") if number <= _MAX_ID else None

    def version(self, subject: str, version: int) -> RegisteredSchema | None:
        """Return a version of a subject; None if the registry does not know it, or refuses it."""
        if not subject.strip(".") or version > _MAX_ID:  # a path that leads elsewhere
            return None
        return self._known(f"{_path(subject)}/versions/{version}")

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        """Register a schema under a subject if it is not yet, and return its id.

        Raises a ConfigError with the reason of a registry that refuses the schema, for example
        because it does not fit the earlier versions.
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
        """Return a schema, or None: a refusal must not stop a service, as others choose the id."""
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
        """Ask until a working registry answers.

        Raises a BrokerError if that takes too long, and a ConfigError if it refuses the login.
        """
        until, login = time.monotonic() + self._timeout, self._login()
        while True:
            seconds = max(_PAUSE, min(until - time.monotonic(), _SHARE * self._timeout))
            try:
                found = _read(self._attempt(path, body, login, seconds), kind)
            except (OSError, HTTPException, ValueError, _FaultError) as error:
                why = quoted(_reason(error), _MAX_SAID, *secrets_of(login))
            else:
                if not isinstance(found, _Refusal):
                    return found
                if found.status in _NO_LOGIN:
                    raise ConfigError([self._no_login(found.status)])
                said = quoted(found.message, _MAX_SAID, *secrets_of(login))
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
            most=_MAX_ANSWER_BYTES + 1,
            tls=self._tls,
            direct=True,
        )


def _path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _read(answer: Reply, kind: type[T]) -> T | _Refusal:
    """Decode an answer; raises a _FaultError for an answer that no working registry gives."""
    status, body = answer
    if status in _NO_LOGIN:
        return _Refusal(status, "")
    if status >= _ERROR or status in _RETRIED:
        why = f"it answers {status}"
        raise _FaultError(why)
    if len(body) > _MAX_ANSWER_BYTES:
        why = f"its answer has more than {_MAX_ANSWER_BYTES:,} bytes"
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


_MAX_IMPORTED_SCHEMAS = 200
_SHOWN = 100  # characters of a name, in errors
_MAX_IMPORTED_CHARACTERS = 4 << 20  # of a schema with all that it imports


def imported(schema: RegisteredSchema, registry: SchemaRegistry) -> dict[str, str]:
    """Return the texts of all schemas that a schema imports, by the names of the imports."""
    found: dict[str, str] = {}
    left = {one.name: one for one in schema.references}
    size = len(schema.schema)
    while left:
        if len(found) + len(left) > _MAX_IMPORTED_SCHEMAS:
            msg = f"imports more than {_MAX_IMPORTED_SCHEMAS} schemas"
            raise UnusableSchemaError(msg)
        name, one = left.popitem()
        part = registry.version(one.subject, one.version)
        if part is None:
            msg = f"imports {name[:_SHOWN]}, and there is no version {one.version} of "
            msg += one.subject[:_SHOWN]
            raise UnusableSchemaError(msg)
        found[name] = part.schema
        size += len(part.schema)
        if size > _MAX_IMPORTED_CHARACTERS:
            msg = f"has more than {_MAX_IMPORTED_CHARACTERS:,} characters with all that it imports"
            raise UnusableSchemaError(msg)
        left |= {one.name: one for one in part.references if one.name not in found}
    return found


_MAX_DECIMAL_BYTES = 64
_MAX_SCALE = 400  # so that no power of ten takes long


def decimal_number(data: bytes, scale: int) -> float:
    r"""Return a decimal as a number; raises a ValueError if it is too large.

    >>> decimal_number(b"\xfb\x2e", 2)
    -12.34
    """
    if len(data) > _MAX_DECIMAL_BYTES or abs(scale) > _MAX_SCALE:
        msg = f"a decimal has {len(data)} bytes and the scale {scale}"
        raise ValueError(msg)
    number = int.from_bytes(data, signed=True)
    return number / 10**scale if scale > 0 else float(number * 10**-scale)

"""Cache of what the schemas of a registry compile to, by schema id, of bounded size.

An id that the registry does not know is remembered for a while, and then looked up again: it may
have been registered since.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from abers.exceptions import BrokerError, ConfigError
from abers.stream.cells import BadRecordError

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers_connectors.schemas.registry_client import RegisteredSchema, SchemaRegistry

__all__ = ["SchemaCache", "UnusableSchemaError"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_SCHEMAS = 500
_MAX_ERRORS = 10_000
_REMEMBERED = 30.0  # seconds until an id without a usable schema is looked up again
_AWAY = 10.0  # seconds for which a registry that was away is not asked


class UnusableSchemaError(ValueError):
    """A schema that records cannot be decoded with."""


class _Failure(NamedTuple):
    error: BadRecordError
    until: float


class SchemaCache(Generic[T]):
    """Finds what the schema of an id compiles to.

    `compiled` compiles a schema, or raises an UnusableSchemaError; any other error of its own is
    logged, and its schema is unusable, too. If the registry is away, or this machine has no room to
    compile, a BrokerError is raised if `stop`; otherwise the records of unknown schemas are bad,
    and the registry gets no request for some seconds. A ConfigError is raised if the registry
    refuses the login. Nothing that producers or the registry send raises another error.
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
        _put(self._found, number, found, _MAX_SCHEMAS)
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

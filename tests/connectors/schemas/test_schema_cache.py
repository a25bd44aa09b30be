"""Schemas are looked up once, and what is not found is asked for again after a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.connectors.schemas.registries import NOWHERE, client, misbehaving

from abers.exceptions import BrokerError, ConfigError
from abers.stream.cells import BadRecordError
from abers_connectors.schemas import registry as schema_cache
from abers_connectors.schemas.registry import SchemaCache, UnusableSchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers_connectors.schemas.registry import RegisteredSchema

UNKNOWN = b'{"error_code": 40403, "message": "none"}'
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s" % (len(UNKNOWN), UNKNOWN)
FOUND = b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"schema": "x"}'


class Clock:
    """A clock that stands still until it is set."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def cache(url: str, clock: Clock, *, stop: bool = True) -> SchemaCache[str]:
    """Return a cache of the texts of schemas."""
    registry = client(url, timeout="10ms")
    return SchemaCache(registry, lambda schema: schema.schema, stop=stop, clock=clock)


def test_a_schema_is_looked_up_once() -> None:
    """A known id does not reach the registry, however late."""
    clock = Clock()
    with misbehaving(FOUND) as (url, asked):
        one = cache(url, clock)
        assert one.get(7) == "x"
        clock.now = 1e9
        assert one.get(7) == "x"
        assert len(asked) == 1


def test_the_oldest_schema_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache has a largest size, and loses what was not used for longest."""
    monkeypatch.setattr(schema_cache, "_MAX_CACHED_SCHEMAS", 2)
    with misbehaving(FOUND) as (url, asked):
        one = cache(url, Clock())
        for number in (1, 2, 1, 3, 1, 2):
            one.get(number)
        assert [b"/ids/%d " % n in ask for n, ask in zip((1, 2, 3, 2), asked, strict=True)] == [
            True
        ] * 4


def test_an_unknown_id_is_remembered_for_a_while() -> None:
    """The same error comes without a question, until half a minute has passed."""
    clock = Clock()
    with misbehaving(MISSING) as (url, asked):
        one = cache(url, clock)
        for now, questions in ((0.0, 1), (29.9, 1), (30.0, 2)):
            clock.now = now
            with pytest.raises(BadRecordError, match=f"{url} has no schema 7") as found:
                one.get(7)
            assert (found.value.reason, len(asked)) == ("unknown-schema", questions)


def test_unknown_ids_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer that makes up ids does not fill the memory."""
    monkeypatch.setattr(schema_cache, "_MAX_ERRORS", 2)
    with misbehaving(MISSING) as (url, asked):
        one = cache(url, Clock())
        for number in (1, 2, 3, 3, 2, 1):
            with pytest.raises(BadRecordError):
                one.get(number)
        assert len(asked) == 4


def test_an_unusable_schema() -> None:
    """A schema that does not compile is a bad record, with its id."""

    def refuse(schema: RegisteredSchema) -> str:
        msg = f"is {schema.schema}"
        raise UnusableSchemaError(msg)

    with misbehaving(FOUND) as (url, asked):
        one = SchemaCache(client(url), refuse, stop=True)
        for _ in range(2):
            with pytest.raises(BadRecordError, match="schema 7 is x") as found:
                one.get(7)
            assert found.value.reason == "unusable-schema"
        assert len(asked) == 1


@pytest.mark.parametrize(
    "error", [ValueError("x"), RecursionError(), KeyError("x"), TypeError(), AssertionError()]
)
def test_any_error_of_a_schema(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever goes wrong with a schema is an error of its records; the log has the traceback."""
    with misbehaving(FOUND) as (url, _):
        one = SchemaCache(client(url), raising(error), stop=True)
        with pytest.raises(BadRecordError, match=r"schema 7 cannot be used \(") as found:
            one.get(7)
    assert found.value.reason == "unusable-schema"
    assert type(error).__name__ in str(found.value)
    assert [record.exc_info for record in caplog.records] != [None]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device", "/x"), MemoryError()])
def test_a_machine_without_room(error: Exception) -> None:
    """What the schema is not to blame for stops, as a registry that is away does."""
    why = "schema 7 is not known: (No space left on device|MemoryError)$"
    with misbehaving(FOUND) as (url, _):
        with pytest.raises(BrokerError, match=why):
            SchemaCache(client(url), raising(error), stop=True).get(7)
        with pytest.raises(BadRecordError, match=why) as found:
            SchemaCache(client(url), raising(error), stop=False).get(7)
    assert found.value.reason == "registry-unavailable"


def raising(error: Exception) -> Callable[[RegisteredSchema], str]:
    """Return a compiler of schemas that fails."""

    def compiled(_: RegisteredSchema) -> str:
        raise error

    return compiled


def test_a_registry_that_refuses_the_login() -> None:
    """That is an error of the configuration, which no record can cause."""
    with misbehaving(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n") as (url, _):
        for stop in (True, False):
            with pytest.raises(ConfigError, match="answers 401"):
                cache(url, Clock(), stop=stop).get(7)


def test_a_registry_that_is_away_stops() -> None:
    """By default the error of the registry is raised, each time."""
    one = cache(NOWHERE, Clock())
    for _ in range(2):
        with pytest.raises(BrokerError):
            one.get(7)


def test_records_of_a_registry_that_is_away_are_bad() -> None:
    """If asked for, they are bad records; the registry is asked again after some seconds."""
    clock = Clock()
    with misbehaving(b"") as (url, asked):
        one = cache(url, clock, stop=False)
        for now, number, more in ((0.0, 7, True), (9.9, 8, False), (10.0, 8, True)):
            clock.now, before = now, len(asked)
            with pytest.raises(BadRecordError, match=r"schema . is not known: the schema") as found:
                one.get(number)
            assert found.value.reason == "registry-unavailable"
            assert (len(asked) > before) is more

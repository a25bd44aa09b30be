"""A registry is asked within its time-out, and what it says of a mistake is passed on."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote_plus

import pytest
from tests.connectors.kafka.brokers import unique
from tests.connectors.schemas.registries import (
    NOWHERE,
    avro_schema,
    client,
    misbehaving,
    registered,
)

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.schemas.registry import REGISTRY_PASSWORD, RegisteredSchema

SECRET = "open sesame/3+"  # noqa: S105 - of the test
UNKNOWN = 2_000_000_000
FOUND = b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"schema": "x"}'


def reply(status: str, body: bytes) -> bytes:
    """Return an answer of a server."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def test_a_schema_is_registered_and_found(schema_registry: str) -> None:
    """The same schema has the same id, by which it is found; another id has no schema."""
    subject, schema = unique("subject"), avro_schema(("id", "string"))
    number = registered(schema_registry, subject, schema)
    assert registered(schema_registry, subject, schema) == number
    found = client(schema_registry).schema(number)
    assert found is not None
    assert found.schema_type == "AVRO"
    assert found == client(schema_registry).version(subject, 1)
    assert client(schema_registry).schema(UNKNOWN) is None
    assert client(schema_registry).version(unique("none"), 1) is None


def test_a_registry_that_answers(schema_registry: str) -> None:
    """A registry that works passes, whatever it knows, and one that is away does not."""
    client(schema_registry).require()
    with pytest.raises(BrokerError, match="gave no answer"):
        client(NOWHERE, timeout="10ms").require()


@pytest.mark.parametrize("number", [2**31, 2**32 - 1])
def test_a_number_that_no_registry_has(number: int) -> None:
    """It is not asked for: Apicurio answers such an id as a page that it does not have."""
    assert client(NOWHERE).schema(number) is None
    assert client(NOWHERE).version("subject", number) is None


@pytest.mark.parametrize("status", ["400 Bad", "405 No", "414 Long", "422 Unprocessable"])
def test_a_refusal_is_no_schema(status: str) -> None:
    """Records and schemas choose what is asked for, so a refusal concerns only them."""
    with misbehaving(reply(status, b'{"error_code": 42202}')) as (url, asked):
        assert client(url).schema(7) is None
        assert client(url).version("n" * 300, -5) is None
        assert client(url).version("../a", 1) is None
        assert client(url).version("..", 1) is None
        with pytest.raises(ConfigError, match=f"answers {status[:3]} to /schemas/ids/1"):
            client(url).require()
    assert [one.split()[1] for one in asked] == [
        b"/schemas/ids/7",
        b"/subjects/%s/versions/-5" % (b"n" * 300),
        b"/subjects/..%2Fa/versions/1",
        b"/schemas/ids/1",
    ]


def test_a_refused_schema(schema_registry: str) -> None:
    """The registry's own sentence says why it refuses a schema."""
    with pytest.raises(ConfigError, match=r"refuses the schema of s-value: .+"):
        client(schema_registry).register("s-value", RegisteredSchema('{"type": "rec'))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply("500 Error", b"{}"), "it answers 500"),
        (reply("429 Too Many", b"{}"), "it answers 429"),
        (reply("200 OK", b"<html>"), "it answers 200, but not as a registry"),
        (reply("200 OK", b'{"id": "x"}'), "it answers 200, but not as a registry"),
        (reply("200 OK", b"[" * 100_000), "it answers 200, but not as a registry"),
        (reply("404 Not Found", b"no such page"), "it answers 404, but not as a registry"),
        (reply("404 Not Found", b'{"error_code": 404}'), "it answers 404, but not"),
        (reply("302 Found", b""), "it answers 302, but not as a registry"),
        (reply("200 OK", b" " * (5 << 20)), "its answer has more than 4,194,304 bytes"),
        (b"garbage\r\n\r\n", "garbage"),
        (b"", "without response"),
    ],
)
def test_a_registry_that_misbehaves(answer: bytes, why: str) -> None:
    """Any answer that is none of a registry is asked for again, and then an error says it."""
    with misbehaving(answer) as (url, asked):
        with pytest.raises(BrokerError, match=why) as found:
            client(url, timeout="500ms").schema(7)
        assert "/schemas/ids/7 within 0.5 s (schema_registry.timeout)" in str(found.value)
        assert len(asked) > 1
        assert asked[0].startswith(b"GET /schemas/ids/7 HTTP/1.1\r\n")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200", FOUND[:-1].replace(b"15", b"99")])
def test_a_slow_registry(answer: bytes) -> None:
    """A registry that sends byte after byte is not waited for beyond the time-out."""
    began = time.monotonic()
    with misbehaving(answer, drip=b" ") as (url, _), pytest.raises(BrokerError):
        client(url, timeout="400ms").schema(7)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    "said", [SECRET, quote_plus(SECRET), base64.b64encode(f"u:{SECRET}".encode()).decode()]
)
@pytest.mark.parametrize("status", ["409 Conflict", "500 Error"])
def test_a_registry_that_repeats_the_password(status: str, said: str) -> None:
    """What a registry says is not shown if the password is in it, in whatever encoding."""
    body = json.dumps({"error_code": 40901, "message": f"no rights: {said}"}).encode()
    answers = reply(status, body), f"HTTP/1.1 {said}\r\n\r\n".encode(), f"{said}\r\n".encode()
    for answer in answers:
        with misbehaving(answer) as (url, _):
            asked = client(url, timeout="300ms", environ={REGISTRY_PASSWORD: SECRET})
            with pytest.raises((ConfigError, BrokerError)) as found:
                asked.require()
        assert said not in str(found.value)


def test_a_registry_that_is_away() -> None:
    """A registry that cannot be reached is named in the error."""
    with pytest.raises(BrokerError, match=f"{NOWHERE} gave no answer .*: Connection refused"):
        client(NOWHERE, timeout="10ms").schema(7)

"""Schema registries for tests: clients, records, and a server that misbehaves."""

from __future__ import annotations

import io
import json
import socket
import threading
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

from fastavro import parse_schema, schemaless_writer
from tests.connectors.kafka.reads import TOPICS

from abers_connectors.config.model import load
from abers_connectors.schemas.protobuf import ProtoFile
from abers_connectors.schemas.registry import RegisteredSchema, SchemaRegistry

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from abers_connectors.config.model import Config

__all__ = [
    "NOWHERE",
    "avro",
    "avro_schema",
    "client",
    "configured",
    "demand",
    "misbehaving",
    "proto_type",
    "protobuf",
    "registered",
]

NOWHERE = "http://127.0.0.1:9"
"""Where nothing listens."""


def configured(url: str, **more: Any) -> Config:  # noqa: ANN401
    """Return a configuration with a registry; keys have `__` for a dot."""
    flags = {name.replace("__", "."): value for name, value in more.items()}
    least = TOPICS | {"input.format": "avro", "schema_registry.url": url}
    return load(flags=least | flags, environ={})


def client(
    url: str, *, timeout: str = "10s", environ: dict[str, str] | None = None
) -> SchemaRegistry:
    """Return a client; with a password in the environment it has the user "u"."""
    user = "u" if environ else None
    section = configured(
        url, schema_registry__timeout=timeout, schema_registry__username=user
    ).schema_registry
    assert section is not None
    return SchemaRegistry(section, environ or {})


def avro_schema(*fields: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the schema of a record with pairs of name and type."""
    named = [{"name": name, "type": kind} for name, kind in fields]
    return {"type": "record", "name": "Event", "fields": named, **more}


def registered(url: str, subject: str, schema: Any, kind: str = "AVRO", **more: Any) -> int:  # noqa: ANN401
    """Register a schema, and return its id."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return client(url).register(subject, RegisteredSchema(text, kind, **more))


def avro(number: int, schema: Any, value: Any) -> bytes:  # noqa: ANN401
    """Return a record in Avro, as the registry's clients write it."""
    body = io.BytesIO()
    schemaless_writer(body, parse_schema(schema), value)
    return b"\0" + number.to_bytes(4) + body.getvalue()


def protobuf(number: int, text: str, indexes: bytes = b"\0", /, **values: Any) -> bytes:  # noqa: ANN401
    """Return a record of the first type of a file, as the registry's clients write it."""
    body: bytes = proto_type(text)(**values).SerializeToString()
    return b"\0" + number.to_bytes(4) + indexes + body


@cache
def proto_type(text: str) -> Any:  # noqa: ANN401 - a class of messages
    """Return the first message type of a file, which is compiled once."""
    return ProtoFile(text, {}).message_type([0])


def demand(url: str, subject: str, level: str) -> None:
    """Have the registry check that the schemas of a subject are compatible."""
    body = json.dumps({"compatibility": level}).encode()
    kind = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    request = Request(f"{url}/config/{subject}", body, kind, method="PUT")  # noqa: S310
    with urlopen(request) as answer:  # noqa: S310 - of this machine
        assert answer.status == 200


@contextmanager
def misbehaving(
    answer: bytes, *, drip: bytes = b"", tls: ssl.SSLContext | None = None
) -> Iterator[tuple[str, list[bytes]]]:
    """Run a server that answers everything with some bytes; return its URL and what it was asked.

    With `drip` it then sends these bytes again and again, and never ends. It uses TLS if it has a
    context.
    """
    asked: list[bytes] = []
    closing = threading.Event()

    def answer_one(connection: socket.socket) -> None:
        with suppress(OSError), connection, wrapped(connection) as secured:
            asked.append(secured.recv(1 << 16))
            secured.sendall(answer)
            while drip and not closing.wait(0.05):
                secured.sendall(drip)

    def wrapped(connection: socket.socket) -> socket.socket:
        return connection if tls is None else tls.wrap_socket(connection, server_side=True)

    def serve(listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=answer_one, args=[connection]))
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threads = [threading.Thread(target=serve, args=[listening])]
        threads[0].start()
        try:
            scheme = "http" if tls is None else "https"
            yield f"{scheme}://127.0.0.1:{listening.getsockname()[1]}", asked
        finally:
            closing.set()
            listening.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()

"""What a schema imports is found, however much there is and however it is named, within bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.connectors.schemas.registries import NOWHERE, client, misbehaving

from abers_connectors.schemas import registry
from abers_connectors.schemas.registry import (
    RegisteredSchema,
    SchemaReference,
    UnusableSchemaError,
    imported,
)


def importing(*names: str) -> tuple[SchemaReference, ...]:
    """Return references by some names."""
    return tuple(SchemaReference(name, "subject", 1) for name in names)


def answer(text: str, *names: str) -> bytes:
    """Return the answer of a registry where each schema imports the same others."""
    more = [{"name": name, "subject": "s", "version": 1} for name in names]
    body = json.dumps({"schema": text, "references": more}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def test_schemas_that_import_each_other() -> None:
    """Each is asked for once, whatever it is called."""
    names = ("a", "b", "../c", "n" * 300, "")
    with misbehaving(answer("x", *names)) as (url, asked):
        found = imported(RegisteredSchema("y", references=importing("a")), client(url))
    assert found == dict.fromkeys(names, "x")
    assert len(asked) == len(names)


def test_too_many_schemas() -> None:
    """They are counted before they are asked for."""
    many = RegisteredSchema("y", references=importing(*map(str, range(201))))
    with pytest.raises(UnusableSchemaError, match="imports more than 200 schemas"):
        imported(many, client(NOWHERE))


def test_a_schema_with_large_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema has a largest size with all that it imports."""
    monkeypatch.setattr(registry, "_MAX_IMPORTED_CHARACTERS", 100)
    two: Any = RegisteredSchema("y", references=importing("a", "b"))
    with misbehaving(answer("x" * 49)) as (url, _):
        assert len(imported(two, client(url))) == 2
    with (
        misbehaving(answer("x" * 50)) as (url, _),
        pytest.raises(UnusableSchemaError, match="has more than 100 characters with all"),
    ):
        imported(two, client(url))

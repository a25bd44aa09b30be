"""Routing: a record goes to the partition of the model that a task reads in it."""

from __future__ import annotations

import json
from itertools import starmap
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.kafka.reads import Read

from abers_connectors.config.model import load
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.model_routes import UNREAD, ModelRouting
from abers_connectors.runtime.slots import partition_of

if TYPE_CHECKING:
    from abers_connectors.config.model import Config

PARTITIONS = 97
TOPICS = {"bootstrap_servers": "b:1", "observations": "o", "labels": "l", "predictions": "p"}
VALUES = st.one_of(
    st.none(), st.text(max_size=5), st.integers(-5, 5), st.booleans(), st.lists(st.text(max_size=1))
)
RECORDS = st.lists(st.tuples(st.sampled_from(["model", "Model", "m"]), VALUES), max_size=9)


def configured(**fields: str) -> Config:
    """Return a configuration with routers, with paths of fields."""
    kafka = {**TOPICS, "route_by": "model"}
    return load(flags={"kafka": kafka, "input.fields": fields}, environ={})


def observation(number: int, **more: Any) -> bytes:  # noqa: ANN401 - anything JSON has
    """Return an observation without a model of its own."""
    return json.dumps({"id": f"o{number}", "time": number, "score": 0.5, **more}).encode()


@given(RECORDS)
def test_the_model_is_that_of_the_task(given_: list[tuple[str, Any]]) -> None:
    """Whatever stands in its field, a record goes where its event belongs, or is unread."""
    values = [observation(n, **{name: value}) for n, (name, value) in enumerate(given_)]
    records, inputs = [*map(Read, values)], [0] * len(values)
    config = configured()
    decoded = Deserializer(config, partitions=1).decode(records, inputs)
    expected = {
        row: partition_of(model, PARTITIONS)
        for row, model in zip(decoded.rows, decoded.events.models.tolist(), strict=True)
    }
    routes = ModelRouting(config, PARTITIONS, {}).route(records, inputs)
    assert [*routes.unread] == [row for row in range(len(records)) if row not in expected]
    for row, partition in enumerate(routes.partitions):
        assert partition == expected.get(row, UNREAD)


BROKEN = [b"{", b"\xff", b"[]", b"\0\0\0\0\1", None, b'{"model": "a", "x": 1e999999}']


@given(st.lists(st.sampled_from([*BROKEN, observation(1, model="b")]), max_size=12))
def test_a_bad_record_moves_no_other(values: list[bytes | None]) -> None:
    """Each record goes where it goes alone."""
    routing = ModelRouting(configured(), PARTITIONS, {})
    records = [Read(value) for value in values]
    routes = routing.route(records, [0] * len(records))
    alone = [routing.route([one], [0]) for one in records]
    assert [*routes.partitions] == [one.partitions[0] for one in alone]
    assert [*routes.unread] == [row for row, one in enumerate(alone) if one.unread]


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("record:key", "by-key"),
        ("record:header:model", "by-header"),
        ("const:one", "one"),
        ("payload.model", "nested"),
    ],
)
def test_places_of_a_model(path: str, model: str) -> None:
    """The model may be a key, a header, a constant, or a field within another."""
    value = observation(1, payload={"model": "nested"})
    record = Read(value, key=b"by-key", headers=[("model", b"no"), ("model", b"by-header")])
    routes = ModelRouting(configured(model=path), PARTITIONS, {}).route([record] * 2, [0, 1])
    assert [*routes.partitions] == [partition_of(model, PARTITIONS)] * 2


def test_a_value_is_not_read_without_need() -> None:
    """A model that is no part of the value is read where the value cannot be."""
    records = [*starmap(Read, [(b"{",), (None,)])]
    routes = ModelRouting(configured(model="const:one"), PARTITIONS, {}).route(records, [0, 0])
    assert not routes.unread

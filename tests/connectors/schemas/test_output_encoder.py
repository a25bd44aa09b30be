"""Outputs in each format are what JSON has, and old readers read new records."""

from __future__ import annotations

import io
import json
import math
from typing import TYPE_CHECKING, Any, cast

import jsonschema
import msgspec
import pytest
from fastavro import parse_schema, schemaless_reader
from tests.connectors.kafka.brokers import unique
from tests.connectors.schemas.registries import NOWHERE, client, configured, demand, proto_type

from abers.exceptions import BrokerError, ConfigError
from abers.stream import Outcome, Prediction
from abers.stream.events import RegressionPrediction
from abers_connectors.schemas import protobuf
from abers_connectors.schemas.outputs import output_encoder, registered_encoder
from abers_connectors.schemas.registry import RegisteredSchema, message_indexes, schema_id

if TYPE_CHECKING:
    from abers_connectors.config.sections import TopicFormat

FORMATS: list[TopicFormat] = ["avro", "protobuf", "json-schema"]
PREDICTION = Prediction("a", 5, "m", 0.5, 0.25, 0.75, 0.5, 7, extra={"amount": 12.5})
OUTCOME = Outcome("a", 6, "m", 5, 1, 0.5, 0.25, 0.75, 0.5, "eu", late=True)
NUMBERS = RegressionPrediction(
    "a", 5, "m", 0.5, {"0.5": 1.0}, {"0.5": -math.inf}, {"0.5": math.inf}, 7, mean=2.0
)


class Grown(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="v", tag=1):
    """The prediction of a later release, with two more fields."""

    id: str
    time: int
    model: str
    score: float
    p0: float
    p1: float
    p: float
    n_labels: int
    segment: str = ""
    extra: dict[str, Any] | None = None
    note: str = ""
    spread: float | None = None


Grown.__name__ = "Prediction"
GROWN = Grown("a", 5, "m", 0.5, 0.25, 0.75, 0.5, 7, note="new", spread=0.5)


def read(name: TopicFormat, schema: str, raw: bytes) -> dict[str, Any]:
    """Read a record by a schema that may be another than that of its writer."""
    if name == "protobuf":
        assert message_indexes(raw) == ((0,), 6)
        message = proto_type(schema).FromString(raw[6:])
        return {
            field.name: dict(value) if field.is_repeated else value
            for field in message.DESCRIPTOR.fields
            if not field.has_presence or message.HasField(field.name)
            for value in [getattr(message, field.name)]
        }
    found = cast("dict[str, Any]", json.loads(raw[5:]))
    jsonschema.validate(found, json.loads(schema))
    return found


def text_of(url: str, subject: str, version: int = 1) -> str:
    """Return a version of a schema."""
    found = client(url).version(subject, version)
    assert found is not None
    return found.schema


def avro_read(raw: bytes, written: str, wanted: str) -> Any:  # noqa: ANN401
    """Read Avro with the schemas of writer and reader."""
    writer, reader = (parse_schema(json.loads(one)) for one in (written, wanted))
    return schemaless_reader(io.BytesIO(raw[5:]), writer, reader)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("row", [PREDICTION, OUTCOME, NUMBERS])
def test_outputs_are_registered_and_read(
    name: TopicFormat, row: msgspec.Struct, schema_registry: str
) -> None:
    """A consumer that knows only the registry reads what JSON has, by the subject of the topic."""
    topic = unique("predictions")
    config = configured(schema_registry, output__format=name)
    encode = registered_encoder(config, topic, type(row), {})
    (raw,) = encode([row])
    schema = text_of(schema_registry, f"{topic}-value")
    number = schema_id(raw)
    assert client(schema_registry).schema(number) == client(schema_registry).version(
        f"{topic}-value", 1
    )
    found = avro_read(raw, schema, schema) if name == "avro" else read(name, schema, raw)
    expected = msgspec.json.decode(msgspec.json.encode(row))
    if name != "json-schema":
        expected = {"v": 1} | msgspec.structs.asdict(row)
        if expected.get("extra") is not None:
            expected["extra"] = json.dumps(expected["extra"], separators=(",", ":"))
    assert {key: value for key, value in found.items() if value is not None} == {
        key: value for key, value in expected.items() if value is not None
    }
    # Started again, it finds the schema that it has registered, and writes the same bytes.
    assert registered_encoder(config, topic, type(row), {})([row]) == [raw]


@pytest.mark.parametrize("name", FORMATS)
def test_a_field_is_added(name: TopicFormat, schema_registry: str) -> None:
    """A registry that checks accepts more fields; old readers read new records, and the reverse."""
    topic = unique("predictions")
    subject = f"{topic}-value"
    config = configured(schema_registry, output__format=name)
    (old_raw,) = registered_encoder(config, topic, Prediction, {})([PREDICTION])
    level = "BACKWARD" if name == "json-schema" else "FULL"
    demand(schema_registry, subject, level)
    (new_raw,) = registered_encoder(config, topic, Grown, {})([GROWN])
    old, new = (text_of(schema_registry, subject, version) for version in (1, 2))
    if name == "avro":
        assert avro_read(new_raw, new, old) == {"v": 1} | msgspec.structs.asdict(
            Prediction("a", 5, "m", 0.5, 0.25, 0.75, 0.5, 7)
        )
        of_new = avro_read(old_raw, old, new)
        assert (of_new["note"], of_new["spread"], of_new["n_labels"]) == ("", None, 7)
        return
    if name == "protobuf":
        by_old = read(name, old, new_raw)
        assert (by_old["p1"], by_old["n_labels"], "note" in by_old) == (0.75, 7, False)
    by_new = read(name, new, old_raw)
    assert (by_new["id"], by_new["n_labels"], by_new.get("spread")) == ("a", 7, None)


def test_a_refused_schema(schema_registry: str) -> None:
    """If the topic has records of another kind, the registry's sentence says so."""
    topic = unique("predictions")
    other = {"type": "record", "name": "Other", "fields": [{"name": "id", "type": "int"}]}
    client(schema_registry).register(f"{topic}-value", RegisteredSchema(json.dumps(other)))
    demand(schema_registry, f"{topic}-value", "FULL")
    config = configured(schema_registry, output__format="avro")
    with pytest.raises(ConfigError, match=rf"refuses the schema of {topic}-value: .*[Ii]ncompat"):
        registered_encoder(config, topic, Prediction, {})


def test_a_registry_that_is_away() -> None:
    """Without the registry there is no encoder, whatever is said of records."""
    more = {"schema_registry__timeout": "10ms", "schema_registry__on_unavailable": "dead-letter"}
    config = configured(NOWHERE, output__format="avro", **more)
    with pytest.raises(BrokerError, match="gave no answer to /subjects/p-value"):
        registered_encoder(config, "p", Prediction, {})


def test_json_needs_no_registry() -> None:
    """By default outputs are JSON."""
    encode = registered_encoder(configured(NOWHERE), "p", Prediction, {})
    assert encode([PREDICTION, GROWN]) == [*map(msgspec.json.encode, (PREDICTION, GROWN))]


def test_equal_outputs_are_equal_bytes() -> None:
    """The order of a map in memory does not matter in Protobuf, which leaves it open."""
    names = [f"{n}" for n in range(50)]
    encode = output_encoder("protobuf", RegressionPrediction, 7)
    first, second = encode(
        [
            msgspec.structs.replace(NUMBERS, quantiles=dict.fromkeys(order, 0.5))
            for order in (names, names[::-1])
        ]
    )
    assert first == second


def test_a_machine_that_is_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a schema of our own is not compiled in time, another try may help."""
    monkeypatch.setattr(protobuf, "_SECONDS", 0.0)
    with pytest.raises(BrokerError, match="schema of Prediction is not compiled within 0 s"):
        output_encoder("protobuf", Prediction, 7)

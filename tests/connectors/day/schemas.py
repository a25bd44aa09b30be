"""The schemas of the records of a day, and a reader of them that is none of the product's."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from tests.connectors.schemas.registries import demand, registered

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Schemas"]

_MOMENT = {"type": "long", "logicalType": "timestamp-millis"}
_HEAD = 5  # bytes before the body: a zero and the number of the schema


def _record(name: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - types of Avro
    named = [{"name": key, "type": kind} for key, kind in fields.items()]
    return {"type": "record", "name": name, "fields": named}


_KEYS = {"id": "string", "time": _MOMENT, "model": "string"}
_OBSERVATION = _record("Observation", **_KEYS, score="double")
_WITH_CHANNEL = _OBSERVATION | {
    "fields": [
        *_OBSERVATION["fields"],
        {"name": "channel", "type": "string", "default": "branch"},
    ]
}
_LABEL = _record("Label", **_KEYS, label="int")
_STRANGE = _record("Order", order="string", amount="double")


class Schemas:
    """Schemas in a registry, that of the observations in two versions.

    Parameters
    ----------
    url
        The registry, which checks that each version can be read by the one before, and reads it.
    topics
        Names of the topics by their keys.
    """

    def __init__(self, url: str, topics: Mapping[str, str]) -> None:
        """Register the first version."""
        self._url, self._observations = url, f"{topics['observations']}-value"
        self._known: dict[int, Any] = {}
        demand(url, self._observations, "FULL")
        self.observation = self._registered(self._observations, _OBSERVATION)
        self.label = self._registered(f"{topics['labels']}-value", _LABEL)
        self.strange = self._registered("orders-value", _STRANGE)

    def evolve(self) -> None:
        """Register the second version, with which observations are written from now on."""
        self.observation = self._registered(self._observations, _WITH_CHANNEL)

    @property
    def evolved(self) -> bool:
        """Whether observations have the new field."""
        return len(self._known[self.observation]["fields"]) > len(_OBSERVATION["fields"])

    def _registered(self, subject: str, schema: dict[str, Any]) -> int:
        number = registered(self._url, subject, schema)
        plain = json.loads(json.dumps(schema).replace(json.dumps(_MOMENT), '"long"'))
        self._known[number] = parse_schema(plain)
        return number

    def written(self, number: int, **fields: Any) -> bytes:  # noqa: ANN401 - values of Avro
        """Return a record."""
        body = io.BytesIO()
        schemaless_writer(body, self._known[number], fields)
        return b"\0" + number.to_bytes(4) + body.getvalue()

    def read(self, value: bytes) -> dict[str, Any]:
        """Return the fields of a record; a ValueError says that it cannot be read."""
        number, body = int.from_bytes(value[1:_HEAD]), io.BytesIO(value[_HEAD:])
        if value[:1] != b"\0" or number not in self._known:
            raise ValueError
        try:
            found: Any = schemaless_reader(body, self._known[number], None)
        except (EOFError, IndexError) as error:
            raise ValueError from error
        if body.read(1):
            raise ValueError
        return {**found}

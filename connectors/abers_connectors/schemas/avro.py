"""Records in Avro, decoded with the schema that they were written with.

A schema is rewritten before it is used: self-contained, bounded, and with logical types of ours. A
few bytes must not become a great many values, nor a value that is nested without bound. So types
that take no bytes, types that contain themselves, and records that are mostly records are refused.

Values become those of JSON. Times become moments of numpy, dates and local times ISO text, decimals
numbers, bytes Base64.

A record is decoded whole, and then the fields that are not wanted are dropped. fastavro can skip
them, but does not fully check that the skipped bytes exist: an array that claims 2**62 doubles
would keep it busy without end. It would also convert the values of unions by other rules.
"""

from __future__ import annotations

import base64
import io
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from uuid import UUID

import msgspec
import numpy as np
from fastavro import parse_schema, read, schemaless_reader

from abers.stream.cells import BadRecordError
from abers_connectors.schemas.registry import HEAD, UnusableSchemaError, decimal_number, imported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from abers_connectors.mapping import Record
    from abers_connectors.schemas.registry import RegisteredSchema, SchemaRegistry

__all__ = ["avro_decoder"]

_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_NAMED = {"record", "error", "enum", "fixed"}
_MAX_SCALE = 400
_UUID_BYTES = 16
_MAX_DEPTH = 100  # as deep as Protobuf's parsers go
_FEW = 100  # records within each other; no more are made however few bytes they have
_RECORDS_A_BYTE = 2  # elsewhere: each record is a dictionary of 200 bytes
_BYTES = {"null": 0, "float": 4, "double": 8}  # of a value at least; of other types 1
_OURS = {
    "date",
    "time-millis",
    "time-micros",
    "timestamp-millis",
    "timestamp-micros",
    "timestamp-nanos",
    "local-timestamp-millis",
    "local-timestamp-micros",
    "local-timestamp-nanos",
}
"""Logical types of integers that are converted."""


def expanded(text: str, imported: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
    """Return a schema with the types that it imports defined where they are first used.

    `imported` has the imported schemas, by name.

    >>> expanded('{"type": "array", "items": "bytes"}', {})
    {'type': 'array', 'items': {'type': 'bytes', 'logicalType': 'abers-base64'}}
    """
    return _checked(lambda: _Expansion(imported).expand(msgspec.json.decode(text), ""))


def _checked(made: Callable[[], Any]) -> Any:  # noqa: ANN401 - JSON
    try:
        return made()
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError, AttributeError) as error:
        msg = f"is not a valid Avro schema: {error!r}"
        raise UnusableSchemaError(msg) from None


class _Expansion:
    """Rewrites a schema, and remembers the named types that are defined."""

    def __init__(self, imported: Mapping[str, str]) -> None:
        self._known: dict[str, tuple[Any, str]] = {}  # definition and enclosing namespace, by name
        self._defined: set[str] = set()
        self._open: list[str] = []  # records that are being defined, outermost first
        self._weights: dict[str, _Weight] = {}  # of named types
        self._depth = 0
        for text in imported.values():
            self._collect(msgspec.json.decode(text), "")

    def _collect(self, schema: Any, space: str) -> None:  # noqa: ANN401 - JSON
        """Note the definitions of named types in an imported schema."""
        if isinstance(schema, list):
            for one in schema:
                self._collect(one, space)
        elif isinstance(schema, dict):
            if _is_named(schema.get("type")):
                name, inner = _full_name(schema, space)
                self._known[name] = (schema, space)
                space = inner
            for field in schema.get("fields", ()):
                self._collect(field["type"], space)
            for key in ("items", "values", "type"):
                if key in schema:
                    self._collect(schema[key], space)

    def expand(self, schema: Any, space: str, *, within_union: bool = False) -> Any:  # noqa: ANN401 - JSON
        """Return a type, seen from a namespace."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            msg = f"is nested deeper than {_MAX_DEPTH} types"
            raise UnusableSchemaError(msg)
        found = self._expanded(schema, space, within_union=within_union)
        self._depth -= 1
        return found

    def _expanded(self, schema: Any, space: str, *, within_union: bool) -> Any:  # noqa: ANN401 - JSON
        if isinstance(schema, list):
            return [self.expand(one, space, within_union=True) for one in schema]
        if isinstance(schema, str):
            return self._by_name(schema, space, within_union=within_union)
        kind = schema["type"]
        if _is_named(kind):
            return self._named(schema, space)
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            part = self.expand(schema[key], space)
            weight = self._weight(part)
            # Each value of a map has a key.
            _bound(weight.plus(_Weight(0, kind == "map")), f"the {key} of one {kind}", few=0)
            return {"type": kind, key: part}
        if isinstance(kind, str) and kind in _PRIMITIVES:
            return _primitive(kind, schema, within_union=within_union)
        return self.expand(kind, space, within_union=within_union)

    def _by_name(self, name: str, space: str, *, within_union: bool) -> Any:  # noqa: ANN401 - JSON
        if name in _PRIMITIVES:
            return _primitive(name, {}, within_union=within_union)
        full = name if "." in name or not space else f"{space}.{name}"
        for one in (full, name):  # a name may be of no namespace
            if one in self._open:
                msg = f"contains itself, by the type {one}; abers reads no recursive records"
                raise UnusableSchemaError(msg)
            if one in self._defined:
                return one
            if one in self._known:
                return self.expand(*self._known[one], within_union=within_union)
        msg = f"names the type {full}, which is not defined"
        raise UnusableSchemaError(msg)

    def _named(self, schema: Mapping[str, Any], space: str) -> dict[str, Any]:
        kind = schema["type"]
        name, inner = _full_name(schema, space)
        found: dict[str, Any] = {"type": "record" if kind == "error" else kind, "name": name}
        if kind == "enum":
            found |= {key: schema[key] for key in ("symbols", "default") if key in schema}
        elif kind == "fixed":
            if not isinstance(schema["size"], int):
                msg = f"is not a valid Avro schema: the size of fixed {name} must be an integer"
                raise UnusableSchemaError(msg)
            if schema["size"] < 1:
                _refuse_empty(f"fixed {name}")
            found |= {"size": schema["size"], **_of_bytes(schema)}
        else:
            if not schema["fields"]:
                _refuse_empty(f"record {name}")
            self._open.append(name)
            found["fields"] = [
                {"name": one["name"], "type": self.expand(one["type"], inner)}
                for one in schema["fields"]
            ]
            self._open.pop()
            parts = [self._weight(one["type"]) for one in found["fields"]]
            self._weights[name] = _Weight(1, 0).plus(*parts)
            _bound(self._weights[name], f"record {name}", few=_FEW)
        self._defined.add(name)
        return found

    def _weight(self, kind: Any) -> _Weight:  # noqa: ANN401 - JSON
        """Return the weight of an expanded type; a union has that of its heaviest type."""
        if isinstance(kind, list):
            several = [self._weight(one).plus(_Weight(0, 1)) for one in kind]
            return max(several, key=lambda one: one.records / one.bytes, default=_Weight(0, 1))
        if isinstance(kind, dict):
            kind = kind.get("name", kind["type"])
        return self._weights.get(kind, _Weight(0, _BYTES.get(kind, 1)))


class _Weight(NamedTuple):
    """The records in a value, and its bytes at least; an array or a map counts as one byte."""

    records: int
    bytes: int

    def plus(self, *others: _Weight) -> _Weight:
        """Return the sum."""
        together = (self, *others)
        return _Weight(sum(one.records for one in together), sum(one.bytes for one in together))


def _bound(weight: _Weight, what: str, *, few: int) -> None:
    """Refuse a type that makes many records from few bytes."""
    if weight.records > max(few, _RECORDS_A_BYTE * weight.bytes):
        msg = (
            f"has {weight.records:,} records for {weight.bytes:,} of its bytes ({what}), so that a "
            "few bytes may be a great many values; let records have more fields that are no records"
        )
        raise UnusableSchemaError(msg)


def _is_named(kind: object) -> bool:
    return isinstance(kind, str) and kind in _NAMED


def _full_name(schema: Mapping[str, Any], space: str) -> tuple[str, str]:
    """Return the full name of a type, and the namespace of what it contains."""
    name = schema["name"]
    if "." not in name and (own := schema.get("namespace", space)):
        name = f"{own}.{name}"
    return name, name.rpartition(".")[0]


def _primitive(kind: str, schema: Mapping[str, Any], *, within_union: bool) -> Any:  # noqa: ANN401 - JSON
    if kind == "null" and not within_union:
        _refuse_empty("null")
    if kind == "bytes":
        return {"type": kind, **_of_bytes(schema)}
    logical = schema.get("logicalType")
    if logical in _OURS and kind in ("int", "long"):
        return {"type": kind, "logicalType": f"abers-{logical}"}
    return kind


def _of_bytes(schema: Mapping[str, Any]) -> dict[str, Any]:
    scale = schema.get("scale", 0)
    if schema.get("logicalType") == "decimal" and 0 <= scale <= _MAX_SCALE:
        return {"logicalType": "abers-decimal", "scale": scale}
    is_uuid = schema.get("logicalType") == "uuid" and schema["type"] == "fixed"
    if is_uuid and schema["size"] == _UUID_BYTES:
        return {"logicalType": "abers-uuid"}
    return {"logicalType": "abers-base64"}


def _refuse_empty(what: str) -> NoReturn:
    msg = (
        f"has a type that takes no bytes ({what}), so that a few bytes may be any number of "
        "values; remove it, or put it into a union"
    )
    raise UnusableSchemaError(msg)


_LOCAL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a local time has no zone
_MICROSECOND = timedelta(microseconds=1)


def avro_decoder(
    schema: RegisteredSchema, registry: SchemaRegistry, reads: frozenset[str]
) -> Callable[[bytes], Record]:
    """Return a decoder of records; `reads` are the top-level fields that are wanted."""
    whole, wanted = expanded(schema.schema, imported(schema, registry)), sorted(reads)
    try:
        writer = parse_schema(whole)
    except Exception as error:  # noqa: BLE001 - the library has no common error
        msg = f"is not a valid Avro schema: {error}"
        raise UnusableSchemaError(msg) from None
    all_read = isinstance(whole, dict) and {one["name"] for one in whole.get("fields", ())} <= reads

    def decode(raw: bytes) -> Record:
        body = io.BytesIO(raw)
        body.seek(HEAD)
        try:
            found: Any = schemaless_reader(body, writer, None)
        except EOFError:  # its message may have the address of an object
            _refuse("ends too early")
        except Exception as error:  # noqa: BLE001 - many kinds
            _refuse(f"cannot be decoded ({str(error) or type(error).__name__})")
        if left := len(raw) - body.tell():
            _refuse(f"ends {left} bytes before the record")
        if type(found) is not dict:
            _refuse(f"is a {type(found).__name__} and not a record")
        return found if all_read else {name: found[name] for name in wanted if name in found}

    return decode


def _refuse(problem: str) -> NoReturn:
    detail = f"by its schema the Avro body {problem}; write it with the schema of its id"
    raise BadRecordError("bad-avro", detail) from None


def _decimal(data: bytes, schema: Mapping[str, Any] | None, *_: object) -> float:
    return decimal_number(data, int((schema or {}).get("scale", 0)))


def _local(microseconds: int) -> str:
    return (_LOCAL_EPOCH + microseconds * _MICROSECOND).isoformat()


def _time_of_day(microseconds: int) -> str:
    return (datetime.min.replace(tzinfo=UTC) + microseconds * _MICROSECOND).time().isoformat()


def _date(days: int, *_: object) -> str:
    return (date(1970, 1, 1) + timedelta(days)).isoformat()


def _base64(data: bytes, *_: object) -> str:
    return base64.b64encode(data).decode()


# Names of our own, which `expanded` writes into schemas: no other names are changed.
read.LOGICAL_READERS.update(
    {
        "bytes-abers-decimal": _decimal,
        "fixed-abers-decimal": _decimal,
        "bytes-abers-base64": _base64,
        "fixed-abers-base64": _base64,
        "fixed-abers-uuid": lambda data, *_: str(UUID(bytes=data)),
        "int-abers-date": _date,
        "long-abers-timestamp-millis": lambda value, *_: np.datetime64(value, "ms"),
        "long-abers-timestamp-micros": lambda value, *_: np.datetime64(value // 1000, "ms"),
        "long-abers-timestamp-nanos": lambda value, *_: np.datetime64(value // 1_000_000, "ms"),
        "long-abers-local-timestamp-millis": lambda value, *_: _local(1000 * value),
        "long-abers-local-timestamp-micros": lambda value, *_: _local(value),
        "long-abers-local-timestamp-nanos": lambda value, *_: _local(value // 1000),
        "int-abers-time-millis": lambda value, *_: _time_of_day(1000 * value),
        "long-abers-time-micros": lambda value, *_: _time_of_day(value),
    }
)

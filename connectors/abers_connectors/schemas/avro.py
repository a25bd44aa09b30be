"""Records in Avro, decoded with the schema that they were written with.

Values become those of JSON. Times become moments of numpy, dates and local times ISO text, decimals
numbers, bytes Base64.

A record is decoded whole, and fields that are not wanted are dropped then. fastavro can skip them,
but checks only in part whether what it skips is there: an array that claims 2**62 doubles would
keep it busy without end. It would also convert the values of unions by other rules.
"""

from __future__ import annotations

import base64
import io
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

import numpy as np
from fastavro import parse_schema, read, schemaless_reader

from abers.stream.cells import BadRecordError
from abers_connectors.schemas.avro_schema import expanded
from abers_connectors.schemas.decimals import decimal_number
from abers_connectors.schemas.references import imported
from abers_connectors.schemas.schema_cache import UnusableSchemaError
from abers_connectors.schemas.wire_format import HEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from abers_connectors.mapping.json_columns import Record
    from abers_connectors.schemas.registry_client import RegisteredSchema, SchemaRegistry

__all__ = ["avro_decoder"]

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


# Names of our own, which `avro_schema` writes into schemas: nobody else's are changed.
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

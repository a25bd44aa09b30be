"""Values of the well-known types of Protobuf.

A type is known by its file, which `protobuf_schema` takes from the libraries that ship it, and not
by its name alone: the author of a schema may give any type the name of a well-known one.
"""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from abers_connectors.schemas.decimals import decimal_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["known_value"]

_MAX_DIGITS = 400


def _moment(message: Any) -> np.datetime64:  # noqa: ANN401 - a message
    return np.datetime64(message.seconds * 1000 + message.nanos // 1_000_000, "ms")


def _struct(message: Any) -> dict[str, Any]:  # noqa: ANN401 - a message
    return {name: _value(one) for name, one in message.fields.items()}


def _list(message: Any) -> list[Any]:  # noqa: ANN401 - a message
    return [_value(one) for one in message.values]


def _value(message: Any) -> Any:  # noqa: ANN401 - a message
    kind = message.WhichOneof("kind")
    if kind is None or kind == "null_value":
        return None
    found = getattr(message, kind)
    return {"struct_value": _struct, "list_value": _list}.get(kind, lambda one: one)(found)


def _bytes(message: Any) -> str:  # noqa: ANN401 - a message
    return base64.b64encode(message.value).decode()


def _date(message: Any) -> str:  # noqa: ANN401 - a message
    return f"{message.year:04}-{message.month:02}-{message.day:02}"


def _time_of_day(message: Any) -> str:  # noqa: ANN401 - a message
    fraction = f".{message.nanos // 1000:06}" if message.nanos else ""
    return f"{message.hours:02}:{message.minutes:02}:{message.seconds:02}{fraction}"


def _number(message: Any) -> float:  # noqa: ANN401 - a message
    number = float(message.value or 0) if len(message.value) <= _MAX_DIGITS else math.inf
    if not math.isfinite(number):
        msg = "a google.type.Decimal is not finite, or too long"
        raise ValueError(msg)
    return number


def _decimal(message: Any) -> float:  # noqa: ANN401 - a message
    return decimal_number(message.value, message.scale)


def _wrapped(message: Any) -> Any:  # noqa: ANN401 - a message
    return message.value


_WRAPPERS = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String")
_KNOWN: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "google/protobuf/timestamp.proto": {"Timestamp": _moment},
    "google/protobuf/struct.proto": {"Struct": _struct, "ListValue": _list, "Value": _value},
    "google/protobuf/wrappers.proto": {
        "BytesValue": _bytes,
        **dict.fromkeys((f"{one}Value" for one in _WRAPPERS), _wrapped),
    },
    "google/type/date.proto": {"Date": _date},
    "google/type/timeofday.proto": {"TimeOfDay": _time_of_day},
    "google/type/decimal.proto": {"Decimal": _number},
    "confluent/type/decimal.proto": {"Decimal": _decimal},
}


def known_value(descriptor: Any) -> Callable[[Any], Any] | None:  # noqa: ANN401 - of two classes
    """Return the function that returns the value of a well-known type; None for any other type."""
    return _KNOWN.get(descriptor.file.name, {}).get(descriptor.name)

"""Records in Protobuf, decoded with the descriptors of their schema.

The message types of a Protobuf file need no generated code. The compiler runs in a process of its
own, with bounded time, memory and output. It reads only the file with its imports, and the files
that need no reference: those of google.protobuf, google.type and confluent, which every serializer
of Confluent knows. A schema cannot replace these.

A well-known type is recognized by its file, which the compiler takes from the libraries that ship
it, and not by its name alone: the author of a schema may give any type the name of a well-known
type.

Only fields that are read are converted, to the values of JSON: times become moments of numpy,
wrapped values what they wrap, enums their names, and bytes Base64. A field that has presence and is
not set is missing; any other that is not set has the default of its type, as Protobuf does not tell
them apart.
"""

from __future__ import annotations

import base64
import math
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import grpc_tools
import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.type import date_pb2

from abers.stream.cells import BadRecordError
from abers_connectors.schemas.registry import (
    UnusableSchemaError,
    decimal_number,
    imported,
    message_indexes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from google.protobuf.descriptor import EnumDescriptor
    from google.protobuf.message import Message

    from abers_connectors.mapping import Record
    from abers_connectors.schemas.registry import RegisteredSchema, SchemaRegistry

    _Getter: TypeAlias = tuple[str, Callable[[Any], Any]]

__all__ = ["ProtoFile", "protobuf_decoder"]

_SECONDS = 20.0
_LIMITS = {"CPU": 5, "AS": 1 << 30, "FSIZE": 32 << 20}  # of the compiler: seconds and bytes
# The main program of grpc_tools.
_COMPILER = """
import resource, runpy
for what, most in limits.items():
    try:
        resource.setrlimit(getattr(resource, f"RLIMIT_{what}"), (most, most))
    except (ValueError, OSError):  # macOS bounds no memory
        pass
runpy.run_module("grpc_tools.protoc", run_name="__main__", alter_sys=True)
"""
_FOLDERS = (  # of files that need no reference
    f"{Path(__file__).parent / 'protos'}",
    f"google/type={Path(date_pb2.__file__).parent}",
    f"{Path(grpc_tools.__file__).parent / '_proto'}",
)
_MAX_NAME = 255  # bytes of the name of an import
_LOG_LINE = re.compile(r"WARNING: |[IWE]\d{4} ")  # with times, which no dead letter may have
_MAX_CHARACTERS = 500  # of what the compiler says


class ProtoFile:
    """A compiled file, with those that it imports."""

    def __init__(self, text: str, imported: Mapping[str, str]) -> None:
        name = "schema.proto"
        while name in imported:
            name = f"_{name}"
        files = FileDescriptorSet.FromString(_compiled(name, {**imported, name: text}))
        self._pool = DescriptorPool()
        for one in files.file:  # those that are imported come first
            try:
                self._pool.Add(one)
            except TypeError as error:  # a mistake for which the compiler only warns
                msg = f"is not a valid Protobuf file: {error}"
                raise UnusableSchemaError(msg) from None
        self._file = files.file[-1]
        # Of the widest message type: a message takes memory for all, set or not.
        self.most_fields = max(map(_most_fields, files.file))

    def message_type(self, indexes: Sequence[int]) -> type[Message]:
        """Return the type at some indexes: in the file, then in each type the nested one.

        As in Confluent's serializer of Java, only types that the file declares count, and not the
        entries of maps.
        """
        names, types = (
            [self._file.package] if self._file.package else [],
            [*self._file.message_type],
        )
        for index in indexes:
            if index >= len(types):
                msg = f"has no message type {'.'.join(map(str, indexes))}"
                raise UnusableSchemaError(msg)
            names.append(types[index].name)
            types = [one for one in types[index].nested_type if not one.options.map_entry]
        return GetMessageClass(self._pool.FindMessageTypeByName(".".join(names)))


def _most_fields(file: FileDescriptorProto) -> int:
    most, left = 0, [*file.message_type]
    while left:
        kind = left.pop()
        most = max(most, len(kind.field))
        left += kind.nested_type
    return most


def _compiled(name: str, texts: Mapping[str, str]) -> bytes:
    """Return the descriptors of a file and of those that it imports."""
    paths = _inside(texts)
    with TemporaryDirectory(prefix="abers-protobuf-") as folder:
        sources, out, said = (Path(folder, one) for one in ("sources", "descriptors", "said"))
        for path, text in zip(paths, texts.values(), strict=True):
            file = sources / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        folders = [f"-I{one}" for one in (*_FOLDERS, sources)]
        # The isolated mode imports nothing from the working directory. No bytecode is written: the
        # limit on files would cut it short, and that ends every later import of its module.
        program = f"limits = {_LIMITS}{_COMPILER}"
        command = [sys.executable, "-IB", "-c", program, *folders]
        command += [f"--descriptor_set_out={out}", "--include_imports", name]
        try:
            with said.open("wb") as errors:
                ran = subprocess.run(  # noqa: S603 - the library's own compiler
                    command, check=False, stdout=errors, stderr=errors, timeout=_SECONDS
                )
        except subprocess.TimeoutExpired:
            msg = f"is not compiled within {_SECONDS:g} s"
            raise UnusableSchemaError(msg) from None
        if ran.returncode < 0:
            msg = (
                f"is not compiled within {_LIMITS['CPU']} s of a core and {_LIMITS['AS'] >> 20} MiB"
            )
            raise UnusableSchemaError(msg)
        if ran.returncode:
            msg = f"is not a valid Protobuf file: {_reason(said, f'{sources}/')}"
            raise UnusableSchemaError(msg)
        return out.read_bytes()


def _reason(said: Path, folder: str) -> str:
    """Return the beginning of what the compiler said."""
    with said.open(errors="replace") as lines:
        begin = lines.read(_MAX_CHARACTERS << 7).replace(folder, "").splitlines()
    return " ".join(one for one in begin if not _LOG_LINE.match(one))[:_MAX_CHARACTERS]


def _inside(names: Collection[str]) -> list[PurePosixPath]:
    """Return the paths of imports, which must be those of files within a folder."""
    paths = [PurePosixPath(name) for name in names]
    folders = {folder for path in paths for folder in path.parents}
    for name, path in zip(names, paths, strict=True):
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
            msg = f"imports {name[:_MAX_NAME]!r}, which is not the relative path of a file"
        elif len(name.encode()) > _MAX_NAME:
            msg = f"imports {name[:60]!r}…, a name of more than {_MAX_NAME} bytes"
        elif path in folders:
            msg = f"imports {name!r}, which is the folder of another import"
        else:
            continue
        raise UnusableSchemaError(msg)
    return paths


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


_VALUES_A_BYTE = 8  # of a record, in messages within messages
_LEAST_VALUES = 10_000
_MAX_MEMORY = 1 << 30  # of a record


def protobuf_decoder(
    schema: RegisteredSchema, registry: SchemaRegistry, reads: frozenset[str]
) -> Callable[[bytes], Record]:
    """Return a decoder of records; `reads` are the top-level fields that are wanted."""
    file = ProtoFile(schema.schema, imported(schema, registry))
    types: dict[tuple[int, ...], _Type] = {}
    converters = _Converters()
    # An empty message has two bytes in a record, and each of its fields up to 16 in memory.
    most_bytes = 2 * _MAX_MEMORY // (16 * max(file.most_fields, 1))

    def decode(raw: bytes) -> Record:
        indexes, begin = message_indexes(raw)
        if (known := types.get(indexes)) is None:
            kind = _message_type(file, indexes)
            known = types[indexes] = _Type(kind, converters.of_fields(kind.DESCRIPTOR, reads))
        try:
            if len(raw) > most_bytes:
                msg = f"more than {most_bytes} bytes, where a type has {file.most_fields} fields"
                raise ValueError(msg)  # noqa: TRY301 - one answer to all
            return known.convert(known.kind.FromString(raw[begin:]), len(raw))
        except (DecodeError, ValueError, ArithmeticError, RecursionError) as error:
            detail = (
                f"by its schema the Protobuf body cannot be decoded ({error}); write it with the "
                "schema of its id"
            )
            raise BadRecordError("bad-protobuf", detail) from None

    return decode


class _Type(NamedTuple):
    kind: type[Message]
    convert: Callable[[Any, int], Record]  # from a message, and the bytes of its record


def _message_type(file: ProtoFile, indexes: Sequence[int]) -> type[Message]:
    try:
        return file.message_type(indexes)
    except UnusableSchemaError as error:
        detail = f"the schema of the record {error}; write it with the registry's serializer"
        raise BadRecordError("bad-wire-format", detail) from None
    except RecursionError:
        detail = "the schema of the record has types that lead to too many others, one by one"
        raise BadRecordError("unusable-schema", detail) from None


class _Converters:
    """Converters of message types, each made once: a type may contain itself."""

    def __init__(self) -> None:
        self._made: dict[str, Callable[[Any], dict[str, Any]]] = {}
        self._values = 0  # that a record may still have in messages within messages
        # Types within types wait here: a recursion would fail at a long chain of them.
        self._left: list[tuple[Any, list[_Getter]]] = []

    def of_fields(
        self,
        descriptor: Any,  # noqa: ANN401 - of two classes
        reads: Collection[str],
    ) -> Callable[[Any, int], Record]:
        """Return a function that converts a message, given the size of its record, to a record."""
        wanted = [
            (field.name, self._getter(field)) for field in descriptor.fields if field.name in reads
        ]
        while self._left:
            nested, getters = self._left.pop()
            getters += [(field.name, self._getter(field)) for field in nested.fields]

        def convert(message: Any, size: int) -> Record:  # noqa: ANN401 - of the type
            self._values = _LEAST_VALUES + _VALUES_A_BYTE * size
            return {name: get(message) for name, get in wanted}

        return convert

    def _of_nested(self, descriptor: Any) -> Callable[[Any], dict[str, Any]]:  # noqa: ANN401 - of two classes
        if (made := self._made.get(descriptor.full_name)) is not None:
            return made
        getters: list[_Getter] = []

        def convert(message: Any) -> dict[str, Any]:  # noqa: ANN401 - of the type
            # An empty message takes two bytes, and has all fields of its type.
            self._values -= len(getters)
            if self._values < 0:
                msg = f"more than {_VALUES_A_BYTE} values a byte, most of them not set"
                raise ValueError(msg)
            return {name: get(message) for name, get in getters}

        self._made[descriptor.full_name] = convert
        self._left.append((descriptor, getters))
        return convert

    def _getter(self, field: FieldDescriptor) -> Callable[[Any], Any]:
        """Return a function that returns a field of a message, None if it is not set."""
        name = field.name
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = self._converter(field.message_type.fields_by_name["value"])
            return lambda message: {
                _key(key): value(one) for key, one in getattr(message, name).items()
            }
        convert = self._converter(field)
        if field.is_repeated:
            return lambda message: [convert(one) for one in getattr(message, name)]
        if field.has_presence:
            return lambda message: (
                convert(getattr(message, name)) if type(message).HasField(message, name) else None
            )
        return lambda message: convert(getattr(message, name))

    def _converter(self, field: FieldDescriptor) -> Callable[[Any], Any]:
        if field.message_type is not None:
            return known_value(field.message_type) or self._of_nested(field.message_type)
        if field.enum_type is not None:
            return _enum(field.enum_type)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return lambda value: base64.b64encode(value).decode()
        if field.type == FieldDescriptor.TYPE_STRING:
            return _text
        return lambda value: value


def _text(value: str | bytes) -> str:
    """Return a text, which proto2 has as bytes if it is not UTF-8."""
    return value if isinstance(value, str) else value.decode()


def _key(key: object) -> str:
    if isinstance(key, bytes):
        return _text(key)
    return str(key).lower() if isinstance(key, bool) else str(key)


def _enum(descriptor: EnumDescriptor) -> Callable[[int], Any]:
    names: Mapping[int, str] = {one.number: one.name for one in descriptor.values}
    return lambda value: names.get(value, value)

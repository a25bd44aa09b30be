"""Message types of a Protobuf file, without generated code.

The compiler runs in a process of its own, with bounded time, memory and output. It reads only
what it is given, and the files that need no reference: those of google.protobuf, google.type and
confluent, which every serializer of Confluent knows. A schema cannot replace these.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.type import date_pb2

from abers_connectors.schemas.schema_cache import UnusableSchemaError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from google.protobuf.message import Message

__all__ = ["ProtoFile"]

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
            except TypeError as error:  # of what the compiler only warns of
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

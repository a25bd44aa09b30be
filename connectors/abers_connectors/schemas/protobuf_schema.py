"""Message types of a Protobuf file, without generated code.

The compiler runs in a process of its own, which is given some seconds, and reads only what it is
given.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from abers_connectors.schemas.schema_cache import UnusableSchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.protobuf.message import Message

__all__ = ["ProtoFile"]

_SECONDS = 20.0
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
            self._pool.Add(one)
        self._file = files.file[-1]

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


def _compiled(name: str, texts: Mapping[str, str]) -> bytes:
    """Return the descriptors of a file and of those that it imports."""
    with TemporaryDirectory(prefix="abers-protobuf-") as folder:
        for path, text in texts.items():
            file = Path(folder, _inside(path))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        out = Path(folder, "descriptors")
        options = [f"-I{folder}", f"--descriptor_set_out={out}", "--include_imports", name]
        # The isolated mode imports nothing from the working directory.
        command = [sys.executable, "-I", "-m", "grpc_tools.protoc", *options]
        try:
            ran = subprocess.run(  # noqa: S603 - the library's own compiler
                command, check=False, capture_output=True, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            msg = f"is not compiled within {_SECONDS:g} s"
            raise UnusableSchemaError(msg) from None
        if ran.returncode:
            lines = ran.stderr.decode(errors="replace").replace(f"{folder}/", "").splitlines()
            said = " ".join(one for one in lines if not _LOG_LINE.match(one))[:_MAX_CHARACTERS]
            msg = f"is not a valid Protobuf file: {said}"
            raise UnusableSchemaError(msg)
        return out.read_bytes()


def _inside(path: str) -> PurePosixPath:
    """Return the path of an import, which must stay within a folder."""
    found = PurePosixPath(path)
    if found.is_absolute() or ".." in found.parts or not found.parts or "\0" in path:
        msg = f"imports {path!r}, which is not the relative path of a file"
        raise UnusableSchemaError(msg)
    return found

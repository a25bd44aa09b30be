"""Files by name: format and compression, who opens them, and the same file under two names.

Streams compressed with gzip or zstd. A compressed output is a sequence of complete members (gzip)
or frames (zstd), so the file can be cut between any two of them. A compressed input that ends
within a member is damaged.

Format and compression of a file, by its name. The last suffix names the format, after a suffix of
compression; "-" is standard input or output: then the format must be given.

Checks that a command uses no file twice under different names. The identity of a file is its device
and inode, with all links, mounts and spellings; that of a missing file is its directory and name. A
command must not write a file that it also uses otherwise; this is checked before anything is opened
for writing. A link is not followed where the user did not name the file, because its name is
derived from another.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
import zlib
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, NamedTuple, Protocol, TypeVar, cast
from urllib.parse import unquote

from abers.exceptions import ParameterError, RecordError
from abers_connectors.extras import extra

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

__all__ = [
    "CHUNK",
    "PARTS",
    "STANDARD",
    "SUFFIXES",
    "DamagedError",
    "FileFormat",
    "FileUse",
    "Openers",
    "chunks",
    "clashes",
    "default_format",
    "file_format",
    "is_same",
    "is_stream",
    "local_path",
    "packer",
    "require_apart",
    "scheme_of",
    "suffix_of",
]

CHUNK = 1 << 19  # about 5,000 records of 100 bytes
_LEVEL = 6
_PIECE = 1 << 10  # bytes of zstd; 4 may expand to 128 KiB: at most 32 MiB together


class DamagedError(RecordError):
    """Compressed data that is truncated or damaged."""


class _Readable(Protocol):
    def read1(self, size: int, /) -> bytes: ...


def chunks(file: BinaryIO, compression: str | None) -> Iterator[bytes]:
    """Read a file in pieces of about `CHUNK` bytes, or as they come from a pipe.

    The compression is "gzip", "zstd", or None. Truncated or damaged data is a DamagedError, after
    all of it that is readable.
    """
    if compression is None:
        while chunk := file.read1(CHUNK):  # type: ignore[attr-defined]
            yield chunk
        return
    unpacked, failure = _decompressed(file, compression), None
    while failure is None:
        chunk, failure = _next_chunk(unpacked)
        if not chunk and failure is None:
            return
        # A few bytes may expand to millions of lines; they are not all made at once.
        step = CHUNK if len(chunk) > 2 * CHUNK else 2 * CHUNK
        yield from (chunk[start : start + step] for start in range(0, len(chunk), step))
    msg = f"the compressed data is cut off or damaged ({failure}); copy the file again"
    raise DamagedError(msg) from failure


def _decompressed(file: BinaryIO, compression: str) -> _Readable:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=file)
    return _ZstdStream(file)


class _ZstdStream:
    """Reads frame after frame, and refuses an incomplete last frame."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._zstd = file, extra("zstandard", "zstd")
        self._new = self._zstd.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._packed = b""

    def read1(self, _size: int, /) -> bytes:
        """Return some decompressed bytes, none at the end."""
        found = b""
        while not found:
            self._packed = self._packed or self._file.read(_PIECE)
            if not self._packed:
                if self._frame is None:
                    return b""
                msg = "the file ends within a frame"
                raise EOFError(msg)
            found = self._decompress()
        return found

    def _decompress(self) -> bytes:
        frame = self._frame or self._new()
        try:
            found: bytes = frame.decompress(self._packed)
        except self._zstd.ZstdError as error:
            raise EOFError(str(error)) from None
        self._packed = frame.unused_data if frame.eof else b""
        self._frame = None if frame.eof else frame
        return found


def _next_chunk(unpacked: _Readable) -> tuple[bytes, Exception | None]:
    """Return about a chunk, and the error that ends the stream, if any."""
    parts: list[bytes] = []
    size = 0
    try:
        while size < CHUNK and (part := unpacked.read1(CHUNK)):
            parts.append(part)
            size += len(part)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        return b"".join(parts), error
    return b"".join(parts), None


def packer(compression: str | None) -> Callable[[bytes], bytes]:
    """Return a function that compresses bytes into a complete member or frame.

    Examples
    --------
    >>> pack = packer("gzip")
    >>> gzip.decompress(pack(b"one ") + pack(b"two"))
    b'one two'
    """
    if compression is None:
        return lambda data: data
    if compression == "gzip":
        return lambda data: gzip.compress(data, _LEVEL, mtime=0)
    compress: Callable[[bytes], bytes] = extra("zstandard", "zstd").ZstdCompressor().compress
    return compress


STANDARD = "-"
"""Names standard input or output."""

PARTS = "part-*.parquet"
"""Names of the files in a directory of Parquet parts."""

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
"""Formats by their suffixes."""

FORMATS = frozenset(SUFFIXES.values())
_TABBED = (".tsv", ".tab")
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_URL = re.compile(r"([a-z][a-z0-9+.-]+)://", re.ASCII)


class FileFormat(NamedTuple):
    """Format and compression of a file."""

    format: str  # "csv", "jsonl" or "parquet"
    compression: str | None  # "gzip" or "zstd"
    separator: str = ","  # of the fields of "csv"


def file_format(path: str, given: str | None = None, others: Iterable[str] = ()) -> FileFormat:
    r"""Return the format and the compression of a file, or of "-".

    `given` is the format if the suffix does not name it. Raises a ParameterError if the format is
    unknown (the message also names `others`: further suffixes and schemes), or Parquet as a stream.

    Examples
    --------
    >>> file_format("scores.jsonl.gz")
    FileFormat(format='jsonl', compression='gzip', separator=',')
    >>> file_format("scores.tsv")
    FileFormat(format='csv', compression=None, separator='\t')
    """
    compression = _COMPRESSIONS.get(Path(path).suffix.lower())
    found = given or SUFFIXES.get(suffix_of(path))
    if found is None or found not in FORMATS:
        more = f", and {', '.join(others)}" if (others := [*others]) else ""
        msg = (
            f"{path}: unknown kind of file; abers knows {', '.join(SUFFIXES)}, all but "
            f"the last also with .gz or .zst{more}; save it as one of these, or name the "
            "format in input.format of a configuration"
        )
        raise ParameterError(msg)
    if found == "parquet" and (compression or path == STANDARD):
        msg = (
            f"{path}: a Parquet file is read from its end, and compressed inside; name a plain "
            ".parquet file, or use JSON Lines"
        )
        raise ParameterError(msg)
    return FileFormat(found, compression, "\t" if suffix_of(path) in _TABBED else ",")


def suffix_of(path: str) -> str:
    """Return the suffix that names the format, in lower case.

    Examples
    --------
    >>> suffix_of("scores.JSONL.gz"), suffix_of("scores")
    ('.jsonl', '')
    """
    name = Path(path)
    compressed = name.suffix.lower() in _COMPRESSIONS
    return (name.with_suffix("") if compressed else name).suffix.lower()


def default_format(path: str) -> str | None:
    """Return the format of a stream without a suffix, which is JSON Lines; None for all else.

    Examples
    --------
    >>> default_format("-"), default_format("scores.csv")
    ('jsonl', None)
    """
    return "jsonl" if is_stream(path) and not suffix_of(path) else None


def scheme_of(name: str) -> str | None:
    """Return the scheme of a URL; None for a path.

    Examples
    --------
    >>> scheme_of("redis://localhost/scores"), scheme_of("scores.csv")
    ('redis', None)
    """
    found = _URL.match(name)
    return None if found is None else found[1]


def local_path(name: str) -> str | None:
    """Return the path of a name or file URL, in which %20 is a space; None if it is elsewhere.

    Examples
    --------
    >>> local_path("file:///data/my%20folder"), local_path("my%20folder"), local_path("s3://bucket")
    ('/data/my folder', 'my%20folder', None)
    """
    scheme = scheme_of(name)
    if scheme == "file":
        return unquote(name.removeprefix("file://").removeprefix("localhost"))
    return name if scheme is None else None


def is_stream(path: str) -> bool:
    """Return whether a path is standard output, a pipe or a device."""
    file = Path(path)
    return path == STANDARD or (file.exists() and not (file.is_file() or file.is_dir()))


Opener = TypeVar("Opener")


class Openers(Generic[Opener]):
    """Opening functions by file format ("csv"), further suffix (".avro") or URL scheme ("redis").

    A function may be its import path "module:name": the module is imported when a name needs it.

    Examples
    --------
    >>> openers = Openers({"csv": "builtins:print"})
    >>> openers.register("redis", len)
    >>> openers.find("redis://localhost/scores"), openers.find("scores.csv.gz")
    (<built-in function len>, <built-in function print>)
    """

    def __init__(self, openers: Mapping[str, Opener | str]) -> None:
        self._openers = dict(openers)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys."""
        return iter(self._openers)

    def register(self, key: str, opener: Opener | str) -> None:
        """Add or replace the function of a suffix such as ".avro" or a scheme such as "redis"."""
        self._openers[key] = opener

    def key(self, name: str, given: str | None = None) -> str:
        """Return the key of a path, "-" or a URL, or raise a ParameterError if it has none.

        `given` is the format of a path with a suffix that does not name it.
        """
        scheme = scheme_of(name)
        others = [key if key[0] == "." else f"{key}://" for key in self if key not in FORMATS]
        if scheme is None:
            suffix = suffix_of(name)
            return suffix if suffix in self._openers else file_format(name, given, others).format
        if scheme not in self._openers:
            known = ", ".join(one for one in others if one[0] != ".") or "none"
            msg = f"{name}: unknown URL scheme {scheme}; registered schemes: {known}"
            raise ParameterError(msg)
        return scheme

    def find(self, name: str, given: str | None = None) -> Opener:
        """Return the function that opens a name; see `key`."""
        found = self._openers[self.key(name, given)]
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            found = cast("Opener", getattr(import_module(module), attribute))
        return found


class FileUse(NamedTuple):
    """A file that a command uses."""

    name: str  # of the configuration key or option that names the file
    path: str  # or "-"
    reads: bool = False  # whether the file is only read
    derived: bool = False  # whether the path is derived from another


class Clash(NamedTuple):
    """A file that is used twice, or a link as a derived name."""

    name: str
    before: str  # the problem, up to the name of the other use
    other: str = ""
    after: str = ""

    def __str__(self) -> str:
        """Return name and problem."""
        return f"{self.name}: {self.before}{self.other}{self.after}"


def clashes(uses: Iterable[FileUse]) -> Iterator[Clash]:
    """Yield the problems of files that are used twice, and of links as derived names."""
    listed = list(uses)
    seen: dict[Hashable, FileUse] = {}
    for use in listed:
        if use.derived and Path(use.path).is_symlink():
            problem = f"{_shown(use)} is a link in the place of a derived name; remove it"
            yield Clash(use.name, problem)
            continue
        identity = _identity(use)
        if identity in seen:
            other = seen[identity].name
            yield Clash(use.name, f"{_shown(use)} is ", other, " already; name another file")
        seen.setdefault(identity, use)
    for use in listed:
        folder = seen.get(_part_of(use))
        if folder is not None and not folder.reads:
            after = " as if it were a part of it; move it"
            yield Clash(use.name, f"{_shown(use)} lies in ", folder.name, after)


def require_apart(uses: Iterable[FileUse]) -> None:
    """Raise a ParameterError for the first of the `clashes` of some uses."""
    for clash in clashes(uses):
        raise ParameterError(str(clash))


def is_same(one: str, other: str) -> bool:
    """Return whether two names are, or would be, the same file."""
    return _identity(FileUse("", one)) == _identity(FileUse("", other))


def _shown(use: FileUse) -> str:
    return json.dumps(use.path, ensure_ascii=False)


def _identity(use: FileUse) -> Hashable:
    """Return a key that is equal for two names of the same file only."""
    standard = use.path == STANDARD
    try:
        found = os.fstat(0 if use.reads else 1) if standard else os.stat(use.path)  # noqa: PTH116
    except OSError:
        return (STANDARD, use.reads) if standard else _identity_of_missing(Path(use.path))
    if stat.S_ISCHR(found.st_mode) or stat.S_ISSOCK(found.st_mode):
        # A terminal or a socket may be read and written at once; /dev/null takes any output.
        return (STANDARD, use.reads) if standard else object()
    return found.st_dev, found.st_ino


def _identity_of_missing(path: Path) -> Hashable:
    target = Path(os.path.realpath(path))
    folder = _folder_of(target)
    return str(target) if folder is None else (folder, target.name)


def _part_of(use: FileUse) -> Hashable:
    """Return the identity of the directory of a file that is named as a Parquet part."""
    target = Path(os.path.realpath(use.path))
    return _folder_of(target) if fnmatchcase(target.name, PARTS) else None


def _folder_of(target: Path) -> Hashable:
    """Return the identity of the directory of a file, or None."""
    try:
        folder = target.parent.stat()
    except OSError:
        return None
    return folder.st_dev, folder.st_ino

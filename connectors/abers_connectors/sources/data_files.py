"""The Parquet files of a folder, a pattern or a bucket, as they are when they are listed.

Files that are added later are not read. Names that begin with "_" or "." are those of files that
are being written, and of marks next to them, as in Spark and Hive.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from glob import escape
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from abers.exceptions import MissingExtraError, ParameterError, RecordError
from abers_connectors.extras import extra
from abers_connectors.files.formats import SUFFIXES, local_path, scheme_of
from abers_connectors.regular_files import irregular, open_regular
from abers_connectors.sources.file_columns import path_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa

    from abers_connectors.sources.file_columns import FileColumns

__all__ = ["DataFile", "FileList", "files_of_name", "is_folder", "is_table", "partition_of"]

_NULL = "__HIVE_DEFAULT_PARTITION__"
_LIBRARIES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}


class DataFile(NamedTuple):
    """A Parquet file."""

    name: str  # for messages
    open: Callable[[], Any]  # returns a file that can be read and sought in
    columns: Callable[[pa.Schema], FileColumns]  # of the table, by the columns of the file
    partition: Mapping[str, str | None] = {}  # values of columns by its path
    size: int = 0


class FileList(NamedTuple):
    """The files of a data set, and what identifies them."""

    files: list[DataFile]
    version: str  # of the table, or a digest of names and sizes


def files_of_name(name: str) -> FileList:
    """List the Parquet files that a path, a pattern or a URL names, in the order of their names.

    Raises
    ------
    ParameterError
        If there are no files.
    MissingExtraError
        If the library of a bucket is not installed.
    RecordError
        If the bucket cannot be read, or something else stands in the place of a file.
    """
    files, path = _filesystem(name)
    with _listing(name):
        found = _sizes(files, path)
    if not found:
        what = "is a directory without" if Path(name).is_dir() else "names no"
        msg = (
            f"{name} {what} Parquet file; name a folder, a pattern or a URL of .parquet files, or "
        )
        msg += "name a CSV or JSON Lines file in it"
        raise ParameterError(msg)
    local = local_path(name) is not None
    for one in found if local else ():
        if problem := irregular(one):
            msg = f"{one} {problem}"
            raise RecordError(msg)
    prefix = "" if local else f"{scheme_of(name)}://"
    listed = []
    for one, size in sorted(found.items()):
        opener = partial(open_regular, one) if local else _opener(files, one)
        partition = partition_of(one.split("/")[:-1])
        columns = partial(path_columns, partition=partition)
        listed.append(DataFile(f"{prefix}{one}", opener, columns, partition, size))
    return FileList(listed, _digest(f"{one} {size}" for one, size in sorted(found.items())))


def is_table(name: str) -> bool:
    """Return whether a name is that of a folder, or a pattern of files, on this machine.

    Examples
    --------
    >>> is_table("/"), is_table("history/*.parquet"), is_table("scores.csv")
    (True, True, False)
    """
    if scheme_of(name) is not None:
        return False
    path = Path(name)
    try:
        folder, there = path.is_dir(), path.exists()
    except OSError:  # such as a name that is too long
        return False
    if folder:
        return SUFFIXES.get(path.suffix.lower(), "parquet") == "parquet"
    return _has_magic(name) and not there


def is_folder(name: str, below: str) -> bool:
    """Return whether a path or URL has a folder of this name in it."""
    files, path = _filesystem(name)
    with _listing(name):
        return bool(files.isdir(f"{path.rstrip('/')}/{below}"))


def partition_of(folders: Iterable[str]) -> dict[str, str | None]:
    """Return the values of columns that folders such as "model=fraud" have.

    Two values of one column are a RecordError.

    Examples
    --------
    >>> partition_of(["data", "model=card%20fraud", "day=__HIVE_DEFAULT_PARTITION__"])
    {'model': 'card fraud', 'day': None}
    """
    found: dict[str, str | None] = {}
    for folder in folders:
        name, given, value = folder.partition("=")
        if (key := unquote(name)) in found and given:
            msg = f"two folders of a path have the name {key}, the second one {folder}; rename one"
            raise RecordError(msg)
        if given:
            found[key] = None if value == _NULL else unquote(value)
    return found


def _filesystem(name: str) -> tuple[Any, str]:
    if (local := local_path(name)) is not None:
        return extra("fsspec", "a data set", "files").filesystem("file"), str(
            Path(local).absolute()
        )
    core = extra("fsspec.core", "a data set", "files")
    scheme = scheme_of(name)
    try:
        files, path = core.url_to_fs(name)
    except ImportError as error:
        library = _LIBRARIES.get(scheme or "", "another library")
        msg = f"{name}: {scheme}:// needs {library}, which is not installed; run: "
        msg += f"pip install {library}"
        raise MissingExtraError(msg) from error
    except ValueError as error:
        msg = f"{name}: {error}"
        raise ParameterError(msg) from None
    files.invalidate_cache()
    return files, str(path)


@contextmanager
def _listing(name: str) -> Iterator[None]:
    """Turn any error of a storage, which may be of a library of its own, into a RecordError."""
    try:
        yield
    except Exception as error:
        msg = f"{name} cannot be listed ({error}); see that it is there and may be read"
        raise RecordError(msg) from error


def _sizes(files: Any, path: str) -> dict[str, int]:  # noqa: ANN401 - fsspec is untyped
    """Return the sizes of the data files below a path, or below those that match a pattern."""
    found: dict[str, int] = {}
    for folder in _named(files, path):
        alone = not files.isdir(folder)
        base = folder.rsplit("/", 1)[0] if alone else folder.rstrip("/")
        listed = {folder: files.info(folder)} if alone else files.find(folder, detail=True)
        for file, info in listed.items():
            if _is_data(file.removeprefix(base)):
                found[file] = int(info["size"] or 0)
    return found


def _named(files: Any, path: str) -> list[str]:  # noqa: ANN401
    """Return what a path or a pattern names; a part that exists under its name is no pattern."""
    parts = path.split("/")
    for number, part in enumerate(parts):
        if _has_magic(part) and not files.exists("/".join(parts[: number + 1])):
            found: list[str] = files.glob("/".join([*map(escape, parts[:number]), *parts[number:]]))
            return found
    return [path]


def _has_magic(path: str) -> bool:
    return any(mark in path for mark in "*?[")


def _is_data(below: str) -> bool:
    """Return whether a path below a folder is that of data: named .parquet, and not hidden."""
    parts = below.strip("/").split("/")
    hidden = any(part.startswith(("_", ".")) and "=" not in part for part in parts)
    return not hidden and below.lower().endswith((".parquet", ".parq"))


def _opener(files: Any, path: str) -> Callable[[], Any]:  # noqa: ANN401
    def opened() -> Any:  # noqa: ANN401
        try:
            return files.open(path, "rb")
        except OSError:
            raise
        except Exception as error:  # of a library of its own
            raise OSError(str(error)) from error

    return opened


def _digest(lines: Iterable[str]) -> str:
    return blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()

"""Checks that a command uses no file twice under different names.

The identity of a file is its device and inode, with all links, mounts and spellings; that of a
missing file is its directory and name. A command must not write a file that it also uses otherwise;
this is checked before anything is opened for writing. A link is not followed where the user did not
name the file, because its name is derived from another.
"""

from __future__ import annotations

import json
import os
import stat
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from abers.exceptions import ParameterError
from abers_connectors.files.formats import PARTS, STANDARD

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

__all__ = ["Clash", "FileUse", "clashes", "is_same", "require_apart"]


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

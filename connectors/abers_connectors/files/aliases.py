"""Whether two names are one file, for every command that writes.

Governing rule: a file is known by its device and inode, whatever links, mounts or spellings lead
to it; one that is not there yet, by its directory and its name. What a command writes is nothing
that it reads or writes otherwise, and that is found out before anything is opened for writing.
Where the name of a file is made of another, a link in its place was named by nobody, and is not
followed.
"""

from __future__ import annotations

import json
import os
import stat
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from abers.exceptions import ParameterError
from abers_connectors.files.naming import PARTS, STANDARD

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

__all__ = ["Use", "clashes", "is_same", "require_apart"]


class Use(NamedTuple):
    """A file that a command uses.

    Parameters
    ----------
    name
        What it is for: a key of the configuration, or an option.
    path
        The file, or "-".
    reads
        Whether it is only read, and so must stay as it is.
    derived
        Whether its name is made of another one, so that nobody named it.
    """

    name: str
    path: str
    reads: bool = False
    derived: bool = False


def clashes(uses: Iterable[Use]) -> Iterator[tuple[str, str]]:
    """Find the files that are used twice, and the links that nobody named.

    Parameters
    ----------
    uses
        All files of a command.

    Yields
    ------
    tuple
        The name of a use, and what is wrong with it.
    """
    listed = list(uses)
    seen: dict[Hashable, Use] = {}
    for use in listed:
        if use.derived and Path(use.path).is_symlink():
            yield use.name, f"{_shown(use)} is a link that nobody named; remove it"
            continue
        place = _place(use)
        if place in seen:
            yield use.name, f"{_shown(use)} is {seen[place].name} already; name another file"
        seen.setdefault(place, use)
    for use in listed:
        folder = seen.get(_part_of(use))
        if folder is not None and not folder.reads:
            problem = f"lies in {folder.name} as if it were a part of it; move it"
            yield use.name, f"{_shown(use)} {problem}"


def require_apart(uses: Iterable[Use]) -> None:
    """Refuse, with a ParameterError, files that are used twice, and links that nobody named.

    Parameters
    ----------
    uses
        All files of a command.
    """
    for name, problem in clashes(uses):
        msg = f"{name}: {problem}"
        raise ParameterError(msg)


def is_same(one: str, other: str) -> bool:
    """Say whether two names are one file, or would be."""
    return _place(Use("", one)) == _place(Use("", other))


def _shown(use: Use) -> str:
    return json.dumps(use.path, ensure_ascii=False)


def _place(use: Use) -> Hashable:
    """Give what two names of one file have in common, and no others."""
    standard = use.path == STANDARD
    try:
        found = os.fstat(0 if use.reads else 1) if standard else os.stat(use.path)  # noqa: PTH116
    except OSError:
        return (STANDARD, use.reads) if standard else _place_of_none(Path(use.path))
    if stat.S_ISCHR(found.st_mode) or stat.S_ISSOCK(found.st_mode):
        # A terminal, or a connection, is read and written at once; /dev/null has room for all.
        return (STANDARD, use.reads) if standard else object()
    return found.st_dev, found.st_ino


def _place_of_none(path: Path) -> Hashable:
    target = Path(os.path.realpath(path))
    try:
        folder = target.parent.stat()
    except OSError:
        return str(target)
    return folder.st_dev, folder.st_ino, target.name


def _part_of(use: Use) -> Hashable:
    """Give the directory in which a file would pass for a part of a Parquet output."""
    target = Path(os.path.realpath(use.path))
    if not fnmatchcase(target.name, PARTS):
        return None
    try:
        folder = target.parent.stat()
    except OSError:
        return None
    return folder.st_dev, folder.st_ino

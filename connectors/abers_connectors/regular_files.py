"""Regular files: opened without waiting, and guessed where a name is misspelled.

Opening of files that never waits: it takes regular files only. Opening a named pipe waits for its
writer, and a device may never end. A stream is read only where the user wants it: as the input of a
format of lines, or under a name of an open descriptor.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, BinaryIO

from abers.suggestions import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["irregular", "no_such_file", "open_regular"]

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_DESCRIPTORS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Begin the names of files that the process has open already, such as <(…) of a shell."""


def open_regular(path: str | Path) -> BinaryIO:
    """Open a file for reading, without ever waiting.

    Raises
    ------
    OSError
        If it cannot be opened, or is neither a regular file nor open already.
    """
    name = os.fspath(path)
    if name.startswith(_DESCRIPTORS):
        return open(name, "rb")  # noqa: PTH123
    if what := irregular(name):
        raise OSError(errno.EINVAL, what, name)
    # Another file may take its place meanwhile, which must not make it wait.
    flags = os.O_NONBLOCK | os.O_NOCTTY
    file = open(name, "rb", opener=lambda path, given: os.open(path, given | flags))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "is not a regular file any more", name)
    return file


def irregular(path: str | Path) -> str | None:
    """Describe what stands in the place of a regular file or folder; None for all other paths.

    Examples
    --------
    >>> irregular("/dev/null"), irregular("/"), irregular("/no such file")
    ('is a device; name a regular file', None, None)
    """
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)  # noqa: PTH116
    except FileNotFoundError:
        if os.path.islink(path):  # noqa: PTH114
            return "is a link to a missing file; remove it, or put the file back"
        return None
    except OSError:  # opening it says why
        return None
    return f"is {_KINDS[kind]}; name a regular file" if kind in _KINDS else None


def no_such_file(path: Path) -> str:
    """Describe why there is no file at a path, with the closest name in its directory."""
    if what := irregular(path):  # a link to a missing file
        return what
    others = path.parent.iterdir() if path.parent.is_dir() else []
    return f"no such file{did_you_mean(path.name, [one.name for one in others])}"

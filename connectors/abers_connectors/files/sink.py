"""Predictions written as JSON Lines, to a file or to standard output.

Governing rule: a file appears under its name whole or not at all. The lines go
to a temporary file beside it, which is renamed when everything is written and
removed when something fails. Standard output, pipes and devices have no name to
protect and are written directly.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.records import Prediction

__all__ = ["JsonLines", "opened"]


class JsonLines:
    """Writes one JSON object a line.

    Parameters
    ----------
    file
        An open binary file.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._encode = msgspec.json.Encoder().encode

    def write(self, prediction: Prediction) -> None:
        """Write one prediction."""
        self._file.write(self._encode(prediction) + b"\n")


@contextmanager
def opened(path: str) -> Iterator[JsonLines]:
    """Open an output for the time of a `with` block.

    Parameters
    ----------
    path
        Name of the file, or ``-`` for standard output.

    Yields
    ------
    JsonLines
        The sink.

    Raises
    ------
    ParameterError
        If there is no such directory, or the path names one.
    """
    if path == "-":
        yield JsonLines(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    # A link stays a link: what it points to is replaced.
    target = Path(path).resolve()
    if target.is_dir():
        msg = f"--output {path} is a directory; name a file in it"
        raise ParameterError(msg)
    if not target.parent.is_dir():
        msg = f"--output {path}: there is no directory {target.parent}; make it first"
        raise ParameterError(msg)
    if target.exists() and not target.is_file():
        with target.open("wb") as device:
            yield JsonLines(device)
        return
    with _renamed_at_end(target) as file:
        yield JsonLines(file)


@contextmanager
def _renamed_at_end(target: Path) -> Iterator[BinaryIO]:
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with partial.open("xb") as file:
            yield file
        partial.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            partial.unlink()
        raise

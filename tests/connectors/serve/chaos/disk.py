"""A small disk, which can be full."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["SmallDisk", "small_disk"]

_CHUNK = 4_096  # bytes, a page


class SmallDisk:
    """A folder with little room."""

    def __init__(self, path: Path) -> None:
        self.path, self._filler = path, path / "filler"

    def fill(self) -> None:
        """Take all room."""
        with self._filler.open("wb", buffering=0) as file:
            while True:
                try:
                    file.write(bytes(_CHUNK))
                except OSError:
                    return

    def free(self) -> None:
        """Make room again."""
        self._filler.unlink()


@contextmanager
def small_disk(path: Path, size: int) -> Iterator[SmallDisk | None]:
    """Mount a disk in a `with` block; None where that is not allowed."""
    path.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        path.rmdir()
        yield None
        return
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", str(path)], check=True)  # noqa: S607
        path.rmdir()

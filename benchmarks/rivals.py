"""The alternatives in C++, compiled when they are needed.

Without a compiler they are left out, with one line that reports it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import weakref
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from benchmarks.streams import Floats, Labels

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path(__file__).with_name("rivals.cpp")
FLAGS = ("-O3", "-std=c++20", "-DNDEBUG", "-fPIC", "-shared")

PAVA, MULTISET, BUCKETS = 0, 1, 2


@cache
def compiler() -> str | None:
    """Find the C++ compiler, as the build of the package does."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and (path := shutil.which(name)):
            return path
    return None


@cache
def library() -> ctypes.CDLL | None:
    """Compile the rivals, once a source, and load them; None without a compiler."""
    cxx = compiler()
    if cxx is None:
        return None
    recipe = SOURCE.read_bytes() + repr((cxx, FLAGS)).encode()
    built = ROOT / "build" / "benchmarks" / f"rivals-{blake2b(recipe, digest_size=8).hexdigest()}"
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        fresh = built.with_suffix(f".{os.getpid()}")  # so that two runs do not meet
        subprocess.run([cxx, *FLAGS, str(SOURCE), "-o", str(fresh)], check=True)  # noqa: S603
        fresh.replace(built)
    loaded = ctypes.CDLL(str(built))
    loaded.rival_new.restype = ctypes.c_void_p
    return loaded


def _pointer(array: Floats | Labels) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Rival:
    """A container of rivals.cpp, driven by steps as `VennAbers.run` is."""

    def __init__(self, kind: int, window: int = 0) -> None:
        """Make an empty container that keeps all, or the last `window` observations."""
        found = library()
        if found is None:
            msg = "the rivals in C++ need a C++ compiler"
            raise OSError(msg)
        self._library = found
        new = found.rival_new(ctypes.c_int(kind), ctypes.c_size_t(window))
        self._rival = ctypes.c_void_p(new)
        weakref.finalize(self, found.rival_free, self._rival)

    def fill(self, scores: Floats, labels: Labels) -> None:
        """Learn the first observations, all at once."""
        size = ctypes.c_size_t(len(scores))
        self._library.rival_fill(self._rival, _pointer(scores), _pointer(labels), size)

    def run(self, steps: Labels, scores: Floats, labels: Labels) -> tuple[Floats, Floats]:
        """Predict (0), learn (1) and remove (2) in order."""
        p0, p1 = np.full(len(steps), np.nan), np.full(len(steps), np.nan)
        columns = (_pointer(steps), _pointer(scores), _pointer(labels))
        size = ctypes.c_size_t(len(steps))
        self._library.rival_run(self._rival, *columns, size, _pointer(p0), _pointer(p1))
        return p0, p1

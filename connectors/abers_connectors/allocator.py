"""Settings of the C library's memory allocator for a process that runs for months."""

from __future__ import annotations

import ctypes

__all__ = ["return_freed_memory"]

_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1  # names of glibc's mallopt
_MOST_ARENAS = 2
_LARGE = 1 << 20  # bytes of a block that is the system's again as soon as it is free
_SPARE = 8 << 20  # bytes at the end of an arena that may stay free


def return_freed_memory() -> bool:
    """Let the allocator return free memory to the system; False where it is not glibc's.

    Call it before the first thread starts.

    Notes
    -----
    Without it glibc gives eight arenas to each processor, and threads use them in turns. Once a
    large block was freed, each arena keeps the most that it ever had, such as a part of a
    snapshot: after minutes, a service with 10 MB of state kept 115 MB that were free.

    Examples
    --------
    >>> return_freed_memory() in {True, False}
    True
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    settings = (_ARENA_MAX, _MOST_ARENAS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _SPARE)
    return all(mallopt(name, value) for name, value in settings)

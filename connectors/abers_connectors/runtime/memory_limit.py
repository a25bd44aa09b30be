"""The memory that a process may take: that of its container, or of its machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["memory_limit", "memory_sentence"]

_PROCESS = 150 << 20  # bytes of a process without state, as in docs/deploy.md
_CGROUP_FILES = ("memory.max", "memory/memory.limit_in_bytes")  # of version 2 and 1


def memory_limit(cgroup: str = "/sys/fs/cgroup") -> int | None:
    """Return the bytes of memory of this container or machine; None if they are unknown.

    `cgroup` is the folder in which the kernel says what a container may take.

    Examples
    --------
    >>> (memory_limit() or 1 << 40) > 1 << 20
    True
    """
    return min(_known(cgroup), default=None)


def memory_sentence(states: int, limit: int | None) -> str | None:
    """Return a warning if states of so many bytes leave no room to save them; None if they do.

    Examples
    --------
    >>> memory_sentence(400 << 20, 1 << 30) is None
    True
    >>> memory_sentence(500 << 20, 1 << 30)[:68]
    'the states of this process take about 500 MiB, and it may take 1,024'
    """
    if limit is None or _PROCESS + 2 * states <= limit:
        return None
    return (
        f"the states of this process take about {states >> 20:,} MiB, and it may take "
        f"{limit >> 20:,} MiB; while they are saved they may take twice as much, and then the "
        "system ends the process. Give it more memory, start more processes, or keep less: "
        "shorten limits.label_timeout or limits.dedup_ttl, or set limits.retire_after"
    )


def _known(cgroup: str) -> Iterator[int]:
    for name in _CGROUP_FILES:
        with suppress(OSError, ValueError):  # "max" means no limit
            yield int((Path(cgroup) / name).read_text("ascii"))
    with suppress(OSError, ValueError, AttributeError):
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

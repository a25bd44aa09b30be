"""Group commit, `abers.stream.durable.processor`: what waits together is written together."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from abers.stream.durable.processor import GroupCommit

if TYPE_CHECKING:
    from collections.abc import Sequence


class Disk:
    """A disk that takes a group when it may."""

    def __init__(self) -> None:
        """Begin without groups."""
        self.groups: list[list[int]] = []
        self.begun, self.may = threading.Semaphore(0), threading.Semaphore(0)

    def write(self, group: Sequence[int]) -> list[int]:
        """Wait until it may, and answer each request with its double."""
        self.begun.release()
        self.may.acquire()
        if -1 in group:
            msg = "the disk is gone"
            raise OSError(msg)
        self.groups.append([*group])
        return [2 * one for one in group]


def test_what_waits_is_written_together() -> None:
    """Requests that come while a group is written are the next group, up to its size."""
    disk = Disk()
    commit = GroupCommit(disk.write, most=3)
    first = commit.submit(0, 1)
    disk.begun.acquire()
    others = [commit.submit(one, 1) for one in range(1, 6)]
    for _ in range(3):
        disk.may.release()
    commit.close()
    assert [one.result() for one in (first, *others)] == [0, 2, 4, 6, 8, 10]
    assert disk.groups == [[0], [1, 2, 3], [4, 5]]


def test_a_cancelled_request() -> None:
    """A request that is cancelled before its group begins is not written."""
    disk = Disk()
    commit = GroupCommit(disk.write, most=3)
    commit.submit(0, 1)
    disk.begun.acquire()
    cancelled, other = commit.submit(1, 1), commit.submit(2, 1)
    assert cancelled.cancel()
    disk.may.release()
    disk.may.release()
    assert other.result() == 4
    commit.close()
    assert disk.groups == [[0], [2]]


def test_an_error_ends_all() -> None:
    """After an error nothing is written, and each request has that error."""
    disk = Disk()
    commit = GroupCommit(disk.write, most=3)
    disk.may.release()
    bad = commit.submit(-1, 1)
    with pytest.raises(OSError, match="the disk is gone"):
        bad.result()
    late = commit.submit(1, 1)
    with pytest.raises(OSError, match="the disk is gone"):
        late.result()
    commit.close()
    assert disk.groups == []
    assert isinstance(commit.error, OSError)

"""Records for tests, as a client gives them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TIME", "Read"]

TIME = 1_700_000_000_000


class Read(NamedTuple):
    """A record that was read."""

    value: bytes | None
    offset: int = 0
    key: bytes | None = b"k"
    headers: list[tuple[str, bytes]] = []  # noqa: RUF012 - nobody changes it
    timestamp: int = TIME
    topic: str = "scores"
    partition: int = 0

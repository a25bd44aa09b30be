"""Records for tests, as a client gives them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TIME", "TOPICS", "Read"]

TIME = 1_700_000_000_000
TOPICS = {
    "kafka.bootstrap": "localhost:9092",
    "kafka.observations": "scores",
    "kafka.labels": "labels",
    "kafka.predictions": "predictions",
}
"""What a configuration says at least."""


class Read(NamedTuple):
    """A record that was read."""

    value: bytes | None
    offset: int = 0
    key: bytes | None = b"k"
    headers: list[tuple[str, bytes]] = []  # noqa: RUF012 - nobody changes it
    timestamp: int = TIME
    topic: str = "scores"
    partition: int = 0

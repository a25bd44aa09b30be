"""Records for tests, as a client returns them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from abers_connectors.runtime.transport import Headers

__all__ = ["TIME", "TOPICS", "Read", "turning"]

TIME = 1_700_000_000_000
TOPICS = {
    "kafka.bootstrap_servers": "localhost:9092",
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
    headers: Headers = []  # noqa: RUF012 - nobody changes it
    timestamp: int = TIME
    topic: str = "scores"
    partition: int = 0


def turning(model: str = "m", at: int = 200) -> list[Read]:
    """Return records of scores and labels; from one pair on, scores mean the contrary."""
    records: list[Read] = []
    for number in range(2 * at):
        score = (0.1, 0.9)[number % 2]
        seen = {"id": f"{number}", "time": number, "model": model}
        label = int((score > 0.5) == (number < at))
        for more in ({"score": score}, {"label": label}):
            place, value = len(records), json.dumps(seen | more).encode()
            key, headers = b"k%d" % place, [("trace", b"%d" % place)]
            records.append(Read(value, place, key, headers, TIME + number))
    return records

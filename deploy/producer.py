"""Writes observations and labels to the topics of deploy/compose.yaml, so that nothing is empty.

A few scores a second, each with its label half a minute later. After ten minutes the scores become
too high, so that the alarm has something to find; now and then a record is bad.
"""

import json
import math
import random
import time
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

BOOTSTRAP_SERVERS = "kafka:19092"
RATE = 20  # observations a second
LATE = 30 * RATE  # observations between one and its label
DRIFT = 600 * RATE  # observations after which the scores are too high
BAD = 2_000  # one observation in this many is a bad record

Record = tuple[str, str, dict[str, Any]]  # topic, key, value


def records(seed: int) -> Iterator[list[Record]]:
    """Yield the records of each moment: an observation, and the label of an earlier one."""
    rng, due = random.Random(seed), deque[tuple[str, bool]]()  # noqa: S311 - no secret
    for number in range(1 << 62):
        txn, logit = f"{seed:x}-{number}", rng.gauss(-1.0, 1.5)
        at = datetime.now(UTC).isoformat()
        drifted = logit + (1.0 if number >= DRIFT else 0.0)
        score: Any = 1.0 / (1.0 + math.exp(-drifted))
        if rng.randrange(BAD) == 0:
            score = "unknown"
        found = [("fraud.scores", txn, {"txn": txn, "at": at, "score": score})]
        due.append((txn, rng.random() < 1.0 / (1.0 + math.exp(-logit))))
        if len(due) > LATE:
            txn, fraud = due.popleft()
            found.append(("fraud.labels", txn, {"txn": txn, "at": at, "fraud": fraud}))
        yield found


def main() -> None:
    """Send records until the container stops."""
    from kafka import KafkaProducer  # noqa: PLC0415 - `records` needs no client

    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP_SERVERS, linger_ms=100)
    for several in records(int(time.time())):
        for topic, key, value in several:
            producer.send(topic, json.dumps(value).encode(), key=key.encode())
        time.sleep(1.0 / RATE)


if __name__ == "__main__":
    main()

"""The consumer of the predictions: prints some of them, and their log loss at the end.

Usage: consumer.py BOOTSTRAP COUNT
"""

from __future__ import annotations

import json
import math
import sys
import time
from statistics import fmean, median
from typing import Any

from kafka import KafkaConsumer, TopicPartition

SHOWN = 25  # predictions
TIMEOUT = 180_000  # ms without a record


def main(bootstrap: str, count: int) -> int:
    """Read until there are `count` predictions and `count` outcomes."""
    predicted, outcomes, late = 0, [], []
    # Only committed records are read: each prediction exactly once, after any crash.
    with KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIMEOUT,
    ) as consumer:
        consumer.assign([TopicPartition(f"demo.{one}", 0) for one in ("predictions", "outcomes")])
        for record in consumer:
            one = json.loads(record.value)
            if record.topic == "demo.outcomes":
                outcomes.append(one)
            else:
                late.append(time.time() * 1000 - record.timestamp)
                if predicted % (count // SHOWN or 1) == 0:
                    print(line(one), flush=True)
                predicted += 1
            if predicted >= count and len(outcomes) >= count:
                break
    print(summary(predicted, outcomes, late))
    return 0 if predicted == len(outcomes) == count else 1


def line(one: dict[str, Any]) -> str:
    """Format a prediction."""
    interval = f"{one['p0']:.3f} … {one['p1']:.3f}"
    return (
        f"{one['id']:>9}: the model says {one['score']:.3f}, calibrated {one['p']:.3f} "
        f"({interval}, from {one['n_labels']} labels)"
    )


def summary(predicted: int, outcomes: list[dict[str, Any]], late: list[float]) -> str:
    """Compare the scores of the model with the calibrated probabilities."""

    def loss(name: str) -> float:
        given = (one[name] if one["label"] else 1 - one[name] for one in outcomes)
        return fmean(-math.log(max(p, 1e-6)) for p in given)

    return (
        f"{predicted} predictions, {len(outcomes)} outcomes; mean log loss of the model "
        f"{loss('score'):.3f}, calibrated {loss('p'):.3f}; median delay from record to prediction, "
        f"in the second half, {median(late[len(late) // 2 :]):.0f} ms"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))

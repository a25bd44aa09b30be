"""A model in production: the scores of a real stream, and its delayed labels.

Usage: producer.py BOOTSTRAP COUNT RATE

River's data set Phishing has web sites, some of them fraudulent. A naive Bayes model scores each
one, and learns from its label 20 to 200 sites later. Its probabilities are far too extreme.
"""

from __future__ import annotations

import json
import random
import sys
import time
from heapq import heappop, heappush
from itertools import islice
from typing import Any

from kafka import KafkaProducer
from river import datasets, naive_bayes

MODEL = "phishing"


def main(bootstrap: str, count: int, rate: float) -> None:
    """Send `count` observations, `rate` per second, and all their labels."""
    model: Any = naive_bayes.GaussianNB()  # type: ignore[no-untyped-call]  # of river
    delays = random.Random(1)  # noqa: S311 - no secret
    waiting: list[tuple[int, int, dict[str, float], bool]] = []
    with KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5) as producer:

        def send(topic: str, n: int, **more: Any) -> None:  # noqa: ANN401 - what JSON holds
            record = {"id": f"site-{n}", "time": time.time_ns() // 1_000_000, "model": MODEL}
            # Label and observation have the same key, so both are in the same partition.
            producer.send(topic, json.dumps(record | more).encode(), key=MODEL.encode())

        def label() -> None:
            _, n, x, y = heappop(waiting)
            model.learn_one(x, y)
            send("demo.labels", n, label=y)

        for n, (x, y) in enumerate(islice(datasets.Phishing(), count)):
            while waiting and waiting[0][0] <= n:
                label()
            send("demo.scores", n, score=model.predict_proba_one(x).get(True, 0.5))
            heappush(waiting, (n + delays.randrange(20, 200), n, x, y))
            time.sleep(1 / rate)
        while waiting:
            label()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))

"""Memory and time of the index of ids, which finds the models of labels that carry only the id.

Run as `python -m benchmarks.id_index N` in a process of its own; prints JSON: bytes an id, as the
index counts them and as the process grows, saved bytes an id, and nanoseconds of processor time to
add an id and to find one, in batches. There are N ids, and as many come as are forgotten. Last come
the bytes of a dictionary of Python.
"""

from __future__ import annotations

import json
import random
import sys
from time import process_time

import numpy as np

from abers.backends import core
from benchmarks.resident import resident, trim

BATCH = 2_000
MODELS = 50
_SPAN = 1 << 30  # milliseconds; ids are forgotten after twice the span
_LABELS = 200_000  # that are looked up, at most


def ids_of(numbers: range | list[int]) -> list[str]:
    """Make ids of observations."""
    return [f"transaction-{number:012}" for number in numbers]


class Filled:
    """An index that N ids go through five times, so that the last fifth remains."""

    def __init__(self, n: int) -> None:
        self.n, self.seconds = n, 0.0
        self.index = core.IdIndex(bytes(16), _SPAN, 1 << 53, 1 << 30)
        for start in range(0, 5 * n, BATCH):
            time = start * 2 * _SPAN // n
            self.add(ids_of(range(start, start + BATCH)), time)

    def add(self, ids: list[str], time: int) -> None:
        """Add ids of observations."""
        columns = (np.full(len(ids), time), np.zeros(len(ids), np.int64))
        models = (np.arange(len(ids)) % MODELS).astype(np.uint32)
        results = np.empty(len(ids), np.int64)
        began = process_time()
        self.index.take(ids, np.zeros(len(ids), np.uint8), models, *columns, results)
        self.seconds += process_time() - began

    def find(self) -> float:
        """Return the nanoseconds of a label of an id that is known."""
        draw = random.Random(5)  # noqa: S311 - no secret
        seconds, count = 0.0, min(_LABELS, self.n // 2)
        for start in range(0, count, BATCH):
            late = range(5 * self.n - self.n // 2, 5 * self.n)
            ids = ids_of(draw.choices(late, k=BATCH))
            columns = (np.zeros(BATCH, np.int64), np.arange(start, start + BATCH))
            results = np.empty(BATCH, np.int64)
            ones, models = np.ones(BATCH, np.uint8), np.zeros(BATCH, np.uint32)
            began = process_time()
            self.index.take(ids, ones, models, *columns, results)
            seconds += process_time() - began
            if (results < 0).any():
                msg = "an id was not found"
                raise RuntimeError(msg)
        return 1e9 * seconds / count


def of_dictionary(n: int) -> float:
    """Return the bytes an id of a dictionary, whose ids nobody else keeps."""
    trim()
    before = resident()
    known = {id_: (number % MODELS, number) for number, id_ in enumerate(ids_of(range(n)))}
    return (resident() - before) / len(known)


def measured(n: int) -> dict[str, float]:
    """Measure an index of about so many ids."""
    dictionary = of_dictionary(n)
    trim()
    before = resident()
    filled = Filled(n)
    trim()
    grown = resident() - before
    return {
        "ids": filled.index.ids,
        "bytes": sys.getsizeof(filled.index) / filled.index.ids,
        "resident bytes": grown / filled.index.ids,
        "saved bytes": len(filled.index.save()) / filled.index.ids,
        "add ns": 1e9 * filled.seconds / (5 * n),
        "find ns": filled.find(),
        "dictionary bytes": dictionary,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measured(int(sys.argv[1]))) + "\n")

"""A writer that is killed: threads send observations and labels, and print what was answered.

Run as `python -m tests.engine.stream.durable.client FOLDER FIRST`. Each line of the output is an
answer: the id, and the prediction of an observation, or "label". Numbers of ids begin with FIRST.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from itertools import count
from pathlib import Path

from abers.stream import DurableProcessor, Label, Observation

THREADS = 16


def sent(durable: DurableProcessor, first: int, thread: int) -> None:
    """Send an observation and its label, again and again."""
    for number in count(first):
        id_ = f"{thread}-{number}"
        (made,) = durable.process(
            [Observation(id_, number, score=(7 * number % 64) / 64)]
        ).predictions
        answer(id_, [made.p0, made.p1, made.p, made.n_labels])
        if number % 3:
            durable.process([Label(id_, number, value=number * thread % 2)])
            answer(id_, "label")


def answer(id_: str, what: object) -> None:
    """Print an answer, whole."""
    os.write(1, json.dumps([id_, what]).encode() + b"\n")


def main(path: str, first: int) -> None:
    """Send until the process is killed."""
    with DurableProcessor(path, journal_bytes=30_000) as durable:
        threads = [
            threading.Thread(target=sent, args=(durable, first, thread))
            for thread in range(THREADS)
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()


if __name__ == "__main__":
    main(str(Path(sys.argv[1])), int(sys.argv[2]))

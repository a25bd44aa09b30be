"""How many files of the product a reader walks through: `python -m benchmarks.files_called`.

A file counts if one of its functions is called, imports left out: in a replay of a CSV of 400 rows,
from the command to its last line, and in the turn of a running service that takes a record from
Kafka, from the poll to the commit. The broker is that of scripts/kafka-broker. `--list` names the
files.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.rivals import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from abers_connectors.runtime.router import Router
    from abers_connectors.runtime.worker import Worker

_ROWS = 400
_PRODUCT = tuple(f"{ROOT / folder}/" for folder in ("engine/abers", "connectors/abers_connectors"))
_TURNS = 400  # in which a record must have come
_WARM, _RECORDS = 2, 5  # the first turns restore the task and fill caches


@contextlib.contextmanager
def called() -> Iterator[set[str]]:
    """Collect, by their paths in the checkout, the files of the product that have a call."""
    found: set[str] = set()
    ours: dict[str, str | None] = {}

    def profile(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event != "call" or path in found or (path in ours and ours[path] is None):
            return
        if path not in ours:
            ours[path] = path if path.startswith(_PRODUCT) else None
        if ours[path] and not _imports(frame):
            found.add(path)

    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
        short = {str(Path(path).relative_to(ROOT)) for path in found}
        found.clear()
        found |= short


def _imports(frame: FrameType | None) -> bool:
    """Return whether a call is part of the import of a module of the product."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and code.co_filename.startswith(_PRODUCT):
            return True
        frame = frame.f_back
    return False


def replay_walk() -> set[str]:
    """Return the files that a replay of scores and labels calls."""
    from abers_connectors.cli.main import main  # noqa: PLC0415 - the checkout's own command

    draw = random.Random(1)  # noqa: S311 - no secret
    scores = [draw.random() for _ in range(_ROWS)]
    lines = [f"{row},{score:.4f},{int(draw.random() < score)}" for row, score in enumerate(scores)]
    said = io.StringIO()
    with (
        TemporaryDirectory() as folder,
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        path = Path(folder) / "scored.csv"
        path.write_text("\n".join(["id,score,label", *lines, ""]))
        with called() as found, contextlib.suppress(SystemExit), _arguments("replay", str(path)):
            main()
    return found


@contextlib.contextmanager
def _arguments(*words: str) -> Iterator[None]:
    before, sys.argv = sys.argv, ["abers", *words]
    try:
        yield
    finally:
        sys.argv = before


def record_walk(bootstrap: str) -> tuple[set[str], set[str]]:
    """Return the files that an observation calls in a service, and those of its label."""
    from kafka import KafkaProducer  # noqa: PLC0415 - an extra

    from abers_connectors.config.model import load  # noqa: PLC0415
    from abers_connectors.kafka.assembly import open_worker  # noqa: PLC0415
    from abers_connectors.process import Supervisor  # noqa: PLC0415
    from abers_connectors.runtime.application import Application  # noqa: PLC0415
    from benchmarks.loops import settings  # noqa: PLC0415
    from benchmarks.service import create  # noqa: PLC0415

    topics = f"walk-{time.time_ns()}"
    create(bootstrap, topics)
    config = load(flags=settings("kafka-python", bootstrap, topics), environ={})
    with (
        KafkaProducer(bootstrap_servers=bootstrap) as producer,
        open_worker(config, Application.of(config), None, Supervisor({})) as worker,
    ):

        def sent(input_: str, number: int, **fields: float) -> Callable[[], object]:
            value = {"id": str(number), "time": 1_000 * number, "model": "fraud", **fields}
            return lambda: producer.send(f"{topics}.{input_}", json.dumps(value).encode()).get(30)

        observed, labelled = list[set[str]](), list[set[str]]()
        for number in range(_WARM + _RECORDS):
            observed.append(_turn(worker, sent("observations", number, score=0.5)))
            labelled.append(_turn(worker, sent("labels", number, label=number % 2)))
    # What is due now and then by the clock is in few turns.
    return min(observed[_WARM:], key=len), min(labelled[_WARM:], key=len)


def _turn(worker: Worker | Router, send: Callable[[], object]) -> set[str]:
    """Return the files that the turn calls that commits a record."""

    def committed() -> int:
        return sum(worker.status.view().counts.records.values())

    before = committed()
    send()
    for _ in range(_TURNS):
        with called() as found:
            worker.turn()
        if committed() > before:
            return found
    msg = f"no record was committed in {_TURNS} turns"
    raise RuntimeError(msg)


def main() -> None:
    """Print the counts; without a broker, those of the replay alone."""
    parser = argparse.ArgumentParser(prog="benchmarks.files_called", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the files")
    listed = parser.parse_args().list
    logging.disable(logging.CRITICAL)
    walks = {"replay of 400 rows": replay_walk()}
    from benchmarks.service import broker  # noqa: PLC0415 - it needs an extra

    script = [sys.executable, str(ROOT / "scripts" / "kafka-broker")]
    if subprocess.run([*script, "--fetch"], check=False, capture_output=True).returncode:  # noqa: S603 - of ours
        sys.stderr.write("no Kafka record: there is no broker here\n")
    else:
        with broker(script) as bootstrap:
            walks |= zip(
                ("observation from Kafka", "label from Kafka"),
                record_walk(bootstrap),
                strict=True,
            )
    for name, files in walks.items():
        packages = Counter(path.split("/")[1] for path in files)
        shares = ", ".join(f"{package} {count}" for package, count in sorted(packages.items()))
        sys.stdout.write(f"{name}: {len(files)} files ({shares})\n")
        if listed:
            sys.stdout.writelines(f"  {path}\n" for path in sorted(files))


if __name__ == "__main__":
    main()

"""How fast a stream of scores is replayed from file to file, and where the time goes.

The job of `abers run` is timed, from its configuration to outputs under their names, on one core,
and the least work that any job of this kind needs.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import msgspec

from abers.backends import core
from abers.stream import Prediction
from abers.stream.calibration_step import CalibrationStep
from abers.stream.validation import EventValidator
from abers_connectors.config.model import load
from abers_connectors.replay.job import job_of_config
from abers_connectors.sinks.rows import ParquetFileSink, TextSink
from benchmarks.events import DELAY, FORMATS, LATE, ONE, TWO, write_files
from benchmarks.page import Key, size, table
from benchmarks.timing import Spread, digits, in_turns, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from abers_connectors.replay.job import Job
    from abers_connectors.sources.base import Batch, Position, Source
    from benchmarks.plan import Plan

    Seconds = dict[str, float]

FORMAT_NAMES = {"jsonl": "JSON Lines", "parquet": "Parquet"}
_FORMS = {
    ONE: "observations and labels in one file",
    TWO: "in two files, merged by event time",
    DELAY: f"each record with its label, `delay = {LATE}`",
}
_BATCH = 5_000  # records that the floor decodes at once, as the sources do
_THOUSAND = 1_000

READ, VALIDATION, PENDING_STORE, CALIBRATION, WRITE, REST = PARTS = (
    "read, decode, map to events",
    "validation: check, number, columns",
    "pending store: join observations and labels",
    "calibration: predict and learn",
    "make predictions, encode and write them",
    "everything else",
)
_CALLS: tuple[tuple[str, type, str], ...] = (  # none is inside another
    (VALIDATION, EventValidator, "validate"),
    (PENDING_STORE, core.PendingStore, "take"),
    (CALIBRATION, CalibrationStep, "run"),
    *((WRITE, sink, name) for sink in (TextSink, ParquetFileSink) for name in ("write", "close")),
)


def speed(plan: Plan) -> tuple[str, dict[Key, Spread]]:
    """Replay in every form and format, in turns with the floor; thousand events a second."""
    n = plan.replayed
    with TemporaryDirectory() as folder, _one_core():
        inputs = write_files(Path(folder), n // LATE)
        measures: dict[str, Callable[[], float]] = {
            f"{form}, {suffix}": partial(_rate, n, partial(_replay, folder, n, suffix, given))
            for (form, suffix), given in inputs.items()
        }
        source = inputs[ONE, "jsonl"]["input.observations"]
        measures["floor"] = partial(_rate, n, partial(_floor, source, f"{folder}/floor.jsonl"))
        found = in_turns(plan.rounds, measures)
        spent = {
            suffix: [_parts(_job(folder, suffix, inputs[ONE, suffix])) for _ in range(plan.rounds)]
            for suffix in FORMATS
        }
    values: dict[Key, Spread] = {("replayed", name, n): spread for name, spread in found.items()}
    return _body(n, found) + _spent(n, spent), values


@contextmanager
def _one_core() -> Iterator[None]:
    """Keep this process on one core, if the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _job(folder: str, suffix: str, given: dict[str, Any]) -> Job:
    flags = {"output.predictions": f"{folder}/predictions.{suffix}", "monitoring.enabled": False}
    return job_of_config(load(flags={**flags, **given}, environ={}))


def _run(job: Job) -> dict[str, int]:
    with job.start() as run:
        for _ in run.run():
            pass
    return dict(run.processors[0].counters)


def _replay(folder: str, n: int, suffix: str, given: dict[str, Any]) -> None:
    counters = _run(_job(folder, suffix, given))
    if counters["predictions"] != n or counters["labels"] != n:
        msg = f"of {n} observations not all were predicted and learned: {counters}"
        raise RuntimeError(msg)


def _rate(n: int, call: Callable[[], object]) -> float:
    """Time a replay of n observations and n labels; thousand events a second."""
    return 2 * n / seconds(call) / _THOUSAND


def _floor(source: str, target: str) -> None:
    """Decode, put into a dictionary and take out again, encode: the least work of a replay."""
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    encode = msgspec.json.Encoder().encode_lines
    pending: dict[str, float] = {}
    lines = Path(source).read_bytes().splitlines()
    with Path(target).open("wb") as file:
        for first in range(0, len(lines), _BATCH):
            made = []
            for record in map(decode, lines[first : first + _BATCH]):
                name, score = record["id"], record.get("score")
                if score is None:
                    pending.pop(name)
                    continue
                pending[name] = score
                time, model = record["time"], record["model"]
                made.append(Prediction(name, time, model, score, score, score, score, 0))
            file.write(encode(made))


# Where the time goes


class _Clocked:
    """A source that records the time its batches take."""

    def __init__(self, source: Source, spent: Seconds) -> None:
        self.name, self.fraction = source.name, source.fraction
        self._source, self._spent = source, spent

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Return the batches of the source."""
        following = _timed(self._spent, READ, self._source.batches(position).__next__)
        with suppress(StopIteration):
            while True:
                yield following()


def _parts(job: Job) -> Seconds:
    """Replay with a clock around each part; seconds by part."""
    spent: Seconds = dict.fromkeys(PARTS, 0.0)
    with ExitStack() as stack:
        for part, owner, name in _CALLS:
            call = _timed(spent, part, getattr(owner, name))
            stack.enter_context(patch.object(owner, name, call))
        taken = seconds(partial(_run, job._replace(source=_Clocked(job.source, spent))))
    if unclocked := [part for part in PARTS if part != REST and not spent[part]]:
        msg = f"no call was clocked of {unclocked}"
        raise RuntimeError(msg)
    spent[REST] = taken - sum(spent.values())
    return spent


def _timed(spent: Seconds, part: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - anything is called
        started = perf_counter()
        try:
            return call(*given, **named)
        finally:
            spent[part] += perf_counter() - started

    return timed


# The page


def _body(n: int, found: dict[str, Spread]) -> str:
    floor = found["floor"].median
    rows: list[list[object]] = [
        [text, *(found[f"{form}, {suffix}"] for suffix in FORMATS)] for form, text in _FORMS.items()
    ]
    rows.append(["the floor: decode, dictionary, encode", found["floor"], "—"])
    share = found[f"{ONE}, jsonl"].median / floor
    return (
        f"### Replay\n\n{size(n)} observations that bring their scores and, {size(LATE)}"
        f" observations later, their labels, an event each: {size(2 * n)} events through the job"
        " of `abers run`, from its configuration to the file of predictions under its name. One"
        " core, ids of 16 characters, monitors off, no outcomes. *The floor* reads the first file,"
        " decodes each record with msgspec, puts observations into a dictionary, takes them out"
        " for their labels, and encodes as many predictions, without computing any.\n\n"
        + table(["thousand events a second", *FORMAT_NAMES.values()], rows)
        + f"From one file of JSON Lines that is {share:.0%} of the floor.\n\n"
    )


def _spent(n: int, found: dict[str, list[Seconds]]) -> str:
    medians = {
        suffix: {part: median(one[part] for one in rounds) for part in PARTS}
        for suffix, rounds in found.items()
    }
    rows = []
    for part in PARTS:
        cells: list[str] = []
        for by_part in medians.values():
            microseconds = by_part[part] / (2 * n) * 1e6
            cells += [digits(microseconds), f"{by_part[part] / sum(by_part.values()):.0%}"]
        rows.append([part, *cells])
    heads = [word for name in FORMAT_NAMES.values() for word in (f"{name}, µs an event", "share")]
    return (
        "Where that time goes, from one file, with a clock around each part (medians of the"
        " rounds; the clocks themselves are read once a batch and cost nothing):\n\n"
        + table(["part", *heads], rows)
    )

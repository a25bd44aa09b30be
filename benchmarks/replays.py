"""How fast a stream of scores is replayed from file to file, and where the time goes.

Governing rule: what is timed is the job that `abers run` carries out, from its configuration to
outputs under their names, on one core; what no such job can do without is timed beside it.
"""

# ruff: noqa: SLF001 - the parts of a processor are timed where they are called

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec

from abers.stream import Prediction
from abers_connectors.config import load
from abers_connectors.jobs import of_config
from benchmarks.events import DELAY, FORMATS, LATE, ONE, TWO, write_files
from benchmarks.page import Key, size, table
from benchmarks.timing import Spread, digits, in_turns, seconds, undisturbed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from abers_connectors.jobs import Job
    from abers_connectors.running import Run
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

READ, ADMISSION, LEDGER, CALIBRATOR, WORDING, WRITE, REST = PARTS = (
    "read, decode, map to events",
    "admission: check, number, columns",
    "ledger: what becomes of each event",
    "calibrator: predict and learn",
    "wording: rows to predictions",
    "encode and write",
    "everything else",
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
    return of_config(load(flags={**flags, **given}, environ={}))


def _replay(folder: str, n: int, suffix: str, given: dict[str, Any]) -> None:
    with _job(folder, suffix, given).start() as run:
        for _ in run.run():
            pass
    counters = run.processor.counters
    if counters["predictions"] != n or counters["labels"] != n:
        msg = f"of {n} observations not all were predicted and learned: {counters}"
        raise RuntimeError(msg)


def _rate(n: int, call: Callable[[], object]) -> float:
    """Time a replay of n observations and n labels; thousand events a second."""
    return 2 * n / seconds(call) / _THOUSAND


def _floor(source: str, target: str) -> None:
    """Decode, put into a dictionary and take out again, encode: what no replay can do without."""
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    encode = msgspec.json.Encoder().encode_lines
    waiting: dict[str, float] = {}
    lines = Path(source).read_bytes().splitlines()
    with Path(target).open("wb") as file:
        for first in range(0, len(lines), _BATCH):
            made = []
            for record in map(decode, lines[first : first + _BATCH]):
                name, score = record["id"], record.get("score")
                if score is None:
                    waiting.pop(name)
                    continue
                waiting[name] = score
                time, model = record["time"], record["model"]
                made.append(Prediction(name, time, model, score, score, score, score, 0))
            file.write(encode(made))


# Where the time goes


def _parts(job: Job) -> Seconds:
    """Replay with a clock around each part; seconds by part."""
    spent: Seconds = defaultdict(float)
    with undisturbed():
        started = perf_counter()
        job.source.batches = _clocked_batches(spent, job.source.batches)  # type: ignore[method-assign]
        with job.start() as run:
            _clock(run, spent)
            for _ in run.run():
                pass
        spent[REST] = perf_counter() - started - sum(spent.values())
    return spent


def _clock(run: Run, spent: Seconds) -> None:
    processor = run.processor
    wrapped: list[tuple[str, Any, str]] = [
        (ADMISSION, processor._admission, "admit"),
        (LEDGER, processor, "_enter"),
        (CALIBRATOR, processor._answering, "_run"),
        (WORDING, processor._answering._task, "predictions"),
        (WRITE, run._sinks["predictions"], "write"),
        (WRITE, run._sinks["predictions"], "close"),
    ]
    for part, owner, name in wrapped:
        setattr(owner, name, _clocked(spent, part, getattr(owner, name)))


def _clocked(spent: Seconds, part: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever is called
        started = perf_counter()
        try:
            return call(*given, **named)
        finally:
            spent[part] += perf_counter() - started

    return timed


def _clocked_batches(spent: Seconds, call: Callable[..., Any]) -> Callable[..., Any]:
    def batches(*given: Any) -> Iterator[Any]:  # noqa: ANN401 - as the source has it
        found = call(*given)
        following = _clocked(spent, READ, partial(next, found, None))
        while (batch := following()) is not None:
            yield batch

    return batches


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
        suffix: {part: median(one.get(part, 0.0) for one in rounds) for part in PARTS}
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

"""The events of a stream that is replayed, and its files.

An event is a function of its number and a fixed seed, and a label comes a fixed number of
observations late. So files of all kinds have the same events, and none need be kept in memory.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from abers.stream import Label, Observation
from benchmarks.streams import SEED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from abers.stream import Event

LATE = 1_000  # observations between an observation and its label, and in a block
WIDTH = 16  # characters of an id
FORMATS = ("jsonl", "parquet")
MODEL = "fraud"
_START, _STEP = 1_700_000_000_000, 2  # milliseconds

ONE, TWO, DELAY = "one file", "two files", "each record with its label"


@lru_cache(maxsize=4)
def _drawn(block: int) -> tuple[list[float], list[int]]:
    rng = np.random.default_rng([SEED, block])
    scores = rng.random(LATE)
    return scores.tolist(), (rng.random(LATE) < scores).astype(int).tolist()


def observations(block: int, width: int = WIDTH) -> list[Observation]:
    """Make the observations of a block."""
    first, (scores, _) = block * LATE, _drawn(block)
    return [
        Observation(f"{i:0{width}x}", _START + _STEP * i, MODEL, score)
        for i, score in enumerate(scores, first)
    ]


def labels(block: int, width: int = WIDTH) -> list[Label]:
    """Make the labels of the observations of a block, each just after the observation before it."""
    first, (_, values) = block * LATE, _drawn(block)
    return [
        Label(f"{i:0{width}x}", _START + _STEP * (i + LATE) + 1, MODEL, value)
        for i, value in enumerate(values, first)
    ]


def arriving(block: int, blocks: int) -> Iterator[Event]:
    """Return the observations of a block, each followed by the label of one of the block before."""
    seen = observations(block) if block < blocks else []
    late = labels(block - 1) if block else []
    if not seen or not late:
        yield from seen or late
        return
    for observation, label in zip(seen, late, strict=True):
        yield observation
        yield label


def write_files(folder: Path, blocks: int) -> dict[tuple[str, str], dict[str, Any]]:
    """Write so many blocks in every form and format; the configuration of each input."""
    seen = [_record(one) for block in range(blocks) for one in observations(block)]
    late = [_record(one) for block in range(blocks) for one in labels(block)]
    mixed = [_record(one) for block in range(blocks + 1) for one in arriving(block, blocks)]
    whole = [{**one, "label": label["label"]} for one, label in zip(seen, late, strict=True)]
    inputs: dict[tuple[str, str], dict[str, Any]] = {}
    for suffix in FORMATS:
        paths = [folder / f"{name}.{suffix}" for name in ("mixed", "seen", "late", "whole")]
        for path, records in zip(paths, (mixed, seen, late, whole), strict=True):
            _write(path, records)
        one, first, second, labelled = map(str, paths)
        inputs[ONE, suffix] = {"input.observations": one}
        inputs[TWO, suffix] = {"input.observations": first, "input.labels": second}
        inputs[DELAY, suffix] = {"input.observations": labelled, "input.delay": LATE}
    return inputs


def _record(event: Event) -> dict[str, Any]:
    record = {"id": event.id, "time": event.time, "model": event.model}
    if type(event) is Observation:
        return {**record, "score": event.score}
    return {**record, "label": event.value} if type(event) is Label else record


def _write(path: Path, records: Sequence[dict[str, Any]]) -> None:
    if path.suffix == ".parquet":
        columns = {name: None for record in records[: 3 * LATE] for name in record}
        table = {name: [record.get(name) for record in records] for name in columns}
        pq.write_table(pa.table(table), path)
    else:
        path.write_bytes(msgspec.json.Encoder().encode_lines(records))

"""Histories in tables and files, and their outputs by one processor, to compare engines with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from abers.stream import Events, Processor, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from abers.stream.outputs import ArrowOutputs

KINDS = ("predictions", "outcomes", "dead_letters", "alarms")


def history(rows: int, models: int, seed: int = 1) -> pa.Table:
    """Return observations of models that take turns, each with a label 50 rows later.

    Every 50th row has no score that can be used.
    """
    rng = np.random.default_rng(seed)
    scores, times = rng.random(rows), 1_000 * np.arange(rows)
    labels = (rng.random(rows) < scores**2).astype(np.int64)
    scores[::50] = np.nan
    ids = [f"a{row}" for row in range(rows)]
    names = [f"m{row}" for row in rng.integers(0, models, rows)]
    observed = np.repeat([True, False], rows)
    table = pa.table(
        {
            "id": ids + ids,
            "time": np.concatenate([times, times + 50_000]),
            "model": names + names,
            "score": pa.array(np.tile(scores, 2), mask=~observed),
            "label": pa.array(np.tile(labels, 2), mask=observed),
        }
    )
    # Labels first at equal times.
    return table.take(np.lexsort((observed, table.column("time").to_numpy())))


def unlabelled(table: pa.Table, since: int) -> pa.Table:
    """Return a history whose observations from some time on have labels that never came."""
    known = table.column("label").is_valid().to_numpy()
    late = table.column("time").to_numpy() >= since + 50_000
    return table.filter(pa.array(~(known & late)))


def write_files(table: pa.Table, folder: Path, files: int) -> None:
    """Write a history in files that follow each other in time."""
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(table.num_rows), files)):
        pq.write_table(table.take(rows), folder / f"part-{number}.parquet")


def by_one_processor(table: pa.Table, settings: Settings) -> dict[str, dict[str, list[Any]]]:
    """Return the outputs of one processor, by kind and model."""
    events = Events.from_arrow(table, settings=settings).by_time()
    outputs = Processor(settings).process_batch(events)
    return by_model([outputs.to_arrow()])


def by_model(many: Iterable[ArrowOutputs]) -> dict[str, dict[str, list[Any]]]:
    """Return the rows of tables by kind and model, in their order."""
    found: dict[str, dict[str, list[Any]]] = {kind: {} for kind in KINDS}
    for outputs in many:
        for kind, table in outputs._asdict().items():
            add_rows(found[kind], [] if table is None else table.to_pylist())
    return found


def add_rows(found: dict[str, list[Any]], rows: Iterable[dict[str, Any]]) -> None:
    """Add rows to those of their models; numbers that are no numbers are equal as text."""
    for row in rows:
        if "raw" in row:
            # The place of a dead letter counts among the rows of a batch, or of the model.
            row = {name: value for name, value in row.items() if name != "where"}  # noqa: PLW2901
        model = row.get("model") or (row["raw"] or "").partition('"model":"')[2].partition('"')[0]
        found.setdefault(model, []).append(repr(row))


def read_result(folder: Path) -> dict[str, dict[str, list[Any]]]:
    """Return the rows of a result in files, by kind and model; those of a model are sorted."""
    table = ds.dataset(folder, format="parquet").to_table()
    empty = Processor().process_batch(Events.of([])).to_arrow()
    found: dict[str, dict[str, list[Any]]] = {kind: {} for kind in KINDS}
    for kind, columns in empty._asdict().items():
        rows = table.filter(pc.equal(table.column("kind"), kind.removesuffix("s")))
        add_rows(found[kind], rows.select(columns.schema.names).to_pylist())
    return in_order(found)


def in_order(found: dict[str, dict[str, list[Any]]]) -> dict[str, dict[str, list[Any]]]:
    """Return rows sorted within each model: an engine has no order."""
    return {kind: {name: sorted(rows) for name, rows in one.items()} for kind, one in found.items()}

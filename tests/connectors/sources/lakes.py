"""Data sets that the tests write with the libraries that users write them with."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from abers.stream import Event
    from abers_connectors.sources.time_range import Part

__all__ = ["START", "events_of", "history", "local_catalog", "write_parts"]

START = 1_700_000_000_000


def history(rows: int = 60, *, zoned: bool = False) -> pa.Table:
    """Return observations of three models, one a second."""
    times = pa.array(START + 1000 * np.arange(rows))
    return pa.table(
        {
            "id": [f"a{row}" for row in range(rows)],
            "time": _times(times, zoned=zoned),
            "model": [f"m{row % 3}" for row in range(rows)],
            "score": np.arange(rows) / rows,
            "label": np.arange(rows) % 2,
        }
    )


def _times(times: pa.Array, *, zoned: bool) -> pa.Array:
    moments = times.cast(pa.timestamp("ms")).cast(pa.timestamp("us"))
    return moments.cast(pa.timestamp("us", "UTC")) if zoned else times


def write_parts(folder: Path, tables: list[Any]) -> str:
    """Write tables as files of a folder; return its name."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=5)
    return str(folder)


def events_of(name: str, part: Part | None = None) -> list[Event]:
    """Return the events of a data set in the order in which they are read."""
    source: Any = open_source(name, SourceOptions())
    if part is not None:
        source = source.within(part)
    return [event for batch in source.batches() for event in batch.events]


@contextmanager
def local_catalog(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Make a catalog of Iceberg in a file, which the environment configures."""
    catalogs: Any = pytest.importorskip("pyiceberg.catalog")
    settings = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"file://{folder}",
    }
    for key, value in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LOCAL__{key.upper()}", value)
    # PyIceberg reads the environment once, when it is imported.
    config = pytest.importorskip("pyiceberg.utils.config")
    monkeypatch.setattr(catalogs, "_ENV_CONFIG", config.Config())
    found = catalogs.load_catalog("local", **settings)
    found.create_namespace("risk")
    try:
        yield found
    finally:
        found.close()

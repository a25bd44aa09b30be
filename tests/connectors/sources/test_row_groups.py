"""What the footer of a Parquet file says of its row groups."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from abers_connectors.sources import parquet
from abers_connectors.sources.parquet_bounds import Memory
from abers_connectors.sources.time_range import BEFORE_ALL, Part, least_time, wanted_groups

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from abers_connectors.sources.parquet import ParquetFile

TIMES = [5_000, 6_000, 7_000, 8_000]


@contextmanager
def opened(path: Path, times: Any, models: Any = None) -> Iterator[ParquetFile]:  # noqa: ANN401 - pyarrow is untyped
    """Write row groups of two rows, and open the file."""
    table = pa.table({"time": times, "model": models or ["a", "b", "c", "d"]})
    pq.write_table(table, path / "x.parquet", row_group_size=2)
    with (path / "x.parquet").open("rb") as handle, parquet.opened(handle, Memory()) as file:
        yield file


@pytest.mark.parametrize("unit", [None, "s", "ms", "us", "ns"])
def test_times_of_every_unit(tmp_path: Path, unit: str | None) -> None:
    """The statistics of integers and timestamps are times in milliseconds."""
    times = pa.array(TIMES, pa.int64())
    if unit is not None:
        times = times.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp(unit, "UTC"))
    with opened(tmp_path, times) as file:
        assert least_time(file, [1], "time") == 7_000
        for part, groups in (
            (Part(), [0, 1]),
            (Part(since=6_001), [1]),
            (Part(since=6_000), [0, 1]),
            (Part(until=7_000), [0]),
            (Part(until=7_001), [0, 1]),
            (Part(since=9_000), []),
        ):
            assert wanted_groups(file, part, "time", "model") == groups


@pytest.mark.parametrize(
    "times",
    [
        pa.array([str(one) for one in TIMES]),
        pa.array(TIMES, pa.timestamp("ms")),
        pa.array([float(one) for one in TIMES]),
    ],
)
def test_times_that_statistics_do_not_tell(tmp_path: Path, times: Any) -> None:  # noqa: ANN401
    """Texts, times without a zone and floats may be any time, so nothing is skipped."""
    with opened(tmp_path, times) as file:
        assert wanted_groups(file, Part(since=10_000), "time", "model") == [0, 1]
        assert least_time(file, [0, 1], "time") == BEFORE_ALL


@pytest.mark.parametrize(
    ("models", "groups"),
    [(["a", "b", "c", "d"], [1]), (["a", None, "c", "d"], [0, 1]), (["", "b", "c", "d"], [0, 1])],
)
def test_models(tmp_path: Path, models: list[str | None], groups: list[int]) -> None:
    """Groups of other models are skipped, unless a record may be without a name."""
    with opened(tmp_path, TIMES, models) as file:
        assert wanted_groups(file, Part(models=("c",)), "time", "model") == groups
        assert wanted_groups(file, Part(models=("c",)), "time", "no such column") == [0, 1]

"""A history in Parquet files, processed by tasks that run here, one after the other."""

from __future__ import annotations

import pickle
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engine.engines.histories import (
    beside,
    by_one_processor,
    history,
    read_result,
    unlabelled,
    write_files,
)

from abers.engines import HistoryTotals
from abers.engines.parquet_job import run_parquet_job
from abers.engines.parquet_tasks import ShardTask, SplitTask
from abers.exceptions import ParameterError, RecordError
from abers.stream import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Tasks = Sequence[Callable[[], Any]]

SETTINGS = Settings(
    scores="probability", probability="merged", average_run_length=5, grace_period=0, cooldown=5
)


def in_turns(tasks: Tasks) -> list[Any]:
    """Run tasks one after the other, as they come from another process."""
    return [pickle.loads(pickle.dumps(task))() for task in tasks]  # noqa: S301 - our own


def process(
    data: object, output: Path, run: Callable[[Tasks], list[Any]] = in_turns, **options: object
) -> HistoryTotals:
    """Process files with a few shards."""
    given = {"settings": SETTINGS, "fields": None, "shards": 3, "outcomes": True, **options}
    return run_parquet_job(run, data, output, **given)  # type: ignore[arg-type]


def rows_of(model: str, times: Sequence[int], **other: object) -> pa.Table:
    """Return observations of a model."""
    ids = [f"{model}{time}" for time in times]
    rows = {"id": ids, "time": [*times], "model": [model] * len(ids), "score": [0.5] * len(ids)}
    return pa.table({**rows, **other})


@pytest.mark.large(3_000)
@pytest.mark.parametrize("shards", [1, 3, 100])
def test_any_shards_give_the_outputs_of_one_processor(
    tmp_path: Path, shards: int, size: int
) -> None:
    """The outputs are those of one processor, for any number of shards."""
    table = history(size, 7)
    write_files(table, tmp_path / "data", 3)
    totals = process(tmp_path / "data", tmp_path / "out", shards=shards)
    assert totals == HistoryTotals(
        2 * size, size * 49 // 50, size * 49 // 50, size // 50, totals.alarms
    )
    assert totals.alarms > 0 or size < 3_000
    assert read_result(tmp_path / "out") == by_one_processor(table, SETTINGS)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("files", [1, 3])
def test_labels_that_never_come(tmp_path: Path, files: int, *, together: bool) -> None:
    """Observations without a label are predicted; whole files of them are no dead letters."""
    table = unlabelled(history(600, 7), since=300_000)
    fields = {"label_time": "label_time"} if together else None
    write_files(beside(table) if together else table, tmp_path / "data", files)
    totals = process(tmp_path / "data", tmp_path / "out", fields=fields)
    assert (totals.predictions, totals.outcomes, totals.dead_letters) == (588, 294, 12)
    assert read_result(tmp_path / "out") == by_one_processor(table, SETTINGS)


def test_tasks_done_again_write_nothing_twice(tmp_path: Path) -> None:
    """Tasks that die in the middle or are done twice leave the same result, and nothing else."""
    table = history(400, 7)
    write_files(table, tmp_path / "data", 3)

    def unlucky(tasks: Tasks) -> list[Any]:
        for task in tasks[:2]:
            if isinstance(task, (ShardTask, SplitTask)):
                task()  # done, and then lost
        for left in (tmp_path / "out").glob("predictions/part-*"):
            (left.parent / f".{left.name}.1.2").write_bytes(left.read_bytes()[:50])
        return in_turns(tasks)

    process(tmp_path / "data", tmp_path / "out", unlucky)
    assert read_result(tmp_path / "out") == by_one_processor(table, SETTINGS)
    names = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert names == {*(f"part-{number:05}.parquet" for number in range(3)), "_SUCCESS"}


def test_hive_partitions_are_read_whole(tmp_path: Path) -> None:
    """Files of one model each are not split, and their folders name their models."""
    table = history(400, 7)
    pq.write_to_dataset(table, tmp_path / "data", partition_cols=["model"])
    kinds: list[type] = []

    def watched(tasks: Tasks) -> list[Any]:
        kinds.extend(map(type, tasks))
        return in_turns(tasks)

    process(tmp_path / "data", tmp_path / "out", watched)
    assert SplitTask not in kinds
    assert kinds.count(ShardTask) == 3
    assert read_result(tmp_path / "out") == by_one_processor(table, SETTINGS)


def test_models_in_one_file_stay_together(tmp_path: Path) -> None:
    """Small files with several whole models are not split."""
    (tmp_path / "data").mkdir()
    for number in range(3):
        both = pa.concat_tables([rows_of(f"{name}{number}", range(9)) for name in "ab"])
        pq.write_table(both.sort_by("time"), tmp_path / "data" / f"{number}.parquet")
    kinds: list[type] = []

    def watched(tasks: Tasks) -> list[Any]:
        kinds.extend(map(type, tasks))
        return in_turns(tasks)

    process(tmp_path / "data", tmp_path / "out", watched)
    assert SplitTask not in kinds
    assert kinds.count(ShardTask) == 3


def test_shards_have_about_as_many_rows(tmp_path: Path) -> None:
    """Models of an interleaved history are spread by their rows."""
    sizes = {"a": 60, "b": 30, "c": 20, "d": 10}
    table = pa.concat_tables([rows_of(name, range(size)) for name, size in sizes.items()])
    write_files(table.sort_by("time"), tmp_path / "data", 2)
    found: list[int] = []

    def watched(tasks: Tasks) -> list[Any]:
        found.extend(task.rows for task in tasks if isinstance(task, ShardTask))
        return in_turns(tasks)

    process(tmp_path / "data", tmp_path / "out", watched, shards=2)
    assert found == [60, 60]


def test_outcomes_can_be_left_out(tmp_path: Path) -> None:
    """Without outcomes there is no folder of them."""
    write_files(history(100, 2), tmp_path / "data", 1)
    totals = process(tmp_path / "data", tmp_path / "out", outcomes=False)
    assert totals.outcomes == 0
    assert not (tmp_path / "out" / "outcomes").exists()


def test_lists_and_patterns_name_files(tmp_path: Path) -> None:
    """A list of files and a pattern give the result of their folder."""
    write_files(history(100, 2), tmp_path / "data", 2)
    (tmp_path / "data" / "_notes.parquet").write_text("no Parquet")
    names = [tmp_path / "data" / f"part-{number}.parquet" for number in range(2)]
    process(tmp_path / "data", tmp_path / "folder")
    process(names, tmp_path / "list")
    process(str(tmp_path / "data" / "part-*.parquet"), tmp_path / "pattern")
    whole = read_result(tmp_path / "folder")
    assert whole == read_result(tmp_path / "list") == read_result(tmp_path / "pattern")


def write(folder: Path, *tables: pa.Table) -> Path:
    """Write tables as files of a folder."""
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")
    return folder


MISTAKES: dict[str, tuple[list[pa.Table], str]] = {
    "another type": (
        [rows_of("m", [1]), rows_of("m", [2], score=["0.5"])],
        r"column score is string in .*1\.parquet, but double in .*0\.parquet; write both",
    ),
    "a column less": (
        [rows_of("m", [1], label=[1]), rows_of("m", [2])],
        r"column label is missing in .*1\.parquet, but int64 in .*0\.parquet; write both",
    ),
    "back in a file": (
        [pa.concat_tables([rows_of("m", [3]), rows_of("n", [0]), rows_of("m", [2])])],
        r"0\.parquet row 3: model 'm' is at 2, after its row at 3; sort the rows of the file",
    ),
    "back in the next file": (
        [rows_of("m", [1, 5]), rows_of("m", [4, 6])],
        r"1\.parquet: model 'm' begins at 4, before its end at 5 in .*0\.parquet; write the rows",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_name_the_file(tmp_path: Path, name: str) -> None:
    """What is wrong with files is an error with the files and the remedy, before any output."""
    tables, message = MISTAKES[name]
    with pytest.raises(RecordError, match=message):
        process(write(tmp_path / "data", *tables), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_model_in_the_folder_of_another_is_refused(tmp_path: Path) -> None:
    """A file with rows of another model than its folder says is an error."""
    write(tmp_path / "data" / "model=m", rows_of("n", [1]))
    with pytest.raises(RecordError, match=r"0\.parquet has rows of model 'n', but its folder is"):
        process(tmp_path / "data", tmp_path / "out")


def test_a_file_that_disappears_is_named(tmp_path: Path) -> None:
    """A file that is gone after the listing is an error, not a shorter history."""
    data = write(tmp_path / "data", rows_of("m", [1]), rows_of("m", [2]))

    def late(tasks: Tasks) -> list[Any]:
        if tasks and isinstance(tasks[0], ShardTask):
            (data / "1.parquet").unlink()
        return in_turns(tasks)

    with pytest.raises(RecordError, match=r"1\.parquet is not there any more; start again when"):
        process(data, tmp_path / "out", late)


@pytest.mark.parametrize("models", ["m", "mn"])
def test_a_file_that_changes_is_refused(tmp_path: Path, models: str) -> None:
    """A file that is written while it is read is an error, and no part of it appears."""
    data = write(tmp_path / "data", pa.concat_tables([rows_of(one, [1]) for one in models]))

    def late(tasks: Tasks) -> list[Any]:
        if tasks and isinstance(tasks[0], (ShardTask, SplitTask)):
            pq.write_table(rows_of("o", [1, 2, 3]), data / "0.parquet")
        return in_turns(tasks)

    with pytest.raises(RecordError, match="changed while it was read; start again when nothing"):
        process(data, tmp_path / "out", late)
    assert not [*(tmp_path / "out" / "predictions").iterdir()]


def test_what_is_no_parquet_is_named(tmp_path: Path) -> None:
    """A damaged file is an error with its name."""
    data = write(tmp_path / "data", rows_of("m", [1]))
    (data / "0.parquet").write_bytes(b"PAR1")
    with pytest.raises(RecordError, match=r"0\.parquet cannot be read as Parquet"):
        process(data, tmp_path / "out")


def test_a_column_that_cannot_be_meant_is_named(tmp_path: Path) -> None:
    """A column of the wrong type is an error with the file, before any output."""
    data = write(tmp_path / "data", rows_of("m", [1], time=[date(2026, 1, 1)]))
    with pytest.raises(ParameterError, match=r"0\.parquet: column time for time is of type date32"):
        process(data, tmp_path / "out")


def test_an_output_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    """Results of two runs are never mixed."""
    data = write(tmp_path / "data", rows_of("m", [1]))
    process(data, tmp_path / "out")
    with pytest.raises(ParameterError, match="is not empty; remove what an earlier run left"):
        process(data, tmp_path / "out")


@pytest.mark.parametrize("shards", [0, 1.5])
def test_shards_are_a_number(tmp_path: Path, shards: float) -> None:
    """The number of shards is a whole number of at least 1."""
    data = write(tmp_path / "data", rows_of("m", [1]))
    with pytest.raises(ParameterError, match="shards="):
        process(data, tmp_path / "out", shards=shards)


def test_no_files_are_an_error(tmp_path: Path) -> None:
    """A folder without Parquet files is an error."""
    (tmp_path / "data").mkdir()
    with pytest.raises(ParameterError, match="has no files that end in"):
        process(tmp_path / "data", tmp_path / "out")

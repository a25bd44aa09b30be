"""Real local clusters of two workers, of which one is killed in the middle."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from benchmarks.kills import kill_once, spark_executor, worker_with_a_part
from tests.engine.engines.histories import (
    KINDS,
    add_rows,
    by_one_processor,
    history,
    read_result,
    unlabelled,
    write_files,
)

from abers.engines.spark import process_frame
from abers.exceptions import ParameterError
from abers.stream import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
PATIENCE = 600.0  # seconds; an executor of Spark takes minutes on a busy machine
ROWS, MODELS = 200_000, 40


def run_and_kill(engine: str, data: Path, output: Path, find: Callable[[int], int | None]) -> None:
    """Process a history, kill a worker on the way, and require success."""
    words = [sys.executable, "-W", "ignore", "-m", "benchmarks.clusters", engine]
    log = output.with_suffix(".log")
    with (
        log.open("w") as file,
        subprocess.Popen(
            [*words, data, output], cwd=ROOT, stdout=file, stderr=file, text=True
        ) as program,
    ):
        killed = kill_once(program, lambda: find(program.pid))
        status = program.wait(PATIENCE)
    assert status == 0, log.read_text()[-5_000:]
    assert killed


def in_order(found: dict[str, dict[str, list[Any]]]) -> dict[str, dict[str, list[Any]]]:
    """Return rows sorted within each model: a data frame has no order."""
    return {kind: {name: sorted(rows) for name, rows in one.items()} for kind, one in found.items()}


@pytest.mark.long
@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_a_killed_worker_changes_nothing(engine: str, tmp_path: Path) -> None:
    """With a worker killed in the middle all outputs are those of one processor, to the bit."""
    table = history(ROWS, MODELS)
    write_files(table, tmp_path / "data", 4)
    output = tmp_path / "output"
    run_and_kill(engine, tmp_path / "data", output, lambda _: worker_with_a_part(output))
    assert read_result(output) == by_one_processor(table, Settings())
    names = {path.name for path in output.rglob("*")}
    assert not [name for name in names if name.startswith(".")]
    assert "_SUCCESS" in names
    assert "_split" not in names


@pytest.mark.long
def test_a_killed_executor_changes_nothing(tmp_path: Path) -> None:
    """With an executor killed in the middle all outputs are those of one processor, to the bit."""
    table = history(ROWS, MODELS)
    write_files(table, tmp_path / "data", 4)
    output = tmp_path / "output"
    run_and_kill("spark", tmp_path / "data", output, lambda pid: spark_executor(pid, output))
    found: dict[str, dict[str, list[Any]]] = {kind: {} for kind in KINDS}
    rows = ds.dataset(output, partitioning="hive").to_table().to_pylist()
    for kind in KINDS:
        name = kind.removesuffix("s")
        add_rows(found[kind], [row[name] for row in rows if row["kind"] == name])
    assert in_order(found) == in_order(by_one_processor(table, Settings()))


@pytest.mark.long
@pytest.mark.parametrize("name", ["dask_history", "ray_history", "spark_history", "spark_stream"])
def test_the_example_prints_what_it_says(name: str) -> None:
    """Each example prints the last paragraph of its docstring."""
    program = ROOT / "examples" / "engines" / f"{name}.py"
    page = ast.get_docstring(ast.parse(program.read_text())) or ""
    ran = subprocess.run([sys.executable, program], check=True, capture_output=True, text=True)
    assert ran.stdout.rstrip() == page.rpartition("\n\n")[2]


@pytest.mark.long
def test_errors_of_a_data_frame_come_before_it_is_computed() -> None:
    """A column that cannot be meant is our error, when the data frame is made."""
    sql = pytest.importorskip("pyspark.sql")
    session = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = session.getOrCreate()
    frame = spark.createDataFrame([("a", "noon", 0.5)], ["id", "time", "score"])
    with pytest.raises(ParameterError, match="column time for time is of type string"):
        process_frame(frame)
    with pytest.raises(ParameterError, match="there is no column id"):
        process_frame(frame.drop("id"))
    with pytest.raises(ParameterError, match="name it in the settings"):
        process_frame(frame, Settings(learner=object()))  # type: ignore[arg-type]
    spark.stop()


@pytest.mark.long
@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_errors_come_back_whole(engine: str, tmp_path: Path) -> None:
    """An error on a worker is the same error for the caller."""
    write_files(history(100, 2).drop_columns("time"), tmp_path / "data", 2)
    words = [sys.executable, "-m", "benchmarks.clusters", engine]
    ran = subprocess.run(
        [*words, tmp_path / "data", tmp_path / "out"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    last = ran.stderr.rstrip().splitlines()[-1]
    assert re.match(
        r"abers.exceptions.ParameterError: .*part-[01].parquet: there is no column time for", last
    )


@pytest.mark.long
@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_labels_that_never_come(engine: str, tmp_path: Path) -> None:
    """Observations without a label are predicted as by one processor, on workers too."""
    table = unlabelled(history(600, 7), since=300_000)
    write_files(table, tmp_path / "data", 3)
    words = [sys.executable, "-W", "ignore", "-m", "benchmarks.clusters", engine]
    subprocess.run([*words, tmp_path / "data", tmp_path / "out"], cwd=ROOT, check=True)
    assert read_result(tmp_path / "out") == by_one_processor(table, Settings())


@pytest.mark.long
def test_labels_that_never_come_to_a_data_frame() -> None:
    """Observations of a Spark data frame without a label are predicted as by one processor."""
    sql = pytest.importorskip("pyspark.sql")
    session = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = session.getOrCreate()
    table = unlabelled(history(600, 7), since=300_000)
    rows = process_frame(spark.createDataFrame(table)).collect()
    spark.stop()
    found: dict[str, dict[str, list[Any]]] = {kind: {} for kind in KINDS}
    for kind in KINDS:
        name = kind.removesuffix("s")
        add_rows(found[kind], [row[name].asDict() for row in rows if row["kind"] == name])
    assert in_order(found) == in_order(by_one_processor(table, Settings()))


@pytest.mark.long
def test_a_micro_batch_done_again_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A micro-batch that fails half-way and is done again, here or after a start, is as one."""
    monkeypatch.syspath_prepend(ROOT / "examples" / "engines")
    calibration = importlib.import_module("spark_stream").Calibration
    frames = [Frame(part) for part in history(3_000, 4).to_batches(2_000)]
    smooth = calibration(tmp_path / "smooth", Settings())
    for number, frame in enumerate(frames):
        smooth(frame, number)
    rough = calibration(tmp_path / "rough", Settings())
    for number, frame in enumerate(frames):
        file = tmp_path / "rough" / "dead_letters" / f"{number:09}.parquet"
        file.mkdir()  # so that it cannot be written, after the predictions
        with pytest.raises(OSError, match="directory"):
            rough(frame, number)
        file.rmdir()
        if number % 2:
            rough = calibration(tmp_path / "rough", Settings())
        rough(frame, number)
    for kind in ("predictions", "dead_letters"):
        same = [pq.read_table(tmp_path / name / kind) for name in ("smooth", "rough")]
        assert same[0].equals(same[1])
        assert same[0].num_rows > 0


class Frame(NamedTuple):
    """The rows of a micro-batch, as Spark hands them out."""

    rows: pa.RecordBatch

    def toArrow(self) -> pa.Table:  # noqa: N802 - its name in Spark
        """Return the rows."""
        return pa.table(self.rows)

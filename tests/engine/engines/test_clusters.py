"""The recipes on real local clusters of two workers, killed in the middle."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest
from benchmarks.clusters import RECIPES
from benchmarks.kills import cluster_worker, kill_once
from tests.engine.engines.histories import (
    by_one_processor,
    history,
    in_order,
    read_result,
    unlabelled,
    write_files,
)

from abers.stream import Settings

if TYPE_CHECKING:
    from pathlib import Path

ROOT = RECIPES.parents[1]
SETTINGS = Settings(scores="any")
PATIENCE = 600.0  # seconds; an executor of Spark takes minutes on a busy machine
ROWS, MODELS = 200_000, 40
ENGINES = "dask", "ray", "spark"
RECIPE_NAMES = "dask_history", "ray_history", "spark_history", "spark_stream"


def run(engine: str, data: Path, output: Path, *, kill: bool) -> None:
    """Calibrate a history, with a worker killed on the way or not, and require success."""
    words = [sys.executable, "-W", "ignore", "-m", "benchmarks.clusters", engine]
    log = output.with_suffix(".log")
    with (
        log.open("w") as file,
        subprocess.Popen([*words, data, output], cwd=ROOT, stdout=file, stderr=file) as program,
    ):
        find = partial(cluster_worker, engine, program.pid, output)
        killed = not kill or kill_once(program, find)
        status = program.wait(PATIENCE)
    assert status == 0, log.read_text()[-5_000:]
    assert killed


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_worker_changes_nothing(engine: str, tmp_path: Path) -> None:
    """With a worker killed in the middle all outputs are those of one processor, to the bit."""
    table = history(ROWS, MODELS)
    write_files(table, tmp_path / "data", 4)
    run(engine, tmp_path / "data", tmp_path / "output", kill=True)
    assert read_result(tmp_path / "output") == in_order(by_one_processor(table, SETTINGS))


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_labels_that_never_come(engine: str, tmp_path: Path) -> None:
    """Observations without a label are predicted as by one processor, on workers too."""
    table = unlabelled(history(600, 7), since=300_000)
    write_files(table, tmp_path / "data", 3)
    run(engine, tmp_path / "data", tmp_path / "output", kill=False)
    assert read_result(tmp_path / "output") == in_order(by_one_processor(table, SETTINGS))


@pytest.mark.long
def test_a_stream_that_is_killed_goes_on(tmp_path: Path) -> None:
    """A stream of Spark that is killed before it writes a micro-batch has each output once."""
    table = history(20_000, 10)
    write_files(table, tmp_path / "data", 6)
    job = "tests.engine.engines.spark_job"
    places = {"PYTHONPATH": os.pathsep.join(map(str, [RECIPES, ROOT]))}
    for kill in ("3", "5", "-1"):
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", job, tmp_path, kill],
            cwd=ROOT,
            env=os.environ | places,
            check=False,
            capture_output=True,
            text=True,
            start_new_session=True,
            timeout=PATIENCE,
        )
        assert (ran.returncode == 0) == (kill == "-1"), ran.stderr[-5_000:]
    found, expected = read_result(tmp_path / "output"), by_one_processor(table, SETTINGS)
    # A score that is no number is a missing one behind pandas.
    refused = [sum(map(len, one.pop("dead_letters").values())) for one in (found, expected)]
    assert found == in_order(expected)
    assert refused == [400, 400]


@pytest.mark.long
@pytest.mark.parametrize("name", RECIPE_NAMES)
def test_the_example_prints_what_it_says(name: str) -> None:
    """Each example prints the last paragraph of its docstring."""
    program = RECIPES / f"{name}.py"
    page = ast.get_docstring(ast.parse(program.read_text())) or ""
    ran = subprocess.run([sys.executable, program], check=True, capture_output=True, text=True)
    assert ran.stdout.rstrip() == page.rpartition("\n\n")[2]

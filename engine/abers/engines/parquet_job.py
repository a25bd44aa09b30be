"""A history in Parquet files as tasks: find the models, split files, process shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from abers.engines.history_files import file_system, list_files
from abers.engines.parquet_tasks import ContentTask, ShardTask, SplitTask
from abers.engines.part_files import HistoryTotals
from abers.engines.shard_plan import plan_shards
from abers.exceptions import ParameterError
from abers.stream.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from abers.engines.shard_plan import ShardPlan
    from abers.stream.arrow_fields import FieldNames

__all__ = ["SHARDS", "TaskRunner", "run_parquet_job"]

SHARDS = 64
"""Several for each worker of a small cluster; a worker that dies loses a 64th of the work."""

_PLACES = ("predictions", "outcomes", "dead_letters", "alarms")


class TaskRunner(Protocol):
    """What an engine does: call each task on a worker, and return the results in their order."""

    def __call__(self, tasks: Sequence[Callable[[], Any]], /) -> Sequence[Any]:
        """Return the results; raise the first error as it was raised on the worker."""


def run_parquet_job(  # noqa: PLR0913 - the parameters of both engines
    run: TaskRunner,
    data: str | Path | Sequence[str | Path],
    output: str | Path,
    settings: Settings | None,
    fields: FieldNames | None,
    *,
    shards: int,
    outcomes: bool,
) -> HistoryTotals:
    """Process a history by an engine that runs tasks; see `abers.engines.dask.process_parquet`."""
    settings = settings or Settings()
    if type(shards) is not int or shards < 1:
        msg = f"shards={shards!r} is not a whole number of at least 1; leave it out for {SHARDS}"
        raise ParameterError(msg)
    system, folder = file_system(output)
    if system.exists(folder) and system.ls(folder):
        msg = f"{output} is not empty; remove what an earlier run left, or name another folder"
        raise ParameterError(msg)
    files = list_files(data)
    contents = run([ContentTask(file, fields) for file in files])
    plan = plan_shards(dict(zip(files, contents, strict=True)), shards)
    url = system.unstrip_protocol(folder)
    for place in (*_PLACES, *(f"_split/{number:05}" for number in plan.split)):
        if outcomes or place != "outcomes":
            system.makedirs(f"{folder}/{place}")
    run(_split_tasks(plan, url, fields))
    done = run(
        [
            ShardTask(shard, _sources(plan, shard, url), rows, settings, fields, outcomes, url)
            for shard, rows in enumerate(plan.rows)
        ]
    )
    _finish(system, folder)
    return HistoryTotals.total(done)


def _split_tasks(plan: ShardPlan, url: str, fields: FieldNames | None) -> list[SplitTask]:
    return [
        SplitTask(*plan.files[number], f"{url}/_split/{number:05}", fields) for number in plan.split
    ]


def _sources(plan: ShardPlan, shard: int, url: str) -> list[Any]:
    """Return the files of a shard in their order, or the folders of those that are split."""
    return [
        f"{url}/_split/{number:05}" if number in plan.split else file
        for number, (file, shards) in enumerate(plan.files)
        if shard in shards.values()
    ]


def _finish(system: Any, folder: str) -> None:  # noqa: ANN401 - of fsspec
    """Remove what is no result, such as files of workers that died, and mark the result whole."""
    if system.exists(f"{folder}/_split"):
        system.rm(f"{folder}/_split", recursive=True)
    for path in system.find(folder):
        if path.rpartition("/")[2].startswith("."):
            system.rm(path)
    system.touch(f"{folder}/_SUCCESS")

"""A history in Parquet files on Ray: a task for each shard of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers.engines.libraries import require_library
from abers.engines.parquet_job import SHARDS, run_parquet_job
from abers.exceptions import AbersError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from abers.engines.part_files import HistoryTotals
    from abers.stream import Settings
    from abers.stream.arrow_fields import FieldNames

__all__ = ["process_parquet"]


def process_parquet(  # noqa: PLR0913 - two places, and options
    data: str | Path | Sequence[str | Path],
    output: str | Path,
    settings: Settings | None = None,
    *,
    fields: FieldNames | None = None,
    shards: int = SHARDS,
    outcomes: bool = True,
) -> HistoryTotals:
    """Process a history in Parquet files on the Ray cluster of this process.

    That is the cluster of `ray.init`, and without it a new cluster on this machine.

    Parameters
    ----------
    data
        A folder, a pattern, or a list of files, as paths or URLs that all workers can read.
        Folders may be partitioned as Hive does, such as `model=fraud`. The rows of each model are
        in the order of time, in each file and from one file to the next; see `docs/engines.md`.
    output
        A new or empty folder, which all workers can write. It gets the folders `predictions`,
        `outcomes`, `dead_letters` and `alarms`, with a Parquet file for each shard of models, and
        at last the file `_SUCCESS`.
    settings
        The task, the calibrators and the limits, which hold for each model by itself.
    fields
        Columns by field, as of `Events.from_arrow`.
    shards
        Number of shards at most, each of some models: several for each worker.
    outcomes
        Whether a label that settles a prediction gives an outcome.

    Returns
    -------
    HistoryTotals
        Numbers of rows that were read and written.

    Raises
    ------
    RecordError
        If files differ in a column, a file disappears, changes or lies in the folder of another
        model, or rows of a model go back in time.
    ParameterError
        If the output is not empty, there are no files, a column is missing or has an unusable type,
        or the learner is an object.
    MissingExtraError
        If Ray or a library of a file system is not installed.

    Notes
    -----
    **Guarantee.** The outputs of a model are those of a `Processor` that takes its events alone,
    bit for bit, with any shards and workers. A task that is killed and repeated writes nothing
    twice.
    """
    ray = require_library("ray", "ray")

    def run(tasks: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        call = ray.remote(_call)
        try:
            return ray.get([call.remote(task) for task in tasks])  # type: ignore[no-any-return]
        except ray.exceptions.RayTaskError as error:
            # Not Ray's own error, which only wraps this one.
            raise (error.cause if isinstance(error.cause, AbersError) else error) from None

    return run_parquet_job(run, data, output, settings, fields, shards=shards, outcomes=outcomes)


def _call(task: Callable[[], Any]) -> Any:  # noqa: ANN401 - anything a task returns
    return task()

"""A history on a local cluster of two workers: `python -m benchmarks.clusters ENGINE DATA OUTPUT`.

The engine runs its recipe of `examples/engines`. It prints a line of JSON when the cluster is
there, with the seconds that took, and one when the history is done. Without DATA and OUTPUT it
starts and stops the cluster.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CLUSTERS", "RECIPES"]

RECIPES = Path(__file__).parents[1] / "examples" / "engines"
WORKERS = 2
_MEMORY = 2048  # MB of an executor


@contextmanager
def dask_cluster() -> Iterator[Callable[[Path, Path], None]]:
    """Start workers of Dask."""
    from dask.distributed import Client, LocalCluster  # noqa: PLC0415 - one engine is loaded
    from dask_history import calibrate  # noqa: PLC0415

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        yield calibrate


@contextmanager
def ray_cluster() -> Iterator[Callable[[Path, Path], None]]:
    """Start a cluster of Ray that runs two tasks at once."""
    import ray  # noqa: PLC0415
    from ray_history import calibrate  # noqa: PLC0415

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    try:
        yield calibrate
    finally:
        ray.shutdown()


@contextmanager
def spark_cluster() -> Iterator[Callable[[Path, Path], None]]:
    """Start a master of Spark and two executors, processes of their own."""
    from pyspark.sql import SparkSession  # noqa: PLC0415
    from spark_history import calibrated  # noqa: PLC0415

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session: Any = (
        SparkSession.builder.master(f"local-cluster[{WORKERS},1,{_MEMORY}]")
        .config("spark.executor.memory", f"{_MEMORY}m")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    try:
        yield lambda data, output: calibrated(session.read.parquet(str(data))).write.parquet(
            str(output)
        )
    finally:
        session.stop()


CLUSTERS = {"dask": dask_cluster, "ray": ray_cluster, "spark": spark_cluster}


def _report(numbers: dict[str, float]) -> None:
    sys.stdout.write(json.dumps(numbers) + "\n")
    sys.stdout.flush()


def main(words: list[str]) -> None:
    """Start a cluster and process a history."""
    sys.path.append(str(RECIPES))
    os.environ["PYTHONPATH"] = str(RECIPES)  # of the workers
    engine, *places = words
    began = perf_counter()
    with CLUSTERS[engine]() as run:
        _report({"up": perf_counter() - began})
        if places:
            data, output = (Path(place).absolute() for place in places)
            began = perf_counter()
            run(data, output)
            _report({"done": perf_counter() - began})


if __name__ == "__main__":
    main(sys.argv[1:])

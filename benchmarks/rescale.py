"""`abers state rescale` of many models: `python -m benchmarks.rescale [MODELS]`.

100,000 models (or the number that is given) of 20 labels each, in 16 partitions and with monitors
and tests, go to 32, and these to 13. Snapshots are in a folder, and a broker runs on this machine.
First no changelog goes on behind a snapshot, so no model is loaded. Then each does, by a record, so
all are.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from subprocess import run
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.stream.snapshot import read, write
from abers.version import __version__
from abers_connectors.config.model import Config, load
from abers_connectors.kafka.assembly import snapshot_store
from abers_connectors.kafka.connection import new_producer, open_admin
from abers_connectors.kafka.generations import Generation, generation_in_use
from abers_connectors.kafka.group_members import commit_offsets
from abers_connectors.kafka.settings import client_settings
from abers_connectors.kafka.topic_creation import create_topics
from abers_connectors.runtime.application import kafka_section
from abers_connectors.runtime.changelog import ChangelogRecord, encode
from abers_connectors.runtime.checkpoint import Checkpoint, snapshot_scope
from abers_connectors.runtime.rescaled_tasks import RescaledTask, rescaled
from abers_connectors.runtime.saved_task import SavedTask
from benchmarks.many_models import filled
from benchmarks.page import table
from benchmarks.rivals import ROOT
from benchmarks.service import broker

if TYPE_CHECKING:
    from collections.abc import Iterable

MODELS, PARTITIONS, THEN = 100_000, 16, (32, 13)
OFFSETS = (0, -1)


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    cpu: float
    megabytes: float  # the largest of all commands so far


def written(folder: Path, bootstrap: str, models: int, more: dict[str, object]) -> Config:
    """Write a configuration, and make its topics."""
    kafka: dict[str, object] = {
        "bootstrap_servers": bootstrap,
        "application_id": folder.name,
        "observations": f"{folder.name}.observations",
        "predictions": f"{folder.name}.predictions",
        "route_by": "model",
        "partitions": PARTITIONS,
    }
    sections: dict[str, Any] = {
        "kafka": kafka,
        "state": {"path": str(folder / "state")},
        "http": {"enabled": False},
        "limits": {"max_models": models},
        **more,
    }
    lines = [f"[{name}]\n{_lines(keys)}" for name, keys in sections.items()]
    Path(folder, "abers.toml").write_text("\n".join(lines), "utf-8")
    config = load(folder / "abers.toml", environ={})
    create_topics(config)
    return config


def _lines(keys: dict[str, object]) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def stored(folder: Path, models: int) -> None:
    """Save the state of many models, as the tasks of an application that has stopped."""
    config = load(folder / "abers.toml", environ={})
    generation = Generation.of(config, 1)
    app = generation.application
    whole = read(filled(config.settings(), models).snapshot())
    saved = SavedTask(Checkpoint(app.state_id, 0, 0, 0, OFFSETS), whole)
    for one in rescaled([saved], None, PARTITIONS, 1):
        _save(generation, one)
    with open_admin(client_settings(kafka_section(config))) as admin:
        parts = [part for number in range(PARTITIONS) for part in app.input_partitions(number)]
        commit_offsets(admin, app.id, dict.fromkeys(parts, 0))


def _save(generation: Generation, one: RescaledTask) -> None:
    app, number = generation.application, one.partition
    snapshots = snapshot_store(generation.config, app)
    assert snapshots is not None  # noqa: S101 - the configuration names it
    checkpoint = Checkpoint(app.state_id, number, 1, 0, OFFSETS, (), PARTITIONS)
    scope = snapshot_scope(app.state_id, number, 0)
    snapshots.save(number, 0, write(one.state, msgspec.to_builtins(checkpoint), app.key, scope))


def followed(config: Config, partitions: int) -> None:
    """Let the changelog of each partition go on by a batch without records."""
    changelog = kafka_section(generation_in_use(config).config).changelog
    record = ChangelogRecord(__version__, 1, OFFSETS, b"", b"", [], None, partitions)
    with new_producer(client_settings(kafka_section(config)), "none") as producer:
        for number in range(partitions):
            producer.send(changelog, *encode(record), partition=number).get()


def cost(folder: Path, partitions: int) -> Cost:
    """Run the command, and return what it took."""
    words = [
        "-m",
        "abers_connectors",
        "state",
        "rescale",
        "abers.toml",
        f"--partitions={partitions}",
    ]
    before, started = getrusage(RUSAGE_CHILDREN), perf_counter()
    run([sys.executable, *words], cwd=folder, check=True)  # noqa: S603 - of ours
    seconds, after = perf_counter() - started, getrusage(RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, cpu, after.ru_maxrss / 1024)


def costs(folder: Path, bootstrap: str, models: int, more: dict[str, object]) -> Iterable[Cost]:
    """Yield what each change of the number of partitions took."""
    config = written(folder, bootstrap, models, more)
    # In another process: what this one takes would count as memory of the commands.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        pool.submit(stored, folder, models).result()
    for partitions in THEN:
        yield cost(folder, partitions)
    followed(config, THEN[-1])
    yield cost(folder, PARTITIONS)


def main(models: int = MODELS) -> None:
    """Measure and print."""
    kinds = {"merged": {}, "protected": {"task": {"scores": "probability"}}}
    rows: list[list[object]] = []
    with broker([sys.executable, str(ROOT / "scripts" / "kafka-broker")]) as bootstrap:
        for kind, more in kinds.items():
            with TemporaryDirectory(prefix=f"rescale-{kind}-") as folder:
                found = costs(Path(folder), bootstrap, models, dict(more))
                names = (*(f"to {number}" for number in THEN), f"to {PARTITIONS}, loaded")
                rows += [
                    [kind, name, *(f"{one:,.1f}" for one in each)]
                    for name, each in zip(names, found, strict=True)
                ]
    sys.stdout.write(table(["", "", "seconds", "of CPU", "MB at most so far"], rows) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))

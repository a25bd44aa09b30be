"""`abers state rescale` of many models.

Models of 20 labels each, in 16 partitions and with monitors
and tests, go to 32, and these to 13. Snapshots are in a folder, and a broker runs on this machine.
First no changelog goes on behind a snapshot, so no model is loaded. Then each does, by a record, so
all are.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.stream.snapshot import read, write
from abers.version import __version__
from abers_connectors.config.model import Config, load
from abers_connectors.kafka.assembly import snapshot_store
from abers_connectors.kafka.connection import client_settings, new_producer, open_admin
from abers_connectors.kafka.generations import Generation, generation_in_use
from abers_connectors.kafka.group_members import commit_offsets
from abers_connectors.kafka.topic_checks import create_topics
from abers_connectors.runtime.application import Checkpoint, kafka_section, snapshot_scope
from abers_connectors.runtime.rescaled_tasks import RescaledTask, SavedTask, rescaled
from abers_connectors.runtime.task import ChangelogRecord, encode
from benchmarks.many_models import filled
from benchmarks.page import Key, Section, size, table
from benchmarks.service import NO_BROKER, SCRIPT, broker, broker_here
from benchmarks.timing import Spread, digits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.plan import Plan

PARTITIONS, THEN = 16, (32, 13)
OFFSETS = (0, -1)
PROTECTED, _PROTECTED = "protected", {"scores": "probability"}


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    cpu: float
    megabytes: float  # at most


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
    started = perf_counter()
    process = Popen([sys.executable, *words], cwd=folder)  # noqa: S603 - of ours
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0  # noqa: S101 - it has said why
    seconds = perf_counter() - started
    return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def costs(folder: Path, bootstrap: str, models: int, more: dict[str, object]) -> Iterable[Cost]:
    """Yield what each change of the number of partitions took."""
    config = written(folder, bootstrap, models, more)
    # In another process: a command would begin with the memory of this one.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        pool.submit(stored, folder, models).result()
    for partitions in THEN:
        yield cost(folder, partitions)
    followed(config, THEN[-1])
    yield cost(folder, PARTITIONS)


def rescale(plan: Plan) -> Section:
    """Measure the seconds, the processor time and the memory of the command."""
    title, models = "More partitions", plan.large // 10
    if not broker_here():
        return Section(title, NO_BROKER, {})
    kinds: dict[str, dict[str, object]] = {"merged": {}, PROTECTED: {"task": _PROTECTED}}
    rows: list[list[object]] = []
    values: dict[Key, Spread] = {}
    with broker(SCRIPT) as bootstrap:
        for kind, more in kinds.items():
            with TemporaryDirectory(prefix=f"rescale-{kind}-") as folder:
                names = (*(f"to {number}" for number in THEN), f"to {PARTITIONS}, loaded")
                found = zip(names, costs(Path(folder), bootstrap, models, more), strict=True)
                for name, one in found:
                    rows.append([f"{kind}, {name}", *map(digits, one)])
                    values["rescale", f"{kind}, {name}", models] = Spread.of([one.seconds])
    body = (
        f"`abers state rescale` of {size(models)} models of 20 labels, first from {PARTITIONS}"
        " partitions whose snapshots stand at the ends of their changelogs. For the last rows each"
        " changelog goes on behind its snapshot, so all models are loaded.\n\n"
        + table(["", "seconds", "of CPU", "MB at most"], rows)
    )
    return Section(title, body, values)

"""Attack the service on a broker of one's own, and print what was left.

python -m tests.connectors.kafka.chaos FORM CLIENT FOLDER [SEED]

FORM is short, long, tasks, tasks-long, failover, elastic-short, or elastic.

CLIENT may name a group protocol too: "librdkafka, consumer".
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from tests.connectors.kafka.brokers import Broker
from tests.connectors.kafka.chaos import faulty
from tests.connectors.kafka.chaos.application import Application
from tests.connectors.kafka.chaos.campaign import SECTIONS, attacked
from tests.connectors.kafka.chaos.elastic import ELASTIC, ElasticForm, attacked_elastic
from tests.connectors.kafka.chaos.nemesis import Nemesis
from tests.connectors.kafka.chaos.tasks import TASKS
from tests.connectors.kafka.chaos.workers import Supervisor
from tests.connectors.kafka.clients import CLIENTS

from abers_connectors.secret import NAME, new_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class _Form(NamedTuple):
    """The length of a campaign; each task has an application of its own, one after the other."""

    tasks: Sequence[str]
    faults: Callable[[Nemesis], Sequence[Callable[[], None]]]
    observations: int
    rate: float
    workers: int
    options: Sequence[str] = ()  # of the broker
    kafka: Mapping[str, str] = MappingProxyType({})  # more of that section


# A busy machine keeps its nodes for so long, and a transaction outlasts that.
THREE = ("--nodes", "3", "--properties", "broker.session.timeout.ms=6000")
PATIENT = {"transaction_timeout": "20s", "stall_timeout": "30s"}
OTHERS = [name for name in TASKS if name != "binary"]
FORMS = {
    "short": _Form(["binary"], Nemesis.short, 8_000, 1_500, 2),
    "long": _Form(["binary"], Nemesis.long, 100_000, 4_000, 3),
    "tasks": _Form(OTHERS, Nemesis.brief, 2_000, 1_500, 2),
    "tasks-long": _Form(OTHERS, Nemesis.short, 8_000, 1_500, 2),
    "failover": _Form(["binary"], Nemesis.failovers, 30_000, 800, 2, THREE, PATIENT),
}


def main(form: str, client: str, folder: str, seed: str = "7") -> None:
    """Run a campaign in one of the forms, on a client of the service."""
    logging.disable(logging.CRITICAL)  # of clients, whose broker is gone now and then
    os.environ.setdefault(NAME, new_key())  # of the workers, and of the judge
    storage = Path(folder, "broker")
    chosen = ELASTIC.get(form) or FORMS[form]
    broker = Broker.started("--dir", storage, *chosen.options)
    try:
        if isinstance(chosen, ElasticForm):
            attacked_elastic(chosen, client, broker, storage, int(seed))
            return
        for name in chosen.tasks:
            broker = _attack(chosen, name, client, broker, storage, int(seed))
    finally:
        broker.stop()


def _attack(  # noqa: PLR0913, PLR0917 - of one campaign
    form: _Form, name: str, client: str, broker: Broker, storage: Path, seed: int
) -> Broker:
    """Attack an application of a task; return the broker that runs afterwards."""
    folder = storage.with_name(name)
    folder.mkdir()
    sections = SECTIONS | TASKS[name].sections | {"kafka": {**CLIENTS[client], **form.kafka}}
    application = Application(broker, folder, 3, **sections)
    supervisor = Supervisor(application)
    nemesis = Nemesis(application, supervisor, storage, seed)
    print(f"chaos: {name}, {client}")  # noqa: T201 - the summary is what the suite is for
    try:
        for number in range(form.workers):
            supervisor.add(str(number), module=faulty.__name__)
        attacked(
            application,
            supervisor,
            nemesis,
            form.faults(nemesis),
            observations=form.observations,
            rate=form.rate,
            seed=seed,
            task=TASKS[name],
        )
    finally:
        supervisor.close()
    return application.broker


if __name__ == "__main__":
    main(*sys.argv[1:])

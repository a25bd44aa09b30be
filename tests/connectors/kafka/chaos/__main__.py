"""Attack the service on a broker of one's own, and print what was left.

python -m tests.connectors.kafka.chaos {short|long} FOLDER [SEED]
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from tests.connectors.kafka.brokers import Broker
from tests.connectors.kafka.chaos.application import Application
from tests.connectors.kafka.chaos.campaign import SECTIONS, attacked
from tests.connectors.kafka.chaos.nemesis import Nemesis
from tests.connectors.kafka.chaos.workers import Supervisor


def main(form: str, folder: str, seed: str = "7") -> None:
    """Attack in one of two forms."""
    logging.disable(logging.CRITICAL)  # of clients, whose broker is gone now and then
    storage = Path(folder, "broker")
    application = Application(Broker.started("--dir", storage), Path(folder), 3, **SECTIONS)
    supervisor = Supervisor(application)
    nemesis = Nemesis(application, supervisor, storage, int(seed))
    faults, observations, rate, instances = {
        "short": (nemesis.short(), 8_000, 1_500, 2),
        "long": (nemesis.long(), 100_000, 4_000, 3),
    }[form]
    try:
        for number in range(instances):
            supervisor.add(str(number))
        attacked(
            application,
            supervisor,
            nemesis,
            faults,
            observations=observations,
            rate=rate,
            seed=int(seed),
        )
    finally:
        supervisor.close()
        application.broker.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A demo on this machine: broker, model, service, and consumer of the predictions.

Usage: run.py [COUNT [RATE]]        (`make demo-kafka` is the same)

It ends by itself, with a summary. The broker needs Java 17 and, the first time, Maven.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from abers_connectors.config.model import load
from abers_connectors.kafka.topic_creation import create_topics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HERE = Path(__file__).parent
CONFIG = HERE / "abers.toml"
ABERS = Path(sys.executable).with_name("abers")
BROKER = HERE.parents[1] / "scripts" / "kafka-broker"


def main(count: str = "1000", rate: str = "250") -> int:
    """Run the demo; return 0 if every observation has a prediction and an outcome."""
    with ExitStack() as stack:
        bootstrap = stack.enter_context(broker())
        environ = os.environ | {"ABERS_KAFKA__BOOTSTRAP_SERVERS": bootstrap}
        made = create_topics(load(CONFIG, environ=environ), environ)
        say(f"a broker at {bootstrap} has the topics {', '.join(made)}")
        service = stack.enter_context(running(str(ABERS), "run", str(CONFIG), env=environ))
        stack.enter_context(
            running(sys.executable, str(HERE / "producer.py"), bootstrap, count, rate)
        )
        consumer = [sys.executable, str(HERE / "consumer.py"), bootstrap, count]
        failed = subprocess.run(consumer, check=False).returncode
        service.terminate()  # it finishes its current batch
        return failed or service.wait()


@contextmanager
def broker() -> Iterator[str]:
    """Start a broker on a free port, and yield its address."""
    with running(sys.executable, str(BROKER), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        ready, _, bootstrap = process.stdout.readline().strip().partition(" ")
        if ready != "ready":
            sys.exit("the broker did not start")
        yield bootstrap


@contextmanager
def running(
    *words: str, env: Mapping[str, str] | None = None, stdout: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a command in the background, and stop it at the end."""
    process = subprocess.Popen(words, text=True, env=env, stdout=stdout)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def say(message: str) -> None:
    """Print a message to standard error."""
    print(f"demo: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""A demo on this machine: brokers, model, service, and consumer of the predictions.

Usage: run.py [--brokers N] [COUNT [RATE]]        (`make demo-kafka BROKERS=N` is the same)

It ends by itself, with a summary. The brokers need Java 17 and, the first time, Maven.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from abers_connectors.config.model import load
from abers_connectors.kafka.topic_checks import create_topics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HERE = Path(__file__).parent
CONFIG = HERE / "abers.toml"
ABERS = Path(sys.executable).with_name("abers")
BROKER = HERE.parents[1] / "scripts" / "kafka-broker"


def main(words: Sequence[str] | None = None) -> int:
    """Run the demo; return 0 if every observation has a prediction and an outcome."""
    parser = argparse.ArgumentParser(description="Show the service on brokers of its own.")
    parser.add_argument("count", nargs="?", default="1000", help="number of observations")
    parser.add_argument("rate", nargs="?", default="250", help="observations a second")
    parser.add_argument("--brokers", default="1", help="number of brokers")
    given = parser.parse_args(words)
    count, rate = given.count, given.rate
    with ExitStack() as stack:
        bootstrap = stack.enter_context(broker(given.brokers))
        environ = os.environ | {"ABERS_KAFKA__BOOTSTRAP_SERVERS": bootstrap}
        made = create_topics(load(CONFIG, environ=environ), environ)
        say(f"{given.brokers} broker(s) at {bootstrap} with the topics {', '.join(made)}")
        service = stack.enter_context(running(str(ABERS), "run", str(CONFIG), env=environ))
        stack.enter_context(
            running(sys.executable, str(HERE / "producer.py"), bootstrap, count, rate)
        )
        consumer = [sys.executable, str(HERE / "consumer.py"), bootstrap, count]
        failed = subprocess.run(consumer, check=False).returncode
        service.terminate()  # it finishes its current batch
        return failed or service.wait()


@contextmanager
def broker(number: str) -> Iterator[str]:
    """Start brokers on free ports, and yield their addresses."""
    words = (sys.executable, str(BROKER), "--nodes", number)
    with running(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        ready, _, bootstrap = process.stdout.readline().strip().partition(" ")
        if ready != "ready":
            sys.exit("the broker did not start")
        yield bootstrap


@contextmanager
def running(
    *words: str,
    env: Mapping[str, str] | None = None,
    stdin: int | None = None,
    stdout: int | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Run a command in the background, and stop it at the end."""
    process = subprocess.Popen(words, text=True, env=env, stdin=stdin, stdout=stdout)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def say(message: str) -> None:
    """Print a message to standard error."""
    print(f"demo: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Attack and soak in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["attacked_apart", "run_apart"]


def attacked_apart(form: str, folder: Path, client: str) -> str:
    """Attack, print the summary, and return it."""
    return run_apart("chaos", form, client, folder)


def run_apart(package: str, *words: object) -> str:
    """Run a package of tests/connectors/kafka, print the summary, and return it.

    Apart from the tests, since kafka-python leaves sockets open whose broker is gone.
    """
    ran = subprocess.run(
        [sys.executable, "-m", f"tests.connectors.kafka.{package}", *map(str, words)],
        cwd=Path(__file__).parents[4],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(ran.stdout)  # noqa: T201 - the summary is what the suite is for
    assert ran.returncode == 0
    return ran.stdout

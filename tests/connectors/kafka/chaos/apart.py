"""The attack in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["attacked_apart"]


def attacked_apart(form: str, folder: Path, client: str) -> str:
    """Attack, print the summary, and return it.

    Apart from the tests, since kafka-python leaves sockets open whose broker is gone.
    """
    ran = subprocess.run(
        [sys.executable, "-m", "tests.connectors.kafka.chaos", form, client, folder],
        cwd=Path(__file__).parents[4],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(ran.stdout)  # noqa: T201 - the summary is what the suite is for
    assert ran.returncode == 0
    return ran.stdout

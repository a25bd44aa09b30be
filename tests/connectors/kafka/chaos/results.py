"""The results of faults, and the table of them in the documentation.

Tests add a line to the file that ABERS_CHAOS_RESULTS names. `make chaos` makes the table of them:

    python -m tests.connectors.kafka.chaos.results FILE
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Result", "record"]

_FILE = "ABERS_CHAOS_RESULTS"
_PAGE = Path(__file__).parents[4] / "docs" / "evidence" / "faults.md"
_BEGIN, _END = "<!-- make chaos writes this table -->\n", "<!-- end of the table -->\n"
_HEAD = (
    "| fault | client | kills | lost | duplicates | state | exits with 75 | seconds |",
    "|---|---|--:|--:|--:|---|--:|--:|",
)


class Result(msgspec.Struct, frozen=True):
    """What was found after a fault.

    Attributes
    ----------
    fault
        What happened.
    client
        The Kafka client of the service.
    kills
        Number of processes that were killed, brokers included.
    lost, duplicates
        Numbers of predictions.
    states_equal
        Whether the state was the one of an undisturbed processor.
    unavailable
        Number of times that a process of the service ended with 75.
    seconds
        Seconds until predictions went on; None if it was not measured.
    """

    fault: str
    client: str
    kills: int
    lost: int
    duplicates: int
    states_equal: bool
    unavailable: int
    seconds: float | None = None


def record(result: Result) -> None:
    """Add a result to the file of results, if there is one."""
    if _FILE in os.environ:
        with Path(os.environ[_FILE]).open("ab") as file:
            file.write(msgspec.json.encode(result) + b"\n")


def table(results: Sequence[Result]) -> str:
    """Return the table of results."""
    return "\n".join([*_HEAD, *map(_row, results), ""])


def _row(one: Result) -> str:
    state = "equal" if one.states_equal else "**not equal**"
    seconds = "" if one.seconds is None else f"{one.seconds:.1f}"
    counts = f"{one.kills} | {one.lost} | {one.duplicates} | {state} | {one.unavailable}"
    return f"| {one.fault} | {one.client} | {counts} | {seconds} |"


def main(file: str) -> None:
    """Write the table of a file of results to the page, in the order of faults and clients."""
    lines = Path(file).read_bytes().splitlines()
    results = [msgspec.json.decode(line, type=Result) for line in lines]
    faults = [*dict.fromkeys(one.fault for one in results)]
    results.sort(key=lambda one: (faults.index(one.fault), one.client))
    before, _, rest = _PAGE.read_text("utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    _PAGE.write_text(before + _BEGIN + table(results) + _END + after, "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

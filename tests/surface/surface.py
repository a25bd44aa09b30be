"""The public surface of abers, as docs/api_promise.md promises it: one name a line.

The files next to this module record it. After a change that is meant, run
`python -m tests.surface.surface --write`.
"""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.surface.python_names import names
from tests.surface.service_names import codes, commands, keys, metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["PARTS", "changes", "recorded", "write"]

PARTS: dict[str, Callable[[], Iterable[str]]] = {
    "python": names,
    "commands": commands,
    "config": keys,
    "metrics": metrics,
    "exit_codes": codes,
}
ADVICE = """
Lines with - are promised to users. Before one goes or changes, docs/api_promise.md wants a release
in which it is deprecated. If the change is meant, describe it in CHANGELOG.md and record it:

    python -m tests.surface.surface --write
"""


def recorded(part: str) -> Path:
    """Return the file that records a part."""
    return Path(__file__).with_name(f"{part}.txt")


def changes(part: str, old: Iterable[str], new: Iterable[str]) -> str:
    """Describe what was added (+) and removed (-), and say how to record it; empty if nothing."""
    compared = difflib.unified_diff([*old], [*new], lineterm="", n=0)
    lines = [line for line in compared if not line.startswith(("---", "+++", "@@"))]
    if not lines:
        return ""
    return "\n".join([f"The public surface has changed ({part}):", *lines, ADVICE])


def write() -> None:
    """Record the surface as it is now."""
    for part, found in PARTS.items():
        recorded(part).write_text("".join(f"{line}\n" for line in found()), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    write()

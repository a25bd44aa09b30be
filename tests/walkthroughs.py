"""The walk-throughs of CONTRIBUTING.md: their sections, and the blocks in each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abers.monitoring import Monitor

__all__ = ["BLOCK", "ROOT", "SECTIONS", "example_monitor"]

ROOT = Path(__file__).parents[1]
SECTIONS = dict(
    re.findall(
        r"^### (.+?)\n(.+?)(?=^##|\Z)",
        (ROOT / "CONTRIBUTING.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
)
BLOCK = re.compile(
    r"(?:`([\w./]+)`:\n\n)?^```(python|diff|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def example_monitor() -> type[Monitor]:
    """Return the monitor that CONTRIBUTING.md adds as an example."""
    (section,) = (text for title, text in SECTIONS.items() if "monitor" in title)
    known: dict[str, Any] = {"__name__": "abers.monitoring.labels"}
    exec(next(text for _, kind, text in BLOCK.findall(section) if kind == "python"), known)  # noqa: S102
    found: type[Monitor] = known["LabelShare"]
    return found

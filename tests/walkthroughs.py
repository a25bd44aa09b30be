"""The example monitor of CONTRIBUTING.md."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from abers.monitoring import Monitor

__all__ = ["example_monitor"]

LABELS = Path(__file__).parents[1] / "examples" / "extending" / "labels.py"


def example_monitor() -> type[Monitor]:
    """Return the monitor that CONTRIBUTING.md adds as an example."""
    found: type[Monitor] = runpy.run_path(str(LABELS))["LabelShare"]
    return found

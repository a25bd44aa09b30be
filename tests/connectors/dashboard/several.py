"""A stream of several models and segments, and reports of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.connectors.dashboard.replays import MORE, command, observed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CONFIG = """
[task]
kind = "{task}"
{more}
[input]
observations = "in.jsonl"
delay = "70ms"
[input.fields]
segment = "country"
[output]
predictions = "out.jsonl"
"""
KEYS = [("fraud", "fr"), ("fraud", "de"), ("<b>spam", "fr")]  # beginning with that of most labels


def mixed(task: str, size: int = 240) -> list[dict[str, Any]]:
    """Return observations with labels of three keys, of which the first has half."""
    rows = []
    for number, row in enumerate(observed(task, size)):
        model, country = KEYS[(0, 1, 0, 2)[number % 4] if number % 24 else 1]
        rows.append(row | {"time": 10 * number, "model": model, "country": country})
    return rows


def reported(task: str, folder: Path, rows: Sequence[dict[str, Any]], name: str) -> str:
    """Replay rows, a label 70 ms after its observation, and return the report of this name."""
    folder.mkdir(exist_ok=True)
    (folder / "in.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    (folder / "abers.toml").write_text(CONFIG.format(task=task, more=MORE[task]))
    code, _, err = command("replay", "abers.toml", "--report", name)
    assert code == 0, err
    return (folder / name).read_text()

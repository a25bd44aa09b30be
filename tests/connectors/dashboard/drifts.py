"""A stream with a drift at a known observation, and a file of it."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CHANGE", "drifting", "written"]

CHANGE = 6_000
"""Up to here the scores are the probabilities of label 1."""


def drifting(size: int, seed: int = 7) -> list[tuple[float, int]]:
    """Return scores and labels; from `CHANGE` on label 1 is half as probable as the scores."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    rows = []
    for number in range(size):
        score = round(rng.betavariate(2.0, 2.0), 4)
        likely = score if number < CHANGE else score / 2.0
        rows.append((score, int(rng.random() < likely)))
    return rows


def written(folder: Path, rows: list[tuple[float, int]]) -> Path:
    """Write a file of JSON Lines, a row a second, that `abers replay` reads."""
    path = folder / "drift.jsonl"
    first = 1_760_000_000_000
    lines = (
        json.dumps({"id": f"o{n}", "time": first + 1000 * n, "score": score, "label": label})
        for n, (score, label) in enumerate(rows)
    )
    path.write_text("\n".join(lines) + "\n")
    return path

"""What a team writes without abers: a dictionary of waiting scores, and smart brute a model.

It has no monitors, no journal, no deadline for labels and no check of its input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from abers.stream import Observation
from benchmarks.contenders import SmartBrute

if TYPE_CHECKING:
    from pathlib import Path

    from abers.stream import Event

HAND = "by hand"
_BATCH = 5_000  # records that are decoded at once


class ByHand:
    """The calibrators of all models, and the scores that wait for their labels."""

    def __init__(self) -> None:
        self._models: dict[str, SmartBrute] = {}
        self._waiting: dict[str, tuple[SmartBrute, float]] = {}

    def process(self, event: Event) -> tuple[float, float, float] | None:
        """Predict an observation, or learn a label."""
        if isinstance(event, Observation):
            return self.predict(event.id, event.model, cast("float", event.score))
        self.learn(event.id, cast("int", event.value))
        return None

    def predict(self, name: str, model: str, score: float) -> tuple[float, float, float]:
        """Return the interval and the merged probability of an observation."""
        calibrator = self._models.get(model)
        if calibrator is None:
            calibrator = self._models[model] = SmartBrute(0)
        self._waiting[name] = calibrator, score
        p0, p1 = calibrator.predict_one(score)
        return p0, p1, p1 / (1.0 - p0 + p1)

    def learn(self, name: str, label: int) -> None:
        """Learn a label with the score that waits."""
        calibrator, score = self._waiting.pop(name)
        calibrator.learn_one(score, label)

    def replay(self, source: Path, target: Path) -> None:
        """Read JSON Lines, and write a prediction for each observation."""
        decode = msgspec.json.Decoder(dict[str, Any]).decode
        encode = msgspec.json.Encoder().encode_lines
        lines = source.read_bytes().splitlines()
        with target.open("wb") as file:
            for first in range(0, len(lines), _BATCH):
                made = []
                for record in map(decode, lines[first : first + _BATCH]):
                    name, score = record["id"], record.get("score")
                    if score is None:
                        self.learn(name, record["label"])
                    else:
                        p0, p1, p = self.predict(name, record["model"], score)
                        made.append({"id": name, "p0": p0, "p1": p1, "p": p})
                file.write(encode(made))

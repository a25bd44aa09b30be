"""Memory of many models with few labels each, compared with the estimate of the metrics.

Run as `python -m benchmarks.model_memory MODELS LABELS KIND` in a process of its own, where KIND is
any, merged or protected; prints one JSON object, in bytes a model.
"""

from __future__ import annotations

import json
import random
import sys
from typing import TYPE_CHECKING, Literal

from abers.stream import Events, Label, Observation, Processor, Settings
from abers_connectors.runtime.models import state_bytes
from benchmarks.resident import resident, trim

if TYPE_CHECKING:
    from abers.stream import Event

_WARM, _WARM_LABELS = 20, 60  # models, and labels of each, before anything is measured


def settings_of(kind: str, models: int) -> Settings:
    """Return settings of a kind of scores or probabilities, for so many models."""
    if kind == "any":
        return Settings(max_models=models)
    probability: Literal["protected", "merged"] = "merged" if kind == "merged" else "protected"
    return Settings(scores="probability", probability=probability, max_models=models)


def learn(processor: Processor, models: int, labels: int) -> None:
    """Process observations with their labels, in batches with one of each model."""
    draw = random.Random(3)  # noqa: S311 - no secret
    for turn in range(labels):
        events: list[Event] = []
        for number in range(models):
            name, model, score = f"{turn}-{number}", f"model-{number}", draw.random()
            events.append(Observation(name, turn, model, score=score))
            events.append(Label(name, turn, model, value=int(draw.random() < score)))
        processor.process_batch(Events.of(events))


def measured(models: int, labels: int, kind: str) -> dict[str, float]:
    """Measure what each model adds to this process."""
    settings = settings_of(kind, models)
    learn(warm := Processor(settings, outcomes=False), _WARM, _WARM_LABELS)
    trim()
    before = resident()
    processor = Processor(settings, outcomes=False)
    learn(processor, models, labels)
    trim()
    grown = resident() - before
    del warm  # until here, so that none of its memory is used again
    return {"measured": grown / models, "estimated": state_bytes(processor) / models}


if __name__ == "__main__":
    found = measured(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    sys.stdout.write(json.dumps(found))

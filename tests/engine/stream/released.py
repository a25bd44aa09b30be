"""Snapshots of every format that was released, and how they are made.

Governing rule: `golden/snapshot-vN.bin` was written by an abers of format N and is never written
again; `golden/snapshot-vN.json` says what the processor in it was, and what it said next. Made
once, before a format is released, by

    python -m tests.engine.stream.released
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from tests.engine.stream.cases import MODELS, SEGMENTS, stream

from abers.stream import Event, Label, Observation, Processor, Settings
from abers.stream.snapshot import MAGIC

FOLDER = Path(__file__).with_name("golden")
SETTINGS = Settings(
    window=30,
    scores="probability",
    label_wait=2_000,
    lateness=100,
    max_pending=45,
    max_early=10,
    dedup_max=100,
)
POSITION = {"scores.jsonl": {"offset": 12_345, "line": 321}}
COUNT = 300
"""Number of observations; the last ones still wait."""


def spoken(processor: Processor) -> list[Any]:
    """Ask for all that a processor calibrates, waits for and remembers."""
    end = 1_700_000_000_000 + 10 * COUNT
    when: dict[str, Any] = {"time": end, "recorded": end}
    names = [(f"id-{i}", MODELS[i % 7 % len(MODELS)]) for i in range(COUNT)]
    events: list[Event] = [
        *(
            Observation(f"asked-{a}", model=model, segment=segment, score=a / 10, **when)
            for model in MODELS
            for segment in SEGMENTS
            for a in range(11)
        ),
        *(Label(name, model=model, value=i % 2, **when) for i, (name, model) in enumerate(names)),
        *(Observation(name, model=model, score=0.5, **when) for name, model in names),
    ]
    outputs = processor.process_many(events)
    return [*json.loads(msgspec.json.encode(outputs)), processor.counters]


def main() -> None:
    """Write the files of the present format."""
    processor = Processor(SETTINGS)
    processor.process_many(stream(COUNT, every=20))
    path = FOLDER / f"snapshot-v{MAGIC[-1]}.bin"
    path.write_bytes(processor.snapshot(POSITION))
    expected = {
        "position": POSITION,
        "clock": processor.clock,
        "counters": dict(processor.counters),
        "spoken": spoken(processor),
    }
    path.with_suffix(".json").write_text(json.dumps(expected, indent=0) + "\n")


if __name__ == "__main__":
    main()

"""Snapshots of every format that was released, and how they are made.

`golden/snapshot-vN.bin` was written by an abers of format N and is never written again;
`golden/snapshot-vN.json` says what the processor in it was, and what it said next. Made once,
before a format is released, by

    python -m tests.engine.stream.released
"""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from tests.engine.stream.cases import stream

from abers.stream import Event, Label, Observation, Processor, Settings
from abers.stream.snapshot import MAGIC

FOLDER = Path(__file__).with_name("golden")
SETTINGS = Settings(
    window=10,
    scores="probability",
    probability="merged",
    label_timeout=600,
    allowed_lateness=100,
    max_pending=40,
    max_early=10,
    dedup_max_ids=60,
)
POSITION = {"scores.jsonl": {"offset": 12_345, "line": 321}}
NAMES = [(f"id-{i}", ("m", "ms", "")[i % 7 % 3]) for i in range(150)]
"""Ids and models of the observations, some of which still wait."""
LATER = ("dead:missing-field", "dead:not-utf8")
"""Counters that are newer than the file."""
TIME = 1_700_000_001_500
"""When the restored processor is asked."""


def spoken(processor: Processor) -> list[Any]:
    """Ask for all that a processor calibrates, waits for and remembers."""
    when: dict[str, Any] = {"time": TIME, "recorded": TIME}
    events: list[Event] = [
        *(Label(name, model=model, value=i % 2, **when) for i, (name, model) in enumerate(NAMES)),
        *(Observation(name, model=model, score=0.5, **when) for name, model in NAMES),
        *(
            Observation(f"{segment}-{a}", model=model, segment=segment, score=a / 5, **when)
            for model in ("m", "ms", "")
            for segment in ("", "s", "ss")
            for a in range(6)
        ),
    ]
    outputs = processor.process_many(events)
    # Of reasons of dead letters that are newer than the file there are none.
    counted = {name: one for name, one in processor.counters.items() if name not in LATER}
    return [*json.loads(msgspec.json.encode(outputs)), counted]


def digest(processor: Processor) -> str:
    """Digest the state, which other formats may write otherwise."""
    return blake2b(processor.state_bytes(), digest_size=16).hexdigest()


def present() -> Path:
    """Return the path of the file of the present format."""
    return FOLDER / f"snapshot-v{MAGIC[-1]}.bin"


def main() -> None:
    """Write the files of the present format."""
    processor = Processor(SETTINGS)
    processor.process_many(stream(len(NAMES), every=12)[:-20])
    path = present()
    path.write_bytes(processor.snapshot(POSITION))
    expected = {
        "position": POSITION,
        "clock": processor.clock,
        "counters": processor.counters,
        "state": digest(processor),
        "spoken": spoken(processor),
    }
    path.with_suffix(".json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

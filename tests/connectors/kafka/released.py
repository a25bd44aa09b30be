"""Changelogs of every released format, and how they are written.

`golden/changelog-vN.bin` was written by an abers of format N and is never written again;
`golden/changelog-vN.json` has its outputs. They are written once, before a format is released, by

    python -m tests.connectors.kafka.released
"""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from tests.engine.stream.cases import stream

from abers.stream import DeadLetter, Event, Events, Processor, Settings
from abers_connectors.runtime.task import MAGIC, Assembler, ChangelogRecord, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOLDER = Path(__file__).with_name("golden")
SETTINGS = Settings(
    window=30,
    scores="probability",
    probability="merged",
    label_timeout=600,
    max_pending=40,
    max_early=10,
    dedup_max_ids=60,
)
LIMIT = 2_000
SIZE = 40  # events of a batch
TOMBSTONE = 3  # row of one in each batch


def changelog_record(number: int, live: Processor, events: list[Event]) -> ChangelogRecord:
    """Process a batch of events with a tombstone, as one transaction would."""
    count = len(events) + 1
    _, entry = live.process_logged(Events.of(events))
    return ChangelogRecord(
        "0.1.0",
        number,
        ((number + 1) * (SIZE + 1), -1),
        bytes(count),
        np.arange(number * (SIZE + 1), number * (SIZE + 1) + count, dtype="<i8").tobytes(),
        [(TOMBSTONE, "tombstone")],
        entry,
    )


def batches() -> list[ChangelogRecord]:
    """Return the changelog records of a short life."""
    live, made = Processor(SETTINGS), stream(150, every=12)
    starts = range(0, len(made) - SIZE, SIZE)
    return [changelog_record(n, live, made[at : at + SIZE]) for n, at in enumerate(starts)]


def frames(blob: bytes) -> Iterator[bytes]:
    """Return the records of a file, in which each follows its length."""
    while blob:
        end = 4 + int.from_bytes(blob[:4], "little")
        yield blob[4:end]
        blob = blob[end:]


def lived(records: Iterable[bytes]) -> dict[str, Any]:
    """Replay a changelog; return its outputs and the state at its end."""
    processor, assembler, said = Processor(SETTINGS), Assembler(0), []
    last = None
    for one in filter(None, map(assembler.add, records)):
        last = one
        if one.entry is not None:
            said += processor.apply(one.entry).in_order()
    answers = [one for one in said if not isinstance(one, DeadLetter)]
    return {
        "number": last and last.number,
        "following": last and list(last.next_offsets),
        "said": blake2b(msgspec.json.encode(answers), digest_size=16).hexdigest(),
        "counters": processor.counters,
        "state": blake2b(processor.state_bytes(), digest_size=16).hexdigest(),
    }


def present() -> Path:
    """Return the path of the file of the present format."""
    return FOLDER / f"changelog-v{MAGIC[-1]}.bin"


def main() -> None:
    """Write the files of the present format."""
    records = [record for one in batches() for record in encode(one, LIMIT)]
    path = present()
    path.write_bytes(b"".join(len(one).to_bytes(4, "little") + one for one in records))
    path.with_suffix(".json").write_text(json.dumps(lived(records)) + "\n")


if __name__ == "__main__":
    main()

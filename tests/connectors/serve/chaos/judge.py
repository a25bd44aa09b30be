"""The check of what is left: one processor in memory takes the events in the order of the journal.

It takes batches of another size, so it repeats no step of the server.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from abers.stream import Event, Events, Follower, Label, Observation, Processor, accounts
from abers.stream.durable.journal_file import START, Frames, require_head
from abers_connectors.config.model import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.connectors.serve.chaos.ledger import Key, Ledger

    from abers.stream import Settings
    from abers.stream.journal import JournalEntry

__all__ = ["CheckResult", "followed", "judge"]

_BATCH = 777
# An event that is refused for a reason, by whether it is a label.
_REFUSED: dict[tuple[bool, str], Event] = {
    (False, "bad-time"): Observation("x", 1 << 60, score=0.5),
}


class CheckResult(NamedTuple):
    """The result; `lost` and `duplicates` should be 0."""

    events: int
    predictions: int
    labels: int
    lost: int
    duplicates: int
    accounts: dict[str, int]


def followed(state: Path, config: Path) -> Processor:
    """Return the processor that a reader of the folder of a server has."""
    settings = load(str(config), flags={"serve": {}}).settings()
    return Follower(state, settings, answers=True).processor


def judge(state: Path, kept: Path, config: Path, ledger: Ledger) -> CheckResult:
    """Check the folder of a server that has ended, and all that it answered.

    Parameters
    ----------
    state
        The folder.
    kept
        A folder with all files of its journal.
    config
        Its configuration.
    ledger
        What clients were answered.
    """
    restored = followed(state, config)
    replayed = _Replayed(_events(kept), restored.settings)
    keys = {key for key, _ in replayed.predicted}
    assert keys <= ledger.sent
    assert replayed.keys <= ledger.sent
    assert not replayed.keys & ledger.refused
    predicted, learned = dict(replayed.predicted), dict(replayed.learned)
    lost = [key for key, made in ledger.predicted.items() if predicted.get(key) != made]
    lost += [key for key, label in ledger.labelled.items() if learned.get(key) != label]
    duplicates = len(replayed.predicted) - len(predicted) + len(replayed.learned) - len(learned)
    assert restored.state_bytes() == replayed.processor.state_bytes()
    of = restored.accounts
    assert accounts.unbalanced(of) == []
    assert (of["predictions"], of["learned"]) == (len(predicted), len(learned))
    return CheckResult(
        of["events"], of["predictions"], of["learned"], len(lost), duplicates, accounts=of
    )


class _Replayed:
    """The outputs of one processor in memory."""

    def __init__(self, events: Iterator[Event], settings: Settings) -> None:
        self.processor = Processor(settings)
        self.keys: set[Key] = set()
        self.predicted: list[tuple[Key, dict[str, Any]]] = []
        self.learned: list[tuple[Key, int]] = []
        every = [*events]
        for start in range(0, len(every), _BATCH):
            batch = every[start : start + _BATCH]
            outputs = self.processor.process_batch(Events.of(batch))
            refused = {row for row, _ in outputs.dead_letters}
            self.keys.update(
                (one.model, one.id) for row, one in enumerate(batch) if row not in refused
            )
            for made in outputs.predictions:
                as_json = json.loads(msgspec.json.encode(made))
                self.predicted.append(((made.model, made.id), as_json))
            for one in outputs.outcomes or ():
                self.learned.append(((one.model, one.id), one.label))


def _events(kept: Path) -> Iterator[Event]:
    """Yield the events of all files of a journal, in their order."""
    number, models, keys = 0, [], []
    for file in sorted(kept.glob("*.journal")):
        data = file.read_bytes()
        require_head(data, number, str(file))
        frames = Frames(data[START:], START, str(file))
        for one in frames:
            number += 1
            models += one.entry.new_models
            keys += one.entry.new_keys
            yield from _of_entry(one.entry, models, keys)
        frames.require_whole()


def _of_entry(
    entry: JournalEntry, models: Sequence[str], keys: Sequence[tuple[str, str]]
) -> Iterator[Event]:
    """Yield the events of an entry."""
    refused = dict(entry.rejected)
    times = iter(np.frombuffer(entry.times, "<i8").tolist())
    names, ids = iter(np.frombuffer(entry.models, "<u4").tolist()), iter(entry.ids)
    pairs = iter(np.frombuffer(entry.keys, "<u4").tolist())
    scores = iter(np.frombuffer(entry.scores, "<f8").tolist())
    values = iter(np.frombuffer(entry.values, "<f8").tolist())
    for row, is_label in enumerate(map(bool, entry.labels)):
        if row in refused:
            yield _REFUSED[is_label, refused[row]]
            continue
        id_, time, model = next(ids), next(times), models[next(names)]
        if is_label:
            yield Label(id_, time, model, value=int(next(values)))
            continue
        known, segment = keys[next(pairs)]
        assert known == model
        yield Observation(id_, time, model, next(scores), segment=segment)

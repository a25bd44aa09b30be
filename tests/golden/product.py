"""All that the golden files ask of the product; no other module here imports it.

Each function drives a high-level interface and returns plain values, so that renaming something in
the product changes this module alone. Words that users write (keys of a configuration, options of
the command) come from the golden inputs, through the map of names.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import chdir
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from unittest.mock import patch

import msgspec
import numpy as np
from tests.golden.names import Names
from typer.testing import CliRunner

from abers import registry
from abers.stream import DeadLetter, Events, Label, Observation, Processor
from abers.stream.join import COUNTERS
from abers_connectors.cli.main import app
from abers_connectors.config.model import load
from abers_connectors.metrics.exposition import exposition
from abers_connectors.metrics.service_metrics import registry_of
from abers_connectors.replay.summary import summarize
from abers_connectors.runtime.application import NO_OFFSET, Checkpoint
from abers_connectors.runtime.batches import MergedRecords
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.serializer import Serializer
from abers_connectors.runtime.status import Status
from abers_connectors.runtime.task import Assembler, StreamTask, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from abers.stream import JournalEntry, Outputs, Settings
    from abers_connectors.runtime.serializer import OutputRecords
    from abers_connectors.runtime.task import ChangelogRecord

Flat: TypeAlias = dict[str, Any]

KEY = bytes(range(32))
WALL = 1_700_001_000.0
"""Wall-clock time, in seconds, at which metrics are asked for."""
SIZE = 40
"""Records of a transaction."""
LIMIT = 3_000
"""Bytes of a record of the changelog: some batches are in several."""


class Learner:
    """A learner whose scores depend on all that it has learned."""

    def __init__(self) -> None:
        """Begin with nothing learned."""
        self.count = self.positives = 0

    def score(self, x: dict[str, Any]) -> float:
        """Return the smoothed rate of label 1, shifted by the feature `a`."""
        rate: float = (self.positives + 1) / (2 * self.count + 2)
        return float(rate + x["a"]) / 2

    def learn(self, x: dict[str, Any], value: float, fold: int = 0) -> None:
        """Count the label, twice in every other fold."""
        if x.get("fail"):
            msg = "asked to fail"
            raise RuntimeError(msg)
        self.count += 1
        self.positives += int(value) * (1 + fold % 2)


class Record(NamedTuple):
    """A record of a topic."""

    value: bytes | None
    offset: int
    key: bytes | None
    headers: list[tuple[str, bytes]]
    timestamp: int
    topic: str = "scores"
    partition: int = 0


def plain(raw: bytes) -> Any:  # noqa: ANN401 - JSON
    """Read JSON of which nothing is lost by that: written again, it is the same."""
    found = msgspec.json.decode(raw)
    assert msgspec.json.encode(found) == raw
    return found


def written(struct: object) -> Any:  # noqa: ANN401 - JSON
    """Return what is written of a struct."""
    return plain(msgspec.json.encode(struct))


def defaults(config: Mapping[str, Any]) -> Flat:
    """Return all keys of a configuration with their values."""
    found: Flat = {}
    for key, value in load(flags=config, environ={}).values().items():
        *sections, name = key.split(".")
        within = found
        for section in sections:
            within = within.setdefault(section, {})
        within[name] = value
    for section in ("kafka", "learner", "schema_registry"):
        if not any(found.get(section, {}).values()):
            found[section] = None
    read: Flat = plain(msgspec.json.encode(found))
    return read


# The processor


class Said(NamedTuple):
    """What a processor said of a stream."""

    order: str
    """The kind of each output, in their order: p, o or d."""
    predictions: list[Flat]
    outcomes: list[Flat]
    dead_letters: list[Flat]
    alarms: list[Flat]
    settled: list[Flat]
    counters: Flat
    summary: Flat


class Life:
    """A processor that takes a stream of events in batches, and may be restarted."""

    def __init__(self, config: Mapping[str, Any], events: Sequence[Flat], *, learner: bool) -> None:
        self._settings = load(flags=config, environ={}).settings()
        self._events, self._learner = [*map(_event, events)], learner
        self._outputs: list[tuple[int, Outputs]] = []
        self._entries: list[JournalEntry] = []
        self._processor = self._new()

    def _new(self) -> Processor:
        return Processor(self._settings, learner=Learner() if self._learner else None)

    def take(self, batch: int, begin: int = 0, end: int | None = None) -> None:
        """Take a part of the stream."""
        end = len(self._events) if end is None else end
        for start in range(begin, end, batch):
            events = self._events[start : min(start + batch, end)]
            outputs, entry = self._processor.process_logged(Events.of(events))
            self._outputs.append((start, outputs))
            self._entries.append(entry)

    def restart(self) -> None:
        """Go on from a snapshot."""
        blob = self._processor.snapshot({"at": 1}, KEY, "here")
        learner = Learner() if self._learner else None
        restored = Processor.restore(blob, self._settings, key=KEY, owner="here", learner=learner)
        assert restored.position == {"at": 1}
        assert restored.state_bytes() == self._processor.state_bytes()
        self._processor = restored

    def redo(self) -> None:
        """Go on from what a new processor redid, which says the same."""
        redone = self._new()
        for (_, outputs), entry in zip(self._outputs, self._entries, strict=True):
            again = redone.apply(entry)
            assert _without_dead(again) == _without_dead(outputs)
            assert [*map(repr, again.alarms)] == [*map(repr, outputs.alarms)]
        self._processor = redone

    def said(self) -> Said:
        """Return all that was said."""
        found: dict[str, list[Flat]] = {"p": [], "o": [], "d": []}
        order, alarms, settled = [], [], []
        for start, outputs in self._outputs:
            for one in outputs.in_order():
                kind = _kind(one)
                order.append(kind)
                if isinstance(one, DeadLetter) and one.row is not None:
                    one = msgspec.structs.replace(one, row=one.row + start)  # noqa: PLW2901
                found[kind].append(written(one))
            alarms += [{"at": row + start, **written(one)} for row, one in outputs.alarms]
            if (batch := outputs.settled_batch) is not None:
                pairs = zip(batch.keys.tolist(), batch.delays.tolist(), strict=True)
                settled += [{"key": list(self._processor.keys[k]), "delay": d} for k, d in pairs]
        dead = Counter(one["reason"] for one in found["d"])
        summary = summarize([self._processor], len(self._events), dead, 0, 0.0)
        counters = dict(self._processor.counters)
        tables = found["p"], found["o"], found["d"]
        return Said("".join(order), *tables, alarms, settled, counters, written(summary))


def _event(given: Flat) -> Observation | Label:
    fields = dict(given)
    if "label" in fields:
        return Label(value=fields.pop("label"), **fields)
    extra = {"note": fields.pop("note")} if "note" in fields else None
    return Observation(extra=extra, **fields)


def _kind(output: object) -> str:
    return {"Prediction": "p", "Outcome": "o", "DeadLetter": "d"}[
        type(output).__name__.removeprefix("MultiClass").removeprefix("Regression")
    ]


def _without_dead(outputs: Outputs) -> list[str]:
    return [repr(one) for one in outputs.in_order() if not isinstance(one, DeadLetter)]


# The service, without a broker


class Served(NamedTuple):
    """What a service did of some records."""

    outgoing: list[Flat]
    changelog: list[Flat]
    metrics: list[str]


def served(config: Mapping[str, Any], records: Sequence[Record], *, restart: bool) -> Served:
    """Serve records, transaction by transaction; after half of them by another process."""
    loaded = load(flags=config, environ={})
    deserializer, serializer = Deserializer(loaded, partitions=2), Serializer(max_bytes=2_000)
    status = Status(60.0, clock=lambda: 100.0, wall=lambda: WALL)
    status.seats["tasks"].joined, status.seats["tasks"].last_heartbeat = True, 100.0
    second = loaded.second_input
    topics = ["scores", "labels"][: 1 + second]
    status.assign([(topic, 0) for topic in topics])
    beginning = Checkpoint("abers", 0, 0, 0, (0, 0 if second else NO_OFFSET))
    task = StreamTask(Processor(loaded.settings()), beginning)
    status.restored(task)
    outgoing: list[Flat] = []
    changelog: list[bytes] = []
    for number, start in enumerate(range(0, len(records), SIZE)):
        if restart and start >= len(records) / 2:
            task, restart = StreamTask(Processor(loaded.settings()), beginning), False
            _redone(task, changelog)
        some: list[Any] = [*records[start : start + SIZE]]
        taken = MergedRecords(some, [int(one.topic == "labels") for one in some])
        work = task.process(taken, deserializer, serializer)
        outgoing += _outgoing(work.output_records)
        changelog += encode(work.changelog_record, LIMIT)
        status.batch_committed(task, work)
        status.transaction_committed(0.002 * (number % 9))
    status.snapshot_finished(saved=True)
    status.transaction_aborted("a reason")
    status.webhook_called("sent")
    status.update_lags({(topic, 0): 3 for topic in topics})
    status.update_evidence([task])
    again = StreamTask(Processor(loaded.settings()), beginning)
    batches = _redone(again, changelog)
    assert again.processor.state_bytes() == task.processor.state_bytes()
    assert again.checkpoint == task.checkpoint
    text, _ = exposition(registry_of(status), "")
    lines = text.decode().splitlines()
    settings = loaded.settings()
    changes = [_batch(one, settings) for one in batches]
    return Served(outgoing, changes, [*filter(_is_ours, lines)])


def _is_ours(line: str) -> bool:
    """Leave out what is of this process, of this build and of this machine."""
    name = line.removeprefix("# HELP ").removeprefix("# TYPE ")
    return not name.startswith(("process_", "abers_build_info{", "abers_memory_limit_bytes{"))


def _redone(task: StreamTask, changelog: Sequence[bytes]) -> list[ChangelogRecord]:
    assembler = Assembler(0)
    batches = [one for one in map(assembler.add, changelog) if one is not None]
    for one in batches:
        task.apply(one)
    return batches


def _outgoing(records: Mapping[str, OutputRecords]) -> Iterator[Flat]:
    for sink, found in records.items():
        for key, value, headers, timestamp, reason in zip_longest(*found):
            yield {
                "sink": sink,
                "key": None if key is None else key.decode(),
                "timestamp": timestamp,
                "headers": {name: (raw or b"").decode(errors="replace") for name, raw in headers},
                "reason": reason,
                "value": plain(value),
            }


def _batch(record: ChangelogRecord, settings: Settings) -> Flat:
    """Decode what the changelog says of a batch, but for versions and digests of settings."""
    found: Flat = {
        "number": record.number,
        "following": list(record.next_offsets),
        "inputs": _column(record.inputs, "u1"),
        "offsets": _column(record.offsets, "<i8"),
        "dead": [row for row, _ in record.dead],
        "dead_reasons": [reason for _, reason in record.dead],
    }
    entry = record.entry
    if entry is None:
        return found
    counters = dict.fromkeys(COUNTERS, 0) | dict(zip(COUNTERS, entry.counters, strict=False))
    return found | {
        "labels": _column(entry.labels, "u1"),
        "refused": [row for row, _ in entry.rejected],
        "refused_reasons": [reason for _, reason in entry.rejected],
        "ids": entry.ids,
        "times": _column(entry.times, "<i8"),
        "new_models": entry.new_models,
        "new_keys": [list(key) for key in entry.new_keys],
        "models": _column(entry.models, "<u4"),
        "keys": _column(entry.keys, "<u4"),
        "scores": _column(entry.scores, "<f8"),
        "values": _column(entry.values, "<f8"),
        "answers": _column(_answers(entry, settings), "<f8"),
        "held": _column(entry.n_labels, "<i8"),
        "features": entry.features,
        "extra": msgspec.json.decode(entry.extra) if entry.extra else None,
        "counters": [counters[name] for name in Names.read().known["counters"]],
        "retired": entry.retired,
    }


def _answers(entry: JournalEntry, settings: Settings) -> bytes:
    """Return the predictions of an entry, of intervals the ends: their merge came later."""
    able = registry.capabilities(settings.calibrator_name, settings.task)
    if able.answer != "interval":
        return entry.predictions
    return np.frombuffer(entry.predictions, "<f8").reshape(-1, 3)[:, :2].tobytes()


def _column(raw: bytes, kind: str) -> list[Any]:
    """Return numbers; those that are none, or infinite, as texts."""
    values: list[Any] = np.frombuffer(raw, kind).tolist()
    return [one if -1e300 < one < 1e300 else repr(one) for one in values]


# The command


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str


def command(folder: Path, *words: str) -> Ran:
    """Run `abers` in a folder."""
    env = {"COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1"}
    with chdir(folder), patch.object(sys, "argv", ["abers"]):
        ran = CliRunner().invoke(app, words, env=env)
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return Ran(ran.exit_code, ran.stdout, ran.stderr)

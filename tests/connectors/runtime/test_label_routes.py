from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from abers.exceptions import StateError
from abers.stream import Settings
from abers_connectors.runtime.batches import LABELS, OBSERVATIONS
from abers_connectors.runtime.deserializer import model_of, refusal_of
from abers_connectors.runtime.label_routes import (
    LabelColumns,
    LabelRouting,
    RoutedLabels,
    RoutingLimits,
    RoutingPosition,
)

pytestmark = pytest.mark.native

KEY = bytes(range(32))
START = RoutingPosition(0, 0)
OWNER = "fraud-router[3]"
LIMITS = RoutingLimits(span=320, jump=1 << 53, ids=1000, models=10, labels=100, bytes=1 << 20)


class Read(NamedTuple):
    """A record of an input, with what is decoded of it."""

    offset: int
    id: str
    time: int
    model: str | None = None
    topic: str = "events"
    partition: int = 3
    timestamp: int = 7
    key: bytes | None = b"k"
    value: bytes | None = b"v"
    headers: tuple[tuple[str, bytes | None], ...] = (("trace", b"1"),)

    @property
    def which(self) -> int:
        """The input: only observations have a model here."""
        return LABELS if self.model is None else OBSERVATIONS


def columns(reads: list[Read]) -> LabelColumns:
    """Return what `LabelRouting.route` takes."""
    times = np.array([one.time for one in reads], np.int64)
    ids, models = [one.id for one in reads], [one.model for one in reads]
    return LabelColumns(reads, [one.which for one in reads], ids, models, times)


def shown(routed: RoutedLabels) -> list[tuple[int, int, str | None]]:
    """Return input, offset and model or reason of records."""
    found = []
    for record, which, model, header in zip(
        routed.records, routed.inputs, routed.models, routed.headers, strict=True
    ):
        refusal = refusal_of([] if header is None else [header])
        assert (model is None) == (refusal is not None)
        found.append((which, record.offset, model if refusal is None else refusal.reason))
    return found


def route(routing: LabelRouting, *reads: Read) -> list[tuple[int, int, str | None]]:
    """Route records together, and return what is written."""
    return shown(routing.route(columns([*reads])))


def test_a_label_goes_to_the_model_of_its_observation() -> None:
    """A label is written with the model of its observation in a header."""
    routing = LabelRouting(LIMITS)
    observation, label = Read(0, "a", 10, "fraud"), Read(0, "a", 20)
    routed = routing.route(columns([observation, label]))
    assert (routed.records, routed.rows) == ([observation, label], [0, 1])
    assert (routed.inputs, routed.models) == ([0, 1], ["fraud", "fraud"])
    assert routed.headers == [None, ("abers.model", b"fraud")]


def test_an_early_label_goes_out_after_its_observation() -> None:
    """A label waits as it was read, and is written right after its observation."""
    routing = LabelRouting(LIMITS)
    label = Read(5, "a", 20)
    assert route(routing, label) == []
    assert (routing.waiting, routing.first_waiting) == (1, 5)
    routed = routing.route(columns([Read(0, "b", 1, "m"), Read(1, "a", 2, "n"), Read(6, "b", 3)]))
    assert shown(routed) == [(0, 0, "m"), (0, 1, "n"), (1, 5, "n"), (1, 6, "m")]
    assert routed.rows == [0, 1, 1, 2]
    late = routed.records[2]
    assert [late.key, late.value, late.timestamp, late.topic] == [b"k", b"v", 7, "events"]
    assert [*late.headers] == [("trace", b"1")]
    assert routing.first_waiting is None


def test_labels_without_a_model_have_a_reason() -> None:
    """An unknown id is refused after the span, and an id of two models at once."""
    routing = LabelRouting(LIMITS)
    two = [Read(0, "a", 0, "m"), Read(1, "a", 0, "n")]
    assert route(routing, *two, Read(0, "a", 5), Read(1, "x", 5))[2:] == [(1, 0, "ambiguous-id")]
    assert route(routing, Read(2, "b", 400, "m")) == [(0, 2, "m"), (1, 1, "unknown-id")]


def test_a_label_with_a_model_is_not_looked_up() -> None:
    """A label that names its model goes there, known or not, and with no header."""
    routing = LabelRouting(LIMITS)
    label = Read(0, "a", 5)
    routed = routing.route(LabelColumns([label], [LABELS], ["a"], ["m"], np.array([5])))
    assert (routed.models, routed.headers) == (["m"], [None])


def test_too_many_labels_do_not_wait() -> None:
    """Beyond the limits of number and bytes the labels that came first are refused."""
    labels = [Read(offset, str(offset), 5) for offset in range(6)]
    few = LabelRouting(LIMITS._replace(labels=2))
    assert route(few, *labels) == [(1, offset, "unknown-id") for offset in range(4)]
    assert (few.first_waiting, few.waiting) == (4, 2)
    small = LabelRouting(LIMITS._replace(bytes=1000))
    assert route(small, *labels) == [(1, offset, "unknown-id") for offset in range(4)]
    assert route(small, Read(0, "4", 5, "m")) == [(0, 0, "m"), (1, 4, "m")]


def test_models_are_limited() -> None:
    """An observation of one model too many is written, but its labels do not find it."""
    routing = LabelRouting(LIMITS._replace(models=2))
    reads = [Read(n, model, n, model) for n, model in enumerate("abc")]
    assert route(routing, *reads) == [(0, 0, "a"), (0, 1, "b"), (0, 2, "c")]
    assert route(routing, Read(0, "b", 2), Read(1, "c", 2)) == [(1, 0, "b")]
    assert route(routing, Read(3, "a", 10**6, "a"))[1:] == [(1, 1, "unknown-id")]
    assert route(routing, Read(4, "d", 10**6, "d"), Read(5, "d", 10**6))[1:] == [(1, 5, "d")]


def test_numbers_of_models_are_used_again() -> None:
    """Models without ids make room for others, also within a batch."""
    routing = LabelRouting(LIMITS._replace(models=2))
    reads = [Read(n, str(n), 1000 * n, f"model {n}") for n in range(20)]
    labels = [Read(n, str(n), 1000 * n) for n in range(20)]
    mixed = [one for pair in zip(reads, labels, strict=True) for one in pair]
    assert [found for *_, found in route(routing, *mixed)][1::2] == [one.model for one in reads]


def test_limits_are_those_of_the_tasks() -> None:
    """The index has room for the ids of a task, and for the models of all tasks."""
    settings = Settings(label_timeout=1000, allowed_lateness=20, max_jump=7, max_early=5)
    assert RoutingLimits.of(settings, tasks=16) == (
        *(1020, 7, settings.max_bytes // 110),
        *(16_000, 5, settings.max_bytes),
    )


def test_a_snapshot_is_sealed() -> None:
    """Damaged snapshots and those of another owner, key or span are refused."""
    routing = LabelRouting(LIMITS, KEY)
    route(routing, Read(0, "a", 10, "m"), Read(0, "b", 10))
    blob = routing.snapshot(RoutingPosition(1, 1), OWNER)
    restored, position = LabelRouting.restore(LIMITS, blob, KEY, OWNER)
    assert position == RoutingPosition(1, 1)
    assert restored.snapshot(position, OWNER) == blob
    for at in range(len(blob)):
        with pytest.raises(StateError):
            LabelRouting.restore(LIMITS, blob[:at] + b"\x99" + blob[at + 1 :], KEY, OWNER)
    for limits, key, owner in (
        (LIMITS, None, OWNER),
        (LIMITS, KEY[::-1], OWNER),
        (LIMITS, KEY, "fraud-router[4]"),
        (LIMITS._replace(span=5000), KEY, OWNER),
    ):
        with pytest.raises(StateError):
            LabelRouting.restore(limits, blob, key, owner)


def test_headers_of_others_mean_nothing() -> None:
    """Only the last header is the router's, and records may have others of that name."""
    assert model_of([("abers.model", b"m"), ("trace", b"1")]) is None
    assert model_of([("abers.model", b"m"), ("abers.model", b"n")]) == "n"
    assert refusal_of([("abers.model", b"m")]) is None
    assert refusal_of([("abers.refused", b"another")]) is None
    assert (model_of([]), refusal_of([])) == (None, None)


STEPS = st.sampled_from([0, 10, 160, 160, 310, 330, -10])
ROWS = st.lists(
    st.tuples(st.booleans(), st.sampled_from("abcd"), STEPS, st.sampled_from("mno")),
    min_size=20,  # short inputs show little
    max_size=50,
)


SWAPS = st.lists(st.sampled_from([False, False, True]), min_size=1, max_size=8)
MERGES = st.sampled_from(["observations first", "labels first", "one by one"])


def inputs_of(rows: list[tuple[bool, str, int, str]]) -> tuple[list[Read], list[Read]]:
    """Return observations and labels: whether it is one, id, time since the one before, model."""
    parts: tuple[list[Read], list[Read]] = ([], [])
    time = 0
    for is_label, id_, step, model in rows:
        time += step
        to = parts[is_label]
        number = len(parts[0]) + len(parts[1])
        to.append(Read(len(to), id_, time, None if is_label else model, timestamp=number))
    return parts


@given(ROWS, st.randoms(use_true_random=False))
def test_batches_show_nowhere(rows: list[tuple[bool, str, int, str]], random: Any) -> None:  # noqa: ANN401
    """Records taken one by one are written as those of one batch."""
    limits = LIMITS._replace(models=2, ids=6)
    merged = [one for part in inputs_of(rows) for one in part]
    random.shuffle(merged)
    merged.sort(key=lambda one: one.offset)
    whole, single = LabelRouting(limits), LabelRouting(limits)
    found = [one for read in merged for one in route(single, read)]
    assert found == route(whole, *merged)


@dataclass
class Durable:
    """What outlasts a kill: the committed position, what was written, and snapshots."""

    position: RoutingPosition
    first_waiting: int | None = None
    written: list[tuple[int, int, str | None]] = field(default_factory=list)
    snapshots: list[bytes] = field(default_factory=list)


class Kills(RuleBasedStateMachine):
    """A router that is killed at any time, next to one that is not.

    Both take the same batches, as far as they are committed. What is not committed is lost, and may
    be merged in another way when it is read again.
    """

    @initialize(
        rows=ROWS,
        jump=st.sampled_from([1 << 53, 1 << 53, 0, 30]),
        ids=st.sampled_from([1, 8, 1000, 1000]),
        models=st.sampled_from([2, 10, 10]),
        labels=st.sampled_from([1, 3, 100, 100]),
    )
    def begin(
        self, rows: list[tuple[bool, str, int, str]], jump: int, ids: int, models: int, labels: int
    ) -> None:
        """Write the inputs."""
        self.limits = LIMITS._replace(jump=jump, ids=ids, models=models, labels=labels)
        self.inputs = inputs_of(rows)
        self.steady, self.killed = LabelRouting(self.limits, KEY), LabelRouting(self.limits, KEY)
        self.durable = Durable(START)
        self.steady_written: list[tuple[int, int, str | None]] = []

    def merged(self, swaps: list[bool]) -> list[Read]:
        """Return the next records of both inputs: each the earlier of two, or else the later."""
        at, reads = [*self.durable.position], []
        for swap in swaps:
            pairs = zip(self.inputs, at, strict=True)
            if heads := [part[start] for part, start in pairs if start < len(part)]:
                heads.sort(key=lambda one: one.timestamp)
                reads.append(heads[-1 if swap else 0])
                at[reads[-1].which] += 1
        return reads

    def after(self, reads: list[Read]) -> RoutingPosition:
        """Return the position after records."""
        at = [*self.durable.position]
        for one in reads:
            at[one.which] = one.offset + 1
        return RoutingPosition(*at)

    def committed(self) -> tuple[list[Read], list[Read]]:
        """Return the records before the committed position."""
        observations, labels = self.inputs
        return observations[: self.durable.position[0]], labels[: self.durable.position[1]]

    @rule(swaps=SWAPS)
    def commit(self, swaps: list[bool]) -> None:
        """Route a batch, and commit it."""
        reads = self.merged(swaps)
        written = route(self.killed, *reads)
        self.durable.position = self.after(reads)
        if LABELS in {one.which for one in reads}:  # it is committed with the offset of labels
            self.durable.first_waiting = self.killed.first_waiting
        self.durable.written += written
        self.steady_written += route(self.steady, *reads)

    def restored(self, newest: int, merged: str) -> LabelRouting:
        """Return the router of the commit: a snapshot, or none, and the records after it."""
        routing, position = LabelRouting(self.limits, KEY), START
        if newest <= len(self.durable.snapshots):
            blob = self.durable.snapshots[-newest]
            routing, position = LabelRouting.restore(self.limits, blob, KEY, OWNER)
        parts = zip(self.committed(), position, strict=True)
        observations, labels = (part[start:] for part, start in parts)
        reads = [*labels, *observations] if merged == "labels first" else [*observations, *labels]
        if merged == "one by one":
            reads.sort(key=lambda one: one.offset)
        routing.replay(columns(reads))
        routing.resume(self.durable.first_waiting)
        return routing

    @rule(swaps=SWAPS, newest=st.integers(1, 6), merged=MERGES)
    def kill(self, swaps: list[bool], newest: int, merged: str) -> None:
        """Kill the router within a batch, and restore it."""
        route(self.killed, *self.merged(swaps))
        self.killed = self.restored(newest, merged)

    @precondition(lambda self: len(self.durable.snapshots) < 6)
    @rule()
    def save(self) -> None:
        """Save a snapshot of what is committed."""
        self.durable.snapshots.append(self.killed.snapshot(self.durable.position, OWNER))

    @invariant()
    def same(self) -> None:
        """Both routers wrote the same, each record at most once, and have the same state."""
        assert self.durable.written == self.steady_written
        names = [(which, offset) for which, offset, _ in self.steady_written]
        assert len(names) == len({*names})
        observations, labels = self.committed()
        assert len(names) + self.steady.waiting == len(observations) + len(labels)
        position = self.durable.position
        assert self.killed.snapshot(position, OWNER) == self.steady.snapshot(position, OWNER)

    @invariant()
    def follows(self) -> None:
        """Every snapshot makes the same state with the records after it, merged in any way."""
        wanted = self.steady.snapshot(self.durable.position, OWNER)
        for newest in {1, len(self.durable.snapshots), 7} - {0}:
            for merged in ("observations first", "labels first"):
                routing = self.restored(newest, merged)
                assert routing.snapshot(self.durable.position, OWNER) == wanted

    @invariant()
    def right(self) -> None:
        """No label has a model that its observations do not have."""
        models: dict[str, set[str | None]] = {}
        for one in self.committed()[0]:
            models.setdefault(one.id, set()).add(one.model)
        for which, offset, found in self.steady_written:
            of_id = models.get(self.inputs[which][offset].id, set())
            reasons = {"unknown-id"} | ({"ambiguous-id"} if len(of_id) > 1 else set())
            assert found in of_id | reasons


TestKills = Kills.TestCase

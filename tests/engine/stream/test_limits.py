"""Limits of what a processor holds, and counts of what it drops, `abers.stream.processor`."""

from __future__ import annotations

import sys
from collections import Counter

import msgspec
import pytest
from tests.engine.stream.cases import MODELS, Scorer, stream
from tests.engine.stream.naive import COUNTERS, ENTRY_BYTES
from tests.engine.stream.replies import (
    NOW,
    counted,
    identities,
    kinds,
    lab,
    obs,
    only,
    processor,
)

from abers.stream import Event, Label, Observation, Prediction, Processor, Settings

PENDING_BYTES = ENTRY_BYTES[0]

# Limits on what waits


def test_eviction() -> None:
    """Beyond `max_pending` the observation that came first goes, as if it had expired."""
    p = processor(max_pending=2)
    p.process_many([obs("a", 5), obs("b", 1), obs("c", 3)])
    assert (p.counters["evicted"], p.counters["expired"]) == (1, 0)
    assert p.process(lab("a", 5)) == []
    assert p.counters["late_labels"] == 1
    assert kinds(p.process_many([lab("c"), lab("b")])) == ["Outcome", "Outcome"]


def test_eviction_goes_by_arrival() -> None:
    """A duplicate does not renew the place of an observation, and a settled one leaves its own."""
    p = processor(max_pending=2)
    p.process_many([obs("a"), obs("b"), lab("a"), obs("c"), obs("b"), obs("d")])
    assert p.counters["evicted"] == 1
    assert kinds(p.process_many([lab("b"), lab("c"), lab("d")])) == ["Outcome", "Outcome"]
    assert p.counters["late_labels"] == 1


@pytest.mark.native
@pytest.mark.parametrize("probability", ["merged", "protected"])
def test_a_lost_label_holds_back_those_of_its_class(probability: str) -> None:
    """Where all labels are of one class they teach after 4,096 predictions, or `max_pending`.

    And after 15 more, which have five labels of the class that did not come, as far as is known.
    """
    p = processor(max_pending=10, probability=probability)
    events: list[Event] = [obs("lost")]
    for number in range(4_115):
        events += [obs(f"{number}"), lab(f"{number}", value=0)]
    found = [one.n_labels for one in p.process_many(events) if isinstance(one, Prediction)]
    assert found[:4_113] == [0] * 4_113
    assert found[4_113:] == [*range(4_112, 4_115)]


@pytest.mark.native
@pytest.mark.parametrize(("probability", "numbers"), [("merged", 1), ("protected", 17)])
def test_labels_that_wait_to_teach_are_within_the_bytes(probability: str, numbers: int) -> None:
    """Lost labels hold back others only as long as what these keep fits into `max_bytes`."""
    names, room = tuple(f"c{number}" for number in range(100)), 300_000
    score = dict.fromkeys(names, 0.01)
    settings = Settings(task="multiclass", classes=names, scores="probability", max_bytes=room)
    p = Processor(msgspec.structs.replace(settings, probability=probability))
    came, most, taught = 0, 0, 0
    for number in range(600):
        lost = number % 40 == 0
        taught = only(p.process(obs(f"{number}", score=score))).n_labels
        if not lost:
            p.process(lab(f"{number}", value="c0"))
        most = max(most, came - taught)
        came += not lost
    assert p.counters["evicted"] == 0
    assert most <= room // (8 * numbers * len(names)) < 2 * most
    assert 0 < taught < came


def test_settled_at_once_evicts_nothing() -> None:
    """An observation whose label is there already evicts none."""
    p = processor(max_pending=1)
    p.process_many([obs("a"), lab("b"), obs("b")])
    assert p.counters["evicted"] == 0
    assert kinds(p.process(lab("a"))) == ["Outcome"]


def test_too_many_early_labels() -> None:
    """Beyond `max_early` the label that came first is a dead letter."""
    p = processor(max_early=2)
    outputs = p.process_many([lab("a"), lab("b"), lab("c")])
    dead_letter = only(outputs)
    assert (dead_letter.reason, dead_letter.event.id, dead_letter.row) == ("unknown-id", "a", None)
    assert counted(
        p,
        labels_in=3,
        early_labels=3,
        evicted_labels=1,
        **{"unknown_labels": 1, "dead:unknown-id": 1},
    )


def test_limits_are_of_each_model() -> None:
    """What waits and what is remembered is limited for each model, whatever others there are."""
    p = processor(max_pending=1, max_early=1, dedup_max_ids=1)
    p.process_many([obs("a", model="m"), obs("a", model="n")])
    assert (p.counters["evicted"], p.waiting[0]) == (0, 2)
    assert p.process_many([lab("x", model="m"), lab("x", model="n")]) == []
    p.process_many([lab("a", model="m"), lab("a", model="n")])
    assert (p.counters["forgotten"], p.held[1]) == (0, 2)
    p.process_many([obs("b", model="m"), obs("c", model="m")])
    assert (p.counters["evicted"], p.counters["forgotten"], p.waiting[0]) == (1, 1, 1)
    gone = only(p.process(lab("y", model="n")))
    assert (gone.event.id, gone.event.model) == ("x", "n")


def test_the_oldest_of_all_models_goes_for_the_bytes() -> None:
    """Only `max_bytes` is of all models: what came first goes, though its model is idle."""
    p = processor(max_bytes=2 * (PENDING_BYTES + 1) + ENTRY_BYTES[2] + 1)
    p.process_many([obs("a", model="idle"), obs("a", model="m"), obs("b", model="m")])
    assert (p.counters["evicted"], p.waiting[0]) == (1, 2)
    assert p.process(lab("a", model="idle")) == []
    assert kinds(p.process_many([lab("a", model="m"), lab("b", model="m")])) == ["Outcome"] * 2


# Too many models


def test_too_many_models() -> None:
    """A new model beyond `max_models` is refused, those there are go on."""
    p = processor(max_models=2)
    p.process_many([obs("a", model="m"), obs("a", model="n")])
    assert only(p.process(obs("b", model="o"))).reason == "too-many-models"
    assert only(p.process(lab("a", model="o"))).reason == "too-many-models"
    assert kinds(p.process(obs("b", model="m"))) == ["Prediction"]
    assert p.counters["dead:too-many-models"] == 2


def test_label_brings_a_model() -> None:
    """A label makes its model known, too."""
    p = processor(max_models=1)
    p.process(lab("a", model="m"))
    assert only(p.process(obs("a", model="n"))).reason == "too-many-models"
    assert kinds(p.process(obs("a", model="m"))) == ["Prediction", "Outcome"]


def test_too_many_segments() -> None:
    """Segments of all models together are at most `max_models` too."""
    p = processor(max_models=3)
    p.process_many([obs(f"{i}", model="m", segment=s) for i, s in enumerate(["", "s", "t", "s"])])
    assert p.counters["predictions"] == 4
    assert only(p.process(obs("x", model="m", segment="u"))).reason == "too-many-models"
    assert only(p.process(obs("x", model="n", segment=""))).reason == "too-many-models"
    assert p.process(lab("x", model="n")) == []
    assert kinds(p.process(lab("3", model="m"))) == ["Outcome"]


def test_duplicate_brings_its_segment() -> None:
    """A segment is known from its first accepted observation on, be it a duplicate."""
    p = processor(max_models=2)
    p.process_many([obs("a"), obs("a", segment="s")])
    assert only(p.process(obs("b", segment="t"))).reason == "too-many-models"
    assert only(p.process(obs("a", segment="t"))).reason == "too-many-models"
    assert kinds(p.process(obs("b", segment="s"))) == ["Prediction"]


@pytest.mark.parametrize("unusual", [[], [obs("")]], ids=["plain", "with a dead letter"])
def test_too_many_at_once(unusual: list[Event]) -> None:
    """The caps count what the same batch brought before."""
    segments = [obs(s, segment=s) for s in "stuv"]
    said = processor(max_models=3).process_many([*unusual, *segments, *segments])
    assert kinds(said)[len(unusual) :] == ["Prediction"] * 3 + ["too-many-models"] * 2
    models = [lab(m, model=m) for m in "mnop"]
    said = processor(max_models=3).process_many([*unusual, *models, *models])
    assert kinds(said)[len(unusual) :] == ["too-many-models"] * 2


def test_refused_event_brings_no_model() -> None:
    """An event that is refused leaves the place of its model free."""
    p = processor(max_models=1)
    p.process_many(
        [obs("a", model="m", score=None), lab("a", model="n", value=5), obs("", model="o")]
    )
    assert kinds(p.process(obs("a", model="p"))) == ["Prediction"]


# Bytes


def held(p: Processor) -> int:
    """Count the bytes of the pending store, which no public call shows."""
    return sys.getsizeof(p._state.join.store)  # noqa: SLF001


def test_finished_ids_go_first() -> None:
    """Beyond `max_bytes` the oldest finished ids go, then labels that wait, then observations."""
    p = processor(max_bytes=3 * (PENDING_BYTES + 2))
    p.process_many([obs("aa"), lab("aa"), lab("ee"), obs("bb")])
    assert p.counters["forgotten"] == 0
    p.process(obs("cc"))
    assert (p.counters["forgotten"], p.counters["dead:unknown-id"]) == (1, 0)
    assert kinds(p.process(obs("dd"))) == ["unknown-id", "Prediction"]
    assert (p.counters["evicted"], p.waiting) == (0, (3, 0))
    p.process(obs("ff"))
    assert (p.counters["evicted"], p.waiting[0]) == (1, 3)


def test_features_count() -> None:
    """The features of what waits count among its bytes, as MessagePack, until they are learned."""
    x = {"a": 0.5, "more": "x" * 100}
    size = len(msgspec.msgpack.encode(x))
    kept = PENDING_BYTES + size + 1
    p = Processor(Settings(max_bytes=2 * kept + ENTRY_BYTES[2] + 1), learner=Scorer())
    p.process_many([obs(id_, x=x) for id_ in "abc"])
    assert (p.counters["evicted"], p.waiting[0]) == (1, 2)
    p.process(lab("b"))
    p.process(obs("d", x=x))
    assert (p.counters["evicted"], p.waiting[0]) == (1, 2)
    assert sum(one is not None for one in p._state.join.learners.features) == 2  # type: ignore[union-attr]  # noqa: SLF001


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (Settings(scores="probability"), 8 * 37),
        (Settings(scores="probability", window=9), 8 * 37),
        (Settings(scores="probability", probability="merged"), 0),
    ],
    ids=["protected", "with a window", "merged"],
)
def test_what_experts_keep_counts(settings: Settings, kept: int) -> None:
    """Weights, forecasts and features count as long as an observation is pending."""
    whole = PENDING_BYTES + kept + 1
    p = Processor(msgspec.structs.replace(settings, max_bytes=2 * whole + ENTRY_BYTES[2] + 1))
    p.process_many([obs("a"), obs("b")])
    assert (p.counters["evicted"], p.waiting[0]) == (0, 2)
    p.process_many([lab("a"), obs("c")])
    assert (p.counters["evicted"], p.counters["forgotten"], p.waiting[0]) == (0, 0, 2)
    p.process(obs("d"))
    assert (p.counters["evicted"], p.counters["forgotten"], p.waiting[0]) == (1, 1, 2)


def test_long_ids_take_no_more_than_the_bytes_allowed() -> None:
    """Two thousand ids of 200 bytes with labels hold no more than `max_bytes` allows."""
    p = processor(max_bytes=100_000)
    for i in range(2_000):
        name = f"{i:0200d}"
        p.process_many([obs(name), lab(name)])
    assert p.counters["labels"] == 2_000
    assert held(p) < 100_000 * 1.5


# Counters


def test_counters_are_all_there_from_the_start() -> None:
    """Every counter has its name from the start, and no other appears."""
    p = Processor()
    assert p.counters == dict.fromkeys(COUNTERS, 0)
    p.process_many(stream(100, every=5))
    assert set(p.counters) == set(COUNTERS)


@pytest.mark.parametrize("learner", [None, Scorer()], ids=["scores", "learner"])
def test_counters_add_up(learner: Scorer | None) -> None:
    """Every event is predicted, learned, waiting, a duplicate, late, or a dead letter."""
    settings = Settings(label_timeout=1000, max_pending=20, max_early=1, dedup_max_ids=12)
    p = Processor(settings, learner=learner)
    events = stream(500, every=10)
    outputs = p.process_many(events)
    counts = Counter(kinds(outputs))
    assert min(p.counters[n] for n in ("expired", "evicted", "unknown_labels", "forgotten")) > 0
    assert p.counters["observations"] == sum(isinstance(e, Observation) for e in events)
    assert p.counters["labels_in"] == sum(isinstance(e, Label) for e in events)
    assert p.counters["predictions"] == counts["Prediction"]
    assert p.counters["labels"] == counts["Outcome"]
    for name, count in p.counters.items():
        if name.startswith("dead:"):
            assert count == counts[name.removeprefix("dead:")]
    for model in MODELS:  # now no label waits any longer
        p.process_many([obs(f"last-{i}", 2 * NOW, model=model, x={}) for i in range(3)])
    identities(p, waiting=0)


def test_slots_are_used_again() -> None:
    """Slots are reused: a long stream takes no more memory than what waits."""
    p = processor(max_pending=5, dedup_max_ids=5)
    for i in range(100):
        p.process_many([obs(f"{i}-{j}", i) for j in range(3)] + [lab(f"{i}-0", i)])
    assert p._state.join.store.capacity() <= 5 + 2 * 4  # noqa: SLF001 - it cannot be seen otherwise

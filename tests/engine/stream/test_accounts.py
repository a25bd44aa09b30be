"""The accounts of a stream, `abers.stream.accounts`: whatever comes ends once, or waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.stream.cases import (
    DRAWS,
    SETTINGS,
    Scorer,
    events,
    stream,
)
from tests.engine.stream.replies import lab, obs, processor
from tests.engine.stream.test_tasks import TASKS

from abers.stream import (
    DeadLetter,
    Event,
    Events,
    Label,
    Observation,
    Processor,
    Settings,
    accounts,
    state,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

DAY = 86_400_000
LIVES = {"binary": (SETTINGS, DRAWS), **{name: one[:2] for name, one in TASKS.items()}}
CALLS = st.lists(st.sampled_from("ssssbbbbjjrn"), min_size=60, max_size=60)
"""How each event is processed: alone, in a batch, logged, or after a restore or a reset."""


@st.composite
def hostile(draw: st.DrawFn, task: str, *, learns: bool) -> tuple[Settings, list[Event]]:
    """Draw settings under which models retire, and events of them."""
    some, draws = LIVES[task]
    wanted = msgspec.structs.replace(
        draw(some), retire_after=draw(st.sampled_from((None, 0, 5))), monitors=False
    )
    if learns:
        wanted = msgspec.structs.replace(wanted, max_bytes=10**9)
    return wanted, events(draw(st.lists(draws, max_size=60)))


def followed(live: Processor, other: Processor, batch: Sequence[Event]) -> None:
    """Let one processor take a batch, and the other apply its journal."""
    if batch:
        _, entry = live.process_logged(Events.of(list(batch)))
        other.apply(entry)


def closed(p: Processor) -> None:
    """Check that both accounts close, by the sums that they are defined by."""
    c, of = p.counters, p.accounts
    dead = sum(count for name, count in c.items() if name.startswith("dead:")) - c["unlearned"]
    assert c["observations"] + c["labels_in"] == sum(
        (
            *(c["predictions"], c["duplicate_observations"]),
            *(c["labels"], c["duplicate_labels"], c["late_labels"]),
            *(dead, p.waiting[1]),
        )
    )
    assert c["predictions"] == sum(
        (
            *(c["labels"], c["assumed"], c["expired"], c["evicted"]),
            of["waiting_observations"],
        )
    )
    assert of["waiting_observations"] <= p.waiting[0]
    assert accounts.unbalanced(of) == []


@pytest.mark.parametrize("learns", [False, True], ids=["scores", "learner"])
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
@given(data=st.data(), calls=CALLS)
def test_the_accounts_close(data: st.DataObject, task: str, calls: str, *, learns: bool) -> None:
    """After every call both accounts close, in a processor and in one that applies its journal."""
    wanted, made = data.draw(hostile(task, learns=learns))
    learner = (TASKS[task][2] if task in TASKS else Scorer) if learns else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "_MIN_CLOCK_EVENTS", 3)
        live, other = (Processor(wanted, learner=learner and learner()) for _ in range(2))
        held: list[Event] = []
        for one, call in zip(made, calls, strict=False):
            held.append(one)
            if call == "b":
                continue
            if call == "s" and not learns:
                for each in held:
                    live.process(each)
                    other.process(each)
                    closed(live)
            else:
                followed(live, other, held)
            held = []
            if call == "r" and not learns:
                live = Processor.restore(live.snapshot(), wanted)
            if call == "n" and live.keys:
                for p in (live, other):
                    p.reset_model(live.keys[0][0])
            closed(live)
            assert other.accounts == live.accounts


@given(data=st.data())
@settings(max_examples=20)
def test_ends_are_what_came_out(data: st.DataObject) -> None:
    """The ends of the accounts are the outputs: predictions, outcomes and dead letters."""
    wanted, made = data.draw(hostile("binary", learns=False))
    p = Processor(wanted)
    outputs = p.process_many(made)
    found = [type(one).__name__ for one in outputs]
    of = p.accounts
    assert of["predictions"] == found.count("Prediction")
    outcomes: list[Any] = [one for one in outputs if type(one).__name__ == "Outcome"]
    assert of["assumed"] == sum(one.assumed for one in outcomes)
    assert of["learned"] == sum(not one.assumed and not one.late for one in outcomes)
    assert of["dead_letters"] == sum(isinstance(one, DeadLetter) for one in outputs)
    assert of["observations"] == sum(isinstance(one, Observation) for one in made)
    assert of["labels"] == sum(isinstance(one, Label) for one in made)


def test_labels_that_come_after_the_time_out() -> None:
    """Labels 8 days late under a time-out of 7 days are late, and their delays are known."""
    p = Processor()
    made = [obs(f"{n}", n * DAY // 144) for n in range(1_000)]
    made_late = [lab(one.id, one.time + 8 * DAY) for one in made]
    p.process_many(sorted([*made, *made_late], key=lambda one: one.time))
    of = p.accounts
    assert (of["learned"], of["late_labels"], of["expired"], of["dead_letters"]) == (3, 997, 997, 0)
    assert p.late_delays == [8 * DAY] * 997
    closed(p)


def test_late_delays_are_known_whatever_way_a_label_takes() -> None:
    """Alone, in a batch, after an assumed label, after a restore: the delay is the label's own."""
    p = processor(label_timeout=10, dedup_ttl=1_000, unlabelled=0)
    p.process_many([obs("a", 0), obs("b", 1), obs("c", 2), obs("far", 50)])
    p.process(lab("a", 13))  # its observation waits once more
    p.process_many([obs("later", 200)])
    p = Processor.restore(p.snapshot(), p.settings)
    p.process(lab("b", 101))
    p.process_many([lab("c", 202), lab("c", 203)])
    assert [*p.late_delays] == [100, 200, 201]
    assert p.accounts["late_labels"] == 4


def test_observations_beyond_max_pending_are_evicted() -> None:
    """With every record twice and little room, half are duplicates, and the accounts close."""
    p = processor(max_pending=100)
    p.process_many([obs(f"{n // 2}", n) for n in range(2_000)])
    of = p.accounts
    assert (of["predictions"], of["duplicate_observations"]) == (1_000, 1_000)
    assert (of["evicted"], of["waiting_observations"]) == (900, 100)
    closed(p)


def test_sums_over_processors_close() -> None:
    """The accounts of several processors add up to one that closes."""
    wanted = Settings(label_timeout=1_000, max_pending=20, unlabelled=1)
    several = [Processor(wanted) for _ in range(3)]
    for seed, p in enumerate(several):
        p.process_many(stream(200, seed, every=7))
    whole = accounts.total(p.accounts for p in several)
    assert whole["predictions"] == sum(p.counters["predictions"] for p in several)
    assert accounts.unbalanced(whole) == []


@pytest.mark.parametrize("name", ["predictions", "late_labels", "evicted", "waiting_labels"])
def test_what_is_lost_shows(name: str) -> None:
    """An account that does not close is named, with both numbers."""
    p = processor()
    p.process_many([obs("a"), obs("a"), lab("a"), lab("b")])
    of = p.accounts
    assert accounts.unbalanced(of) == []
    sentences = accounts.unbalanced(of | {name: of[name] + 5})
    assert sentences
    assert all("abers has lost count" in one for one in sentences)


def test_records_of_topics_have_an_account() -> None:
    """Where records are counted, they are events, undecodable, or tombstones."""
    p = processor()
    p.process_many([obs("a"), lab("a")])
    records = {"records": 5, "undecodable": 2, "tombstones": 1}
    assert accounts.unbalanced(p.accounts | records) == []
    (sentence,) = accounts.unbalanced(p.accounts | records | {"records": 6})
    assert sentence.startswith("6 records: 2 events, 2 undecodable, 1 tombstones. These are 5,")

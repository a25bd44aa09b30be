"""The rules of `abers.stream.processor`, one by one."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.stream.cases import (
    BAD_IDS,
    BAD_LABELS,
    BAD_MODELS,
    BAD_SCORES,
    BAD_TIMES,
    FOREVER,
    LABELS,
    Scorer,
    plain,
    stream,
)
from tests.engine.stream.naive import COUNTERS

from abers import VennAbers
from abers.stream import (
    DeadLetter,
    Event,
    Label,
    Observation,
    Outcome,
    Output,
    Prediction,
    Processor,
    Settings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def obs(id_: str, time: int = 0, score: Any = 0.5, **fields: Any) -> Observation:  # noqa: ANN401
    """Make an observation."""
    return Observation(id_, time, score=score, **fields)


def lab(id_: str, time: int = 0, value: Any = 1, **fields: Any) -> Label:  # noqa: ANN401
    """Make a label."""
    return Label(id_, time, value=value, **fields)


def processor(**options: Any) -> Processor:  # noqa: ANN401
    """Make a processor with these settings, and the widest limits."""
    return Processor(Settings(**{"max_jump": FOREVER, "label_wait": FOREVER} | options))


def counted(p: Processor, **expected: int) -> bool:
    """Tell whether the counters are those given, and 0 for all others."""
    nonzero = {name: count for name, count in p.counters.items() if count}
    return nonzero == {name: count for name, count in expected.items() if count}


def kinds(outputs: list[Output]) -> list[str]:
    """Name what came out: the kinds, and the reasons of dead letters."""
    return [o.reason if isinstance(o, DeadLetter) else type(o).__name__ for o in outputs]


def only(outputs: list[Output]) -> Any:  # noqa: ANN401
    """Give the only output."""
    (output,) = outputs
    return output


# Score at prediction time, pair at label time


def test_learns_the_score_of_the_prediction() -> None:
    """A label teaches the calibrator the score that its observation was predicted with."""
    p, expected = processor(), VennAbers()
    for i, (score, value) in enumerate([(0.2, 0), (0.7, 1), (0.4, 1), (0.7, 0)]):
        p.process(obs(f"{i}", score=score))
        p.process(lab(f"{i}", value=value))
        expected.learn_one(score, value)
    for score in (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9):
        said = only(p.process(obs(f"query {score}", score=score)))
        interval = expected.predict_one(score)
        assert (said.p0, said.p1, said.p) == (interval.p0, interval.p1, interval.log)


def test_never_scores_again() -> None:
    """What a learner learned between prediction and label does not change the score learned."""
    p = Processor(Settings(), learner=Scorer())
    first = only(p.process(obs("first", x={"a": 0.5})))
    second = only(p.process(obs("second", x={"a": 0.0})))
    p.process(lab("second", value=1))  # now the learner would score the first one otherwise
    assert only(p.process(obs("third", x={"a": 0.5}))).score != first.score
    assert only(p.process(lab("first", value=0))).score == first.score
    expected = VennAbers()
    expected.learn_many([second.score, first.score], [1, 0])
    for a in (0.0, 0.25, 0.5, 1.0):
        said = only(p.process(obs(f"{a}", x={"a": a})))
        assert (said.p0, said.p1) == tuple(expected.predict_one(said.score))


def test_prediction() -> None:
    """A prediction carries what the observation brought and what the calibrator answered."""
    p = processor()
    event = obs("a", 7, 1, model="m", segment="s", extra={"k": [1]}, recorded=9)
    said = only(p.process(event))
    assert said == Prediction("a", 7, "m", 1.0, 0.0, 1.0, 0.5, 0, "s", {"k": [1]})
    assert type(said.score) is float


def test_prediction_at_once() -> None:
    """An observation is predicted by what was learned before it, also within a batch."""
    p = processor()
    events: list[Event] = [obs("a"), lab("a"), obs("b"), lab("b", value=0), obs("c")]
    outputs = p.process_many(events)
    assert kinds(outputs) == ["Prediction", "Outcome", "Prediction", "Outcome", "Prediction"]
    assert [o.n for o in outputs if isinstance(o, Prediction)] == [0, 1, 2]
    assert [o.p1 for o in outputs if isinstance(o, Prediction)] == [1.0, 1.0, 2 / 3]


def test_outcome_carries_the_stored_prediction() -> None:
    """An outcome repeats the prediction as it was issued, whatever was learned since."""
    p = processor()
    p.process(obs("z", 0, 0.9))
    p.process(lab("z", 1, 1))
    said = only(p.process(obs("a", 2, 0.8, model="default", segment="", extra={"k": 1})))
    for i in range(5):
        p.process(obs(f"{i}", 3, 0.8))
        p.process(lab(f"{i}", 4, 0))
    settled = only(p.process(lab("a", 5, True)))  # noqa: FBT003 - a label may be a truth value
    assert settled == Outcome("a", 5, "default", 2, 1, 0.8, said.p0, said.p1, said.p)
    assert type(settled.label) is int


def test_outcomes_can_be_left_out() -> None:
    """Without outcomes all else comes out, and the state is the same."""
    events = stream(60, every=10)
    silent, loud = Processor(outcomes=False), Processor()
    said = [o for o in loud.process_many(events) if not isinstance(o, Outcome)]
    assert list(map(plain, silent.process_many(events))) == list(map(plain, said))
    assert silent.state_bytes() == loud.state_bytes()


@pytest.mark.parametrize("value", LABELS)
def test_labels(value: Any) -> None:  # noqa: ANN401
    """Labels are 0, 1, False and True, and come out as 0 and 1."""
    p = processor()
    p.process(obs("a"))
    assert only(p.process(lab("a", value=value))).label == int(value)


def test_n_counts_what_the_calibrator_holds() -> None:
    """`n` is the number of labels held, which a window limits."""
    p = processor(window=2)
    for i in range(5):
        assert only(p.process(obs(f"{i}"))).n == min(i, 2)
        p.process(lab(f"{i}"))


# Models and segments


def test_segments_have_their_own_calibrators() -> None:
    """A label teaches only the calibrator of its observation's model and segment."""
    p = processor()
    p.process(obs("a", score=0.5, segment="s"))
    p.process(lab("a", value=1))
    assert only(p.process(obs("b", score=0.5, segment="s"))).n == 1
    assert only(p.process(obs("c", score=0.5))).n == 0
    assert only(p.process(obs("a", score=0.5, segment="s", model="m"))).n == 0


def test_segments_share_the_ids_of_their_model() -> None:
    """A label needs no segment; a second observation of its id is a duplicate in any segment."""
    p = processor()
    p.process(obs("a", segment="s"))
    assert p.process(obs("a", segment="other")) == []
    assert only(p.process(lab("a"))).segment == "s"
    assert counted(
        p, observations=2, duplicate_observations=1, predictions=1, labels_in=1, labels=1
    )


def test_models_have_their_own_ids() -> None:
    """Equal ids of two models have nothing to do with each other."""
    p = processor()
    p.process(obs("a", model="m"))
    p.process(obs("a", model="n"))
    assert p.process(lab("a", model="o")) == []
    assert only(p.process(lab("a", model="n"))).model == "n"
    assert only(p.process(lab("a", model="m"))).model == "m"
    assert p.counters["early_labels"] == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [(("m", "ss"), ("ms", "s")), (("m", ""), ("", "m")), (("m\0", "s"), ("m", "\0s"))],
)
def test_keys_do_not_run_together(one: tuple[str, str], other: tuple[str, str]) -> None:
    """Model and segment are two names, never one string."""
    p = processor()
    p.process(obs("a", model=one[0], segment=one[1]))
    p.process(lab("a", model=one[0]))
    assert only(p.process(obs("b", model=other[0], segment=other[1]))).n == 0


# Labels before their observation


def test_early_label_waits() -> None:
    """A label that comes first settles its observation as soon as that is predicted."""
    p = processor()
    assert p.process(lab("a", 5)) == []
    outputs = p.process(obs("a", 3))
    assert kinds(outputs) == ["Prediction", "Outcome"]
    said, settled = outputs
    assert isinstance(said, Prediction)
    assert isinstance(settled, Outcome)
    assert (said.n, settled.time, settled.predicted) == (0, 5, 3)
    assert only(p.process(obs("b", 5))).n == 1
    assert counted(
        p, observations=2, predictions=2, labels_in=1, early_labels=1, labels=1, late_events=1
    )


def test_early_label_of_another_id_waits_on() -> None:
    """Each early label waits for its own observation."""
    p = processor()
    p.process_many([lab("a"), lab("b"), lab("c")])
    assert kinds(p.process(obs("b"))) == ["Prediction", "Outcome"]
    assert kinds(p.process(obs("c"))) == ["Prediction", "Outcome"]
    assert kinds(p.process(obs("a"))) == ["Prediction", "Outcome"]


def test_early_label_counts_as_labelled() -> None:
    """An id that was settled by an early label is remembered like any other."""
    p = processor()
    p.process_many([lab("a"), obs("a"), obs("a"), lab("a")])
    assert (p.counters["duplicate_observations"], p.counters["duplicate_labels"]) == (1, 1)


# Duplicates


def test_second_observation_while_the_first_waits() -> None:
    """The first observation of an id counts; its label settles that one."""
    p = processor()
    p.process(obs("a", 0, 0.3))
    assert p.process(obs("a", 0, 0.9)) == []
    assert only(p.process(lab("a"))).score == 0.3
    assert counted(
        p, observations=2, predictions=1, duplicate_observations=1, labels_in=1, labels=1
    )


def test_second_observation_after_the_label() -> None:
    """An id that is done with is not predicted again."""
    p = processor()
    p.process_many([obs("a"), lab("a")])
    assert p.process(obs("a")) == []
    assert p.counters["duplicate_observations"] == 1


def test_second_observation_after_the_first_expired() -> None:
    """An id that expired is not predicted again while it is remembered."""
    p = processor(label_wait=10, dedup_for=100)
    p.process_many([obs("a", 0), obs("b", 11)])
    assert p.counters["expired"] == 1
    assert p.process(obs("a", 11)) == []
    assert p.counters["duplicate_observations"] == 1


def test_second_label() -> None:
    """The first label of an id counts."""
    p = processor()
    p.process_many([obs("a"), lab("a", value=1)])
    assert p.process(lab("a", value=0)) == []
    assert only(p.process(obs("b"))).n == 1
    assert p.counters["duplicate_labels"] == 1


def test_second_early_label() -> None:
    """The first early label of an id counts."""
    p = processor()
    p.process_many([lab("a", 1, 1), lab("a", 2, 0)])
    assert p.counters["duplicate_labels"] == 1
    _, settled = p.process(obs("a", 3))
    assert isinstance(settled, Outcome)
    assert (settled.time, settled.label) == (1, 1)


def test_late_label() -> None:
    """A label whose observation has expired is counted and teaches nothing."""
    p = processor(label_wait=10, dedup_for=100)
    p.process_many([obs("a", 0), obs("b", 11)])
    assert p.process(lab("a", 11)) == []
    assert p.process(lab("a", 12)) == []
    assert only(p.process(obs("c", 12))).n == 0
    assert p.counters["late_labels"] == 2
    assert p.counters["duplicate_labels"] == 0


def test_label_that_expires_its_own_observation() -> None:
    """A label that comes too late by its own time is late."""
    p = processor(label_wait=10)
    p.process(obs("a", 0))
    assert p.process(lab("a", 11)) == []
    assert counted(p, observations=1, predictions=1, labels_in=1, expired=1, late_labels=1)


def test_observation_that_expires_its_own_label() -> None:
    """An observation that comes too late for its early label is predicted, and waits."""
    p = processor(label_wait=10)
    p.process(lab("a", 0))
    outputs = p.process(obs("a", 11))
    assert kinds(outputs) == ["unknown-id", "Prediction"]
    assert kinds(p.process(lab("a", 11))) == ["Outcome"]


def test_duplicates_move_the_clock() -> None:
    """A duplicate is an accepted event: its time counts."""
    p = processor()
    p.process_many([obs("a", 1), obs("a", 7)])
    assert p.clock == 7
    p.process_many([lab("a", 8), lab("a", 9)])
    assert p.clock == 9


def test_forgotten_id_is_new() -> None:
    """A repeated id is a new observation once it is not remembered any longer."""
    p = processor(dedup_for=10)
    p.process_many([obs("a", 0), lab("a", 5)])
    assert p.process(obs("a", 15)) == []
    said = only(p.process(obs("a", 16)))
    assert said.n == 1
    assert only(p.process(lab("a", 16))).predicted == 16


# Clock, lateness, expiry


def test_clock_is_the_largest_accepted_time() -> None:
    """The clock starts with the first accepted event and never goes back."""
    p = processor()
    assert p.clock is None
    p.process(obs("", 99))
    assert p.clock is None
    for time, clock in [(-5, -5), (3, 3), (1, 3), (10, 10)]:
        p.process(obs(f"{time}", time))
        assert p.clock == clock


def test_late_events_are_applied() -> None:
    """An event more than the lateness behind the clock is counted, and applied all the same."""
    p = processor(lateness=3)
    p.process(obs("a", 10))
    assert kinds(p.process(obs("b", 7))) == ["Prediction"]
    assert p.counters["late_events"] == 0
    assert kinds(p.process(obs("c", 6))) == ["Prediction"]
    assert kinds(p.process(lab("c", 6))) == ["Outcome"]
    assert p.counters["late_events"] == 2


def test_late_duplicates_count_as_late() -> None:
    """A duplicate that is behind counts as both."""
    p = processor()
    p.process_many([obs("a", 10), obs("a", 9)])
    assert (p.counters["late_events"], p.counters["duplicate_observations"]) == (1, 1)


@pytest.mark.parametrize("lateness", [0, 3])
def test_observations_expire_after_the_wait(lateness: int) -> None:
    """An observation waits for `label_wait` of event time, and longer by the lateness."""
    p = processor(label_wait=10, lateness=lateness)
    p.process(obs("a", 100))
    p.process(obs("b", 110 + lateness))
    assert p.counters["expired"] == 0
    p.process(obs("c", 111 + lateness))
    assert p.counters["expired"] == 1
    assert p.process(lab("a", 111)) == []
    assert p.counters["late_labels"] == 1


def test_waiting_is_counted_from_the_clock() -> None:
    """What comes late waits as long as what does not."""
    p = processor(label_wait=10)
    p.process_many([obs("x", 100), lab("x", 100), obs("late", 0), lab("early", 0), obs("y", 110)])
    assert (p.counters["expired"], p.counters["unknown_labels"]) == (0, 0)
    assert kinds(p.process(lab("late", 1))) == ["Outcome"]
    assert kinds(p.process(obs("early", 1))) == ["Prediction", "Outcome"]


@pytest.mark.parametrize("lateness", [0, 3])
def test_early_labels_expire_into_dead_letters(lateness: int) -> None:
    """A label that waited in vain is a dead letter without a row, the event as it waited."""
    p = processor(label_wait=10, lateness=lateness)
    p.process(lab("a", 100, value=True, recorded=101))
    assert kinds(p.process(obs("b", 110 + lateness))) == ["Prediction"]
    letter, _ = p.process(obs("c", 111 + lateness))
    assert isinstance(letter, DeadLetter)
    assert (letter.reason, letter.event, letter.row) == ("unknown-id", lab("a", 100), None)
    assert letter.detail
    assert (p.counters["unknown_labels"], p.counters["dead:unknown-id"]) == (1, 1)


def test_label_of_an_expired_early_label_waits_anew() -> None:
    """An early label that expired is not remembered."""
    p = processor(label_wait=10)
    p.process_many([lab("a", 0), lab("b", 11)])
    assert p.process(lab("a", 11)) == []
    assert kinds(p.process(obs("a", 11))) == ["Prediction", "Outcome"]
    assert p.counters["early_labels"] == 3


def test_expiry_order() -> None:
    """Early labels that expire together come out in the order in which they came."""
    p = processor(label_wait=10)
    names = ["d", "a", "c", "b"]
    p.process_many([lab(name, i % 2, model=name) for i, name in enumerate(names)])
    outputs = p.process(obs("x", 100))
    assert [o.event.id for o in outputs if isinstance(o, DeadLetter)] == names
    assert isinstance(outputs[-1], Prediction)


def test_expired_ids_are_forgotten_in_their_order() -> None:
    """Observations that expire together are remembered oldest first, and forgotten so."""
    p = processor(label_wait=10, dedup_max=2)
    p.process_many([obs(name, 0) for name in "abc"])
    p.process(obs("x", 11))
    assert (p.counters["expired"], p.counters["forgotten"]) == (3, 1)
    p.process_many([lab("b", 11), lab("c", 11)])
    assert p.counters["late_labels"] == 2
    assert kinds(p.process(obs("a", 11))) == ["Prediction"]


def test_finished_ids_are_remembered_from_when_they_finished() -> None:
    """The memory of an id begins with its label, or when it expired."""
    p = processor(label_wait=10, dedup_for=5)
    p.process_many([obs("a", 0), obs("x", 11)])
    p.process(lab("a", 16))
    assert p.counters["late_labels"] == 1
    p.process(lab("a", 17))
    assert (p.counters["late_labels"], p.counters["early_labels"]) == (1, 1)


@pytest.mark.parametrize("lateness", [0, 4])
def test_memory_lasts_for_the_wait_by_default(lateness: int) -> None:
    """Without `dedup_for`, finished ids are remembered for `label_wait`, and the lateness."""
    p = processor(label_wait=10, lateness=lateness)
    p.process_many([obs("a", 0), lab("a", 1)])
    p.process(lab("a", 11 + lateness))
    assert p.counters["duplicate_labels"] == 1
    p.process(lab("a", 12 + lateness))
    assert p.counters["early_labels"] == 1


def test_nothing_is_remembered() -> None:
    """With `dedup_max=0` an id is new as soon as it is done with."""
    p = processor(dedup_max=0)
    p.process_many([obs("a"), lab("a")])
    assert only(p.process(obs("a"))).n == 1
    assert p.counters["forgotten"] == 1


def test_expired_while_nothing_is_remembered() -> None:
    """With `dedup_max=0` the label of an expired observation waits for a new one."""
    p = processor(dedup_max=0, label_wait=10)
    p.process_many([obs("a", 0), lab("a", 11)])
    assert (p.counters["expired"], p.counters["forgotten"], p.counters["early_labels"]) == (1, 1, 1)


def test_oldest_memory_goes_first() -> None:
    """At most `dedup_max` finished ids are remembered; beyond that the oldest is forgotten."""
    p = processor(dedup_max=2)
    p.process_many([obs(name) for name in "abc"])
    p.process_many([lab(name) for name in "bca"])
    assert p.counters["forgotten"] == 1
    assert p.process(obs("a")) == p.process(obs("c")) == []
    assert kinds(p.process(obs("b"))) == ["Prediction"]


def test_dead_letters_do_not_expire_anything() -> None:
    """Time passes only by accepted events."""
    p = processor(label_wait=10)
    p.process(obs("a", 0))
    p.process(obs("b", 100, score=None))
    assert p.counters["expired"] == 0
    assert kinds(p.process(lab("a", 10))) == ["Outcome"]


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


def test_settled_at_once_evicts_nothing() -> None:
    """An observation whose label is there already takes nobody's place."""
    p = processor(max_pending=1)
    p.process_many([obs("a"), lab("b"), obs("b")])
    assert p.counters["evicted"] == 0
    assert kinds(p.process(lab("a"))) == ["Outcome"]


def test_too_many_early_labels() -> None:
    """Beyond `max_early` the label that came first is a dead letter."""
    p = processor(max_early=2)
    outputs = p.process_many([lab("a"), lab("b"), lab("c")])
    letter = only(outputs)
    assert (letter.reason, letter.event.id, letter.row) == ("unknown-id", "a", None)
    assert counted(
        p, **{"labels_in": 3, "early_labels": 3, "unknown_labels": 1, "dead:unknown-id": 1}
    )


def test_limits_are_shared_by_the_models() -> None:
    """What waits is limited for all models together."""
    p = processor(max_pending=1, max_early=1)
    p.process_many([obs("a", model="m"), obs("a", model="n")])
    assert p.counters["evicted"] == 1
    assert kinds(p.process_many([lab("x", model="m"), lab("x", model="n")])) == ["unknown-id"]


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


@pytest.mark.parametrize("unusual", [[], [obs("")]], ids=["plain", "with a dead letter"])
def test_jumps_within_a_batch(unusual: list[Event]) -> None:
    """Each event may be `max_jump` ahead of those before it, of the same batch too."""
    p = Processor(Settings(max_jump=5, lateness=9))
    said = p.process_many([*unusual, obs("a", 0), obs("b", 5), obs("c", 10), obs("d", 16)])
    assert kinds(said)[len(unusual) :] == ["Prediction"] * 3 + ["time-in-future"]


def test_refused_event_brings_no_model() -> None:
    """An event that is refused leaves the place of its model free."""
    p = processor(max_models=1)
    p.process_many(
        [obs("a", model="m", score=None), lab("a", model="n", value=5), obs("", model="o")]
    )
    assert kinds(p.process(obs("a", model="p"))) == ["Prediction"]


# The year 2099

YEAR_2099 = 4_070_908_800_000
NOW = 1_700_000_000_000


def test_future_of_its_own_record() -> None:
    """An event may be `max_ahead` after the time its record was written, not more."""
    p = Processor(Settings(max_ahead=5))
    assert kinds(p.process(obs("a", NOW + 5, recorded=NOW))) == ["Prediction"]
    assert kinds(p.process(obs("b", NOW + 6, recorded=NOW))) == ["time-in-future"]
    assert kinds(p.process(lab("a", NOW + 6, recorded=NOW))) == ["time-in-future"]
    assert p.clock == NOW + 5


def test_future_of_the_stream() -> None:
    """Where the time of the record is not known, an event may be `max_jump` after the clock."""
    p = Processor(Settings(max_jump=5))
    assert kinds(p.process(obs("a", NOW))) == ["Prediction"]
    assert kinds(p.process(obs("b", NOW + 6))) == ["time-in-future"]
    assert kinds(p.process(lab("a", NOW + 6))) == ["time-in-future"]
    assert kinds(p.process(obs("b", NOW + 5))) == ["Prediction"]
    assert kinds(p.process(obs("c", NOW + 10))) == ["Prediction"]


def test_jump_does_not_matter_where_the_record_is_known() -> None:
    """A record written after a long pause is accepted, one without a time is not."""
    p = Processor(Settings(max_jump=5))
    p.process(obs("a", NOW))
    assert kinds(p.process(obs("b", NOW + 100, recorded=NOW + 100))) == ["Prediction"]
    assert p.clock == NOW + 100


def test_first_event_is_never_in_the_future() -> None:
    """Without a clock and a record time there is nothing to be ahead of."""
    assert kinds(Processor().process(obs("a", YEAR_2099))) == ["Prediction"]


def test_past_is_no_future() -> None:
    """An event may be as far behind as it likes."""
    p = processor()
    p.process(obs("a", NOW))
    assert kinds(p.process(obs("b", -NOW, recorded=NOW))) == ["Prediction"]


@pytest.mark.parametrize("recorded", [None, NOW])
def test_year_2099_changes_nothing_else(recorded: int | None) -> None:
    """One record of the year 2099 leaves everything as if it had not come, but for its count."""
    events: list[Event] = [obs("a", NOW), lab("early", NOW + 1)]
    after: list[Event] = [lab("a", NOW + 2), obs("early", NOW + 3), obs("b", NOW + 4)]
    odd: list[Event] = [
        obs("odd", YEAR_2099, recorded=recorded, model="odd"),
        lab("a", YEAR_2099, recorded=recorded),
    ]
    p, without = Processor(), Processor()
    assert kinds(p.process_many([*events, *odd])) == ["Prediction", *["time-in-future"] * 2]
    without.process_many(events)
    assert p.clock == without.clock
    assert p.process_many(after) == without.process_many(after)
    differ = {n for n, count in p.counters.items() if count != without.counters[n]}
    assert differ == {"observations", "labels_in", "dead:time-in-future"}


# What is refused


@pytest.mark.parametrize("score", BAD_SCORES, ids=lambda score: repr(score)[:12])
def test_bad_scores(score: Any) -> None:  # noqa: ANN401
    """A score is a finite real number."""
    assert refused(processor(), obs("a", score=score)) == "bad-score"


@pytest.mark.parametrize("score", [-5e-324, 1 + 2**-52, 17, -math.pi])
def test_bad_probabilities(score: float) -> None:
    """Scores that are declared to be probabilities lie in [0, 1]."""
    assert refused(processor(scores="probability"), obs("a", score=score)) == "bad-score"
    assert kinds(processor(scores="any").process(obs("a", score=score))) == ["Prediction"]
    assert kinds(processor(scores="logit").process(obs("a", score=score))) == ["Prediction"]


@pytest.mark.parametrize("score", [0, 0.0, -0.0, 1, 1.0, 0.5])
def test_probabilities(score: float) -> None:
    """0 and 1 are probabilities."""
    said = only(processor(scores="probability").process(obs("a", score=score)))
    assert said.score == score


@pytest.mark.parametrize("value", BAD_LABELS, ids=repr)
def test_bad_labels(value: Any) -> None:  # noqa: ANN401
    """Any label but 0 and 1 is refused."""
    assert refused(processor(), lab("a", value=value)) == "bad-label"


@pytest.mark.parametrize("id_", BAD_IDS, ids=repr)
def test_bad_ids(id_: Any) -> None:  # noqa: ANN401
    """An id is a string that is not empty."""
    assert refused(processor(), obs(id_)) == "bad-id"
    assert refused(processor(), lab(id_)) == "bad-id"


@pytest.mark.parametrize("model", BAD_MODELS, ids=repr)
def test_bad_models(model: Any) -> None:  # noqa: ANN401
    """Models and segments are strings."""
    assert refused(processor(), obs("a", model=model)) == "bad-model"
    assert refused(processor(), obs("a", segment=model)) == "bad-model"
    assert refused(processor(), lab("a", model=model)) == "bad-model"


@pytest.mark.parametrize("time", BAD_TIMES, ids=repr)
def test_bad_times(time: Any) -> None:  # noqa: ANN401
    """A time is a whole number of milliseconds that a double and JSON can hold."""
    assert refused(processor(), obs("a", time)) == "bad-time"
    assert refused(processor(), lab("a", time)) == "bad-time"


@pytest.mark.parametrize("time", [2**53 - 1, 1 - 2**53, 0, -1])
def test_extreme_times(time: int) -> None:
    """Times up to 2**53 from zero are accepted, those before 1970 too."""
    assert kinds(processor().process(obs("a", time))) == ["Prediction"]


def test_order_of_reasons() -> None:
    """Of several faults the value is named before the id, the model, the time and the future."""
    p = Processor(Settings(max_models=1, max_jump=10))
    p.process(obs("a", 0, model="m"))
    event: dict[str, Any] = {"id_": "", "time": None, "model": None, "score": None}
    assert refused(p, obs(**event)) == "bad-score"
    assert refused(p, obs(**event | {"score": 0.5})) == "bad-id"
    assert refused(p, obs(**event | {"score": 0.5, "id_": "b"})) == "bad-model"
    assert refused(p, obs("b", None, 0.5, model="n")) == "bad-time"  # type: ignore[arg-type]
    assert refused(p, obs("b", 11, 0.5, model="n")) == "time-in-future"
    assert refused(p, obs("b", 10, 0.5, model="n")) == "too-many-models"


def refused(p: Processor, event: Event) -> str:
    """Give the reason for which an event is refused, having made sure that nothing changed."""
    before, clock = dict(p.counters), p.clock
    letter = only(p.process(event))
    assert isinstance(letter, DeadLetter)
    assert letter.event is event
    assert letter.row == 0
    assert letter.detail
    assert p.clock == clock
    changed = Counter(p.counters) - Counter(before)
    kind = "observations" if isinstance(event, Observation) else "labels_in"
    assert changed == {kind: 1, f"dead:{letter.reason}": 1}
    return letter.reason


def test_row_of_a_dead_letter() -> None:
    """A dead letter names the row of its event in the call that brought it."""
    p = processor()
    bad: dict[int, Event] = {1: obs("a", score=None), 3: lab("", value=1), 4: lab("b", value=7)}
    events = [bad.get(i, obs(f"{i}")) for i in range(6)]
    letters = [o for o in p.process_many(events) if isinstance(o, DeadLetter)]
    assert [(letter.row, letter.event) for letter in letters] == list(bad.items())
    assert only(p.process(bad[1])).row == 0


@pytest.mark.parametrize(
    "bad",
    [
        *(obs("bad", score=score) for score in (*BAD_SCORES, 1.5, -0.5)),
        *(lab("bad", value=value) for value in BAD_LABELS),
        *(obs(id_) for id_ in BAD_IDS),
        *(obs("bad", model=model) for model in BAD_MODELS),
        *(obs("bad", segment=model) for model in BAD_MODELS),
        *(lab("bad", time) for time in BAD_TIMES),
    ],
    ids=lambda bad: repr(bad)[:60],
)
def test_bad_event_in_a_good_batch(bad: Event) -> None:
    """What is refused alone is refused amid what is not, wherever it stands."""
    p = processor(scores="probability")
    reason = kinds(p.process(bad))
    for at in range(3):
        good = ["Prediction", "Prediction"]
        events: list[Event] = [obs(f"{at}-{i}", at, i / 2) for i in range(2)]
        assert kinds(p.process_many([*events[:at], bad, *events[at:]])) == [
            *good[:at],
            *reason,
            *good[at:],
        ]


DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    "value", [10**5000, -(10**5000), DEEP, "x" * 10**6], ids=["large", "small", "deep", "long"]
)
def test_wording_of_a_refusal(value: Any) -> None:  # noqa: ANN401
    """A refusal is worded in a few words, whatever the value is."""
    wrong: list[Event] = [
        obs("a", score=value),
        lab("a", value=value),
        obs("a", value),
        obs("a", recorded=value),
    ]
    if not isinstance(value, str):
        wrong += [obs(value), obs("a", model=value), obs("a", segment=value)]
    for event in wrong:
        said = only(processor().process(event))
        accepted = isinstance(event, Observation) and event.recorded == 10**5000
        assert accepted if isinstance(said, Prediction) else len(said.detail) < 500


def test_duplicate_with_a_bad_value_is_refused() -> None:
    """Values are looked at before duplicates."""
    p = processor()
    p.process_many([obs("a"), lab("a")])
    assert refused(p, obs("a", score=None)) == "bad-score"
    assert refused(p, lab("a", value=None)) == "bad-label"


def test_bad_label_leaves_its_observation_waiting() -> None:
    """After a label that cannot be used, a good one settles the observation."""
    p = processor()
    p.process(obs("a"))
    assert refused(p, lab("a", value="1")) == "bad-label"
    assert kinds(p.process(lab("a", value=1))) == ["Outcome"]


@pytest.mark.parametrize("time", [2**53 - 1, 1 - 2**53, 2**50, 2**50 + 1, -(2**50) - 1])
@pytest.mark.parametrize("options", [{"half_life": 1}, {"max_age": 1}])
def test_extreme_times_of_forgetting_calibrators(time: int, options: dict[str, int]) -> None:
    """No time that is accepted makes a calibrator fail: a dead letter is the worst."""
    p = processor(**options)
    p.process_many([obs("a", 5), lab("a", 6)])
    p.process_many([obs("b", time, recorded=time), lab("b", time, recorded=time)])
    assert set(kinds(p.process(obs("c", 7)))) == {"Prediction"}
    identities(p, waiting=0)


@pytest.mark.parametrize("text", ["\0", "a" * 10_000, "Ω\n", "\x1f|,;", "\U0001f600"])
def test_any_text_is_a_name(text: str) -> None:
    """Every text names an id, a model or a segment, and can be saved."""
    p = processor()
    p.process_many([obs(text, model=text, segment=text), lab(text), obs("x", extra={text: text})])
    p = Processor.restore(p.snapshot(), p.settings)
    assert kinds(p.process(lab(text, model=text))) == ["Outcome"]
    assert p.counters["duplicate_labels"] == 0
    p.process(lab(text))
    assert p.counters["duplicate_labels"] == 1


# Forgetting by time


@pytest.mark.parametrize("option", ["max_age", "half_life"])
def test_calibrators_get_the_time_of_the_observation(option: str) -> None:
    """What forgets by time is asked and taught with the times of the observations."""
    p, expected = processor(**{option: 10}), VennAbers(**{option: 10})
    asked = [(0, 0.5, 1, 90), (4, 0.5, 0, 91), (13, 0.6, 1, 92), (14, 0.4, 0, 93), (60, 0.5, 1, 94)]
    for time, score, value, arrival in asked:
        said = only(p.process(obs(f"{time}", time, score)))
        interval = expected.predict_one(score, time=time)
        assert (said.p0, said.p1, said.n) == (interval.p0, interval.p1, len(expected))
        p.process(lab(f"{time}", arrival, value))
        expected.learn_one(score, value, time=time)


def test_labels_too_old_to_learn_are_settled() -> None:
    """A label whose observation is older than `max_age` gives an outcome, though none is held."""
    p = processor(max_age=10)
    p.process_many([obs("old", 0), obs("new", 100), lab("new", 101)])
    assert kinds(p.process(lab("old", 101))) == ["Outcome"]
    assert only(p.process(obs("c", 101))).n == 1
    assert p.counters["labels"] == 2


# Arrival order


def test_events_are_not_sorted() -> None:
    """Events are applied as they come, whatever their times."""
    p = processor(lateness=FOREVER)
    said = p.process_many([obs("a", 9), lab("a", 8), obs("b", 7), lab("b", 1, 0), obs("c", 2)])
    assert kinds(said) == ["Prediction", "Outcome"] * 2 + ["Prediction"]
    assert [o.n for o in said if isinstance(o, Prediction)] == [0, 1, 2]


def test_window_goes_by_the_arrival_of_labels() -> None:
    """A window keeps what was learned last, in the order of the labels."""
    p, expected = processor(window=2), VennAbers(window=2)
    p.process_many([obs(name, i, i / 4) for i, name in enumerate("abcd")])
    for name, value in [("d", 1), ("a", 0), ("c", 1), ("b", 0)]:
        p.process(lab(name, value=value))
        expected.learn_one("abcd".index(name) / 4, value)
    said = only(p.process(obs("q", 9, 0.4)))
    assert (said.p0, said.p1) == tuple(expected.predict_one(0.4))


# Learners


def test_learner_scores_the_features() -> None:
    """With a learner the features are scored, whatever score comes with them."""
    p = Processor(learner=Scorer())
    said = only(p.process(obs("a", score=0.123, x={"a": 1.0})))
    assert said.score == Scorer().score({"a": 1.0})


@pytest.mark.parametrize("x", [None, [], "x", [("a", 1)]])
def test_bad_features(x: Any) -> None:  # noqa: ANN401
    """With a learner, features that are no dictionary are refused."""
    assert refused(Processor(learner=Scorer()), obs("a", score=0.5, x=x)) == "bad-features"


def test_learner_learns_before_the_next_prediction() -> None:
    """A label teaches the learner the features that were predicted."""
    p, expected = Processor(learner=Scorer()), Scorer()
    p.process(obs("a", x={"a": 1.0}))
    p.process(lab("a", value=1))
    expected.learn({"a": 1.0}, 1)
    assert only(p.process(obs("b", x={"a": 0.5}))).score == expected.score({"a": 0.5})


@pytest.mark.parametrize("x", [{"fail": "score"}, {"give": math.nan}, {"give": "high"}])
def test_learner_that_cannot_score(x: dict[str, Any]) -> None:
    """An observation that the learner cannot score is refused."""
    p = Processor(Settings(max_models=1), learner=Scorer())
    reason = "learner-failed" if "fail" in x else "bad-score"
    assert refused(p, obs("a", 7, x=x)) == reason
    assert refused(p, obs("", 7, x=x)) == "bad-id"  # the learner is asked last
    assert kinds(p.process(obs("a", 8, model="n", segment="s", x={}))) == ["Prediction"]


def test_learner_probability() -> None:
    """A learner's score outside [0, 1] is refused where scores are probabilities."""
    p = Processor(Settings(scores="probability"), learner=Scorer())
    assert kinds(p.process(obs("a", x={"give": 1.5}))) == ["bad-score"]
    assert kinds(p.process(obs("a", x={"give": 1}))) == ["Prediction"]


def test_learner_that_cannot_learn() -> None:
    """A label that the learner cannot learn is settled, with a dead letter beside its outcome."""
    p = Processor(learner=Scorer())
    p.process(obs("a", x={"fail": "learn-1"}))
    label = lab("a", value=1)
    z, settled, letter = p.process_many([obs("z", x={"a": 1.0}), label])
    assert isinstance(z, Prediction)
    assert isinstance(settled, Outcome)
    assert isinstance(letter, DeadLetter)
    assert (letter.reason, letter.event, letter.row) == ("learner-failed", label, 1)
    said = only(p.process(obs("b", x={"a": 1.0})))
    assert (said.n, said.score) == (1, z.score)  # the calibrator learned, the learner did not
    assert p.process(lab("a", value=0)) == []
    assert p.counters["duplicate_labels"] == 1
    assert (p.counters["labels"], p.counters["dead:learner-failed"]) == (1, 1)


def test_learner_that_cannot_learn_an_early_label() -> None:
    """So it is for a label that waited; the row is that of the observation."""
    p = Processor(learner=Scorer(), outcomes=False)
    p.process(lab("a", 3, value=1))
    said, letter = p.process_many([obs("z", x=[]), obs("a", 5, x={"fail": "learn-1"})])[1:]
    assert isinstance(said, Prediction)
    assert isinstance(letter, DeadLetter)
    assert (letter.reason, letter.row) == ("learner-failed", 1)
    assert letter.event == lab("a", 3, value=1)
    assert p.counters["labels"] == 1


def test_duplicate_teaches_nothing() -> None:
    """A label teaches the learner the features of the observation that was predicted."""
    p, expected = Processor(learner=Scorer()), Scorer()
    p.process_many([obs("a", x={"a": 1.0}), obs("a", x={"fail": "learn"}), lab("a", value=1)])
    expected.learn({"a": 1.0}, 1)
    assert p.counters["dead:learner-failed"] == 0
    assert only(p.process(obs("b", x={"a": 0.5}))).score == expected.score({"a": 0.5})


@pytest.mark.parametrize(
    "value",
    [10**30, object(), 1j, DEEP, CIRCLE],
    ids=["large", "object", "complex", "deep", "circle"],
)
def test_features_that_cannot_be_saved(value: Any) -> None:  # noqa: ANN401
    """Features that would stop every snapshot while they wait are refused."""
    p = Processor(learner=Scorer())
    said = p.process_many([obs("a", x={}), obs("b", x={"b": value}), obs("c", x={})])
    assert kinds(said) == ["Prediction", "bad-features", "Prediction"]
    assert p.state_bytes()


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
    settings = Settings(label_wait=1000, max_pending=38, max_early=3, dedup_max=40)
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
    p.process(obs("last", 2 * NOW, recorded=2 * NOW, x={}))  # now no label waits any longer
    identities(p, waiting=0)


def identities(p: Processor, waiting: int) -> None:
    """Check that every observation and label is accounted for; `waiting` early labels wait."""
    c = p.counters
    dead = sum(count for name, count in c.items() if name.startswith("dead:"))
    used = c["predictions"] + c["duplicate_observations"] + c["labels"]
    ignored = c["duplicate_labels"] + c["late_labels"]
    assert c["observations"] + c["labels_in"] == used + ignored + dead + waiting
    assert c["unknown_labels"] == c["dead:unknown-id"]
    assert c["early_labels"] >= c["unknown_labels"] + waiting
    assert c["predictions"] >= c["labels"] + c["expired"] + c["evicted"]


@pytest.mark.parametrize("learner", [None, Scorer()], ids=["scores", "learner"])
def test_no_event(learner: Scorer | None) -> None:
    """A batch with something that is no event is refused as a whole, and changes nothing."""
    p = Processor(learner=learner)
    p.process_many([obs("a", x={}), lab("a"), obs("b", x={})])
    before = p.state_bytes()
    wrong: Any = {"id": "d"}
    rest: list[Event] = [obs("c", model="new", segment="new", x={}), lab("b"), lab("c", value=7)]
    with pytest.raises(ValueError, match="row 3"):
        p.process_many([*rest, wrong, obs("d", x={})])
    assert p.state_bytes() == before
    assert kinds(p.process_many(rest)) == ["Prediction", "Outcome", "bad-label"]


def test_events_that_fail() -> None:
    """Events that cannot be fetched to the end change nothing."""

    def failing() -> Iterator[Event]:
        yield obs("c")
        raise OSError

    p = processor()
    p.process(obs("a"))
    before = p.state_bytes()
    with pytest.raises(OSError):  # noqa: PT011 - its own error, bare
        p.process_many(failing())
    assert p.state_bytes() == before
    assert kinds(p.process_many([lab("a"), obs("c")])) == ["Outcome", "Prediction"]


def test_places_are_used_again() -> None:
    """What left makes room for what comes: a long stream takes no more than what waits."""
    p = processor(max_pending=5, dedup_max=5)
    for i in range(100):
        p.process_many([obs(f"{i}-{j}", i) for j in range(3)] + [lab(f"{i}-0", i)])
    assert p._deciding.ledger.capacity() <= 5 + 2 * 4  # noqa: SLF001 - it cannot be seen otherwise


def test_nothing_comes_of_nothing() -> None:
    """No events change nothing."""
    p = Processor()
    before = p.state_bytes()
    assert p.process_many([]) == []
    assert p.state_bytes() == before

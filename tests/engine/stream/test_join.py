"""Score at prediction time, pair at label time, `abers.stream.processor`."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.stream.cases import FOREVER, LABELS, Scorer, plain, stream
from tests.engine.stream.replies import counted, kinds, lab, obs, only, processor

from abers import VennAbers
from abers.stream import Event, Outcome, Prediction, Processor, Settings

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
        assert (said.p0, said.p1, said.p) == (interval.p0, interval.p1, interval.merged)


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
    assert [o.n_labels for o in outputs if isinstance(o, Prediction)] == [0, 1, 2]
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
    """`n` is the number of labels kept, which a window limits."""
    p = processor(window=2)
    for i in range(5):
        assert only(p.process(obs(f"{i}"))).n_labels == min(i, 2)
        p.process(lab(f"{i}"))


# Models and segments


def test_segments_have_their_own_calibrators() -> None:
    """A label teaches only the calibrator of its observation's model and segment."""
    p = processor()
    p.process(obs("a", score=0.5, segment="s"))
    p.process(lab("a", value=1))
    assert only(p.process(obs("b", score=0.5, segment="s"))).n_labels == 1
    assert only(p.process(obs("c", score=0.5))).n_labels == 0
    assert only(p.process(obs("a", score=0.5, segment="s", model="m"))).n_labels == 0


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
    assert only(p.process(obs("b", model=other[0], segment=other[1]))).n_labels == 0


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
    assert (said.n_labels, settled.time, settled.prediction_time) == (0, 5, 3)
    assert only(p.process(obs("b", 5))).n_labels == 1
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
    """A finished id is not predicted again."""
    p = processor()
    p.process_many([obs("a"), lab("a")])
    assert p.process(obs("a")) == []
    assert p.counters["duplicate_observations"] == 1


def test_second_observation_after_the_first_expired() -> None:
    """An id that expired is not predicted again while it is remembered."""
    p = processor(label_timeout=10, dedup_ttl=100)
    p.process_many([obs("a", 0), obs("b", 11)])
    assert p.counters["expired"] == 1
    assert p.process(obs("a", 11)) == []
    assert p.counters["duplicate_observations"] == 1


def test_second_label() -> None:
    """The first label of an id counts."""
    p = processor()
    p.process_many([obs("a"), lab("a", value=1)])
    assert p.process(lab("a", value=0)) == []
    assert only(p.process(obs("b"))).n_labels == 1
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
    p = processor(label_timeout=10, dedup_ttl=100)
    p.process_many([obs("a", 0), obs("b", 11)])
    assert p.process(lab("a", 11)) == []
    assert p.process(lab("a", 12)) == []
    assert only(p.process(obs("c", 12))).n_labels == 0
    assert p.counters["late_labels"] == 2
    assert p.counters["duplicate_labels"] == 0


def test_label_that_expires_its_own_observation() -> None:
    """A label that comes too late by its own time is late."""
    p = processor(label_timeout=10)
    p.process(obs("a", 0))
    assert p.process(lab("a", 11)) == []
    assert counted(p, observations=1, predictions=1, labels_in=1, expired=1, late_labels=1)


def test_observation_that_expires_its_own_label() -> None:
    """An observation that comes too late for its early label is predicted, and waits."""
    p = processor(label_timeout=10)
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
    p = processor(dedup_ttl=10)
    p.process_many([obs("a", 0), lab("a", 5)])
    assert p.process(obs("a", 15)) == []
    said = only(p.process(obs("a", 16)))
    assert said.n_labels == 1
    assert only(p.process(lab("a", 16))).prediction_time == 16


# Arrival order


def test_events_are_not_sorted() -> None:
    """Events are applied as they come, whatever their times."""
    p = processor(allowed_lateness=FOREVER)
    said = p.process_many([obs("a", 9), lab("a", 8), obs("b", 7), lab("b", 1, 0), obs("c", 2)])
    assert kinds(said) == ["Prediction", "Outcome"] * 2 + ["Prediction"]
    assert [o.n_labels for o in said if isinstance(o, Prediction)] == [0, 1, 2]


def test_window_goes_by_the_arrival_of_labels() -> None:
    """A window keeps what was learned last, in the order of the labels."""
    p, expected = processor(window=2), VennAbers(window=2)
    p.process_many([obs(name, i, i / 4) for i, name in enumerate("abcd")])
    for name, value in [("d", 1), ("a", 0), ("c", 1), ("b", 0)]:
        p.process(lab(name, value=value))
        expected.learn_one("abcd".index(name) / 4, value)
    said = only(p.process(obs("q", 9, 0.4)))
    assert (said.p0, said.p1) == tuple(expected.predict_one(0.4))


# Forgetting by time


@pytest.mark.parametrize("option", ["max_age", "half_life"])
def test_calibrators_get_the_time_of_the_observation(option: str) -> None:
    """Calibrators that forget by time predict and learn with the times of the observations."""
    rule: dict[str, Any] = {option: 10}
    p, expected = processor(**rule), VennAbers(**rule)
    asked = [(0, 0.5, 1, 90), (4, 0.5, 0, 91), (13, 0.6, 1, 92), (14, 0.4, 0, 93), (60, 0.5, 1, 94)]
    for time, score, value, arrival in asked:
        said = only(p.process(obs(f"{time}", time, score)))
        interval = expected.predict_one(score, time=time)
        assert (said.p0, said.p1, said.n_labels) == (interval.p0, interval.p1, len(expected))
        p.process(lab(f"{time}", arrival, value))
        expected.learn_one(score, value, time=time)


def test_labels_too_old_to_learn_are_settled() -> None:
    """A label whose observation is older than `max_age` gives an outcome, though none is kept."""
    p = processor(max_age=10)
    p.process_many([obs("old", 0), obs("new", 100), lab("new", 101)])
    assert kinds(p.process(lab("old", 101))) == ["Outcome"]
    assert only(p.process(obs("c", 101))).n_labels == 1
    assert p.counters["labels"] == 2

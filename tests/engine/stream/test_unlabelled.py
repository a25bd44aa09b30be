"""Labels that are assumed since they do not come: `unlabelled` of `abers.stream.settings`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import VennAbers
from abers.exceptions import ParameterError
from abers.stream import (
    Events,
    Label,
    MultiClassOutcome,
    Observation,
    Outcome,
    Processor,
    Settings,
)

WAIT, ANY = 10, 1 << 53  # milliseconds; the first event starts the clock


def processor(**options: Any) -> Processor:  # noqa: ANN401 - settings
    """Make a processor that assumes label 0 after ten milliseconds."""
    return Processor(
        Settings(**{"label_timeout": WAIT, "unlabelled": 0, "max_jump": ANY} | options)
    )


def observed(id_: str, time: int, score: float = 0.25) -> Observation:
    """Make an observation."""
    return Observation(id_, time, score=score)


def outcomes(outputs: Any) -> list[Outcome]:  # noqa: ANN401 - outputs
    """Return the outcomes among outputs."""
    return [one for one in outputs if isinstance(one, Outcome)]


def test_an_observation_without_a_label_counts_as_the_class() -> None:
    """The label is learned at the time of the observation and the span, and marked assumed."""
    one = processor()
    predicted: Any
    last: Any
    (predicted,) = one.process(observed("a", 100))
    assert outcomes(one.process(observed("b", 110))) == []
    outcome, last = one.process(observed("c", 111, 0.5))
    assert outcome == Outcome(
        "a",
        110,
        "default",
        100,
        label=0,
        score=0.25,
        p0=predicted.p0,
        p1=predicted.p1,
        p=predicted.p,
        assumed=True,
    )
    oracle = VennAbers()
    oracle.learn_one(0.25, 0)
    interval = oracle.predict_one(0.5)
    assert (last.p0, last.p1, last.n_labels) == (interval.p0, interval.p1, 1)
    assert (one.counters["labels"], one.counters["assumed"], one.counters["expired"]) == (0, 1, 0)


@pytest.mark.parametrize("probability", ["merged", "protected"])
@pytest.mark.parametrize("size", [1, 4])
def test_a_prediction_counts_the_labels_that_its_own_time_teaches(
    probability: str, size: int
) -> None:
    """Labels that are old enough when an observation comes are in its interval and its number."""
    one = processor(unlabelled=None, learn_after=5, probability=probability)
    events: list[Any] = [observed("a", 100), Label("a", 101, value=1)]
    events += [observed("b", 104), observed("c", 105)]
    found: list[Any] = []
    for first in range(0, 4, size):
        part = events[first : first + size]
        found += one.process(part[0]) if size == 1 else one.process_many(part)
    predicted = [(each.p0, each.n_labels) for each in found if not isinstance(each, Outcome)]
    assert predicted == [(0.0, 0), (0.0, 0), (0.5, 1)]


def test_a_true_label_that_comes_later_is_not_learned() -> None:
    """It gives a late outcome with the prediction as issued, once, and no monitor counts it."""
    one = processor()
    one.process_many([observed("a", 100), observed("b", 111)])
    late = Label("a", 112, value=1)
    (outcome,) = outcomes(one.process(late))
    assert (outcome.label, outcome.time, outcome.late, outcome.assumed) == (1, 112, True, False)
    assert outcomes(one.process(late)) == []
    assert (one.counters["late_labels"], one.counters["duplicate_labels"]) == (1, 1)
    assert (one.counters["labels"], one.counters["assumed"]) == (0, 1)
    assert [one.histories[0].windowed.count, one.keys] == [1, [("default", "")]]
    predicted: Any = one.process(observed("c", 113))[0]
    assert predicted.n_labels == 1


def test_a_true_label_after_two_spans_is_only_counted() -> None:
    """After another span the prediction is no longer kept, so there is no outcome."""
    one = processor()
    one.process_many([observed("a", 100), observed("b", 111), observed("c", 122)])
    assert outcomes(one.process(Label("a", 122, value=1))) == []
    assert one.counters["late_labels"] == 1


def test_the_label_that_moves_the_clock_beyond_the_span_is_late() -> None:
    """The label is assumed before the event that shows the span to be over is used."""
    one = processor()
    one.process(observed("a", 100))
    assumed, late = outcomes(one.process(Label("a", 111, value=1)))
    assert (assumed.label, assumed.assumed, late.label, late.late) == (0, True, 1, True)


def test_an_observation_removed_for_want_of_room_assumes_nothing() -> None:
    """Beyond `max_pending` an observation is lost: its span was not over."""
    one = processor(max_pending=1)
    found = one.process_many([observed("a", 100), observed("b", 101), observed("c", 103)])
    assert outcomes(found) == []
    assert (one.counters["evicted"], one.counters["assumed"]) == (2, 0)


def test_a_class_of_several() -> None:
    """With several classes the assumed label is one of them."""
    one = processor(task="multiclass", classes=("cat", "dog"), unlabelled="dog")
    score = {"cat": 0.5, "dog": 0.5}
    found = one.process_many([Observation("a", 0, score=score), Observation("b", 11, score=score)])
    (outcome,) = (each for each in found if isinstance(each, MultiClassOutcome))
    assert (outcome.label, outcome.assumed) == ("dog", True)


class Counting:
    """A learner that keeps what it learned."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.learned: list[tuple[dict[str, Any], int]] = []

    def score(self, x: dict[str, Any]) -> float:
        """Return a score."""
        return float(x["a"])

    def learn(self, x: dict[str, Any], value: int) -> None:
        """Keep a label."""
        self.learned.append((x, value))


def test_the_learner_learns_it_once() -> None:
    """The learner learns the features with the assumed label, and no late one."""
    learner = Counting()
    one = Processor(processor().settings, learner=learner)
    one.process_many(
        [
            Observation("a", 0, x={"a": 0.5}),
            Observation("b", 11, x={"a": 0.25}),
            Label("a", 12, value=1),
        ]
    )
    assert learner.learned == [({"a": 0.5}, 0)]


@given(st.data())
def test_every_observation_is_learned_exactly_once(data: st.DataObject) -> None:
    """With restores anywhere and another processor that replays the journal, bytes are the same.

    Each prediction has at most one outcome that is learned, and all have one in the end.
    """
    moves = st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 9), st.integers(0, 1))
    given_moves = data.draw(st.lists(moves, max_size=40))
    kind = data.draw(st.sampled_from(("ivap", "protected")))
    settings = processor(calibrator=kind, scores="probability").settings
    live, whole, replica = Processor(settings), Processor(settings), Processor(settings)
    now, events = 0, []
    for i, (labels, gap, back, value) in enumerate(given_moves):
        now += gap
        events.append(Label(f"o{i - back}", now, value=value) if labels else observed(f"o{i}", now))
    events += [observed(f"end-{i}", now + 100 * WAIT) for i in range(4)]
    said: list[Any] = []
    at = 0
    while at < len(events):
        step = data.draw(st.integers(1, 9))
        outputs, entry = live.process_logged(Events.of(events[at : at + step]))
        assert replica.apply(entry).in_order() == [
            one for one in outputs.in_order() if getattr(one, "row", None) is None
        ]
        said += outputs.in_order()
        if data.draw(st.booleans()):
            live = Processor.restore(live.snapshot(), settings)
        at += step
    assert list(map(repr, whole.process_many(events))) == list(map(repr, said))
    assert live.state_bytes() == whole.state_bytes() == replica.state_bytes()
    learned = Counter(one.id for one in outcomes(said) if not one.late)
    observations = {e.id for e in events if isinstance(e, Observation)}
    assert {*learned.values()} <= {1}
    assert {one for one in observations if not one.startswith("end")} == {*learned}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unlabelled": 2}, r"unlabelled: 2 is not among \[0, 1\]; name one of them"),
        ({"unlabelled": True}, "unlabelled: True is not among"),
        ({"unlabelled": "0"}, "unlabelled: '0' is not among"),
        (
            {"task": "multiclass", "classes": ("cat", "dog"), "unlabelled": "owl"},
            r"unlabelled: 'owl' is not among \['cat', 'dog'\]",
        ),
        ({"task": "regression", "unlabelled": 0}, "is a class, and labels are numbers"),
        ({"label_timeout": 0}, "needs label_timeout above 0"),
    ],
)
def test_no_label_of_the_task(options: dict[str, Any], message: str) -> None:
    """A label that the task does not have, or no time to wait, is an error with its remedy."""
    with pytest.raises(ParameterError, match=message):
        processor(**options)

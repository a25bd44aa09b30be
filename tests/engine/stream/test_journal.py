"""Entries of a journal, `abers.stream.journal`: what was decided once is done again, to the byte.

Governing rule: a processor that redoes entries says what the live one said and holds what it
holds, whatever came, in whatever batches, from the beginning or from a snapshot between them.
"""

from __future__ import annotations

from itertools import accumulate, zip_longest
from typing import Any

import hypothesis
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.engine.stream.cases import CIRCLE, DRAWS, Scorer, events, limited, plain, stream
from tests.engine.stream.speaking import lab, obs, processor
from tests.engine.stream.test_tasks import TASKS

from abers import ParameterError, StateError
from abers.exceptions import SettingsError
from abers.stream import DeadLetter, Entry, Event, Events, Observation, Outputs, Processor, Settings
from abers.stream.deciding import COUNTERS
from abers.stream.journal import marked
from abers.stream.settings import CALIBRATORS

KEY = b"a secret of tests"
LIVES: dict[str, Any] = {
    "binary": (
        limited(calibrator=st.sampled_from(CALIBRATORS["binary"]), scores=st.just("probability")),
        DRAWS,
        Scorer,
    ),
    **TASKS,
}
PASSED: Any = [None, None, {}, {"a": 1.5}, {"é": [None, True, {"b": 10**30}]}]
"""What is passed through: at times a number that only JSON can hold."""


def passing(made: list[Event], extras: list[Any]) -> list[Event]:
    """Give observations something to pass through."""
    return [
        msgspec.structs.replace(one, extra=extras[i % len(extras)])
        if isinstance(one, Observation)
        else one
        for i, one in enumerate(made)
    ]


EXTRAS = st.lists(st.sampled_from(PASSED), min_size=1, max_size=4)


@st.composite
def batches(draw: st.DrawFn, draws: Any) -> list[list[Event]]:  # noqa: ANN401
    """Draw batches of events whose times go on from each to the next; some are empty."""
    made = passing(events(draw(st.lists(draws, max_size=40))), draw(EXTRAS))
    ends = [*accumulate(draw(st.lists(st.integers(0, 15), max_size=5))), len(made)]
    return [made[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def through(entry: Entry) -> Entry:
    """Write an entry down and read it again."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(entry), type=Entry)


def told(outputs: Outputs, refused: int = 0) -> tuple[Any, ...]:
    """Take outputs apart, without dead letters of events that did not come in."""
    letters = [*outputs.letters][: len(outputs.letters) - refused]
    return (
        list(map(plain, outputs.predictions)),
        None if outputs.outcomes is None else list(map(plain, outputs.outcomes)),
        [(row, letter.detail, letter.row, plain(letter)) for row, letter in letters],
        outputs.predicted.tolist(),
        outputs.settled.tolist(),
    )


def followed(live: Processor, other: Processor, batch: list[Event]) -> None:
    """Let one processor take a batch, the other redo it; they say and hold the same."""
    outputs, entry = live.take_noted(Events.of(batch))
    letters = outputs.letters[len(outputs.letters) - len(entry.refused) :]
    assert [(one.row, one.reason) for _, one in letters] == entry.refused
    assert told(other.redo(through(entry))) == told(outputs, len(entry.refused))
    assert other.state_bytes() == live.state_bytes()
    written = dict(zip_longest(COUNTERS, entry.counters, fillvalue=0))
    assert other.counters == live.counters == written
    assert other.clock == live.clock


@pytest.mark.parametrize("learns", [False, True], ids=["scores", "learner"])
@pytest.mark.parametrize("task", LIVES)
@given(data=st.data())
def test_redone(data: st.DataObject, task: str, learns: bool) -> None:  # noqa: FBT001
    """Of every task and calibrator, entries bring about the same outputs and the same state.

    Learners do not score when a batch is redone, and score alike afterwards.
    """
    settings, draws, learner = LIVES[task]
    settings, parts = data.draw(settings), data.draw(batches(draws))
    live, other, plain_one = (
        Processor(settings, learner=learner() if learns else None) for _ in range(3)
    )
    for part in parts:
        followed(live, other, part)
        plain_one.take(Events.of(part))
    assert plain_one.state_bytes() == live.state_bytes()
    probes = Events.of([obs(f"probe {i}", x={"a": i / 4}, model="m") for i in range(3)])
    assert told(other.take(probes)) == told(live.take(probes)) == told(plain_one.take(probes))


class Life(RuleBasedStateMachine):
    """A live processor and one that follows it, which is restored from time to time."""

    task = "binary"
    learns = False

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Begin with nothing taken."""
        settings, self.draws, learner = LIVES[self.task]
        self.settings = data.draw(settings)
        self.live, self.other = (
            Processor(self.settings, learner=learner() if self.learns else None) for _ in range(2)
        )
        self.number = 0

    @rule(data=st.data(), extras=EXTRAS)
    def take(self, data: st.DataObject, extras: list[Any]) -> None:
        """Take a batch, and redo it."""
        made = events(data.draw(st.lists(self.draws, max_size=12)))
        followed(self.live, self.other, passing(made, extras))

    @rule()
    def restore(self) -> None:
        """Go on from a snapshot of the live one."""
        blob = self.live.snapshot(key=KEY)
        self.other = self.restored(blob)

    @rule()
    def take_over(self) -> None:
        """Let the one that followed be the live one, and another follow it from a snapshot."""
        self.live, self.other = self.other, self.restored(self.other.snapshot(key=KEY))

    def restored(self, blob: bytes) -> Processor:
        """Restore a processor."""
        learner = LIVES[self.task][2]() if self.learns else None
        return Processor.restore(blob, self.settings, key=KEY, learner=learner)

    @invariant()
    def waiting_is_equal(self) -> None:
        """As many things wait."""
        if hasattr(self, "live"):
            assert self.live.waiting == self.other.waiting


class LearningLife(Life):
    """The same with a learner."""

    learns = True


class MultiClassLife(LearningLife):
    """The same of several classes."""

    task = "multiclass"


class RegressionLife(Life):
    """The same of numbers."""

    task = "regression"


LIVES_EACH = hypothesis.settings(  # each step takes a batch twice, and writes out both states
    max_examples=hypothesis.settings().max_examples // 4,
    stateful_step_count=hypothesis.settings().stateful_step_count // 3,
)
for kind in (Life, LearningLife, MultiClassLife, RegressionLife):
    kind.TestCase.settings = LIVES_EACH
TestLife = Life.TestCase
TestLearningLife = LearningLife.TestCase
TestMultiClassLife = MultiClassLife.TestCase
TestRegressionLife = RegressionLife.TestCase


LIMITED = Settings(label_wait=2_000, max_pending=49, max_early=10, dedup_max=200)


@pytest.mark.parametrize("size", [1, 7, 200, 10_000])
def test_long_streams(size: int) -> None:
    """Batches of any size of a long stream, in which everything happens, are redone."""
    made = stream(600, every=20)
    live, other = Processor(LIMITED), Processor(LIMITED)
    for start in range(0, len(made), size):
        outputs, entry = live.take_noted(Events.of(made[start : start + size]))
        assert told(other.redo(through(entry))) == told(outputs, len(entry.refused))
    assert other.state_bytes() == live.state_bytes()
    counters = live.counters
    happened = ("expired", "evicted", "early_labels", "forgotten", "dead:bad-score", "labels")
    assert min(counters[name] for name in happened) > 0


def test_river_learners_go_on_alike() -> None:
    """Learners that learned by entries predict the next observations as those that scored too."""
    made = stream(120, every=30)
    settings = msgspec.structs.replace(LIMITED, learner="logistic")
    live, other = Processor(settings), Processor(settings)
    for start in range(0, 150, 50):
        followed(live, other, made[start : start + 50])
    other_again = Processor.restore(other.snapshot(key=KEY), settings, key=KEY)
    expected = told(live.take(Events.of(made[150:])))
    assert told(other.take(Events.of(made[150:]))) == expected
    assert told(other_again.take(Events.of(made[150:]))) == expected


class Counting(Scorer):
    """A learner that counts how often it was asked."""

    asked = 0

    def score(self, x: dict[str, Any]) -> float:
        """Count, and score."""
        self.asked += 1
        return super().score(x)


def test_nothing_is_scored_again() -> None:
    """A learner is not asked for a score when a batch is redone."""
    learner = Counting()
    live, other = Processor(learner=Counting()), Processor(learner=learner)
    followed(live, other, [obs("a", x={"a": 1.0}), lab("a"), obs("b", x={"fail": "score"})])
    assert learner.asked == 0
    assert learner.count == 1


def test_nothing_is_predicted_again() -> None:
    """Answers are taken from the entry, be they what they may."""
    live, other = Processor(), Processor()
    _, entry = live.take_noted(Events.of([obs("a", score=0.25), lab("a")]))
    answers = np.array([0.125, 0.375]).tobytes()
    outputs = other.redo(msgspec.structs.replace(entry, answers=answers))
    assert (outputs.predictions[0].p0, outputs.predictions[0].p1) == (0.125, 0.375)


def test_what_is_judged() -> None:
    """Whoever redoes a batch is told what was judged as when it was taken."""
    live, other = Processor(), Processor()
    events: list[Event] = [obs("a"), obs("b", 5), lab("a", 7), lab("b", 9, value=0)]
    outputs, entry = live.take_noted(Events.of(events))
    again = other.redo(entry).judged
    assert outputs.judged is not None
    assert again is not None
    for one, redone in zip(outputs.judged, again, strict=True):
        assert one.tolist() == redone.tolist()
    assert again.delays.tolist() == [7, 4]


def test_letters_of_different_events() -> None:
    """Labels that waited in vain, and those that were not learned, come in the order of events."""
    settings = Settings(label_wait=5, max_jump=2**53)
    live, other = (Processor(settings, learner=Scorer()) for _ in range(2))
    early, late = obs("b", 10, x={"fail": "learn"}), obs("c", 20, x={"fail": "learn"})
    batch: list[Event] = [lab("a", 0), early, lab("b", 10), lab("d", 10), late, lab("c", 20)]
    outputs, entry = live.take_noted(Events.of(batch))
    found = [(row, letter.reason) for row, letter in other.redo(entry).letters]
    assert found == [(row, letter.reason) for row, letter in outputs.letters]
    assert [row for row, _ in found] == [1, 2, 4, 5]


def test_without_outcomes() -> None:
    """Whether outcomes come out is nothing to an entry."""
    live, other = Processor(outcomes=False), Processor()
    outputs, entry = live.take_noted(Events.of([obs("a"), lab("a")]))
    assert outputs.outcomes is None
    again = other.redo(entry)
    assert again.outcomes is not None
    assert again.outcomes.columns["label"].tolist() == [1]
    assert other.state_bytes() == live.state_bytes()


@pytest.mark.parametrize(
    "extra",
    [{"a": object()}, {"a": "\ud800"}, {"a": CIRCLE}],
    ids=["object", "surrogate", "circle"],
)
def test_what_cannot_be_passed_on(extra: dict[str, Any]) -> None:
    """Extra fields that cannot be written down are refused before anything is taken."""
    live = Processor()
    with pytest.raises(ParameterError, match="extra fields cannot be written down"):
        live.take_noted(Events.of([obs("a"), obs("b", extra=extra)]))
    assert live.state_bytes() == Processor().state_bytes()


# Entries that do not fit


def noted(*batches: list[Event], settings: Settings | None = None) -> list[Entry]:
    """Take batches, and give their entries."""
    live = Processor(settings)
    return [live.take_noted(Events.of(batch))[1] for batch in batches]


def test_out_of_order() -> None:
    """An entry that does not come next is refused with both places, and changes nothing."""
    first, second = noted([obs("a"), obs("b")], [lab("a")])
    other = Processor()
    with pytest.raises(StateError, match="after 2 events, and the processor has taken 0"):
        other.redo(second)
    other.redo(first)
    before = other.state_bytes()
    with pytest.raises(StateError, match="after 0 events, and the processor has taken 2"):
        other.redo(first)
    assert other.state_bytes() == before
    other.redo(second)


def test_of_another_life() -> None:
    """An entry of another processor does not bring about its counters, and is refused."""
    _, second = noted([obs("a")], [lab("a")])
    other = Processor()
    other.process(obs("b"))
    with pytest.raises(StateError, match="labels 0 where it was 1"):
        other.redo(second)


def test_other_settings() -> None:
    """An entry that was decided under other settings is refused, and changes nothing."""
    (entry,) = noted([obs("a")], settings=Settings(window=5))
    other = Processor()
    with pytest.raises(StateError, match="other settings"):
        other.redo(entry)
    assert other.state_bytes() == Processor().state_bytes()


WIDER = Settings(max_models=5, max_id_bytes=300, max_name_bytes=300, retire_after=9)


@pytest.mark.parametrize("wanted", [Settings(), WIDER], ids=["the default", "others"])
def test_limits_of_admission(wanted: Settings) -> None:
    """Entries are redone under any limits of admission that let in what they bring."""
    batches: list[list[Event]] = [[obs("a", model="m"), lab("a", model="m")], [obs("b", model="n")]]
    live, other = Processor(Settings(max_models=2)), Processor(wanted)
    for batch in batches:
        followed(live, other, batch)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (obs("a", model="n"), "holds 2 models or segments, and max_models=1; set max_models to 2 "),
        (obs("a", model="m", segment="s"), "2 models or segments, and max_models=1; set"),
        (lab("a", model="n"), "2 models or segments, and max_models=1; set"),
        (obs("abcé", model="m"), "an id of 5 bytes, and max_id_bytes=4; set max_id_bytes to 5 or"),
    ],
)
def test_limits_of_admission_below_what_is_there(event: Event, message: str) -> None:
    """An entry that brings more, or a longer id, than is let in is refused, and changes nothing."""
    first, second = noted([obs("x", model="m")], [event])
    other = Processor(Settings(max_models=1, max_id_bytes=4))
    other.redo(first)
    before = other.state_bytes()
    with pytest.raises(SettingsError, match=message):
        other.redo(second)
    assert other.state_bytes() == before


def test_long_names_of_an_entry() -> None:
    """An entry that brings a longer model or segment than is let in is refused."""
    for event in (obs("a", model="mno"), obs("a", model="m", segment="s\N{OHM SIGN}")):
        (entry,) = noted([event])
        with pytest.raises(SettingsError, match=r"a model or segment of . bytes"):
            Processor(Settings(max_name_bytes=2)).redo(entry)


def test_settings_left_at_their_defaults_do_not_count() -> None:
    """Settings are told apart by what is set, so that one more kind of setting is no matter."""
    assert marked(Settings()) == marked(Settings(lateness=0, task="binary"))
    assert marked(Settings(window=5)) != marked(Settings(window=6)) != marked(Settings())
    assert marked(Settings(window=5)).hex() == "48c056b90c0b8121"
    assert marked(WIDER) == marked(Settings())


COLUMNS = ("labels", "times", "models", "keys", "scores", "values", "answers", "held", "extra")
BATCH: list[Event] = [
    obs("a", extra={"k": 1}),
    obs("b", segment="s", extra={}),
    lab("a"),
    obs("", score=0.5),
    lab("c", value=0),
    lab("b", value=0),
]


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("cut", ["short", "long", "odd"])
def test_columns_of_other_lengths(name: str, cut: str) -> None:
    """A column that is too short or too long is refused."""
    (entry,) = noted(BATCH)
    column: bytes = getattr(entry, name)
    damaged = {"short": column[:-8], "long": column + bytes(8), "odd": column[:-1]}[cut]
    with pytest.raises(StateError):
        Processor().redo(msgspec.structs.replace(entry, **{name: damaged}))


@pytest.mark.parametrize("name", [*COLUMNS, "refused", "ids", "new_models", "new_keys", "counters"])
@given(data=st.data())
def test_damage(data: st.DataObject, name: str) -> None:
    """Whatever stands in a column, an entry is redone or refused, and nothing else is raised."""
    (entry,) = noted(BATCH)
    column = getattr(entry, name)
    if isinstance(column, bytes):
        at = data.draw(st.integers(0, len(column) - 1))
        damaged: Any = column[:at] + data.draw(st.binary(min_size=1, max_size=9))
        damaged += column[len(damaged) :]
    else:
        damaged = data.draw(st.permutations([*column, *column, *column[:1]]))
        damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    other = Processor()
    try:
        other.redo(msgspec.structs.replace(entry, **{name: damaged}))
    except StateError as error:
        assert str(error)  # noqa: PT017 - it may also be redone


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("times", np.array([2**53] * 5, "<i8").tobytes()),
        ("times", np.array([-(2**53)] * 5, "<i8").tobytes()),
        ("ids", ["a", "b", "a", "c", ""]),
        ("new_models", ["default", "default"]),
        ("new_keys", [("default", ""), ("default", "")]),
        ("models", np.array([0, 0, 0, 0, 1], "<u4").tobytes()),
        ("keys", np.array([0, 2], "<u4").tobytes()),
        ("labels", b"\2\0\1\0\1\1"),
        ("refused", [(6, "bad-id")]),
    ],
)
def test_what_no_batch_is(name: str, value: Any) -> None:  # noqa: ANN401
    """What cannot be of any batch is refused, and nothing is changed."""
    (entry,) = noted(BATCH)
    other = Processor()
    with pytest.raises(StateError, match="inconsistent"):
        other.redo(msgspec.structs.replace(entry, **{name: value}))
    assert other.state_bytes() == Processor().state_bytes()


def test_features_of_another_number() -> None:
    """With a learner, there are features for each observation."""
    live = Processor(learner=Scorer())
    _, entry = live.take_noted(Events.of([obs("a", x={}), obs("b", x={"a": 1.0})]))
    with pytest.raises(StateError, match="features"):
        Processor(learner=Scorer()).redo(msgspec.structs.replace(entry, features=[{}]))


class Moody(Scorer):
    """A learner that fails in one process and not in another."""

    def learn(self, x: dict[str, Any], value: float) -> None:
        """Fail."""
        del x, value
        msg = "no memory"
        raise RuntimeError(msg)


def test_a_learner_that_failed_at_other_times() -> None:
    """Learners that fail where they did not are found out."""
    _, entry = Processor(learner=Scorer()).take_noted(Events.of([obs("a", x={}), lab("a")]))
    with pytest.raises(StateError, match="learner-failed 1 where it was 0"):
        Processor(learner=Moody()).redo(entry)


def test_refused_events_come_back_by_row_and_reason() -> None:
    """Dead letters of events that came in come again; of the others there is row and reason."""
    live, other = processor(label_wait=5), processor(label_wait=5)
    batch: list[Event] = [lab("a", 0), obs("b", score="x"), obs("c", 10)]
    outputs, entry = live.take_noted(Events.of(batch))
    assert entry.refused == [(1, "bad-score")]
    (late,) = other.redo(entry).dead_letters()
    assert late == DeadLetter("unknown-id", late.detail, lab("a", 0), None)
    assert late in outputs.dead_letters()

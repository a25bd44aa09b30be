"""Entries of a journal, `abers.stream.journal`: a batch that is applied gives the same bytes.

A processor that applies entries has the outputs and the state of the live one, whatever came, in
whatever batches, from the beginning or from a snapshot between them.
"""

from __future__ import annotations

import math
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, Any

import hypothesis
import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.engine.stream.cases import CIRCLE, DRAWS, Scorer, events, limited, plain, stream
from tests.engine.stream.replies import lab, obs, processor
from tests.engine.stream.test_tasks import TASKS

from abers import ParameterError, StateError
from abers.exceptions import SettingsError
from abers.stream import (
    DeadLetter,
    Event,
    Events,
    JournalEntry,
    Observation,
    Outcome,
    Outputs,
    Processor,
    Settings,
    make_task,
)
from abers.stream.join import COUNTERS
from abers.stream.journal import settings_digest
from abers.stream.settings import CALIBRATORS

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY = b"a secret of tests"
LIVES: dict[str, Any] = {
    "binary": (
        limited(
            calibrator=st.sampled_from(CALIBRATORS["binary"]),
            scores=st.just("probability"),
            unlabelled=st.sampled_from((None, 0, 1)),
        ),
        DRAWS,
        Scorer,
    ),
    **TASKS,
}
PASSED: Any = [None, None, {}, {"a": 1.5}, {"é": [None, True, {"b": 10**30}]}]
"""What is passed through: at times a number that only JSON can hold."""


def passing(made: list[Event], extras: list[Any]) -> list[Event]:
    """Add extra fields to observations."""
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


def through(entry: JournalEntry) -> JournalEntry:
    """Write an entry down and read it again."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(entry), type=JournalEntry)


def comparable(outputs: Outputs, rejected: Sequence[tuple[int, str]] = ()) -> tuple[Any, ...]:
    """Return outputs as values, without dead letters of rejected events."""
    refused = [one for one in outputs.dead_letters if (one[1].row, one[1].reason) not in rejected]
    return (
        list(map(plain, outputs.predictions)),
        None if outputs.outcomes is None else list(map(plain, outputs.outcomes)),
        [(row, one.detail, one.row, plain(one)) for row, one in refused],
        outputs.predicted.tolist(),
        outputs.settled.tolist(),
    )


def followed(live: Processor, other: Processor, batch: list[Event]) -> None:
    """Let one processor take a batch, and the other apply it; outputs and state are the same."""
    outputs, entry = live.process_logged(Events.of(batch))
    found = [(one.row, one.reason) for _, one in outputs.dead_letters]
    assert [one for one in found if one in entry.rejected] == entry.rejected
    assert comparable(other.apply(through(entry))) == comparable(outputs, entry.rejected)
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
        plain_one.process_batch(Events.of(part))
    assert plain_one.state_bytes() == live.state_bytes()
    probes = Events.of([obs(f"probe {i}", x={"a": i / 4}, model="m") for i in range(3)])
    assert (
        comparable(other.process_batch(probes))
        == comparable(live.process_batch(probes))
        == comparable(plain_one.process_batch(probes))
    )


@pytest.mark.parametrize("learns", [False, True], ids=["scores", "learner"])
@pytest.mark.parametrize("task", LIVES)
@given(data=st.data())
def test_entries_that_wait_together(data: st.DataObject, task: str, learns: bool) -> None:  # noqa: FBT001
    """Entries that are applied together lead to the state of the live processor."""
    settings, draws, learner = LIVES[task]
    settings, parts = data.draw(settings), data.draw(batches(draws))
    live, other = (Processor(settings, learner=learner() if learns else None) for _ in range(2))
    entries = [through(live.process_logged(Events.of(part))[1]) for part in parts]
    cut = data.draw(st.integers(0, len(entries)))
    other.apply_many(entries[:cut])
    other.apply_many(entries[cut:])
    assert other.state_bytes() == live.state_bytes()
    assert other.counters == live.counters


@pytest.mark.parametrize("task", LIVES)
@given(data=st.data())
def test_a_few_events_as_objects(data: st.DataObject, task: str) -> None:
    """A list of a few events has the outputs, entry and state of the same events by columns."""
    settings, draws, _ = LIVES[task]
    settings, parts = data.draw(settings), data.draw(batches(draws))
    live, other, third = (Processor(settings) for _ in range(3))
    for part in parts:
        outputs, entry = live.process_logged(part)
        expected, same = other.process_logged(Events.of(part))
        assert outputs.in_order() == expected.in_order() or comparable(outputs) == comparable(
            expected
        )
        assert outputs.predicted.tolist() == expected.predicted.tolist()
        assert outputs.settled.tolist() == expected.settled.tolist()
        assert entry == same
        third.apply(through(entry))
    assert live.state_bytes() == other.state_bytes() == third.state_bytes()


def test_a_few_events_with_an_empty_extra() -> None:
    """An extra field of nothing is in the entry of a list as in that of columns."""
    live, other = Processor(), Processor()
    for part in ([obs("a")], [obs("b", extra={}), obs("c")]):
        entry, same = live.process_logged(part)[1], other.process_logged(Events.of(part))[1]
        assert entry == same
    assert same.extra == b"[{},null]"


def test_a_list_with_something_else() -> None:
    """A list with anything but events is refused, and nothing is processed."""
    live = Processor()
    with pytest.raises(ParameterError, match="row 1: 7 is neither an Observation nor a Label"):
        live.process_logged([obs("a"), 7])
    assert live.counters["observations"] == 0


def test_a_list_with_an_extra_field_that_cannot_be_encoded() -> None:
    """Nothing of a list is processed if an extra field cannot be encoded."""
    live = Processor()
    live.process_logged([obs("a")])
    for bad in (object(), "\ud800"):
        with pytest.raises(ParameterError, match=r"extra fields .*cannot be encoded"):
            live.process_logged([obs("b"), obs("c", extra={"a": bad})])
    assert live.counters["observations"] == 1


def test_entries_around_retired_models() -> None:
    """Entries that retire models are applied together with others, and lead to the same state."""
    settings = Settings(max_models=4, retire_after=1_000)
    live, other = Processor(settings), Processor(settings)
    stream: list[Event] = [
        event
        for number in range(1_600)
        for model in [f"model {number // 600 + number % 4}"]
        for event in (
            obs(f"{number}", number * 40, model=model),
            lab(f"{number}", number * 40 + 10, model=model),
        )
    ]
    entries = [live.process_logged(Events.of([event]))[1] for event in stream]
    assert live.counters["retired"] == 2
    assert live.counters["dead:too-many-models"] > 0
    other.apply_many(entries)
    assert other.state_bytes() == live.state_bytes()


def test_an_entry_of_fewer_counters() -> None:
    """Counters that are newer than an entry are 0, and are written once they count."""
    live, other = Processor(), Processor()
    table = pa.table({"id": ["a", None], "time": [1, 2], "score": [0.5, 0.5]})
    _, first = live.process_logged(table.slice(0, 1))
    _, second = live.process_logged(table)
    assert [len(COUNTERS) - len(one.counters) for one in (first, second)] == [2, 1]
    for entry in (first, second):
        other.apply(through(entry))
    assert other.counters == live.counters
    assert other.counters["dead:missing-field"] == 1


def test_an_entry_that_is_missing_among_several() -> None:
    """Entries one of which is missing are refused before anything changes."""
    first, _, third = entries_of([obs("a")], [obs("b")], [lab("a")])
    other = Processor()
    with pytest.raises(StateError, match="follows 1 events, and the processor has taken 0"):
        other.apply_many([first, third])
    assert other.state_bytes() == Processor().state_bytes()


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
        """Take a batch, and apply its entry."""
        made = events(data.draw(st.lists(self.draws, max_size=12)))
        followed(self.live, self.other, passing(made, extras))

    @rule()
    def restore(self) -> None:
        """Go on from a snapshot of the live one."""
        blob = self.live.snapshot(key=KEY)
        self.other = self.restored(blob)

    @rule()
    def take_over(self) -> None:
        """Make the follower the live processor, and restore another follower from its snapshot."""
        self.live, self.other = self.other, self.restored(self.other.snapshot(key=KEY))

    def restored(self, blob: bytes) -> Processor:
        """Restore a processor."""
        learner = LIVES[self.task][2]() if self.learns else None
        return Processor.restore(blob, self.settings, key=KEY, learner=learner)

    @invariant()
    def waiting_is_equal(self) -> None:
        """Compare the numbers of what waits."""
        if hasattr(self, "live"):
            assert self.live.waiting == self.other.waiting


class LearningLife(Life):
    """Lives with a learner."""

    learns = True


class MultiClassLife(LearningLife):
    """Lives of several classes."""

    task = "multiclass"


class RegressionLife(Life):
    """Lives of labels that are numbers."""

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


LIMITED = Settings(label_timeout=2_000, max_pending=20, max_early=4, dedup_max_ids=60)


@pytest.mark.parametrize("size", [1, 7, 200, 10_000])
def test_long_streams(size: int) -> None:
    """Batches of any size of a long stream, in which everything happens, are redone."""
    made = stream(600, every=20)
    live, other = Processor(LIMITED), Processor(LIMITED)
    for start in range(0, len(made), size):
        outputs, entry = live.process_logged(Events.of(made[start : start + size]))
        assert comparable(other.apply(through(entry))) == comparable(outputs, entry.rejected)
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
    expected = comparable(live.process_batch(Events.of(made[150:])))
    assert comparable(other.process_batch(Events.of(made[150:]))) == expected
    assert comparable(other_again.process_batch(Events.of(made[150:]))) == expected


class Counting(Scorer):
    """A learner that counts how often it scored."""

    asked = 0

    def score(self, x: dict[str, Any]) -> float:
        """Count, and score."""
        self.asked += 1
        return super().score(x)


def test_nothing_is_scored_again() -> None:
    """A learner does not score when a batch is redone."""
    learner = Counting()
    live, other = Processor(learner=Counting()), Processor(learner=learner)
    followed(live, other, [obs("a", x={"a": 1.0}), lab("a"), obs("b", x={"fail": "score"})])
    assert learner.asked == 0
    assert learner.count == 1


def test_nothing_is_predicted_again() -> None:
    """Predictions are taken from the entry; what settles and monitors them has these, too."""
    live, other = Processor(STATELESS), Processor(STATELESS)
    _, entry = live.process_logged(Events.of([obs("a", score=0.25)]))
    predictions = np.array([0.75, 0.75, 0.75]).tobytes()
    issued = other.apply(msgspec.structs.replace(entry, predictions=predictions)).predictions[0]
    assert (issued.p0, issued.p1, issued.p) == (0.75, 0.75, 0.75)
    restored = Processor.restore(other.snapshot(), STATELESS)
    for one in (other, restored):
        (outcome,) = one.process(lab("a"))
        assert isinstance(outcome, Outcome)
        assert (outcome.p0, outcome.p1, outcome.p) == (0.75, 0.75, 0.75)
        assert one.monitor is not None
        assert one.monitor.views()["calibrated"]["log_loss"] == -math.log(0.75)


def test_what_is_settled() -> None:
    """A batch that is redone puts out what was settled as when it was taken."""
    live, other = Processor(), Processor()
    events: list[Event] = [obs("a"), obs("b", 5), lab("a", 7), lab("b", 9, value=0)]
    outputs, entry = live.process_logged(Events.of(events))
    again = other.apply(entry).settled_batch
    assert outputs.settled_batch is not None
    assert again is not None
    one = outputs.settled_batch
    assert one.keys.tolist() == again.keys.tolist()
    assert one.delays.tolist() == again.delays.tolist()
    ours, theirs = (make_task(live.settings).monitor() for _ in range(2))
    ours.update(one.scored)
    theirs.update(again.scored)
    assert one.scored.labels.tolist() == again.scored.labels.tolist()
    assert ours.state() == theirs.state()
    assert again.delays.tolist() == [7, 4]


def test_dead_letters_of_different_events() -> None:
    """Unmatched labels, and labels that were not learned, come in the order of events."""
    settings = Settings(label_timeout=5, max_jump=2**53)
    live, other = (Processor(settings, learner=Scorer()) for _ in range(2))
    early, late = obs("b", 10, x={"fail": "learn"}), obs("c", 20, x={"fail": "learn"})
    batch: list[Event] = [lab("a", 0), early, lab("b", 10), lab("d", 10), late, lab("c", 20)]
    outputs, entry = live.process_logged(Events.of(batch))
    found = [(row, one.reason) for row, one in other.apply(entry).dead_letters]
    assert found == [(row, one.reason) for row, one in outputs.dead_letters]
    assert [row for row, _ in found] == [1, 2, 4, 5]


def test_without_outcomes() -> None:
    """Entries are the same with and without outcomes."""
    live, other = Processor(outcomes=False), Processor()
    outputs, entry = live.process_logged(Events.of([obs("a"), lab("a")]))
    assert outputs.outcomes is None
    again = other.apply(entry)
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
    with pytest.raises(ParameterError, match=r"extra fields .* cannot be encoded"):
        live.process_logged(Events.of([obs("a"), obs("b", extra=extra)]))
    assert live.state_bytes() == Processor().state_bytes()


# Entries that do not fit


STATELESS = Settings(calibrator="isotonic")  # predictions that do not change it are in the entry


def entries_of(*batches: list[Event], settings: Settings | None = None) -> list[JournalEntry]:
    """Process batches, and return their entries."""
    live = Processor(settings)
    return [live.process_logged(Events.of(batch))[1] for batch in batches]


def test_out_of_order() -> None:
    """An entry that does not come next is refused with both counts, and changes nothing."""
    first, second = entries_of([obs("a"), obs("b")], [lab("a")])
    other = Processor()
    with pytest.raises(StateError, match="follows 2 events, and the processor has taken 0"):
        other.apply(second)
    other.apply(first)
    before = other.state_bytes()
    with pytest.raises(StateError, match="follows 0 events, and the processor has taken 2"):
        other.apply(first)
    assert other.state_bytes() == before
    other.apply(second)


def test_of_another_life() -> None:
    """An entry of another processor does not bring about its counters, and is refused."""
    _, second = entries_of([obs("a")], [lab("a")])
    other = Processor()
    other.process(obs("b"))
    with pytest.raises(StateError, match="labels 0 where it was 1"):
        other.apply(second)


def test_other_settings() -> None:
    """An entry that was decided under other settings is refused, and changes nothing."""
    (entry,) = entries_of([obs("a")], settings=Settings(window=5))
    other = Processor()
    with pytest.raises(StateError, match="other settings"):
        other.apply(entry)
    assert other.state_bytes() == Processor().state_bytes()


WIDER = Settings(max_models=5, max_id_bytes=300, max_name_bytes=300, retire_after=9)


@pytest.mark.parametrize("wanted", [Settings(), WIDER], ids=["the default", "others"])
def test_limits_of_validation(wanted: Settings) -> None:
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
def test_limits_of_validation_that_the_entry_exceeds(event: Event, message: str) -> None:
    """An entry that brings more, or a longer id, than is let in is refused, and changes nothing."""
    first, second = entries_of([obs("x", model="m")], [event])
    other = Processor(Settings(max_models=1, max_id_bytes=4))
    other.apply(first)
    before = other.state_bytes()
    with pytest.raises(SettingsError, match=message):
        other.apply(second)
    assert other.state_bytes() == before


def test_long_names_of_an_entry() -> None:
    """An entry that brings a longer model or segment than is let in is refused."""
    for event in (obs("a", model="mno"), obs("a", model="m", segment="s\N{OHM SIGN}")):
        (entry,) = entries_of([event])
        with pytest.raises(SettingsError, match=r"a model or segment of . bytes"):
            Processor(Settings(max_name_bytes=2)).apply(entry)


def test_settings_left_at_their_defaults_do_not_count() -> None:
    """Only settings that differ from the defaults count, so a release may add one."""
    assert settings_digest(Settings()) == settings_digest(
        Settings(allowed_lateness=0, task="binary")
    )
    assert (
        settings_digest(Settings(window=5))
        != settings_digest(Settings(window=6))
        != settings_digest(Settings())
    )
    assert settings_digest(Settings(window=5)).hex() == "48c056b90c0b8121"
    assert settings_digest(WIDER) == settings_digest(Settings())


COLUMNS = (
    "labels",
    "times",
    "models",
    "keys",
    "scores",
    "values",
    "predictions",
    "n_labels",
    "extra",
)
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
    (entry,) = entries_of(BATCH, settings=STATELESS)
    column: bytes = getattr(entry, name)
    damaged = {"short": column[:-8], "long": column + bytes(8), "odd": column[:-1]}[cut]
    with pytest.raises(StateError):
        Processor(STATELESS).apply(msgspec.structs.replace(entry, **{name: damaged}))


@pytest.mark.parametrize(
    "name", [*COLUMNS, "rejected", "ids", "new_models", "new_keys", "counters"]
)
@given(data=st.data())
def test_damage(data: st.DataObject, name: str) -> None:
    """Whatever stands in a column, an entry is redone or refused, and nothing else is raised."""
    (entry,) = entries_of(BATCH, settings=STATELESS)
    column = getattr(entry, name)
    if isinstance(column, bytes):
        at = data.draw(st.integers(0, len(column) - 1))
        damaged: Any = column[:at] + data.draw(st.binary(min_size=1, max_size=9))
        damaged += column[len(damaged) :]
    else:
        damaged = data.draw(st.permutations([*column, *column, *column[:1]]))
        damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    other = Processor(STATELESS)
    try:
        other.apply(msgspec.structs.replace(entry, **{name: damaged}))
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
        ("labels", b"\3\0\1\0\1\1"),
        ("rejected", [(6, "bad-id")]),
    ],
)
def test_what_no_batch_is(name: str, value: Any) -> None:  # noqa: ANN401
    """What cannot be of any batch is refused, and nothing is changed."""
    (entry,) = entries_of(BATCH)
    other = Processor()
    with pytest.raises(StateError, match="inconsistent"):
        other.apply(msgspec.structs.replace(entry, **{name: value}))
    assert other.state_bytes() == Processor().state_bytes()


def test_features_of_another_number() -> None:
    """With a learner, there are features for each observation."""
    live = Processor(learner=Scorer())
    _, entry = live.process_logged(Events.of([obs("a", x={}), obs("b", x={"a": 1.0})]))
    with pytest.raises(StateError, match="features"):
        Processor(learner=Scorer()).apply(msgspec.structs.replace(entry, features=[{}]))


class Moody(Scorer):
    """A learner that fails in one process and not in another."""

    def learn(self, x: dict[str, Any], value: float) -> None:
        """Fail."""
        del x, value
        msg = "no memory"
        raise RuntimeError(msg)


def test_a_learner_that_failed_at_other_times() -> None:
    """Learners that fail where they did not are found out."""
    _, entry = Processor(learner=Scorer()).process_logged(Events.of([obs("a", x={}), lab("a")]))
    with pytest.raises(StateError, match="learner-failed 1 where it was 0"):
        Processor(learner=Moody()).apply(entry)


def test_refused_events_come_back_by_row_and_reason() -> None:
    """Dead letters of events that came in come again; of the others there is row and reason."""
    live, other = processor(label_timeout=5), processor(label_timeout=5)
    batch: list[Event] = [lab("a", 0), obs("b", score="x"), obs("c", 10)]
    outputs, entry = live.process_logged(Events.of(batch))
    assert entry.rejected == [(1, "bad-score")]
    ((_, late),) = other.apply(entry).dead_letters
    assert late == DeadLetter("unknown-id", late.detail, lab("a", 0), None)
    assert (2, late) in outputs.dead_letters

"""Tracked intervals in a stream: their bound for what is served, and their state."""

from __future__ import annotations

import math
import random
import tracemalloc
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.stream.cases import saved_calibrators, state_part
from tests.engine.stream.naive import ENTRY_BYTES

from abers import ParameterError, StateError
from abers.regression import CoverageTracker, ProtectedIVAPR
from abers.stream import (
    DeadLetter,
    Events,
    Label,
    Observation,
    Processor,
    RegressionOutcome,
    RegressionPrediction,
    Settings,
)
from abers.stream.settings import DISTRIBUTIONS as USES
from abers.stream.tasks.registry import make_task
from abers.stream.tasks.regression import TrackedCalibrator

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.stream import Event

    Adversary = Callable[[RegressionPrediction], float]

WAIT = 500
SLACK = 100.0
SUPPORT = (0.0, 10.0)
OBSERVATIONS = 350
TRACKED = Settings(
    task="regression",
    calibrator="protected",
    support=SUPPORT,
    coverage=0.5,
    quantiles=(0.1, 0.5, 0.9),
    label_timeout=WAIT,
    max_jump=10**9,
    max_pending=12,
    tests=False,
)


def using(**options: Any) -> Settings:  # noqa: ANN401 - settings
    """Return the settings with other options."""
    return msgspec.structs.replace(TRACKED, **options)


def interval(one: RegressionPrediction | RegressionOutcome) -> tuple[float, float]:
    """Return the ends of a tracked interval."""
    assert one.interval_low is not None
    assert one.interval_high is not None
    return one.interval_low, one.interval_high


def outside(one: RegressionPrediction) -> float:
    """Return a label that is missed, if there is one."""
    low, high = interval(one)
    return next((y for y in (0.0, 10.0, 5.0) if not low <= y <= high), 5.0)


def inside(one: RegressionPrediction) -> float:
    """Return a label that is covered, if there is one."""
    low, high = interval(one)
    return 5.0 if low > high else (low + high) / 2.0


class Stream:
    """A stream whose labels an adversary chooses when it has seen the prediction.

    Labels come late, in any order, or never. Batches of the stream are those in which it was made.
    """

    def __init__(self, options: Settings, seed: int, adversary: Adversary) -> None:
        self.live, self.other = Processor(options), Processor(options)
        self.batches: list[list[Event]] = []
        self.outputs: list[Any] = []
        self._adversary, self._rng, self._time = adversary, random.Random(seed), 1_000  # noqa: S311
        self._answered = 0
        self._waiting: list[RegressionPrediction] = []

    def take(self, events: list[Event]) -> None:
        """Process a batch, log it, apply the entry elsewhere, and restart at times."""
        outputs, entry = self.live.process_logged(Events.of(events))
        assert self.other.apply(entry).in_order() == outputs.in_order()
        self.batches.append(events)
        new = outputs.in_order()
        self.outputs += new
        self._waiting += [one for one in new if isinstance(one, RegressionPrediction)]
        if self._rng.random() < 0.1:
            self.live = Processor.restore(self.live.snapshot(), self.live.settings)

    def play(self, observations: int, delay: int) -> None:
        """Make so many observations, with labels for those that wait beyond a delay."""
        while self._answered < observations:
            batch: list[Event] = []
            for _ in range(self._rng.choice([1, 2, 7])):
                self._time += self._rng.choice([1, 5, 60])
                score = 12.0 * self._rng.random() - 1.0
                batch.append(Observation(f"n{self._answered}", self._time, "m", score))
                self._answered += 1
            while len(self._waiting) > delay:
                one = self._waiting.pop(self._rng.randrange(len(self._waiting)))
                if self._rng.random() < 0.9:  # or else it is lost
                    batch.append(Label(one.id, self._time, "m", self._adversary(one)))
            self.take(batch)

    @property
    def outcomes(self) -> list[RegressionOutcome]:
        """The outcomes in their order."""
        return [one for one in self.outputs if isinstance(one, RegressionOutcome)]


def require_bound(outcomes: list[RegressionOutcome], level: float, most: int) -> None:
    """Assert the bound after each label, as it is counted from what was served."""
    covered = 0
    for labels, one in enumerate(outcomes, 1):
        low, high = interval(one)
        assert one.covered == (low <= one.label <= high)
        covered += low <= one.label <= high
        assert abs(covered / labels - level) <= (SLACK + most) / labels + 1e-12


@pytest.mark.once
@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    level=st.sampled_from([0.1, 0.5, 0.9]),
    delay=st.sampled_from([0, 3, 9]),
    kind=st.sampled_from(["outside", "inside", "any"]),
    size=st.sampled_from([1, 50, 10_000]),
)
def test_the_bound_holds_for_what_is_served(
    seed: int, level: float, delay: int, kind: str, size: int
) -> None:
    """Late, lost and chosen labels, restarts, journals and any batches: coverage and bytes hold."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    choices = {"outside": outside, "inside": inside, "any": lambda _: 10.0 * rng.random()}
    options = using(coverage=level)
    stream = Stream(options, seed, choices[kind])
    stream.play(OBSERVATIONS, delay)
    require_bound(stream.outcomes, level, TRACKED.max_pending)
    split, events = Processor(options), [event for batch in stream.batches for event in batch]
    found = [
        one
        for at in range(0, len(events), size)
        for one in split.process_many(events[at : at + size])
    ]
    assert found == stream.outputs
    states = [one.state_bytes() for one in (split, stream.live, stream.other)]
    assert len({*states}) == 1


@pytest.mark.simulation
@pytest.mark.parametrize(("adversary", "level"), [(inside, 0.5), (outside, 0.9)])
def test_adversaries_end_in_saturation(adversary: Adversary, level: float) -> None:
    """Always covered, the interval becomes empty; never, the whole support: the bound is tight."""
    stream = Stream(using(coverage=level, max_pending=100), 1, adversary)
    stream.play(700, 2)
    require_bound(stream.outcomes, level, 10)
    kinds = [interval(one) for one in stream.outcomes]
    empty, whole = kinds.count((math.inf, -math.inf)), kinds.count(SUPPORT)
    assert (empty if adversary is inside else whole) > 100
    (monitor,) = stream.live.monitors
    n, numbers = len(kinds), monitor.views()["calibrated"]
    assert numbers["tracked_coverage"] == sum(bool(one.covered) for one in stream.outcomes) / n
    assert abs(numbers["tracked_coverage"] - level) <= numbers["tracked_coverage_bound"] < 0.2
    assert numbers["tracked_level"] == level
    assert (numbers["tracked_empty"], numbers["tracked_whole"]) == (empty / n, whole / n)
    assert numbers["tracked_score_infinite"] == empty
    widths = [max(high - low, 0.0) for low, high in kinds]
    assert numbers["tracked_width"] == pytest.approx(math.fsum(widths) / n)


def by_hand(
    stream: list[Event], level: float
) -> tuple[list[tuple[float, float]], tuple[bytes, bytes]]:
    """Return the intervals and the states of a calibrator and a tracker that are called by hand."""
    calibrator, tracker = ProtectedIVAPR(SUPPORT), CoverageTracker(level, SUPPORT)
    waiting: dict[str, tuple[Observation, int]] = {}
    found: list[tuple[float, float]] = []
    tail = (1.0 - level) / 2.0
    for event in stream:
        gone = [one for one, (sent, _) in waiting.items() if event.time - sent.time > WAIT]
        if isinstance(event, Observation) and len(waiting) - len(gone) == TRACKED.max_pending:
            gone.append(next(one for one in waiting if one not in gone))
        for one in gone:
            _, number = waiting.pop(one)
            calibrator.expire_one(number)
            tracker.expire_one(number)
        if isinstance(event, Label):
            if event.id in waiting:
                sent, number = waiting.pop(event.id)
                calibrator.learn_one(sent.score, event.value, number=number)
                tracker.learn_one(event.value, number=number)
            continue
        number = len(found)
        waiting[event.id] = event, number
        ends = calibrator.predict_one(event.score, number=number).quantile([tail, 1.0 - tail])
        found.append(tracker.predict_one(*ends.tolist(), number=number))
    return found, (calibrator.to_bytes(), tracker.to_bytes())


@pytest.mark.parametrize("use", USES)
def test_the_processor_numbers_and_expires(use: str) -> None:
    """Intervals and state are those of a tracker that gets each interval, label and expiry."""
    rng = random.Random(2)  # noqa: S311 - no secret
    events: list[Event] = []
    for time in (1, 2, 3):  # three events, so that the clock is known
        events += [Observation(f"{time}", time, "m", 5.0), Label(f"{time}", time, "m", 5.0)]
    for number in range(90):
        time, score = 20 * number + 1_000, 12.0 * rng.random() - 1.0
        events.append(Observation(f"n{number}", time, "m", score))
        if rng.random() < 0.8:
            late, value = rng.choice([0, 5, 100, 300, 2 * WAIT]), score + rng.gauss(0.0, 1.0)
            label = min(max(value, 0.0), 10.0)
            events.append(Label(f"n{number}", time + late, "m", label))
    events.sort(key=lambda event: (event.time, isinstance(event, Label)))
    processor = Processor(using(distributions=use, coverage=0.8))
    outputs = processor.process_many(events)
    intervals, state = by_hand(events, 0.8)
    predictions = [one for one in outputs if isinstance(one, RegressionPrediction)]
    assert [interval(one) for one in predictions] == intervals
    (calibrator,), (tracker,) = saved_calibrators(processor), state_part(processor, "tracker")
    assert (calibrator, tracker) == state
    assert processor.counters["expired"] > 5
    assert processor.counters["evicted"] > 5
    by_id = {one.id: interval(one) for one in predictions}
    for one in outputs:
        if isinstance(one, RegressionOutcome):
            assert interval(one) == by_id[one.id]
            assert ((one.mean is None), (one.crps is None)) == ((use == "none"),) * 2
    assert [one.cdf is None for one in predictions] == [use != "full"] * len(predictions)


def test_tracking_changes_nothing_else() -> None:
    """Without the interval, outputs are those of a processor that tracks none."""
    events: list[Event] = []
    for number in range(60):
        events.append(Observation(f"a{number}", 2 * number, "m", float(number % 10)))
        events.append(Label(f"a{number}", 2 * number + 1, "m", float(number * 7 % 10)))
    plain = Processor(using(coverage=None)).process_many(events)
    for one, tracked in zip(plain, Processor(TRACKED).process_many(events), strict=True):
        names = {"interval_low", "interval_high", "covered"}
        changed = {name: None for name in names if hasattr(one, name)}
        assert msgspec.structs.replace(tracked, **changed) == one
        assert not names & msgspec.to_builtins(one).keys()


def test_a_repeated_observation_has_one_interval() -> None:
    """A pending id that comes again is ignored, and its label settles the first interval."""
    processor = Processor(TRACKED)
    (first,) = processor.process(Observation("a", 1, "m", 4.0))
    assert processor.process(Observation("a", 2, "m", 9.0)) == []
    (outcome,) = processor.process(Label("a", 3, "m", 4.0))
    assert isinstance(outcome, RegressionOutcome)
    assert interval(outcome) == interval(first) == (4.0, 4.0)  # type: ignore[arg-type]
    assert outcome.covered is True


def test_a_reset_while_observations_wait() -> None:
    """After a reset, labels of older observations teach no tracker, and the bound holds anew."""
    processor = Processor(TRACKED)
    processor.process_many([Observation(f"a{n}", n, "m", 4.0) for n in range(10)])
    processor.reset_model("m")
    old = processor.process_many([Label(f"a{n}", 50, "m", 7.0) for n in range(10)])
    assert [one.covered for one in old if isinstance(one, RegressionOutcome)] == [False] * 10
    processor.process_many([Observation("b", 60, "m", 4.0), Label("b", 61, "m", 7.0)])
    tracker = processor._state.calibration.calibrators.tracker(0)  # noqa: SLF001
    assert tracker is not None
    assert (tracker.labels, tracker.covered, tracker.waited) == (1, 1, 1)
    (monitor,) = processor.monitors
    numbers = monitor.views()["calibrated"]
    assert (numbers["tracked_coverage"], numbers["tracked_coverage_bound"]) == (1.0, SLACK + 1.0)


def test_labels_outside_the_support_change_nothing() -> None:
    """A label beyond an end is a dead letter, and the observation waits on."""
    processor = Processor(TRACKED)
    processor.process(Observation("a", 1, "m", 4.0))
    before = saved_calibrators(processor)
    (refused,) = processor.process(Label("a", 2, "m", -0.5))
    assert isinstance(refused, DeadLetter)
    assert refused.reason == "bad-label"
    assert saved_calibrators(processor) == before
    assert processor.waiting == (1, 0)


def test_what_a_tracker_keeps_counts() -> None:
    """Bytes of a pending interval are at least those that Python takes, and count in the limit."""
    tracker, numbers = CoverageTracker(0.5, SUPPORT), [*range(10**6, 10**6 + 2_000)]
    tracemalloc.start()
    for number in numbers:
        tracker.predict_one(4.0 + number * 1e-7, 6.0, number=number)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / len(numbers) <= tracker.awaiting_bytes
    plain, tracked = (make_task(using(coverage=one)).awaiting_bytes() for one in (None, 0.5))
    assert tracked == plain + tracker.awaiting_bytes
    processor = Processor(using(max_bytes=2 * (ENTRY_BYTES[0] + tracked + 1) + ENTRY_BYTES[2] + 1))
    processor.process_many([Observation(one, 1, "m", 4.0) for one in "ab"])
    assert processor.waiting == (2, 0)
    processor.process(Observation("c", 1, "m", 4.0))
    assert (processor.counters["evicted"], processor.waiting) == (1, (2, 0))


def test_models_have_trackers_of_their_own() -> None:
    """Each model is tracked by itself, and a total adds the counts and the bounds up."""
    processor = Processor(TRACKED)
    for model, value in (("m", 4.0), ("n", 9.0)):
        for number in range(8):
            processor.process(Observation(f"{number}", number, model, 4.0))
            processor.process(Label(f"{number}", number, model, value))
    total = processor.monitor
    assert total is not None
    numbers = total.views()["calibrated"]
    parts = [one.views()["calibrated"] for one in processor.monitors]
    mean = sum(one["tracked_coverage"] for one in parts) / 2
    assert numbers["tracked_coverage"] == mean
    assert numbers["tracked_coverage_bound"] == 2 * (SLACK + 1.0) / 16


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"support": ()}, "support: 'protected' needs the ends of all labels"),
        ({"calibrator": "none"}, "coverage: needs calibrator='ivapr' or 'protected'"),
        ({"task": "binary", "support": ()}, "coverage: applies only to the task 'regression'"),
        ({"coverage": 0.0}, "coverage: 0.0 is too small; write more than 0.0"),
        ({"coverage": 1.0}, "coverage: 1.0 is too large"),
        ({"coverage": 1}, "coverage: 1 is too large"),
        ({"coverage": math.nan}, "coverage: nan is not a number"),
        ({"coverage": "0.5"}, "coverage: '0.5' is not a number"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit(options: dict[str, Any], says: str) -> None:
    """The error names the setting and says how to fix it."""
    with pytest.raises(ParameterError, match=says):
        using(**options)


def test_a_level_without_ends_is_refused_at_once() -> None:
    """A level so near 1 that its interval has no upper level is refused before the first event."""
    with pytest.raises(ParameterError, match="inside"):
        Processor(using(coverage=math.nextafter(1.0, 0.0)))


def test_a_snapshot_of_another_tracker() -> None:
    """A tracker of another level, support or slack, or none, is not one of these settings."""
    calibrator = make_task(TRACKED).calibrator()
    assert isinstance(calibrator, TrackedCalibrator)
    good = CoverageTracker(0.5, SUPPORT).to_bytes()
    calibrator.load_tracker(good)
    assert calibrator.tracker.to_bytes() == good
    for tracker, what in (
        (CoverageTracker(0.6, SUPPORT), "level"),
        (CoverageTracker(0.5, (0.0, 9.0)), "support"),
        (CoverageTracker(0.5, SUPPORT, slack=1.0), "slack"),
    ):
        with pytest.raises(ValueError, match=what):
            calibrator.load_tracker(tracker.to_bytes())
    for bad in (b"", good[:-1], ProtectedIVAPR(SUPPORT).to_bytes()):
        with pytest.raises(StateError):
            calibrator.load_tracker(bad)
    assert calibrator.tracker.to_bytes() == good


def test_a_snapshot_of_another_coverage() -> None:
    """Another level, or none, is refused by name."""
    snapshot = Processor(TRACKED).snapshot()
    for coverage in (0.6, None):
        with pytest.raises(StateError, match=f"coverage was 0.5 and is {coverage}"):
            Processor.restore(snapshot, using(coverage=coverage))


def test_damaged_rows_are_refused() -> None:
    """A saved interval lies within the support, or is the empty one."""
    processor = Processor(TRACKED)
    processor.process_many([Observation(f"{n}", n, "m", 5.0) for n in range(4)])
    task = make_task(TRACKED)
    rows = processor._state.calibration.rows[1:5, 1:-1].copy()  # noqa: SLF001
    assert task.are_predictions(rows)
    for low, high, fine in (
        (math.inf, -math.inf, True),
        (0.0, 10.0, True),
        (6.0, 5.0, False),
        (-1.0, 5.0, False),
        (5.0, 11.0, False),
        (5.0, math.nan, False),
        (-math.inf, math.inf, False),
    ):
        changed = rows.copy()
        changed[2, -2:] = low, high
        assert task.are_predictions(changed) == fine

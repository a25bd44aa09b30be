"""E-processes against the predictions of a stream, and their alarms, `abers.stream.alarms`."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import EVENTS, FOREVER, SETTINGS

from abers.monitoring import CalibrationEProcess, DistributionEProcess, EProcessSteps
from abers.stream import (
    Alarm,
    Event,
    Events,
    Label,
    MultiClassOutcome,
    MultiClassPrediction,
    Observation,
    Outcome,
    Output,
    Prediction,
    Processor,
    Settings,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

QUICK: dict[str, Any] = {"average_run_length": 2, "cooldown": 2}
QUICKLY = st.builds(
    lambda settings, after: msgspec.structs.replace(settings, grace_period=after, **QUICK),
    SETTINGS,
    st.sampled_from((0, 0, 1, 3)),
)


def took(
    processor: Processor, events: Sequence[Event], sizes: Sequence[int] = ()
) -> list[tuple[int, Alarm]]:
    """Take events in batches of these sizes, and the rest; alarms by number of the event."""
    raised, done = [], 0
    for size in [*sizes, len(events)]:
        batch = events[done : done + size]
        if batch:
            alarms = processor.process_batch(Events.of(batch)).alarms
            raised += [(done + row, alarm) for row, alarm in alarms]
        done += len(batch)
    return raised


class Kept:
    """An observation as the oracle keeps it."""

    def __init__(self, number: int, prediction: Prediction) -> None:
        """Begin without a label."""
        self.number, self.prediction = number, prediction
        self.label: int | None = None
        self.over = False


class Oracle:
    """Bets of each model and segment, each fed one observation at a time, in order."""

    def __init__(self, settings: Settings) -> None:
        """Begin with nothing."""
        self.settings = settings
        self.kept: dict[tuple[str, str], Kept] = {}
        self.made: Counter[tuple[str, str]] = Counter()  # predictions by model and segment
        self.bets: dict[tuple[str, str], CalibrationEProcess] = defaultdict(
            lambda: CalibrationEProcess(
                settings.views,
                tolerance=settings.tolerance,
                average_run_length=settings.average_run_length,
                cooldown=settings.cooldown,
                grace_period=settings.grace_period,
            )
        )

    def take(self, outputs: Sequence[Output], waiting: set[tuple[str, str]]) -> list[Any]:
        """Take the outputs of one event, and the ids that wait after it."""
        raised: list[Any] = []
        gone: list[Kept] = []  # of whose name there is another now
        for output in outputs:
            if isinstance(output, Prediction):
                gone += [old] if (old := self.kept.pop((output.model, output.id), None)) else []
                key = (output.model, output.segment)
                self.kept[output.model, output.id] = one = Kept(self.made[key], output)
                forecasts = {"raw": output.score, "calibrated": output.p}
                issued = [forecasts[view] for view in self.settings.views]
                self.of(output).predict(one.number, *issued, time=output.time)
                self.made[key] += 1
            if isinstance(output, Outcome) and not output.late:  # else it was learned before
                one = self.kept.pop((output.model, output.id))
                raised += self.alarms_of(
                    one,
                    self.of(one.prediction).learn(
                        one.number, *[output.label] * len(self.settings.views)
                    ),
                )
        late = [
            (name, one)
            for name, one in self.kept.items()
            if name not in waiting or self.later(one) >= self.settings.max_pending
        ]
        for one in [*gone, *(one for _, one in late)]:
            raised += self.alarms_of(one, self.of(one.prediction).expire(one.number))
        for name, _ in late:
            if name not in waiting:
                del self.kept[name]
        return raised

    def later(self, one: Kept) -> int:
        """Return how many of its model and segment were predicted after an observation."""
        return self.made[one.prediction.model, one.prediction.segment] - 1 - one.number

    def of(self, prediction: Prediction) -> CalibrationEProcess:
        """Return the e-process of a prediction's key."""
        return self.bets[prediction.model, prediction.segment]

    @staticmethod
    def alarms_of(one: Kept, opened: Sequence[Any]) -> list[Any]:
        """Return the alarms."""
        whose = (one.prediction.model, one.prediction.segment)
        return [
            (*whose, each.view, each.incident) for each in opened if each.test == "change-tolerance"
        ]


def waits(processor: Processor) -> set[tuple[str, str]]:
    """Return which observations wait, by model and id."""
    store = processor._state.join.store  # noqa: SLF001 - nothing public says it
    models = [*processor._state.join.names.models]  # noqa: SLF001
    count = store.count(0)
    numbers = [np.empty(count, np.int64) for _ in range(3)]
    of, keys, values = np.empty(count, np.uint32), np.empty(count, np.uint32), np.empty(count)
    ids, _ = store.entries(0, 0, numbers[0], of, keys, numbers[1], numbers[2], values)
    return {(models[model], id_) for model, id_ in zip(of.tolist(), ids, strict=True)}


@given(settings=QUICKLY, events=EVENTS)
def test_oracle(settings: Settings, events: list[Event]) -> None:
    """Whatever comes, is late, expires or is too many: evidence and alarms are those of the bets.

    The oracle takes of each observation and each label what the processor puts out, and of
    the end of a wait what the store holds.
    """
    processor, oracle = Processor(settings), Oracle(settings)
    for event in events:
        outputs = processor.process_batch(Events.of([event]))
        expected = oracle.take(outputs.in_order(), waits(processor))
        found = [
            (
                *(alarm.model, alarm.segment, alarm.view),
                (alarm.episode, alarm.time, alarm.time, alarm.log_wealth),
            )
            for row, alarm in outputs.alarms
            if row == 0
        ]
        assert sorted(found) == sorted(expected)
        assert len(outputs.alarms) == len(found)
    keys = processor._state.join.names.keys  # noqa: SLF001
    for key, monitor in zip(keys, processor.monitors, strict=False):
        assert list(monitor.tests) == list(oracle.bets[key].evidence())


@given(settings=QUICKLY, events=EVENTS, sizes=st.lists(st.integers(0, 12)))
def test_batches(settings: Settings, events: list[Event], sizes: list[int]) -> None:
    """Batches of any size raise the same alarms at the same events, and give the same state."""
    single, batched = Processor(settings), Processor(settings)
    assert took(single, events, [1] * len(events)) == took(batched, events, sizes)
    assert single.state_bytes() == batched.state_bytes()


@given(settings=QUICKLY, events=EVENTS, more=EVENTS)
def test_redone_and_restored(settings: Settings, events: list[Event], more: list[Event]) -> None:
    """Alarms come again when a batch is redone, and after a restart as without one."""
    live, other = Processor(settings), Processor(settings)
    for start in range(0, len(events), 5):
        outputs, entry = live.process_logged(Events.of(events[start : start + 5]))
        assert other.apply(entry).alarms == outputs.alarms
    restored = Processor.restore(live.snapshot(), settings)
    assert took(restored, more, [3]) == took(live, more) == took(other, more)
    assert restored.state_bytes() == live.state_bytes() == other.state_bytes()


def drifting(n: int, change: int, *, model: str = "m", seed: int = 0) -> list[Event]:
    """Observations whose scores mean what they say up to a change, and then the contrary."""
    rng = np.random.default_rng(seed)
    events: list[Event] = []
    for i in range(n):
        score = float(np.round(rng.uniform(0.05, 0.95), 3))
        label = int(rng.random() < (score if i < change else 1.0 - score))
        events.append(Observation(f"{i}", i, model, score=score))
        events.append(Label(f"{i}", i, model, value=label))
    return events


@pytest.mark.simulation
def test_an_alarm_after_the_change_and_not_before() -> None:
    """Where scores are reversed, they raise one alarm soon after, and the predictions follow."""
    processor = Processor(Settings(scores="probability"))
    events = drifting(3_000, 2_000)
    raised = took(processor, events, [500] * 12)
    assert [alarm.view for _, alarm in raised] == ["raw"]
    for row, alarm in raised:
        assert 4_000 < row < 4_600
        of = (alarm.model, alarm.segment, alarm.test, alarm.episode)
        assert of == ("m", "", "change-tolerance", 1)
        assert row == 2 * alarm.time + 1
        threshold = math.log(1_000_000)
        assert alarm.log_threshold == threshold <= alarm.log_wealth < threshold + 10
        assert alarm.message.startswith("model 'm', ")
        assert ": raw is " in alarm.message
        assert "once in 1,000,000 labels on average, at most" in alarm.message
    assert processor.monitor is not None
    tests = processor.monitor.tests
    names = ["since-start", "change", "since-start-tolerance", "change-tolerance"]
    assert [one.name for one in tests] == names * 2
    assert [one.view for one in tests] == ["raw"] * 4 + ["calibrated"] * 4
    assert [(one.active, one.incidents) for one in (tests[3], tests[7])] == [(True, 1), (False, 0)]


def shifted(n: int, odds: float, begin: int, *, first: int = 0) -> list[Event]:
    """Observations whose labels 1 have, from one on, odds that differ from the scores' by a factor.

    Event times are minutes from a date on, or from 0.
    """
    rng, events = np.random.default_rng(3), list[Event]()
    for i in range(n):
        score = float(np.round(rng.uniform(0.05, 0.95), 3))
        truth = (odds if i >= begin else 1.0) * score / (1.0 - score)
        label = int(rng.random() < truth / (1.0 + truth))
        time = first + 60_000 * i
        events += [Observation(f"{i}", time, "m", score=score), Label(f"{i}", time, "m", label)]
    return events


@pytest.mark.simulation
@pytest.mark.parametrize(("odds", "direction"), [(0.4, "too high"), (2.5, "too low")])
@pytest.mark.parametrize("calibrator", ["none", "ivap"])
def test_an_alarm_says_direction_and_size(odds: float, direction: str, calibrator: str) -> None:
    """It counts labels, what they were promised and what came, since about the change."""
    begin, first = 1_500, 1_364_792_400_000
    events = shifted(3_000, odds, begin, first=first)
    processor = Processor(Settings(scores="probability", calibrator=calibrator))
    (alarm,) = (one for _, one in took(processor, events) if one.view == "raw")
    found = re.search(
        r" UTC: raw is (.*)\. Since (.*): ([\d,]+) labels, ([\d,.]+) promised, ([\d,]+) came\.",
        alarm.message,
    )
    assert found is not None
    assert found[1] == direction
    since = datetime.strptime(found[2] + " +0000", "%d %b %Y, %H:%M %z")
    since_row = round((since.timestamp() * 1000 - first) / 60_000)
    assert begin - 100 < since_row < begin + 500  # bets must learn the change first
    rows = [*zip(events[::2], events[1::2], strict=True)][
        since_row : (alarm.time - first) // 60_000 + 1
    ]
    observed = sum(label.value for _, label in rows)  # type: ignore[union-attr]
    expected = sum(observation.score for observation, _ in rows)  # type: ignore[union-attr]
    assert [int(found[at].replace(",", "")) for at in (3, 5)] == [len(rows), observed]
    assert float(found[4].replace(",", "")) == pytest.approx(expected, abs=0.06)


@pytest.mark.simulation
def test_a_tolerance_decides_what_is_an_alarm() -> None:
    """Odds off by 1.5 raise an alarm with a tolerance of 1, and none with one of 2."""
    events = shifted(4_000, 1.5, 0)
    for tolerance, alarms in ((1, 1), (2, 0)):
        settings = Settings(scores="probability", calibrator="none", tolerance=tolerance)
        assert len(took(Processor(settings), events)) == alarms


@pytest.mark.simulation
def test_a_run_length_in_event_time() -> None:
    """With a run length of ten days, the guarantee is one of event time, and so is R."""
    settings = Settings(scores="probability", calibrator="none", average_run_time=10 * 86_400_000)
    processor = Processor(settings)
    (alarm,) = (one for _, one in took(processor, shifted(3_000, 0.4, 1_500)))
    assert "once in 10 days of event time on average, at most" in alarm.message
    assert alarm.log_threshold == math.log(1e6)


@pytest.mark.simulation
def test_scores_served_as_they_are_are_tested_once() -> None:
    """Without a calibrator there is one view, nothing is held, and scores are what is served."""
    processor = Processor(Settings(scores="probability", calibrator="none"))
    outputs = processor.process_many(drifting(600, 600))
    predictions = [one for one in outputs if isinstance(one, Prediction)]
    assert all(one.p0 == one.p == one.p1 == one.score for one in predictions)
    assert processor.monitor is not None
    assert {one.view for one in processor.monitor.tests} == {"raw"}
    calibrators = processor._state.calibration.calibrators  # noqa: SLF001
    before = [*map(len, calibrators.save())]
    processor.process_many(drifting(3_000, 3_000, seed=1))
    assert [*map(len, calibrators.save())] == before
    restored = Processor.restore(processor.snapshot(), processor.settings)
    assert restored.state_bytes() == processor.state_bytes()


def test_classes_served_as_they_are() -> None:
    """Scores of several classes are served as they are, and their top class is tested once."""
    names = ("a", "b", "c")
    settings = Settings(task="multiclass", classes=names, scores="probability", calibrator="none")
    processor, rng = Processor(settings), np.random.default_rng(2)
    for number in range(1_500):
        row = np.round(rng.dirichlet([1.0, 1.0, 1.0]), 3).tolist()
        score = dict(zip(names, [*row[:2], 1.0 - row[0] - row[1]], strict=True))
        (said,) = processor.process(Observation(f"{number}", number, score=score))
        assert isinstance(said, MultiClassPrediction)
        assert said.score == said.p == said.low == said.high == score
        processor.process(Label(f"{number}", number, value=str(rng.choice(["a", "b", "c"]))))
    assert processor.monitor is not None
    assert [one.view for one in processor.monitor.tests] == ["raw"] * 4
    assert processor.monitor.tests[3].active  # labels have nothing to do with the scores
    restored = Processor.restore(processor.snapshot(), processor.settings)
    assert restored.state_bytes() == processor.state_bytes()


@pytest.mark.simulation
def test_each_key_by_itself() -> None:
    """Keys have evidence of their own; together, the strongest is shown."""
    processor = Processor(Settings(scores="probability", grace_period=100))
    good, bad = drifting(1_500, 1_500, model="good"), drifting(1_500, 1_000, model="bad")
    raised = took(processor, [event for pair in zip(good, bad, strict=True) for event in pair])
    assert {alarm.model for _, alarm in raised} == {"bad"}
    quiet, loud = (monitor.tests[3] for monitor in processor.monitors)
    assert (quiet.active, loud.active) == (False, True)
    assert processor.monitor is not None
    together = processor.monitor.tests[3]
    assert together.active
    assert together.last == loud.last
    assert "2 calibrators" in together.guarantee


@pytest.mark.once
@pytest.mark.parametrize("off", [{"tests": False}, {"monitors": False}])
def test_switched_off(off: dict[str, Any]) -> None:
    """Without tests there is no evidence, no alarm, and nothing in the state."""
    processor = Processor(Settings(scores="probability", **off))
    assert took(processor, drifting(1_000, 500)) == []
    assert all(monitor.tests == () for monitor in processor.monitors)
    restored = Processor.restore(processor.snapshot(), processor.settings)
    assert restored.state_bytes() == processor.state_bytes()


@pytest.mark.once
def test_top_label() -> None:
    """Of several classes, the top class of each view is tested by whether it was the label."""
    settings = Settings(
        task="multiclass", classes=("a", "b", "c"), scores="probability", grace_period=0
    )
    processor = Processor(settings)
    bets, rng = CalibrationEProcess(("raw", "calibrated")), np.random.default_rng(1)
    for number in range(300):
        scores = dict(zip("abc", rng.dirichlet([1.0, 1.0, 1.0]).tolist(), strict=True))
        total = sum(scores.values())
        scores = {name: score / total for name, score in scores.items()}
        said = processor.process(Observation(f"{number}", number, score=scores))
        outcome = processor.process(
            Label(f"{number}", number, value=str(rng.choice(["a", "b", "c"])))
        )[0]
        assert isinstance(outcome, MultiClassOutcome)
        assert len(said) == 1
        views = (outcome.score, outcome.p)
        tops = [max(view, key=lambda name: view[name]) for view in views]
        bets.predict(number, *(v[top] for v, top in zip(views, tops, strict=True)), time=number)
        bets.learn(number, *(int(outcome.label == top) for top in tops))
    (monitor,) = processor.monitors
    assert monitor.tests == bets.evidence()


def test_no_more_waits_than_may() -> None:
    """Behind one observation without a label wait at most `max_pending` factors."""
    settings = Settings(max_pending=50, label_timeout=FOREVER, grace_period=0)
    processor = Processor(settings)
    processor.process(Observation("never", 0, score=0.5))
    for number in range(200):
        processor.process(Observation(f"{number}", 0, score=0.5))
        processor.process(Label(f"{number}", 0, value=number % 2))
        (bets,) = processor._state.calibration.e_processes.by_key  # type: ignore[union-attr]  # noqa: SLF001
        assert len(bets.waiting) <= 50
    (monitor,) = processor.monitors
    assert [one.skipped for one in monitor.tests] == [1] * 4
    assert processor.waiting == (1, 0)


def test_intervals_and_pit_values() -> None:
    """Of distributions, the central intervals and the PIT values are bet against."""
    levels = (0.125, 0.25, 0.75, 0.875)
    settings = Settings(
        task="regression", quantiles=levels, distributions="scored", grace_period=20, window=30
    )
    processor = Processor(settings)
    bets = DistributionEProcess((0.75, 0.5), pit=True, grace_period=20)
    rng = np.random.default_rng(1)
    for number in range(60):
        score = float(rng.normal())
        processor.process(Observation(f"{number}", number, score=score))
        label = Label(f"{number}", number, value=score + float(rng.normal()))
        settled = processor.process_batch(Events.of([label])).settled_batch
        assert settled is not None
        scored = settled.scored
        assert scored.quantiles is not None
        assert scored.pit is not None
        ((a, b, c, d),), (value,) = scored.quantiles, scored.labels
        below, at = scored.pit
        values = np.array([[0.0] * 4, [a <= value <= d, b <= value <= c, below[0], at[0]]])
        numbers = np.array([number, number])
        bets.run(EProcessSteps(np.array([0, 1], np.uint8), numbers, numbers, values))
    (monitor,) = processor.monitors
    assert monitor.tests == bets.evidence()
    names = ["coverage-0.75", "coverage-0.5"]
    names += [f"{name}-tolerance" for name in names]
    assert [one.name for one in monitor.tests] == [*names, "pit", "change", "change-tolerance"]
    assert monitor.tests[4].log_wealth != 0.0


def test_quantiles_that_bound_no_interval() -> None:
    """Quantiles alone are not bet against."""
    processor = Processor(Settings(task="regression", quantiles=(0.3,), grace_period=0))
    for number in range(5):
        processor.process(Observation(f"{number}", number, score=0.5))
        processor.process(Label(f"{number}", number, value=0.5))
    assert processor.monitors[0].tests == ()
    assert Processor.restore(processor.snapshot(), processor.settings).monitors[0].tests == ()

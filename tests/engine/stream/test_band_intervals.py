"""Intervals of the band in a stream: those of `IVAPR`, their theorem, monitor and state."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import saved_calibrators

from abers import ParameterError, StateError
from abers.monitoring import TrackedRows
from abers.regression import IVAPR, PredictiveDistribution
from abers.regression.scores import interval_score
from abers.stream import (
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

LEVEL = 0.75
BANDED = Settings(task="regression", coverage=LEVEL, quantiles=(0.1, 0.5, 0.9), tests=False)
SUPPORT = (-3.0, 9.0)


def using(**options: Any) -> Settings:  # noqa: ANN401 - settings
    """Return the settings with other options."""
    return msgspec.structs.replace(BANDED, **options)


def interval(one: RegressionPrediction | RegressionOutcome) -> tuple[float, float]:
    """Return the ends of an interval."""
    assert one.interval_low is not None
    assert one.interval_high is not None
    return one.interval_low, one.interval_high


def events_of(seed: int, n: int = 80) -> list[Observation | Label]:
    """Make a stream with ties, and labels that come late, or never."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    found: list[Observation | Label] = []
    for number in range(n):
        score = rng.randrange(6) / 1.0
        found.append(Observation(f"n{number}", 20 * number, "m", score))
        if rng.random() < 0.9:
            label = min(max(score + rng.choice([-1.5, -0.5, 0.0, 0.5, 3.0]), -3.0), 9.0)
            late = rng.choice([1, 25, 90])
            found.append(Label(f"n{number}", 20 * number + late, "m", label))
    return sorted(found, key=lambda event: event.time)


def by_hand(events: list[Observation | Label], window: int | None) -> list[PredictiveDistribution]:
    """Return the distribution of each observation, from a calibrator that is called by hand."""
    calibrator, scores = IVAPR(window=window), dict[str, float]()
    found: list[PredictiveDistribution] = []
    for event in events:
        if isinstance(event, Label):
            calibrator.learn_one(scores[event.id], event.value)
        else:
            scores[event.id] = event.score
            found.append(calibrator.predict_one(event.score))
    return found


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("support", [(), SUPPORT])
@pytest.mark.parametrize("window", [None, 12])
def test_it_is_the_interval_of_the_band(
    use: str, support: tuple[float, ...], window: int | None
) -> None:
    """Each interval is that of the band then, clipped to a support alone; outcomes repeat it."""
    events = events_of(3)
    processor = Processor(using(distributions=use, support=support, window=window))
    outputs = processor.process_many(events)
    predictions = [one for one in outputs if isinstance(one, RegressionPrediction)]
    expected = [band.interval(LEVEL, band=True) for band in by_hand(events, window)]
    assert sum(map(math.isinf, (end for ends in expected for end in ends))) > 10
    clipped = [(max(low, -3.0), min(high, 9.0)) for low, high in expected]
    assert [interval(one) for one in predictions] == (clipped if support else expected)
    by_id = {one.id: interval(one) for one in predictions}
    outcomes = [one for one in outputs if isinstance(one, RegressionOutcome)]
    assert outcomes
    for one in outcomes:
        low, high = by_id[one.id]
        assert interval(one) == (low, high)
        assert one.covered == (low <= one.label <= high)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_journals_snapshots_and_batches(use: str, size: int) -> None:
    """A journal, a restart and any batches lead to the same outputs and the same bytes."""
    options, events = using(distributions=use, support=SUPPORT), events_of(4)
    live, other, whole = Processor(options), Processor(options), Processor(options)
    found: list[Any] = []
    for at in range(0, len(events), size):
        outputs, entry = live.process_logged(Events.of(events[at : at + size]))
        assert other.apply(entry).in_order() == outputs.in_order()
        found += outputs.in_order()
        live = Processor.restore(live.snapshot(), options)
    assert found == whole.process_many(events)
    assert live.state_bytes() == other.state_bytes() == whole.state_bytes()


def test_it_changes_nothing_else() -> None:
    """Other fields and the calibrator are those of a stream without the interval."""
    plain, banded = Processor(using(coverage=None)), Processor(BANDED)
    for one, other in zip(
        plain.process_many(events_of(5)), banded.process_many(events_of(5)), strict=True
    ):
        names = {"interval_low", "interval_high", "covered"}
        changed = {name: None for name in names if hasattr(other, name)}
        assert msgspec.structs.replace(other, **changed) == one
        assert not names & msgspec.to_builtins(one).keys()
    assert saved_calibrators(plain) == saved_calibrators(banded)


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=11),
    window=st.sampled_from([None, 6]),
    level=st.sampled_from([0.5, 0.75]),
)
def test_the_theorem_holds_for_what_is_served(
    rows: list[tuple[int, int]], window: int | None, level: float
) -> None:
    """Leaving each out, at least the promised share of the labels is inside, at every number."""
    rows = rows if window is None else rows[: window + 1]
    full = window is not None and len(rows) > window
    junk: list[Observation | Label] = [
        event
        for one in range(20 if full else 0)  # forgotten, as a whole window of labels follows
        for event in (Observation(f"j{one}", 1, "m", one % 4), Label(f"j{one}", 1, "m", -9.0))
    ]
    inside = 0
    for left_out in range(len(rows)):
        processor = Processor(using(coverage=level, window=window))
        processor.process_many(junk)
        for one, (score, label) in enumerate(rows):
            if one != left_out:
                processor.process(Observation(f"{one}", 50, "m", score))
                processor.process(Label(f"{one}", 50, "m", label))
        score, label = rows[left_out]
        processor.process(Observation("asked", 60, "m", score))
        (outcome,) = processor.process(Label("asked", 60, "m", label))
        assert isinstance(outcome, RegressionOutcome)
        inside += bool(outcome.covered)
    assert inside >= level * len(rows)


def test_the_monitor_scores_them() -> None:
    """Coverage, width and interval score are means over what was served; infinite ones apart."""
    processor = Processor(using(window=15))
    outcomes = [
        one for one in processor.process_many(events_of(6)) if isinstance(one, RegressionOutcome)
    ]
    (monitor,) = processor.monitors
    numbers, n = monitor.views()["calibrated"], len(outcomes)
    ends = [interval(one) for one in outcomes]
    finite = [high - low for low, high in ends if math.isfinite(high - low)]
    scores = [
        float(interval_score([low], [high], [one.label], LEVEL)[0])
        for one, (low, high) in zip(outcomes, ends, strict=True)
    ]
    assert 0 < len(finite) < n
    assert numbers["tracked_coverage"] == sum(bool(one.covered) for one in outcomes) / n
    assert numbers["tracked_level"] == LEVEL
    assert numbers["tracked_width"] == pytest.approx(math.fsum(finite) / len(finite))
    kept = [one for one in scores if math.isfinite(one)]
    assert numbers["tracked_score"] == pytest.approx(math.fsum(kept) / len(kept))
    assert numbers["tracked_score_infinite"] == n - len(kept)
    assert numbers["tracked_whole"] == (n - len(finite)) / n
    assert not {"tracked_empty", "tracked_coverage_bound"} & numbers.keys()
    (words,) = [one.caption for one in monitor.figures() if one.id == "tracked-interval"]
    assert words.startswith("By theorem, with a fixed model and a stream that does not move: ")


def test_labels_as_far_apart_as_doubles_go() -> None:
    """A width that overflows is infinite, and nothing else is."""
    processor = Processor(using(coverage=0.1))
    for number, label in enumerate((-1.7e308, 1.7e308) * 4):
        processor.process(Observation(f"{number}", number, "m", 0.0))
        processor.process(Label(f"{number}", number, "m", label))
    (monitor,) = processor.monitors
    assert monitor.views()["calibrated"]["tracked_whole"] == 1.0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"calibrator": "none"}, "coverage: needs calibrator='ivapr' or 'protected'"),
        ({"half_life": 5}, "coverage: has no promise with unequal weights; forget by window"),
        (
            {"coverage": None, "support": SUPPORT},
            "support: needs distributions='scored' or 'full', or coverage",
        ),
        ({"calibrator": "protected"}, "support: 'protected' needs the ends"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit(options: dict[str, Any], says: str) -> None:
    """The error names the setting and says how to fix it."""
    with pytest.raises(ParameterError, match=says):
        using(**options)


@pytest.mark.parametrize("options", [{"coverage": 0.5}, {"coverage": None}])
def test_a_snapshot_of_another_level(options: dict[str, Any]) -> None:
    """Another level, or none, is refused by name."""
    with pytest.raises(StateError, match=r"coverage was 0\.75 and is"):
        Processor.restore(Processor(BANDED).snapshot(), using(**options))


def test_damaged_rows_are_refused() -> None:
    """A saved interval is in order, within any support, and never empty."""
    for support, wide in (((), True), (SUPPORT, False)):
        options = using(support=support)
        processor, task = Processor(options), make_task(options)
        processor.process_many([Observation(f"{n}", n, "m", 5.0) for n in range(4)])
        rows = processor._state.calibration.rows[1:5, 1:].copy()  # noqa: SLF001
        assert task.are_predictions(rows)
        for low, high, fine in (
            (math.inf, -math.inf, False),
            (-3.0, 9.0, True),
            (6.0, 5.0, False),
            (-math.inf, 5.0, wide),
            (5.0, math.nan, False),
        ):
            changed = rows.copy()
            changed[2, -2:] = low, high
            assert task.are_predictions(changed) == fine


def test_rows_that_monitors_take() -> None:
    """Rows of a model are taken from those of a batch, each column."""
    column = np.array([True, False])
    rows = TrackedRows(0.5, column, np.array([1.0, 2.0]), ~column, ~column, np.array([1.0, 6.0]))
    taken = rows.take([1])
    assert taken.level == 0.5
    assert [part.tolist() for part in taken[1:]] == [[False], [2.0], [True], [True], [6.0]]

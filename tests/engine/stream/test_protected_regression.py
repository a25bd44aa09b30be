"""Protected distributions in a stream: numbers, expiries, batches, journals and snapshots."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.engine.stream.cases import saved_calibrators

from abers import ParameterError, StateError
from abers.monitoring import experts
from abers.regression import IVAPR, PredictiveDistribution, ProtectedIVAPR
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

if TYPE_CHECKING:
    from abers.stream import Event

WAIT = 500
LEVELS = (0.1, 0.5, 0.9)
SUPPORT = (0.0, 10.0)
SETTINGS = Settings(
    task="regression",
    calibrator="protected",
    support=SUPPORT,
    quantiles=LEVELS,
    base_weight=0.25,
    label_timeout=WAIT,
    max_jump=10**9,
    max_pending=12,
    tests=False,
)


def using(distributions: str) -> Settings:
    """Return the settings with a use of whole distributions."""
    return msgspec.structs.replace(SETTINGS, distributions=distributions)


def events(n: int, seed: int, models: str = "m") -> list[Event]:
    """Return observations whose labels come late, in any order, or never."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    found: list[Event] = []
    for model in models:  # three events, so that the clock is known
        for time in (1, 2, 3):
            found.append(Observation(f"{time}", time, model=model, score=5.0))
            found.append(Label(f"{time}", time, model=model, value=5.0))
    for number in range(n):
        time, model = 20 * number + 1_000, rng.choice(models)
        score = 12.0 * rng.random() - 1.0
        truth = score if number < n // 2 else 10.0 - score  # the scorer breaks half-way
        found.append(Observation(f"n{number}", time, model=model, score=score))
        if rng.random() < 0.8:
            late = time + rng.choice([0, 5, 100, 300, 2 * WAIT])
            value = min(max(truth + rng.gauss(0.0, 1.0), 0.0), 10.0)
            found.append(Label(f"n{number}", late, model=model, value=value))
    return sorted(found, key=lambda event: (event.time, isinstance(event, Label)))


def by_hand(stream: list[Event]) -> tuple[list[PredictiveDistribution], ProtectedIVAPR]:
    """Return the distributions of a calibrator that is called for one event after the other."""
    calibrator = ProtectedIVAPR(SUPPORT, base_weight=0.25)
    waiting: dict[str, Observation] = {}
    numbers: dict[str, int] = {}
    found: list[PredictiveDistribution] = []
    for event in stream:
        for id_, one in [*waiting.items()]:
            if event.time - one.time > WAIT:
                calibrator.expire_one(numbers[id_])
                del waiting[id_]
        if isinstance(event, Label):
            if event.id in waiting:
                score = waiting.pop(event.id).score
                calibrator.learn_one(score, event.value, number=numbers[event.id])
            continue
        if len(waiting) == SETTINGS.max_pending:
            oldest = next(iter(waiting))
            calibrator.expire_one(numbers[oldest])
            del waiting[oldest]
        waiting[event.id], numbers[event.id] = event, len(found)
        found.append(calibrator.predict_one(event.score, number=len(found)))
    return found, calibrator


def quantiles(one: PredictiveDistribution) -> dict[str, float]:
    """Return the quantiles of a distribution as outputs have them."""
    return dict(zip(map(repr, LEVELS), one.quantile(LEVELS).tolist(), strict=True))


@pytest.mark.parametrize("use", USES)
def test_the_processor_numbers_and_expires(use: str) -> None:
    """Outputs and state are those of a calibrator that gets each observation, label and expiry."""
    stream = events(90, 1)
    processor = Processor(using(use))
    outputs = [
        one
        for at in range(0, len(stream), 7)
        for one in processor.process_many(stream[at : at + 7])
    ]
    distributions, calibrator = by_hand(stream)
    predictions = [one for one in outputs if isinstance(one, RegressionPrediction)]
    assert [one.quantiles for one in predictions] == [*map(quantiles, distributions)]
    assert all(one.low == one.quantiles == one.high for one in predictions)
    assert saved_calibrators(processor) == [calibrator.to_bytes()]
    assert processor.counters["expired"] > 5
    assert processor.counters["evicted"] > 5
    means = [None if use == "none" else one.mean for one in distributions]
    assert [one.mean for one in predictions] == means
    bands = [one.to_dict() if use == "full" else None for one in distributions]
    assert [one.cdf for one in predictions] == bands
    by_id = {one.id: whole for one, whole in zip(predictions, distributions, strict=True)}
    outcomes = [one for one in outputs if isinstance(one, RegressionOutcome)]
    assert len(outcomes) > 40
    for one in outcomes:
        whole = by_id[one.id]
        scored = (None, None) if use == "none" else (whole.mean, whole.crps(one.label))
        assert (one.quantiles, one.mean, one.crps) == (quantiles(whole), *scored)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("size", [1, 13, 10_000])
def test_batches_snapshots_and_journals(size: int, use: str) -> None:
    """Any batches, a restore after each, and the journal lead to the same state, to the byte."""
    stream, settings = events(50, 2, models="mn"), using(use)
    whole, split, other = (Processor(settings) for _ in range(3))
    predictions = whole.process_many(stream)
    found = []
    for first in range(0, len(stream), size):
        outputs, entry = split.process_logged(Events.of(stream[first : first + size]))
        assert other.apply(entry).in_order() == outputs.in_order()
        found += outputs.in_order()
        split = Processor.restore(split.snapshot(), settings)
    assert found == predictions
    assert whole.state_bytes() == split.state_bytes() == other.state_bytes()


def test_all_uses_of_distributions_have_the_same_calibrator() -> None:
    """What is written of a distribution changes neither the quantiles nor the calibrator."""
    stream = events(50, 3)
    one, *others = (Processor(using(use)) for use in USES)
    first = [getattr(each, "quantiles", None) for each in one.process_many(stream)]
    for other in others:
        assert [getattr(each, "quantiles", None) for each in other.process_many(stream)] == first
        assert saved_calibrators(other) == saved_calibrators(one)


def test_without_labels_the_answer_is_the_base() -> None:
    """Before the first label the distribution is the score, clipped to the support."""
    processor = Processor(using("scored"))
    for score, expected in ((4.0, 4.0), (-3.0, 0.0), (11.0, 10.0)):
        (found,) = processor.process(Observation(f"{score}", 1, score=score))
        assert isinstance(found, RegressionPrediction)
        assert found.quantiles == dict.fromkeys(map(repr, LEVELS), expected)
        assert found.mean == pytest.approx(expected)


def test_a_reset_while_observations_wait() -> None:
    """After a reset, labels of older observations teach the experts and hold no lane."""
    processor = Processor(SETTINGS)
    processor.process_many([Observation(f"a{n}", n, model="m", score=4.0) for n in range(10)])
    processor.reset_model("m")
    processor.process_many([Label(f"a{n}", 50, model="m", value=7.0) for n in range(10)])
    (after,) = processor.process(Observation("b", 60, model="m", score=4.0))
    assert isinstance(after, RegressionPrediction)
    assert (after.quantiles["0.5"], after.n_labels) == (7.0, 10)
    (state,) = saved_calibrators(processor)
    assert ProtectedIVAPR.from_bytes(state).lanes == 1


def test_labels_outside_the_support_change_nothing() -> None:
    """A label beyond an end is a dead letter, and the observation waits on."""
    processor = Processor(SETTINGS)
    processor.process(Observation("a", 1, score=4.0))
    before = saved_calibrators(processor)
    (refused,) = processor.process(Label("a", 2, value=10.5))
    assert isinstance(refused, DeadLetter)
    assert refused.reason == "bad-label"
    assert saved_calibrators(processor) == before
    assert processor.waiting == (1, 0)


def test_the_monitor_reads_the_pool() -> None:
    """Price, weights and total CRPS are those of the calibrator, also after a restore."""
    stream = events(90, 4)
    processor = Processor(using("scored"))
    outputs = processor.process_many(stream)
    crps = [one.crps for one in outputs if isinstance(one, RegressionOutcome)]
    _, calibrator = by_hand(stream)
    other = Processor.restore(processor.snapshot(), processor.settings)
    for one in (processor, other):
        (monitor,) = one.monitors
        beside = monitor.numbers_beside()
        numbers = {number.name: number.value for number in beside if not number.labels}
        price = SETTINGS.max_pending * 2.0 * 10.0 * math.log(4.0)
        assert numbers["lanes"] == SETTINGS.max_pending
        assert numbers["price_crps"] == pytest.approx(price)
        assert numbers["price_crps_per_label"] == pytest.approx(price / len(crps))
        assert not [each.unit for each in beside if each.unit == "nats"]
        found = experts(beside)
        weights = {name: each.weight for name, each in found.items() if each.weight is not None}
        assert weights == calibrator.expert_weights()
        assert {name: each.loss for name, each in found.items()} == calibrator.expert_losses()
        assert found["protected"].loss == pytest.approx(math.fsum(map(float, crps)))  # type: ignore[arg-type]
    other.reset_model("m")
    (monitor,) = other.monitors
    assert experts(monitor.numbers_beside())["base"].weight == pytest.approx(0.25)


def test_other_calibrators_have_no_such_monitor() -> None:
    """A regression without a pool has no numbers of one."""
    processor = Processor(Settings(task="regression", quantiles=LEVELS))
    processor.process_many(events(20, 4))
    assert processor.monitors[0].numbers_beside() == []


def test_what_is_too_large_to_wait_holds_no_lane() -> None:
    """An observation that expires at its own prediction leaves its lane to the next one."""
    processor = Processor(msgspec.structs.replace(using("scored"), max_bytes=1))
    processor.process_many([Observation(f"{n:03}", n, score=0.5) for n in range(30)])
    (state,) = saved_calibrators(processor)
    assert processor.waiting == (0, 0)
    assert ProtectedIVAPR.from_bytes(state).lanes == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"support": ()}, "support: 'protected' needs the ends of all labels"),
        ({"support": (1.0,)}, "support: .* is not two numbers"),
        ({"support": (1.0, 1.0)}, "support: .* is not two numbers"),
        ({"support": (0.0, math.inf)}, "support: .* is not a list of finite numbers"),
        ({"grid": (1.0, 2.0)}, "grid: is not for 'protected'"),
        ({"max_age": 9}, "max_age: is not for"),
        ({"half_life": 9}, "half_life: is not for"),
        ({"scores": "probability"}, "scores"),
        ({"probability": "protected"}, "probability"),
        ({"base_weight": 0.0}, "base_weight: 0.0 is too small; write more than 0.0"),
        ({"base_weight": 1.0}, "base_weight: 1.0 is too large"),
        ({"base_weight": 1}, "base_weight: 1 is too large"),
        ({"base_weight": math.nan}, "base_weight: nan is not a number"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit(options: dict[str, Any], says: str) -> None:
    """The error names the setting and says how to fix it."""
    with pytest.raises(ParameterError, match=says):
        msgspec.structs.replace(SETTINGS, **options)


def test_the_window_is_that_of_the_calibrator() -> None:
    """The window of the settings bounds the labels that count, and a snapshot has the same one."""
    processor = Processor(msgspec.structs.replace(SETTINGS, window=9))
    processor.process_many(events(60, 2))
    (state,) = saved_calibrators(processor)
    calibrator = ProtectedIVAPR.from_bytes(state)
    assert (calibrator.window, len(calibrator)) == (9, 9)
    with pytest.raises(ValueError, match="window"):
        make_task(SETTINGS).calibrator(state)


def test_ends_too_far_apart_are_refused_at_once() -> None:
    """A support of which sums are infinite is refused before the first event."""
    far = msgspec.structs.replace(SETTINGS, support=(-1e308, 1e308))
    with pytest.raises(ParameterError, match="support"):
        make_task(far)


def test_a_snapshot_of_another_first_weight() -> None:
    """A calibrator with another weight, or other members, is not one of these settings."""
    task = make_task(SETTINGS)
    assert task.calibrator(ProtectedIVAPR(SUPPORT, base_weight=0.25).to_bytes()).mixture is not None
    for calibrator, what in (
        (ProtectedIVAPR(SUPPORT), "base_weight"),
        (ProtectedIVAPR(SUPPORT, base_weight=0.25, members=7), "members"),
        (ProtectedIVAPR((0.0, 9.0), base_weight=0.25), "support"),
    ):
        with pytest.raises(ValueError, match=what):
            task.calibrator(calibrator.to_bytes())
    with pytest.raises(StateError):
        task.calibrator(IVAPR(support=SUPPORT).to_bytes())


def test_damaged_rows_are_refused() -> None:
    """A saved prediction has ascending quantiles."""
    task = make_task(SETTINGS)
    processor = Processor(SETTINGS)
    processor.process_many(events(20, 5))
    rows = processor._state.calibration.rows[1:5, 1:-1].copy()  # noqa: SLF001
    assert task.are_predictions(rows)
    for column, value in ((0, 11.0), (1, math.nan), (-1, math.nan)):
        bad = rows.copy()
        bad[2, column] = value
        assert not task.are_predictions(bad)

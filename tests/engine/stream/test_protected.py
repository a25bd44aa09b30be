"""Protected predictions in a stream: numbers, expiries, batches, journals and snapshots."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.engine.stream.cases import saved_calibrators

from abers import ParameterError
from abers.calibration import ProtectedVennAbers
from abers.monitoring import experts
from abers.stream import Events, Label, Observation, Outcome, Prediction, Processor, Settings

if TYPE_CHECKING:
    from abers.stream import Event

WAIT = 500
SETTINGS = Settings(
    calibrator="protected",
    scores="probability",
    label_timeout=WAIT,
    max_jump=10**9,
    max_pending=25,
    tests=False,
)


def events(n: int, seed: int, models: str = "m") -> list[Event]:
    """Return observations whose labels come late, in any order, or never."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    found: list[Event] = []
    for model in models:  # three events, so that the clock is known
        for time in (1, 2, 3):
            found.append(Observation(f"{time}", time, model=model, score=0.5))
            found.append(Label(f"{time}", time, model=model, value=1))
    for number in range(n):
        time, model = 10 * number + 1_000, rng.choice(models)
        score = rng.random()
        truth = score if number < n // 2 else 1.0 - score  # the scorer breaks half-way
        found.append(Observation(f"a{number}", time, model=model, score=score))
        if rng.random() < 0.8:
            late = time + rng.choice([0, 5, 100, 300, 2 * WAIT])
            found.append(Label(f"a{number}", late, model=model, value=int(rng.random() < truth)))
    return sorted(found, key=lambda event: (event.time, isinstance(event, Label)))


def issued(processor: Processor, stream: list[Event], size: int) -> list[Prediction]:
    """Process events in batches of a size, and return the predictions."""
    found = []
    for first in range(0, len(stream), size):
        found += processor.process_many(stream[first : first + size])
    return [one for one in found if isinstance(one, Prediction)]


def expected(stream: list[Event]) -> list[float]:
    """Return the probabilities of a calibrator that is called for one event after the other."""
    calibrator = ProtectedVennAbers()
    waiting: dict[str, tuple[int, int, float]] = {}
    found: list[float] = []
    for event in stream:
        for id_, (number, time, _) in [*waiting.items()]:
            if event.time - time > WAIT:
                calibrator.expire_one(number)
                del waiting[id_]
        if isinstance(event, Label):
            if event.id in waiting:
                number, _, score = waiting.pop(event.id)
                calibrator.learn_one(score, event.value, number=number)
            continue
        if len(waiting) == SETTINGS.max_pending:
            number, *_ = waiting.pop(next(iter(waiting)))
            calibrator.expire_one(number)
        waiting[event.id] = len(found), event.time, event.score
        found.append(calibrator.predict_one(event.score, number=len(found)).probability)
    return found


def test_the_processor_numbers_and_expires() -> None:
    """Predictions are those of a calibrator that gets each observation, label and expiry."""
    stream = events(400, 1)
    processor = Processor(SETTINGS)
    found = issued(processor, stream, 7)
    assert [one.p for one in found] == expected(stream)
    assert processor.counters["expired"] > 20
    assert processor.counters["evicted"] > 20


@pytest.mark.parametrize("size", [1, 13, 10_000])
def test_batches_snapshots_and_journals(size: int) -> None:
    """Any batches, a restore after each, and the journal lead to the same state, to the byte."""
    stream = events(300, 2, models="mn")
    whole, split, other = (Processor(SETTINGS) for _ in range(3))
    predictions = issued(whole, stream, 50)
    found = []
    for first in range(0, len(stream), size):
        outputs, entry = split.process_logged(Events.of(stream[first : first + size]))
        assert other.apply(entry).in_order() == outputs.in_order()
        found += [one for one in outputs.in_order() if isinstance(one, Prediction)]
        split = Processor.restore(split.snapshot(), SETTINGS)
    assert found == predictions
    assert whole.state_bytes() == split.state_bytes() == other.state_bytes()


def test_outcomes_have_the_protected_probability() -> None:
    """An outcome has the probability that was issued, which may lie outside the interval."""
    stream = events(600, 3)
    outputs = Processor(SETTINGS).process_many(stream)
    issued_p = {one.id: one.p for one in outputs if isinstance(one, Prediction)}
    outcomes = [one for one in outputs if isinstance(one, Outcome)]
    assert all(one.p == issued_p[one.id] for one in outcomes)
    assert any(not one.p0 <= one.p <= one.p1 for one in outcomes)


def test_a_reset_while_observations_wait() -> None:
    """After a reset, labels of older observations teach the experts and hold no lane."""
    processor = Processor(SETTINGS)
    processor.process_many([Observation(f"a{n}", n, model="m", score=0.9) for n in range(20)])
    processor.reset_model("m")
    processor.process_many([Label(f"a{n}", 50, model="m", value=0) for n in range(20)])
    (after,) = processor.process(Observation("b", 60, model="m", score=0.9))
    assert isinstance(after, Prediction)
    assert after.p < 0.9
    assert after.n_labels == 20


def test_without_labels_the_answer_is_near_the_score() -> None:
    """Before the first label the probability leans a little from the raw score to 1/2."""
    found = Processor(SETTINGS).process(Observation("a", 1, score=0.83))
    assert isinstance(found[0], Prediction)
    assert 0.81 < found[0].p < 0.83
    assert (found[0].p0, found[0].p1) == (0.0, 1.0)


def test_the_monitor_counts_what_lies_outside_and_reads_the_mixture() -> None:
    """Shares outside are those of the outcomes, also after a restore; experts are those now."""
    stream = events(600, 3)
    processor = Processor(SETTINGS)
    outcomes = [one for one in processor.process_many(stream) if isinstance(one, Outcome)]
    outside = sum(not one.p0 <= one.p <= one.p1 for one in outcomes)
    other = Processor.restore(processor.snapshot(), SETTINGS)
    for one in (processor, other):
        (monitor,) = one.monitors
        numbers = {number.name: number.value for number in monitor.numbers_beside()}
        assert numbers["outside_interval"] == outside / len(outcomes)
        assert numbers["lanes"] == SETTINGS.max_pending
        assert numbers["price_nats"] == pytest.approx(SETTINGS.max_pending * math.log(4))
    (before,), (after,) = processor.monitors, other.monitors
    assert before.numbers_beside() == after.numbers_beside()
    found = experts(after.numbers_beside())
    assert found["protected"].loss < found["raw"].loss
    other.reset_model("m")
    (monitor,) = other.monitors
    assert experts(monitor.numbers_beside())["raw"].weight == 0.25


def test_other_calibrators_have_no_such_monitor() -> None:
    """A stream without a mixture has no numbers of one."""
    processor = Processor(Settings(scores="probability", probability="merged"))
    processor.process_many(events(20, 4))
    assert processor.monitors[0].numbers_beside() == []


def test_what_is_too_large_to_wait_holds_no_lane() -> None:
    """An observation that expires at its own prediction leaves its lane to the next one."""
    settings = Settings(scores="probability", max_bytes=1)
    processor = Processor(settings)
    processor.process_many([Observation(f"{n:03}", n, score=0.5) for n in range(100)])
    (saved,) = saved_calibrators(processor)
    assert processor.waiting == (0, 0)
    assert ProtectedVennAbers.from_bytes(saved).lanes == 1


@pytest.mark.parametrize("weight", [0.0, 1.0, -0.5, 2, "0.5", float("nan")], ids=repr)
def test_the_weight_of_raw_is_between_0_and_1(weight: object) -> None:
    """Any other weight is refused by name."""
    with pytest.raises(ParameterError, match="raw_weight"):
        Settings(scores="probability", raw_weight=weight)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "protected"),
    [
        ({}, False),
        ({"scores": "probability"}, True),
        ({"scores": "logit"}, True),
        ({"scores": "probability", "calibrator": "ivap"}, True),
        ({"scores": "probability", "calibrator": "platt"}, False),
        ({"scores": "probability", "calibrator": "no.such:Class"}, False),
        ({"scores": "probability", "probability": "merged"}, False),
        ({"probability": "protected"}, True),
        ({"calibrator": "protected"}, True),
        ({"calibrator": "protected", "probability": "protected"}, True),
        ({"task": "regression"}, False),
    ],
    ids=str,
)
def test_which_probability_is_predicted(options: dict[str, Any], protected: bool) -> None:  # noqa: FBT001
    """Scores that are probabilities or logits are protected where the calibrator can."""
    assert Settings(**options).protected == protected


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"probability": "raw"}, "'raw' is not one of 'protected', 'merged'"),
        ({"probability": "protected", "calibrator": "platt"}, "'ivap' or .*, not 'platt'"),
        ({"probability": "protected", "calibrator": "a.b:C"}, "not 'a.b:C'"),
        (
            {"probability": "protected", "task": "regression"},
            "does not support the task 'regression'",
        ),
        ({"probability": "merged", "calibrator": "protected"}, "set calibrator='ivap'"),
    ],
    ids=str,
)
def test_probabilities_that_a_calibrator_does_not_make(options: dict[str, Any], says: str) -> None:
    """The error says which calibrators have a protected form."""
    with pytest.raises(ParameterError, match=says):
        Settings(**options)


@pytest.mark.parametrize("calibrator", [None, "ivap"])
def test_the_default_is_the_protected_calibrator(calibrator: str | None) -> None:
    """Without a word on the probability, predictions are those of the calibrator "protected"."""
    stream = events(200, 4)
    usual = msgspec.structs.replace(SETTINGS, calibrator=calibrator)
    named, unnamed = Processor(SETTINGS), Processor(usual)
    assert named.process_many(stream) == unnamed.process_many(stream)
    assert named.state_bytes() == unnamed.state_bytes()


def test_the_interval_is_that_of_the_merged_probability() -> None:
    """The two settings differ in the probability alone."""
    stream = events(300, 5)
    both = [
        Processor(Settings(scores="probability", probability=name, max_jump=10**9, tests=False))
        for name in ("protected", "merged")
    ]
    for one, other in zip(*(each.process_many(stream) for each in both), strict=True):
        assert isinstance(one, Prediction | Outcome)
        assert isinstance(other, Prediction | Outcome)
        assert msgspec.structs.replace(one, p=other.p) == other


def test_a_snapshot_without_the_settings() -> None:
    """Settings of before the probability could be set are read as the default."""
    given = msgspec.to_builtins(Settings(scores="logit"))
    del given["probability"], given["raw_weight"]
    assert msgspec.convert(given, Settings) == Settings(scores="logit")


def test_logits_before_the_first_label() -> None:
    """The answer is near the logistic function of the score."""
    (found,) = Processor(Settings(scores="logit")).process(Observation("a", 1, score=2.0))
    assert isinstance(found, Prediction)
    assert found.p == pytest.approx(1.0 / (1.0 + math.exp(-2.0)), abs=0.02)


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_scores_at_the_ends(score: float) -> None:
    """A score of 0 or 1 is clipped, is wrong at a finite price, and changes what comes next."""
    processor = Processor(Settings(scores="probability", max_jump=10**9))
    (first,) = processor.process(Observation("a", 1, score=score))
    assert isinstance(first, Prediction)
    assert 1e-6 < abs(first.p - score) < 0.01
    processor.process(Label("a", 2, value=int(1.0 - score)))
    (second,) = processor.process(Observation("b", 3, score=score))
    assert isinstance(second, Prediction)
    assert abs(second.p - score) > 0.03


def test_a_label_of_an_expired_observation() -> None:
    """It is counted as late, teaches nothing, and the lane of its observation is free."""
    processor = Processor(msgspec.structs.replace(SETTINGS, max_jump=10**9))
    for time in (1, 2, 3):
        processor.process(Observation(f"{time}", time, score=0.5))
    processor.process(Observation("a", 2_000, score=0.7))
    processor.process(Label("1", 2_001, value=1))
    assert processor.counters["late_labels"] == 1
    (saved,) = saved_calibrators(processor)
    calibrator = ProtectedVennAbers.from_bytes(saved)
    assert (calibrator.lanes, calibrator.awaiting, len(calibrator)) == (3, 1, 0)

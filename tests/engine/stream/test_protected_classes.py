"""Protected class probabilities in a stream: numbers, expiries, batches, journals, snapshots."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from abers import OneVsRest, ParameterError, ProtectedMultiClass
from abers.monitoring import experts
from abers.stream import (
    Events,
    Label,
    MultiClassOutcome,
    MultiClassPrediction,
    Observation,
    Processor,
    Settings,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream import Event

WAIT = 500
NAMES = ("a", "b", "c")
SETTINGS = Settings(
    task="multiclass",
    classes=NAMES,
    scores="probability",
    label_timeout=WAIT,
    max_jump=10**9,
    max_pending=12,
    tests=False,
)


def events(
    n: int, seed: int, delays: Sequence[int] = (0, 5, 100, 300, 2 * WAIT), share: float = 0.8
) -> list[Event]:
    """Return observations whose labels come late, in any order, or never."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    found: list[Event] = []
    for time in (1, 2, 3):  # three events, so that the clock is known
        found.append(Observation(f"{time}", time, score={"a": 0.5, "b": 0.25, "c": 0.25}))
        found.append(Label(f"{time}", time, value="a"))
    for number in range(n):
        time = 20 * number + 1_000
        weights = [rng.random() + 0.01 for _ in NAMES]
        scores = [one / sum(weights) for one in weights]
        found.append(Observation(f"n{number}", time, score=dict(zip(NAMES, scores, strict=True))))
        turned = NAMES if number < n // 2 else NAMES[1:] + NAMES[:1]  # the scorer breaks
        if rng.random() < share:
            late = time + rng.choice(delays)
            found.append(Label(f"n{number}", late, value=rng.choices(turned, scores)[0]))
    return sorted(found, key=lambda event: (event.time, isinstance(event, Label)))


def expected(stream: list[Event], **options: Any) -> list[dict[Any, float]]:  # noqa: ANN401
    """Return the probabilities of a calibrator that is called for one event after the other."""
    calibrator = ProtectedMultiClass(NAMES, **options)
    waiting: dict[str, Observation] = {}
    numbers: dict[str, int] = {}
    found: list[dict[Any, float]] = []
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
        found.append(calibrator.predict_one(event.score, number=len(found)).p)
    return found


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({}, {}),
        ({"calibrator": "one-vs-rest"}, {}),
        ({"calibrator": "protected"}, {}),
        ({"raw_weight": 0.5, "window": 20}, {"raw_weight": 0.5, "window": 20}),
    ],
    ids=str,
)
def test_the_processor_numbers_and_expires(more: dict[str, Any], options: dict[str, Any]) -> None:
    """Predictions are those of a calibrator that gets each observation, label and expiry."""
    stream = events(100, 1)
    processor = Processor(msgspec.structs.replace(SETTINGS, **more))
    outputs = [
        one
        for at in range(0, len(stream), 7)
        for one in processor.process_many(stream[at : at + 7])
    ]
    predictions = [one for one in outputs if isinstance(one, MultiClassPrediction)]
    assert [one.p for one in predictions] == expected(stream, **options)
    assert processor.counters["expired"] > 5
    assert processor.counters["evicted"] > 5
    issued = {one.id: one.p for one in predictions}
    outcomes = [one for one in outputs if isinstance(one, MultiClassOutcome)]
    assert outcomes
    assert all(one.p == issued[one.id] for one in outcomes)


@pytest.mark.parametrize("size", [1, 13, 10_000])
def test_batches_snapshots_and_journals(size: int) -> None:
    """Any batches, a restore after each, and the journal lead to the same state, to the byte."""
    stream = events(50, 2)
    whole, split, other = (Processor(SETTINGS) for _ in range(3))
    predictions = whole.process_many(stream)
    found = []
    for first in range(0, len(stream), size):
        outputs, entry = split.process_logged(Events.of(stream[first : first + size]))
        assert other.apply(entry).in_order() == outputs.in_order()
        found += outputs.in_order()
        split = Processor.restore(split.snapshot(), SETTINGS)
    assert found == predictions
    assert whole.state_bytes() == split.state_bytes() == other.state_bytes()


def test_without_labels_the_answer_is_the_score() -> None:
    """Before the first label the probabilities are the scores, and the intervals say nothing."""
    scores = {"a": 0.5, "b": 0.25, "c": 0.25}
    (found,) = Processor(SETTINGS).process(Observation("x", 1, score=scores))
    assert isinstance(found, MultiClassPrediction)
    assert found.p == scores
    assert (found.low, found.high) == (dict.fromkeys(NAMES, 0.0), dict.fromkeys(NAMES, 1.0))


def test_merged_probabilities_are_those_of_one_vs_rest() -> None:
    """With "merged" the intervals stay the same, and the probabilities are those of `OneVsRest`."""
    stream = events(100, 3, delays=[0], share=1.0)
    both = [
        Processor(msgspec.structs.replace(SETTINGS, probability=name)).process_many(stream)
        for name in ("protected", "merged")
    ]
    calibrator = OneVsRest(NAMES)
    scores: dict[str, Any] = {}
    for protected, merged in zip(*both, strict=True):
        if not isinstance(merged, MultiClassPrediction | MultiClassOutcome):
            assert merged == protected
            continue
        assert isinstance(protected, MultiClassPrediction | MultiClassOutcome)
        assert msgspec.structs.replace(protected, p=merged.p) == merged
        if isinstance(merged, MultiClassPrediction):
            scores[merged.id] = merged.score
            assert merged.p == calibrator.predict_one(merged.score).p
        else:
            calibrator.learn_one(scores[merged.id], merged.label)


def test_the_monitor_counts_what_lies_outside_and_reads_the_mixture() -> None:
    """An outcome counts if any class lies outside; a restore changes no number, a reset all."""
    processor = Processor(SETTINGS)
    outcomes = [
        one for one in processor.process_many(events(300, 4)) if isinstance(one, MultiClassOutcome)
    ]
    outside = sum(
        any(not one.low[name] <= one.p[name] <= one.high[name] for name in NAMES)
        for one in outcomes
    )
    assert 0 < outside < len(outcomes)
    other = Processor.restore(processor.snapshot(), SETTINGS)
    for one in (processor, other):
        (monitor,) = one.monitors
        numbers = {number.name: number.value for number in monitor.numbers_beside()}
        assert numbers["outside_interval"] == outside / len(outcomes)
        assert numbers["lanes"] == SETTINGS.max_pending
        assert numbers["price_nats"] == pytest.approx(SETTINGS.max_pending * math.log(4))
        found = experts(monitor.numbers_beside())
        assert found["protected"].loss / len(outcomes) == pytest.approx(
            monitor.views()["calibrated"]["log_loss"]
        )
        assert found["protected"].loss < found["raw"].loss
    (before,), (after,) = processor.monitors, other.monitors
    assert before.numbers_beside() == after.numbers_beside()
    other.reset_model(outcomes[0].model)
    (monitor,) = other.monitors
    assert experts(monitor.numbers_beside())["raw"].weight == 0.25


@pytest.mark.parametrize(
    ("options", "protected"),
    [
        ({}, False),
        ({"scores": "logit"}, False),
        ({"scores": "probability"}, True),
        ({"scores": "probability", "calibrator": "one-vs-rest"}, True),
        ({"scores": "probability", "calibrator": "one-vs-one"}, False),
        ({"scores": "probability", "calibrator": "no.such:Class"}, False),
        ({"scores": "probability", "probability": "merged"}, False),
        ({"scores": "probability", "probability": "protected"}, True),
        ({"scores": "probability", "calibrator": "protected"}, True),
    ],
    ids=str,
)
def test_which_probability_is_predicted(options: dict[str, Any], protected: bool) -> None:  # noqa: FBT001
    """Scores that are declared to be probabilities are protected where the calibrator can."""
    assert Settings(task="multiclass", classes=NAMES, **options).protected == protected


@pytest.mark.parametrize("probability", [None, "protected"])
@pytest.mark.parametrize("count", [100, 101])
def test_many_classes(count: int, probability: Any) -> None:  # noqa: ANN401
    """More than 100 classes are protected only if that is asked for."""
    names = tuple(map(str, range(count)))
    settings = Settings(
        task="multiclass", classes=names, scores="probability", probability=probability
    )
    assert settings.protected == (count == 100 or probability == "protected")
    (found,) = Processor(settings).process(Observation("x", 1, score={"7": 1.0}))
    assert isinstance(found, MultiClassPrediction)
    assert (found.p["7"] > 0.99) == settings.protected


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"calibrator": "protected"},
            "calibrator: 'protected' needs probabilities; set scores='probability'",
        ),
        (
            {"probability": "protected", "scores": "logit"},
            "probability: 'protected' needs probabilities; set scores='probability'",
        ),
        (
            {"probability": "protected", "calibrator": "one-vs-one", "scores": "probability"},
            "'one-vs-rest' or 'protected', not 'one-vs-one'",
        ),
        (
            {"probability": "merged", "calibrator": "protected", "scores": "probability"},
            "set calibrator='one-vs-rest'",
        ),
        (
            {"probability": "protected", "classes": (), "scores": "probability"},
            "classes: must be two or more different classes",
        ),
        (
            {"calibrator": "protected-classes"},
            "is not one of 'one-vs-rest', 'one-vs-one', 'protected'",
        ),
    ],
    ids=str,
)
def test_probabilities_that_a_calibrator_does_not_make(options: dict[str, Any], says: str) -> None:
    """The error says which setting to change, and how."""
    with pytest.raises(ParameterError, match=says):
        Settings(**{"task": "multiclass", "classes": NAMES} | options)

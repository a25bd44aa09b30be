"""Protected class probabilities in a stream: numbers, expiries, batches, journals, snapshots."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from abers import ParameterError, ProtectedMultiClass
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
    from abers.stream import Event

WAIT = 500
NAMES = ("a", "b", "c")
SETTINGS = Settings(
    task="multiclass",
    classes=NAMES,
    calibrator="protected-classes",
    scores="probability",
    label_timeout=WAIT,
    max_jump=10**9,
    max_pending=12,
    tests=False,
)


def events(n: int, seed: int) -> list[Event]:
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
        if rng.random() < 0.8:
            late = time + rng.choice([0, 5, 100, 300, 2 * WAIT])
            found.append(Label(f"n{number}", late, value=rng.choices(turned, scores)[0]))
    return sorted(found, key=lambda event: (event.time, isinstance(event, Label)))


def expected(stream: list[Event]) -> list[dict[Any, float]]:
    """Return the probabilities of a calibrator that is called for one event after the other."""
    calibrator = ProtectedMultiClass(NAMES)
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


def test_the_processor_numbers_and_expires() -> None:
    """Predictions are those of a calibrator that gets each observation, label and expiry."""
    stream = events(100, 1)
    processor = Processor(SETTINGS)
    outputs = [
        one
        for at in range(0, len(stream), 7)
        for one in processor.process_many(stream[at : at + 7])
    ]
    predictions = [one for one in outputs if isinstance(one, MultiClassPrediction)]
    assert [one.p for one in predictions] == expected(stream)
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


def test_scores_must_be_probabilities() -> None:
    """The raw vector is made of probabilities; other scores are refused by the settings."""
    with pytest.raises(ParameterError, match="set scores = 'probability'"):
        Settings(task="multiclass", classes=NAMES, calibrator="protected-classes", scores="any")

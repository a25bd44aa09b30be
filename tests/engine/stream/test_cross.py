"""Cross Venn-Abers prediction in a stream, `abers.stream.tasks.binary`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import CrossVennAbers
from abers.learners.river_adapters import RiverFolds, make
from abers.stream import DeadLetter, Event, Label, Observation, Outcome, Prediction, Processor
from abers.stream.settings import Settings

K = 3
SETTINGS = Settings(calibrator="cvap", folds=K, scores="probability", probability="merged")
SCORE = st.floats(0.0, 1.0)
SCORES = st.lists(SCORE | st.lists(SCORE, min_size=K, max_size=K), min_size=1, max_size=40)


def stream(scores: list[Any], delay: int) -> list[Event]:
    """Make observations and the labels of those that are `delay` back."""
    events: list[Event] = []
    for n, score in enumerate(scores):
        events.append(Observation(f"a{n}", n, score=score))
        if n >= delay:
            events.append(Label(f"a{n - delay}", n, value=(n * n) % 3 % 2))
    return events


@given(SCORES, st.integers(0, 5), st.lists(st.integers(0, 80), max_size=4))
def test_it_is_the_calibrator(scores: list[Any], delay: int, cuts: list[int]) -> None:
    """Predictions are those of the calibrator by itself, however the stream is cut."""
    events = stream(scores, delay)
    expected = CrossVennAbers(folds=K)
    processor, split = Processor(SETTINGS), Processor(SETTINGS)
    outputs = processor.process_many(events)
    bounds = [0, *sorted(cuts), len(events)]
    parts = [events[a:b] for a, b in pairwise(bounds)]
    assert [one for part in parts for one in split.process_many(part)] == outputs
    assert processor.state_bytes() == split.state_bytes()
    rows: dict[str, list[float]] = {}
    for event, output in zip(events, outputs, strict=True):
        if isinstance(event, Label):
            assert isinstance(output, Outcome)
            expected.learn_one(rows[event.id], event.value, id=event.id)
            continue
        rows[event.id] = event.score if isinstance(event.score, list) else [event.score] * K
        interval = expected.predict_one(rows[event.id])
        assert isinstance(output, Prediction)
        assert output.score == np.median(rows[event.id])
        assert (output.p0, output.p, output.p1) == pytest.approx(
            (interval.low, interval.merged, interval.high)
        )
        assert output.n_labels == sum(
            isinstance(one, Label) for one in events[: events.index(event)]
        )


def test_it_goes_on_from_a_snapshot() -> None:
    """A restored processor predicts and scores as the saved one."""
    events = stream([0.2, [0.1, 0.5, 0.9], 0.7, 0.4, 0.9, 0.1], 2)
    processor = Processor(SETTINGS)
    processor.process_many(events[:7])
    restored = Processor.restore(processor.snapshot(), SETTINGS)
    assert restored.process_many(events[7:]) == processor.process_many(events[7:])
    assert restored.state_bytes() == processor.state_bytes()
    assert restored.monitor is not None
    assert processor.monitor is not None
    assert restored.monitor.views() == processor.monitor.views()


@pytest.mark.parametrize("score", [[0.1, 0.2], [0.1, 0.2, 1.5], [0.1, "x", 0.2], 1.5, {}])
def test_scores_that_cannot_be_used(score: Any) -> None:  # noqa: ANN401
    """There is one score for all folds, or one for each, and all are probabilities."""
    (dead_letter,) = Processor(SETTINGS).process(Observation("a", 1, score=score))
    assert isinstance(dead_letter, DeadLetter)
    assert dead_letter.reason == "bad-score"


def test_no_copy_learns_its_own_fold() -> None:
    """All copies of the learner but that of the fold learn a label, and all score."""
    xs = [{"a": float(n % 5), "b": float(n % 3)} for n in range(60)]
    events: list[Event] = []
    for n, x in enumerate(xs):
        events += [Observation(f"a{n}", n, x=x), Label(f"a{n}", n, value=n % 5 > 2)]
    settings = msgspec.structs.replace(SETTINGS, learner="logistic")
    outputs = Processor(settings).process_many(events)
    copies, calibrator = [make("logistic") for _ in range(K)], CrossVennAbers(folds=K)
    for n, x in enumerate(xs):
        scores = [copy.score(x) for copy in copies]
        prediction = outputs[2 * n]
        assert isinstance(prediction, Prediction)
        assert prediction.p == pytest.approx(calibrator.predict_one(scores).merged)
        fold = calibrator.fold_of(f"a{n}")
        calibrator.learn_one(scores, n % 5 > 2, fold=fold)
        for k, copy in enumerate(copies):
            if k != fold:
                copy.learn(x, n % 5 > 2)


def test_copies_by_themselves() -> None:
    """A score for each copy; the one that is left out knows nothing of what the others learn."""
    folds = RiverFolds(lambda: make("tree"), K)
    for _ in range(5):
        folds.learn({"a": 1.0}, 1, 2)
    assert folds.score({"a": 1.0}) == [1.0, 1.0, 0.5]

"""Merged calibrators of a stream lose no bias to delays that tell the label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.stream.ordered import merged

from abers import CrossVennAbers, OneVsRest, VennAbers
from abers.calibration.cross import fold_of_id
from abers.stream import Label, Observation, Processor, Settings

if TYPE_CHECKING:
    from abers.stream import Event

pytestmark = pytest.mark.native

N, LATE = 1_500, 400
NAMES = ("0", "1")
OPTIONS: dict[str, dict[str, Any]] = {
    "ivap": {},
    "cvap": {"calibrator": "cvap", "folds": 3},
    "one-vs-rest": {"task": "multiclass", "classes": NAMES},
}


def settings_of(name: str) -> Settings:
    """Return the settings of a merged calibrator."""
    return Settings(scores="probability", probability="merged", **OPTIONS[name])


def stream(name: str) -> tuple[list[float], list[Event]]:
    """Draw labels with the probabilities of their scores: label 1 comes at once, label 0 late."""
    rng = np.random.default_rng(5)
    scores = rng.beta(1.0, 3.0, N).tolist()
    due: list[list[Event]] = [[] for _ in range(N + LATE + 1)]
    for row, score in enumerate(scores):
        several = name == "one-vs-rest"
        given: Any = {"1": score, "0": 1.0 - score} if several else score
        due[row].insert(0, Observation(f"a{row}", row, score=given))
        is_one = rng.random() < score
        value: Any = NAMES[is_one] if several else int(is_one)
        when = row if is_one else row + LATE
        due[when].append(Label(f"a{row}", when, value=value))
    return scores, [event for events in due for event in events]


def intervals(name: str, outputs: list[Any]) -> np.ndarray[Any, Any]:
    """Return p0, p and p1 of label 1 of predictions, a row each."""
    predictions = [one for one in outputs if hasattr(one, "n_labels")]
    if name == "one-vs-rest":
        return np.array([[one.low["1"], one.p["1"], one.high["1"]] for one in predictions])
    return np.array([[one.p0, one.p, one.p1] for one in predictions])


@pytest.mark.parametrize("name", OPTIONS)
def test_delays_that_tell_the_label_cost_no_bias(name: str) -> None:
    """With perfect scores p is right on average; a calibrator taught as labels come is not."""
    scores, events = stream(name)
    settings = settings_of(name)
    found = intervals(name, Processor(settings).process_many(events))
    late = slice(LATE + 100, N)
    right = np.mean(scores[late])
    assert found[late, 0].mean() - 0.02 <= right <= found[late, 2].mean() + 0.02
    assert abs(found[late, 1].mean() - right) <= 0.03

    kinds: dict[str, Any] = {
        "ivap": VennAbers,
        "cvap": lambda: CrossVennAbers(3),
        "one-vs-rest": lambda: OneVsRest(NAMES),
    }
    as_they_come, given = kinds[name](), {}
    biased = []
    for event in events:
        if isinstance(event, Observation):
            given[event.id] = [event.score] * 3 if name == "cvap" else event.score
            answer = as_they_come.predict_one(given[event.id])
            biased.append(answer.p["1"] if name == "one-vs-rest" else answer.merged)
        else:
            as_they_come.learn_one(given[event.id], event.value)
    assert np.mean(biased[late]) - right > 0.06


@pytest.mark.parametrize("name", OPTIONS)
def test_predictions_are_those_of_plain_python(name: str) -> None:
    """Batches, single events and a restored twin give the bits of the plain calibrator."""
    _, events = stream(name)
    settings = settings_of(name)
    plain, single, twin = merged(settings), Processor(settings), Processor(settings)
    whole = Processor(settings).process_many(events)
    singly = [output for event in events for output in single.process(event)]
    parts = []
    for first in range(0, len(events), 700):
        parts += twin.process_many(events[first : first + 700])
        twin = Processor.restore(twin.snapshot(), settings)
    assert whole == singly == parts
    assert single.state_bytes() == twin.state_bytes()
    given: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    rows, n_labels = [], []
    for event in events:
        if isinstance(event, Observation):
            numbers[event.id] = len(numbers)
            given[event.id] = [event.score] * 3 if name == "cvap" else event.score
            n_labels.append(len(plain))
            answer = plain.predict_one(given[event.id], number=numbers[event.id])
            if name == "one-vs-rest":
                rows.append([answer.low["1"], answer.p["1"], answer.high["1"]])
            else:
                p0, p1 = (answer.low, answer.high) if name == "cvap" else answer
                rows.append([p0, answer.merged, p1])
        else:
            of = {"fold": fold_of_id(event.id, 3)} if name == "cvap" else {}
            plain.learn_one(given[event.id], event.value, number=numbers[event.id], **of)
    assert intervals(name, whole).tolist() == rows
    assert [one.n_labels for one in whole if hasattr(one, "n_labels")] == n_labels

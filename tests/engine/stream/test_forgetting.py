"""Forgetting what was learned of a model, `Processor.reset_model`."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest

from abers.exceptions import ParameterError
from abers.stream import Event, Label, Observation, Processor, Settings

SETTINGS = [
    Settings(scores="probability", grace_period=0),
    Settings(task="regression", grace_period=0),
    Settings(scores="probability", learner="logistic"),
]


def lived(settings: Settings, first: int, last: int) -> list[Event]:
    """Return observations of two models, each with its label ten later."""
    events: list[Event] = []
    for number in range(first, last):
        draw = random.Random(number)  # noqa: S311 - no secret
        model, score = "ab"[number % 2], draw.random()
        more: dict[str, Any] = {"x": {"amount": score}} if settings.learner else {"score": score}
        events.append(Observation(f"o{number}", time=number, model=model, **more))
        if (labelled := number - 10) >= 0:
            value = float(random.Random(-labelled).random() < 0.5)  # noqa: S311 - no secret
            events.append(Label(f"o{labelled}", time=number, model="ab"[labelled % 2], value=value))
    return events


@pytest.mark.parametrize("settings", SETTINGS, ids=["binary", "regression", "learner"])
def test_one_model_begins_anew(settings: Settings) -> None:
    """A model that was forgotten continues as a new one, and all others are unchanged."""
    forgetful, other = Processor(settings), Processor(settings)
    for one in (forgetful, other):
        one.process_many(lived(settings, 0, 60))
    forgetful.reset_model("a")
    said = forgetful.process_many(lived(settings, 60, 120))
    expected = other.process_many(lived(settings, 60, 120))
    of = [one for one in said if getattr(one, "model", None) == "b"]
    assert of == [one for one in expected if getattr(one, "model", None) == "b"]
    counts = [
        cast("Any", one).n_labels
        for one in said
        if getattr(one, "n_labels", None) is not None and getattr(one, "model", None) == "a"
    ]
    assert counts[0] == 0
    assert counts[-1] == 29, "five labels came later than what was forgotten"
    if not settings.learner:
        again = Processor.restore(forgetful.snapshot(), settings)
        assert again.state_bytes() == forgetful.state_bytes()


def test_labels_that_come_later_are_learned() -> None:
    """What waits when its model is forgotten meets its label, and nothing bets on it."""
    processor = Processor(Settings(scores="probability", grace_period=0))
    processor.process(Observation("a", 1, score=0.5))
    processor.reset_model("default")
    processor.process(Label("a", 2, value=1))
    assert processor.process(Observation("b", 3, score=0.5))[0].n_labels == 1  # type: ignore[union-attr]
    assert processor.monitors[0].tests[0].log_wealth == 0.0


def test_a_model_that_is_not_known() -> None:
    """An unknown model is refused, and nothing is forgotten."""
    processor = Processor()
    processor.process_many([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
    before = processor.state_bytes()
    with pytest.raises(ParameterError, match="model 'fraud' is not known"):
        processor.reset_model("fraud")
    assert processor.state_bytes() == before

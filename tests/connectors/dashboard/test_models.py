"""The models of a stream, `abers_connectors.dashboard.observer`."""

from __future__ import annotations

from abers.stream import Event, Label, Observation, Processor, Settings
from abers_connectors.dashboard.observer import (
    key_id,
    key_name,
    model_monitors,
    model_statuses,
)


def worked(*keys: tuple[str, str], labels: int) -> Processor:
    """Return a processor that has scored so many predictions of each key."""
    processor = Processor(Settings(scores="probability"))
    events: list[Event] = []
    for model, segment in keys:
        for number in range(labels):
            name = f"{segment}{number}"
            events.append(Observation(name, 1, model=model, segment=segment, score=0.5))
            events.append(Label(name, 2, model=model, value=1))
    processor.process_many(events)
    return processor


def test_models_of_several_processors() -> None:
    """A key of two processors is listed once with all its labels; most labels come first."""
    found = model_monitors(
        [worked(("b", ""), ("a", ""), labels=2), worked(("b", ""), ("c", "x"), labels=1)]
    )
    listed = [(one.key, one.labels, one.active) for one in model_statuses(found)]
    assert listed == [(("b", ""), 3, False), (("a", ""), 2, False), (("c", "x"), 1, False)]


def test_nothing_was_predicted() -> None:
    """Without an observation there is no model."""
    assert model_statuses(model_monitors([Processor(Settings())])) == []


def test_names() -> None:
    """A model is named with its segment; the only one may have no name."""
    assert key_id(("a", 'é"')) == '["a","é\\""]'
    assert key_name(("fraud", "fr")) == "fraud · fr"
    assert not key_name(("", ""))

"""The models of a stream, `abers_connectors.models`."""

from __future__ import annotations

import pytest

from abers.stream import Event, Label, Observation, Processor, Settings
from abers_connectors.models import calibrated, identified, named, parts, seen, titled


def worked(*keys: tuple[str, str], labels: int) -> Processor:
    """Return a processor that has judged so many predictions of each key."""
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
    """A key in two of them is one, its labels are added up, and the most come first."""
    found = parts([worked(("b", ""), ("a", ""), labels=2), worked(("b", ""), ("c", "x"), labels=1)])
    listed = [(one.key, one.labels, one.rings) for one in seen(found)]
    assert listed == [(("b", ""), 3, False), (("a", ""), 2, False), (("c", "x"), 1, False)]


def test_calibrated_means() -> None:
    """They are those of all predictions of a key, whoever issued them."""
    one, other = worked(("b", ""), labels=3), worked(("b", ""), labels=1)
    means = calibrated(parts([one, other])["b", ""])
    terms = [n * p.monitors[0].views()["calibrated"]["brier"] for n, p in ((3, one), (1, other))]
    assert means is not None
    assert means["brier"] == pytest.approx(sum(terms) / 4)


def test_nothing_was_predicted() -> None:
    """Without an observation there is no model."""
    assert seen(parts([Processor(Settings())])) == []


def test_names() -> None:
    """A model without a name has one in a list, and an alarm is told there."""
    assert identified(("a", 'é"')) == '["a","é\\""]'
    assert named(("fraud", "fr")) == "fraud · fr"
    assert (named(("", "")), titled(("", ""), rings=True)) == ("", "default (alarm)")

"""Rates of labels in a stream: predictions of all observations, scores of those with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.stream.replies import lab, obs, only

from abers import ParameterError, VennAbers, VennInterval
from abers.exceptions import SettingsError
from abers.stream import Events, Processor, Settings

if TYPE_CHECKING:
    from abers.stream import Event

RATES = (0.5, 1.0)
MERGED: dict[str, Any] = {"probability": "merged", "scores": "probability", "label_rates": RATES}


def labelled(count: int) -> list[Event]:
    """Return observations, each followed by its label."""
    rng = np.random.default_rng(2)
    found: list[Event] = []
    for at in range(count):
        score = round(float(rng.random()), 1)
        found += [obs(str(at), at, score), lab(str(at), at, int(rng.random() < score))]
    return found


def test_predictions_are_those_of_a_calibrator_with_rates() -> None:
    """Where each label comes before the next prediction, a stream predicts as `VennAbers` does."""
    processor, alone = Processor(Settings(**MERGED)), VennAbers(label_rates=RATES)
    for at, (one, label) in enumerate(zip(*[iter(labelled(60))] * 2, strict=True)):
        predicted: Any = only(processor.process(one))
        # One event alone sets no clock, so the first label teaches after the next event.
        taught = alone if at != 1 else VennAbers(label_rates=RATES)
        interval = taught.predict_one(one.score)
        assert (predicted.p0, predicted.p1, predicted.p) == (*interval, interval.merged)
        assert predicted.n_labels == len(taught)
        processor.process(label)
        alone.learn_one(one.score, label.value)


@pytest.mark.parametrize("rule", [{}, {"window": 5}, {"max_age": 40}, {"half_life": 25}], ids=str)
@pytest.mark.parametrize("cut", [1, 7, 1_000])
def test_late_labels_teach_as_they_come(rule: dict[str, Any], cut: int) -> None:
    """In batches or alone, with any forgetting, the rates are those of a `VennAbers`."""
    rng, alone = np.random.default_rng(3), VennAbers(**rule, label_rates=RATES)
    by_time = not {"max_age", "half_life"}.isdisjoint(rule)
    events: list[Event] = []
    expected: list[VennInterval] = []
    scores = (rng.integers(0, 5, 120) / 4.0).tolist()
    for at, score in enumerate(scores):
        events.append(obs(str(at), at, score))
        expected.append(alone.predict_one(score, at if by_time else None))
        if at >= 3 and at % 4:
            before, label = at - 3, int(rng.random() < scores[at - 3])
            events.append(lab(str(before), at, label))
            alone.learn_one(scores[before], label, time=before if by_time else None)
    processor = Processor(Settings(**MERGED, **rule))
    batches = [Events.of(events[at : at + cut]) for at in range(0, len(events), cut)]
    found: list[Any] = [
        one for part in batches for one in processor.process_batch(part).predictions
    ]
    assert [(one.p0, one.p1) for one in found] == expected


def test_labels_that_never_come_hold_nothing_back() -> None:
    """Labels teach when they come, although half of those of class 0 are missing."""
    processor = Processor(Settings(**MERGED))
    came = 0
    for at in range(300):
        predicted: Any = only(processor.process(obs(str(at), at, 0.5)))
        assert predicted.n_labels == came
        if at >= 10 and at % 4:  # of four labels two are 1, and one of two labels 0 never comes
            processor.process(lab(str(at - 10), at, int(at % 4 > 1)))
            came += 1


def test_scores_are_of_observations_with_labels() -> None:
    """Monitors compare labels with the probabilities among labelled observations, raw ones too."""
    processor = Processor(Settings(**MERGED), outcomes=True)
    found = processor.process_batch(Events.of(labelled(40)))
    assert found.settled_batch is not None
    assert found.outcomes is not None
    scored = found.settled_batch.scored
    for view, field in (("calibrated", "p"), ("raw", "score")):
        issued = np.array([getattr(one, field) for one in found.outcomes])
        among = issued / (issued + (1.0 - issued) * 0.5)
        labels = np.array([one.label for one in found.outcomes])
        squares = scored.forecasts[view].squares
        np.testing.assert_allclose(squares, (labels - among) ** 2, rtol=1e-12)


def test_a_restored_stream_goes_on_with_its_rates() -> None:
    """State has the rates: a processor with other ones refuses it."""
    events = labelled(40)
    whole, first = (Processor(Settings(**MERGED)) for _ in range(2))
    first.process_many(events[:40])
    rest = Processor.restore(first.snapshot(), Settings(**MERGED))
    rest.process_many(events[40:])
    whole.process_many(events)
    assert rest.snapshot() == whole.snapshot()
    with pytest.raises(SettingsError, match="label_rates"):
        Processor.restore(first.snapshot(), Settings(**MERGED | {"label_rates": (1.0, 1.0)}))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scores": "probability"}, "needs probability='merged': the protected probability is"),
        ({"calibrator": "platt"}, "is not for 'platt'; leave it out"),
        ({"calibrator": "protected", "scores": "logit"}, "is not for 'protected'; leave it out"),
        ({"task": "multiclass", "classes": ("a", "b")}, "applies only to the task 'binary'"),
        ({"label_rates": (0.5,)}, r"\(0.5,\) must be two shares from 0.000001 to 1: of the"),
        ({"label_rates": (0.0, 1.0)}, "must be two shares"),
        ({"label_rates": "0.5"}, "is not a list of finite numbers"),
        (
            {"probability": "merged", "unlabelled": 0, "label_timeout": 60},
            "does not go with unlabelled=0, by which every label comes; remove one of them",
        ),
    ],
)
def test_rates_that_do_not_fit_are_refused(options: dict[str, Any], said: str) -> None:
    """Rates are two shares, for the merged probabilities of Venn-Abers prediction alone."""
    with pytest.raises(ParameterError, match=f"label_rates: {said}|label_rates: .*{said}"):
        Settings(**{"label_rates": RATES} | options)

"""The history of a model in several processors, `abers_connectors.dashboard.observer`."""

from __future__ import annotations

import random

from abers.monitoring import Expert
from abers.stream import Events, Label, Observation, Processor, Settings
from abers_connectors.dashboard.feed import LiveBlocks
from abers_connectors.dashboard.observer import JoinedHistory, Observer, joined_history

SETTINGS = Settings(scores="probability")
START = 1_700_000_000_000


def worked(count: int, seed: int, *, wrong: bool = False) -> Processor:
    """Return a processor after so many labels, a second apart."""
    processor, rng = Processor(SETTINGS), random.Random(seed)  # noqa: S311 - no secret
    for first in range(0, count, 40):
        events: list[Observation | Label] = []
        for n in range(first, min(first + 40, count)):
            score = rng.random()
            label = int(rng.random() < (1.0 - score if wrong and n > count / 2 else score))
            events.append(Observation(f"i{n}", START + 1_000 * n, score=score))
            events.append(Label(f"i{n}", START + 1_000 * n + 5, value=label))
        processor.process_batch(Events.of(events))
    return processor


def history(*processors: Processor) -> JoinedHistory:
    """Return their joined history."""
    return joined_history([(one.histories[0], one.monitors[0]) for one in processors])


def test_one_processor_is_as_it_is() -> None:
    """The windows and points of one processor are not changed."""
    one = worked(1_000, 1)
    evidence, _ = one.histories[0].now(one.monitors[0])
    found = history(one)
    assert [window.end for window in found.windows] == [*range(40, 1_001, 40)]
    assert found.evidence == evidence


def test_several_processors_are_one_model() -> None:
    """Windows are in the order of time, evidence is the strongest, and labels are of all."""
    parts = [worked(3_000, 1), worked(1_500, 2, wrong=True)]
    found = history(*parts)
    assert found.windows[-1].end == found.evidence[-1].labels == found.experts[-1].labels == 4_500
    assert len(found.windows) <= 64
    assert len(found.evidence) <= 64
    times = [one.time for one in found.evidence]
    assert times == sorted(times)
    last = [one.histories[0].now(one.monitors[0])[0][-1].log_wealth for one in parts]
    assert found.evidence[-1].log_wealth >= max(last)
    assert sum(one.monitor.count for one in found.windows) == 4_500
    numbers = [one.monitors[0].others[0].experts() for one in parts]  # type: ignore[attr-defined] # of it
    raw = found.experts[-1].experts["raw"]
    assert abs(raw.loss - sum(one["raw"].loss for one in numbers)) < 1e-9
    assert found.experts[-1].experts["protected"] == Expert(
        None, sum(one["protected"].loss for one in numbers)
    )
    assert found.alarms
    assert all(0 < labels <= 4_500 for labels, _ in found.alarms)


def test_a_restart_keeps_what_a_page_shows() -> None:
    """A page of a restored processor shows the figures of the one that was saved."""
    before = worked(500, 3, wrong=True)
    after = Processor.restore(before.snapshot(), SETTINGS)
    views = []
    for one in (before, after):
        observer = Observer()
        observer.hold({0: one})
        views.append(LiveBlocks(observer, "UTC")(one.keys[0]))
    assert views[0] == views[1]
    assert views[0] is not None
    assert {"over-time", "alarms", "methods"} <= {one.key for one in views[0]}


def test_without_labels_there_is_nothing() -> None:
    """A model without labels has neither windows nor points."""
    found = joined_history([])
    assert [*found.windows, *found.evidence, *found.alarms, *found.last] == []

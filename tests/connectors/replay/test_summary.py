"""The summary of a run, recomputed from its outputs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.sources.memory import Labelled, MemorySource

from abers.stream import Label, Observation, Processor, Settings
from abers_connectors.replay.run import Run
from abers_connectors.replay.summary import Summary, summarize_run
from abers_connectors.sinks.base import MemorySink
from abers_connectors.sources.delayed_labels import DelayedLabels

if TYPE_CHECKING:
    from abers.stream import Event

ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 1.0]), st.integers(0, 1)), max_size=30
)


def replayed(
    rows: list[tuple[float, int]], delay: int, settings: Settings
) -> tuple[list[Any], Summary]:
    """Return the predictions of some rows, and the summary."""
    pairs = [
        Labelled(Observation(str(n), n, score=score), value)
        for n, (score, value) in enumerate(rows)
    ]
    predictions = MemorySink()
    source = DelayedLabels(MemorySource(pairs), count=delay, whole=True)
    run = Run(source, Processor(settings), {"predictions": predictions})
    for _ in run.run():
        pass
    return predictions.rows, summarize_run(run, 2 * len(rows), 2.0)


@given(ROWS, st.integers(0, 8))
def test_it_scores_the_written_predictions(rows: list[tuple[float, int]], delay: int) -> None:
    """The summary depends only on the predictions as written and on the labels."""
    predictions, summary = replayed(rows, delay, Settings(scores="probability"))
    assert (summary.observations, summary.labels, summary.records) == (len(rows),) * 3
    assert summary.events_per_second == len(rows)
    if not rows:
        assert (summary.raw, summary.calibrated, summary.mean_width) == (None, None, None)
        return
    assert summary.calibrated is not None
    assert summary.raw is not None
    labels = [label for _, label in rows]
    pairs = list(zip(predictions, labels, strict=True))
    losses = [-math.log(one.p if y else 1.0 - one.p) for one, y in pairs]
    assert summary.calibrated["log_loss"] == pytest.approx(sum(losses) / len(rows))
    squares = [(y - one.score) ** 2 for one, y in pairs]
    assert summary.raw["brier"] == pytest.approx(sum(squares) / len(rows))
    impossible = [(s, y) for s, y in rows if s == 1 - y]
    assert summary.raw["log_loss_infinite"] == len(impossible)
    assert (summary.raw["log_loss"] is None) == bool(impossible)
    widths = [one.p1 - one.p0 for one in predictions]
    assert summary.mean_width == pytest.approx(sum(widths) / len(rows))


def test_raw_scores_are_scored_only_as_probabilities() -> None:
    """Without the declaration there are no raw metrics, whatever the scores look like."""
    _, summary = replayed([(0.5, 1)], 0, Settings())
    assert summary.raw is None
    assert summary.calibrated is not None


def test_without_monitors() -> None:
    """Views that were not scored have no means."""
    _, summary = replayed([(0.5, 1)], 0, Settings(monitors=False))
    assert (summary.raw, summary.calibrated, summary.mean_width) == (None, None, None)
    assert summary.labels == 1


def test_all_models_together() -> None:
    """Means are over all models and segments; how events ended and dead letters are counted."""
    events: list[Event] = [
        Observation("a", 0, "one", 0.5),
        Observation("a", 0, "two", 0.5, segment="x"),
        Label("a", 1, "one", 1),
        Label("a", 1, "two", 0),
        Observation("b", 2, "one", 0.5),
        Observation("", 3, "one", 0.5),
        Label("c", 4, "one", 0),
    ]
    run = Run(MemorySource(events), Processor(), {"predictions": MemorySink()})
    assert list(run.run()) == [7]
    summary = summarize_run(run, 7, 0.0)
    assert (summary.observations, summary.labels, summary.waiting) == (3, 2, (0, 1))
    assert summary.calibrated is not None
    assert summary.calibrated["brier"] == 0.25
    assert summary.dead_letters == {"bad-id": 1}
    assert (summary.counters["early_labels"], summary.counters["expired"]) == (1, 1)
    assert 0 not in summary.counters.values()
    assert summary.events_per_second == 0.0

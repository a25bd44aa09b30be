"""Sums over settled predictions, against sums of one prediction after the other."""

from __future__ import annotations

import math
from collections import defaultdict
from copy import copy
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import EVENTS, SETTINGS

from abers.stream import (
    Events,
    Label,
    MultiClassOutcome,
    Observation,
    Outcome,
    Processor,
    RegressionOutcome,
    ScoredRows,
    Settings,
)
from abers_connectors.runtime.models import BINS, PIT_BOUNDS, WIDTH_BOUNDS, ModelTotals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from abers.stream import Event, SettledBatch

Sums = defaultdict[tuple[str, str, str, int], float]


def totals_of(
    processor: Processor, events: Iterable[Sequence[Event]]
) -> tuple[ModelTotals, list[Outcome]]:
    """Return the totals of batches, and their outcomes."""
    totals, outcomes = ModelTotals(), []
    for batch in events:
        outputs = processor.process_batch(Events.of(batch))
        assert outputs.settled_batch is not None
        models = {number: model for number, (model, _) in enumerate(processor.keys)}
        totals.add(models, outputs.settled_batch.keys, outputs.settled_batch.scored)
        outcomes += [*(outputs.outcomes or ())]
    return totals, outcomes


def settled_singly(settings: Settings, events: Sequence[Event]) -> Iterator[SettledBatch]:
    """Yield the settled batch of each event, by another processor."""
    processor = Processor(settings)
    for event in events:
        settled = processor.process_batch(Events.of([event])).settled_batch
        assert settled is not None
        yield settled


def sums_of(totals: ModelTotals) -> Sums:
    """Return the sums that are not 0, by table, view or level, model and column."""
    found = Sums(float)
    for (name, which), table in totals.tables.items():
        for model, row in totals.rows.items():
            for column, value in enumerate(table[row].tolist()):
                if value:
                    found[name, which, model, column] = value
    return found


def bucket(bounds: Sequence[float], value: float) -> int:
    """Return the first bucket whose bound is not exceeded."""
    return next((n for n, bound in enumerate(bounds) if value <= bound), len(bounds))


class Forecast(NamedTuple):
    """A probability, its outcome, and its scores by the definitions."""

    p: float
    true: int
    square: float
    of_label: float

    def add(self, sums: Sums, view: str, model: str) -> None:
        """Count the forecast in its bin, and add its scores."""
        bin_ = max(number for number in range(BINS) if self.p >= number / BINS)
        sums["predictions", view, model, bin_] += 1
        sums["score", view, model, bin_] += self.p
        sums["positives", view, model, bin_] += self.true
        sums["brier", view, model, 0] += self.square
        sums["log_loss", view, model, 0] += -math.log(self.of_label) if self.of_label else 0.0
        sums["infinite", view, model, 0] += self.of_label == 0.0


def agree(found: Sums, wanted: Sums) -> None:
    """Require equal sums, of which zeros may be missing."""
    for key in {*found, *wanted}:
        assert found[key] == pytest.approx(wanted[key], rel=1e-9, abs=1e-9), key


@given(SETTINGS, EVENTS, st.lists(st.integers(0, 40), max_size=4))
def test_binary(settings: Settings, events: list[Event], cuts: list[int]) -> None:
    """Each settled prediction is counted in its model's bins, however events are batched.

    A label that comes after another was assumed counts in no sum.
    """
    batches = [events[a:b] for a, b in pairwise([0, *sorted(cuts), len(events)]) if events[a:b]]
    if settings.task != "binary":
        return
    totals, outcomes = totals_of(Processor(settings), batches)
    wanted = Sums(float)
    for one in outcomes:
        if one.late:
            continue
        views = {"raw": one.score} if settings.scores == "probability" else {}
        for view, p in (views | {"calibrated": one.p}).items():
            q = p if one.label else 1.0 - p
            Forecast(p, one.label, (p - one.label) ** 2, q).add(wanted, view, one.model)
        wanted["width", "", one.model, bucket(WIDTH_BOUNDS, one.p1 - one.p0)] += 1
        wanted["width_sum", "", one.model, 0] += one.p1 - one.p0
        wanted["outside", "", one.model, 0] += not one.p0 <= one.p <= one.p1
    agree(sums_of(totals), wanted)


def test_several_classes() -> None:
    """Bins count the most probable class, widths are of the true one, any may lie outside."""
    names = ("cat", "dog", "eel")
    rng = np.random.default_rng(7)
    events: list[Event] = []
    for number, row in enumerate(rng.dirichlet(np.ones(3), 60).tolist()):
        score = dict(zip(names, row, strict=True))
        model = "ab"[number % 2]
        events.append(Observation(f"{number}", 2 * number, model, score=score))
        value = names[int(rng.integers(3))]
        events.append(Label(f"{number}", 2 * number + 1, model, value=value))
    settings = Settings(task="multiclass", classes=names, scores="probability")
    totals, outcomes = totals_of(Processor(settings), [events[:31], events[31:]])
    wanted = Sums(float)
    for one in outcomes:
        assert isinstance(one, MultiClassOutcome)
        for view, p in {"raw": one.score, "calibrated": one.p}.items():
            best = max(names, key=lambda name: (p[name], -names.index(name)))
            square = sum((p[name] - (name == one.label)) ** 2 for name in names)
            true = int(best == one.label)
            Forecast(p[best], true, square, p[one.label]).add(wanted, view, one.model)
        width = one.high[one.label] - one.low[one.label]
        wanted["width", "", one.model, bucket(WIDTH_BOUNDS, width)] += 1
        wanted["width_sum", "", one.model, 0] += width
        outside = any(not one.low[name] <= one.p[name] <= one.high[name] for name in names)
        wanted["outside", "", one.model, 0] += outside
    agree(sums_of(totals), wanted)


@pytest.mark.parametrize("distributions", ["none", "scored"])
def test_regression(distributions: Literal["none", "scored"]) -> None:
    """Regression has counts of intervals and, with distributions, PIT values, but no bins."""
    rng = np.random.default_rng(3)
    events: list[Event] = []
    for number, score in enumerate(rng.normal(size=80).round(1).tolist()):
        events.append(Observation(f"{number}", 2 * number, score=score))
        value = score + round(float(rng.normal()), 1)
        events.append(Label(f"{number}", 2 * number + 1, value=value))
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    settings = Settings(task="regression", quantiles=levels, distributions=distributions)
    totals, outcomes = totals_of(Processor(settings), [events[:50], events[50:]])
    wanted = Sums(float)
    for one in outcomes:
        assert isinstance(one, RegressionOutcome)
        for low, high, share in (("0.05", "0.95", 0.9), ("0.25", "0.75", 0.5)):
            level = f"{share:g}"
            wanted["outcomes", level, one.model, 0] += 1
            wanted["expected", level, one.model, 0] += share
            inside = one.quantiles[low] <= one.label <= one.quantiles[high]
            wanted["covered", level, one.model, 0] += inside
    found = sums_of(totals)
    model = outcomes[0].model
    pit = [found.pop(("pit", "", model, column), 0.0) for column in range(len(PIT_BOUNDS))]
    total = found.pop(("pit_sum", "", model, 0), 0.0)
    agree(found, wanted)
    if distributions == "none":
        assert sum(pit) == total == 0.0
        return
    pits = [one.scored.pit for one in settled_singly(settings, events)]
    ends = [pair for one in pits if one is not None for pair in np.column_stack(one).tolist()]
    edges = [0.0, *PIT_BOUNDS]
    for column, (left, right) in enumerate(pairwise(edges)):
        share = sum(
            max(min(right, at) - max(left, below), 0.0) / (at - below)
            if below < at
            else left < at <= right or left == at == 0.0
            for below, at in ends
        )
        assert pit[column] == pytest.approx(share)
    assert total == pytest.approx(sum(below + at for below, at in ends) / 2)


def test_tracked_intervals() -> None:
    """Labels, hits, widths, and intervals that are whole or empty, by model and level."""
    events: list[Event] = []
    for number in range(700):  # all are covered, until the interval is empty
        events.append(Observation(f"{number}", 2 * number, score=5.0))
        events.append(Label(f"{number}", 2 * number + 1, value=(0.0, 5.0)[number > 0]))
    settings = Settings(task="regression", calibrator="protected", support=(0.0, 5.0), coverage=0.5)
    totals, outcomes = totals_of(Processor(settings), [events[:50], events[50:]])
    wanted = Sums(float)
    for one in outcomes:
        assert isinstance(one, RegressionOutcome)
        low, high = one.interval_low or 0.0, one.interval_high or 0.0
        key = "0.5", one.model, 0
        for name, amount in (
            ("outcomes", 1.0),
            ("expected", 0.5),
            ("covered", float(low <= one.label <= high)),
            ("widths", max(high - low, 0.0)),
            ("whole", float((low, high) == (0.0, 5.0))),
            ("empty", float(low > high)),
            ("scores", high - low + 4.0 * max(low - one.label, one.label - high, 0.0)),
            ("unscored", float(low > high)),
        ):
            if name == "scores" and low > high:
                continue
            wanted[f"tracked_{name}", *key] += amount
    kept = {key: one for key, one in sums_of(totals).items() if key[0].startswith("tracked")}
    found = Sums(float, kept)
    assert wanted["tracked_empty", "0.5", "default", 0] > 100
    agree(found, wanted)


def test_a_pit_value_on_an_edge() -> None:
    """A PIT value that is one point, on the bound of a bucket, belongs to that bucket."""
    totals, at = ModelTotals(), np.array([0.5, 0.5000001, 0.0, 1.0])
    totals.add({0: "m"}, np.zeros(4, np.int64), ScoredRows(at, pit=(at, at)))
    assert totals.tables["pit", ""].tolist() == [[1, 0, 0, 0, 1, 1, 0, 0, 0, 1]]


def test_later_models() -> None:
    """A later model gets a row of its own; segments of one model are added together."""
    processor = Processor(Settings())
    events: list[list[Event]] = [
        [Observation("a", 1, "m", segment="x", score=0.5), Label("a", 2, "m", value=1)],
        [Observation("b", 3, "n", score=0.5), Label("b", 4, "n", value=0)],
        [Observation("c", 5, "m", segment="y", score=0.5), Label("c", 6, "m", value=0)],
    ]
    totals, _ = totals_of(processor, events)
    assert totals.rows == {"m": 0, "n": 1}
    assert totals.tables["predictions", "calibrated"].sum(axis=1).tolist() == [2.0, 1.0]


def test_a_copy_stays_as_it_is() -> None:
    """A copy does not change when more is added."""
    batch: list[Event] = [Observation("a", 1, score=0.5), Label("a", 2, value=1)]
    processor = Processor()
    totals, _ = totals_of(processor, [batch])
    copied = copy(totals)
    settled = Processor().process_batch(Events.of(batch)).settled_batch
    assert settled is not None
    totals.add({0: "other"}, settled.keys, settled.scored)
    assert (copied.rows, copied.tables["width_sum", ""].tolist()) == ({"default": 0}, [[1.0]])


def test_some_models_are_dropped() -> None:
    """The other sums are those of a stream without the dropped models."""
    made = [
        one
        for i, model in enumerate("mnompo")
        for one in (
            Observation(f"{i}", i, model, score=i / 6),
            Label(f"{i}", i, model, value=i % 2),
        )
    ]
    totals, _ = totals_of(Processor(), [made[:8], made[8:]])
    totals.drop(["m", "p", "unknown"])
    others, _ = totals_of(Processor(), [[one for one in made if one.model in {"n", "o"}]])
    assert sums_of(totals) == sums_of(others)
    assert totals.rows == {"n": 0, "o": 1}
    assert {len(table) for table in totals.tables.values()} == {2}


def test_a_dropped_model_returns() -> None:
    """A dropped model that returns starts at zero."""
    processor = Processor()
    pair: list[Event] = [Observation("a", 1, "m", score=0.5), Label("a", 2, "m", value=1)]
    totals, _ = totals_of(processor, [pair])
    totals.drop(["m"])
    assert sums_of(totals) == {}
    again, _ = totals_of(Processor(), [pair])
    settled = Processor().process_batch(Events.of(pair)).settled_batch
    assert settled is not None
    totals.add({0: "m"}, settled.keys, settled.scored)
    assert sums_of(totals) == sums_of(again)

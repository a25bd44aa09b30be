"""Sums over judged predictions, against the same sums taken one by one."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import EVENTS, SETTINGS

from abers.stream import (
    Events,
    Facts,
    Label,
    MultiClassOutcome,
    Observation,
    Outcome,
    Processor,
    RegressionOutcome,
    Settings,
)
from abers_connectors.kafka.tallies import BINS, PIT, WIDTHS, Tallies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from abers.stream import Event, Judged

Sums = defaultdict[tuple[str, str, str, int], float]


def tallied(
    processor: Processor, events: Iterable[Sequence[Event]]
) -> tuple[Tallies, list[Outcome]]:
    """Give what batches add up to, and their outcomes."""
    tallies, outcomes = Tallies(), []
    for batch in events:
        outputs = processor.take(Events.of(batch))
        assert outputs.judged is not None
        models = [model for model, _ in processor.keys]
        tallies.add(models, outputs.judged.keys, processor.facts(outputs.judged))
        outcomes += [*(outputs.outcomes or ())]
    return tallies, outcomes


def again(settings: Settings, events: Sequence[Event]) -> Iterator[Judged]:
    """Give what another processor judges, event by event."""
    processor = Processor(settings)
    for event in events:
        judged = processor.take(Events.of([event])).judged
        assert judged is not None
        yield judged


def sums_of(tallies: Tallies) -> Sums:
    """Give what is not 0, by table, view or level, model and column."""
    found = Sums(float)
    for (name, which), table in tallies.tables.items():
        for model, row in tallies.rows.items():
            for column, value in enumerate(table[row].tolist()):
                if value:
                    found[name, which, model, column] = value
    return found


def bucket(bounds: Sequence[float], value: float) -> int:
    """Find the first bucket whose bound is not exceeded."""
    return next((n for n, bound in enumerate(bounds) if value <= bound), len(bounds))


class Forecast(NamedTuple):
    """A probability, what came of it, and what it cost by the definitions."""

    p: float
    true: int
    square: float
    of_label: float

    def add(self, sums: Sums, view: str, model: str) -> None:
        """Add it to its bin, and its scores."""
        place = max(number for number in range(BINS) if self.p >= number / BINS)
        sums["predictions", view, model, place] += 1
        sums["score", view, model, place] += self.p
        sums["positives", view, model, place] += self.true
        sums["brier", view, model, 0] += self.square
        sums["log_loss", view, model, 0] += -math.log(self.of_label) if self.of_label else 0.0
        sums["infinite", view, model, 0] += self.of_label == 0.0


def agree(found: Sums, wanted: Sums) -> None:
    """Compare sums, of which those that are 0 may be missing."""
    for place in {*found, *wanted}:
        assert found[place] == pytest.approx(wanted[place], rel=1e-9, abs=1e-9), place


@given(SETTINGS, EVENTS, st.lists(st.integers(0, 40), max_size=4))
def test_binary(settings: Settings, events: list[Event], cuts: list[int]) -> None:
    """Each settled prediction is counted in its model's bins, however events are batched."""
    batches = [events[a:b] for a, b in pairwise([0, *sorted(cuts), len(events)]) if events[a:b]]
    if settings.task != "binary":
        return
    tallies, outcomes = tallied(Processor(settings), batches)
    wanted = Sums(float)
    for one in outcomes:
        views = {"raw": one.score} if settings.scores == "probability" else {}
        for view, p in (views | {"calibrated": one.p}).items():
            q = p if one.label else 1.0 - p
            Forecast(p, one.label, (p - one.label) ** 2, q).add(wanted, view, one.model)
        wanted["width", "", one.model, bucket(WIDTHS, one.p1 - one.p0)] += 1
        wanted["width_sum", "", one.model, 0] += one.p1 - one.p0
    agree(sums_of(tallies), wanted)


def test_several_classes() -> None:
    """Of several classes the one that was most probable is counted, and the width of what came."""
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
    tallies, outcomes = tallied(Processor(settings), [events[:31], events[31:]])
    wanted = Sums(float)
    for one in outcomes:
        assert isinstance(one, MultiClassOutcome)
        for view, p in {"raw": one.score, "calibrated": one.p}.items():
            best = max(names, key=lambda name: (p[name], -names.index(name)))
            square = sum((p[name] - (name == one.label)) ** 2 for name in names)
            true = int(best == one.label)
            Forecast(p[best], true, square, p[one.label]).add(wanted, view, one.model)
        width = one.high[one.label] - one.low[one.label]
        wanted["width", "", one.model, bucket(WIDTHS, width)] += 1
        wanted["width_sum", "", one.model, 0] += width
    agree(sums_of(tallies), wanted)


@pytest.mark.parametrize("distributions", ["none", "judged"])
def test_regression(distributions: Literal["none", "judged"]) -> None:
    """Of a regression intervals and, with distributions, PIT values are counted, and no bins."""
    rng = np.random.default_rng(3)
    events: list[Event] = []
    for number, score in enumerate(rng.normal(size=80).round(1).tolist()):
        events.append(Observation(f"{number}", 2 * number, score=score))
        value = score + round(float(rng.normal()), 1)
        events.append(Label(f"{number}", 2 * number + 1, value=value))
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    settings = Settings(task="regression", quantiles=levels, distributions=distributions)
    tallies, outcomes = tallied(Processor(settings), [events[:50], events[50:]])
    wanted = Sums(float)
    for one in outcomes:
        assert isinstance(one, RegressionOutcome)
        for low, high, share in (("0.05", "0.95", 0.9), ("0.25", "0.75", 0.5)):
            level = f"{share:g}"
            wanted["outcomes", level, one.model, 0] += 1
            wanted["expected", level, one.model, 0] += share
            inside = one.quantiles[low] <= one.label <= one.quantiles[high]
            wanted["covered", level, one.model, 0] += inside
    found = sums_of(tallies)
    model = outcomes[0].model
    pit = [found.pop(("pit", "", model, column), 0.0) for column in range(len(PIT))]
    total = found.pop(("pit_sum", "", model, 0), 0.0)
    agree(found, wanted)
    if distributions == "none":
        assert sum(pit) == total == 0.0
        return
    ends = [one for outputs in again(settings, events) for one in outputs.rows[:, -2:].tolist()]
    edges = [0.0, *PIT]
    for column, (left, right) in enumerate(pairwise(edges)):
        share = sum(
            max(min(right, at) - max(left, below), 0.0) / (at - below)
            if below < at
            else left < at <= right or left == at == 0.0
            for below, at in ends
        )
        assert pit[column] == pytest.approx(share)
    assert total == pytest.approx(sum(below + at for below, at in ends) / 2)


def test_a_pit_value_on_an_edge() -> None:
    """A PIT value that is one point, on the bound of a bucket, belongs to that bucket."""
    tallies, at = Tallies(), np.array([0.5, 0.5000001, 0.0, 1.0])
    tallies.add(["m"], np.zeros(4, np.int64), Facts({}, None, (at, at)))
    assert tallies.tables["pit", ""].tolist() == [[1, 0, 0, 0, 1, 1, 0, 0, 0, 1]]


def test_models_come_later() -> None:
    """A model that comes later has rows of its own; segments of one model are added together."""
    processor = Processor(Settings())
    events: list[list[Event]] = [
        [Observation("a", 1, "m", segment="x", score=0.5), Label("a", 2, "m", value=1)],
        [Observation("b", 3, "n", score=0.5), Label("b", 4, "n", value=0)],
        [Observation("c", 5, "m", segment="y", score=0.5), Label("c", 6, "m", value=0)],
    ]
    tallies, _ = tallied(processor, events)
    assert tallies.rows == {"m": 0, "n": 1}
    assert tallies.tables["predictions", "calibrated"].sum(axis=1).tolist() == [2.0, 1.0]


def test_a_copy_stays_as_it_is() -> None:
    """What was copied does not change when more is added."""
    batch: list[Event] = [Observation("a", 1, score=0.5), Label("a", 2, value=1)]
    processor = Processor()
    tallies, _ = tallied(processor, [batch])
    copy = tallies.copied()
    judged = Processor().take(Events.of(batch)).judged
    assert judged is not None
    tallies.add(["other"], judged.keys, processor.facts(judged))
    assert (copy.rows, copy.tables["width_sum", ""].tolist()) == ({"default": 0}, [[1.0]])


def test_some_models_are_dropped() -> None:
    """What is left is what would be there if nothing of the dropped models had been added."""
    made = [
        one
        for i, model in enumerate("mnompo")
        for one in (
            Observation(f"{i}", i, model, score=i / 6),
            Label(f"{i}", i, model, value=i % 2),
        )
    ]
    tallies, _ = tallied(Processor(), [made[:8], made[8:]])
    tallies.drop(["m", "p", "unknown"])
    others, _ = tallied(Processor(), [[one for one in made if one.model in {"n", "o"}]])
    assert sums_of(tallies) == sums_of(others)
    assert tallies.rows == {"n": 0, "o": 1}
    assert {len(table) for table in tallies.tables.values()} == {2}


def test_a_dropped_model_comes_again() -> None:
    """It begins with nothing."""
    processor = Processor()
    pair: list[Event] = [Observation("a", 1, "m", score=0.5), Label("a", 2, "m", value=1)]
    tallies, _ = tallied(processor, [pair])
    tallies.drop(["m"])
    assert sums_of(tallies) == {}
    again, _ = tallied(Processor(), [pair])
    judged = Processor().take(Events.of(pair)).judged
    assert judged is not None
    tallies.add(["m"], judged.keys, processor.facts(judged))
    assert sums_of(tallies) == sums_of(again)

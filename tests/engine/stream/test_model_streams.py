"""A model is a stream of its own: its outputs do not depend on which models share a processor."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import DRAWS, FOREVER, SETTINGS, events, limited, rowless
from tests.engine.stream.test_tasks import CUTS, TASKS

from abers.stream import DeadLetter, Event, Events, Processor, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MODELS = ("m", "n", "other", "")
SMALL: dict[str, Any] = {"average_run_length": 2, "cooldown": 2, "max_models": FOREVER}
KINDS: dict[str, tuple[st.SearchStrategy[Settings], st.SearchStrategy[Any]]] = {
    "binary": (SETTINGS, DRAWS),
    "protected": (
        limited(scores=st.just("probability"), unlabelled=st.sampled_from((None, None, 0, 1))),
        DRAWS,
    ),
    **{task: TASKS[task][:2] for task in TASKS},
}


@st.composite
def settings(draw: st.DrawFn, kind: str) -> Settings:
    """Draw settings whose limits of entries bind, and whose limits across models do not."""
    return msgspec.structs.replace(
        draw(KINDS[kind][0]),
        max_pending=draw(st.sampled_from((1, 2, 3, FOREVER))),
        max_early=draw(st.sampled_from((1, 2, FOREVER))),
        dedup_max_ids=draw(st.sampled_from((0, 1, 3, FOREVER))),
        max_bytes=FOREVER,
        grace_period=draw(st.sampled_from((0, 0, 2))),
        **SMALL,
    )


@st.composite
def streams(draw: st.DrawFn, kind: str) -> dict[str, list[Event]]:
    """Draw the events of each model; their times have nothing to do with each other."""
    made = {}
    for model in draw(st.lists(st.sampled_from(MODELS), min_size=2, max_size=4, unique=True)):
        draws = draw(st.lists(KINDS[kind][1], max_size=15))
        own = [
            one._replace(model=model, wrong={k: v for k, v in one.wrong.items() if k != "model"})
            for one in draws
        ]
        made[model] = events(own)
    return made


@st.composite
def interleaved(draw: st.DrawFn, of: Mapping[str, Sequence[Event]]) -> list[Event]:
    """Interleave the events of some models, each in its own order."""
    queues = {model: iter(own) for model, own in of.items()}
    names = [model for model, own in of.items() for _ in own]
    return [next(queues[model]) for model in draw(st.permutations(names))]


def answers(
    processor: Processor, stream: list[Event], cuts: Sequence[int]
) -> dict[str, tuple[list[Any], list[Any]]]:
    """Process a stream in batches; return the outputs and the alarms of each model."""
    found: dict[str, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
    for start, end in pairwise([0, *sorted(cuts), len(stream)]):
        if not stream[start:end]:
            continue
        outputs = processor.process_batch(Events.of(stream[start:end]))
        for one in outputs.in_order():
            model = one.event.model if isinstance(one, DeadLetter) else one.model
            found[model][0].append(rowless(one))
        for _, alarm in outputs.alarms:
            found[alarm.model][1].append(msgspec.structs.astuple(alarm))
    return found


def monitors(processor: Processor) -> dict[tuple[str, str], Any]:
    """Return the state of the monitor of each model and segment."""
    states = [one.state() for one in processor.monitors]
    return dict(zip(processor.keys, states, strict=False))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_no_partition_makes_a_difference(data: st.DataObject, kind: str) -> None:
    """However models are spread over processors and interleaved, each has the same outputs."""
    wanted, of = data.draw(settings(kind)), data.draw(streams(kind))
    whole = Processor(wanted)
    expected = answers(whole, data.draw(interleaved(of)), data.draw(CUTS))
    places = data.draw(st.lists(st.integers(0, 3), min_size=len(of), max_size=len(of)))
    counters: Counter[str] = Counter(dict.fromkeys(whole.counters, 0))
    states: dict[tuple[str, str], Any] = {}
    for place in {*places}:
        some = {model: of[model] for model, at in zip(of, places, strict=True) if at == place}
        part = Processor(wanted)
        found = answers(part, data.draw(interleaved(some)), data.draw(CUTS))
        assert found == {model: expected[model] for model in some if model in expected}
        counters.update(part.counters)
        states |= monitors(part)
    assert dict(counters) == whole.counters
    assert states == monitors(whole)

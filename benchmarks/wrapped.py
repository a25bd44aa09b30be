"""Time per event that a wrapper adds to a river learner.

The bare learner and the wrapped one take the same stream in turns, each predicting
and learning every event, so that what lies between them is the wrapper.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from river.datasets import Phishing
from river.linear_model import LogisticRegression

from abers.river import VennAbersClassifier
from benchmarks.page import Section, size, table
from benchmarks.timing import Spread, digits, in_turns, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.page import Key
    from benchmarks.plan import Plan

    Events = list[tuple[int, dict[Any, Any], bool]]

BARE, WITH_IDS, WITHOUT = "the bare learner", "wrapped, with ids", "wrapped, without ids"
ADDED, WRAPPED = "added by the wrapper", "an event, wrapped or bare"
EVENTS = 1_250  # all there are
_MICRO = 1e6
_PASSES = 5  # a round of the stream takes hundredths of a second


def wrapped(plan: Plan) -> Section:
    """Measure LogisticRegression on Phishing, bare and wrapped."""
    events = [(i, x, y) for i, (x, y) in enumerate(Phishing())]
    ways: dict[str, Callable[[Events], None]] = {
        BARE: _bare,
        WITH_IDS: _with_ids,
        WITHOUT: _without_ids,
    }
    calls = {name: partial(_timed, way, events) for name, way in ways.items()}
    found = in_turns(_PASSES * plan.rounds, calls)
    bare, rows = found[BARE], []
    values: dict[Key, Spread] = {}
    for name, spread in found.items():
        more = Spread(*(each - alone for each, alone in zip(spread, bare, strict=True)))
        rows.append([name, spread, digits(spread.median / bare.median), digits(more.median)])
        values |= {(ADDED, name, EVENTS): more, (WRAPPED, name, EVENTS): spread}
    body = (
        f"LogisticRegression on river's Phishing, {size(EVENTS)} events, each predicted and"
        " then learned; µs an event. Without ids the wrapper lets the learner score the features"
        " a second time, before it learns them; with ids the score of the prediction waits.\n\n"
        + table(["", "µs an event", "times the bare one", "µs more"], rows)
    )
    return Section("A river learner, wrapped", body, values)


def _timed(way: Callable[[Events], None], events: Events) -> float:
    return seconds(partial(way, events)) * _MICRO / len(events)


def _bare(events: Events) -> None:
    model: Any = LogisticRegression()  # river does not type its methods
    for _, x, y in events:
        model.predict_proba_one(x)
        model.learn_one(x, y)


def _with_ids(events: Events) -> None:
    model = VennAbersClassifier(LogisticRegression())
    for i, x, y in events:
        model.predict_proba_one(x, id=i)
        model.learn_one(x, y, id=i)


def _without_ids(events: Events) -> None:
    model = VennAbersClassifier(LogisticRegression())
    for _, x, y in events:
        model.predict_proba_one(x)
        model.learn_one(x, y)

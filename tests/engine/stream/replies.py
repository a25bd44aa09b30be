"""Short words for the tests of single rules, and what they ask of a processor.

What a test does not say is the same everywhere: the score 0.5, the label 1, time
0, limits wide open.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from tests.engine.stream.cases import FOREVER

from abers.stream import DeadLetter, Event, Label, Observation, Output, Processor, Settings

NOW = 1_700_000_000_000
"""A time like those that really come."""


def obs(id_: str, time: int = 0, score: Any = 0.5, **fields: Any) -> Observation:  # noqa: ANN401
    """Make an observation."""
    return Observation(id_, time, score=score, **fields)


def lab(id_: str, time: int = 0, value: Any = 1, **fields: Any) -> Label:  # noqa: ANN401
    """Make a label."""
    return Label(id_, time, value=value, **fields)


def processor(**options: Any) -> Processor:  # noqa: ANN401
    """Make a processor with these settings, and the widest limits."""
    return Processor(Settings(**{"max_jump": 2**53, "label_timeout": FOREVER} | options))


def counted(p: Processor, **expected: int) -> bool:
    """Return whether the counters are those given, and 0 for all others."""
    nonzero = {name: count for name, count in p.counters.items() if count}
    return nonzero == {name: count for name, count in expected.items() if count}


def kinds(outputs: list[Output]) -> list[str]:
    """Name what came out: the kinds, and the reasons of dead letters."""
    return [o.reason if isinstance(o, DeadLetter) else type(o).__name__ for o in outputs]


def only(outputs: list[Output]) -> Any:  # noqa: ANN401
    """Return the only output."""
    (output,) = outputs
    return output


def same(one: Event, other: Event) -> bool:
    """Return whether two events have the same values; a NaN is the same as another."""
    pairs = zip(msgspec.structs.astuple(one), msgspec.structs.astuple(other), strict=True)
    equal = (a is b or a == b or (a != a and b != b) for a, b in pairs)  # noqa: PLR0124
    return type(one) is type(other) and all(equal)


def refused(p: Processor, event: Event) -> str:
    """Return the reason for which an event is refused, having made sure that nothing changed."""
    before, clock = dict(p.counters), p.clock
    dead_letter = only(p.process(event))
    assert isinstance(dead_letter, DeadLetter)
    assert same(dead_letter.event, event)
    assert dead_letter.row == 0
    assert dead_letter.detail
    assert p.clock == clock
    changed = Counter(p.counters) - Counter(before)
    kind = "observations" if isinstance(event, Observation) else "labels_in"
    assert changed == {kind: 1, f"dead:{dead_letter.reason}": 1}
    return dead_letter.reason


def identities(p: Processor, waiting: int) -> None:
    """Check that every observation and label is accounted for; `waiting` early labels wait."""
    c = p.counters
    dead = sum(count for name, count in c.items() if name.startswith("dead:"))
    dead -= c["unlearned"]  # calibrators learned these labels
    used = c["predictions"] + c["duplicate_observations"] + c["labels"]
    ignored = c["duplicate_labels"] + c["late_labels"]
    assert c["observations"] + c["labels_in"] == used + ignored + dead + waiting
    assert c["unknown_labels"] == c["dead:unknown-id"]
    assert c["early_labels"] >= c["unknown_labels"] + waiting
    ended = c["labels"] + c["assumed"] + c["expired"] + c["evicted"]
    assert c["predictions"] == ended + p.accounts["waiting_observations"]

"""What stalls and delays that tell the label cost, taught in the native order."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from benchmarks.stalls import SCENARIOS, Perfect, costs, excess, in_order, main

pytestmark = [pytest.mark.native, pytest.mark.once]

EVENTS, SEED = 9_000, 1
NAMED = (  # and what they may cost beside the price of learning, in nats
    ("0 stalls for 2,000", 10.0),
    ("1 stalls for 2,000", 10.0),
    ("both stall for 2,000", 10.0),
    ("0 stalls for 500 in 3,000", 10.0),
    ("0 stalls by and by, 2,000", 10.0),
    ("label 1 alone", 10.0),
    ("row 0 lost", 10.0),
    ("30 % lost", 10.0),
    ("label 1 at once, 0 after 1,000", 10.0),
    ("label 1 at any time before 1,000, 0 then", 10.0),
    ("label 0 after 10, 1 after 1,000", 10.0),
    ("label 1 after 10, 0 after 5,000", 10.0),
    ("label 0 later from the middle on", 10.0),
    ("label 1 after 10 or 1,000, 0 after 100", 20.0),  # the long delays are seen after 1,000 rows
)
PROTECTED = 20.0  # nats that these may cost the mixture
UNKNOWN = "label 1 alone"  # but where no label of a class ever comes
LONG = 20_000  # events
WORST = (  # cases that cost the most where a stall was noticed late
    ("0 stalls for 10,000", 0.3, 2),
    ("1 stalls for 10,000", 0.02, 0),
    ("1 stalls for 10,000", 0.005, 0),
    ("1 stalls by and by, 2,000", 0.3, 1),
    ("1 stalls by and by, 2,000", 0.02, 0),
    ("0 stalls by and by, 6,000", 0.3, 2),
    ("label 1 after 10, 0 after 5,000", 0.5, 0),
    ("0 lost for 2,000", 0.005, 1),
)


@cache
def learning(rate: float) -> float:
    """Return the price of learning where all labels come in order."""
    stream = Perfect.of(rate, EVENTS, SEED)
    delays = SCENARIOS["all 100 late"](stream.labels, np.random.default_rng(0))
    return excess(stream, in_order(stream.labels, delays))


@pytest.mark.parametrize("rate", [0.3, 0.02])
@pytest.mark.parametrize(("name", "most"), NAMED)
def test_what_a_stall_costs(name: str, rate: float, most: float) -> None:
    """Perfect scores lose little, whichever class is late or missing."""
    _, cost, protected = costs(name, rate, EVENTS, SEED)
    assert cost <= learning(rate) + most
    if name != UNKNOWN:
        assert protected <= PROTECTED


@pytest.mark.parametrize(("name", "rate", "seed"), WORST)
def test_what_a_long_stall_costs(name: str, rate: float, seed: int) -> None:
    """Stalls of a rare class, by and by, or of half a stream cost little where p is protected."""
    *_, protected = costs(name, rate, LONG, seed)
    assert protected <= PROTECTED


def test_what_a_stall_costs_on_arrival() -> None:
    """Taught on arrival, the same scores lose ten times the price of learning."""
    cost, *_ = costs("label 1 at once, 0 after 1,000", 0.3, EVENTS, SEED)
    assert cost >= 10.0 * learning(0.3)


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """The table has a row for each scenario."""
    main(["--events", "300", "--seeds", "1"])
    shown = capsys.readouterr().out
    assert all(f"| {name} |" in shown for name in SCENARIOS)

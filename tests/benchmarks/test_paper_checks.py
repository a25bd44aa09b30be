"""What the paper claims of tangents and of delay is true of small cases that are worked out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.paper_checks import (
    Diagram,
    compared,
    contradicted,
    defined,
    forced,
    rounds,
    shared,
    tangents,
)

pytestmark = pytest.mark.native

LABELS = np.array([0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 1], np.int64)


def test_the_worked_example_has_its_tangents() -> None:
    """At 8.5 in the bag of twenty they are 1/3 from 3 and 1/2 from 6, as drawn."""
    drawn = Diagram.of(np.arange(1, 21, dtype=np.float64), LABELS)
    low, high = tangents(drawn, 8.5)
    assert drawn.hull == [0, 3, 6, 13, 17, 20]
    assert (Fraction(low.rise, low.run), Fraction(high.rise, high.run)) == (
        Fraction(1, 3),
        Fraction(1, 2),
    )
    assert (low.ends[0], high.ends[0]) == (3, 6)


def test_a_query_above_all_scores_has_the_probability_1() -> None:
    """There is no end on the right, so label 1 has 1, and label 0 the last block with one more."""
    drawn = Diagram.of(np.array([1.0, 2.0, 2.0]), np.array([0, 1, 1], np.int64))
    low, high = tangents(drawn, 3.0)
    assert (low.rise, low.run, high.rise, high.run) == (2, 3, 1, 1)
    assert defined(drawn, 3.0, 0) == Fraction(2, 3)


def test_no_answer_differs_from_the_definition() -> None:
    """Tangents of the stored hull, the definition, and the calibrator agree."""
    assert compared(60) == (600, 0)


def test_rounds_stay_below_their_bound() -> None:
    """No tangent takes more lines than the lemma allows, and no answer of a tree differs."""
    for *_, most, bound, differ in rounds(2_000, 50):
        assert int(str(most)) <= int(str(bound))
        assert differ == 0


def test_one_weight_vector_loses_more_with_each_block() -> None:
    """Ten times the blocks cost ten times the nats, and with labels at once there is no loss."""
    lost = shared(10, 400)
    assert lost[-1] == pytest.approx(10 * lost[39], rel=0.01)
    assert lost[-1] > 100 * 10 * math.log(4.0)
    assert max(shared(1, 400)) < math.log(4.0)


def test_lanes_stay_within_their_price() -> None:
    """The same adversary takes at most C ln 4 from them."""
    assert max(contradicted(20, 30)) <= 20 * math.log(4.0)


@pytest.mark.parametrize(("bits", "waiting"), [(1, 1), (2, 7), (5, 30)])
def test_lanes_lose_what_any_forecaster_loses(bits: int, waiting: int) -> None:
    """In the lower-bound example they lose C ln K, but for what the methods are unsure of."""
    lost, upper = forced(bits, waiting), waiting * bits * math.log(2.0)
    assert upper - 2e-6 * waiting * bits <= lost <= upper

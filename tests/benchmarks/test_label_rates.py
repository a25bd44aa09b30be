"""The page on labels missing or late by class says what its simulations found."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.label_rates import Bias, Late, late_by_way, missing, missing_by_bin

pytestmark = pytest.mark.native


def test_labelled_rows_are_those_with_labels() -> None:
    """Label 1 has the odds among these that its rate gives; queries are as all rows are."""
    _, labels = missing(2_000, 10)
    of_all = labels[:, -1].mean()
    expected = of_all / (of_all + (1.0 - of_all) * 0.5)
    assert labels[:, :-1].mean() == pytest.approx(expected, abs=0.03)


def test_only_the_known_rates_are_right() -> None:
    """Without rates, and with wrong ones, p_Y is wrong in total; with the known ones it is not."""
    (*_, of_all) = missing_by_bin(3_000, 20)
    without, known, wrong = of_all[1:]
    assert isinstance(known, Bias)
    assert abs(known.z) < 4
    assert without.z < -8  # type: ignore[attr-defined]
    assert wrong.z > 4  # type: ignore[attr-defined]


def test_only_labels_learned_on_arrival_mislead() -> None:
    """Learned when they come, labels late by class mislead; in order or at an age they do not."""
    on_arrival, *others = (row[1] for row in late_by_way(2, 2_500))
    assert on_arrival.mean < -0.05  # type: ignore[attr-defined]
    assert all(abs(one.mean) < 0.02 for one in others)  # type: ignore[attr-defined]


def test_a_stream_has_its_events_in_the_order_of_time() -> None:
    """Observations come once a millisecond, labels after them, those of a moment first."""
    events = Late.of(0, 300).events()
    assert np.diff([one.time for one in events]).min() == 0
    assert len(events) == 600

"""Distributions that wait for their labels, `abers.stream.pending_store`."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import ParameterError
from abers.regression import PredictiveDistribution
from abers.stream.pending_store import (
    PendingDistributions,
    SavedDistributions,
    distribution_scores,
)


@st.composite
def bands(draw: st.DrawFn) -> PredictiveDistribution:
    """Draw a band of a few steps, with any support; one of no step as well."""
    places = sorted(draw(st.sets(st.floats(-5, 5), max_size=5)))
    rises = st.lists(st.floats(0, 1), min_size=len(places) + 1, max_size=len(places) + 1)
    a, b = sorted(draw(rises)), sorted(draw(rises))
    lower, upper = np.minimum(a, b), np.maximum(a, b)
    ends = draw(st.sampled_from([None, (-6.0, 6.0), (-math.inf, 7.0)]))
    return PredictiveDistribution(places, lower, upper, support=ends)


def column(many: list[PredictiveDistribution]) -> Any:  # noqa: ANN401
    """Make a column of objects."""
    return np.fromiter(many, object, len(many))


def kept(many: list[PredictiveDistribution]) -> PendingDistributions:
    """Keep distributions in the slots from the second on."""
    waiting = PendingDistributions()
    waiting.reserve(len(many) + 1)
    waiting.store(range(1, len(many) + 1), column(many))
    return waiting


@given(st.lists(bands(), max_size=5))
def test_what_waits_comes_back(many: list[PredictiveDistribution]) -> None:
    """Saved and loaded, by way of bytes, each merged CDF is the same to the last bit."""
    slots = range(1, len(many) + 1)
    packed = b"".join(kept(many).encode(slots))
    wire = msgspec.msgpack.decode(packed, type=SavedDistributions)
    loaded = PendingDistributions()
    assert loaded.load(wire) == len(many)
    assert b"".join(loaded.encode(slots)) == packed
    assert loaded.settle(slots) == [one.merged() for one in many]


@given(st.lists(bands(), min_size=1, max_size=5), st.floats(-8, 8))
def test_scored_as_predicted(many: list[PredictiveDistribution], label: float) -> None:
    """The merged CDF has the CRPS and the PIT values of the band."""
    labels = np.full(len(many), label)
    found = distribution_scores(kept(many).settle(range(1, len(many) + 1)), labels)
    assert found.tolist() == [[one.crps(label), *one.pit_ends(label)] for one in many]


def test_settled_once() -> None:
    """A settled distribution is dropped; those that wait are kept."""
    one, other = (PredictiveDistribution([at], [0.0, 1.0]) for at in (1.0, 2.0))
    waiting = kept([one, other])
    assert waiting.settle([1]) == [one]
    assert waiting._by_slot == [None, None, other]  # noqa: SLF001


def test_a_distance_that_no_double_holds() -> None:
    """A label further from the distribution than any double costs infinitely much."""
    far = PredictiveDistribution([-1.7e308], [0.0, 1.0])
    assert distribution_scores([far], np.array([1.7e308])).tolist() == [[math.inf, 1.0, 1.0]]


@pytest.mark.parametrize("name", ["counts", "supports", "thresholds", "values"])
def test_what_does_not_fit_is_refused(name: str) -> None:
    """Saved distributions of which something is missing are refused."""
    whole = kept([PredictiveDistribution([1.0, 2.0], [0.0, 0.5, 1.0])] * 2).encode([1, 2])
    packed = msgspec.msgpack.decode(b"".join(whole), type=SavedDistributions)
    cut = msgspec.structs.replace(packed, **{name: getattr(packed, name)[:-8]})
    with pytest.raises((ValueError, ParameterError)):
        PendingDistributions().load(cut)

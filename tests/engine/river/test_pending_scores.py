"""Scores that wait for their labels: `abers.river._wrapper.PendingScores`."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import ParameterError
from abers.river._wrapper import PendingScores


@given(
    most=st.integers(1, 4),
    steps=st.lists(st.tuples(st.sampled_from(["keep", "release"]), st.integers(0, 6))),
)
def test_the_oldest_goes_and_is_counted(most: int, steps: list[tuple[str, int]]) -> None:
    """Whatever is kept and released, at most `most` ids wait, the oldest gone first."""
    pending, naive, dropped = PendingScores(most), OrderedDict[int, float](), 0
    for number, (step, id_) in enumerate(steps):
        if step == "release":
            pending.pop(id_, None)
            naive.pop(id_, None)
        elif id_ not in naive:
            pending.keep(id_, (float(number), None, None))
            naive[id_] = float(number)
            if len(naive) > most:
                naive.popitem(last=False)
                dropped += 1
        assert len(pending) == len(naive)
        assert pending.dropped == dropped
        for known in range(7):
            waiting = pending.get(known)
            assert (None if waiting is None else waiting[0]) == naive.get(known)


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "10", None])
def test_a_bound_that_is_none(most: object) -> None:
    """The bound is a whole number of observations, at least one."""
    with pytest.raises(ParameterError, match="max_pending="):
        PendingScores(most)  # type: ignore[arg-type]

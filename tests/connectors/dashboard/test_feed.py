"""Frames for readers, within a budget, `abers_connectors.dashboard.feed` and `budget`."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.connectors.dashboard.pages import Worked

from abers.stream import Settings
from abers_connectors.dashboard.feed import SHARE, Budget, Feed

if TYPE_CHECKING:
    from abers_connectors.dashboard.observer import Key

SECONDS = 40
PAIRS = [(0.25, 0), (0.75, 1), (0.5, 1)]


class Costly(Worked):
    """A stream whose frames have the cost that the test sets."""

    def __init__(self, models: int, cost: float) -> None:
        """Create models."""
        super().__init__()
        self.used = 0.0
        self.cost = cost
        self.feed = Feed("a stream", self.observer, self.counts, clock=self.clock, cpu=self.cpu)
        for number in range(models):
            self.learn(*PAIRS[: 1 + number % 3], model=f"m{number}", batch=3)

    def clock(self) -> float:
        """Return the time that the test has set."""
        return self.now

    def cpu(self) -> float:
        """Return the CPU time, half of the cost further at each call."""
        self.used += self.cost
        return self.used

    def watched(self, *keys: Key | None) -> Counter[Key | None]:
        """Let time pass with a reader of each model, and count the frames of each."""
        woken: Counter[Key | None] = Counter()
        with ExitStack() as stack:
            for key in keys:
                stack.enter_context(self.feed.listening(key, partial(woken.update, [key])))
            for _ in range(50 * SECONDS):
                self.now += 0.02
                self.feed.tick()
        return woken


def named(*numbers: int) -> list[Key]:
    """Return the keys of models."""
    return [(f"m{number}", "") for number in numbers]


def test_a_frame_a_second() -> None:
    """A single model that costs little has a frame a second, however many readers it has."""
    costly = Costly(3, 0.001)
    for readers in (1, 10):
        woken = costly.watched(*named(1) * readers)
        assert 0.95 * SECONDS * readers <= woken["m1", ""] <= (SECONDS + 1) * readers


@pytest.mark.parametrize("models", [2, 8, 32])
@pytest.mark.parametrize("cost", [0.002, 0.02, 0.3])
def test_a_share_of_the_time(models: int, cost: float) -> None:
    """More models share the budget of frames in turn, and it does not grow."""
    costly = Costly(models, cost)
    woken = costly.watched(*named(*range(models)))
    assert woken.total() * cost <= SECONDS * SHARE + cost
    # Each look costs too, and there is at least one a second if it is paid for.
    assert woken.total() >= min(0.95 * models, 0.9 * (SHARE / cost - 1.0)) * SECONDS
    counts = [woken[key] for key in named(*range(models))]
    assert max(counts) - min(counts) <= 1 + 0.02 * max(counts)


def test_drawing_counts() -> None:
    """A page is charged to the same budget as its frame."""
    used = iter([0.0, 0.1, 0.1, 0.3])
    budget = Budget(lambda: 7.0, lambda: next(used))
    with budget.spent():
        pass
    with budget.spent(drawing=True):
        pass
    paid = 7.0 + 0.3 / SHARE
    assert not budget.left(paid - 0.01)
    assert budget.left(paid + 0.01)
    assert budget.pace == pytest.approx(0.3 / SHARE)


def test_a_newcomer_waits_its_turn() -> None:
    """A reader that changes its model again and again does not delay the others."""
    costly = Costly(32, 0.05)
    woken: list[Key] = []
    with ExitStack() as stack:
        stack.enter_context(costly.feed.listening(("m0", ""), lambda: woken.append(("m0", ""))))
        for number in range(1, 32):
            with costly.feed.listening((f"m{number}", ""), lambda: None):
                for _ in range(10):
                    costly.tick()
    assert len(woken) >= 31 * 10 * SHARE / 0.05 / 3


def test_names_that_no_model_has() -> None:
    """Unknown names share one frame, without numbers, that lists the known models."""
    costly = Costly(2, 0.0)
    with ExitStack() as stack:
        for number in range(20):
            stack.enter_context(costly.feed.listening((f"made-up-{number}", ""), lambda: None))
        costly.tick()
        frames = {id(costly.feed.frame((f"made-up-{number}", ""))) for number in range(100)}
    assert len(frames) == 1
    frame = costly.feed.frame(("made-up", ""))
    assert frame is not None
    assert (frame.key, frame.blocks(), len(frame.models)) == (None, None, 2)


def test_a_model_that_comes_later() -> None:
    """A model that is requested before its first observation is shown from then on."""
    costly = Costly(1, 0.0)
    key = ("m5", "")
    with costly.feed.listening(key, lambda: None):
        costly.tick()
        frame = costly.feed.frame(key)
        assert frame is not None
        assert frame.key is None
        costly.learn(*PAIRS, model="m5", batch=3)
        costly.tick()
        frame = costly.feed.frame(key)
        assert frame is not None
        assert frame.key == key


def test_nobody_looks() -> None:
    """Without readers no frame is made, and old frames are dropped."""
    costly = Costly(1, 0.0)
    with costly.feed.listening(None, lambda: None):
        costly.tick()
        assert costly.feed.frame(None) is not None
    before = costly.used
    costly.tick()
    assert costly.feed.frame(None) is None
    assert costly.used == before


def test_retired_models_make_room() -> None:
    """The history of retired models is dropped, so that others have one."""
    worked = Worked(Settings(max_models=101, retire_after=60_000))
    for number in range(100):
        worked.learn(*PAIRS, model=f"junk-{number}", batch=3)
    worked.learn(*PAIRS * 40, model="honest", batch=60)
    worked.learn(*PAIRS * 70, model="honest", batch=60)
    worked.learn(*PAIRS, model="new", batch=3)
    assert worked.processor.counters["retired"] == 100
    worked.tick()
    assert [one.key for one in worked.observer.models()] == [("honest", ""), ("new", "")]
    assert worked.observer.observed(("new", "")).history.evidence

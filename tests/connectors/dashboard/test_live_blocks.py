"""When the blocks of a model are made anew, `abers_connectors.dashboard.feed`."""

from __future__ import annotations

from tests.connectors.dashboard.drifts import drifting
from tests.connectors.dashboard.pages import Worked

from abers.pages.model_findings import Silence
from abers_connectors.dashboard.feed import LiveBlocks

KEY = ("", "")
ROWS = drifting(1_100)


def test_blocks_are_made_again_after_one_label_more_in_a_hundred_or_ten_seconds() -> None:
    """Blocks stay while few labels came, and for ten seconds at most; the last ones are exact."""
    worked = Worked()
    worked.learn(*ROWS[:1_000], batch=100)
    blocks = LiveBlocks(worked.observer, "UTC")
    first = blocks(KEY, 0.0)
    assert blocks(KEY, 100.0) is first
    worked.learn(*ROWS[1_000:1_010], batch=10)
    assert blocks(KEY, 9.9) is first
    later = blocks(KEY, 10.0)
    assert later is not first
    assert later == LiveBlocks(worked.observer, "UTC")(KEY)
    worked.learn(*ROWS[1_010:1_021], batch=11)
    assert blocks(KEY, 10.1) is not later


def test_a_silence_is_shown_at_once() -> None:
    """A banner appears and goes without a label more."""
    worked = Worked()
    worked.learn(*ROWS[:300], batch=100)
    blocks = LiveBlocks(worked.observer, "UTC")
    silent = blocks(KEY, 0.0, Silence(60_000, 3, None, 5))
    assert silent is not None
    assert silent[0].key == "silence"
    (first, *_) = blocks(KEY, 0.0) or ()
    assert first.key == "answers"


def test_a_model_that_there_is_not() -> None:
    """A model without an observation has no blocks."""
    assert LiveBlocks(Worked().observer, "UTC")(("m", "")) is None

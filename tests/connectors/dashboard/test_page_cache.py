"""Pages of frames, `abers_connectors.dashboard.live_routes`."""

from __future__ import annotations

import asyncio
import re
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.connectors.dashboard.pages import Worked
from tests.connectors.dashboard.test_feed import Costly

from abers_connectors.dashboard.feed import SHARE
from abers_connectors.dashboard.live_routes import PageCache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers_connectors.dashboard.live_document import LiveDocument
    from abers_connectors.dashboard.observer import Key

PAIRS = [(0.25, 0), (0.75, 1)]


def pages(worked: Worked, keys: Sequence[Key | None]) -> tuple[list[LiveDocument], int]:
    """Draw pages in sequence, and return the number of pages kept."""

    async def drawing() -> list[LiveDocument]:
        return [await views.page(key) for key in keys]

    with closing(PageCache(worked.feed)) as views:
        return asyncio.run(drawing()), len(views)


def ended(models: int) -> Worked:
    """Return a stream of some models that has ended."""
    worked = Worked()
    for number in range(models):
        worked.learn(*PAIRS, model=f"m{number}", batch=2)
    worked.feed.end()
    return worked


def test_names_that_no_model_has() -> None:
    """Unknown names share one page, which says so and offers the known models."""
    made_up = [(f"made-up-{number}", "") for number in range(500)]
    (page, *others), kept = pages(ended(2), made_up)
    assert all(one is page for one in others)
    assert kept == 1
    assert "No model has this name; choose another model." in page.parts["empty"]
    assert re.findall(r">(\w+)</a>", page.parts[":models"]) == ["m0", "m1"]
    assert (page.model, page.order, page.answers) == (None, ("empty",), {})
    assert "made-up" not in str(page)


def test_the_pages_of_many_models() -> None:
    """After the end each model still has its page, and a bounded number is kept."""
    models = [(f"m{number}", "") for number in range(60)]
    made, kept = pages(ended(60), [*models, models[0]])
    assert kept == 40
    assert [page.model for page in made[:60]] == [f'["m{n}",""]' for n in range(60)]
    assert made[60] == made[0]


def test_a_stream_without_models() -> None:
    """Before the first observation the list of models is empty, whatever is requested."""
    worked = Worked()
    worked.feed.end()
    (made, asked), _ = pages(worked, [None, ("m", "")])
    assert made == asked
    assert "The stream had no observation." in made.parts["empty"]


@pytest.mark.parametrize(("models", "cost"), [(1, 0.002), (8, 0.2)])
def test_how_often(models: int, cost: float) -> None:
    """A page says how often it is updated: every second while the budget allows it."""
    costly = Costly(models, cost)
    keys = [(f"m{number}", "") for number in range(models)]
    costly.watched(*keys)
    frames = [costly.feed.frame(key) for key in keys]
    last = max(frames, key=lambda frame: 0 if frame is None else frame.number)
    assert last is not None
    (page,), _ = pages(costly, [last.key])
    if models == 1:
        assert page.status == "live"
    else:
        found = re.fullmatch(r"live, every (\d+) s", page.status)
        assert found is not None
        assert int(found[1]) == round(models * cost / SHARE)

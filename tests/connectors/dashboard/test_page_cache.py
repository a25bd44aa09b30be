"""Pages of frames, `abers_connectors.dashboard.page_cache`."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.dashboard.pages import Worked
from tests.connectors.dashboard.test_feed import Costly

from abers_connectors.dashboard.budget import SHARE
from abers_connectors.dashboard.page_cache import PageCache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers_connectors.dashboard.models import Key

PAIRS = [(0.25, 0), (0.75, 1)]


def pages(worked: Worked, keys: Sequence[Key | None]) -> tuple[list[bytes], int]:
    """Draw pages in sequence, and return the number of pages kept."""

    async def drawing() -> list[bytes]:
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
    assert {*others} == {page}
    assert kept == 1
    document: dict[str, Any] = json.loads(page)
    assert document["empty"] == "No model has this name; choose another model."
    assert [one["name"] for one in document["models"]] == ["m0", "m1"]
    assert (document["model"], document["cards"]) == (None, [])
    assert b"made-up" not in page


def test_the_pages_of_many_models() -> None:
    """After the end each model still has its page, and a bounded number is kept."""
    models = [(f"m{number}", "") for number in range(60)]
    made, kept = pages(ended(60), [*models, models[0]])
    assert kept == 40
    assert [json.loads(page)["model"] for page in made[:60]] == [f'["m{n}",""]' for n in range(60)]
    assert made[60] == made[0]


def test_a_stream_without_models() -> None:
    """Before the first observation the list of models is empty, whatever is requested."""
    worked = Worked()
    worked.feed.end()
    (made, asked), _ = pages(worked, [None, ("m", "")])
    assert made == asked
    assert json.loads(made)["empty"].startswith("The stream had no observation.")


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
    words = json.loads(page)["status"]
    if models == 1:
        assert words == "Live, updated every second."
    else:
        found = re.fullmatch(r"Live, updated about every (\d+) seconds\.", words)
        assert found is not None
        assert int(found[1]) == round(models * cost / SHARE)

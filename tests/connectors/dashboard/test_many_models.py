"""The live page with more models than it lists: the worst of them, a search, and the whole list."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.browsing import PATIENCE, opened, require_width
from tests.connectors.dashboard.pages import Listening, Worked, asked

from abers.stream import Label, Observation, Settings
from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.server import serving
from abers_connectors.runtime.application import Checkpoint
from abers_connectors.runtime.status import Status
from abers_connectors.runtime.task import StreamTask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from abers.stream import Event

MANY = 300
WRONG = "m123"


@pytest.fixture
def many() -> Worked:
    """Return a stream of many models, of which one has scores that are too low."""
    worked = Worked(Settings(scores="probability", max_models=MANY, grace_period=0))
    events: list[Event] = []
    for number in range(2 * MANY + 200):
        model = f"m{number % MANY:03}" if number < 2 * MANY else WRONG
        score, label = (0.1, 1) if model == WRONG else (0.5, number // MANY)
        events.append(Observation(f"{number}", number, model, score=score))
        events.append(Label(f"{number}", number, model, value=label))
    worked.take(*events)
    worked.observer.update()
    return worked


@pytest.fixture
def where(many: Worked) -> Iterator[str]:
    """Serve the page of many models."""
    with serving(HttpSection(port=0), None, many.feed) as url:
        yield url


def test_a_document_lists_the_worst(many: Worked, where: str) -> None:
    """An event has the worst models and a sentence about the others, however many there are."""
    with Listening(where) as client:
        client.page()
        many.tick()
        document = client.page()
    rows = document["parts"][":models"].split("<tr>")[2:]
    assert f">{WRONG}</a> (alarm)" in rows[0]
    assert '<td class="some">202</td>' in rows[0]
    assert len(rows) == 20
    assert "The 20 worst of 300 models" in document["parts"][":models"]
    assert document["model"] == f'["{WRONG}",""]'  # it has most labels


def test_the_whole_list(where: str) -> None:
    """A program gets any part of the list, worst first, with labels and evidence of each model."""
    answer = asked(where, f"/live/models?limit={MANY}")
    found = json.loads(answer.text)
    assert answer.headers["cache-control"] == "no-store"
    assert (found["total"], found["found"], len(found["models"])) == (MANY, MANY, MANY)
    first = found["models"][0]
    assert (first["model"], first["labels"], first["alarm_active"]) == (WRONG, 202, True)
    assert first["evidence_log10"] > first["evidence_threshold_log10"]
    assert {one["model"] for one in found["models"]} == {f"m{number:03}" for number in range(MANY)}
    part = json.loads(asked(where, "/live/models?offset=10&limit=5").text)
    assert part["models"] == found["models"][10:15]


def test_a_search(where: str) -> None:
    """A search finds a part of a name, and says how many models there are."""
    found = json.loads(asked(where, "/live/models?search=M29").text)
    assert {one["model"] for one in found["models"]} == {f"m29{digit}" for digit in range(10)}
    assert found["listed"] == "10 of 300 models have this in their names."
    assert found["table"].count("</a>") == 10
    none = json.loads(asked(where, "/live/models?search=%3Cb%3E").text)
    assert (none["found"], none["listed"]) == (0, "None of 300 models has this in its name.")


@pytest.mark.parametrize("query", ["limit=-1", "offset=x", "limit=", "offset=1234567890"])
def test_a_query_that_is_no_number(where: str, query: str) -> None:
    """A number that cannot be used is refused with a sentence."""
    answer = asked(where, f"/live/models?{query}")
    assert answer.code == 400
    assert answer.text.endswith("must be a whole number of at most 9 digits.")


def test_the_list_needs_the_token(many: Worked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the page needs a token, so does the list."""
    monkeypatch.setenv("ABERS_HTTP_TOKEN", "s" * 32)
    with serving(HttpSection(port=0), None, many.feed) as url:
        assert asked(url, "/live/models").code == 401
        assert asked(url, "/live/models", Authorization=f"Bearer {'s' * 32}").code == 200


def test_a_service_without_readers(many: Worked) -> None:
    """The list of a service is there although its page has no reader."""
    from abers_connectors.dashboard.server import ServicePage  # noqa: PLC0415 - needs extras

    status = Status(60.0)
    page = ServicePage("app", status)
    status.update_evidence([StreamTask(many.processor, Checkpoint("app", 0, 0, 0, (0, 0)))])
    with serving(HttpSection(port=0), status, page.feed) as url:
        found = json.loads(asked(url, "/live/models").text)
    assert (found["total"], found["models"][0]["model"]) == (MANY, WRONG)


# In a browser


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 360)])
def test_a_model_is_found(browser: Browser, many: Worked, scheme: str, width: int) -> None:
    """A reader types a part of a name and chooses among the models that the server finds."""
    size: Any = {"width": width, "height": 740}
    with ExitStack() as stack:
        url = stack.enter_context(serving(HttpSection(port=0), None, many.feed))
        page, noted = stack.enter_context(opened(browser, url, viewport=size, color_scheme=scheme))
        expect(page.locator("#phase")).to_contain_text("connected", timeout=PATIENCE)
        many.tick()
        links = page.locator("#models a")
        expect(links).to_have_count(20, timeout=PATIENCE)
        expect(links.first).to_have_text(WRONG)
        page.get_by_label("Search by name").fill("m29")
        expect(links).to_have_count(10, timeout=PATIENCE)
        page.get_by_role("link", name="m295").click()
        shown, until = page.locator("#models [aria-current]"), time.monotonic() + PATIENCE / 1000
        while shown.all_inner_texts() != ["m295"]:  # the server hears of the choice at some tick
            assert time.monotonic() < until
            many.tick()
            page.wait_for_timeout(50)
        expect(links).to_have_count(10, timeout=PATIENCE)  # the search stays
        require_width(page, width)
        assert noted == []

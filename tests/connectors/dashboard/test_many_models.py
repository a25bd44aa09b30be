"""The live page with more models than it lists: the worst of them, a search, and the whole list."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.connectors.browsing import PATIENCE, opened, require_width
from tests.connectors.dashboard.pages import Listening, Worked, asked
from tests.connectors.dashboard.replays import command

from abers.stream import Label, Observation, Settings
from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.server import serving
from abers_connectors.runtime.checkpoint import Checkpoint
from abers_connectors.runtime.status import Status
from abers_connectors.runtime.task import StreamTask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    assert [one["id"] for one in document["models"]][:1] == [f'["{WRONG}",""]']
    assert document["models"][0]["name"].startswith(f"{WRONG} (alarm), evidence ")
    assert document["models"][0]["name"].endswith(", 202 labels")
    assert len(document["models"]) == 20
    assert document["listed"].startswith("The 20 worst of 300 models")
    assert document["shown"] == f"Shown: {WRONG}."  # it has most labels


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
    assert [one["id"] for one in found["choices"]] == [
        json.dumps([one["model"], ""], separators=(",", ":")) for one in found["models"]
    ]
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
    from abers_connectors.dashboard.stream_pages import ServicePage  # noqa: PLC0415 - needs extras

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
        expect(page.locator("#version")).to_contain_text("abers", timeout=PATIENCE)
        many.tick()
        listed = page.locator("#model option")
        expect(listed).to_have_count(20, timeout=PATIENCE)
        expect(listed.first).to_contain_text(WRONG)
        page.get_by_label("Search by name").fill("m29")
        expect(listed).to_have_count(10, timeout=PATIENCE)
        page.get_by_label("Model", exact=True).select_option('["m295",""]')
        shown, until = page.locator("#shown"), time.monotonic() + PATIENCE / 1000
        while shown.text_content() != "Shown: m295.":  # the server hears of the choice at some tick
            assert time.monotonic() < until
            many.tick()
            page.wait_for_timeout(50)
        expect(listed).to_have_count(10, timeout=PATIENCE)  # the search stays
        require_width(page, width)
        assert noted == []


@pytest.mark.browser
def test_a_report_is_searched(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The models of a report are found by a part of their names, without a server."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": f"{n}", "time": n, "model": f"m{n % 30:02}", "score": 0.5, "label": n % 2}
        for n in range(60)
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert command("replay", "in.jsonl", "--report", "r.html")[0] == 0
    with opened(browser, (tmp_path / "r.html").as_uri(), offline=True) as (page, noted):
        listed = page.locator("#model option")
        assert listed.count() == 31
        page.get_by_label("Search by name").fill("M2")
        expect(listed).to_have_count(10)
        page.get_by_label("Model", exact=True).select_option(index=3)
        expect(page.locator("[data-part]:not([hidden])")).to_have_attribute("aria-label", "m23")
        assert noted == []

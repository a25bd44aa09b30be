"""The live page in a real browser."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.browsing import PATIENCE, contrast, opened, require_width
from tests.connectors.dashboard.drifts import CHANGE, drifting, written
from tests.connectors.dashboard.pages import Worked
from tests.connectors.processes import Started

from abers.stream import Settings
from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.server import serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

PAIRS = [(0.1, 0), (0.2, 0), (0.8, 1), (0.6, 1), (0.4, 0), (0.7, 0), (0.9, 1), (0.3, 1)] * 4


def tile(page: Page, name: str) -> str:
    """Return the number of a tile."""
    return page.locator("#strip > div", has_text=name).locator("dd").inner_text()


def ready(page: Page) -> None:
    """Wait until the page is connected."""
    expect(page.locator("#phase")).to_contain_text("connected", timeout=PATIENCE)


def test_it_is_drawn_and_goes_on(browser: Browser, worked: Worked, url: str) -> None:
    """Answers appear and follow the stream without other requests or console messages."""
    worked.learn(*PAIRS)
    with opened(browser, url) as (page, noted):
        ready(page)
        worked.tick()
        words = page.locator("#blocks .word")
        expect(words).to_have_text(["Waiting"] * 3, timeout=PATIENCE)
        assert tile(page, "observations") == "32"
        chips = page.locator(".chips .mark")
        expect(chips).to_have_text(["model: waiting", "served: waiting", "pays: waiting"])
        progress = page.locator("progress")
        assert (progress.get_attribute("value"), progress.get_attribute("max")) == ("32", "200")
        worked.learn(*PAIRS)
        worked.tick()
        expect(page.locator("#strip dd").first).to_have_text("64", timeout=PATIENCE)
        expect(progress).to_have_attribute("value", "64")
        assert page.locator("#phase").inner_text().startswith("live · last label ")
        assert page.locator("#said").inner_text() == ""
        assert noted == []


def test_a_reader_keeps_what_is_open(browser: Browser) -> None:
    """Folds, the choice, focus and scroll stay while numbers change, and after a reload."""
    worked = Worked()
    rows = drifting(16_000)
    worked.learn(*rows[:14_000], batch=500)
    with (
        serving(HttpSection(port=0), None, worked.feed) as url,
        opened(browser, url) as (page, noted),
    ):
        ready(page)
        worked.tick()
        page.locator("#scores > summary").click()
        page.locator("#period > fieldset label").nth(1).click()
        page.locator("#scores > summary").focus()
        page.evaluate("scrollTo(0, 400)")
        page.evaluate("window.kept = document.getElementById('scores')")
        answers = page.locator("#answers").inner_text()
        worked.learn(*rows[14_000:], batch=50)
        worked.tick()
        expect(page.locator("#strip dd").first).to_have_text("16,000", timeout=PATIENCE)
        assert page.locator("#answers").inner_text() != answers
        assert page.evaluate("window.kept === document.activeElement.parentElement")
        assert page.evaluate("scrollY") >= 400  # more if something above has grown

        def open_and_chosen() -> None:
            expect(page.locator("#scores")).to_have_attribute("open", "", timeout=PATIENCE)
            expect(page.locator("#period input").nth(1)).to_be_checked(timeout=PATIENCE)

        open_and_chosen()
        page.reload()
        open_and_chosen()
        assert noted == []


def of_numbers() -> list[tuple[Any, Any]]:
    """Return scores, and labels near them."""
    rng = random.Random(5)  # noqa: S311 - no secret
    scores = [rng.gauss(10.0, 3.0) for _ in range(180)]
    return [(score, score + rng.gauss(0.0, 1.0)) for score in scores]


def of_classes() -> list[tuple[Any, Any]]:
    """Return calibrated probabilities of classes, and labels."""
    rng = random.Random(5)  # noqa: S311 - no secret
    first = [0.1 + 0.6 * rng.random() for _ in range(180)]
    scores = [{"a": one, "b": 0.9 - one, "c": 0.1} for one in first]
    return [(one, rng.choices([*one], [*one.values()])[0]) for one in scores]


REGRESSION = Settings(task="regression", distributions="scored")
CLASSES = Settings(task="multiclass", classes=("a", "b", "c"), scores="probability")
TASKS = {"regression": (REGRESSION, of_numbers()), "multiclass": (CLASSES, of_classes())}


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 320)])
@pytest.mark.parametrize("task", TASKS)
def test_a_task(browser: Browser, task: str, scheme: str, width: int) -> None:
    """The page of each task follows the stream, in any width, and the console stays empty."""
    settings, pairs = TASKS[task]
    worked = Worked(settings)
    worked.learn(*pairs * 3, batch=20)
    size: Any = {"width": width, "height": 740}
    with (
        serving(HttpSection(port=0), None, worked.feed) as url,
        opened(browser, url, viewport=size, color_scheme=scheme) as (page, noted),
    ):
        ready(page)
        worked.tick()
        charts = page.locator("#over-time svg.chart:visible")
        expect(charts.first).to_be_visible(timeout=PATIENCE)
        before = page.locator("#over-time").inner_html()
        worked.learn(*pairs, batch=20)
        worked.tick()
        expect(page.locator("#strip dd").first).to_have_text("720", timeout=PATIENCE)
        assert page.locator("#over-time").inner_html() != before
        require_width(page, width)
        assert noted == []


def test_an_alarm(browser: Browser) -> None:
    """An alarm and the words that change are announced after an injected change, not before."""
    worked = Worked()
    rows = drifting(CHANGE + 4_000)
    worked.learn(*rows[:CHANGE], batch=500)
    with (
        serving(HttpSection(port=0), None, worked.feed) as url,
        opened(browser, url) as (page, noted),
    ):
        ready(page)
        worked.tick()
        expect(page.locator("#model .word")).to_have_text("Yes", timeout=PATIENCE)
        assert page.locator("[role=alert]").count() == 0
        assert page.title() == "a stream · abers live"
        worked.learn(*rows[CHANGE:], batch=500)
        worked.tick()
        expect(page.locator("#blocks [role=alert]")).to_contain_text(
            "raw is too high.", timeout=PATIENCE
        )
        expect(page.locator("#model .word")).to_have_text("No")
        said = page.locator("#said")
        assert said.get_attribute("role") == "status"
        expect(said).to_contain_text("Is my model telling the truth? Now: no.")
        assert page.title() == "(!) a stream · abers live"
        assert noted == []


def test_no_labels(browser: Browser) -> None:
    """When no label came for long, words stay and their colours go."""
    worked = Worked()
    worked.learn(*drifting(2_000), batch=500)
    with (
        serving(HttpSection(port=0), None, worked.feed) as url,
        opened(browser, url) as (page, noted),
    ):
        ready(page)
        worked.tick()
        worked.learn((0.5, 1))
        worked.tick()
        words = page.locator("#blocks .word")
        expect(words.first).to_be_visible(timeout=PATIENCE)
        before = words.all_inner_texts()
        worked.now += 19_200.0
        worked.tick()
        expect(page.locator("#silence")).to_contain_text("No label for 5 h 20 min.")
        assert words.all_inner_texts() == before
        assert page.locator("#blocks .card.waiting").count() == 3
        expect(page.locator("#model .say")).to_contain_text("As of event time 120,005,000:")
        worked.learn((0.5, 1))
        worked.tick()
        expect(page.locator("#silence")).to_have_count(0, timeout=PATIENCE)
        expect(page.locator("#blocks .card.waiting")).to_have_count(0)
        assert noted == []


def test_a_server_that_goes_and_comes_back(browser: Browser, worked: Worked) -> None:
    """The page says that the connection is lost, turns grey, and reconnects by itself."""
    worked.learn(*PAIRS)
    server = ExitStack()
    url = server.enter_context(serving(HttpSection(port=0), None, worked.feed))
    with opened(browser, url) as (page, _), ExitStack() as stack:
        ready(page)
        server.close()
        lost = page.locator("#lost")
        expect(lost).to_contain_text("Connection lost at", timeout=PATIENCE)
        assert lost.get_attribute("role") == "status"
        again = Worked(title="again")
        again.learn(*PAIRS)
        again.feed.end()
        port = int(url.rsplit(":", 1)[1])
        stack.enter_context(serving(HttpSection(port=port), None, again.feed))
        expect(page.locator("#phase")).to_have_attribute("data-phase", "ended", timeout=PATIENCE)
        expect(lost).to_be_hidden()
        assert page.locator("h1").inner_text() == "again"


def test_one_of_several_models(browser: Browser, worked: Worked, url: str) -> None:
    """A reader chooses a model by its name, and the address remembers it."""
    worked.learn(*PAIRS, model="fraud")
    worked.learn(*PAIRS[:3], model="<b>spam</b>")
    worked.feed.end()
    with opened(browser, url) as (page, noted):
        page.get_by_role("link", name="<b>spam</b>").click()
        said = page.locator("#model .say")
        expect(said).to_have_text("3 of 200 labels.", timeout=PATIENCE)
        page.reload()
        expect(said).to_have_text("3 of 200 labels.", timeout=PATIENCE)
        assert page.locator("#models [aria-current]").inner_text() == "<b>spam</b>"
        page.go_back()
        expect(said).to_have_text("32 of 200 labels.", timeout=PATIENCE)
        assert noted == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_telephone(browser: Browser, worked: Worked, url: str, scheme: str) -> None:
    """On 320 pixels nothing is wider than the screen in either theme, and text is readable."""
    worked.learn(*PAIRS * 20, batch=50)
    worked.feed.end()
    size: Any = {"width": 320, "height": 740}
    with opened(browser, url, viewport=size, color_scheme=scheme) as (page, noted):
        expect(page.locator("#over-time")).to_be_visible(timeout=PATIENCE)
        require_width(page, 320)
        pairs = page.evaluate(
            "['h1', 'h2', '#strip dd', '#strip dt', '#phase'].map((one) => "
            "getComputedStyle(document.querySelector(one)).color)"
        )
        paper = page.evaluate("getComputedStyle(document.querySelector('.card')).backgroundColor")
        assert min(contrast(one, paper) for one in pairs) >= 4.5
        assert noted == []


def test_by_keyboard(browser: Browser, worked: Worked, url: str) -> None:
    """Tab goes from the skip link to the list of models and the folds, and Enter opens one."""
    worked.learn(*PAIRS, model="fraud")
    worked.learn(*PAIRS, model="spam")
    worked.feed.end()
    with opened(browser, url) as (page, _):
        expect(page.locator("#models a")).to_have_count(2, timeout=PATIENCE)
        order = []
        for _ in range(5):
            page.keyboard.press("Tab")
            order.append(page.evaluate("document.activeElement.textContent.trim().split(' ')[0]"))
            outline = "getComputedStyle(document.activeElement).outlineStyle"
            assert page.evaluate(outline) != "none"
        assert order == ["Skip", "", "fraud", "spam", "Methods"]  # the field is empty
        page.keyboard.press("Enter")
        expect(page.locator("#methods")).to_have_attribute("open", "")
        assert page.locator("main").count() == page.locator("h1").count() == 1


def test_the_command(browser: Browser, tmp_path: Path) -> None:
    """`abers replay --live` says where its page is, which goes on until the command is stopped."""
    path = written(tmp_path, drifting(CHANGE + 4_000))
    words = [
        sys.executable,
        "-m",
        "abers_connectors",
        "replay",
        str(path),
        "--scores",
        "probability",
    ]
    words += ["--live", "--output", str(tmp_path / "out.jsonl")]
    with Started(words, stderr=subprocess.PIPE) as ran:
        assert ran.stderr is not None
        url = next(line.split()[-1].decode() for line in ran.stderr if b"live page is at" in line)
        with opened(browser, url) as (page, noted):
            expect(page.locator("#phase")).to_have_attribute(
                "data-phase", "ended", timeout=PATIENCE
            )
            assert tile(page, "observations") == "10,000"
            assert noted == []
        ran.send_signal(signal.SIGINT)
        assert ran.wait() == 0

"""The live page in a real browser."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.connectors.browsing import PATIENCE, contrast, opened, require_width
from tests.connectors.dashboard.drifts import CHANGE, drifting, written
from tests.connectors.dashboard.pages import Worked

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
    return page.locator("#tiles > div", has_text=name).locator(".value").inner_text()


def test_it_is_drawn_and_goes_on(browser: Browser, worked: Worked, url: str) -> None:
    """Figures appear and follow the stream without other requests or console messages."""
    worked.learn(*PAIRS)
    with opened(browser, url) as (page, noted):
        expect(page.locator("#phase")).to_have_attribute("data-phase", "waiting", timeout=PATIENCE)
        worked.tick()
        page.wait_for_selector("#cards [data-name=reliability] .main-svg")
        assert tile(page, "Events").startswith("64")
        figures = page.locator("#cards .figure")
        assert figures.count() == page.locator("#cards .figure .main-svg .cartesianlayer").count()
        worked.learn(*PAIRS)
        worked.tick()
        expect(page.locator("#tiles .value").first).to_contain_text("128", timeout=PATIENCE)
        assert page.locator("#phase").inner_text() == "Live, updated every second."
        style = "getComputedStyle(document.querySelector('.main-svg')).position"
        assert page.evaluate(style) == "absolute"  # plotly's rules, which are ours here
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
TASKS = {
    "regression": (
        REGRESSION,
        of_numbers(),
        "coverage pit evidence over-crps over-pinball over-width fan-by-score fan",
    ),
    "multiclass": (
        CLASSES,
        of_classes(),
        (
            "reliability experts evidence experts-over-time losses-over-time over-log_loss "
            "over-brier "
            "over-accuracy over-width over-outside_interval"
        ),
    ),
}
DATA = "all => all.map((one) => JSON.stringify(one.data.map(({ x, y }) => [x, y])))"
OVERLAPS = """all => all.flatMap((figure) => {
  const words = [...figure.querySelectorAll(".xtitle, .ytitle, .xtick, .ytick, .legendtext")];
  const boxes = words.map((one) => [one.textContent, one.getBoundingClientRect()]);
  return boxes.flatMap(([text, a], at) => boxes.slice(at + 1).filter(([, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1).map(([other]) => [text, other]));
})"""


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 360)])
@pytest.mark.parametrize("task", TASKS)
def test_a_task_has_its_figures(browser: Browser, task: str, scheme: str, width: int) -> None:
    """Each figure follows the stream, no texts overlap, and the console stays empty."""
    settings, pairs, names = TASKS[task]
    worked = Worked(settings)
    worked.learn(*pairs[:120], batch=20)
    size: Any = {"width": width, "height": 740}
    with (
        serving(HttpSection(port=0), None, worked.feed) as url,
        opened(browser, url, viewport=size, color_scheme=scheme) as (page, noted),
    ):
        expect(page.locator("#version")).to_contain_text("abers", timeout=PATIENCE)
        worked.tick()
        count = len(names.split())
        figures = page.locator("#cards .figure")
        expect(figures.locator(".cartesianlayer")).to_have_count(count, timeout=PATIENCE)
        shown = page.locator("#cards section:has(.figure)")
        shown_names = shown.evaluate_all("all => all.map((one) => one.dataset.name)")
        assert shown_names == names.split()
        assert figures.locator(".cartesianlayer .trace").count() >= count
        assert all(figures.locator(".xtitle, .ytitle").all_text_contents())
        before = figures.evaluate_all(DATA)
        worked.learn(*pairs[120:], batch=20)
        worked.tick()
        expect(page.locator("[data-name=scores] p")).to_contain_text("180", timeout=PATIENCE)
        after = figures.evaluate_all(DATA)
        assert [name for name, a, b in zip(shown_names, before, after, strict=True) if a == b] == []
        assert figures.evaluate_all(OVERLAPS) == []
        require_width(page, width)
        assert noted == []


def test_few_numbers(browser: Browser) -> None:
    """Before a figure says anything, its place says how many labels are missing."""
    worked = Worked(REGRESSION)
    worked.learn(*of_numbers()[:3], batch=3)
    worked.feed.end()
    with (
        serving(HttpSection(port=0), None, worked.feed) as url,
        opened(browser, url) as (page, noted),
    ):
        figures = page.locator("#cards .figure")
        expect(figures.last.locator(".cartesianlayer")).to_have_count(1, timeout=PATIENCE)
        assert page.locator("[data-name=over-pinball], [data-name=over-width]").count() == 0
        for name in ("over-crps", "evidence"):
            words = page.locator(f"[data-name={name}-placeholder] .description")
            expect(words).to_have_text("38 more labels are needed before this figure can be drawn.")
        assert noted == []


def test_an_alarm(browser: Browser) -> None:
    """An alarm is announced and drawn after an injected change, and not before."""
    worked = Worked()
    rows = drifting(CHANGE + 4_000)
    worked.learn(*rows[:CHANGE], batch=500)
    with (
        serving(HttpSection(port=0), None, worked.feed) as url,
        opened(browser, url) as (page, noted),
    ):
        expect(page.locator("#version")).to_contain_text("abers", timeout=PATIENCE)
        worked.tick()
        page.wait_for_selector("#cards [data-name=evidence] .main-svg")
        assert page.locator("#alarm").is_hidden()
        worked.learn(*rows[CHANGE:], batch=500)
        worked.tick()
        page.wait_for_selector("#alarm:not([hidden])")
        assert page.locator("#alarm").get_attribute("role") == "alert"
        assert "are miscalibrated" in page.locator("#alarm").inner_text()
        assert page.title().startswith("Alarm · ")
        assert noted == []


def test_a_server_that_goes_and_comes_back(browser: Browser, worked: Worked) -> None:
    """The page says that the connection is lost and what to do, and reconnects by itself."""
    worked.learn(*PAIRS)
    server = ExitStack()
    url = server.enter_context(serving(HttpSection(port=0), None, worked.feed))
    with opened(browser, url) as (page, _), ExitStack() as stack:
        expect(page.locator("#version")).to_contain_text("abers", timeout=PATIENCE)
        server.close()
        expect(page.locator("#phase")).to_have_attribute("data-phase", "lost", timeout=PATIENCE)
        assert "reconnecting" in page.locator("#phase").inner_text()
        again = Worked(title="again")
        again.learn(*PAIRS)
        again.feed.end()
        port = int(url.rsplit(":", 1)[1])
        stack.enter_context(serving(HttpSection(port=port), None, again.feed))
        expect(page.locator("#phase")).to_have_attribute("data-phase", "ended", timeout=PATIENCE)
        assert page.locator("h1").inner_text() == "again"


def test_one_of_several_models(browser: Browser, worked: Worked, url: str) -> None:
    """A reader chooses a model by its name, and the address remembers it."""
    worked.learn(*PAIRS, model="fraud")
    worked.learn(*PAIRS[:3], model="<b>spam</b>")
    worked.feed.end()
    with opened(browser, url) as (page, noted):
        page.get_by_label("Model").select_option(label="<b>spam</b>")
        scores = page.locator("[data-name=scores] p")
        expect(scores).to_contain_text("over 3 labels", timeout=PATIENCE)
        page.reload()
        expect(scores).to_contain_text("over 3 labels", timeout=PATIENCE)
        assert noted == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_telephone(browser: Browser, worked: Worked, url: str, scheme: str) -> None:
    """On 360 pixels nothing is wider than the screen in either theme, and text is readable."""
    worked.learn(*PAIRS)
    worked.feed.end()
    size: Any = {"width": 360, "height": 740}
    with opened(browser, url, viewport=size, color_scheme=scheme) as (page, noted):
        page.wait_for_selector("#cards [data-name=reliability] .main-svg")
        require_width(page, 360)
        pairs = page.evaluate(
            "['h1', 'h2', '.soft', '.tiles .value', '.tiles .note', '#phase'].map((one) => "
            "getComputedStyle(document.querySelector(one)).color)"
        )
        paper = page.evaluate("getComputedStyle(document.querySelector('.card')).backgroundColor")
        assert min(contrast(one, paper) for one in pairs) >= 4.5
        assert noted == []


def test_by_keyboard_and_by_ear(browser: Browser, worked: Worked, url: str) -> None:
    """Tab goes from the skip link to the list of models and the tables; figures have names."""
    worked.learn(*PAIRS, model="fraud")
    worked.learn(*PAIRS, model="spam")
    worked.feed.end()
    with opened(browser, url) as (page, _):
        page.wait_for_selector("#cards [data-name=reliability] .main-svg")
        order = []
        for _ in range(6):  # skip link, models, three tables, the numbers of a figure
            page.keyboard.press("Tab")
            order.append(
                page.evaluate(
                    "document.activeElement.id || document.activeElement.className "
                    "|| document.activeElement.tagName"
                )
            )
        assert order[:2] == ["skip", "model"]
        assert "SUMMARY" in order
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
        page.locator("summary").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("details[open] table")
        assert page.locator("main").count() == page.locator("h1").count() == 1
        for name in page.locator(".figure").evaluate_all("all => all.map((one) => one.ariaLabel)"):
            assert name.endswith("the numbers are in the table below.")


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
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ}) as ran:
        assert ran.stderr is not None
        url = next(line.split()[-1] for line in ran.stderr if "live page is at" in line)
        with opened(browser, url) as (page, noted):
            expect(page.locator("#phase")).to_have_attribute(
                "data-phase", "ended", timeout=PATIENCE
            )
            assert tile(page, "Events").startswith("20,000")
            assert noted == []
        ran.send_signal(signal.SIGINT)
        assert ran.wait() == 0

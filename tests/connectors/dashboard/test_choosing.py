"""The models of a report, chosen in a real browser, from a file and without a network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.connectors.browsing import PATIENCE, contrast, opened, require_width
from tests.connectors.dashboard.several import mixed, reported

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

SEEN = "[data-part]:not([hidden])"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a report of three models."""
    monkeypatch.chdir(tmp_path)
    reported("binary", tmp_path, mixed("binary"), "r.html")
    return (tmp_path / "r.html").as_uri()


def shown(page: Page) -> list[str]:
    """Return the visible headings."""
    return page.locator("h2:visible").all_inner_texts()


def test_a_model_is_chosen(browser: Browser, url: str) -> None:
    """The figures of a chosen model fit, the address has its name, and no request is made."""
    with opened(browser, url, offline=True) as (page, noted):
        figures = page.locator(f"{SEEN} .figure")
        drawn = page.locator(f"{SEEN} .figure .cartesianlayer")
        assert shown(page)[0] == "Verdict"
        assert figures.count() == drawn.count() >= 4
        page.get_by_label("Model", exact=True).select_option(label="<b>spam · fr")
        expect(page.locator(SEEN)).to_have_count(1)
        heading = "Verdict on <b>spam · fr"
        tests = "Sequential tests"
        assert shown(page)[:2] == [heading, tests]
        assert figures.count() == drawn.count() >= 4
        width = figures.first.bounding_box()
        svg = page.locator(f"{SEEN} .main-svg").first.bounding_box()
        assert width is not None
        assert svg is not None
        assert svg["width"] == pytest.approx(width["width"], abs=1)
        page.reload()
        assert shown(page)[0] == "Verdict on <b>spam · fr"
        assert page.get_by_label("Model", exact=True).input_value() == page.url.split("#")[1]
        page.goto(url + "#nobody")
        assert shown(page)[0] == "Verdict"
        assert noted == []


def fits(page: Page) -> None:
    """Wait until the first visible figure is as wide as its container."""
    figure = page.locator(f"{SEEN} .figure").first.bounding_box()
    assert figure is not None
    drawn = page.locator(f"{SEEN} .main-svg").first
    expect(drawn).to_have_attribute(
        "width", re.compile(f"{int(figure['width'])}"), timeout=PATIENCE
    )


def test_a_window_that_changed_meanwhile(browser: Browser, url: str) -> None:
    """A figure that was hidden while the window became narrow fits when it is shown again."""
    with opened(browser, url) as (page, noted):
        choice = page.get_by_label("Model", exact=True)
        choice.select_option(label="fraud · fr")
        page.set_viewport_size({"width": 360, "height": 740})
        fits(page)  # so the window has resized all figures
        choice.select_option(label="all together")
        fits(page)  # the first figure; the others follow
        require_width(page, 360)
        assert noted == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_telephone(browser: Browser, url: str, scheme: str) -> None:
    """On 360 pixels nothing is wider than the screen, and the list of models is readable."""
    size: Any = {"width": 360, "height": 740}
    with opened(browser, url, viewport=size, color_scheme=scheme) as (page, noted):
        for name in ("fraud · fr", "all together"):
            page.get_by_label("Model", exact=True).select_option(label=name)
            require_width(page, 360)
        ink, paper = page.evaluate(
            "(({ color, backgroundColor }) => [color, backgroundColor])"
            "(getComputedStyle(document.querySelector('select')))"
        )
        assert contrast(ink, paper) >= 4.5
        assert noted == []


def test_by_keyboard_and_by_ear(browser: Browser, url: str) -> None:
    """The list of models is first, arrows change it, and the model is a region of its name."""
    with opened(browser, url) as (page, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "model"
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("region", name="fraud · fr", exact=True)).to_be_visible()
        page.keyboard.press("Tab")
        assert page.evaluate(f"document.activeElement.closest('{SEEN}') !== null")


def test_without_scripts(browser: Browser, url: str) -> None:
    """Without scripts all models are shown with their tables, and the list is hidden."""
    with opened(browser, url, java_script_enabled=False) as (page, _):
        assert page.locator("select").is_hidden()
        headings = [one for one in shown(page) if one.startswith("Scores")]
        assert len(headings) == 4

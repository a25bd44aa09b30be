"""Pages of `abers.pages.html` in a real browser: their widths, their keys, and axe-core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tests.browsing import OPTIONS, opened, require_width
from tests.engine.pages.examples import EXAMPLES

from abers.pages.blocks import Document, SectionBlock
from abers.pages.html import notebook, page

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

OUTLINE = """one =>
  getComputedStyle(one.type === "radio" ? one.nextSibling : one).outlineStyle"""

pytestmark = pytest.mark.browser


def written(folder: Path, source: str) -> str:
    """Write a page, and return where it is."""
    path = folder / "page.html"
    path.write_text(source, "utf-8")
    return path.as_uri()


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390), ("light", 320)])
def test_a_page_in_a_browser(
    browser: Browser, tmp_path: Path, name: str, scheme: str, width: int
) -> None:
    """Nothing is wider than the window, axe-core finds nothing, and the policy stops nothing."""
    options: dict[str, Any] = {
        "viewport": {"width": width, "height": 800},
        "color_scheme": scheme,
    }
    with opened(browser, written(tmp_path, page(EXAMPLES[name]())), **options) as (shown, noted):
        for fold in shown.locator("summary").all():
            fold.click()
        assert shown.evaluate("document.documentElement.scrollWidth") == width
        found = Axe().run(shown)
        assert found.violations_count == 0, found.generate_report()
        assert noted == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_page_scrolls_sideways(browser: Browser, tmp_path: Path, name: str) -> None:
    """From 320 pixels up nothing is wider than the window, on both sides of each step of style."""
    with opened(browser, written(tmp_path, page(EXAMPLES[name]()))) as (shown, _):
        for fold in shown.locator("summary").all():
            fold.click()
        wider = []
        for width in (320, 365, 366, 390, 480, 640, 641, 700, 768, 860, 861, 1024):
            shown.set_viewport_size({"width": width, "height": 800})
            if shown.evaluate("document.documentElement.scrollWidth") > width:
                wider.append(width)
        assert wider == []


def test_a_reader_with_large_text(browser: Browser, tmp_path: Path) -> None:
    """With text of twice the size all sentences grow, and nothing is wider than the window."""
    options = [*OPTIONS, "--blink-settings=defaultFontSize=32"]
    large = browser.browser_type.launch(executable_path="/usr/bin/chromium", args=options)
    with opened(large, written(tmp_path, page(EXAMPLES["two_classes"]()))) as (shown, _):
        sizes = "all => all.map(one => parseFloat(getComputedStyle(one).fontSize))"
        assert min(shown.locator("main p").evaluate_all(sizes)) >= 22.0
        for width in (640, 800, 1280):
            shown.set_viewport_size({"width": width, "height": 800})
            require_width(shown, width)
    large.close()


def test_a_long_name_breaks(browser: Browser, tmp_path: Path) -> None:
    """A name without spaces, as the title of a part, is broken where the window ends."""
    part = SectionBlock(key="part", title="x" * 90, blocks=())
    source = page(Document(title="names", blocks=(part,)))
    with opened(browser, written(tmp_path, source)) as (shown, _):
        shown.set_viewport_size({"width": 320, "height": 800})
        assert shown.evaluate("document.documentElement.scrollWidth") == 320


def test_a_choice_needs_no_script(browser: Browser, tmp_path: Path) -> None:
    """The first group is shown; the arrow keys and a click choose another."""
    context: dict[str, Any] = {"java_script_enabled": False}
    url = written(tmp_path, page(EXAMPLES["two_classes"]()))
    with opened(browser, url, **context) as (shown, _):
        now, whole = shown.locator("#groups-now"), shown.locator("#groups-all")
        expect(now).to_be_visible()
        expect(whole).to_be_hidden()
        shown.get_by_label("whole stream: 49,782").check()
        expect(whole).to_be_visible()
        expect(now).to_be_hidden()
        shown.keyboard.press("ArrowLeft")
        expect(now).to_be_visible()


def test_focus_is_seen(browser: Browser, tmp_path: Path) -> None:
    """What a keyboard reaches has a ring: the link to the answers, choices, and folds."""
    with opened(browser, written(tmp_path, page(EXAMPLES["two_classes"]()))) as (shown, _):
        outlines: list[str] = []
        for _ in range(5):
            shown.keyboard.press("Tab")
            focused = shown.locator(":focus")
            outlines.append(str(focused.evaluate(OUTLINE)))
        assert outlines == ["solid"] * 5


def test_paper_has_what_is_folded(browser: Browser, tmp_path: Path) -> None:
    """A print shows the content of closed folds, and no buttons."""
    with opened(browser, written(tmp_path, page(EXAMPLES["two_classes"]()))) as (shown, _):
        methods = shown.locator("#methods-table table")
        expect(methods).to_be_hidden()
        shown.emulate_media(media="print")
        expect(methods).to_be_visible()
        expect(shown.locator("fieldset")).to_be_hidden()


def test_a_notebook_keeps_its_style(browser: Browser, tmp_path: Path) -> None:
    """Output of a cell changes nothing around it, and cells with one document choose apart."""
    around = "<table id=own><tr><td>1</td></tr></table><p class=card id=p>a</p><h1 id=h>b</h1>"
    cell = notebook(EXAMPLES["two_classes"]())
    styles = """ids => ids.map(id => {
      const style = getComputedStyle(document.getElementById(id));
      return [...style].map(name => style.getPropertyValue(name)).join();
    })"""
    found = []
    for source in (around, around + cell + cell):
        with opened(browser, written(tmp_path, f"<!doctype html>{source}")) as (shown, _):
            found.append(shown.evaluate(styles, ["own", "p", "h"]))
    assert found[0] == found[1]
    with opened(browser, written(tmp_path, f"<!doctype html>{cell}{cell}")) as (shown, _):
        shown.get_by_label("whole stream: 49,782").first.check()
        tables = shown.locator("[id=groups-now]")
        expect(tables.nth(0)).to_be_hidden()
        expect(tables.nth(1)).to_be_visible()

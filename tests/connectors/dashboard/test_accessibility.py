"""Live pages as axe-core, a screen reader's user and a narrow screen find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tests.browsing import PATIENCE, opened, require_width
from tests.connectors.dashboard.pages import Worked
from tests.connectors.dashboard.test_live_browser import CLASSES, REGRESSION, of_classes, of_numbers

from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.server import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

WIDE, NARROW = ("light", 1200), ("dark", 390)
CLIPPED = """all => all.flatMap((figure) => {
  const frame = figure.getBoundingClientRect();
  return [...figure.querySelectorAll("text")].map((one) => [one, one.getBoundingClientRect()])
    .filter(([, box]) => box.width && (box.left < frame.left - 1 || box.right > frame.right + 1
      || box.top < frame.top - 1 || box.bottom > frame.bottom + 1))
    .map(([one]) => one.textContent);
})"""


def require_accessible(page: Page) -> None:
    """Assert that axe-core finds nothing, no text of a figure is clipped, and nothing is wider."""
    figures = page.locator(".figure:visible")
    expect(page.locator(".figure:visible .cartesianlayer")).to_have_count(figures.count())
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.locator(".figure").evaluate_all(CLIPPED) == []
    require_width(page, page.evaluate("innerWidth"))
    tests = page.locator("[data-name=tests]:visible .scroll").first
    assert tests.evaluate("one => one.scrollWidth <= one.clientWidth")


@pytest.mark.parametrize(("scheme", "width"), [WIDE, pytest.param(*NARROW, marks=pytest.mark.long)])
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_a_live_page(browser: Browser, task: str, scheme: str, width: int) -> None:
    """The live page of each task."""
    worked = Worked({"multiclass": CLASSES, "regression": REGRESSION}.get(task))
    pairs = {
        "binary": [(n % 10 / 10, n % 3 % 2) for n in range(180)],
        "multiclass": of_classes(),
        "regression": of_numbers(),
    }[task]
    worked.learn(*pairs * 3, batch=20)
    size: Any = {"width": width, "height": 740}
    with (
        serving(HttpSection(port=0), None, worked.feed) as url,
        opened(browser, url, viewport=size, color_scheme=scheme) as (page, _),
    ):
        expect(page.locator("#phase")).to_contain_text("connected", timeout=PATIENCE)
        worked.tick()
        expect(page.locator("#over-time")).to_be_visible(timeout=PATIENCE)
        for one in page.locator("#blocks > details > summary").all():
            one.click()
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        require_width(page, width)

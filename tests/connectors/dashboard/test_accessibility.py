"""Reports and live pages as axe-core, a screen reader's user and a narrow screen find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tests.connectors.browsing import PATIENCE, opened, require_width
from tests.connectors.dashboard.pages import Worked
from tests.connectors.dashboard.test_live_browser import CLASSES, REGRESSION, of_classes, of_numbers

from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.server import serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page
    from tests.connectors.dashboard.replays import Replayed

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


@pytest.mark.parametrize(("scheme", "width"), [NARROW, pytest.param(*WIDE, marks=pytest.mark.long)])
def test_a_report(
    browser: Browser, replayed: Replayed, tmp_path: Path, scheme: str, width: int
) -> None:
    """The report of each task."""
    path, size = tmp_path / "report.html", {"width": width, "height": 740}
    path.write_text(replayed.page)
    options: dict[str, Any] = {"viewport": size, "color_scheme": scheme}
    with opened(browser, path.as_uri(), **options) as (page, _):
        page.wait_for_selector(".main-svg")
        require_accessible(page)


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
    worked.learn(*pairs, batch=20)
    size: Any = {"width": width, "height": 740}
    with (
        serving(HttpSection(port=0), None, worked.feed) as url,
        opened(browser, url, viewport=size, color_scheme=scheme) as (page, _),
    ):
        expect(page.locator("#version")).to_contain_text("abers", timeout=PATIENCE)
        worked.tick()
        page.wait_for_selector("#cards .main-svg")
        require_accessible(page)

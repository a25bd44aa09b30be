"""The page of a report in a real browser: what it asks, how wide it is, and what axe-core finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.browsing import opened, require_width
from tests.connectors.dashboard.several import mixed, reported

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser
    from tests.connectors.dashboard.replays import Replayed

pytestmark = pytest.mark.browser

SIZES = [("light", 320), ("dark", 1280)]


def require_good(browser: Browser, path: Path, scheme: str, width: int) -> None:
    """Open every fold of a page: axe-core finds nothing, nothing is wider, nothing is said."""
    options: dict[str, Any] = {"viewport": {"width": width, "height": 740}}
    with opened(browser, path.as_uri(), color_scheme=scheme, offline=True, **options) as (
        page,
        said,
    ):
        for fold in page.locator("summary:visible").all():
            fold.click()
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        require_width(page, width)
        assert said == []


@pytest.mark.parametrize(("scheme", "width"), SIZES)
def test_a_report(
    browser: Browser, replayed: Replayed, tmp_path: Path, scheme: str, width: int
) -> None:
    """The report of each task."""
    (tmp_path / "report.html").write_text(replayed.page)
    require_good(browser, tmp_path / "report.html", scheme, width)


@pytest.mark.parametrize(("scheme", "width"), SIZES)
def test_a_report_of_models(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, width: int
) -> None:
    """The report of several models, with their table and their folds."""
    monkeypatch.chdir(tmp_path)
    reported("binary", tmp_path, mixed("binary", 1_600), "r.html")
    require_good(browser, tmp_path / "r.html", scheme, width)


def test_a_script_is_refused(
    browser: Browser, replays: dict[str, Replayed], tmp_path: Path
) -> None:
    """An injected script is not run, and the console reports it."""
    evil = "<script>document.title = 'changed'</script></main>"
    (tmp_path / "report.html").write_text(replays["binary"].page.replace("</main>", evil))
    with opened(browser, (tmp_path / "report.html").as_uri()) as (page, said):
        assert page.title() == "abers.toml · abers"
        assert any("Content Security Policy" in one for one in said)

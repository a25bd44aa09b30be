"""The page in a real browser: its elements and its console."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser
    from tests.connectors.dashboard.replays import Replayed

pytestmark = pytest.mark.browser

# Without a sandbox, as the tests may run as root, and without looking for anything in a network.
BROWSER = (
    "chromium",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--window-size=400,900",
    "--virtual-time-budget=20000",
)


def opened(page: str, folder: Path) -> tuple[str, list[str]]:
    """Open a page: return its elements after the scripts ran, and the console messages."""
    (folder / "page.html").write_text(page)
    profile = f"--user-data-dir={folder / 'profile'}"
    words = [*BROWSER, profile, "--dump-dom", (folder / "page.html").as_uri()]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, timeout=240)
    return ran.stdout, [line for line in ran.stderr.splitlines() if "CONSOLE" in line]


def test_every_figure_is_drawn(replayed: Replayed, tmp_path: Path) -> None:
    """All figures are drawn with their lines, and the console is empty."""
    elements, console = opened(replayed.page, tmp_path)
    assert console == []
    places = replayed.page.count('<div class="figure"')
    assert places == elements.count("The same in numbers") >= 3
    assert elements.count('class="cartesianlayer"') == places
    assert elements.count('class="xtitle"') == places
    assert len(re.findall('class="js-line"', elements)) >= places


LINES = """all => all.filter((one) => !one.textContent.includes(" ")).map((one) => {
  const range = document.createRange();
  range.selectNodeContents(one);
  return [one.textContent, range.getClientRects().length];
})"""


def test_no_word_is_broken_on_a_telephone(
    browser: Browser, replayed: Replayed, tmp_path: Path
) -> None:
    """At 390 pixels each name of a setting that is one word stands in one line."""
    (tmp_path / "page.html").write_text(replayed.page)
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto((tmp_path / "page.html").as_uri())
    names = page.eval_on_selector_all("[data-name=facts] tbody th", LINES)
    assert "calibrator" in dict(names)
    assert [name for name, lines in names if lines > 1] == []
    page.close()


def test_another_script_is_refused(replays: dict[str, Replayed], tmp_path: Path) -> None:
    """An injected script is not run, and the console reports it."""
    evil = "<script>document.title = 'changed'</script></main>"
    page = replays["binary"].page.replace("</main>", evil)
    elements, console = opened(page, tmp_path)
    assert "<title>abers.toml · abers report</title>" in elements
    assert any("Content Security Policy" in line for line in console)

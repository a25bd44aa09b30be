"""A page in a real browser: its console, whom it asks, and how its colours stand out."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

PATIENCE = 120_000  # milliseconds
# Without a sandbox, as the tests may run as root.
OPTIONS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Debian's chromium."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=OPTIONS)
        yield started
        started.close()


@contextmanager
def opened(browser: Browser, url: str, **context: Any) -> Iterator[tuple[Page, list[str]]]:  # noqa: ANN401
    """Open a page, and note what stands in its console, and whom else it asks."""
    with browser.new_context(**context) as one:
        page = one.new_page()
        page.set_default_timeout(PATIENCE)
        noted: list[str] = []
        page.on("console", lambda said: noted.append(said.text))
        page.on("pageerror", lambda error: noted.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((url, "data:")) else noted.append(request.url)
            ),
        )
        page.goto(url)
        yield page, noted


def require_width(page: Page, width: int) -> None:
    """Wait until nothing on a page is wider than its window, which may be drawn a moment later."""
    root = page.locator("html")  # `wait_for_function` would meet the page's security policy
    expect(root).to_have_js_property("scrollWidth", width, timeout=PATIENCE)


def contrast(one: str, other: str) -> float:
    """Compute the contrast of two colours as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)

"""The texts of figures as a browser draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.engine.pages import gallery, samples

from abers.pages.figures import draw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.once]

BOXES = """all => all.map((figure) => [figure, ...figure.querySelectorAll("text")].map((one) => {
  const box = one.getBoundingClientRect();
  return [one.textContent, box.left, box.top, box.right, box.bottom];
}))"""


class Text(NamedTuple):
    """A text and the box that it takes on the screen."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Text) -> bool:
        """Return whether two boxes overlap; lines of text have a pixel of air."""
        beside = self.left < other.right and other.left < self.right
        return beside and self.top + 1 < other.bottom and other.top + 1 < self.bottom


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """Open an empty page in Debian's chromium."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - few tests need it

    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        started = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=options)
        yield started.new_page()
        started.close()


def figures(page: Page, content: str) -> Iterator[tuple[Text, list[Text]]]:
    """Yield the frame of each figure that is shown, and its texts."""
    page.set_content(content)
    shown = page.locator("svg[role=img]:visible")
    for frame, *texts in shown.evaluate_all(BOXES):
        yield Text(*frame), [Text(*one) for one in texts]


@pytest.mark.parametrize("width", [1_280, 390])
def test_texts_do_not_overlap(page: Page, width: int) -> None:
    """On a screen and on a telephone no text touches another or leaves its figure."""
    page.set_viewport_size({"width": width, "height": 900})
    number = 0
    for frame, texts in figures(page, gallery.page()):
        for index, text in enumerate(texts):
            assert frame.left <= text.left, text
            assert text.right <= frame.right + 0.5, text
            assert not [other for other in texts[index + 1 :] if text.meets(other)], text
        number += len(texts)
    assert number > 200


def test_texts_on_a_telephone_can_be_read(page: Page) -> None:
    """A figure of 330 pixels on a page of 390 has texts of at least 12 pixels."""
    page.set_viewport_size({"width": 390, "height": 900})
    page.set_content(gallery.page())
    scales = page.locator(".narrow svg[role=img]").evaluate_all(
        "all => all.map((one) => one.getScreenCTM().a)"
    )
    assert min(scales) * 12.5 >= 12


def test_texts_have_their_colours(page: Page) -> None:
    """A page's own rule for the texts of drawings leaves an alarm red."""
    content = draw("over_time", samples.over_time(), label="over time")
    page.set_content(f"<style>svg text {{ fill: #123 }} :root {{ --no: #a81d16 }}</style>{content}")
    colour = page.locator("tspan", has_text="alarm").evaluate("one => getComputedStyle(one).fill")
    assert colour == "rgb(168, 29, 22)"


def test_alarms_close_together_do_not_cover_each_other(page: Page) -> None:
    """Of many alarms those have a text that have room for it."""
    data = samples.over_time(zone="UTC")
    data["alarms"] = [data["x"][0] + one * 3 * samples.DAY for one in range(60)]
    ((_, texts),) = figures(page, draw("over_time", data, label="over time", width=330))
    alarms = [one for one in texts if one.text.startswith("alarm")]
    assert alarms
    assert not [one for one in alarms for other in texts if one is not other and one.meets(other)]

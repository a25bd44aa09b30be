"""Takes the pictures of the live page, in both themes: `python scripts/pictures/live_page.py`.

The page is that of the first command of the README with --live; Debian's chromium shows it.
"""  # noqa: INP001 - a script

from __future__ import annotations

import signal
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from PIL import Image
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHECKOUT = Path(__file__).parents[2]
IMAGES = CHECKOUT / "docs" / "images"
COMMAND = [sys.executable, "-m", "abers_connectors", "replay", "examples/scores.csv", "--live"]
ADDRESS = "The live page is at "
SIZE = 1200, 1000  # the answers, and the first figure begun
COLOURS = 256


def take(browser: Browser, url: str, theme: Literal["light", "dark"]) -> None:
    """Take the picture of the first screen."""
    width, height = SIZE
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
    page.goto(url)
    page.wait_for_selector("#phase[data-phase=ended]")
    page.wait_for_selector("svg")
    shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
    # A palette takes a third of the bytes, and the eye sees no difference.
    shot.quantize(COLOURS, dither=Image.Dither.NONE).save(
        IMAGES / f"live-{theme}.png", optimize=True
    )
    page.close()


def main() -> None:
    """Replay, and take both pictures when the stream has ended."""
    with (
        subprocess.Popen(COMMAND, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True) as replay,  # noqa: S603
        sync_playwright() as playwright,
    ):
        url = next(line for line in replay.stderr or () if line.startswith(ADDRESS))
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        take(browser, url.removeprefix(ADDRESS).strip(), "light")
        take(browser, url.removeprefix(ADDRESS).strip(), "dark")
        browser.close()
        replay.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()

"""Draw the figures of docs/gallery as SVG: `PYTHONPATH=. python scripts/pictures/gallery.py`.

The background is transparent, and the colours of `abers.plotting` can be read on light and dark.
Debian's chromium draws them.
"""  # noqa: INP001 - a script

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import unquote

import plotly.graph_objects as go
from playwright.sync_api import sync_playwright
from tests.gallery.notebooks import NOTEBOOKS, PLOTLY, executed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "gallery"
DRAW = """() => Plotly.toImage(document.querySelector(".plotly-graph-div"),
                               {format: "svg", width: 760, height: 460})"""


def figures(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name of each figure, and its page as plotly writes it."""
    page = folder / "demand_intervals.html"
    with patch("sys.argv", ["demand_intervals.py", str(page)]):
        runpy.run_path(str(ROOT / "examples" / "demand_intervals.py"), run_name="__main__")
    yield page.stem, page
    for notebook in NOTEBOOKS:
        drawn = [data[PLOTLY] for data in _outputs(executed(notebook)) if PLOTLY in data]
        page = folder / f"{notebook.stem}.html"
        go.Figure(data=drawn[0]["data"], layout=drawn[0]["layout"]).write_html(page)
        yield page.stem, page


def _outputs(notebook: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - nbformat's nodes
    for cell in notebook.cells:
        yield from (one.get("data", {}) for one in cell.get("outputs", []))


def svg(browser_page: Page, path: Path) -> str:
    """Return a figure as SVG."""
    browser_page.goto(path.as_uri())
    url: str = browser_page.evaluate(DRAW)
    return unquote(url.partition(",")[2])


def main() -> None:
    """Draw them all."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        for name, path in figures(Path(folder)):
            (PAGES / f"{name}.svg").write_text(svg(page, path) + "\n", "utf-8")
        browser.close()


if __name__ == "__main__":
    main()

"""The style of figures, `abers.plotting._style`, by the definition of contrast, and plotly."""

from __future__ import annotations

import sys

import pytest

from abers import MissingExtraError
from abers.plotting import _style, series

PAPERS = ("#ffffff", "#14181d")


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize(
    ("colour", "least"),
    [
        (_style.MAIN, 3),
        (_style.OTHER, 3),
        (_style.LABEL, 3),
        (_style.REFERENCE, 3),
        (_style.INK, 4),
        *((colour, 3) for colour in _style.PALETTE),
    ],
)
def test_colours_can_be_seen_on_either_paper(colour: str, paper: str, least: float) -> None:
    """Lines have a contrast of 3 with a light and a dark page, text has one of 4."""
    light, dark = sorted((luminance(colour), luminance(paper)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= least


def test_a_figure_has_no_paper_of_its_own() -> None:
    """The background is transparent, and no font is downloaded."""
    layout = series([1], {"raw": [1.0]}, title="", y_name="").layout
    assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0, 0, 0, 0)"
    assert layout.font.family == "system-ui, sans-serif"


def test_without_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without plotly the error says what to install."""
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'abers\[plots\]'"):
        series([1], {}, title="", y_name="")

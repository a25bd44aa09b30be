"""Template, style and scripts of a page, which report and live page share."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from abers_connectors.dashboard.document import Card, Table
from abers_connectors.extras import extra

if TYPE_CHECKING:
    from abers.plotting import Drawing

__all__ = ["PageAssets"]


class PageAssets:
    """Texts of the style sheet and of our script, and the file of plotly's script.

    If plotly or Jinja2 is not installed, the MissingExtraError names the page that needs it and
    the extra of abers that installs it.
    """

    def __init__(self, needed_for: str, group: str) -> None:
        jinja2 = extra("jinja2", needed_for, group)
        extra("plotly", needed_for, group)
        here = files("abers_connectors.dashboard")
        environment = jinja2.Environment(
            autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        environment.filters["figure_json"] = _encoded
        self._template = environment.from_string((here / "page.html").read_text("utf-8"))
        self.style = (here / "page.css").read_text("utf-8")
        self.script = (here / "page.js").read_text("utf-8")
        self.plotly = files("plotly") / "package_data" / "plotly.min.js"

    def render(self, **context: Any) -> bytes:  # noqa: ANN401 - of the template
        """Fill in the template; every text is escaped."""
        blank = Card("", "", "", Table((), ()))
        html: str = self._template.render(blank=blank, style=self.style, **context)
        return html.encode()


def _encoded(figure: Drawing) -> str:
    """Encode a figure without any "<", which might end the element that it stands in."""
    return msgspec.json.encode(figure).decode().replace("<", "\\u003c")

"""How shapes are painted: by the variables of the page alone, which has a light and a dark set."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from abers.pages.figures.data import Which

__all__ = [
    "ALARM",
    "ALARM_MARK",
    "BAND",
    "CAME",
    "CAME_LINE",
    "CAME_OPEN",
    "DIAGONAL",
    "EDGE",
    "GRID",
    "INK",
    "METHODS",
    "MIDDLE",
    "NOW",
    "ON_COLOUR",
    "OUTLINE",
    "REFERENCE",
    "TICK",
    "TOLERANCE",
    "colour",
    "filled",
    "stroked",
]


def filled(colour: str, opacity: float = 1.0) -> str:
    """Return the paint of a shape in the colour of a variable."""
    return f'fill="var(--{colour})"' + (f' opacity="{opacity}"' if opacity < 1 else "")


def stroked(colour: str, width: float, dashes: str = "") -> str:
    """Return the paint of a line in the colour of a variable."""
    line = f'fill="none" stroke="var(--{colour})" stroke-width="{width}" stroke-linejoin="round"'
    return f'{line} stroke-dasharray="{dashes}"' if dashes else f'{line} stroke-linecap="round"'


def colour(which: Which) -> str:
    """Return the variable of a kind of probability."""
    return {"raw": "raw", "calibrated": "cal"}[which]


GRID = stroked("hair", 1)
TICK = stroked("soft", 1)
DIAGONAL = stroked("soft", 1, "2 3")
MIDDLE = stroked("soft", 0.8)
NOW = filled("now")
REFERENCE = filled("soft", 0.14)
TOLERANCE = filled("tol")
BAND = filled("band")
CAME = filled("came")
CAME_LINE = stroked("came", 1.3)
CAME_OPEN = 'fill="var(--card)" stroke="var(--came)" stroke-width="1.5"'
ALARM = stroked("no", 1.5, "4 3")
ALARM_MARK = filled("no")
EDGE = 'stroke="var(--card)" stroke-width="0.8"'
INK = filled("ink")
ON_COLOUR = filled("card")
OUTLINE = 'stroke="var(--card)" stroke-width="1.5"'

METHODS = 8
"""Methods that have a colour of their own, the variables --m1 to --m8."""

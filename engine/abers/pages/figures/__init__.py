"""Figures as SVG, made once, without a script.

The colours are variables of the page, so that a figure follows its light and its dark set.
"""

from abers.pages.figures.drawing import draw, sign

__all__ = ["draw", "sign"]

"""Draws the life of an event, for stream.md.

What an observation goes through is blue, what a label does is violet, and what
cannot be used is amber.
"""  # noqa: INP001 - next to a script

from __future__ import annotations

from svg import P, Picture

__all__ = ["draw_life"]

_SEEN, _LABEL, _DEAD = "hull", "one", "zero"
_TOP, _BOTTOM = 40, 250  # of the three boxes


def draw_life() -> None:
    """Draw validation, join and calibration, and what goes from one to the next."""
    picture = Picture(720, 330, "An event goes through validation, join and calibration")
    _stage(picture, 104, 120, "validation", ["value", "id, model", "time", "limits"])
    stores = ["pending observations", "early labels", "finished ids"]
    _stage(picture, 288, 184, "join", stores, boxed=True)
    kept = ["calibrators", "pending predictions", "monitors"]
    _stage(picture, 532, 170, "calibration", kept, boxed=True)
    for y, words, colour in ((112, "observation", _SEEN), (182, "label", _LABEL)):
        picture.text(P(14, y - 8), words, colour, 13, "start")
        for start, end in ((14, 100), (226, 284), (474, 528)):
            picture.arrow(P(start, y), P(end, y), colour, 2)
    for start, words in ((256, "checked"), (502, "steps")):
        picture.text(P(start, 152), words, "soft", 12)
    for x, words, colour in (
        (164, "dead letter", _DEAD),
        (380, "dead letter: timed out", _DEAD),
        (574, "prediction", _SEEN),
        (662, "outcome", _LABEL),
    ):
        picture.arrow(P(x, _BOTTOM), P(x, 284), colour, 2)
        picture.text(P(x, 304), words, colour)
    picture.save("life.svg")


def _stage(  # noqa: PLR0913 - where and what
    picture: Picture, x: float, width: float, name: str, lines: list[str], *, boxed: bool = False
) -> None:
    """Draw a stage, and what it checks or holds."""
    picture.box(P(x, _TOP), P(width, _BOTTOM - _TOP), "band", "soft", radius=8)
    picture.text(P(x + width / 2, _TOP + 25), name, size=15, bold=True)
    step = (_BOTTOM - _TOP - 40) / len(lines)
    for i, line in enumerate(lines):
        y = _TOP + 40 + (i + 0.5) * step
        if boxed:
            picture.box(P(x + 12, y - 17), P(width - 24, 34), "paper", "soft", radius=6)
        picture.text(P(x + width / 2, y + 5), line)

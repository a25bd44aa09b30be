"""Icons that stand before the word of an answer."""

from __future__ import annotations

__all__ = ["sign"]

_FULL = '<circle cx="10" cy="10" r="9" fill="currentColor"/>'
_RING = '<circle cx="10" cy="10" r="8" fill="none" stroke="currentColor" stroke-width="2"'
_ON_CARD = 'fill="none" stroke="var(--card)"'

_SHAPES = {
    "yes": f'{_FULL}<path d="M5.6 10.4l3 3 5.8-6.4" {_ON_CARD} stroke-width="2.2"/>',
    "no": (
        '<path d="M6.3 1h7.4L19 6.3v7.4L13.7 19H6.3L1 13.7V6.3z" fill="currentColor"/>'
        f'<path d="M6.6 6.6l6.8 6.8M13.4 6.6l-6.8 6.8" {_ON_CARD} stroke-width="2.2"/>'
    ),
    "partly": (
        '<path d="M10 1.5L19.3 18.5H.7z" fill="currentColor"/>'
        f'<path d="M10 7v5.5M10 14.3v2" {_ON_CARD} stroke-width="2.2"/>'
    ),
    "undecided": (
        f'{_RING} stroke-dasharray="3.2 2.2"/>'
        '<path d="M5.5 10h9" stroke="currentColor" stroke-width="2.2"/>'
    ),
    "waiting": (
        f'{_RING}/><path d="M10 5v5.3l3.6 2" fill="none" stroke="currentColor" stroke-width="2"/>'
    ),
    "recovering": (
        f'{_FULL}<path d="M5 12.5l3.5-4 2.5 2.5 4-5M15 6v3.5M15 6h-3.5" '
        f'{_ON_CARD} stroke-width="1.8"/>'
    ),
}


def sign(state: str) -> str:
    """Return the icon of an answer, which readers of the screen pass over.

    Parameters
    ----------
    state
        ``"yes"``, ``"no"``, ``"partly"``, ``"undecided"``, ``"waiting"`` or ``"recovering"``.

    Returns
    -------
    str
        An ``<svg>`` element in the colour of the text around it.
    """
    if state not in _SHAPES:
        msg = f"unknown state {state!r}; use {', '.join(_SHAPES)}"
        raise ValueError(msg)
    return f'<svg viewBox="0 0 20 20" aria-hidden="true">{_SHAPES[state]}</svg>'

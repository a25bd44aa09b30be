"""Words, headings and pictures as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.pages.blocks import plain
from abers.pages.figures import draw
from abers.pages.html_text import escape

if TYPE_CHECKING:
    from abers.pages.blocks import Picture, Span, Words

__all__ = ["heading", "inline", "picture"]


def inline(words: Words) -> str:
    """Return words with their tones as elements."""
    if isinstance(words, str):
        return escape(words)
    return "".join(escape(one) if isinstance(one, str) else _span(one) for one in words)


def _span(span: Span) -> str:
    words = escape(span.words)
    match span.tone:
        case "code":
            return f"<code>{words}</code>"
        case "soft":
            return f'<span class="soft">{words}</span>'
        case "strong":
            return f"<b>{words}</b>"
        case view:
            return f'<b class="{view}">{words}</b>'


def heading(title: Words, level: int) -> str:
    """Return a heading; nothing without words."""
    return f"<h{level}>{inline(title)}</h{level}>" if plain(title) else ""


def picture(one: Picture) -> str:
    """Return a small picture with its caption."""
    caption = f'<p class="small soft">{inline(one.caption)}</p>' if plain(one.caption) else ""
    return draw(one.kind, one.data, label=one.label) + caption

"""The page that a run writes: sections of Markdown, and tables.

Each section is made where its numbers are measured; this module only formats it.
"""

from __future__ import annotations

from textwrap import TextWrapper
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.timing import Spread

_FILLED = TextWrapper(100, break_long_words=False, break_on_hyphens=False)
Key = tuple[str, str, int]  # quantity, contender, n


class Section(NamedTuple):
    """A part of the page, and what it measured."""

    title: str
    body: str
    values: dict[Key, Spread]

    def markdown(self) -> str:
        """Write the section under its title."""
        return f"## {self.title}\n\n{self.body.strip()}\n"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table with names in the first column and numbers in the others."""
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines) + "\n"


def size(n: int) -> str:
    """Write a number of observations."""
    return f"{n:,}".replace(",", "\u202f")


def folded(title: str, text: str) -> str:
    """Fold Markdown away under a title in HTML; it opens on a click, without JavaScript."""
    return f'<details markdown="1">\n<summary>{title}</summary>\n\n{text.strip()}\n\n</details>\n'


def wrapped(text: str) -> str:
    """Break lines of prose at 100 characters; tables, titles and pictures stay as they are."""
    return "\n".join(
        line if line.startswith(("|", "<", "#")) else _FILLED.fill(line)
        for line in text.split("\n")
    )

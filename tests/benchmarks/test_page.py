"""The pages of benchmarks and of evidence: what their parts become in a browser."""

from __future__ import annotations

from benchmarks.page import folded, table, wrapped
from markdown import markdown  # type: ignore[import-untyped]


def test_a_folded_part_is_markdown_under_its_title() -> None:
    """A part with a table folds away in an element that needs no script, and stays a table."""
    text = f"Before.\n\n{folded('More, <code>n</code>', table(['a', 'b'], [['one', 1]]))}\nBehind."
    html = markdown(text, extensions=["md_in_html", "tables"])
    inside = html.partition("<details>\n<summary>More, <code>n</code></summary>")[2]
    assert "<td>one</td>" in inside.partition("</details>")[0]
    assert inside.partition("</details>")[2].strip() == "<p>Behind.</p>"


def test_only_prose_is_wrapped() -> None:
    """Long prose breaks between words, and a long row of a table stays one line."""
    prose, row = "word " * 50 + "end", "| " + "cell " * 50 + "|"
    first, *more, last = wrapped(f"{prose}\n\n{row}").split("\n")
    assert last == row
    assert max(map(len, (first, *more))) <= 100
    assert " ".join([first, *more]).split() == prose.split()

"""Documents as HTML: a file that opens offline, fragments of a live page, and output of a notebook.

No page has a script, asks a server for anything, or has a style beyond its own sheet; its policy
forbids them, should a text that was not escaped try.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from abers.pages.blocks import AlarmBlock, plain, walk
from abers.pages.html_blocks import body
from abers.pages.html_text import escape
from abers.pages.html_words import inline

if TYPE_CHECKING:
    from abers.pages.blocks import Block, Document

__all__ = ["fragment", "notebook", "page"]

MAIN = ":main"  # no key of a block has a colon


@cache
def _style() -> str:
    return (files("abers.pages") / "style.css").read_text("utf-8")


def page(document: Document) -> str:
    """Return a document as one file of HTML that needs nothing else."""
    hashed = b64encode(sha256(_style().encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{hashed}'; base-uri 'none'; form-action 'none'"
    foot = f"<footer>{inline(document.foot)}</footer>" if document.foot else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{escape(_title(document))}</title>
<style>{_style()}</style>
</head>
<body class="abers">
<a class="skip" href="#{MAIN}">Skip to the answers</a>
<header><div class="brand">abers</div>{_head(document)}</header>
<main id="{MAIN}">
{_blocks(document)}
</main>
{foot}
</body>
</html>
"""


def notebook(document: Document) -> str:
    """Return a document as the output of a cell; its style touches nothing around it.

    The form keeps its choices apart from those of the same document in another cell.
    """
    return (
        f'<style>{_style()}</style><form class="abers"><div class="brand">abers</div>'
        f"{_head(document)}{_blocks(document)}</form>"
    )


def fragment(block: Block, level: int = 2) -> str:
    """Return the element of a block, with its key as id; its headings begin at a level."""
    return body(block, level)


def _title(document: Document) -> str:
    """Return the title of a page, which warns of alarms that are active."""
    alarms = (one for one in walk(document.blocks) if isinstance(one, AlarmBlock))
    warning = "(!) " if any(one.active and one.state == "no" for one in alarms) else ""
    return f"{warning}{document.title} · abers"


def _head(document: Document) -> str:
    lead = f'<p class="lead">{inline(document.lead)}</p>' if plain(document.lead) else ""
    facts = "".join(f"<li>{inline(one)}</li>" for one in document.facts)
    listed = f'<ul class="facts">{facts}</ul>' if facts else ""
    return f"<h1>{escape(document.title)}</h1>{lead}{listed}"


def _blocks(document: Document) -> str:
    return "\n".join(body(one, 2) for one in document.blocks if one.place != "text")

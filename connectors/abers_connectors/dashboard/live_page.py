"""The live page as it comes, without numbers; its script fills it from the events of its server."""

from __future__ import annotations

from importlib.resources import files

import abers
from abers.pages.html_text import escape

__all__ = ["live_page", "live_script", "live_style"]


def live_page(title: str) -> str:
    """Return the page of the stream with this title, which asks only its own server."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{escape(title)} · abers live</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/live/page.css">
<script src="/live/page.js" defer></script>
</head>
<body class="abers">
<a class="skip" href="#content">Skip to the answers</a>
<header class="bar"><div>
<span class="brand">abers</span>
<h1 id="title">{escape(title)}</h1>
<p id="phase" class="soft" data-phase="waiting">connecting</p>
<p id=":chips" class="chips"></p>
</div></header>
<main id="content" tabindex="-1">
<p id="lost" class="alarm partly" role="status" hidden></p>
<p id="said" class="unseen" role="status"></p>
<div id=":hints" role="status"></div>
<div id=":strip"></div>
<section id="models" class="box" aria-labelledby="models-title" hidden>
<div class="find"><h2 id="models-title">Models, the worst first</h2>
<input id="search" type="search" placeholder="part of a name" aria-label="Search by name"
 autocomplete="off" spellcheck="false"></div>
<div id=":models"></div>
</section>
<div id="blocks"></div>
<noscript><p class="note">This page needs scripts. The same counts are at
<a href="/metrics">/metrics</a>, and <code>abers report</code> makes a page that needs none.</p>
</noscript>
</main>
<footer>abers {escape(abers.__version__)}.</footer>
</body>
</html>
"""


def live_style() -> str:
    """Return the style sheet of all pages, and behind it what only the live page has."""
    own = files("abers_connectors.dashboard") / "live.css"
    return (files("abers.pages") / "style.css").read_text("utf-8") + own.read_text("utf-8")


def live_script() -> str:
    """Return the script."""
    return (files("abers_connectors.dashboard") / "live.js").read_text("utf-8")

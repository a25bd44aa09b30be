"""Document of the live page, from a frame: the bar, the strip of counts, models, and the blocks."""

from __future__ import annotations

import math
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

import abers
from abers.monitoring import formats
from abers.pages.blocks import AlarmBlock, AnswersBlock, TextBlock, TilesBlock, TileValue, walk
from abers.pages.figures import sign
from abers.pages.html import fragment
from abers.pages.html_text import escape
from abers_connectors.dashboard.observer import key_id, key_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from abers.pages.blocks import AnswerBlock, Block
    from abers_connectors.dashboard.feed import Feed, Frame, StreamCounts
    from abers_connectors.dashboard.observer import Key, ListedStatus, ModelStatus, StatesOfModel
    from abers_connectors.runtime.models import LargeModel

__all__ = [
    "LISTED",
    "LONGEST",
    "ListedModel",
    "LiveDocument",
    "live_document",
    "live_page",
    "live_script",
    "live_style",
    "model_list",
    "waiting_document",
]


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


_CHIPS = {"Model": "model", "Calibrated": "served", "Pays": "pays"}
_WORDS = {"yes": "right"}
_HEADS = (
    '<th scope="col">model</th><th scope="col" class="some">labels</th>'
    '<th scope="col" class="left">raw</th><th scope="col" class="left">calibrated</th>'
    '<th scope="col" class="much">wrong at least (raw)</th>'
)

_LARGEST = "Models with the largest shares of the predictions in the last 5 to 10 minutes"
_LARGEST_HEADS = (
    '<th scope="col">model</th><th scope="col">share</th>'
    '<th scope="col" class="some">predictions</th><th scope="col">memory, about</th>'
)
_MIB = 1 << 20


def chips(cards: Iterable[AnswerBlock]) -> str:
    """Return the words of the answers, each with its sign."""
    return "".join(
        _mark(card.state, f"{_CHIPS[card.name]}: {(card.word or card.state).lower()}", keep=True)
        for card in cards
    )


def models_table(models: Sequence[ListedStatus], sentence: str, shown: Key | None) -> str:
    """Return a table of models, each a link, under a sentence that says which they are."""
    rows = "".join(_row(one, one.key == shown) for one in models)
    said = f'<p class="why">{escape(sentence)}</p>' if sentence else ""
    return (
        f"{said}<table><caption>Models, the worst first</caption><thead><tr>{_HEADS}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def largest_table(largest: Sequence[LargeModel]) -> str:
    """Return a table of the models with the largest shares; empty without any."""
    if not largest:
        return ""
    rows = "".join(
        f'<tr><th scope="row" class="long">{escape(one.model or "default")}</th>'
        f"<td>{100 * one.share:.1f} %</td>"
        f'<td class="some">{formats.count(one.predictions)}</td>'
        f"<td>{one.bytes / _MIB:,.1f} MiB</td></tr>"
        for one in largest
    )
    return (
        f'<p class="why">{_LARGEST}.</p><table><caption>{_LARGEST}</caption>'
        f"<thead><tr>{_LARGEST_HEADS}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _row(one: ListedStatus, is_shown: bool) -> str:  # noqa: FBT001 - it is named where it is made
    name, found = key_name(one.key) or "default", one.found
    where = ' aria-current="page"' if is_shown else ""
    alarm = " (alarm)" if one.status.active else ""
    link = f'<a href="/?model={escape(quote(key_id(one.key)))}"{where}>{escape(name)}</a>{alarm}'
    cells = [f'<td class="some">{formats.count(one.status.labels)}</td>']
    for question in ("model", "calibrated"):
        state = found and found.states[question]
        word = _mark(state, _WORDS.get(state, state)) if state else ""
        cells.append(f'<td class="left">{word}</td>')
    cells.append(f'<td class="much">{_wrong(one)}</td>')
    return f'<tr><th scope="row" class="long">{link}</th>{"".join(cells)}</tr>'


def _wrong(one: ListedStatus) -> str:
    """Return by how many labels promises are wrong at least, raw in brackets."""
    if one.found is None or one.found.states["calibrated"] == "waiting":
        return ""
    raw = one.found.raw_wrong_by
    behind = "" if raw is None else f' <span class="soft">({formats.count(raw)})</span>'
    return f"{formats.count(one.found.wrong_by)}{behind}"


def _mark(state: str, words: str, *, keep: bool = False) -> str:
    kept = " keep" * keep
    return f'<span class="mark {state}{kept}">{sign(state)}<span>{escape(words)}</span></span>'


LISTED = 20
"""Models that a page lists; of more it lists the worst, and has a field to search the others."""

LONGEST = 10_000
"""Models in one answer to a program at most: about 2 MB."""


class ListedModel(msgspec.Struct, frozen=True):
    """Model and segment with its answers and its strongest evidence, in numbers.

    Evidence is null without tests; states and `wrong_by` are null until their turn comes, too.
    """

    model: str
    segment: str
    labels: int
    alarm_active: bool
    alarms: int
    view: str
    test: str
    evidence_log10: float | None
    evidence_threshold_log10: float | None
    states: Mapping[str, str] | None  # of the answers, by question
    wrong_by: float | None  # number of the latest labels by which predictions are off at least

    @classmethod
    def of(cls, one: ModelStatus, found: StatesOfModel | None = None) -> ListedModel:
        """Return the entry of a model, with its answers if they are known."""
        tens = [value / math.log(10.0) for value in (one.log_wealth, one.log_threshold)]
        return cls(
            *one.key,
            one.labels,
            one.active,
            one.alarms,
            one.view,
            one.test,
            *(tens if one.test else [None, None]),
            *((None, None) if found is None else (found.states, found.wrong_by)),
        )


class ModelList(msgspec.Struct, frozen=True):
    """Part of the list of all models, for programs and for a page.

    `listed` says which models these are, and `table` has the same for a page, as HTML.
    """

    total: int  # number of all models
    found: int  # number of those that the search finds
    models: Sequence[ListedModel]
    listed: str
    table: str


def model_list(
    models: Sequence[ListedStatus], search: str = "", offset: int = 0, limit: int = LISTED
) -> ModelList:
    """Return a part of the models, in order; a search finds a part of a name in any case.

    Examples
    --------
    >>> from abers_connectors.dashboard.observer import ListedStatus
    >>> from abers_connectors.runtime.models import ModelStatus
    >>> names = ("fraud-uk", "fraud-de", "spam")
    >>> models = [ListedStatus(ModelStatus(key=(name, ""), labels=3)) for name in names]
    >>> found = model_list(models, "FRAUD", limit=1)
    >>> [one.model for one in found.models], found.listed
    (['fraud-uk'], '2 of 3 models have this in their names; the first is listed.')
    """
    part = search.casefold()
    found = [one for one in models if part in key_name(one.key).casefold()] if part else models
    some = found[offset : offset + limit]
    sentence = listed_sentence(len(models))
    if search:
        sentence = _found_sentence(len(models), len(found), len(some))
    listed = [ListedModel.of(*one) for one in some]
    table = models_table(some[:LISTED], sentence, None)
    return ModelList(len(models), len(found), listed, sentence, table)


def listed_sentence(total: int) -> str:
    """Return which models a page lists; empty if it lists all."""
    if total <= LISTED:
        return ""
    return (
        f"The {LISTED} worst of {total:,} models, by how many of their latest labels are wrong, at "
        "least. Type a part of a name to find any other."
    )


def _found_sentence(total: int, found: int, listed: int) -> str:
    if not found:
        return f"None of {total:,} models has this in its name."
    verb = "has this in its name" if found == 1 else "have this in their names"
    sentence = f"{found:,} of {total:,} models {verb}"
    if listed == found:
        return f"{sentence}."
    part = "the first is" if listed == 1 else f"the worst {listed:,} are"
    return f"{sentence}; {part} listed."


_SLOW = 1.5  # seconds between two frames from which a page says so
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0
_NAMED = 5  # models with an active alarm that a sentence names
_MANY = 10.0  # from which a number needs no decimal place


class LiveDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Page of one model at one moment.

    The phase is "waiting", "live" or "ended", and the status a few words about it. `age` is how
    long ago the last label came, in seconds. `answers` are the words of the answers by question.
    `model` is the id of what is shown. `order` has the keys of the blocks, and `parts` the HTML of
    each and of the fixed places of the page, with names that begin with a colon.
    """

    title: str
    phase: str = "waiting"
    status: str
    age: float | None = None
    alarm: bool = False
    model: str | None = None
    answers: Mapping[str, str] = {}
    order: tuple[str, ...] = ()
    parts: Mapping[str, str] = {}


def waiting_document(feed: Feed) -> LiveDocument:
    """Return the document before the first frame of a model."""
    status = "connected; the stream is starting, or its state is being restored"
    if feed.frames:
        status = "connected; the numbers of this model will appear in a moment"
    return LiveDocument(title=feed.title, status=status)


def live_document(title: str, zone: str, frame: Frame) -> LiveDocument:
    """Return the document of a frame of the stream with this title."""
    blocks = [one for one in _blocks(frame) if one.place != "text"]
    cards = [card for one in blocks if isinstance(one, AnswersBlock) for card in one.cards]
    alarms = [one for one in walk(blocks) if isinstance(one, AlarmBlock)]
    return LiveDocument(
        title=title,
        phase="ended" if frame.ended else "live" if frame.counts.ready else "waiting",
        status=_status(frame),
        age=None if frame.ended else frame.age,
        alarm=any(one.active and one.state == "no" for one in alarms),
        model=None if frame.key is None else key_id(frame.key),
        answers={card.question: card.word or card.state for card in cards},
        order=tuple(one.key for one in blocks),
        parts={
            ":chips": chips(cards),
            ":hints": "".join(map(fragment, _hints(frame.counts.hints))),
            ":strip": fragment(_strip(frame, zone)),
            ":models": _models(frame),
            **{one.key: fragment(one) for one in blocks},
        },
    )


def _status(frame: Frame) -> str:
    if frame.ended:
        return "ended: these are the final numbers; Ctrl-C in the terminal ends the page"
    if not frame.counts.ready:
        return "the service is restoring its state; /readyz says how far it is"
    return "live" if frame.every < _SLOW else f"live, every {frame.every:.0f} s"


def _blocks(frame: Frame) -> Iterator[Block]:
    """Yield alarms of other models, and the blocks of the model that is shown."""
    yield from _alarms(frame)
    found = frame.blocks()
    if found is None:
        yield TextBlock(key="empty", words=_empty(frame), note=True)
    else:
        yield from found


def _empty(frame: Frame) -> str:
    """Return why there are no numbers, and what to do."""
    if frame.key is not None:
        return f"There are no numbers of {key_name(frame.key)} yet; choose another model."
    if frame.models:
        return "No model has this name; choose another model."
    if frame.ended:
        return "The stream had no observation. Check the input and the unreadable records."
    return "No observation came yet. If records are read, check the unreadable records."


def _alarms(frame: Frame) -> Iterator[AlarmBlock]:
    """Yield which other models have an active alarm."""
    active = [one.key for one in frame.models if one.status.active and one.key != frame.key]
    if not active:
        return
    named = ", ".join(key_name(key) or "default" for key in active[:_NAMED])
    if (more := len(active) - _NAMED) > 0:
        named += f" and {formats.count(more)} more"
    yield AlarmBlock(
        key="alarms-of-others",
        head=f"Alarm of {named}.",
        words="Choose the model to see its fault.",
        active=True,
    )


def _hints(hints: Iterable[str]) -> Iterator[TextBlock]:
    for place, words in enumerate(hints):
        yield TextBlock(key=f"hint-{place + 1}", words=words, note=True)


def _models(frame: Frame) -> str:
    """Return the list of several models."""
    if not frame.models[1:]:
        return ""
    sentence = listed_sentence(len(frame.models))
    table = models_table(frame.models[:LISTED], sentence, frame.key)
    return table + largest_table(frame.counts.largest)


def _strip(frame: Frame, zone: str) -> TilesBlock:
    return TilesBlock(key="strip", tiles=(*_tiles(frame, frame.counts, zone),))


def _tiles(frame: Frame, counts: StreamCounts, zone: str) -> Iterator[TileValue]:
    """Yield the tiles of a frame."""
    since = "" if counts.since is None else f" since {formats.moment(counts.since, zone)}"
    part = "" if counts.read is None else f"; {100 * counts.read:.0f} % of the stream"
    yield TileValue(formats.count(counts.observations), f"observations{since}{part}")
    rate = "" if frame.rate is None else _counted(frame.rate)
    rate = f"; {rate} records a second" if rate.strip("0.") else ""
    yield TileValue(formats.count(counts.labels), f"labels{since}{rate}")
    waiting, early = counts.waiting
    behind = f"; {formats.count(early)} labels wait for a prediction" if early else ""
    yield TileValue(formats.count(waiting), f"wait for a label{behind}")
    yield TileValue(_lasting(frame.delay), "median label delay")
    if counts.lag is not None:
        newest = "" if counts.behind is None else f"; the newest is {_lasting(counts.behind)} old"
        yield TileValue(formats.count(counts.lag), f"records still to read{newest}")
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.dead.items() if count)
    found = f": {reasons}" if reasons else ""
    yield TileValue(formats.count(sum(counts.dead.values())), f"unreadable records{found}")


def _counted(value: float) -> str:
    return f"{value:,.0f}" if value >= _MANY else f"{value:.1f}"


def _lasting(seconds: float | None) -> str:
    """Return a duration with its unit."""
    if seconds is None:
        return "–"
    if seconds < 1.0:
        return f"{1000 * seconds:.0f} ms"
    for size, unit in ((_DAY, "days"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * size:
            return f"{_counted(seconds / size)} {unit}"
    return f"{_counted(seconds)} s"

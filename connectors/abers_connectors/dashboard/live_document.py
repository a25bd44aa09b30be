"""Document of the live page, from a frame: the bar, the strip of counts, models, and the blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from abers.monitoring.answers import formats
from abers.pages.blocks import AlarmBlock, AnswersBlock, TextBlock, TilesBlock, TileValue, walk
from abers.pages.html import fragment
from abers_connectors.dashboard.live_models import chips, largest_table, models_table
from abers_connectors.dashboard.model_list import LISTED, listed_sentence
from abers_connectors.dashboard.models import key_id, key_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from abers.pages.blocks import Block
    from abers_connectors.dashboard.feed import Feed, Frame, StreamCounts

__all__ = ["LiveDocument", "live_document", "waiting_document"]

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

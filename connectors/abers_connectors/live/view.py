"""From a frame to what a browser shows: words, tables and figures.

Governing rule: all words and all figures are made here, by what makes those of a report; the
script of the page only puts them into their places. A page is made once, however many see it.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

import abers
from abers_connectors._means import left_out
from abers_connectors.http.once import Once
from abers_connectors.models import identified, named, titled
from abers_connectors.report.figures import drawn
from abers_connectors.report.tables import TESTS, rang, scores, tests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.live.feed import Feed
    from abers_connectors.live.frames import Frame
    from abers_connectors.models import Key
    from abers_connectors.report.findings import Findings

__all__ = ["Views"]

_KEPT = 40  # pages: a few more than readers listen at once
_SLOW = 1.5  # seconds between two frames from which a page says so
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0
_MANY = 10.0  # from which a number needs no decimal place


class Views:
    """Makes pages of frames, each once, and keeps a bounded number of them.

    Parameters
    ----------
    feed
        Gives frames.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._made: OrderedDict[Key | None, tuple[int, bytes]] = OrderedDict()
        self._drawing = Once[bytes]("live-page")

    def __len__(self) -> int:
        """Return how many pages are kept."""
        return len(self._made)

    async def page(self, key: Key | None) -> bytes:
        """Encode what the page of a model and segment shows.

        Parameters
        ----------
        key
            Which; None is the one with most labels. All names that no model has share one page.

        Returns
        -------
        bytes
            A JSON object, in one line.
        """
        frame = self._feed.frame(key)
        if frame is None:
            return msgspec.json.encode(_waiting(self._feed))
        number, page = self._made.get(frame.key, (0, b""))
        if number != frame.number:
            drawn = partial(self._draw, frame)
            page = await self._drawing.get((frame.number, frame.key), drawn)
            self._made[frame.key] = frame.number, page
        self._made.move_to_end(frame.key)
        while len(self._made) > _KEPT:
            self._made.popitem(last=False)
        return page

    def close(self) -> None:
        """Draw no more."""
        self._drawing.close()

    def _draw(self, frame: Frame) -> bytes:
        with self._feed.budget.spent(drawing=True):
            return msgspec.json.encode(_shown(self._feed.title, frame))


def _headed(title: str) -> dict[str, Any]:
    return {"title": title, "version": f"abers {abers.__version__}"}


def _waiting(feed: Feed) -> dict[str, Any]:
    words = "Connected. No numbers yet: the stream is starting, or its state is being restored."
    if feed.frames:
        words = "Connected. The numbers of this model come in a moment."
    return _headed(feed.title) | {"phase": "waiting", "words": words}


def _shown(title: str, frame: Frame) -> dict[str, Any]:
    findings = frame.find()
    return _headed(title) | {
        "phase": "ended" if frame.ended else "live" if frame.numbers.ready else "waiting",
        "words": _phase(frame),
        "hints": frame.numbers.hints,
        "models": [
            {"id": identified(one.key), "name": titled(one.key, rings=one.rings)}
            for one in frame.seen
        ],
        "model": None if frame.key is None else identified(frame.key),
        "alarm": _alarm(frame, findings),
        "tiles": [*_tiles(frame)],
        "empty": _empty(frame, findings),
        "blocks": [] if findings is None or not findings.labels else [*_blocks(findings)],
    }


def _phase(frame: Frame) -> str:
    if frame.ended:
        return "The stream has ended: these are its final numbers. Ctrl-C in the terminal ends it."
    if not frame.numbers.ready:
        return "The service is restoring its state; /readyz says how far it is."
    if frame.every < _SLOW:
        return "Live, updated every second."
    return f"Live, updated about every {frame.every:.0f} seconds."


def _empty(frame: Frame, findings: Findings | None) -> str | None:
    """Say why there is nothing to be seen, and what to do."""
    if frame.key is None and frame.seen:
        return "No model has this name; choose another model."
    if frame.key is None:
        if frame.ended:
            return "The stream had no observation. Look at the input, and at the dead letters."
        return "No observation has come yet. If records are being read, look at the dead letters."
    if findings is None:
        return f"Nothing is known of {named(frame.key)} yet; choose another model."
    if not findings.labels:
        return (
            "No label has met a prediction yet. Labels are matched by id and model: if they should "
            "have come by now, look at the counts of dead letters and of waiting labels."
        )
    return None


def _alarm(frame: Frame, findings: Findings | None) -> dict[str, Any]:
    """Say which models ring, and what the last alarm of the one that is shown was."""
    ringing = [named(one.key) or "the model" for one in frame.seen if one.rings]
    if not ringing:
        return {"ringing": False, "words": []}
    words = [f"Alarm: the predictions of {', '.join(ringing)} no longer mean what they say."]
    last = findings.alarms[-1:] if findings is not None else []
    return {"ringing": True, "words": words + [rang(one) for one in last]}


def _tiles(frame: Frame) -> Iterator[dict[str, str]]:
    numbers, early = frame.numbers, frame.numbers.waiting[1]
    part = "" if numbers.read is None else f"{100 * numbers.read:.0f} % of the stream"
    yield _tile("Events", f"{numbers.events:,}", "", part)
    rate = "-" if frame.rate is None else _counted(frame.rate)
    over = "over the whole run" if frame.ended else "over the last seconds"
    yield _tile("Throughput", rate, "a second", over)
    yield _tile("Label delay", *_span(frame.delay), "median of the last labels")
    late = f"and {early:,} labels for observations" if early else "observations without a label"
    yield _tile("Pending", f"{numbers.waiting[0]:,}", "", late)
    if numbers.lag is not None:
        behind = "" if numbers.behind is None else "newest event {} {} old"
        yield _tile("Lag", f"{numbers.lag:,}", "records", behind.format(*_span(numbers.behind)))
    dead = sum(numbers.dead.values())
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in numbers.dead.items() if count)
    yield _tile("Dead letters", f"{dead:,}", "", reasons or "none: every record could be used")


def _tile(name: str, value: str, unit: str, note: str) -> dict[str, str]:
    return {"name": name, "value": value, "unit": unit, "note": note}


def _counted(value: float) -> str:
    return f"{value:,.0f}" if value >= _MANY else f"{value:.1f}"


def _span(seconds: float | None) -> tuple[str, str]:
    """Write a duration as a number and its unit."""
    if seconds is None:
        return "-", ""
    if seconds < 1.0:
        return f"{1000 * seconds:.0f}", "ms"
    for size, unit in ((_DAY, "days"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * size:
            return _counted(seconds / size), unit
    return _counted(seconds), "s"


def _blocks(findings: Findings) -> Iterator[dict[str, Any]]:
    rest = left_out(findings.calibrated or {}, findings.labels)
    words = f"Means over {findings.labels:,} labels: each prediction judged once, as it was issued."
    yield {
        "name": "scores",
        "heading": "Scores",
        "sentence": " ".join([words, *rest]),
        "table": scores(findings)._asdict(),
    }
    if findings.tests:
        yield {
            "name": "tests",
            "heading": TESTS[0],
            "sentence": TESTS[1],
            "table": tests(findings.tests)._asdict(),
        }
    for one in drawn(findings):
        figure = one.figure
        figure.layout |= {"title": None, "margin": figure.layout["margin"] | {"t": 16, "b": 80}}
        # With it plotly keeps what a reader has zoomed into, or hidden, from second to second.
        figure.layout["uirevision"] = one.name
        yield {
            "name": one.name,
            "heading": one.heading,
            "sentence": one.sentence,
            "figure": figure,
            "table": one.table._asdict(),
        }

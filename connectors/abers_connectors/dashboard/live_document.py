"""Document of the live page, from a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring import event_time
from abers_connectors.dashboard.document import Document, Tile, cards, triggered
from abers_connectors.dashboard.model_list import choices, listed_sentence
from abers_connectors.dashboard.models import key_id, key_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.dashboard.feed import Feed, Frame
    from abers_connectors.dashboard.model_view import ModelView

__all__ = ["live_document", "waiting_document"]

_SLOW = 1.5  # seconds between two frames from which a page says so
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0
_NAMED = 5  # models with an active alarm that a sentence names
_MANY = 10.0  # from which a number needs no decimal place


def waiting_document(feed: Feed) -> Document:
    """Return the document before the first frame of a model."""
    status = "Connected. No numbers yet: the stream is starting, or its state is being restored."
    if feed.frames:
        status = "Connected. The numbers of this model will appear in a moment."
    return Document(title=feed.title, status=status)


def live_document(title: str, frame: Frame) -> Document:
    """Return the document of a frame of the stream with this title."""
    view = frame.view()
    return Document(
        title=title,
        phase="ended" if frame.ended else "live" if frame.counts.ready else "waiting",
        status=_status(frame),
        alarm=_alarm(frame, view),
        hints=frame.counts.hints,
        models=choices(frame.models),
        listed=listed_sentence(len(frame.models)),
        shown="" if frame.key is None else f"Shown: {key_name(frame.key)}.",
        model=None if frame.key is None else key_id(frame.key),
        tiles=[*_tiles(frame)],
        cards=[*cards(view)] if view is not None and view.labels else [],
        empty=_empty(frame, view),
    )


def _status(frame: Frame) -> str:
    if frame.ended:
        return "The stream has ended: these are its final numbers. Ctrl-C in the terminal ends it."
    if not frame.counts.ready:
        return "The service is restoring its state; /readyz says how far it is."
    if frame.every < _SLOW:
        return "Live, updated every second."
    return f"Live, updated about every {frame.every:.0f} seconds."


def _empty(frame: Frame, view: ModelView | None) -> str | None:
    """Return why there are no numbers, and what to do; None if there are."""
    if frame.key is None and frame.models:
        return "No model has this name; choose another model."
    if frame.key is None:
        if frame.ended:
            return "The stream had no observation. Check the input and the dead letters."
        return "No observation has arrived yet. If records are being read, check the dead letters."
    if view is None:
        return f"There are no numbers of {key_name(frame.key)} yet; choose another model."
    if not view.labels:
        return (
            "No label has matched a prediction yet. Labels are matched by id and model: if they "
            "should have arrived by now, check the counts of dead letters and of waiting labels."
        )
    return None


def _alarm(frame: Frame, view: ModelView | None) -> list[str]:
    """Return which models have an active alarm, and the last alarm of the model shown."""
    active = [key_name(one.key) or "the model" for one in frame.models if one.active]
    if not active:
        return []
    named = ", ".join(active[:_NAMED])
    if (more := len(active) - _NAMED) > 0:
        named += f" and {more:,} other models" if more > 1 else " and one other model"
    sentence = f"Alarm: the scores or the predictions of {named} are miscalibrated."
    last = view.alarms[-1:] if view is not None else []
    return [sentence, *(triggered(labels, alarm) for labels, alarm in last)]


def _tiles(frame: Frame) -> Iterator[Tile]:
    """Yield the tiles of a frame."""
    counts, early = frame.counts, frame.counts.waiting[1]
    since = "" if counts.since is None else f"since {event_time(counts.since // 1000 * 1000)}"
    part = since if counts.read is None else f"{100 * counts.read:.0f} % of the stream"
    yield Tile("Events", f"{counts.events:,}", note=part)
    rate = "-" if frame.rate is None else _counted(frame.rate)
    over = "over the whole run" if frame.ended else "over the last seconds"
    yield Tile("Throughput", rate, "a second", over)
    yield Tile("Label delay", *_span(frame.delay), "median of the last labels")
    late = f"and {early:,} labels for observations" if early else "observations without a label"
    yield Tile("Pending", f"{counts.waiting[0]:,}", note=late)
    if counts.lag is not None:
        behind = "" if counts.behind is None else "newest event {} {} old"
        yield Tile("Lag", f"{counts.lag:,}", "records", behind.format(*_span(counts.behind)))
    dead = sum(counts.dead.values())
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.dead.items() if count)
    found = reasons or "none: every record could be used"
    yield Tile("Dead letters", f"{dead:,}", note=f"{since}, {found}" if since else found)


def _counted(value: float) -> str:
    return f"{value:,.0f}" if value >= _MANY else f"{value:.1f}"


def _span(seconds: float | None) -> tuple[str, str]:
    """Format a duration as a number and its unit."""
    if seconds is None:
        return "-", ""
    if seconds < 1.0:
        return f"{1000 * seconds:.0f}", "ms"
    for size, unit in ((_DAY, "days"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * size:
            return _counted(seconds / size), unit
    return _counted(seconds), "s"

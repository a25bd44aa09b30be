"""A report as one page that needs nothing else.

The page requests nothing: its two scripts are inline, and its content security policy allows these
two, by their hashes, and no request. Whatever a stream calls itself is escaped.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from itertools import starmap
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from abers import registry
from abers.monitoring import ALARM_TEST
from abers_connectors.dashboard.document import (
    VERSION,
    Card,
    Choice,
    Document,
    Table,
    cards,
)
from abers_connectors.dashboard.models import key_id, listed_name, model_table
from abers_connectors.dashboard.page_assets import PageAssets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers_connectors.dashboard.model_view import ModelView
    from abers_connectors.dashboard.models import Key
    from abers_connectors.dashboard.report import FinishedReplay

__all__ = ["ReportPage"]

_SHOWN = (
    *("classes", "quantiles", "coverage", "folds", "scores", "window", "max_age", "half_life"),
    "learner",
)


class ReportPage:
    """Writes pages of reports; needs plotly and Jinja2."""

    def __init__(self) -> None:
        self._assets = PageAssets("a report as a page", "plots")

    def encode(self, runs: Mapping[str, FinishedReplay]) -> bytes:
        """Return the HTML document of the report of a replay, or of several by calibrator."""
        if len(runs) > 1:
            parts = [*starmap(_compared, runs.items())]
            return self._page(next(iter(runs.values())), parts, "Calibrator", None)
        (run,) = runs.values()
        kept, left_out = run.models()
        models = {key: one.view() for key, one in kept.items()}
        parts = [_whole(run, models), *map(_part, models, models.values())]
        notice = None
        if left_out:
            notice = (
                f"The {len(models)} models with most labels have figures of their own. "
                f"{left_out:,} more are only in the numbers of all together."
            )
        return self._page(run, parts, "Model", notice)

    def _page(
        self, run: FinishedReplay, parts: Sequence[Document], choose: str, notice: str | None
    ) -> bytes:
        """Return the page of some parts, one of which is chosen."""
        scripts: list[str] = []
        if len(parts) > 1 or any(one.figure for one in parts[0].cards):
            scripts = [self._assets.plotly.read_text("utf-8"), self._assets.script]
        several = len(parts) > 1
        head = Document(
            title=run.facts()["stream"],
            phase="ended",
            status="A replay that has ended: these are its final numbers.",
            choose=choose,
            models=[Choice(str(one.model), one.title) for one in parts] if several else [],
        )
        observations, labels = run.summary.observations, run.summary.labels
        intro = (
            f"{observations:,} observations were predicted before their labels were known, and "
            f"{labels:,} labels came. Each prediction is scored once, as issued. Made by {VERSION}."
        )
        return self._assets.render(
            live=None,
            head=head,
            parts=parts,
            intro=intro,
            notice=notice,
            policy=" ".join(map(_hashed, scripts)) or "'none'",
            scripts=scripts,
        )


def _compared(name: str, run: FinishedReplay) -> Document:
    """Return the part of one of several calibrators."""
    return msgspec.structs.replace(_whole(run, {}), title=name, model=quote(name, safe=""))


def _whole(run: FinishedReplay, models: Mapping[Key, ModelView]) -> Document:
    """Return the part of all models together."""
    monitor, facts, shown = run.processor.monitor, run.facts(), list[Card]()
    if monitor is not None and run.summary.labels:
        view = run.observer.whole().view()._replace(labels=run.summary.labels)
        shown = [*cards(view)]
    tables = sum(one.figure is None for one in shown)
    support = monitor is not None and "crps" in monitor.views()["calibrated"]
    description = "What was read, and how it was predicted."
    shown[tables:tables] = [
        Card("facts", "Replay", description, _facts(facts, support=support)),
        Card("counts", "Record counts", "All other counts are 0.", _counts(facts)),
        *_models(models),
    ]
    empty = "No prediction was scored: no label came, or monitoring is off."
    return Document(title="all together", model="all", cards=shown, empty=None if tables else empty)


def _part(key: Key, view: ModelView) -> Document:
    """Return the part of one model."""
    title = _title(key, view)
    return Document(
        title=title,
        model=quote(key_id(key), safe=""),
        cards=[*cards(view, title)] if view.labels else [],
        empty=None if view.labels else "No label has matched a prediction of this model.",
    )


def _title(key: Key, view: ModelView) -> str:
    return listed_name(key, active=any(one.active for one in view.tests if one.name == ALARM_TEST))


def _models(models: Mapping[Key, ModelView]) -> Iterator[Card]:
    if models:
        rows = [(_title(key, view), view.labels, view.calibrated) for key, view in models.items()]
        table = Table(*model_table(rows))
        yield Card("models", "Models", "Calibrated scores of each model.", table)


def _hashed(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def _facts(facts: Mapping[str, Any], *, support: bool) -> Table:
    """Return the table of the settings of a run."""
    known = {
        "stream": facts["stream"],
        "read from": facts["inputs"],
        "task": facts["task"],
        "calibrator": facts["calibrator"],
        **{name.replace("_", " "): facts["settings"][name] for name in _SHOWN},
    }
    for name, belongs in (
        ("folds", facts["calibrator"] in registry.FOLDED),
        ("quantiles", facts["task"] == "regression"),
    ):
        if not belongs:
            del known[name]
    if support:  # a CRPS is finite only for a support, so it is named
        known["support"] = facts["settings"]["support"] or "from the smallest to the largest label"
    if facts["delay"] is not None:
        known["labels"] = facts["delay"]
    rows = [[name, _text(value)] for name, value in known.items() if value not in (None, [], ())]
    return Table(["setting", "value"], rows)


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _counts(facts: Mapping[str, Any]) -> Table:
    rest = {name.replace("_", " "): count for name, count in facts["counters"].items() if count}
    dead = {f"dead letters: {reason}": count for reason, count in facts["dead_letters"].items()}
    waiting = dict(zip(("observations", "labels"), facts["waiting"], strict=True))
    still = {f"{name} still waiting": count for name, count in waiting.items()}
    counts = {"records": facts["records"], **rest, **dead, **still}
    return Table(["what", "count"], [[name, f"{count:,}"] for name, count in counts.items()])

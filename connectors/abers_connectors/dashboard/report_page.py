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
from abers_connectors.dashboard.model_list import LISTED
from abers_connectors.dashboard.models import (
    calibrated_means,
    described,
    evidence_cell,
    key_id,
    listed_name,
    model_table,
)
from abers_connectors.dashboard.page_assets import PageAssets
from abers_connectors.replay.summary import total_monitor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers_connectors.dashboard.model_view import ModelView
    from abers_connectors.dashboard.models import Key, ModelStatus
    from abers_connectors.dashboard.report import FinishedReplay

__all__ = ["ReportPage"]

_ROWS = 1_000  # of the table of models
_LISTED = (
    "Models with an active alarm are first, then those with the strongest evidence against their "
    "predictions. Type a part of a name to find one."
)
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
            return self._page(next(iter(runs.values())), parts, "Calibrator", [])
        (run,) = runs.values()
        kept, statuses = run.models()
        models = {key: one.view() for key, one in kept.items()}
        parts = [_whole(run, statuses), *map(_part, models, models.values())]
        return self._page(run, parts, "Model", statuses)

    def _page(
        self,
        run: FinishedReplay,
        parts: Sequence[Document],
        choose: str,
        statuses: Sequence[ModelStatus],
    ) -> bytes:
        """Return the page of some parts, one of which is chosen; the status is that of models."""
        scripts: list[str] = []
        if len(parts) > 1 or any(one.figure for one in parts[0].cards):
            scripts = [self._assets.plotly.read_text("utf-8"), self._assets.script]
        several = len(parts) > 1
        head = Document(
            title=run.facts()["stream"],
            phase="ended",
            status="A replay that has ended: these are its final numbers.",
            choose=choose,
            models=[*_choices(parts, statuses)] if several else [],
            listed=_LISTED if len(statuses) > LISTED else "",
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
            notice=_notice(len(statuses), len(parts) - 1),
            policy=" ".join(map(_hashed, scripts)) or "'none'",
            scripts=scripts,
        )


def _compared(name: str, run: FinishedReplay) -> Document:
    """Return the part of one of several calibrators."""
    return msgspec.structs.replace(_whole(run, []), title=name, model=quote(name, safe=""))


def _choices(parts: Sequence[Document], statuses: Sequence[ModelStatus]) -> Iterator[Choice]:
    """Yield the choice of each part; of many models with what makes them the worst."""
    names: dict[str, str] = {}
    if len(statuses) > LISTED:
        names = {_part_id(one.key): described(one) for one in statuses[: len(parts)]}
    for one in parts:
        yield Choice(str(one.model), names.get(str(one.model), one.title))


def _notice(models: int, figures: int) -> str | None:
    """Return what is left out, and how to see it."""
    if models <= figures:
        return None
    listed = f"the first {_ROWS:,}" if models > _ROWS else "all"
    return (
        f"Of {models:,} models the {figures} worst have figures of their own: those with an active "
        "alarm, then those with the strongest evidence against their predictions. The table of "
        f"models has {listed}. A report whose name ends in .json has the scores of all."
    )


def _whole(run: FinishedReplay, statuses: Sequence[ModelStatus]) -> Document:
    """Return the part of all models together."""
    monitor, facts, shown = total_monitor(run.processors), run.facts(), list[Card]()
    if monitor is not None and run.summary.labels:
        view = run.observer.whole().view()._replace(labels=run.summary.labels)
        shown = [*cards(view)]
    tables = sum(one.figure is None for one in shown)
    support = monitor is not None and "crps" in monitor.views()["calibrated"]
    description = " ".join(["What was read, and how it was predicted.", *run.summary.notes])
    shown[tables:tables] = [
        Card("facts", "Replay", description, _facts(facts, support=support)),
        Card("counts", "Record counts", "All other counts are 0.", _counts(facts)),
        *_models(run, statuses),
    ]
    empty = "No prediction was scored: no label came, or monitoring is off."
    return Document(title="all together", model="all", cards=shown, empty=None if tables else empty)


def _part(key: Key, view: ModelView) -> Document:
    """Return the part of one model."""
    title = _title(key, view)
    return Document(
        title=title,
        model=_part_id(key),
        cards=[*cards(view, title)] if view.labels else [],
        empty=None if view.labels else "No label has matched a prediction of this model.",
    )


def _title(key: Key, view: ModelView) -> str:
    return listed_name(key, active=any(one.active for one in view.tests if one.name == ALARM_TEST))


def _part_id(key: Key) -> str:
    return quote(key_id(key), safe="")


def _models(run: FinishedReplay, statuses: Sequence[ModelStatus]) -> Iterator[Card]:
    if statuses:
        some, monitors = statuses[:_ROWS], run.observer.monitors()
        names = [listed_name(one.key, active=one.active) for one in some]
        means = [calibrated_means(monitors[one.key]) for one in some]
        rows = [*zip(names, (one.labels for one in some), means, strict=True)]
        table = Table(*model_table(rows, [*map(evidence_cell, some)]))
        yield Card("models", "Models", "Calibrated scores of each model, the worst first.", table)


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
    able = registry.capabilities(facts["calibrator"], facts["task"])
    for name, belongs in (
        ("folds", able.score == "folds"),
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

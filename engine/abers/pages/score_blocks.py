"""Scores with one phrase each, and the records of a run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from abers.monitoring.answers import formats
from abers.pages.blocks import Column, FoldBlock, TableBlock, TableRow
from abers.pages.method_blocks import against

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring import TaskMonitor
    from abers.monitoring.answers import Answers

__all__ = ["record_fold", "score_fold"]

_PLACES = 4  # decimals of scores


class _Score(NamedTuple):
    """A score: its name among the means of a monitor, in a table, and what it means."""

    key: str
    name: str
    phrase: str


_SCORES = (
    _Score("log_loss", "log loss", "mean of −ln(probability of what came); lower is better"),
    _Score(
        "brier", "Brier score", "mean squared distance of probability and label; lower is better"
    ),
    _Score("miscalibration", "– calibration part", "what perfect recalibration would still save"),
    _Score("discrimination", "– sorting part", "what telling cases apart gains; higher is better"),
    _Score("uncertainty", "– chance part", "what no forecast can remove"),
    _Score("ece", "ECE, ten bins", "mean gap over ten bins; chance makes it too large"),
    _Score("accuracy", "accuracy", "share of labels that are the first choice; higher is better"),
    _Score("crps", "CRPS", "mean distance of distribution and label; lower is better"),
    _Score("pinball", "pinball loss", "mean loss of the quantiles; lower is better"),
    _Score("width", "interval width", "mean distance of the two ends of the interval"),
)


def score_fold(
    monitor: TaskMonitor, answers: Answers | None, prefix: str = ""
) -> tuple[FoldBlock, ...]:
    """Return the scores of both views; nothing before the first label."""
    if not monitor.count:
        return ()
    views = _views(monitor, answers)
    names = [one for one in _SCORES if one.key in views[[*views][-1]]]
    change = (Column(head="change", room="some"),) if len(views) > 1 else ()
    table = TableBlock(
        key=f"{prefix}scores-table",
        caption=f"Scores of {' and '.join(views)}",
        columns=(
            Column(head="score", align="left"),
            Column(head="what it means", align="left", room="much"),
            *(Column(head=view) for view in views),
            *change,
        ),
        rows=tuple(TableRow((one.name, one.phrase, *_cells(one.key, views))) for one in names),
        note=_counted(monitor, answers),
        detail="more",
    )
    return (
        FoldBlock(
            key=f"{prefix}scores",
            title="Scores",
            summary=_summary(names, views),
            blocks=(table,),
            record=views,
        ),
    )


def _views(monitor: TaskMonitor, answers: Answers | None) -> dict[str, dict[str, float | None]]:
    """Return the means of both views; log losses are those of the answers."""
    found: dict[str, dict[str, float | None]] = {}
    for view, means in monitor.views().items():
        found[view] = {name: one if math.isfinite(one) else None for name, one in means.items()}
        found[view] |= _parts(monitor, view)
    losses = answers.whole.losses if answers and answers.whole else None
    if losses is not None:
        for view, loss in (("raw", losses.raw), ("calibrated", losses.calibrated)):
            if view in found:
                found[view]["log_loss"] = loss
    if math.isfinite(monitor.mean_width) and "crps" not in found["calibrated"]:
        found["calibrated"]["width"] = monitor.mean_width
    return found


def _parts(monitor: TaskMonitor, view: str) -> dict[str, float | None]:
    """Return the parts of the Brier score of two classes."""
    scores = getattr(monitor, view, None)
    if scores is None or not hasattr(scores, "ece"):
        return {}
    parts = scores.reliability.decomposition()._asdict()
    return {name: parts[name] for name in ("miscalibration", "discrimination", "uncertainty")}


def _cells(key: str, views: dict[str, dict[str, float | None]]) -> tuple[str, ...]:
    """Return a score of each view, and how much the last is better."""
    values = [one.get(key) for one in views.values()]
    cells = (*(_cell(key, one) for one in values),)
    if len(values) == 1:
        return cells
    first, last = values[0], values[-1]
    known = key == "log_loss" and first is not None and last is not None
    return (*cells, against(last or 0.0, first or 0.0) if known else "")


def _cell(key: str, value: float | None) -> str:
    if value is None:
        return ""
    if key in {"crps", "pinball"}:
        return formats.significant(value, 4)
    return formats.loss(value) if key == "log_loss" else formats.number(value, _PLACES)


def _summary(names: Sequence[_Score], views: dict[str, dict[str, float | None]]) -> str:
    """Return the first two scores in a sentence."""
    said = []
    for one in names[:2]:
        cells = _cells(one.key, views)[: len(views)]
        both = " → ".join(filter(None, cells))
        said.append(f"{one.name} {both}")
    return f"One number for all: {', '.join(said)}."


def _counted(monitor: TaskMonitor, answers: Answers | None) -> str:
    count = formats.count(monitor.count)
    if answers is None or answers.whole is None or answers.whole.losses is None:
        return f"Over all {count} labels, warm-up included."
    whole = formats.count(answers.whole.labels)
    return (
        f"Log loss is over {whole} labels, as in the answers; the others are over all {count}, "
        "warm-up included."
    )


def record_fold(prefix: str, records: Sequence[tuple[str, str]]) -> tuple[FoldBlock, ...]:
    """Return what was read and how it was predicted; nothing if it is not known."""
    if not records:
        return ()
    table = TableBlock(
        key=f"{prefix}records-table",
        caption="Records",
        columns=(Column(head="what", align="left"), Column(head="value", align="left")),
        rows=tuple(TableRow((name, value)) for name, value in records),
        detail="more",
    )
    return (
        FoldBlock(
            key=f"{prefix}records",
            title="Records",
            summary="What was read, and how it was predicted.",
            blocks=(table,),
            record=dict(records),
        ),
    )

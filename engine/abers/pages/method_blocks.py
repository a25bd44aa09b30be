"""The methods that p mixes, scores with a phrase each, and what monitors of their own say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from abers.monitoring import MixtureMonitor, experts, formats
from abers.monitoring.formats import is_date
from abers.pages.blocks import (
    Column,
    FigureBlock,
    FoldBlock,
    Picture,
    Span,
    TableBlock,
    TableRow,
    TextBlock,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abers.monitoring import Expert, Figure, Monitor, Number, TaskMonitor
    from abers.monitoring.answers import Answers
    from abers.pages.blocks import Block
    from abers.pages.figures.data import SharesData
    from abers.pages.model_findings import ModelFindings

__all__ = [
    "CROSS",
    "MIXTURE",
    "Method",
    "against",
    "method_fold",
    "methods_of",
    "other_folds",
    "outside_notes",
    "record_fold",
    "score_fold",
]

MIXTURE = "protected"
"""What losses call the mixture itself."""

CROSS = "cross_venn_abers"
"""The method that makes the interval of folds."""


class Method(NamedTuple):
    """A method: its name, and what it does in one phrase."""

    name: str
    phrase: str


_MIXTURE = Method("calibrated", "the mean of all by weight: what is served")
_UNCHANGED = Method("unchanged", "the raw probability as it is")
_SWITCHING = Method("switching", "nine fixed corrections, among which it may switch at any time")
_BEST = Method("best of late", "follows the method that was best lately")
_STEADY = Method("steady best", "as “best of late”, where a label counts a sixteenth")
_ALL = "methods and averages of scores, labels and errors in a formula"
_TWO_CLASSES = {
    "raw": _UNCHANGED,
    "venn_abers": Method("all labels", "Venn–Abers over all labels so far"),
    CROSS: Method("all labels", "cross Venn–Abers over all labels so far"),
    "jumper": _SWITCHING,
    "platt": Method("recent line", "one slope and one shift; half counts after 300 labels"),
    "stack_scores": Method(
        "scores combined", "methods and averages of scores in a formula that learns"
    ),
    "stack_all": Method("all combined, everything", f"{_ALL} that never forgets"),
    "stack_2000": Method("all combined, 2,000", f"{_ALL} with 2,000 labels"),
    "stack_1000": Method("all combined, 1,000", f"{_ALL} with 1,000 labels"),
    "share": _BEST,
    "share_16": _STEADY,
    "share_arrival": Method("first to know", "as “best of late”, but learns labels as they come"),
}
_CLASSES = {
    "raw": Method("unchanged", "the raw probabilities as they are"),
    "one_vs_rest": Method("all labels", "Venn–Abers of each class against all others"),
    "stack_scores": Method("scores combined", "both before in a formula that learns"),
    "stack_all": Method("all combined, everything", f"{_ALL} that never forgets"),
    "stack_1000": Method("all combined, 1,000", f"{_ALL} with 1,000 labels"),
    "stack_100": Method("all combined, 100", f"{_ALL} with 100 labels"),
    "share": _BEST,
    "share_16": _STEADY,
    "product": Method("product", "the product of all, each to the power of its weight"),
}
_LINE = "a line through the score and the errors before it"
_NUMBERS = {
    "base": Method("unchanged", "the distribution of the model"),
    "recalibrated": Method(
        "recalibrated", "that of the model, corrected by how often labels were below"
    ),
    "ivapr": Method("many labels", "inductive Venn–Abers regression over the labels kept"),
    "ivapr_1000": Method(
        "last thousand", "inductive Venn–Abers regression over the latest 1,000 labels"
    ),
    "residuals_100": Method("last 100 errors", "the score plus its latest 100 errors"),
    "residuals_300": Method("last 300 errors", "the score plus its latest 300 errors"),
    "gaussian": Method("normal errors", "the score plus recent errors as a normal distribution"),
    "line_gaussian": Method("line, normal", f"{_LINE}, with its errors as a normal distribution"),
    "line_residuals": Method("line, last 300", f"{_LINE}, plus its latest 300 errors"),
    "share": _BEST,
    "share_4": Method("steady best", "as “best of late”, where a label counts a quarter"),
}


def methods_of(experts: Iterable[str]) -> dict[str, Method]:
    """Return the names and phrases of the methods of a mixture; unknown ones have their own name.

    Examples
    --------
    >>> [one.name for one in methods_of(["raw", "jumper", "venn_abers", "mine"]).values()]
    ['unchanged', 'switching', 'all labels', 'mine']
    """
    names = [*experts]
    known = max(
        (_TWO_CLASSES, _CLASSES, _NUMBERS), key=lambda table: sum(n in table for n in names)
    )
    found = known | {MIXTURE: _MIXTURE}
    return {name: found.get(name, Method(name, "")) for name in names}


_LEAST_SHOWN = 0.001  # of the weights


def outside_notes(found: ModelFindings) -> tuple[TextBlock, ...]:
    """Return how often p is outside its interval, and what both are; nothing if it never is."""
    share = _numbers(found).get("outside_interval", 0.0)
    if not share > 0.0:
        return ()
    per_cent = formats.per_cent(share, 0)
    return (
        TextBlock(
            key=found.key("outside-text"),
            words=f"p is outside its interval in {per_cent} of cases: see “Methods” (-v).",
            place="text",
        ),
        TextBlock(
            key=found.key("outside"),
            note=True,
            place="page",
            words=(
                Span(f"p lies outside its interval in {per_cent} of cases.", "strong"),
                f" {_interval_and_p(found)} The answers above are about p: use p.",
            ),
            record={"share": share},
        ),
    )


def _interval_and_p(found: ModelFindings) -> str:
    """Return what the interval is, and what p is."""
    many = len(_weights(found))
    return (
        f"{_interval(found)} p is the mean of {many} methods by weight, and others are trusted "
        "more now. p has a bound against raw on any stream, see “Methods”."
    )


def _interval(found: ModelFindings) -> str:
    """Return what the interval is, and for which streams it has a guarantee."""
    if found.several:
        return (
            "The intervals are those of single classes, before their probabilities sum to 1; their "
            "guarantee is for streams that do not move."
        )
    guarantee = "its guarantee is for streams that do not move"
    if CROSS in _weights(found):
        guarantee = "with folds it has no guarantee"
    return f"The interval is that of one method, “all labels”; {guarantee}."


def method_fold(found: ModelFindings) -> tuple[FoldBlock, ...]:
    """Return the methods with weights and losses; nothing if p is no mixture."""
    weights = _weights(found)
    if not weights:
        return ()
    most = max(weights, key=lambda name: weights[name])
    name = methods_of(weights)[most].name
    figures = _over_time(found)
    served = "The served distribution" if found.of_numbers else "p"
    return (
        FoldBlock(
            key=found.key("methods"),
            title="Methods",
            summary=f"{served} is the mean of {len(weights)} methods by weight; now mostly "
            f"“{name}” ({formats.per_cent(weights[most], 0)}).",
            blocks=(*_outside(found), _table(found), *figures),
            record={"experts": _records(_experts(found)), "numbers": _numbers(found)},
        ),
    )


def _outside(found: ModelFindings) -> tuple[TextBlock, ...]:
    """Return for a text what the interval is, where p is ever outside."""
    if not _numbers(found).get("outside_interval", 0.0) > 0.0:
        return ()
    key, words = found.key("outside-why"), _interval_and_p(found).removesuffix(", see “Methods”.")
    return (TextBlock(key=key, words=f"{words}.", place="text", detail="more"),)


def _experts(found: ModelFindings) -> dict[str, Expert]:
    return experts(found.monitor.numbers_beside())


def _weights(found: ModelFindings) -> dict[str, float]:
    return {name: one.weight for name, one in _experts(found).items() if one.weight is not None}


def _records(found: Mapping[str, Expert]) -> dict[str, dict[str, float | None]]:
    return {name: one._asdict() for name, one in found.items()}


def _numbers(found: ModelFindings) -> dict[str, float]:
    """Return the numbers of the monitor of the mixture that are of no single method."""
    mixed = [one for one in found.monitor.others if isinstance(one, MixtureMonitor)]
    return {
        number.name: number.value for one in mixed for number in one.summary() if not number.labels
    }


def _table(found: ModelFindings) -> TableBlock:
    every = _experts(found)
    names, base = methods_of(every), next(iter(every.values())).loss
    ordered = sorted(
        every, key=lambda name: (every[name].weight is None, -(every[name].weight or 0.0))
    )
    loss = "CRPS" if found.of_numbers else "log loss"
    return TableBlock(
        key=found.key("methods-table"),
        caption="Methods with their weights and losses",
        columns=(
            Column(head="method", align="left"),
            Column(head="what it does", align="left", room="much"),
            Column(head="weight now"),
            Column(head=f"{loss} against unchanged" if found.of_numbers else "loss against raw"),
        ),
        rows=tuple(
            TableRow(
                (
                    names[name].name,
                    names[name].phrase,
                    _weight(every[name].weight),
                    against(every[name].loss, base),
                ),
                main=name == MIXTURE,
                separated=name == MIXTURE,
            )
            for name in ordered
        ),
        note=f"A method gains weight by predicting better. {_bound(found)} Losses here count all "
        "labels, warm-up included.",
        detail="more",
    )


def _weight(weight: float | None) -> str:
    if weight is None:
        return ""
    if 0.0 < weight < _LEAST_SHOWN:
        return f"< {formats.per_cent(_LEAST_SHOWN)}"
    return formats.per_cent(weight, 0)


def against(loss: float, base: float) -> str:
    """Return how a loss differs from that of the base, in per cent.

    Examples
    --------
    >>> against(95.2, 100.0).replace(formats.NO_BREAK, " "), against(1.0, 0.0)
    ('−4.8 %', '')
    """
    if not base > 0.0:
        return ""
    return f"{formats.signed(100.0 * (loss / base - 1.0), 1)}{formats.NO_BREAK}%"


def _bound(found: ModelFindings) -> str:
    """Return the worst case of the mixture, with what it depends on."""
    numbers = _numbers(found)
    price = next((one for name, one in numbers.items() if name in {"price_nats", "price_crps"}), 0)
    a_label = next((one for name, one in numbers.items() if name.endswith("_per_label")), math.nan)
    waited = formats.count(numbers.get("lanes", 0))
    unit, of = ("", "the CRPS of the model") if found.of_numbers else (" nats", "that of raw")
    size = f"{formats.significant(price)}{unit}"
    each = "" if math.isnan(a_label) else f" ({formats.significant(a_label, 2)} a label)"
    return (
        f"Worst case: the total loss is at most {size}{each} above {of}, on any "
        f"stream, over labels that come before they expire. At most {waited} predictions waited "
        "together."
    )


def _over_time(found: ModelFindings) -> tuple[FigureBlock, ...]:
    """Return the weights over time; nothing before there are two moments."""
    points = [one for one in found.details.experts_over_time if one.experts]
    if len(points) < 2:  # noqa: PLR2004 - that make a line
        return ()
    weights = _weights(found)
    names = sorted(weights, key=lambda name: -weights[name])
    shown = methods_of(weights)
    data: SharesData = {
        "x": [float(one.time) for one in points],
        "zone": found.zone if is_date(points[-1].time) else None,
        "names": [shown[name].name for name in names],
        "shares": [[_share(one.experts, name) for one in points] for name in names],
        "missing": 0,
    }
    label = "Weights of the methods over time"
    record = [
        {"labels": one.labels, "time": one.time, "experts": _records(one.experts)} for one in points
    ]
    return (
        FigureBlock(
            key=found.key("weights"),
            pictures=(Picture("shares", data, label, title="Weights over time"),),
            record={"points": record},
            detail="more",
        ),
    )


def _share(found: Mapping[str, Expert], name: str) -> float | None:
    return found[name].weight if name in found else None


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


_DIGITS = 4


def other_folds(monitor: TaskMonitor, prefix: str = "") -> tuple[FoldBlock, ...]:
    """Return a fold for each monitor of its own with labels; methods have their own fold."""
    others = [one for one in monitor.others if not isinstance(one, MixtureMonitor)]
    return tuple(_fold(one, prefix) for one in others if monitor.count and _shown(one))


def _shown(monitor: Monitor) -> list[Number]:
    return [one for one in monitor.summary() if one.measure.label and not one.labels]


def _fold(monitor: Monitor, prefix: str) -> FoldBlock:
    figures, numbers = monitor.figures(), _shown(monitor)
    key = f"{prefix}{monitor.name}"
    blocks: list[Block] = [_figure(one, key, first=one is figures[0]) for one in figures]
    return FoldBlock(
        key=key,
        title=figures[0].title if figures else numbers[0].measure.label.capitalize(),
        summary=figures[0].caption if figures else "",
        blocks=(_other_numbers(numbers, key), *blocks),
        record={one.name: one.value if math.isfinite(one.value) else None for one in numbers},
    )


def _other_numbers(numbers: list[Number], key: str) -> TableBlock:
    return TableBlock(
        key=f"{key}-numbers",
        caption="Numbers of the monitor",
        columns=(
            Column(head="number", align="left"),
            Column(head="what it means", align="left", room="much"),
            Column(head="value"),
        ),
        rows=tuple(
            TableRow((one.measure.label, one.measure.help, _number_cell(one.value)))
            for one in numbers
        ),
        detail="more",
    )


def _figure(figure: Figure, key: str, *, first: bool) -> TableBlock:
    """Return the table of a figure; the fold has title and caption of the first."""
    return TableBlock(
        key=f"{key}-{figure.id}",
        title="" if first else figure.title,
        caption=figure.title,
        columns=tuple(
            Column(head=name, align="right" if place else "left")
            for place, name in enumerate(figure.columns)
        ),
        rows=tuple(TableRow(tuple(map(_number_cell, row))) for row in figure.rows),
        note="" if first else figure.caption,
        detail="more",
    )


def _number_cell(value: str | float | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, int):
        return formats.count(value)
    return formats.significant(value, _DIGITS) if math.isfinite(value) else ""

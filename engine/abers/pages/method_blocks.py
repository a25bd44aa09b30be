"""The methods that p mixes: their weights, losses, the bound, and p outside its interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from abers.monitoring import MixtureMonitor, experts
from abers.monitoring.answers import formats
from abers.monitoring.event_time import is_date
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
from abers.pages.methods import CROSS, MIXTURE, methods_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers.monitoring import Expert
    from abers.pages.figures.data import SharesData
    from abers.pages.model_findings import ModelFindings

__all__ = ["against", "method_fold", "outside_notes"]

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

"""The document of a report on forecasts: one answer, about now, and everything behind it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from abers.monitoring.answers import formats
from abers.monitoring.binary import BinaryMonitor
from abers.monitoring.scores import PrequentialScores
from abers.pages.blocks import AnswersBlock, Document, TextBlock
from abers.pages.model_document import model_document
from abers.pages.models_table import ModelRow, models_blocks
from abers.pages.score_blocks import score_fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abers.monitoring.answers import Answers
    from abers.notebook.forecast_rows import Group
    from abers.notebook.weighted_forecasts import WeightedForecasts
    from abers.pages.blocks import Block

__all__ = ["forecast_document"]

_TITLE = "Forecasts"
_WHERE = "the rows with a label, sorted by time,"
_MOST_GROUPS = 20  # in a text; a page has all


class _ScoredForecasts(BinaryMonitor):
    """Scores of forecasts that nothing calibrates, and the answer about them."""

    def __init__(self, scores: PrequentialScores, answers: Answers) -> None:
        super().__init__(raw=True)
        self.raw = self.calibrated = scores
        self._answers = answers

    @property
    def mean_width(self) -> float:
        """Forecasts have no intervals."""
        return math.nan

    def scores(self) -> dict[str, PrequentialScores]:
        """Return the scores of the only view."""
        return {"raw": self.calibrated}

    def answers(self, zone: str = "UTC") -> Answers:
        """Return the answer, with dates in UTC."""
        del zone
        return self._answers


class _WeightedScores(_ScoredForecasts):
    """Scores by weight."""

    def __init__(
        self, scores: PrequentialScores, answers: Answers, weighted: WeightedForecasts
    ) -> None:
        super().__init__(scores, answers)
        self.raw, self._weighted = None, weighted

    def views(self) -> dict[str, dict[str, float]]:
        """Return the scores by weight."""
        names = ("log_loss", "brier", "ece")
        return {"raw": {name: getattr(self._weighted, name) for name in names}}


def forecast_document(
    scores: PrequentialScores,
    answers: Answers,
    *,
    groups: Mapping[Group, Answers],
    notes: Sequence[str],
    weighted: WeightedForecasts | None = None,
) -> Document:
    """Return the document of a report.

    Parameters
    ----------
    scores, answers
        Of all forecasts.
    groups
        Answers by model, by segment, or by both.
    notes
        Sentences that a reader should know before all numbers.
    weighted
        The same forecasts by weight, if they have any.
    """
    document = model_document(_ScoredForecasts(scores, answers), title=_TITLE, where=_WHERE)
    blocks: Iterable[Block] = document.blocks
    labels = f"{formats.count(scores.count)} {'label' if scores.count == 1 else 'labels'}"
    facts = (labels, *document.facts)
    if weighted is not None:
        facts = (*facts, f"weights add up to {weighted.weight:,.6g}")
        monitor = _WeightedScores(scores, answers, weighted)
        blocks = (score_fold(monitor, None)[0] if one.key == "scores" else one for one in blocks)
    return Document(
        title=document.title,
        lead=document.lead,
        facts=facts,
        blocks=(
            *_blocks(blocks, _noted(notes), _table(groups)),
            *_scores(labels, scores if weighted is None else weighted),
        ),
    )


def _scores(labels: str, scores: PrequentialScores | WeightedForecasts) -> tuple[Block, ...]:
    """Return the scores of all labels as a text has them; a page has a fold of them."""
    if math.isnan(scores.brier):
        return ()
    losses = f"log loss {formats.loss(scores.log_loss)}" if math.isfinite(scores.log_loss) else ""
    infinite = losses or "the log loss is infinite"
    brier, ece = (formats.number(one, 4) for one in (scores.brier, scores.ece))
    by_weight = "" if isinstance(scores, PrequentialScores) else " by weight"
    words = f"{labels}{by_weight}: {infinite}, Brier score {brier}, ECE of ten bins {ece}."
    return (TextBlock(key="scores-text", words=words, place="text"),)


def _blocks(
    blocks: Iterable[Block], notes: Sequence[Block], table: Sequence[Block]
) -> Iterable[Block]:
    """Yield blocks, with notes and the table of groups behind the answer."""
    for one in blocks:
        yield one
        if isinstance(one, AnswersBlock):
            yield from notes
            yield from table


def _noted(notes: Sequence[str]) -> list[Block]:
    return [
        TextBlock(key=f"note-{place}", words=one, note=True) for place, one in enumerate(notes, 1)
    ]


def _table(groups: Mapping[Group, Answers]) -> tuple[Block, ...]:
    """Return the table of groups, sorted by harm; nothing without any."""
    if not groups:
        return ()
    rows = [_row(name, answers) for name, answers in groups.items()]
    return models_blocks(rows, name="group", most=_MOST_GROUPS, hint=" in .answers_by_group")


def _row(name: Any, answers: Answers) -> ModelRow:  # noqa: ANN401 - a name, or two
    model, segment = (name, "") if isinstance(name, str) else name
    return ModelRow(" ".join(model.split()), answers, " ".join(segment.split()))

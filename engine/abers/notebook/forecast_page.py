"""The document of a report on forecasts: one answer, about now, and everything behind it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.monitoring.answers import formats
from abers.monitoring.binary import BinaryMonitor
from abers.monitoring.multiclass import MultiClassMonitor
from abers.pages.blocks import AnswersBlock, Document, TextBlock
from abers.pages.model_document import model_document
from abers.pages.model_findings import ModelDetails
from abers.pages.models_table import ModelRow, models_blocks
from abers.pages.score_blocks import score_fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abers.monitoring.answers import Answers
    from abers.monitoring.multiclass import MultiClassScores
    from abers.monitoring.scores import PrequentialScores
    from abers.notebook.forecast_rows import Group
    from abers.pages.blocks import Block

__all__ = ["ScoreNumbers", "ScoredClasses", "ScoredForecasts", "forecast_document"]

_TITLE = "Forecasts"
_WHERE = "the rows with a label, sorted by time,"
_MOST_GROUPS = 20  # in a text; a page has all


class ScoreNumbers(NamedTuple):
    """The scores of all labels that a report names first."""

    log_loss: float
    brier: float
    ece: float


class _Uncalibrated:
    """A monitor of forecasts that nothing calibrates, with the answer about them.

    Attributes
    ----------
    known
        Scores that a text names, by weight if there are weights.
    """

    raw: Any
    calibrated: Any

    def __init__(
        self, scores: PrequentialScores | MultiClassScores, answers: Answers, known: ScoreNumbers
    ) -> None:
        super().__init__(raw=True)  # type: ignore[call-arg]
        self.raw = self.calibrated = scores
        self.known, self._answers = known, answers

    @property
    def mean_width(self) -> float:
        """Forecasts have no intervals."""
        return math.nan

    def scores(self) -> dict[str, Any]:
        """Return the scores of the only view."""
        return {"raw": self.calibrated}

    def answers(self, zone: str = "UTC") -> Answers:
        """Return the answer, with dates in UTC."""
        del zone
        return self._answers


class ScoredForecasts(_Uncalibrated, BinaryMonitor):
    """Scores of forecasts of two classes."""


class ScoredClasses(_Uncalibrated, MultiClassMonitor):
    """Scores of forecasts of several classes."""


class _WeightedScores(ScoredForecasts):
    """Scores by weight."""

    def __init__(self, of: ScoredForecasts | ScoredClasses) -> None:
        super().__init__(of.calibrated, of.answers(), of.known)
        self.raw = None

    def views(self) -> dict[str, dict[str, float]]:
        """Return the scores by weight."""
        return {"raw": self.known._asdict()}


def forecast_document(
    monitor: ScoredForecasts | ScoredClasses,
    *,
    groups: Mapping[Group, Answers],
    notes: Sequence[str],
    weight: float | None = None,
) -> Document:
    """Return the document of a report.

    Parameters
    ----------
    monitor
        Scores of all forecasts, and the answer about them.
    groups
        Answers by model, by segment, or by both.
    notes
        Sentences that a reader should know before all numbers.
    weight
        Sum of the weights, if there are any.
    """
    document = model_document(monitor, ModelDetails(where=_WHERE), title=_TITLE)
    blocks: Iterable[Block] = document.blocks
    labels = f"{formats.count(monitor.count)} {'label' if monitor.count == 1 else 'labels'}"
    facts = (labels, *document.facts)
    if weight is not None:
        facts = (*facts, f"weights add up to {weight:,.6g}")
        by_weight = _WeightedScores(monitor)
        blocks = (score_fold(by_weight, None)[0] if one.key == "scores" else one for one in blocks)
    return Document(
        title=document.title,
        lead=document.lead,
        facts=facts,
        blocks=(
            *_blocks(blocks, _noted(notes), _table(groups)),
            *_scores(labels if weight is None else f"{labels} by weight", monitor.known),
        ),
    )


def _scores(labels: str, known: ScoreNumbers) -> tuple[Block, ...]:
    """Return the scores of all labels as a text has them; a page has a fold of them."""
    if math.isnan(known.brier):
        return ()
    finite = math.isfinite(known.log_loss)
    loss = f"log loss {formats.loss(known.log_loss)}" if finite else "the log loss is infinite"
    brier, ece = (formats.number(one, 4) for one in (known.brier, known.ece))
    words = f"{labels}: {loss}, Brier score {brier}, ECE of ten bins {ece}."
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

"""Monitor of forecasts in arrays, and the report on all of them at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abers.arrays import unmasked
from abers.exceptions import TimeError
from abers.forecast_arrays import row_weights
from abers.monitoring.base import consistency_bands
from abers.monitoring.doubts import label_doubts, score_doubts
from abers.monitoring.findings import NOT_FOUND
from abers.monitoring.reliability_figure import reliability_figure
from abers.monitoring.scores import PrequentialScores
from abers.notebook.forecast_answers import ForecastAnswers
from abers.notebook.forecast_page import forecast_document
from abers.notebook.forecast_report import ForecastReport
from abers.notebook.forecast_rows import Group, forecast_rows, grouped, known_labels
from abers.notebook.weighted_forecasts import WeightedForecasts
from abers.saveable import CopiedWhole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from numpy.typing import ArrayLike

    from abers.monitoring.answers import Answers
    from abers.monitoring.base import Figure
    from abers.monitoring.verdict import Verdict
    from abers.notebook.forecast_rows import ForecastRows

__all__ = ["ForecastMonitor", "monitor", "report"]

_UNWEIGHTED = (
    "Weights are in the scores and in .plots(). Answers count each label once; they hold if "
    "neither a weight nor whether a row is there depends on the label."
)


class ForecastMonitor(CopiedWhole):
    """Answer and scores of forecasts that come one after the other; see `monitor`.

    Parameters
    ----------
    tolerance
        Ratio of odds within which forecasts are right, at least 1.

    Examples
    --------
    >>> import abers
    >>> watch = abers.monitor()
    >>> for y, p in [(0, 0.25), (1, 0.75), (0, 0.5), (0, 0.5)]:
    ...     watch.update(y, p)
    >>> watch
    ForecastMonitor: 4 labels, waiting, log loss 0.4904 nats
    >>> watch.report().brier
    0.15625
    """

    def __init__(self, tolerance: float = 1.25) -> None:
        self._answers = ForecastAnswers(tolerance)
        self._scores = PrequentialScores()
        self._timed: bool | None = None  # None before the first row

    @property
    def verdict(self) -> Verdict:
        """What all labels say since the fault that was found last."""
        return self._answers.verdicts.verdict()

    @property
    def answers(self) -> Answers:
        """Whether the forecasts tell the truth now; see `ForecastReport`."""
        return self._answers.answers()

    def update(self, y: ArrayLike, p: ArrayLike, time: ArrayLike | None = None) -> None:
        """Add labelled forecasts: one, or many in the order in which they were made.

        Parameters
        ----------
        y, p, time
            Numbers, or arrays of shape (n,), as in `report`. The times of one call are sorted; none
            of them may be before those of earlier calls.

        Raises
        ------
        LabelError, ScoreError, TimeError, ParameterError
            Names the value, its row and the remedy; nothing is added then.
        """
        when = None if time is None else _many(time)
        rows = forecast_rows(_many(y), _many(p), when, self._scores.count)
        if len(rows.labels):
            self._check_order(rows, timed=time is not None)
            self._timed = time is not None
            self._scores.update_many(rows.forecasts, rows.labels)
            self._answers.add(rows)

    def report(self) -> ForecastReport:
        """Return the report on all forecasts so far; later ones do not change it."""
        return _report(self._scores, self._answers)

    def _check_order(self, rows: ForecastRows, *, timed: bool) -> None:
        if self._timed is None:
            return
        if timed != self._timed:
            msg = (
                f"earlier forecasts came {'with' if self._timed else 'without'} a time; do so again"
            )
            raise TimeError(msg)
        last = self._answers.verdicts.until
        if rows.times[0] < last:
            msg = (
                f"row {rows.order[0]}: time {rows.times[0]} is before {last}, the last one of "
                "earlier calls; add forecasts in the order in which they were made"
            )
            raise TimeError(msg)

    def __repr__(self) -> str:
        """Return the number of labels, the answer and the log loss."""
        state, loss = self.answers["model"].state, self._scores.log_loss
        return f"ForecastMonitor: {self._scores.count:,} labels, {state}, log loss {loss:.4f} nats"


def monitor(*, tolerance: float = 1.25) -> ForecastMonitor:
    """Return a monitor of the forecasts of a loop.

    Parameters
    ----------
    tolerance
        Ratio of odds within which forecasts are right, at least 1.

    Raises
    ------
    ParameterError
        If the tolerance is not a number of at least 1.

    Examples
    --------
    >>> import abers
    >>> watch = abers.monitor()
    >>> watch.update(1, 0.75)
    >>> watch.update(y=[0, 0], p=[0.25, 0.5])
    >>> watch.verdict.labels
    3
    """
    return ForecastMonitor(tolerance)


def report(  # noqa: PLR0913 - the columns of a table
    y: ArrayLike,
    p: ArrayLike,
    time: ArrayLike | None = None,
    model: ArrayLike | None = None,
    segment: ArrayLike | None = None,
    *,
    weight: ArrayLike | None = None,
    tolerance: float = 1.25,
) -> ForecastReport:
    """Return what labels say about forecasts: an answer, numbers and figures.

    Parameters
    ----------
    y
        Array of shape (n,): labels, 0 or 1. None, NaN and other missing values are labels that are
        not known yet: their rows are counted, and not scored.
    p
        Array of shape (n,): probabilities of label 1, as they were forecast before the label.
    time
        Array of shape (n,): when each forecast was made, as datetimes, in milliseconds since 1970,
        or as other numbers. Rows are sorted by it; equal times keep their order. Without it rows
        are in the order in which forecasts were made, and their numbers are the times.
    model, segment
        Arrays of shape (n,): names by which there are answers besides that about all forecasts.
    weight
        Array of shape (n,): how much each row counts in the scores and in the diagram, 0 or more.
        Answers count each label once, but those of weight 0, which are left out.
    tolerance
        Ratio of odds within which forecasts are right, at least 1.

    Returns
    -------
    ForecastReport
        Shown by notebooks as a page, by `print` as text; `save` writes it.

    Raises
    ------
    LabelError, ScoreError, TimeError, WeightError, ParameterError
        Names the value that is wrong, its row and the remedy.

    Notes
    -----
    Columns are lists, numpy arrays, or columns of pandas, polars, pyarrow and other libraries that
    numpy can convert or that have the C interface of Arrow. Datetimes without a timezone are UTC.

    **Guarantee.** See `ForecastReport`. It needs the forecasts in the order in which they were
    made, so that no forecast depends on its own label or a later one. With weights it also needs
    that neither a weight nor whether a row is there depends on the label: where all labels that are
    1 were kept, and those that are 0 sampled, look at the scores and the diagram, and not at the
    answers.

    Examples
    --------
    >>> import numpy as np
    >>> import abers
    >>> rng = np.random.default_rng(1)
    >>> p = rng.beta(2, 5, 20_000)
    >>> labels = rng.random(20_000) < p**1.2
    >>> abers.report(labels, p).answers["model"].state
    'no'
    >>> abers.report(y=labels[:3], p=p[:3], model=["a", "b", "a"]).verdicts["a"].labels
    2
    """
    scores, answers = PrequentialScores(), ForecastAnswers(tolerance)
    labels, known = known_labels(y)
    rows = forecast_rows(labels, p, time, 0)
    weighted, counted = None, known[rows.order]
    if weight is not None and len(known):
        units = row_weights(weight, len(known))[rows.order]
        counted &= units > 0
        rows = rows.take(np.flatnonzero(counted))
        weighted = WeightedForecasts(rows, units[counted])
    else:
        rows = rows.take(np.flatnonzero(counted))
    groups = dict[Group, ForecastAnswers]()
    for name, part in grouped(rows, model, segment, len(known)).items():
        groups[name] = ForecastAnswers(tolerance)
        groups[name].add(part)
    scores.update_many(rows.forecasts, rows.labels)
    answers.add(rows)
    unlabelled = int((~known).sum())
    notes = (*_notes(unlabelled, weighted=weighted is not None),)
    found = _report(scores, answers, groups=groups, notes=notes, weighted=weighted)
    return replace(found, unlabelled=unlabelled)


def _report(
    scores: PrequentialScores,
    own: ForecastAnswers,
    *,
    groups: Mapping[Group, ForecastAnswers] | None = None,
    notes: Sequence[str] = (),
    weighted: WeightedForecasts | None = None,
) -> ForecastReport:
    """Return the report on forecasts, with the answers of groups, notes, and scores by weight."""
    verdict, answers, every = own.verdicts.verdict(), own.answers(), groups or {}
    needs = own.verdicts.label_needs() if verdict.status == NOT_FOUND else []
    by_group = {name: one.answers() for name, one in every.items()}
    said = (*notes, *label_doubts(scores), *score_doubts(scores))
    known = scores if weighted is None else weighted
    return ForecastReport(
        labels=scores.count,
        log_loss=known.log_loss,
        brier=known.brier,
        ece=known.ece,
        verdict=verdict,
        answers=answers,
        document=forecast_document(scores, answers, groups=by_group, notes=said, weighted=weighted),
        answers_by_group=by_group,
        verdicts={name: one.verdicts.verdict() for name, one in every.items()},
        needs=tuple(one for one in needs if one.more),
        figures=_figures(scores) if weighted is None else (weighted.figure(),),
        weight=None if weighted is None else weighted.weight,
        notes=said,
    )


def _figures(scores: PrequentialScores) -> tuple[Figure, ...]:
    if not scores.count:
        return ()
    views = {"forecasts": scores.reliability}
    return (reliability_figure(views, consistency_bands, "Reliability", "the label 1"),)


def _notes(unlabelled: int, *, weighted: bool) -> Iterator[str]:
    """Yield what a report leaves out of its answers."""
    if unlabelled:
        yield f"Rows without a label yet, which are not scored: {unlabelled:,}."
    if weighted:
        yield _UNWEIGHTED


def _many(value: ArrayLike) -> Any:  # noqa: ANN401 - what numpy can convert
    """Return an array, also of a single value."""
    given = unmasked(value)
    return [given] if np.ndim(given) == 0 else given

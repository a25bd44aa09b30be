"""The report on all forecasts at once, from arrays or from a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from abers.exceptions import ParameterError
from abers.frames import FrameColumns, usual_column
from abers.monitoring import ClassForecasts, MultiClassScores
from abers.monitoring.base import consistency_bands
from abers.monitoring.forecast_groups import NOT_FOUND
from abers.monitoring.probability import reliability_figure
from abers.monitoring.scores import PrequentialScores, label_doubts, score_doubts
from abers.notebook.forecast_report import (
    ClassAnswers,
    ForecastAnswers,
    ForecastReport,
    ScoredClasses,
    ScoredForecasts,
    ScoreNumbers,
    forecast_document,
)
from abers.notebook.forecast_rows import (
    Group,
    WeightedForecasts,
    class_rows,
    forecast_rows,
    grouped,
    known_labels,
)
from abers.validation import row_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike

    from abers.monitoring.base import Figure
    from abers.notebook.forecast_rows import ForecastRows

__all__ = ["ReportColumns", "report", "report_columns", "report_of_two"]

_USUAL = {"y": "label", "p": "score", "time": "time", "model": "model", "segment": "segment"}


class ReportColumns(NamedTuple):
    """The columns of a report, as a library has them.

    Attributes
    ----------
    y, p, time, model, segment, weight
        As in `report`, without names; `p` of several classes is a dict with a column for each.
    notes
        Which columns were found by their usual names.
    """

    y: Any
    p: Any
    time: Any
    model: Any
    segment: Any
    weight: Any
    notes: tuple[str, ...] = ()


def report_columns(data: object, **given: Any) -> ReportColumns:  # noqa: ANN401 - names or columns
    """Return the columns of a report: those that are named are taken from a table.

    Raises
    ------
    ParameterError
        If the table has no such column, if a name has no table, or if y or p is missing.

    Examples
    --------
    >>> table = {"prob": [0.25, 0.5], "label": [0, 1], "ts": [2, 1]}
    >>> named = dict.fromkeys(["y", "p", "time", "model", "segment", "weight"])
    >>> found = report_columns(table, **named)
    >>> found.y, found.p, found.time, found.notes
    ([0, 1], [0.25, 0.5], [2, 1], ('Columns: y = label, p = prob, time = ts.',))
    """
    if data is None:
        _require_arrays(given)
        return ReportColumns(**given)
    frame, notes = FrameColumns(data), list[str]()
    if given["y"] is None or given["p"] is None:
        given |= _found(frame, given)
        named = ", ".join(f"{field} = {name}" for field, name in _named(given))
        notes.append(f"Columns: {named}.")
    columns = {field: _column(frame, field, one) for field, one in given.items()}
    return ReportColumns(**columns, notes=(*notes,))


def _require_arrays(given: Mapping[str, Any]) -> None:
    """Raise a ParameterError unless there are labels and forecasts, and no names."""
    single = {field: one for field, one in given.items() if not isinstance(one, list | tuple)}
    for field, name in _named(single):  # a list of texts is no column that could be meant
        msg = f"{field} names the column {name!r}; pass its table in data, too"
        raise ParameterError(msg)
    if isinstance(given["y"], Mapping) or hasattr(given["y"], "columns"):
        msg = 'y is a table; pass it in data, as in report(data=frame, y="label", p="prob")'
        raise ParameterError(msg)
    for field in ("y", "p"):
        if given[field] is None:
            msg = f"{field} is missing; pass labels in y and forecasts in p, or a table in data"
            raise ParameterError(msg)


def _found(frame: FrameColumns, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns with a usual name of all fields that are not given."""
    named = {name for _, name in _named(given)}
    unnamed = [name for name in frame.names if name not in named]
    usual = {
        field: usual_column(of, unnamed) for field, of in _USUAL.items() if given[field] is None
    }
    for field in ("y", "p"):
        if field in usual and usual[field] is None:
            msg = f"no column has a usual name of {field}; name one of {', '.join(frame.names)}"
            raise ParameterError(msg)
    return {field: name for field, name in usual.items() if name is not None}


def _named(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names of columns, each behind the argument that it is in."""
    for field, one in given.items():
        if isinstance(one, str):
            yield field, one
        elif field == "p":
            for name in one.values() if isinstance(one, Mapping) else _listed(one):
                if isinstance(name, str):
                    yield field, name


def _listed(given: object) -> list[str]:
    """Return the names in a list of names; nothing of all else."""
    several = isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)
    return [*given] if several else []  # type: ignore[misc]


def _column(frame: FrameColumns, field: str, given: Any) -> Any:  # noqa: ANN401 - a name, or a column
    """Return the column that a name means; a dict of them for several classes."""
    if field == "p" and _listed(given):
        given = {name: name for name in given}
    if field == "p" and isinstance(given, Mapping):
        return {of: _column(frame, f"p[{of!r}]", one) for of, one in given.items()}
    return frame.column(given, field) if isinstance(given, str) else given


_UNWEIGHTED = (
    "Weights count in the scores and in .plots(). Answers count each label once; they are valid "
    "only if neither a weight nor the presence of a row depends on the label."
)

AnyAnswers: TypeAlias = "ForecastAnswers | ClassAnswers"


def report(  # noqa: PLR0913 - the columns of a table
    y: ArrayLike | str | None = None,
    p: ArrayLike | Mapping[Any, ArrayLike | str] | str | None = None,
    time: ArrayLike | str | None = None,
    model: ArrayLike | str | None = None,
    segment: ArrayLike | str | None = None,
    *,
    data: object = None,
    weight: ArrayLike | str | None = None,
    tolerance: float = 1.25,
) -> ForecastReport:
    """Return what labels say about forecasts: an answer, numbers and figures.

    Parameters
    ----------
    y
        Array of shape (n,): labels, 0 or 1. None, NaN and other missing values are labels that are
        not known yet: their rows are counted, but not scored.
    p
        Array of shape (n,): probabilities of label 1, as they were forecast before the label. For
        several classes a dict from each class to the column of its probabilities, or a list of
        columns of `data` with the names of the classes.
    time
        Array of shape (n,): when each forecast was made, as datetimes, in milliseconds since 1970,
        or as other numbers. Rows are sorted by it; equal times keep their order. Without it rows
        are in the order in which forecasts were made, and their numbers are the times.
    model, segment
        Arrays of shape (n,): names. Each model, segment, or pair of both, also has its own answer.
    data
        Table with columns that the other arguments may name: a data frame of pandas or polars, a
        table of Arrow, an object with its C stream interface, or a dict of columns. Without y or p,
        all columns without a name are found by their usual names, as `abers replay` finds those of
        a file; the notes say which.
    weight
        Array of shape (n,): how much each row counts in the scores and in the diagram, 0 or more.
        Answers count each label once, and leave out those of weight 0.
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
    made, so that no forecast depends on its own label or a later label. With weights, neither a
    weight nor the presence of a row may depend on the label. If you kept all rows with label 1, but
    sampled rows with label 0, read the scores and the diagram, not the answers.

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

    From a table, by the names of its columns:

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"late": labels, "prob": p, "carrier": ["AA", "UA"] * 10_000})
    >>> report = abers.report(data=frame, y="late", p="prob", segment="carrier")
    >>> {name: answers["model"].state for name, answers in report.answers_by_group.items()}
    {'AA': 'no', 'UA': 'no'}

    Several classes have a column each:

    >>> classes = {"low": 0.5 * p, "high": 0.5 * p, "none": 1 - p}
    >>> size = np.where(labels, "low", "none")
    >>> print(abers.report(size, classes).answers["model"].state)
    no
    """
    columns = report_columns(data, y=y, p=p, time=time, model=model, segment=segment, weight=weight)
    if isinstance(columns.p, Mapping):
        return _of_classes(columns, tolerance)
    shape: tuple[int, ...] = getattr(columns.p, "shape", ())
    if len(shape) > 1 and shape[1] not in {1, 2}:
        of_each = 'pass a dict from each class to its column, such as {"low": p[:, 0], ...}'
        msg = f"p has {shape[1]} columns; of several classes {of_each}"
        raise ParameterError(msg)
    return _of_two_classes(columns, tolerance)


def _of_two_classes(columns: ReportColumns, tolerance: float) -> ForecastReport:
    scores, answers = PrequentialScores(), ForecastAnswers(tolerance)
    labels, known = known_labels(columns.y)
    rows = forecast_rows(labels, columns.p, columns.time, 0)
    weighted, counted = None, known[rows.order]
    if columns.weight is not None and len(known):
        units = row_weights(columns.weight, len(known))[rows.order]
        counted &= units > 0
        rows = rows.take(np.flatnonzero(counted))
        weighted = WeightedForecasts(rows, units[counted])
    else:
        rows = rows.take(np.flatnonzero(counted))
    groups = _groups(rows, columns, len(known), lambda: ForecastAnswers(tolerance))
    scores.update_many(rows.forecasts, rows.labels)
    answers.add(rows)
    unlabelled = int((~known).sum())
    notes = (*columns.notes, *_notes(unlabelled, weighted=weighted is not None))
    found = report_of_two(scores, answers, groups=groups, notes=notes, weighted=weighted)
    return replace(found, unlabelled=unlabelled)


def _of_classes(columns: ReportColumns, tolerance: float) -> ForecastReport:
    if columns.weight is not None:
        msg = "weight is for two classes; leave it out where p has several"
        raise ParameterError(msg)
    names = [*map(str, columns.p)]
    rows, known = class_rows(columns.y, columns.p, columns.time)
    rows = rows.take(np.flatnonzero(known[rows.order]))
    answers = ClassAnswers(names, tolerance)
    answers.add(rows)
    forecasts = ClassForecasts(rows.forecasts, rows.labels.astype(np.int64))
    scores, first = MultiClassScores(), PrequentialScores()
    scores.update_many(*forecasts)
    first.update_many(forecasts.probabilities, forecasts.true)
    known_scores = ScoreNumbers(scores.log_loss, scores.brier, first.ece)
    unlabelled = int((~known).sum())
    found = _report(
        answers,
        ScoredClasses(scores, answers.answers(), known_scores),
        groups=_groups(rows, columns, len(known), lambda: ClassAnswers(names, tolerance)),
        notes=(*columns.notes, *_notes(unlabelled, weighted=False)),
    )
    words = (ScoredClasses.title, ScoredClasses.right)
    return replace(found, unlabelled=unlabelled, figures=_figures(scores, *words))


def _groups(
    rows: ForecastRows, columns: ReportColumns, length: int, begun: Callable[[], AnyAnswers]
) -> dict[Group, AnyAnswers]:
    """Return the answers of each model, of each segment, or of each pair of both."""
    found = dict[Group, AnyAnswers]()
    for name, part in grouped(rows, columns.model, columns.segment, length).items():
        found[name] = begun()
        found[name].add(part)
    return found


def report_of_two(
    scores: PrequentialScores,
    own: ForecastAnswers,
    *,
    groups: Mapping[Group, AnyAnswers] | None = None,
    notes: Sequence[str] = (),
    weighted: WeightedForecasts | None = None,
) -> ForecastReport:
    """Return the report on forecasts of two classes, with scores by weight if there are weights."""
    of = scores if weighted is None else weighted
    known = ScoreNumbers(of.log_loss, of.brier, of.ece)
    weight = None if weighted is None else weighted.weight
    found = _report(
        own,
        ScoredForecasts(scores, own.answers(), known),
        groups=groups or {},
        notes=(*notes, *label_doubts(scores), *score_doubts(scores)),
        weight=weight,
    )
    if weighted is not None:
        return replace(found, figures=(weighted.figure(),))
    return replace(found, figures=_figures(scores, "Reliability", "the label 1"))


def _report(
    own: AnyAnswers,
    monitor: ScoredForecasts | ScoredClasses,
    *,
    groups: Mapping[Group, AnyAnswers],
    notes: Sequence[str],
    weight: float | None = None,
) -> ForecastReport:
    """Return the report on forecasts, with the answers of groups and notes."""
    verdict = own.verdicts.verdict()
    needs = own.verdicts.label_needs() if verdict.status == NOT_FOUND else []
    by_group = {name: one.answers() for name, one in groups.items()}
    document = forecast_document(monitor, groups=by_group, notes=notes, weight=weight)
    return ForecastReport(
        labels=monitor.count,
        **monitor.known._asdict(),
        verdict=verdict,
        answers=monitor.answers(),
        document=document,
        answers_by_group=by_group,
        verdicts={name: one.verdicts.verdict() for name, one in groups.items()},
        needs=tuple(one for one in needs if one.more),
        weight=weight,
        notes=(*notes,),
    )


def _figures(
    scores: PrequentialScores | MultiClassScores, title: str, right: str
) -> tuple[Figure, ...]:
    if not scores.count:
        return ()
    views = {"forecasts": scores.reliability}
    return (reliability_figure(views, consistency_bands, title, right),)


def _notes(unlabelled: int, *, weighted: bool) -> Iterator[str]:
    """Yield what a report leaves out of its answers."""
    if unlabelled:
        yield f"Rows without a label yet, which are not scored: {unlabelled:,}."
    if weighted:
        yield _UNWEIGHTED

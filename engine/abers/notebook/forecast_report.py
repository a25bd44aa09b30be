"""Report on forecasts and their labels: answer, numbers and figures, as text, page or JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from abers.backends import core
from abers.exceptions import ParameterError
from abers.monitoring import CalibrationEProcess, ClassForecasts, formats
from abers.monitoring.answers import Sums, answers_of
from abers.monitoring.e_processes import LEARNS, PREDICTS, EProcessSteps
from abers.monitoring.measures import class_bets, class_outcomes
from abers.monitoring.probability import BinaryMonitor, MultiClassMonitor
from abers.monitoring.tested_view import VerdictSequence
from abers.monitoring.verdict import Words
from abers.pages.blocks import AnswersBlock, Document, TextBlock, record
from abers.pages.html import notebook, page
from abers.pages.method_blocks import score_fold
from abers.pages.model_document import model_document
from abers.pages.model_findings import ModelDetails
from abers.pages.models_table import ModelRow, models_blocks
from abers.pages.text import text
from abers.serialization import CopiedWhole
from abers.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    from abers._core import AnswerSums
    from abers.monitoring import Figure, LabelNeed, Verdict
    from abers.monitoring.answers import Answers
    from abers.monitoring.probability import MultiClassScores
    from abers.monitoring.scores import PrequentialScores
    from abers.notebook.forecast_rows import ForecastRows, Group
    from abers.pages.blocks import Block
    from abers.plotting import Figure as PlotlyFigure

__all__ = [
    "WARM_UP",
    "ClassAnswers",
    "ForecastAnswers",
    "ForecastReport",
    "ScoreNumbers",
    "ScoredClasses",
    "ScoredForecasts",
    "answer_about_model",
    "forecast_document",
]

WARM_UP = 50
"""Number of the first forecasts, which fix the groups of the first answers and are in no number."""

_WORDS = Words("forecasts")


def answer_about_model(sums: Sums) -> Answers:
    """Return the answers without those that need a calibrator."""
    found = answers_of([sums])
    return replace(found, answers=[found["model"]])


class ForecastAnswers(CopiedWhole):
    """The first of the three answers, about forecasts that nothing calibrates.

    Parameters
    ----------
    tolerance
        Ratio of odds within which forecasts are right, at least 1.

    Attributes
    ----------
    verdicts
        `VerdictSequence` of the same forecasts; the answer names its incidents.
    """

    def __init__(self, tolerance: float) -> None:
        self.verdicts = VerdictSequence("raw", tolerance, words=_WORDS)
        self._tolerance, self._count = tolerance, 0
        self._sums = self._empty()

    def _empty(self) -> AnswerSums:
        made: AnswerSums = core.AnswerSums(self._tolerance, 1)
        return made

    def add(self, rows: ForecastRows) -> None:
        """Add forecasts with their labels, in the order of time."""
        self.verdicts.add(rows.forecasts, rows.labels, rows.times)
        first, n = self._count, len(rows.labels)
        begin, p = max(min(WARM_UP - first, n), 0), rows.forecasts
        self._sums.skip(p[:begin], p[:begin])
        numbers = np.arange(first + begin, first + n)
        counted = (p[begin:], p[begin:], rows.labels[begin:], numbers, rows.times[begin:])
        self._sums.add(*counted)
        self._count += n

    def answers(self) -> Answers:
        """Return the answer, with all that it is made of."""
        sequence = self.verdicts
        sums = Sums(
            now=self._sums.now(),
            whole=self._sums.whole(),
            trail=self._sums.trail(),
            warm_up=self._sums.skipped,
            came=self._count,
            grace_period=WARM_UP,
            views=["raw"],
            incidents={} if sequence.began is None else {"raw": sequence.began},
            parts=(),
            tolerance=self._tolerance,
        )
        return answer_about_model(sums)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle and copy all attributes; sums of the core by their state."""
        return {**vars(self), "_sums": self._sums.save()}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Restore all attributes."""
        sums = saved.pop("_sums")
        vars(self).update(saved)
        self._sums = self._empty()
        self._sums.load(sums)


class ClassAnswers:
    """The first of the three answers, about forecasts of several classes, and about each class.

    Parameters
    ----------
    classes
        Names of the classes, in the order of the columns of forecasts.
    tolerance
        Ratio of odds within which forecasts are right, at least 1.
    """

    def __init__(self, classes: Sequence[str], tolerance: float) -> None:
        self._process = CalibrationEProcess(
            ("raw",),
            tolerance=tolerance,
            grace_period=WARM_UP,
            outcome="right top classes",
            of="of the top class",
            classes=classes,
            multiclass=True,
        )

    @property
    def verdicts(self) -> VerdictSequence:
        """Verdicts on the first choice; the answer names their incidents."""
        return self._process.verdicts[0]

    def add(self, rows: ForecastRows) -> None:
        """Add all forecasts with their labels, in the order of time; each label comes at once."""
        n = len(rows.labels)
        found = ClassForecasts(rows.forecasts, rows.labels.astype(np.int64))
        both = (class_bets([rows.forecasts], each=True), class_outcomes([found], each=True))
        kinds = np.tile(np.array([PREDICTS, LEARNS], np.uint8), n)
        numbers, times = np.repeat(np.arange(n), 2), np.repeat(rows.times, 2)
        values = np.stack(both, axis=1).reshape(2 * n, both[0].shape[1])
        self._process.run(EProcessSteps(kinds, numbers, times, values))

    def answers(self) -> Answers:
        """Return the answer, with all that it is made of."""
        return answer_about_model(self._process.answer_sums())


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


@dataclass(frozen=True, repr=False)
class ForecastReport:
    """What labels say about forecasts.

    Attributes
    ----------
    labels
        Number of labels.
    log_loss
        Mean negative log probability of the label, in nats; infinite if a label had probability 0.
    brier
        Mean squared distance of forecast and label.
    ece
        Expected calibration error over ten bins of equal width.
    verdict
        The verdict on all labels since the last fault; see `abers.monitoring.Verdict`.
    answers
        Whether the forecasts tell the truth now; see `abers.monitoring.answers.Answers`. The first
        50 forecasts fix its groups, and do not count.
    document
        What text, page and notebook show; see `abers.pages.blocks`.
    answers_by_group, verdicts
        The same of each model, of each segment, or by (model, segment) where both are known.
    needs
        About how many more labels decide, while the verdict finds nothing.
    figures
        `abers.monitoring.Figure` objects; `plots` draws them.
    weight
        Sum of the weights of scores and figures; None without weights.
    unlabelled
        Number of rows without a label.
    notes
        Sentences about columns that may not be what they seem, and about rows without a label.

    Notes
    -----
    **Guarantee.** In a window of the latest labels the probability that any range ever misses the
    truth is at most 5 %, however often you read it; see `abers.monitoring.answers.Answers`. A
    verdict is wrong with a probability of at most 5 %, for all time; see
    `abers.monitoring.VerdictSequence`. Each group has its own 5 %, so some of many groups may be
    wrong. Answers and verdicts count each label once, also with weights. They are then valid only
    if neither a weight nor the presence of a row depends on the label. Without labels all means are
    NaN.

    Examples
    --------
    >>> import abers
    >>> report = abers.report(y=[0, 1, 1, 0], p=[0.25, 0.75, 0.5, 0.25])
    >>> report
    ForecastReport: 4 labels, waiting, log loss 0.3890 nats
    >>> report.brier, report.answers["model"].sentence
    (0.109375, '4 of 50 labels.')
    """

    labels: int
    log_loss: float
    brier: float
    ece: float
    verdict: Verdict
    answers: Answers
    document: Document
    answers_by_group: Mapping[Group, Answers] = field(default_factory=dict)
    verdicts: Mapping[Group, Verdict] = field(default_factory=dict)
    needs: tuple[LabelNeed, ...] = ()
    figures: tuple[Figure, ...] = ()
    weight: float | None = None
    unlabelled: int = 0
    notes: tuple[str, ...] = ()

    def plots(self) -> list[PlotlyFigure]:
        """Draw all figures that have enough labels, with plotly.

        Raises
        ------
        MissingExtraError
            If plotly is not installed.

        Examples
        --------
        >>> import abers
        >>> [one.layout.title.text for one in abers.report([0, 1] * 10, [0.4] * 20).plots()]
        ['Reliability']
        """
        from abers import plotting  # noqa: PLC0415 - figures are an optional extra

        return [
            getattr(plotting, one.kind)(**one.data, title=one.title)
            for one in self.figures
            if not one.missing
        ]

    def save(self, path: str | PathLike[str]) -> None:
        """Write a page that needs no network, or JSON, by the suffix.

        Parameters
        ----------
        path
            File, which is replaced; ".html" or ".json". In JSON a number that is not finite is
            null.

        Raises
        ------
        ParameterError
            If the suffix is another.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import abers, json, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "report.json")
        >>> abers.report([0, 1], [0.25, 0.75]).save(path)
        >>> json.loads(path.read_text())["brier"]
        0.0625
        """
        file = Path(path)
        encoders = {".html": self._page, ".json": self._json}
        if file.suffix not in encoders:
            msg = f"path={str(path)!r} must end in .html for a page, or in .json"
            raise ParameterError(msg)
        file.write_bytes(encoders[file.suffix]())

    def __str__(self) -> str:
        """Return the answer, promised and came over time, groups and notes, as text."""
        return text(self.document).rstrip("\n")

    def __repr__(self) -> str:
        """Return the number of labels, the answer and the log loss, in a line."""
        known = f", log loss {self.log_loss:.4f} nats" if self.labels else ""
        return f"ForecastReport: {self.labels:,} labels, {self.answers['model'].state}{known}"

    def _repr_html_(self) -> str:
        """Return the document for a notebook."""
        return notebook(self.document)

    def _page(self) -> bytes:
        """Return the document as a file."""
        return page(self.document).encode()

    def _json(self) -> bytes:
        """Return the report as JSON."""
        groups = [{"group": name, **_verdict(one)} for name, one in self.verdicts.items()]
        document = {
            "version": __version__,
            "labels": self.labels,
            "log_loss": self.log_loss,
            "brier": self.brier,
            "ece": self.ece,
            "verdict": _verdict(self.verdict),
            "verdicts": groups,
            "needs": [one._asdict() for one in self.needs],
            "weight": self.weight,
            "unlabelled": self.unlabelled,
            "notes": self.notes,
            "figures": [one._asdict() for one in self.figures],
            "record": record(self.document),
        }
        return msgspec.json.format(msgspec.json.encode(document), indent=1)


def _verdict(verdict: Verdict) -> dict[str, Any]:
    sizes = {"ratio": verdict.ratio._asdict(), "difference": verdict.difference._asdict()}
    return {
        "sentence": verdict.sentence,
        **verdict._asdict(),
        "words": verdict.words._asdict(),
        **sizes,
    }

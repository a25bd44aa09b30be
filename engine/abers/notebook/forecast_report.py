"""Report on forecasts and their labels: answer, numbers and figures, as text, page or JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from abers.exceptions import ParameterError
from abers.pages.blocks import record
from abers.pages.html import notebook, page
from abers.pages.text import text
from abers.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from abers.monitoring import Figure, LabelNeed, Verdict
    from abers.monitoring.answers import Answers
    from abers.notebook.forecast_rows import Group
    from abers.pages.blocks import Document
    from abers.plotting import Figure as PlotlyFigure

__all__ = ["ForecastReport"]


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

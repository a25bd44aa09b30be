"""Report on forecasts and their labels: verdict, numbers and figures, as text, page or JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from abers.exceptions import MissingExtraError, ParameterError
from abers.notebook.forecast_page import body, note, page, shown
from abers.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from abers.monitoring import Figure, LabelNeed, Verdict
    from abers.notebook.forecast_rows import Group
    from abers.plotting import Figure as PlotlyFigure

__all__ = ["ForecastReport"]

_MOST_GROUPS = 20  # in a text; a page has all


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
        Whether the forecasts can be trusted; see `abers.monitoring.Verdict`.
    verdicts
        The same of each model, of each segment, or by (model, segment) where both are known.
    needs
        How many labels allow which statement, roughly, while the verdict finds nothing.
    figures
        `abers.monitoring.Figure` objects; `plots` draws them.
    weight
        Sum of the weights, which the scores and the figures are by; None without weights.
    unlabelled
        Number of rows whose label is not known yet.
    notes
        Sentences about columns that may not be what they seem, and about rows without a label.

    Notes
    -----
    **Guarantee.** The verdict is wrong with a probability of at most 5 %, however often one reads
    it; see `abers.monitoring.VerdictSequence`. Each of `verdicts` has these 5 % by itself: of many
    groups some may be wrong. Verdicts count each label once, also with weights; then they need that
    neither a weight nor whether a row is there depends on the label. Without labels all means are
    NaN.

    Examples
    --------
    >>> import abers
    >>> report = abers.report(y=[0, 1, 1, 0], p=[0.25, 0.75, 0.5, 0.25])
    >>> report
    ForecastReport: 4 labels, no miscalibration found, log loss 0.3890 nats
    >>> report.brier, report.verdict.status
    (0.109375, 'no miscalibration found')
    """

    labels: int
    log_loss: float
    brier: float
    ece: float
    verdict: Verdict
    verdicts: Mapping[Group, Verdict] = field(default_factory=dict)
    needs: tuple[LabelNeed, ...] = ()
    figures: tuple[Figure, ...] = ()
    weight: float | None = None
    unlabelled: int = 0
    notes: tuple[str, ...] = ()

    @property
    def numbers(self) -> dict[str, str]:
        """Number of labels and the scores, by name, as they are shown; no scores without labels."""
        if not self.labels:
            return {"labels": "0"}
        weight = {} if self.weight is None else {"weight": f"{self.weight:,.6g}"}
        return {
            "labels": f"{self.labels:,}",
            **weight,
            "log loss": f"{self.log_loss:.4f} nats",
            "Brier score": f"{self.brier:.4f}",
            "ECE, 10 bins": f"{self.ece:.4f}",
        }

    def plots(self) -> list[PlotlyFigure]:
        """Draw all figures for which there are labels enough, with plotly.

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
        MissingExtraError
            If a page is wanted, and plotly is not installed.
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
        encoders = {".html": self._page, ".json": self._document}
        if file.suffix not in encoders:
            msg = f"path={str(path)!r} must end in .html for a page, or in .json"
            raise ParameterError(msg)
        file.write_bytes(encoders[file.suffix]())

    def __str__(self) -> str:
        """Return the verdict, the numbers, and notes, as text."""
        lines = [self.verdict.sentence]
        lines += [f"  {name:<13}{value}" for name, value in self.numbers.items()]
        groups = [*self.verdicts.items()]
        for name, one in groups[:_MOST_GROUPS]:
            lines.append(f"  {shown(name)}: {one.status} ({one.labels:,} labels)")
        if len(groups) > _MOST_GROUPS:
            lines.append(f"  and {len(groups) - _MOST_GROUPS:,} more in .verdicts")
        return "\n".join([*lines, *(one.sentence for one in self.needs), *self.notes])

    def __repr__(self) -> str:
        """Return the number of labels, the status and the log loss, in a line."""
        known = f", log loss {self.log_loss:.4f} nats" if self.labels else ""
        return f"ForecastReport: {self.labels:,} labels, {self.verdict.status}{known}"

    def _repr_html_(self) -> str:
        """Return the report for a notebook; plotly's own renderer draws the figures."""
        try:
            plots = [one._repr_html_() for one in self.plots()]
        except MissingExtraError as error:
            plots = [note(str(error))]
        return self._body(plots)

    def _page(self) -> bytes:
        """Return the report as a document, with plotly's script once, if there is a figure."""
        plots = [
            one.to_html(full_html=False, include_plotlyjs=not at, default_height=525)
            for at, one in enumerate(self.plots())
        ]
        return page(self._body(plots))

    def _body(self, plots: list[str]) -> str:
        return body(
            self.verdict,
            self.numbers,
            needs=self.needs,
            notes=self.notes,
            verdicts=self.verdicts,
            figures=self.figures,
            plots=plots,
        )

    def _document(self) -> bytes:
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

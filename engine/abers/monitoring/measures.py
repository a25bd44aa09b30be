"""Numbers of a monitor, and the words that every terminal, page and metric uses for them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Measure", "Number", "means"]


class Measure(NamedTuple):
    """Definition of a number.

    Attributes
    ----------
    name
        For machines, such as "log_loss".
    label
        Row of a table, such as "log loss". Empty if tables leave it out.
    unit
        For axes and metrics, such as "nats".
    help
        One sentence.
    brief
        Column of a narrow table; None for the label, empty if narrow tables leave it out.
    chart
        Heading of a figure over time; None for the label, empty for no figure.
    gauge
        Prometheus gauge; None for "abers_" and the name, empty if counters have the sums instead.
    finite
        Whether a mean leaves out infinite terms; otherwise one makes it infinite.

    Examples
    --------
    >>> coverage = Measure("coverage", "coverage of the {} % interval", "ratio", "Of {} %.")
    >>> coverage.at("90").name, coverage.at("90").label
    ('coverage_90', 'coverage of the 90 % interval')
    """

    name: str
    label: str
    unit: str
    help: str
    brief: str | None = None
    chart: str | None = None
    gauge: str | None = None
    finite: bool = False

    @property
    def metric(self) -> str:
        """Prometheus gauge; empty if counters have the sums instead."""
        return f"abers_{self.name}" if self.gauge is None else self.gauge

    def at(self, value: str) -> Measure:
        """Return the measure with a value in place of its braces."""
        return self._replace(
            name=f"{self.name}_{value}",
            label=self.label.format(value),
            help=self.help.format(value),
            brief=None if self.brief is None else self.brief.format(value),
            chart=None if self.chart is None else self.chart.format(value),
        )


class Number(NamedTuple):
    """A number with its definition.

    Attributes
    ----------
    measure
        Definition of the number.
    value
        NaN before the first label, if it is a mean.
    view
        "raw" or "calibrated"; empty where the number is not of one view of the forecasts.
    infinite
        Number of infinite terms; None where no term can be infinite.
    labels
        More labels of a metric, such as the name of a test.

    Examples
    --------
    >>> brier = Measure("brier", "Brier score", "squared error", "Mean squared error.")
    >>> one = Number(brier, 0.25, "calibrated")
    >>> one.name, one.label, one.unit, one.value
    ('brier', 'Brier score', 'squared error', 0.25)
    """

    measure: Measure
    value: float
    view: str = ""
    infinite: int | None = None
    labels: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """Name for machines."""
        return self.measure.name

    @property
    def label(self) -> str:
        """Row of a table; empty if tables leave it out."""
        return self.measure.label

    @property
    def unit(self) -> str:
        """Unit for axes and metrics."""
        return self.measure.unit

    @property
    def help(self) -> str:
        """Meaning, in one sentence."""
        return self.measure.help

    @property
    def brief(self) -> str:
        """Column of a narrow table; empty if narrow tables leave it out."""
        return self.measure.label if self.measure.brief is None else self.measure.brief

    @property
    def chart(self) -> str:
        """Heading of a figure over time; empty for no figure."""
        return self.measure.label if self.measure.chart is None else self.measure.chart

    @property
    def metric(self) -> str:
        """Prometheus gauge; empty if counters have the sums instead."""
        return self.measure.metric

    def to_dict(self) -> dict[str, Any]:
        """Return number and definition in JSON's types; a value that is not finite is None.

        Examples
        --------
        >>> Number(Measure("a", "A", "labels", "All."), math.nan).to_dict()["value"] is None
        True
        """
        return {
            "name": self.name,
            "value": self.value if math.isfinite(self.value) else None,
            "unit": self.unit,
            "label": self.label,
            "help": self.help,
            "view": self.view,
            "infinite": self.infinite,
            "labels": dict(self.labels),
        }


def means(numbers: Iterable[Number]) -> dict[str, float]:
    """Return the values of one view by name; after each mean its number of infinite terms, if any.

    Examples
    --------
    >>> loss = Measure("loss", "loss", "nats", "Mean loss.")
    >>> means([Number(loss, 0.5, infinite=2)])
    {'loss': 0.5, 'loss_infinite': 2}
    """
    found: dict[str, float] = {}
    for one in numbers:
        found[one.name] = one.value
        if one.infinite is not None:
            found[f"{one.name}_infinite"] = one.infinite
    return found

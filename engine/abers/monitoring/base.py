"""Contract of a monitor: additive state that names its own numbers and figures.

A monitor reads scored predictions and keeps sums. The terminal, the report, the live page and the
metrics show what `Monitor.summary` and `Monitor.figures` return, and know no monitor by its class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

from abers.monitoring.answer_numbers import VERDICTS, verdict_numbers
from abers.monitoring.answers import Answers, answers_of
from abers.monitoring.forecast_groups import NOT_FOUND
from abers.monitoring.measures import Number, means
from abers.monitoring.tested_view import VerdictSequence
from abers.monitoring.tests import TESTS, evidence_numbers, strongest
from abers.monitoring.verdict import LossDifference, verdict_parts
from abers.serialization import CopiedWhole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers.monitoring.corp import Bands, Diagram
    from abers.monitoring.e_processes import EProcess
    from abers.monitoring.forecast_groups import LabelNeed
    from abers.monitoring.measures import Measure, Mixture, ScoredRows, Tracker
    from abers.monitoring.tests import Evidence
    from abers.monitoring.verdict import Verdict, VerdictParts

    BandMaker: TypeAlias = Callable[[str, Diagram], Bands]

__all__ = [
    "BAND_LEVEL",
    "Figure",
    "Monitor",
    "TaskMonitor",
    "consistency_bands",
    "others_total",
    "verdicts_total",
]

BAND_LEVEL = 0.9
"""Level of the consistency bands around a reliability diagram."""

_BAND_POINTS = 64  # of a band: as many as a reader can tell apart


class Figure(NamedTuple):
    """A figure before anything draws it: JSON-serialisable data, and the words around it.

    Attributes
    ----------
    id
        Unique among the figures of a page, such as "reliability".
    title
        Heading.
    kind
        Name of the function of `abers.plotting` that draws it.
    data
        Arguments of that function other than the title: numbers, strings, lists and dicts.
    caption
        How to read it, in one or two sentences.
    columns, rows
        The same as a table. A cell is a string, a number to be formatted, or None.
    missing
        Number of labels that must come before the figure says anything; it is not drawn before.
    """

    id: str
    title: str
    kind: str
    data: Mapping[str, Any]
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]
    missing: int = 0


def consistency_bands(view: str, diagram: Diagram) -> Bands:
    """Return the bands of a reliability diagram, at few enough points to tell apart."""
    del view
    return diagram.coarser(_BAND_POINTS).bands(BAND_LEVEL)


class Monitor(CopiedWhole, ABC):
    """Additive state over scored predictions.

    Attributes
    ----------
    name
        Its name in a snapshot, which no other monitor of the task has.
    measures
        Definitions of all numbers that `summary` can return.

    Notes
    -----
    A subclass needs no arguments, unless it is the first monitor of a task. One line in
    `abers.monitoring.registry` makes it run in every stream of a task, and appear wherever numbers
    and figures are shown. In a stream that was saved without it, it begins empty.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from abers.monitoring import Measure, Monitor, Number, ScoredRows
    >>> class Labels(Monitor):
    ...     name = "label_sum"
    ...     measures = (Measure("label_sum", "sum of labels", "labels", "Sum of the labels."),)
    ...     def __init__(self, sum=0.0):
    ...         self.sum = sum
    ...     def update(self, scored):
    ...         self.sum += float(scored.labels.sum())
    ...     @classmethod
    ...     def total(cls, many):
    ...         return cls(math.fsum(one.sum for one in many))
    ...     def summary(self):
    ...         return [Number(self.measures[0], self.sum)]
    ...     def state(self):
    ...         return (self.sum,)
    ...     @classmethod
    ...     def restore(cls, state):
    ...         return cls(*state)
    >>> monitor = Labels()
    >>> monitor.update(ScoredRows(np.array([0.0, 1.0, 1.0])))
    >>> [(one.name, one.value, one.metric) for one in monitor.summary()]
    [('label_sum', 2.0, 'abers_label_sum')]
    """

    name: ClassVar[str]
    measures: ClassVar[tuple[Measure, ...]] = ()

    @abstractmethod
    def update(self, scored: ScoredRows) -> None:
        """Add labelled predictions, in their order: a row each."""

    @classmethod
    @abstractmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Add up monitors of different predictions.

        There is at least one, and all have the same options. Counts are exact, and sums of
        floating-point numbers are the same on every version of Python, as those of `math.fsum`.
        """

    @abstractmethod
    def summary(self) -> list[Number]:
        """Return all numbers: always the same names, in the same order.

        Before the first label a mean is NaN.
        """

    def figures(self, bands: BandMaker = consistency_bands) -> list[Figure]:
        """Return all figures in the order in which to read them; none before the first label.

        Parameters
        ----------
        bands
            Function that makes the bands of the reliability diagram of a view. A page that is drawn
            every second passes a function that keeps them for a while.
        """
        del bands
        return []

    @abstractmethod
    def state(self) -> tuple[Any, ...]:
        """Return the state in numbers, lists, tuples and bytes: what `restore` takes."""

    @classmethod
    @abstractmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the monitor with a state that `state` returned.

        Raises
        ------
        ValueError
            If it is not the state of a monitor of this kind.
        """

    def watch(self, mixture: Mixture) -> None:
        """Read the mixture that makes the predictions, besides the predictions themselves."""

    def watch_tracker(self, tracker: Tracker) -> None:
        """Read the tracker that moves the intervals of predictions, besides the predictions."""

    def each(self) -> dict[str, Monitor]:
        """Return this monitor, and any that run with it, by name."""
        return {self.name: self}

    def totals(self) -> tuple[Any, ...]:
        """Return the state without what only figures need, which `restore` takes too.

        All numbers in it are sums over predictions, so that of a part of a stream is the
        `difference` of two.
        """
        return self.state()

    @classmethod
    def difference(cls, later: Sequence[Any], earlier: Sequence[Any]) -> tuple[Any, ...]:
        """Return the totals of the predictions between two totals of a stream."""
        return tuple(_difference(*pair) for pair in zip(later, earlier, strict=True))


def _difference(later: Any, earlier: Any) -> Any:  # noqa: ANN401 - numbers in lists and tuples
    if isinstance(later, list | tuple):
        return [_difference(*pair) for pair in zip(later, earlier, strict=True)]
    return None if later is None else later - earlier


def others_total(many: Sequence[TaskMonitor]) -> list[Monitor]:
    """Add up the other monitors of different predictions, and no scores."""
    columns = zip(*(one.others for one in many), strict=True)
    return [type(column[0]).total(column) for column in columns]


def verdicts_total(many: Sequence[TaskMonitor]) -> list[Number]:
    """Return the numbers of the verdicts on different predictions as one, and no scores."""
    processes = [process for one in many for process in one.e_processes]
    return verdict_numbers(_sequences(processes), _losses(processes))


def _sequences(processes: Sequence[EProcess]) -> list[VerdictSequence]:
    columns = zip(*(process.verdicts for process in processes), strict=True)
    return [many[0] if len(many) == 1 else VerdictSequence.total(many) for many in columns]


def _losses(processes: Sequence[EProcess]) -> LossDifference | None:
    known = [one.losses for one in processes if one.losses is not None]
    return LossDifference.total(known) if known else None


class TaskMonitor(Monitor):
    """First monitor of a task: scores of its predictions, with all other monitors and tests.

    Attributes
    ----------
    e_processes
        Tests against the predictions, one for each calibrator; empty without tests.
    others
        Other monitors of the same predictions.
    """

    measures: ClassVar[tuple[Measure, ...]] = (*TESTS, *VERDICTS)

    def __init__(self) -> None:
        self.e_processes: Sequence[EProcess] = ()
        self.others: list[Monitor] = []

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of predictions scored."""

    @property
    @abstractmethod
    def mean_width(self) -> float:
        """Mean width of the intervals; NaN before the first label."""

    @property
    def tests(self) -> tuple[Evidence, ...]:
        """Evidence of each test; of several calibrators the strongest."""
        return strongest([one.evidence() for one in self.e_processes])

    @property
    def verdicts(self) -> list[Verdict]:
        """Verdicts on the forecasts, those of the raw scores first; empty without tests."""
        sequences = _sequences(self.e_processes)
        return [one.verdict() for one in sequences if not one.words.part]

    @property
    def verdict_parts(self) -> list[VerdictParts]:
        """Verdicts on parts of the predictions, such as each class, by view and kind of part."""
        sequences = _sequences(self.e_processes)
        return verdict_parts([one.verdict() for one in sequences if one.words.part])

    @property
    def label_needs(self) -> dict[str, list[LabelNeed]]:
        """About how many labels allow which statement on the forecasts that are served.

        By what it is about; empty if something is established already, and without tests.
        """
        served = [one for one in _sequences(self.e_processes) if not one.words.part][-1:]
        return {
            one.words.subject: one.label_needs() for one in served if one.brief()[0] == NOT_FOUND
        }

    @property
    def losses(self) -> LossDifference | None:
        """What calibration saved or cost; None without raw scores to compare with."""
        return _losses(self.e_processes)

    def answers(self, zone: str = "UTC") -> Answers | None:
        """Return the three answers about the model; None without tests.

        Parameters
        ----------
        zone
            Zone of the dates in sentences.
        """
        sums = [one.answer_sums() for one in self.e_processes]
        return answers_of(sums, zone) if sums else None

    def views(self) -> dict[str, dict[str, float]]:
        """Return the numbers of each view, "raw" and "calibrated", by name.

        Numbers of other monitors without a view stand among those of "calibrated". Those with
        labels of their own, such as the weight of a method, are left out.
        """
        unlabelled = [one for one in self.numbers_beside() if not one.labels]
        beside = [one._replace(view=one.view or "calibrated") for one in unlabelled]
        numbers = [one for one in (*self._numbers(), *beside) if one.view]
        views = dict.fromkeys(one.view for one in numbers)
        return {view: means(one for one in numbers if one.view == view) for view in views}

    @property
    def has_raw_view(self) -> bool:
        """Whether the raw scores have numbers too."""
        return any(one.view == "raw" for one in self._numbers())

    def watch(self, mixture: Mixture) -> None:
        """Let the other monitors read the mixture that makes the predictions."""
        for other in self.others:
            other.watch(mixture)

    def watch_tracker(self, tracker: Tracker) -> None:
        """Let the other monitors read the tracker that moves the intervals."""
        for other in self.others:
            other.watch_tracker(tracker)

    def update(self, scored: ScoredRows) -> None:
        """Add labelled predictions, in their order."""
        self._add(scored)
        for other in self.others:
            other.update(scored)

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Add up monitors of different predictions; see `Monitor.total`."""
        whole = cls._total(many)
        whole.e_processes = [process for one in many for process in one.e_processes]
        whole.others = others_total(many)
        return whole

    def summary(self) -> list[Number]:
        """Return all numbers: scores, other monitors, tests."""
        beside = (*self.numbers_beside(), *evidence_numbers(self.tests))
        return [*self._numbers(), *beside, *verdicts_total([self])]

    def numbers_beside(self) -> list[Number]:
        """Return the numbers of the other monitors."""
        return [number for one in self.others for number in one.summary()]

    def figures(self, bands: BandMaker = consistency_bands) -> list[Figure]:
        """Return all figures; none before the first label."""
        if not self.count:
            return []
        beside = (figure for one in self.others for figure in one.figures(bands))
        return [*self._figures(bands), *beside]

    def each(self) -> dict[str, Monitor]:
        """Return the scores and the other monitors by name."""
        return {one.name: one for one in (self, *self.others)}

    def _figures(self, bands: BandMaker) -> list[Figure]:
        """Return the figures of the scores."""
        del bands
        return []

    @abstractmethod
    def _add(self, scored: ScoredRows) -> None:
        """Add predictions to the scores."""

    @classmethod
    @abstractmethod
    def _total(cls, many: Sequence[Self]) -> Self:
        """Add up the scores."""

    @abstractmethod
    def _numbers(self) -> list[Number]:
        """Return the numbers of the scores."""

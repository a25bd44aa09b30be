"""The contract of a task, and the rows of floats that a processor and its tasks exchange.

The processor moves rows of floats and does not interpret them. A task declares how many floats a
score and a prediction take, turns events into rows, rows into outputs, and settled predictions
into the rows that monitors score.

To add a task, subclass `Task`, and add a line to `abers.stream.tasks.registry`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from abers import registry
from abers.calibration.protected import LaneMixture
from abers.monitoring import CalibrationEProcess, task_monitor
from abers.serialization import require
from abers.stream.cells import objects
from abers.stream.outputs import Rows
from abers.stream.setting_rules import FORGETTING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from msgspec import Struct
    from numpy.typing import NDArray

    from abers._core import Model
    from abers.arrays import Bytes, Floats, Integers
    from abers.base import Calibrator
    from abers.mathematics import Forgetting
    from abers.monitoring import EProcess, Mixture, ScoredRows, TaskMonitor
    from abers.regression import CoverageTracker
    from abers.stream.cells import Column
    from abers.stream.columns import Events
    from abers.stream.settings import Settings

    AnyCalibrator = Calibrator[Any, Any, Any, Any]

__all__ = [
    "CalibrationSteps",
    "OneStep",
    "PredictionRows",
    "RowCalibrator",
    "SettledRows",
    "Task",
    "by_name",
    "dicts",
]


class SettledRows(NamedTuple):
    """Labelled predictions, a row each."""

    events: Events  # observation or label, whichever came last: both have the id and the model
    segments: Column  # of the observations
    label_times: Integers
    times: Integers  # event times of the observations
    rows: Floats  # score and prediction as issued, then any columns of `distribution_scores`
    values: Floats  # labels, as numbers of `Task.value`
    assumed: NDArray[np.bool_] | None = None  # labels that did not come; None without any
    late: NDArray[np.bool_] | None = None  # labels after assumed labels


def by_name(names: Sequence[str], rows: Floats) -> Column:
    """Return a dict of each row, from a name of each column to the value."""
    return objects([*map(dict, map(zip, repeat(names), rows.tolist()))])  # faster than a loop


def dicts(names: Sequence[str], row: Sequence[float]) -> list[dict[str, float]]:
    """Return a dict from name to value of each part of a row, which has a value for each name."""
    k = len(names)
    return [dict(zip(names, row[at : at + k], strict=True)) for at in range(0, len(row), k)]


_OPTIONS = (
    *(*FORGETTING, "folds", "classes", "max_classes", "refit"),
    *("grid", "support", "scores", "raw_weight", "base_weight", "members", "label_rates"),
)


class CalibrationSteps(NamedTuple):
    """Interleaved steps of one calibrator, a row a step."""

    kinds: Bytes  # 0 predicts, 1 learns, 3 expires
    scores: Floats  # of shape (n, `Task.score_width`)
    values: Floats  # labels, as numbers of `Task.value`; 0 for predictions
    times: Integers  # event times of the observations, in milliseconds
    numbers: Integers | None = None  # of the observations, if the task is stateful
    clocks: Integers | None = None  # of the model, if the task is stateful; `NO_CLOCK` for none yet

    def take(self, rows: Any) -> CalibrationSteps:  # noqa: ANN401 - an index of arrays
        """Return some of the rows."""
        columns: list[Any] = [None if one is None else one[rows] for one in self]
        return CalibrationSteps(*columns)


class OneStep(NamedTuple):
    """A step of one calibrator, as a row of `CalibrationSteps` says it."""

    kind: int
    score: Sequence[float]
    value: float
    time: int | None  # None where calibrators do not forget by it
    number: int | None  # None unless the task is stateful


class PredictionRows(NamedTuple):
    """Predictions, a row each."""

    rows: Floats  # of shape (n, `Task.prediction_width`); in outputs behind those of the score
    n_labels: Integers  # number of labels that the calibrator kept
    bands: Column | None = None  # predictive distributions; None in a task without them

    def take(self, rows: Any) -> PredictionRows:  # noqa: ANN401 - an index of arrays
        """Return some of the rows."""
        bands = None if self.bands is None else self.bands[rows]
        return PredictionRows(self.rows[rows], self.n_labels[rows], bands)


class RowCalibrator:
    """A calibrator as the processor runs it: rows of steps in, rows of predictions out.

    Parameters
    ----------
    task
        Makes the calibrator, and runs its steps.
    state
        State to go on with, if any.

    Raises
    ------
    ValueError
        If the state is of a calibrator with other options.
    """

    def __init__(self, task: Task, state: bytes | None = None) -> None:
        empty = task.make_calibrator()
        self._calibrator = empty if state is None else type(empty).from_bytes(state)
        self._task, self._predict = task, task.predict
        self._aging = empty.max_age is not None or empty.half_life is not None
        for name in _OPTIONS:
            same = _option(self._calibrator, name) == _option(empty, name)
            require(same, f"{name} of a calibrator")

    @property
    def tracker(self) -> CoverageTracker | None:
        """The tracker that moves the intervals of predictions, or None."""
        return None

    @property
    def mixture(self) -> Mixture | None:
        """The mixture of methods that makes the predictions, or None."""
        return cast("Mixture", self._calibrator) if self._task.mixed else None

    def run(self, steps: CalibrationSteps) -> PredictionRows:
        """Predict and learn, in order; rows of steps that learn have no meaning."""
        n_labels = np.empty(len(steps.kinds), np.int64)
        options: dict[str, Any] = {"times": steps.times if self._aging else None, "held": n_labels}
        if steps.numbers is not None:
            options["numbers"] = steps.numbers
        rows, bands = self._predict(self._calibrator, steps, options)
        return PredictionRows(rows, n_labels, bands)

    def step(
        self, kind: int, score: Sequence[float], value: float, time: int, number: int | None
    ) -> Sequence[float]:
        """Run one step as `run` does, and return the row of a prediction."""
        when = time if self._aging else None
        return self._task.step(self._calibrator, OneStep(kind, score, value, when, number))

    def __len__(self) -> int:
        """Return the number of labels kept."""
        return len(self._calibrator)

    def to_bytes(self) -> bytes:
        """Return the state in canonical form."""
        return self._calibrator.to_bytes()


def _option(calibrator: object, name: str) -> Any:  # noqa: ANN401 - anything it is
    value = getattr(calibrator, name, None)
    return tuple(value) if isinstance(value, list | tuple | np.ndarray) else value


class Task(ABC):
    """One kind of prediction.

    Parameters
    ----------
    settings
        Settings of the processor.

    Attributes
    ----------
    prediction, outcome
        Types of the outputs.
    merged
        Type of the calibrators that the core runs as sets by themselves; None without.
    score_width, prediction_width
        Number of floats of a score, and of a prediction, which has the probabilities or quantiles
        that are served.
    distributions
        Whether a prediction is a predictive distribution too.
    promised, tracked
        Whether a prediction has an interval of `coverage` too, and whether a tracker moves it.
    stateful
        Whether predictions change the state of a calibrator. Then observations have numbers, and
        calibrators learn what expires.
    mixed
        Whether a mixture of methods makes the predictions; its monitors are then there too.
    probabilities
        Whether scores are probabilities.
    has_raw_view
        Whether scores say probabilities, which are scored like the predictions.
    testing
        Options of e-processes.
    views
        Tested views: "raw" where scores say probabilities, "calibrated" unless scores are served.
    counted
        What labels count in a test of one probability, see `CalibrationEProcess`.
    tested
        What the tested probabilities are of.
    learn_after
        Milliseconds after observations at which labels teach; None if they have their own order.
    """

    prediction: type[Struct]
    outcome: type[Struct]
    merged: type[AnyCalibrator] | None = None
    score_width: int
    prediction_width: int
    distributions = False
    promised = tracked = False
    counted = "labels 1"
    tested = ""

    def __init__(self, settings: Settings) -> None:
        self._name = settings.task
        self.probabilities = settings.scores == "probability"
        self.has_raw_view = settings.has_raw_view
        self._kind = registry.find(settings.calibrator_name, settings.task)
        self.stateful = self._kind.capabilities.stateful or self._kind is self.merged
        self.mixed = issubclass(self._kind, LaneMixture)
        names = (*FORGETTING, *self._kind.capabilities.options)
        given = {name: getattr(settings, name) for name in names}
        self._options: dict[str, Any] = {n: one for n, one in given.items() if one is not None}
        options = ("tolerance", "average_run_length", "average_run_time", "cooldown")
        self.testing: dict[str, Any] = {
            name: getattr(settings, name) for name in (*options, "grace_period")
        }
        self.views = settings.views
        self.learn_after = settings.labels_after

    @property
    def repeats(self) -> bool:
        """Whether predictions are made again when a journal is replayed, instead of logged."""
        return self.distributions or self.stateful

    def awaiting_bytes(self) -> int:
        """Return the bytes that a calibrator keeps of an observation until its label comes."""
        return getattr(self.make_calibrator(), "awaiting_bytes", 0)

    # Input

    @abstractmethod
    def score(self, given: object, id_: str) -> float | Sequence[float]:
        """Return the score of the observation with this id as a row, or raise a ScoreError."""

    @abstractmethod
    def value(self, given: object) -> float:
        """Return a label as a number, or raise a LabelError."""

    @abstractmethod
    def columns(self, events: Events) -> tuple[Floats, Floats] | None:
        """Return `score` and `value` of all events of a batch; None if one is unusual.

        Labels have the score 0, observations the value 0.
        """

    @abstractmethod
    def label(self, value: float) -> Any:  # noqa: ANN401 - anything the labels of the task are
        """Return the label of a value."""

    def learner_args(self, value: float, id_: str) -> tuple[Any, ...]:
        """Return the arguments of `learner.learn` after the features."""
        del id_
        return (self.label(value),)

    # Checks of saved rows

    @abstractmethod
    def are_scores(self, rows: Floats) -> bool:
        """Return whether rows can be scores."""

    @abstractmethod
    def are_predictions(self, rows: Floats) -> bool:
        """Return whether rows can be predictions."""

    @abstractmethod
    def are_values(self, values: Floats) -> bool:
        """Return whether numbers can be values of labels."""

    # Calibrators, monitors and tests

    def make_calibrator(self) -> AnyCalibrator:
        """Return an empty calibrator, as the settings have it."""
        return self._kind(**self._options)

    @abstractmethod
    def predict(
        self, calibrator: AnyCalibrator, steps: CalibrationSteps, options: dict[str, Any]
    ) -> tuple[Floats, Column | None]:
        """Run steps, and return a row for each, and its predictive distribution if there are any.

        The options are those of `Calibrator.run`: times, where a calibrator forgets by time, an
        array for the numbers of labels kept, and numbers of observations.
        """

    def step(self, calibrator: AnyCalibrator, one: OneStep) -> Sequence[float]:
        """Run one step as `predict` does, and return the row of a prediction.

        A task that overrides it is faster.
        """
        options: dict[str, Any] = {"times": None if one.time is None else np.array([one.time])}
        if one.number is not None:
            options["numbers"] = np.array([one.number])
        columns: list[Any] = [np.array([each]) for each in (one.score, one.value, one.time or 0)]
        columns = [np.array([one.kind], np.uint8), *columns, options.get("numbers")]
        steps = CalibrationSteps(*columns)
        rows, _ = self.predict(calibrator, steps, options | {"held": np.empty(1, np.int64)})
        row: list[float] = rows[0].tolist()
        return row

    def calibrator(self, state: bytes | None = None) -> RowCalibrator:
        """Return an empty calibrator, or that with this state; a ValueError if it is not one."""
        return RowCalibrator(self, state)

    def native(self) -> tuple[Model, Forgetting] | None:
        """Return an empty model and its rule, if the core runs all calibrators in one call."""
        return None

    def monitor(self, states: Mapping[str, Sequence[Any]] | None = None) -> TaskMonitor:
        """Return an empty monitor, or one with states by name; a ValueError for another state.

        Unless overridden, a monitor of probabilities, and of the scores where these are some.
        """
        monitor = task_monitor(self._name, states, protected=self.mixed, raw=self.has_raw_view)
        require(not states or monitor.has_raw_view == self.has_raw_view, "views")
        return monitor

    @abstractmethod
    def scored_rows(self, rows: Floats, values: Floats) -> ScoredRows:
        """Return predictions and labels as monitors read them; both are as in `SettledRows`."""

    def e_process(self) -> EProcess:
        """Return an e-process against predictions; unless overridden, against one probability."""
        return CalibrationEProcess(self.views, outcome=self.counted, of=self.tested, **self.testing)

    @abstractmethod
    def bets(self, issued: Floats, scored: ScoredRows) -> tuple[Floats, Floats]:
        """Return the values of the steps of an e-process.

        Parameters
        ----------
        issued
            Predictions as they are issued, a row each: score and prediction.
        scored
            Labelled predictions.

        Returns
        -------
        forecasts, outcomes
            Arrays with a row for each prediction, and for each label.
        """

    # Output

    @abstractmethod
    def fields(self, rows: Floats) -> dict[str, Column]:
        """Return the columns of the output fields that rows of score and prediction have."""

    def field_values(self, row: Sequence[float]) -> Sequence[Any]:
        """Return the values of `fields` of one row."""
        return [one.tolist()[0] for one in self.fields(np.array([row])).values()]

    def prediction_extras(self, predicted: PredictionRows) -> dict[str, Column]:
        """Return the last fields of predictions, which not all predictions of the task have."""
        del predicted
        return {}

    def outcome_extras(self, settled: SettledRows) -> dict[str, Column]:
        """Return the last fields of outcomes, which not all outcomes of the task have."""
        del settled
        return {}

    def labels(self, values: Floats) -> Column:
        """Return the labels of values."""
        return objects([self.label(value) for value in values.tolist()])

    def predictions(self, events: Events, predicted: PredictionRows) -> Rows[Any]:
        """Return the predictions of observations; a row has score and prediction."""
        columns = {
            "id": events.ids,
            "time": events.times,
            "model": events.models,
            **self.fields(predicted.rows),
            "n_labels": predicted.n_labels,
            "segment": events.segments,
        }
        extras = self.prediction_extras(predicted)
        if events.extra is not None:
            columns["extra"] = events.extra
        elif extras:  # fields come in the order of the type
            columns["extra"] = np.full(len(events), None)
        return Rows(self.prediction, {**columns, **extras})

    def outcomes(self, settled: SettledRows) -> Rows[Any]:
        """Return the outcomes, a row each."""
        columns: dict[str, Any] = {
            "id": settled.events.ids,
            "time": settled.label_times,
            "model": settled.events.models,
            "prediction_time": settled.times,
            "label": self.labels(settled.values),
            **self.fields(settled.rows),
            "segment": settled.segments,
        }
        if settled.assumed is not None:
            columns |= {"assumed": settled.assumed, "late": settled.late}
        return Rows(self.outcome, {**columns, **self.outcome_extras(settled)})

"""The learners of a stream, one for each model, and the features that they are yet to learn.

A learner scores an observation when it is predicted, and learns its features when the label settles
it. Until then they wait here, by the slot of the prediction.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from abers import registry
from abers.learners import river_adapters
from abers.stream.events import DeadLetter, Label, Observation
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers.learners import Learner
    from abers.stream.events import Event
    from abers.stream.joined_batch import JoinedSteps
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import Task

__all__ = ["ModelLearners"]


class ModelLearners:
    """Learners of all models, and features of observations that wait for labels.

    Attributes
    ----------
    shared
        One learner for all models, instead of one for each as the settings name it.
    by_model
        The learner of each model.
    features
        Features by slot; None where nothing waits.
    """

    def __init__(self, settings: Settings, task: Task, shared: Learner | None) -> None:
        self._make, self._task = _maker(settings), task
        self.shared = shared
        self.by_model: dict[str, Learner] = {}
        self.features: list[dict[Any, Any] | None] = [None]

    def score(self, observation: Observation) -> Any:  # noqa: ANN401 - as the task has it
        """Return the score of an observation, which may yet be rejected."""
        learner = self.by_model.get(observation.model) if self.shared is None else self.shared
        if learner is None:
            learner = self._make()
        return learner.score(observation.x or {})

    def learn(
        self, row: int, event: Event, steps: JoinedSteps, slots: int
    ) -> Iterator[tuple[int, DeadLetter]]:
        """Store the features of predicted observations, and learn those of settled observations.

        The steps are those that a valid event in some row of the batch causes, and there are so
        many slots. Yield row and dead letter of what the learner failed to learn.
        """
        self.features += [None] * (slots - len(self.features))
        for learns, slot, time, value, assumed in zip(
            steps.learns.tolist(),
            steps.slots.tolist(),
            steps.label_times.tolist(),
            steps.values.tolist(),
            steps.assumed.tolist(),
            strict=True,
        ):
            if not learns:
                self._learner(event.model)  # of a valid observation the learner is kept
                self.features[slot] = event.x if type(event) is Observation else None
                continue
            x, self.features[slot] = self.features[slot], None
            id_ = event.id if assumed is None else assumed
            args = self._task.learner_args(value, id_)
            try:
                self._learner(event.model).learn(x or {}, *args)
            except Exception as error:  # noqa: BLE001 - anything a learner raises
                detail = (
                    f"the learner failed to learn {shown(id_)} ({shown(error)}); the "
                    "calibrator learned it; choose another learner, or repair the features"
                )
                label = Label(id_, time, event.model, self._task.label(value))
                own = row if assumed is None else None  # no record has an assumed label
                yield row, DeadLetter("learner-failed", detail, label, own)

    def drop(self, slots: Sequence[int]) -> None:
        """Drop the features in some slots."""
        for slot in slots:
            self.features[slot] = None

    def keep(self, slots: Sequence[int]) -> None:
        """Keep only the features in these slots, as those of slots 1, 2, ..."""
        self.features = [None, *(self.features[slot] for slot in slots)]

    def _learner(self, model: str) -> Learner:
        if self.shared is not None:
            return self.shared
        if model not in self.by_model:
            self.by_model[model] = self._make()
        return self.by_model[model]


def _maker(settings: Settings) -> Callable[[], Any]:
    """Return a function that makes the learner that settings name."""
    name = str(settings.learner)
    if settings.classes:
        return partial(river_adapters.make_multi, name, settings.classes)
    if settings.task == "regression":
        return partial(river_adapters.make_regressor, name)
    make = partial(river_adapters.make, name)
    if registry.capabilities(settings.calibrator_name, settings.task).score == "folds":
        return partial(river_adapters.RiverFolds, make, settings.folds)
    return make

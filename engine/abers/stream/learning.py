"""The learners of a stream, one for each model, and the features they are yet to learn.

Governing rule: a learner scores an observation when it is predicted, and learns
its features when the label settles it; they wait here, by the slot of the
prediction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers._shown import shown
from abers.stream.events import Observation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers.learners import Learner
    from abers.stream.answering import Taken
    from abers.stream.events import Event

__all__ = ["Learning"]


class Learning:
    """Learners and features.

    Parameters
    ----------
    make
        Makes a learner for a model.
    lesson
        What a learner is told of a label; see `Task.lesson`.
    given
        One learner for all models, in place of these.

    Attributes
    ----------
    features
        By slot; None where nothing waits.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        lesson: Callable[[float, str], tuple[Any, ...]],
        given: Learner | None,
    ) -> None:
        self._make, self._lesson = make, lesson
        self.given = given
        self.by_model: dict[str, Learner] = {}
        self.features: list[dict[Any, Any] | None] = [None]

    def score(self, observation: Observation) -> Any:  # noqa: ANN401 - as the task has it
        """Score an observation, which may yet be refused."""
        learner = self.by_model.get(observation.model) if self.given is None else self.given
        if learner is None:
            learner = self._make()
        return learner.score(observation.x or {})

    def learn(self, event: Event, taken: Taken, slots: int) -> Iterator[tuple[int, float, str]]:
        """Keep the features of what is predicted, learn those of what is settled.

        Parameters
        ----------
        event
            What came in.
        taken
            The steps it brings about.
        slots
            How many slots there are.

        Yields
        ------
        tuple
            Of a label that could not be learned: its time, its value, and why.
        """
        self.features += [None] * (slots - len(self.features))
        for learns, slot, told, value in zip(
            taken.learns.tolist(),
            taken.slots.tolist(),
            taken.told.tolist(),
            taken.values.tolist(),
            strict=True,
        ):
            if not learns:
                self._learner(event.model)  # the observation came in: its learner is kept
                self.features[slot] = event.x if type(event) is Observation else None
                continue
            x, self.features[slot] = self.features[slot], None
            try:
                self._learner(event.model).learn(x or {}, *self._lesson(value, event.id))
            except Exception as error:  # noqa: BLE001 - whatever a learner raises
                yield told, value, _sentence(event, error)

    def drop(self, slots: Sequence[int]) -> None:
        """Keep the features in some slots no longer."""
        for slot in slots:
            self.features[slot] = None

    def keep(self, slots: Sequence[int]) -> None:
        """Keep the features in these slots alone, as those of slots 1, 2, ..."""
        self.features = [None, *(self.features[slot] for slot in slots)]

    def _learner(self, model: str) -> Learner:
        if self.given is not None:
            return self.given
        if model not in self.by_model:
            self.by_model[model] = self._make()
        return self.by_model[model]


def _sentence(event: Event, error: Exception) -> str:
    return (
        f"the learner failed to learn {shown(event.id)} ({shown(error)}); the "
        "calibrator learned it; choose another learner, or repair the features"
    )

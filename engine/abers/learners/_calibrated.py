"""What all wrappers of river learners have in common: when is scored, and what is learned.

Governing rule: score at prediction time, pair at label time, never re-score. With an id the score
of the prediction waits for the label; without one nothing is kept, and learning scores the
features with the learner as it is before it learns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from river import base

from abers.learners._forwarding import Forwarding
from abers.learners._pending import Pending

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from abers.learners._pending import Waiting

__all__ = ["Calibrated"]

T = TypeVar("T")
Features = dict[Any, Any]  # a dict of names to values is no dict[Hashable, Any] to mypy


class Calibrated(base.Wrapper[Any]):
    """A learner of river with a calibrator beside it.

    Attributes
    ----------
    unmatched
        Number of labels whose id was not waiting: they taught the learner alone.
    """

    _calibrator: Any  # each wrapper has one of its own

    def _start(self, calibrator: object, max_pending: int) -> None:
        self._calibrator = calibrator
        self._pending = Pending(max_pending)
        self._forwarded = Forwarding(self._wrapped_model)
        self.unmatched = 0

    @property
    def dropped(self) -> int:
        """Number of ids that were dropped because more than `max_pending` waited."""
        return self._pending.dropped

    def learn_one(
        self,
        x: Features,
        y: Any,  # noqa: ANN401 - a class or a number
        *,
        w: float | None = None,
        id: Hashable | None = None,  # noqa: A002 - the field's word
        time: float | None = None,
        **kwargs: Any,  # noqa: ANN401 - whatever the learner takes
    ) -> None:
        """Learn one labelled observation: first the calibrator, then the learner.

        Parameters
        ----------
        x
            Its features.
        y
            Its label.
        w
            Its weight, positive, for the calibrator, and for the learner if it takes one.
        id
            The id under which it was predicted. The score of that prediction is learned. If the id
            is not waiting, the learner alone learns, and `unmatched` counts it.
        time
            Event time of the observation, with `max_age` or `half_life`; by default the one of the
            prediction under the id.
        **kwargs
            Handed on to the learner where its signature takes them.

        Raises
        ------
        LabelError, ScoreError, WeightError, TimeError
            If the label, the learner's score, the weight or the time cannot be used; then nothing
            is learned.
        """
        label = self._label(y)
        if id is None:
            waiting: Waiting | None = (self._score(x, kwargs), time)
        elif (waiting := self._pending.get(id)) is not None and waiting[1] is None:
            waiting = (waiting[0], time)
        weight = 1.0 if w is None else w
        given = kwargs if w is None else {"w": w, **kwargs}
        if given:
            given = self._forwarded("learn_one", given)
        self._learn(x, label, waiting, id, weight, given)
        if id is not None:
            self.unmatched += waiting is None
            self._pending.release(id)

    def _observe(
        self,
        x: Features,
        id_: Hashable | None,
        time: float | None,
        given: dict[str, Any],
        answer: Callable[[Any, float | None], T],
    ) -> T:
        """Score, answer, and with an id keep the score, unless the answer was a refusal."""
        if id_ is None:
            return answer(self._score(x, given), time)
        waiting = self._pending.get(id_)
        if waiting is not None:
            return answer(waiting[0], time)
        scores = self._score(x, given)
        answered = answer(scores, time)
        self._pending.keep(id_, (scores, time))
        return answered

    # What a wrapper brings

    def _label(self, y: Any) -> Any:  # noqa: ANN401 - a class or a number
        """Check a label, and return it as learner and calibrator shall have it."""
        raise NotImplementedError

    def _score(self, x: Features, given: dict[str, Any]) -> Any:  # noqa: ANN401 - the calibrator's
        """Let the learner score features."""
        raise NotImplementedError

    def _learn(  # noqa: PLR0913, PLR0917 - an observation and all that came with it
        self,
        x: Features,
        y: Any,  # noqa: ANN401 - a class or a number
        waiting: Waiting | None,
        id_: Hashable | None,  # noqa: ARG002 - it decides the fold, where there are folds
        weight: float,
        given: dict[str, Any],
    ) -> None:
        """Let the calibrator learn, which refuses what cannot be used, and then the learner."""
        if waiting is not None:
            scores, time = waiting
            self._calibrator.learn_one(scores, y, weight=weight, time=time)
        self._wrapped_model.learn_one(x, y, **given)

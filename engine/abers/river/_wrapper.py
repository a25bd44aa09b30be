"""The base class of the wrappers of river models.

A wrapper scores at prediction time, pairs score and label at label time, and never scores again.
With an id it keeps the score of the prediction until the label arrives, and a number under which a
protected calibrator keeps its own forecasts. Without an id it keeps nothing: `learn_one` scores the
features with the model as it is before it learns them.

The warning about labels that come late and without an id. Without an id, `learn_one` scores the
features with the model as it is by then. If labels come late, the calibrator so learns scores that
were never predicted.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from river import base
from river.compose import Pipeline

from abers import validation
from abers.base import Calibrator
from abers.exceptions import MissingIdWarning, ParameterError
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.mathematics import Capabilities

__all__ = [
    "CalibratedWrapper",
    "Features",
    "MethodKeywords",
    "MissingIdCheck",
    "PendingScore",
    "PendingScores",
    "require_model",
]

_Row: TypeAlias = dict[Any, Any]  # features
_MOST = 100  # predictions to compare with; the first late label comes for one of the oldest
_MESSAGE = (
    "a label came without id, and not for the last prediction: the calibrator learns the score of "
    "the features as the model scores them now, not the score that was predicted; pass the same "
    "id=… to the prediction and to learn_one (river's progressive_val_score passes {'id': i} as "
    "the third item of an event)"
)


class MissingIdCheck:
    """Predictions without an id since the last label, and whether the warning was issued.

    It warns once, at a label for features that were predicted, but not last. In a loop that
    predicts and learns each observation the features are those of the last prediction. Behind
    a transformer that learns, the features of a label differ from those of its prediction, so late
    labels may pass unnoticed. Copies and pickles leave the predictions out.
    """

    def __init__(self) -> None:
        self._first: list[_Row] = []
        self._last: _Row | None = None
        self._warned = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the predictions, which so have no effect on a saved wrapper."""
        return {"_first": [], "_last": None, "_warned": self._warned}

    def predicted(self, x: _Row) -> None:
        """Remember the features of a prediction without an id."""
        if self._warned or x is self._last:
            return
        if len(self._first) < _MOST:
            self._first.append(x)
        self._last = x

    def learned(self, x: _Row) -> None:
        """Warn if a label without an id is for an earlier prediction, and forget them all."""
        first, last = self._first, self._last
        if last is None:
            return
        self._first, self._last = [], None
        if not _same(x, last) and any(_same(x, each) for each in first):
            self._warned = True
            warnings.warn(_MESSAGE, MissingIdWarning, stacklevel=3)


def _same(x: _Row, other: _Row) -> bool:
    try:
        return x is other or bool(x == other)
    except ValueError:  # an array among the features, which has no truth value
        return False


_KINDS = {"classifier": base.Classifier, "regressor": base.Regressor}
_EXAMPLES = {
    "classifier": "linear_model.LogisticRegression()",
    "regressor": "linear_model.LinearRegression()",
}
_OTHER_WRAPPERS = {"classifier": "VennAbersRegressor", "regressor": "VennAbersClassifier"}
_SKLEARN_WRAPPERS = {
    "classifier": "VennAbersCalibratedClassifier",
    "regressor": "VennAbersCalibratedRegressor",
}


def require_model(model: Any, kind: Literal["classifier", "regressor"]) -> None:
    """Raise a ParameterError unless the model is a river model of a kind, or ends in one.

    Parameters
    ----------
    model
        What the wrapper got as the parameter that is named as the kind.
    kind
        "classifier" or "regressor".
    """
    last = model
    while isinstance(last, Pipeline) and last.steps:
        last = last[-1]
    empty = isinstance(last, Pipeline)  # river cannot ask for its class
    if not empty and isinstance(last, _KINDS[kind]):
        return
    ends = f" ends in {type(last).__name__}, which" if last is not model else ""
    msg = f"{kind}={_named(model)}{ends} is not a river {kind}; {_remedy(last, kind)}"
    raise ParameterError(msg)


def _named(model: Any) -> str:
    """Name a model by its class: river shows one in many lines."""
    if inspect.isclass(model):
        name: str = model.__name__
        return name
    return f"{type(model).__name__}(…)" if isinstance(model, base.Base) else shown(model)


def _remedy(last: Any, kind: str) -> str:
    if inspect.isclass(last):
        return f"pass an instance, {last.__name__}(…), not the class"
    if not isinstance(last, Pipeline) and isinstance(last, base.Classifier | base.Regressor):
        return f"use {_OTHER_WRAPPERS[kind]} for it, or pass a {kind}, such as {_EXAMPLES[kind]}"
    if callable(getattr(last, "fit", None)):
        return (
            f"use abers.sklearn.{_SKLEARN_WRAPPERS[kind]} for a scikit-learn model, or pass a "
            f"river model, such as {_EXAMPLES[kind]}"
        )
    return f"pass one, such as {_EXAMPLES[kind]}, or a pipeline that ends in one"


# ruff: noqa: ANN401 - scores, labels and keywords of any model


T = TypeVar("T")
Features = dict[Any, Any]  # mypy does not take a dict with keys of type str for dict[Hashable, Any]
PendingScore: TypeAlias = tuple[Any, float | None, int | None]
"""The scores of a prediction, as the calibrator takes them, its time, and its number if predictions
change the calibrator. A plain tuple, because making a NamedTuple costs as much as a look-up in the
calibrator."""
_METHODS = ("learn_one", "predict_one", "predict_proba_one", "learn_many", "predict_proba_many")


class PendingScores(dict[Hashable, PendingScore]):
    """Scores of at most `most` ids; one more drops the oldest, and `dropped` counts it."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = validation.count(most, "max_pending", 1)
        self.dropped = 0

    def keep(self, id_: Hashable, score: PendingScore) -> PendingScore | None:
        """Store the score of an id; return the score that was dropped for it."""
        dropped = None
        if len(self) >= self._most and id_ not in self:
            dropped = self.pop(next(iter(self)))
            self.dropped += 1
        self[id_] = score
        return dropped


class MethodKeywords:
    """The keywords that each method of a model takes, read once from its signatures."""

    def __init__(self, model: Any) -> None:
        self._model = _named(model)
        self._names = {method: _accepted_names(model, method) for method in _METHODS}
        self._known = {end: self._known_names(model, end) for end in ("one", "many")}

    def accepted(self, method: str, keywords: dict[str, Any]) -> dict[str, Any]:
        """Return the keywords that the method accepts.

        A ParameterError is raised for one that neither learning nor scoring takes.
        """
        names = self._names[method] if keywords else None
        if names is None:
            return keywords
        known = self._known[method.rpartition("_")[2]]
        if known is not None and not keywords.keys() <= known:
            unknown = min(keywords.keys() - known)
            msg = f"{unknown}= is no keyword of this method, nor of {self._model}; take it out"
            raise ParameterError(msg)
        return {name: value for name, value in keywords.items() if name in names}

    def _known_names(self, model: Any, end: str) -> frozenset[str] | None:
        """Return what learning and scoring take, and the weight; None if they take anything."""
        score = "predict_proba" if hasattr(model, f"predict_proba_{end}") else "predict"
        methods = [one for one in (f"learn_{end}", f"{score}_{end}") if hasattr(model, one)]
        named = [self._names.get(one) for one in methods]
        return None if None in named else frozenset(["w"]).union(*filter(None, named))


def _accepted_names(model: Any, method: str) -> frozenset[str] | None:
    """Return the keywords of a method, or None if it takes any or does not exist.

    A missing method fails at its call, with Python's own message.
    """
    if method.endswith("_many") and isinstance(model, Pipeline):
        model = model[-1]  # a pipeline passes all keywords of a mini-batch to its last step
    if not hasattr(model, method):
        return None
    parameters = inspect.signature(getattr(model, method)).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return frozenset(each.name for each in parameters)


class CalibratedWrapper(base.Wrapper[Any]):
    """A river model with a calibrator.

    Attributes
    ----------
    calibrator
        The calibrator that learns.
    unmatched
        Number of labels without a pending score of their id: only the model learned them.
    """

    _calibrator: Any  # each wrapper has its own kind
    _kind: str  # of the calibrators that fit, with an example
    _model_kind: Literal["classifier", "regressor"]  # also the name of the parameter
    window: int | None
    max_age: float | None
    half_life: float | None
    max_pending: int

    @staticmethod
    def _fits(able: Capabilities) -> bool:
        """Return whether a calibrator that can do so much fits the wrapper."""
        raise NotImplementedError

    def _choose(self, given: Any, default: Callable[[], Any]) -> None:
        """Check the model; use the calibrator that is given, or the default, without scores."""
        require_model(self._wrapped_model, self._model_kind)
        self._given = copy.deepcopy(given)  # for clones, as it was
        if given is not None:
            self._require_fitting(given)
        calibrator = default() if given is None else given
        self._calibrator = calibrator
        self._stateful = calibrator.capabilities.stateful
        self._next_number = 0
        self._pending = PendingScores(self.max_pending)
        self._forwarded = MethodKeywords(self._wrapped_model)
        self._missing_ids = MissingIdCheck()
        self.unmatched = 0

    def _require_fitting(self, given: Any) -> None:
        if not (isinstance(given, Calibrator) and self._fits(given.capabilities)):
            msg = f"calibrator={shown(given)} must be {self._kind}"
            raise ParameterError(msg)
        if (self.window, self.max_age, self.half_life) != (None, None, None):
            msg = "calibrator has its own rule of forgetting; leave out window, max_age, half_life"
            raise ParameterError(msg)
        if waiting := getattr(given, "awaiting", 0):
            msg = f"calibrator awaits labels (awaiting={waiting}); give one that awaits none"
            raise ParameterError(msg)

    def _get_params(self) -> dict[str, Any]:
        params = super()._get_params()  # type: ignore[misc]  # of the estimators that inherit this
        return {**params, "calibrator": self._given}

    @property
    def calibrator(self) -> Any:
        """The calibrator that learns."""
        return self._calibrator

    @property
    def dropped(self) -> int:
        """Number of ids that were dropped because more than `max_pending` were pending."""
        return self._pending.dropped

    def learn_one(
        self,
        x: Features,
        y: Any,
        *,
        w: float | None = None,
        id: Hashable | None = None,  # noqa: A002 - the field's word
        time: float | None = None,
        **kwargs: Any,
    ) -> None:
        """Learn one labelled observation: first the calibrator, then the model.

        Parameters
        ----------
        x
            Its features.
        y
            Its label.
        w
            Its weight, positive, for the calibrator, and for the model if it takes one.
        id
            The id under which it was predicted. The calibrator learns the score of that
            prediction. If the id has no pending score, only the model learns, and `unmatched`
            counts it.
        time
            Event time of the observation, with `max_age` or `half_life`; by default that of the
            prediction under the id.
        **kwargs
            Passed to the model where its signature takes them.

        Raises
        ------
        LabelError, ScoreError, WeightError, TimeError
            If the label, the model's score, the weight or the time is invalid; nothing is learned
            then.

        Warns
        -----
        MissingIdWarning
            Once, if a label without an id is for an earlier prediction than the last.
        """
        label = self._label(y)
        if id is None:
            waiting: PendingScore | None = (self._score(x, kwargs), time, None)
        elif (waiting := self._pending.get(id)) is not None and waiting[1] is None:
            waiting = (waiting[0], time, waiting[2])
        weight = 1.0 if w is None else w
        keywords = self._forwarded.accepted(
            "learn_one", kwargs if w is None else {"w": w, **kwargs}
        )
        self._learn(x, label, waiting, id, weight, keywords)
        if id is None:
            self._missing_ids.learned(x)
        else:
            self.unmatched += waiting is None
            self._pending.pop(id, None)

    def expire_one(self, id: Hashable) -> None:  # noqa: A002 - the field's word
        """Stop waiting for the label of an observation that was predicted with an id.

        Parameters
        ----------
        id
            The id; one without a pending score has no effect.
        """
        self._expire(self._pending.pop(id, None))

    def _expire(self, waiting: PendingScore | None) -> None:
        if waiting is not None and waiting[2] is not None:
            self._calibrator.expire_one(waiting[2])

    def _observe(
        self,
        x: Features,
        id_: Hashable | None,
        time: float | None,
        keywords: dict[str, Any],
        answer: Callable[[Any, float | None, int | None], T],
    ) -> T:
        """Score, answer, and with an id store the score if the answer raised no error."""
        if id_ is None:
            answered = answer(self._score(x, keywords), time, None)
            self._missing_ids.predicted(x)
            return answered
        waiting = self._pending.get(id_)
        if waiting is not None:
            return answer(waiting[0], time, waiting[2])
        scores = self._score(x, keywords)
        number = self._next_number if self._stateful else None
        answered = answer(scores, time, number)
        self._next_number += 1
        self._expire(self._pending.keep(id_, (scores, time, number)))
        return answered

    # Methods of the wrappers

    def _label(self, y: Any) -> Any:
        """Check a label, and return it as model and calibrator take it."""
        raise NotImplementedError

    def _score(self, x: Features, keywords: dict[str, Any]) -> Any:
        """Return the model's score of the features, as the calibrator takes it."""
        raise NotImplementedError

    def _learn(  # noqa: PLR0913, PLR0917 - an observation and its options
        self,
        x: Features,
        y: Any,
        waiting: PendingScore | None,
        id_: Hashable | None,  # noqa: ARG002 - decides the fold in a wrapper with folds
        weight: float,
        keywords: dict[str, Any],
    ) -> None:
        """Let the calibrator learn, which raises for invalid values, and then the model."""
        if waiting is not None:
            scores, time, number = waiting
            self._calibrator.learn_one(scores, y, weight=weight, time=time, number=number)
        self._wrapped_model.learn_one(x, y, **keywords)

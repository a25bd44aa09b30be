"""The learners of a stream, one for each model: what they are yet to learn, and how they are saved.

A learner scores an observation when it is predicted, and learns its features when the label settles
it. Until then they wait here, by the slot of the prediction.

Learners as bytes: a pickle under the key of a snapshot, or the format of skops. Loading a pickle
can run any code, so its writer must have had the key. skops creates objects of types that it or the
caller trusts, and runs no other code, so no key is needed.
"""

from __future__ import annotations

import pickle
from functools import partial
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from abers import registry
from abers.exceptions import MissingExtraError, ParameterError, StateError
from abers.learners import river_adapters
from abers.serialization import REMEDY, require
from abers.stream.component import Component, Layout, encode
from abers.stream.events import DeadLetter, Label, Observation
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers.arrays import Integers
    from abers.learners import Learner
    from abers.serialization import Piece
    from abers.stream.component import Cut
    from abers.stream.events import Event
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import Task
    from abers.stream.validation import JoinedSteps

    Learners = tuple[Learner | None, dict[str, Learner]]

__all__ = [
    "ModelLearners",
    "SavedLearners",
    "dump_learners",
    "load_learners",
    "read_learner",
    "require_protection",
]


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


_SKOPS_MAGIC = b"PK\x03\x04"  # of a zip file; a pickle begins with another byte
_OWN_TYPES = ("abers.learners.sklearn_adapters.SklearnClassifier",)
_METHODS = ("score", "learn")


class _LearnerLayout(Layout):
    """Learners: each goes with its model, and a learner that all models share to every part."""

    def __init__(self, trusted_types: Sequence[str] | None) -> None:
        self._trusted_types = trusted_types

    def split(self, payload: msgspec.Raw, cut: Cut) -> Iterator[bytes]:
        """Yield the learners of each part."""
        shared, by_model = self._read(payload)
        require(by_model.keys() <= {*chain(*cut.models)}, "learners")
        for models in cut.models:
            own = {model: by_model[model] for model in models if model in by_model}
            yield self._write((shared, own))

    def join(self, payloads: Sequence[msgspec.Raw], cut: Cut) -> bytes:
        """Return all learners; a StateError if those that are shared differ."""
        del cut
        several = [self._read(one) for one in payloads]
        if len({pickle.dumps(shared, protocol=5) for shared, _ in several}) > 1:
            msg = (
                "the models of these states share a learner, and it has learned from other events "
                "in each, so there is no learner for all of them; derive the state anew from all "
                "events, or name a learner in the settings, which gives each model its own"
            )
            raise StateError(msg)
        shared, _ = several[0]
        return self._write((shared, dict(chain(*(own.items() for _, own in several)))))

    def _read(self, payload: msgspec.Raw) -> Learners:
        return load_learners(msgspec.msgpack.decode(payload, type=bytes), self._trusted_types)

    def _write(self, learners: Learners) -> bytes:
        return msgspec.msgpack.encode(dump_learners(learners, self._trusted_types))


class SavedLearners(Component):
    """The learners; nothing of them is read before the seal and the settings are."""

    name = "learners"
    formats: ClassVar = {1: bytes}
    derived = True

    def __init__(self, learners: ModelLearners, trusted_types: Sequence[str] | None) -> None:
        self._learners, self._trusted_types = learners, trusted_types
        self.layout = _LearnerLayout(trusted_types)

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the learners."""
        del slots
        learners = self._learners.shared, self._learners.by_model
        return encode(dump_learners(learners, self._trusted_types))

    def _load(self, saved: bytes) -> None:
        self._learners.shared, self._learners.by_model = load_learners(saved, self._trusted_types)


def require_protection(key: bytes | None, trusted_types: Sequence[str] | None) -> None:
    """Raise a StateError if neither a key nor skops protects the reader of the learners."""
    if isinstance(trusted_types, str):
        msg = f"trusted_types={shown(trusted_types)} is one string; give a list of names"
        raise ParameterError(msg)
    if key is None and trusted_types is None:
        msg = (
            "the state of a learner is saved and loaded only under a secret key; give one (the "
            "command line reads ABERS_STATE_KEY), or trusted_types for the format of skops"
        )
        raise StateError(msg)


def dump_learners(learners: Learners, trusted_types: Sequence[str] | None) -> bytes:
    """Return learners as a pickle, or in the format of skops if types are given."""
    if trusted_types is None:
        return pickle.dumps(learners, protocol=5)
    skops = _skops()
    try:
        blob: bytes = skops.dumps(learners)
    except Exception as error:
        msg = f"skops cannot save the learners ({error}); leave trusted_types out, and give a key"
        raise StateError(msg) from error
    _require_trusted(skops.get_untrusted_types(data=blob), trusted_types)
    return blob


def load_learners(blob: bytes, trusted_types: Sequence[str] | None) -> Learners:
    """Load learners that `dump` saved with the same choice of format."""
    if not blob.startswith(_SKOPS_MAGIC):
        if trusted_types is None:
            return _from_pickle(blob)
        msg = (
            "the learners in the snapshot are no skops file but may be a pickle, which can run any "
            "code; leave trusted_types out if you trust those who have the key"
        )
        raise StateError(msg)
    if trusted_types is None:
        msg = "skops saved the learners in the snapshot; give trusted_types, such as []"
        raise StateError(msg)
    return _from_skops(blob, trusted_types)


def read_learner(blob: bytes, name: str) -> Learner:
    """Return the learner that skops saved in a file, such as a `SklearnClassifier`.

    A StateError is raised if there is no learner in it, or it has types that skops does not trust.
    """
    if not blob.startswith(_SKOPS_MAGIC):
        msg = f"{name} is no file of skops; save the learner by skops.io.dump"
        raise StateError(msg)
    learner: Learner
    what = f"{name}: the learner"
    learner, sound = _loaded(blob, (), lambda found: [found], what, "save it again")
    if not sound:
        msg = f"{name}: there is no learner in it; save a SklearnClassifier of abers by skops"
        raise StateError(msg)
    return learner


def _from_pickle(blob: bytes) -> Learners:
    try:
        shared, by_model = pickle.loads(blob)  # noqa: S301 - it was under the key
    except Exception as error:
        msg = (
            f"the learners in the snapshot cannot be loaded ({error}); did another version of "
            "river save them?"
        )
        raise StateError(msg) from error
    return shared, by_model


def _from_skops(blob: bytes, trusted_types: Sequence[str]) -> Learners:
    what = "the learners in the snapshot"
    learners, sound = _loaded(blob, trusted_types, _each, what, REMEDY)
    if not sound:
        msg = f"{what} have no methods score and learn; {REMEDY}"
        raise StateError(msg)
    shared, by_model = learners
    return shared, by_model


def _each(learners: Learners) -> list[object]:
    shared, by_model = learners
    return [*by_model.values(), *([] if shared is None else [shared])]


def _loaded(
    blob: bytes,
    trusted_types: Sequence[str],
    each: Callable[[Any], list[object]],
    what: str,
    remedy: str,
) -> tuple[Any, bool]:
    """Return what skops saved, and whether each object in it is a learner; errors name it."""
    skops = _skops()
    try:
        _require_trusted(skops.get_untrusted_types(data=blob), trusted_types)
        found = skops.loads(blob, trusted=[*_OWN_TYPES, *trusted_types])
        return found, all(map(_is_learner, each(found)))
    except StateError:
        raise
    except Exception as error:
        msg = f"{what} cannot be loaded ({shown(error)}); {remedy}"
        raise StateError(msg) from error


def _is_learner(found: object) -> bool:
    return all(callable(getattr(found, name, None)) for name in _METHODS)


def _require_trusted(unknown: Sequence[str], trusted_types: Sequence[str]) -> None:
    """Refuse types that nobody trusts, and river's, which skops saves only in part."""
    rivers = [name for name in unknown if name.startswith("river.")]
    if rivers:
        msg = (
            f"skops does not save all of the state of river's models ({rivers[0]}); leave "
            "trusted_types out, and give a key"
        )
        raise StateError(msg)
    untrusted = [name for name in unknown if name not in {*_OWN_TYPES, *trusted_types}]
    if untrusted:
        msg = (
            f"the learners have types that skops does not trust: {', '.join(untrusted)}; if you "
            "know that these may be created from the bytes, add their names to trusted_types"
        )
        raise StateError(msg)


def _skops() -> Any:  # noqa: ANN401 - a module
    try:
        return import_module("skops.io")
    except ModuleNotFoundError as error:
        msg = "trusted_types needs skops, which is not installed; run: pip install 'abers[skops]'"
        raise MissingExtraError(msg) from error

"""river's bundled binary streams, and river classifiers that score them.

Governing rule: river is imported when a stream or a learner is asked for, never
before, because that takes most of a second; and a replay can be repeated, so a
learner that draws numbers gets a fixed seed.
"""

# ruff: noqa: PLC0415 - the imports inside functions are the rule above

from __future__ import annotations

import importlib
import importlib.util
import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from abers.exceptions import MissingExtraError, ParameterError, RecordError
from abers_connectors._suggest import did_you_mean
from abers_connectors.records import Observation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from river.base import Classifier
    from river.compose import Pipeline
    from river.datasets.base import FileDataset

__all__ = ["LEARNERS", "BundledStream", "RiverLearner", "bundled_streams", "learner"]

LEARNERS = {
    "bayes": "river.naive_bayes.GaussianNB",
    "forest": "river.forest.ARFClassifier",
    "logistic": "river.linear_model.LogisticRegression",
    "tree": "river.tree.HoeffdingTreeClassifier",
}
"""Short names; any other river classifier goes by its full one."""

_SEED = 1


def _require_river() -> None:
    if importlib.util.find_spec("river") is None:
        msg = "river's streams and learners need river; install it: pip install 'abers[river]'"
        raise MissingExtraError(msg)


def bundled_streams() -> dict[str, FileDataset]:
    """Find river's streams with a binary label that ship inside it.

    Returns
    -------
    dict
        The datasets by name.

    Raises
    ------
    MissingExtraError
        If river is not installed.

    Examples
    --------
    >>> sorted(bundled_streams())
    ['Bananas', 'Phishing', 'Shuttle']
    """
    _require_river()
    from river import datasets
    from river.datasets import base

    def ships(kind: Any) -> bool:  # noqa: ANN401 - whatever the package exports
        file = inspect.isclass(kind) and issubclass(kind, base.FileDataset)
        return file and not issubclass(kind, base.RemoteDataset)

    exported = (getattr(datasets, name) for name in datasets.__all__)
    shipped = [kind() for kind in exported if ships(kind)]
    return {type(one).__name__: one for one in shipped if one.task == base.BINARY_CLF}


class BundledStream:
    """One of river's bundled streams; ids and times are the numbers of the observations.

    Parameters
    ----------
    name
        Its name in ``river.datasets``.

    Raises
    ------
    ParameterError
        If there is no such stream.
    MissingExtraError
        If river is not installed.

    Examples
    --------
    >>> first = next(iter(BundledStream("Bananas")))
    >>> first.id, first.label, first.x
    ('1', 0, {'1': 1.617466, '2': -0.919233})
    """

    def __init__(self, name: str) -> None:
        streams = bundled_streams()
        if name not in streams:
            msg = (
                f"{name}: no such stream; river's bundled binary streams are {', '.join(streams)}, "
                f"and a file ends in .csv, .jsonl or .ndjson{did_you_mean(name, streams)}"
            )
            raise ParameterError(msg)
        self.name = name
        self._dataset = streams[name]
        self._position = 0

    def __iter__(self) -> Iterator[Observation]:
        """Give the observations in their order."""
        for position, (x, y) in enumerate(self._dataset, start=1):
            self._position = position
            yield Observation(position, id=str(position), time=position, label=int(y), x=x)

    def where(self, position: int) -> str:
        """Name stream and observation."""
        return f"{self.name} observation {position}"

    def fraction(self) -> float:
        """Give the share of the observations that has been read."""
        total: int = self._dataset.n_samples
        return self._position / total


class RiverLearner:
    """A river classifier as the scorer of a replay.

    Parameters
    ----------
    classifier
        Any binary classifier, or a pipeline that ends in one.
    name
        What messages call it.

    Examples
    --------
    >>> from river.linear_model import LogisticRegression
    >>> scorer = RiverLearner(LogisticRegression(), "mine")
    >>> scorer.score(Observation(1, id="a", time=0, label=1, x={"amount": 3.0}))
    0.5
    """

    probabilities = True

    def __init__(self, classifier: Classifier | Pipeline, name: str) -> None:
        self._classifier = classifier
        self._name = name

    def score(self, observation: Observation) -> float:
        """Give the probability of label 1; 1/2 as long as the learner has seen no label."""
        with self._blamed(observation):
            probabilities = self._classifier.predict_proba_one(observation.x)
        if not probabilities:
            return 0.5
        # Rounding in a learner may go a little beyond 1; a NaN stays one, and is refused.
        return min(float(probabilities.get(True, 0.0)), 1.0)

    def learn(self, observation: Observation) -> None:
        """Learn features and label."""
        with self._blamed(observation):
            self._classifier.learn_one(observation.x, bool(observation.label))

    @contextmanager
    def _blamed(self, observation: Observation) -> Iterator[None]:
        """Turn whatever a learner raises, on features that it cannot use, into a sentence."""
        try:
            yield
        except Exception as error:
            msg = (
                f"--learner {self._name} failed at observation {observation.position} "
                f"({type(error).__name__}: {error}); choose another"
            )
            raise RecordError(msg) from error


def learner(name: str) -> RiverLearner:
    """Make a learner by name, behind a standard scaler.

    Parameters
    ----------
    name
        A key of `LEARNERS`, or the full name of a river classifier, which is made with its
        defaults.

    Returns
    -------
    RiverLearner
        The scorer.

    Raises
    ------
    ParameterError
        If there is no such classifier, or it needs arguments.
    MissingExtraError
        If river is not installed.
    """
    _require_river()
    from river.preprocessing import StandardScaler

    kind = _named(LEARNERS.get(name, name))
    if kind is None:
        msg = (
            f"--learner {name}: no such learner; short names are {', '.join(LEARNERS)}, and other "
            f"classifiers of river go by their full name, such as {LEARNERS['tree']}"
            f"{did_you_mean(name, LEARNERS)}"
        )
        raise ParameterError(msg)
    seed = {"seed": _SEED} if "seed" in inspect.signature(kind).parameters else {}
    try:
        classifier = kind(**seed)
    except Exception as error:
        msg = f"--learner {name} cannot be made with its defaults ({error}); choose another"
        raise ParameterError(msg) from error
    return RiverLearner(StandardScaler() | classifier, name)


def _named(path: str) -> type[Classifier] | None:
    """Find a classifier of river by its full name."""
    from river.base import Classifier

    module, _, attribute = path.rpartition(".")
    if not module.startswith("river."):
        return None
    try:
        kind = getattr(importlib.import_module(module), attribute, None)
    except ImportError:  # no such module, or one that needs a library of its own
        return None
    return kind if inspect.isclass(kind) and issubclass(kind, Classifier) else None

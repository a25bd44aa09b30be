"""Simulations of what is proved of Venn-Abers predictors, and of what fails for the simplified one.

The true probability is known, since it draws the labels; nothing is fitted to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.batch import SimplifiedVennAbers, TransductiveVennAbers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.papers.runner import Spec

    Floats = NDArray[np.float64]
    Labels = NDArray[np.uint8]

__all__ = ["PREDICTORS", "SCORERS", "simulate"]

PREDICTORS: dict[str, type[TransductiveVennAbers | SimplifiedVennAbers]] = {
    "VA": TransductiveVennAbers,
    "SVA": SimplifiedVennAbers,
}


def centres(objects: Floats, labels: Labels) -> Callable[[Floats], Floats]:
    """Score by the distances to the mean objects of the labels; 0 without one of them."""
    if len(np.unique(labels)) == 1:
        return np.zeros_like
    zero, one = objects[labels == 0].mean(), objects[labels == 1].mean()
    return lambda asked: np.asarray(np.abs(asked - zero) - np.abs(asked - one))


def by_heart(objects: Floats, labels: Labels) -> Callable[[Floats], Floats]:
    """Score training objects by their labels, and all others by 2: as in Proposition 2."""
    known = dict(zip(objects.tolist(), labels.tolist(), strict=True))
    return lambda asked: np.array([known.get(one, 2.0) for one in asked.tolist()])


SCORERS = {"nearer mean": centres, "by heart": by_heart}


def simulate(_: Path, spec: Spec) -> dict[str, Any]:
    """Draw bags of n objects and one more, and keep p0, p1 and the label of that one.

    Objects are uniform. With the first scorer label 1 has the probability of the object; with the
    second it is a fair coin.
    """
    rng = np.random.default_rng([spec["seed"], spec["n"]])
    found: dict[str, list[tuple[float, float, int]]] = {}
    for _run in range(spec["runs"]):
        objects, draws = rng.random((2, spec["n"] + 1))
        for name, scorer in SCORERS.items():
            labels = (draws < (0.5 if scorer is by_heart else objects)).astype(np.uint8)
            for kind, predictor in PREDICTORS.items():
                p0, p1 = predictor(scorer, objects[:-1], labels[:-1]).predict_one(objects[-1])
                found.setdefault(f"{kind}, {name}", []).append((p0, p1, int(labels[-1])))
    return found

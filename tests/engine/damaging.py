"""Saved calibrators with wrong content, and all that can be asked of what is loaded of them.

As of `tests.engine.stream.damage`. A calibrator may refuse what is asked of it as
a sound one does at its limits, with an InputError, and is then as it was.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from tests.engine.damage import damaged_blob

from abers import (
    BetaCalibration,
    CrossVennAbers,
    Isotonic,
    OneVsOne,
    OneVsRest,
    Platt,
    ProtectedCrossVennAbers,
    ProtectedMultiClass,
    Uncalibrated,
    VennAbers,
)
from abers.base import Calibrator
from abers.batch import (
    IVAR,
    BetaCDF,
    ConformalInterval,
    GPBeta,
    SelfCalibratingInterval,
    UnboundedIVAR,
    VennMulticalibration,
)
from abers.batch import QuantileCalibration as Quantile
from abers.calibration import DirectIsotonic, UncalibratedClasses
from abers.exceptions import (
    ForgettingError,
    LabelError,
    NotHeldError,
    StateError,
    WeightError,
)
from abers.regression import IVAPR, PredictiveDistribution

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

CLASSES = ("cat", "dog", "é")
SCORES = np.arange(24) * 7 % 20 / 20
LABELS = np.arange(24) % 3 % 2
TIMES = np.arange(24) * 10.0
N = len(SCORES)
PAIRS = np.stack([SCORES, SCORES + 0.5], axis=1)


def scores_of(i: int) -> dict[str, float]:
    """Return the scores of the classes."""
    share = float(SCORES[i])
    return {"cat": share, "dog": (1 - share) / 2, "é": (1 - share) / 2}


def members(one: VennMulticalibration) -> Any:  # noqa: ANN401
    """Return predictions with indicators of segments."""
    return np.column_stack([SCORES, *[LABELS] * one.segments])


def aged(one: Any) -> bool:  # noqa: ANN401
    """Return whether times are to be given."""
    return getattr(one, "max_age", None) is not None or getattr(one, "half_life", None) is not None


def feed(one: Any) -> None:  # noqa: ANN401
    """Let a calibrator learn, one observation at a time and many."""
    times = TIMES if aged(one) else None
    if isinstance(one, OneVsOne | OneVsRest | ProtectedMultiClass | UncalibratedClasses):
        rows = np.array([[*scores_of(i).values()] for i in range(N)])
        if one.classes == CLASSES:
            one.prequential(rows, [CLASSES[i % 3] for i in range(N)], times=times)
        for i in range(3):
            one.learn_one(scores_of(i), CLASSES[i], time=None if times is None else times[i])
    elif isinstance(one, CrossVennAbers | ProtectedCrossVennAbers):
        folds = np.arange(N) % one.folds
        table = np.column_stack([SCORES] * one.folds)
        one.learn_many(table, LABELS, folds=folds, times=times)
    elif isinstance(one, Quantile | BetaCDF):
        one.learn_many(SCORES)
        one.learn_one(0.5)
    elif isinstance(one, GPBeta):
        one.learn_many(SCORES, SCORES + 0.5, LABELS.astype(float))
    elif isinstance(one, IVAPR | IVAR | SelfCalibratingInterval | UnboundedIVAR):
        one.learn_many(SCORES, SCORES + 0.25 * LABELS, times=times)
    elif isinstance(one, ConformalInterval):
        one.learn_many(PAIRS, SCORES + 0.25 * LABELS, times=times)
    elif isinstance(one, VennMulticalibration):
        one.learn_many(members(one), SCORES + 0.25 * LABELS)
    else:
        one.prequential(SCORES, LABELS, delay=3, times=times)
        one.learn_many(SCORES, LABELS, times=times)


def scores_for(one: Any) -> Any:  # noqa: ANN401
    """Return scores of the kind that a calibrator takes."""
    if isinstance(one, VennMulticalibration):
        return members(one)
    return PAIRS if isinstance(one, ConformalInterval) else SCORES


def ask(one: Any) -> None:  # noqa: ANN401
    """Ask for all that a calibrator says."""
    assert repr(one)
    assert len(one) >= 0 if hasattr(one, "__len__") else True
    if isinstance(one, OneVsOne | OneVsRest | ProtectedMultiClass | UncalibratedClasses):
        for i in range(4):
            assert one.predict_one(scores_of(i)) is not None
    elif isinstance(one, CrossVennAbers | ProtectedCrossVennAbers):
        one.predict_many(np.column_stack([SCORES] * one.folds))
    elif isinstance(one, Quantile | BetaCDF):
        assert ((one.calibrated(SCORES) >= 0.0) & (one.calibrated(SCORES) <= 1.0)).all()
        one.distribution(PredictiveDistribution([0.0, 1.0], [0.1, 0.5, 0.9]))
    elif isinstance(one, GPBeta):
        one.cdf_many(SCORES, SCORES + 0.5, SCORES)
        one.quantiles_many(SCORES[:3], SCORES[:3] + 0.5, [0.1, 0.5])
    elif isinstance(one, IVAPR):
        one.quantiles_many(SCORES, [0.1, 0.5, 0.9])
        band = one.predict_one(0.4)
        assert (np.diff(band.cdf(band.thresholds)) >= 0.0).all()
    elif one.capabilities.answer in {"mean", "prediction interval"}:
        one.predict_many(scores_for(one))
    else:
        answers = np.column_stack(np.atleast_2d(one.predict_many(SCORES)))
        assert ((answers >= 0.0) & (answers <= 1.0)).all()
        if isinstance(one, VennAbers):
            one.hull()
            one.isotonic(0.4)


def use(one: Any) -> None:  # noqa: ANN401
    """Do with a calibrator all that there is to do."""
    kind: Any = type(one)
    assert kind.from_bytes(one.to_bytes()).to_bytes() == one.to_bytes()
    ask(one)
    try:
        feed(one)
        if isinstance(one, Calibrator) and one.capabilities.removal != "none":
            remove(one)
    except (WeightError, NotHeldError, ForgettingError, LabelError):
        pass  # its weights, or the bounds of its labels, are others now
    ask(one)
    assert kind.from_bytes(one.to_bytes()).to_bytes() == one.to_bytes()


def remove(one: Any) -> None:  # noqa: ANN401
    """Take back what was just learned."""
    if isinstance(one, OneVsOne | OneVsRest):
        one.remove_one(scores_of(0), CLASSES[0])
    elif isinstance(one, CrossVennAbers):
        one.remove_one([0.0] * one.folds, 0, fold=0)
    elif isinstance(one, ConformalInterval):
        one.remove_one([0.0, 0.5], 0.0)
    else:
        score = members(one)[0] if isinstance(one, VennMulticalibration) else 0.0
        one.remove_one(score, 0.0 if one.capabilities.task == "regression" else 0)


FORGETTING: dict[str, dict[str, Any]] = {
    "all": {},
    "window": {"window": 10},
    "age": {"max_age": 90.0},
    "half-life": {"half_life": 40.0},
}
MADE: dict[str, Callable[[], Any]] = {
    **{
        f"{kind.__name__}-{name}": partial(kind, **rule)
        for kind in (VennAbers, CrossVennAbers, ProtectedCrossVennAbers, Platt, IVAPR)
        for name, rule in FORGETTING.items()
    },
    **{
        kind.__name__: partial(kind, window=10)
        for kind in (Isotonic, DirectIsotonic, BetaCalibration)
    },
    "Uncalibrated": Uncalibrated,
    "UncalibratedClasses": lambda: UncalibratedClasses(CLASSES),
    "OneVsRest": lambda: OneVsRest(CLASSES),
    "OneVsRest-open": lambda: OneVsRest(window=10),
    "OneVsOne": lambda: OneVsOne(CLASSES, max_age=90.0),
    "OneVsOne-open": OneVsOne,
    "ProtectedMultiClass": lambda: ProtectedMultiClass(CLASSES),
    "ProtectedMultiClass-window": lambda: ProtectedMultiClass(CLASSES, window=10),
    "IVAPR-grid": lambda: IVAPR(grid=[0.25, 0.5, 0.75], support=(-1.0, 2.0)),
    "IVAR": lambda: IVAR(0.0, 2.0),
    "Conformal": lambda: ConformalInterval(0.8),
    "Conformal-window": lambda: ConformalInterval(0.8, "cqr", window=10),
    "SelfCalibrating": lambda: SelfCalibratingInterval(0.8),
    "IVAR-window": lambda: IVAR(0.0, 2.0, window=10),
    **{
        f"UnboundedIVAR-{name}": partial(UnboundedIVAR, **rule)
        for name, rule in FORGETTING.items()
        if "half_life" not in rule
    },
    "VennMulticalibration": lambda: VennMulticalibration(0.0, 2.0, 2),
    "VennMulticalibration-window": lambda: VennMulticalibration(0.0, 2.0, 2, window=10),
    "Quantile": Quantile,
    "Quantile-window": lambda: Quantile(window=10),
    "BetaCDF": lambda: BetaCDF(window=15),
    "GPBeta": lambda: GPBeta(window=20, inducing=3, steps=2),
}
"""How to make each kind that can be saved, and that forgets otherwise."""


@cache
def made(name: str) -> Any:  # noqa: ANN401
    """Return a calibrator that has learned, made once."""
    one = MADE[name]()
    feed(one)
    return one


def try_bytes(name: str, rng: random.Random) -> bool:
    """Load a damaged calibrator; whether it was refused. If not, use it."""
    one = made(name)
    blob = damaged_blob(one.to_bytes(), rng)
    try:
        restored = type(one).from_bytes(blob)
    except StateError:
        return True
    use(restored)
    return False

"""Masked arrays: what a mask hides is missing, and refused as NaN is, in every call on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abers.batch import (
    IVAR,
    BetaCDF,
    GPBeta,
    Mondrian,
    QuantileCalibration,
    SimplifiedVennAbers,
    TransductiveVennAbers,
    UnboundedIVAR,
    cvap,
)
from abers.calibration import (
    BetaCalibration,
    CrossVennAbers,
    DirectIsotonic,
    Isotonic,
    OneVsOne,
    OneVsRest,
    Platt,
    Uncalibrated,
    VennAbers,
)
from abers.exceptions import AbersError
from abers.monitoring import ExchangeabilityEProcess, PrequentialScores, Reliability, corp
from abers.regression import IVAPR, PredictiveDistribution
from abers.regression import scores as rules

if TYPE_CHECKING:
    from collections.abc import Callable

P = np.array([0.1, 0.4, 0.6, 0.9])
TABLE = np.array([[0.1, 0.2, 0.7], [0.2, 0.7, 0.1], [0.7, 0.1, 0.2], [0.3, 0.3, 0.4]])
TWO = np.array([0, 1, 0, 1])
THREE = np.array([2, 1, 0, 2])
ONES = np.ones(4)
UP = np.array([1.0, 2.0, 3.0, 4.0])
STEPS = np.array([1, 1, 0, 1], np.uint8)


def binary(make: Callable[..., Any]) -> dict[str, tuple[Callable[..., object], dict[str, Any]]]:
    """Name the calls of a binary calibrator."""
    name = make.__name__
    weights = {"weights": ONES} if make().capabilities.weights else {}
    given = {"scores": P, "labels": TWO, **weights}
    return {
        f"{name}.learn_many": (lambda **k: make().learn_many(**k), given),
        f"{name}.predict_many": (lambda **k: make().predict_many(**k), {"scores": P}),
        f"{name}.prequential": (lambda **k: make().prequential(**k), given),
        f"{name}.run": (lambda **k: make().run(**k), {"steps": STEPS, **given}),
    }


def class_forecasts(
    make: Callable[..., Any],
) -> dict[str, tuple[Callable[..., object], dict[str, Any]]]:
    """Name the calls of a calibrator of several classes."""
    given = {"scores": TABLE, "labels": THREE, "weights": ONES}
    name = make.__name__
    return {
        f"{name}.learn_many": (lambda **k: make(range(3)).learn_many(**k), given),
        f"{name}.predict_many": (lambda **k: make(range(3)).predict_many(**k), {"scores": TABLE}),
        f"{name}.prequential": (lambda **k: make(range(3)).prequential(**k), given),
        f"{name}.run": (lambda **k: make(range(3)).run(**k), {"steps": STEPS, **given}),
    }


def by_itself(_objects: Any, _labels: Any) -> Any:  # noqa: ANN401 - a scorer
    """Score an object by its only feature."""
    return lambda objects: np.asarray(objects)[:, 0]


FIT = {"scores": P, "labels": UP}
MOMENTS = {"mean": UP, "std": ONES, "y": P}
STEPPED = {"thresholds": UP[:3], "lower": P, "upper": P}
CALLS: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    **binary(VennAbers),
    **binary(Platt),
    **binary(BetaCalibration),
    **binary(Isotonic),
    **binary(DirectIsotonic),
    **binary(Uncalibrated),
    **class_forecasts(OneVsRest),
    **class_forecasts(OneVsOne),
    "times": (
        lambda **k: VennAbers(max_age=5.0).learn_many(**k),
        {"scores": P, "labels": TWO, "times": UP},
    ),
    "CrossVennAbers": (
        lambda **k: CrossVennAbers(3).learn_many(**k),
        {"scores": TABLE, "labels": TWO, "folds": TWO, "weights": ONES},
    ),
    "CrossVennAbers.predict_many": (
        lambda **k: CrossVennAbers(3).predict_many(**k),
        {"scores": TABLE},
    ),
    "Mondrian": (
        lambda **k: Mondrian(VennAbers).learn_many("abab", **k),
        {"scores": P, "labels": TWO, "weights": ONES},
    ),
    "cvap": (lambda **k: cvap([k["p"]], [k["labels"]], [k["q"]]), {"p": P, "labels": TWO, "q": P}),
    "IVAPR.learn_many": (lambda **k: IVAPR().learn_many(**k), {**FIT, "weights": ONES}),
    "IVAPR.predict_many": (lambda **k: IVAPR().predict_many(**k), {"scores": P}),
    "IVAPR.quantiles_many": (
        lambda **k: IVAPR().quantiles_many(**k),
        {"scores": P, "levels": P},
    ),
    "IVAPR.run": (
        lambda **k: IVAPR().run(**k),
        {"steps": STEPS, **FIT, "levels": P, "weights": ONES},
    ),
    "IVAPR": (IVAPR, {"grid": UP}),
    "IVAR": (lambda **k: IVAR(0.0, 9.0).learn_many(**k), FIT),
    "IVAR.predict_many": (lambda **k: IVAR(0.0, 9.0).predict_many(**k), {"scores": P}),
    "UnboundedIVAR": (lambda **k: UnboundedIVAR().learn_many(**k), FIT),
    "UnboundedIVAR.predict_many": (lambda **k: UnboundedIVAR().predict_many(**k), {"scores": P}),
    "BetaCDF": (lambda **k: BetaCDF().learn_many(**k), {"us": P}),
    "QuantileCalibration": (
        lambda **k: QuantileCalibration().learn_many(**k),
        {"us": P},
    ),
    "GPBeta": (lambda **k: GPBeta().learn_many(**k), MOMENTS),
    "PredictiveDistribution": (PredictiveDistribution, STEPPED),
    "crps_normal": (rules.crps_normal, MOMENTS),
    "log_score_normal": (rules.log_score_normal, MOMENTS),
    "squared_error": (rules.squared_error, {"prediction": P, "y": P}),
    "covered": (rules.covered, {"low": P, "high": UP, "y": P}),
    "pit_histogram": (rules.pit_histogram, {"pit": P}),
    "PrequentialScores": (
        lambda **k: PrequentialScores().update_many(**k),
        {"forecasts": P, "labels": TWO},
    ),
    "PrequentialScores, floats": (
        lambda **k: PrequentialScores().update_many(**k),
        {"forecasts": P, "labels": TWO.astype(float)},
    ),
    "Reliability": (
        lambda **k: Reliability().update_many(**k),
        {"forecasts": P, "labels": TWO},
    ),
    "corp": (corp, {"forecasts": P, "labels": TWO}),
    "ExchangeabilityEProcess": (lambda **k: ExchangeabilityEProcess().update(**k), {"scores": P}),
}
ARGUMENTS = [(call, name) for call, (_, given) in CALLS.items() for name in given]


def hidden(values: np.ndarray[Any, Any]) -> np.ma.MaskedArray[Any, Any]:
    """Hide a value; what is behind the mask is as good as the others."""
    mask = np.zeros(values.shape, bool)
    mask[1] = True
    return np.ma.array(values, mask=mask)


@pytest.mark.parametrize(("call", "name"), ARGUMENTS)
def test_what_is_masked_is_missing(call: str, name: str) -> None:
    """Each array of each call is refused where it hides a value, and taken where it hides none."""
    made, given = CALLS[call]
    made(**given)
    made(**given | {name: np.ma.array(given[name])})
    with pytest.raises((AbersError, ValueError)):
        made(**given | {name: hidden(given[name])})


def test_it_is_refused_as_a_missing_value_is() -> None:
    """The message names the row; a refused batch teaches nothing."""
    calibrator = VennAbers()
    with pytest.raises(AbersError, match="row 1: score nan is not a finite number"):
        calibrator.learn_many(hidden(P), TWO)
    assert len(calibrator) == 0


@pytest.mark.parametrize("kind", [TransductiveVennAbers, SimplifiedVennAbers])
def test_objects_are_nan_to_the_scorer(kind: type) -> None:
    """What a scorer is given in place of a hidden feature is NaN, and it says what that is."""
    objects = P[:, np.newaxis]
    for given in ((hidden(objects), TWO), (objects, hidden(TWO))):
        with pytest.raises(AbersError):
            kind(by_itself, *given).predict_many(objects)


def test_a_list_of_masked_rows() -> None:
    """Rows that are masked one by one are no better."""
    with pytest.raises(AbersError, match="is not a finite number"):
        OneVsRest(range(3)).learn_many([*map(hidden, TABLE)], THREE)


def test_scikit_learn_refuses_them_too() -> None:
    """The wrapper refuses hidden labels, and passes hidden features on as NaN."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    from abers.sklearn import VennAbersCalibratedClassifier  # noqa: PLC0415 - an extra

    X, y = np.arange(40.0)[:, np.newaxis], np.arange(40) % 2  # noqa: N806 - as scikit-learn has it
    model = VennAbersCalibratedClassifier(linear_model.LogisticRegression())
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, hidden(y))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(hidden(X), y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="nan"):
        model.partial_fit(X, hidden(y))
    with pytest.raises(ValueError, match="NaN"):
        model.predict_proba(hidden(X))

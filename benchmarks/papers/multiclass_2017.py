"""Manokhin (2017), multi-class inductive and cross Venn-Abers predictors: tables 1 to 4.

A scorer and a calibrator for each pair of classes, coupled as `OneVsOne` does;
Platt and IVAP see the same validation part, and CVAP has as many folds as make parts of its size.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from abers import Platt, VennAbers
from abers.batch import cvap
from abers.calibration import brier_merge, cross_brier_merge, cross_log_merge, log_merge
from abers.calibration.multiclass import PKPD
from benchmarks.papers import multiclass_2017_page
from benchmarks.papers.paper import Paper
from benchmarks.papers.runner import Spec, Task
from benchmarks.papers.scorers import quiet
from benchmarks.papers.splits import split
from benchmarks.papers.tabular import labelled

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Pairs = dict[str, tuple[Floats, Floats]]  # by system: probabilities for log loss and for Brier

__all__ = ["PAPER"]

_YEAR, _SPLITS, _RATIO = 2017, 20, 3
_RATIOS = 1, 2, 4, 6, 9
SETS = {"waveform": "waveform40", "satimage": "satimage", "vehicle": "vehicle", "MNIST": "mnist"}
_TRAIN = {"waveform": 3_500, "satimage": 4_435, "vehicle": 562}
_FIRST_TEST, _CALIBRATING = 60_000, 2_500
_MNIST = {"LR": 60_000, "NN": 60_000, "SVM": 20_000}  # training rows; SVM's time is their square
BASES = "LR", "SVM", "NN"


def _estimator(base: str) -> Any:  # noqa: ANN401 - scikit-learn has no types
    if base == "LR":
        return LogisticRegression(max_iter=1_000)
    if base == "SVM":
        return SVC()
    return MLPClassifier((20,), solver="lbfgs", max_iter=100, random_state=0)


def _score(model: Any, x: Floats) -> Floats:  # noqa: ANN401 - as above
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(x))
    p = np.clip(model.predict_proba(x)[:, 1], 1e-15, 1.0 - 1e-15)
    return np.asarray(np.log(p / (1.0 - p)))


def _fitted(base: str, x: Floats, labels: Integers) -> Any:  # noqa: ANN401 - as above
    return quiet(make_pipeline(StandardScaler(), _estimator(base)), x, labels)


def losses(folder: Path, spec: Spec) -> dict[str, Any]:
    """Measure Platt, IVAP and CVAP on splits of the paper's sizes."""
    x, y = labelled(folder, SETS[spec["data"]])
    found: dict[str, list[float | None]] = {}
    for number in spec["splits"]:
        train, test = split(len(y), _TRAIN[spec["data"]], _YEAR, number)
        cut = round(len(train) * spec["ratio"] / (spec["ratio"] + 1))
        parts = train[:cut], train[cut:], train
        for name, loss in _measured(spec, x, y, (*parts, test)).items():
            found.setdefault(name, []).append(loss)
    return found


def mnist(folder: Path, spec: Spec) -> dict[str, Any]:
    """Measure once, calibrated on test rows as in the paper, or on training rows."""
    x, y = labelled(folder, SETS["MNIST"])
    train, test = np.arange(spec["rows"]), np.arange(_FIRST_TEST, len(y))
    rest = test[_CALIBRATING:]
    cut = round(len(train) * spec["ratio"] / (spec["ratio"] + 1))
    parts = (train, test[:_CALIBRATING], train, rest)
    if spec["honest"]:
        parts = (train[:cut], train[cut:], train, rest)
    return {name: [loss] for name, loss in _measured(spec, x / 255.0, y, parts).items()}


def _measured(
    spec: Spec, x: Floats, y: Integers, parts: tuple[Integers, Integers, Integers, Integers]
) -> dict[str, float | None]:
    """Calibrate all pairs and couple them; parts: proper training, validation, folds, test."""
    proper, validation, folded, test = parts
    k = len(np.unique(y))
    coupled: dict[str, tuple[PKPD, PKPD]] = {}
    for i, j in combinations(range(k), 2):
        of_pair = [rows[(y[rows] == i) | (y[rows] == j)] for rows in (proper, validation, folded)]
        label = (y == i).astype(np.int64)
        for system, pair in _pair(spec, x, label, (*of_pair, test)).items():
            both = coupled.setdefault(system, (PKPD(k, len(test)), PKPD(k, len(test))))
            for coupling, p in zip(both, pair, strict=True):
                row = p[np.newaxis]
                coupling.add(np.array([i]), np.array([j]), row, row)
    found: dict[str, float | None] = {}
    one_hot = np.eye(k)[:, y[test]]
    for system, (log, brier) in coupled.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = float(-np.log((log.result()[0] * one_hot).sum(axis=0)).mean())
            square = float(((brier.result()[0] - one_hot) ** 2).sum(axis=0).mean())
        found[f"log {system}"] = loss if np.isfinite(loss) else None
        found[f"Brier {system}"] = square if np.isfinite(square) else None
    return found


def _pair(
    spec: Spec, x: Floats, label: Integers, parts: tuple[Integers, Integers, Integers, Integers]
) -> Pairs:
    proper, validation, folded, test = parts
    model = _fitted(spec["base"], x[proper], label[proper])
    given, asked = _score(model, x[validation]), _score(model, x[test])
    platt, ivap = Platt(), VennAbers()
    platt.learn_many(given, label[validation])
    ivap.learn_many(given, label[validation])
    p, ends = platt.predict_many(asked), ivap.predict_many(asked)
    return {
        "Platt": (p, p),
        "IVAP": (log_merge(*ends), brier_merge(*ends)),
        "CVAP": _cross(spec, x, label, (folded, test)),
    }


def _cross(
    spec: Spec, x: Floats, label: Integers, parts: tuple[Integers, Integers]
) -> tuple[Floats, Floats]:
    rows, test = parts
    folds = np.array_split(rows, spec["ratio"] + 1)
    columns = []
    for fold in folds:
        rest = np.setdiff1d(rows, fold)
        model = _fitted(spec["base"], x[rest], label[rest])
        columns.append((_score(model, x[fold]), label[fold], _score(model, x[test])))
    ends = cvap(*(list(column) for column in zip(*columns, strict=True)))
    return cross_log_merge(*ends), cross_brier_merge(*ends)


def tasks(*, quick: bool) -> list[Task]:
    """List the tasks, first one split of each."""
    if quick:
        return [_task(0, "LR", data) for data in ("vehicle", "waveform")]
    found = []
    for number in range(_SPLITS):
        found += [_task(number, base, data) for base in BASES for data in _TRAIN]
        found += [_task(number, b, "waveform", ratio) for b in BASES for ratio in _RATIOS]
    return found + [_mnist(base, honest=honest) for base in _MNIST for honest in (False, True)]


def _mnist(base: str, *, honest: bool) -> Task:
    spec = {"data": "MNIST", "base": base, "ratio": _RATIO, "rows": _MNIST[base], "honest": honest}
    kind = "honest" if honest else "test"
    return Task(f"multiclass_2017/{base}/MNIST/{kind}", mnist, spec)


def _task(number: int, base: str, data: str, ratio: int = _RATIO) -> Task:
    spec = {"data": data, "base": base, "splits": [number], "ratio": ratio}
    return Task(f"multiclass_2017/{base}/{data}/{ratio}-{number}", losses, spec)


PAPER = Paper("multiclass_2017", SETS, tasks, multiclass_2017_page.page)

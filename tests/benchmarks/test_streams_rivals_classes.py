"""Rivals of several classes do what their definitions say."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.papers.streams_rivals import ran
from benchmarks.papers.streams_rivals_classes import OnlineTemperature, class_rivals
from benchmarks.papers.streams_several import scored, shared
from benchmarks.papers.streams_steps import BY_LABEL, LAWS, equal, steps
from scipy.special import expit, logit, softmax
from sklearn.linear_model import SGDClassifier

from abers import Isotonic, OneVsRest
from abers.mathematics import LEARN, PREDICT

N, K = 200, 4
RNG = np.random.default_rng(3)
Y = RNG.integers(0, K, N)
ODDS = RNG.normal(size=(N, K)) + 1.5 * (np.arange(K) == Y[:, np.newaxis])
SCORES = shared(expit(ODDS))
RAW = shared(np.clip(SCORES, 1e-6, 1.0 - 1e-6))
AT_ONCE = steps(equal(0), Y)


def test_the_scorer_is_scikit_learns() -> None:
    """The scorer of classes takes the steps of `SGDClassifier` on several classes."""
    x, order = RNG.normal(size=(N, 3)), steps(equal(5), Y)
    model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01, random_state=0)
    wanted = np.zeros((N, K))
    for kind, row in zip(order.kinds.tolist(), order.rows.tolist(), strict=True):
        if kind == PREDICT and hasattr(model, "coef_"):
            wanted[row] = model.decision_function(x[row : row + 1])[0]
        if kind == LEARN:
            model.partial_fit(x[row : row + 1], Y[row : row + 1], classes=range(K))
    assert scored(x, Y, order) == pytest.approx(wanted, abs=1e-12)


def test_online_platt_scaling_of_each_class() -> None:
    """OPS takes an online Newton step for each class against the rest, and is normalised."""
    wanted = np.empty((N, K))
    for k in range(K):
        theta, a = np.array([1.0, 0.0]), 100.0 * np.eye(2)
        for row, odds in enumerate(logit(RAW[:, k])):
            features = np.array([odds, 1.0])
            wanted[row, k] = expit(theta @ features)
            gradient = (wanted[row, k] - (Y[row] == k)) * features
            a += np.outer(gradient, gradient)
            theta = theta - 10.0 * np.linalg.solve(a, gradient)
    found = class_rivals(ODDS, SCORES, Y, AT_ONCE)["OPS"]
    assert found == pytest.approx(wanted / wanted.sum(axis=1, keepdims=True), abs=1e-9)


def test_online_temperature() -> None:
    """The power moves by its gradient over .1 times the sum of squared gradients, from 100 on."""
    logs, power, squares = np.log(RAW), 1.0, 100.0

    def loss(power: float, row: int) -> float:
        return -float(np.log(softmax(power * logs[row])[Y[row]]))

    found = ran(OnlineTemperature(RAW), Y, AT_ONCE)
    for row in range(N):
        assert found[row] == pytest.approx(softmax(power * logs[row]), rel=1e-6)
        gradient = (loss(power + 1e-5, row) - loss(power - 1e-5, row)) / 2e-5
        squares += gradient**2
        power -= gradient / (0.1 * squares)


def test_calibrators_of_abers() -> None:
    """IVAP and isotonic regression are those of abers, for each class against the rest."""
    order = steps(equal(20), Y)
    found = class_rivals(ODDS, SCORES, Y, order)
    wanted = OneVsRest(range(K), window=1_000).prequential(ODDS, Y, delay=20).p
    assert found["IVAP, 1,000"] == pytest.approx(wanted)
    columns = [
        Isotonic(window=1_000).prequential(RAW[:, k], np.equal(Y, k).astype(np.int64), delay=20)
        for k in range(K)
    ]
    wanted = np.clip(np.column_stack(columns), 1e-6, 1.0 - 1e-6)
    wanted /= wanted.sum(axis=1, keepdims=True)
    assert found["isotonic, 1,000"] == pytest.approx(wanted)


def test_no_rival_knows_labels_that_have_not_come() -> None:
    """Other labels at the end change no forecast before they come, and sums are 1."""
    order, changed = steps(equal(30), Y), np.where(np.arange(N) < 100, Y, (Y + 1) % K)
    found, other = (class_rivals(ODDS, SCORES, y, order) for y in (Y, changed))
    for name, p in found.items():
        assert p[:131].tolist() == other[name][:131].tolist(), name
        assert p.sum(axis=1) == pytest.approx(np.ones(N)), name


def test_delays_by_class() -> None:
    """By label, classes of odd number come soon, and all others 1,000 predictions late."""
    y = np.tile(Y, 10)
    order, seen = steps(LAWS[BY_LABEL], y), 0
    late: dict[int, list[int]] = {k: [] for k in range(K)}
    for kind, row in zip(order.kinds.tolist(), order.rows.tolist(), strict=True):
        seen += kind == PREDICT
        if kind == LEARN and seen < len(y):
            late[int(y[row])].append(seen - 1 - row)
    assert {*late[0], *late[2]} == {1_000}
    assert all(50 < np.median(late[k]) < 500 for k in (1, 3))

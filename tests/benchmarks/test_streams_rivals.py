"""Laws of delays, scorers and rivals of the streams do what their definitions say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.papers.streams_protection import calibration_error
from benchmarks.papers.streams_rivals import Jumper, OnlinePlatt, Stacker, Tracking, ran, rivals
from benchmarks.papers.streams_scorers import frozen, online
from benchmarks.papers.streams_steps import BY_LABEL, LAWS, equal, steps
from scipy.special import expit, logit
from sklearn.linear_model import SGDClassifier
from tests.oracles import experts

from abers import Platt, VennAbers
from abers.mathematics import LEARN, PREDICT, interleaved

N = 600
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, 3))
Y = (RNG.random(N) < expit(X[:, 0] - 0.5)).astype(np.int64)
SCORES = X[:, 0] * 2.0


@pytest.mark.parametrize("delay", [0, 1, 100, 10_000])
def test_equal_delays_are_those_of_prequential(delay: int) -> None:
    """Equal delays give the steps of `prequential`."""
    rows, kinds = interleaved(N, delay)
    found = steps(equal(delay), Y)
    assert found.rows.tolist() == rows.tolist()
    assert found.kinds.tolist() == kinds.tolist()


def test_delays_by_label() -> None:
    """By label, 0 comes 1,000 predictions late and 1 sooner; each label comes once, in any law."""
    for law in LAWS.values():
        order = steps(law, Y)
        for kind in (PREDICT, LEARN):
            assert sorted(order.rows[order.kinds == kind].tolist()) == [*range(N)]
    y = np.tile(Y, 5)
    order, seen = steps(LAWS[BY_LABEL], y), 0
    late: dict[int, set[int]] = {0: set(), 1: set()}
    for kind, row in zip(order.kinds.tolist(), order.rows.tolist(), strict=True):
        seen += kind == PREDICT
        if kind == LEARN and seen < len(y):
            late[int(y[row])].add(seen - 1 - row)
    assert late[0] == {1_000}
    assert max(late[1]) <= 1_000
    assert np.median([*late[1]]) < 500


def test_the_online_scorer_is_scikit_learns() -> None:
    """The online scorer takes the steps of `SGDClassifier`, from the rows that it may learn."""
    learns = np.arange(N) % 5 != 2
    model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01, random_state=0)
    wanted, order = np.zeros(N), steps(equal(3), Y)
    for kind, row in zip(order.kinds.tolist(), order.rows.tolist(), strict=True):
        if kind == PREDICT and hasattr(model, "coef_"):
            wanted[row] = model.decision_function(X[row : row + 1])[0]
        if kind == LEARN and learns[row]:
            model.partial_fit(X[row : row + 1], Y[row : row + 1], classes=[0, 1])
    assert online(X, Y, order, learns) == pytest.approx(wanted, abs=1e-12)


def test_the_frozen_scorer_knows_the_first_fifth_alone() -> None:
    """Labels after the first fifth do not change the scores of the frozen model."""
    scores, labels = frozen(X, Y)
    assert labels.tolist() == Y[N // 5 :].tolist()
    other = np.where(np.arange(N) < N // 5, Y, 1 - Y)
    assert frozen(X, other)[0].tolist() == scores.tolist()


def test_no_rival_knows_labels_that_have_not_come() -> None:
    """Other labels at the end change no forecast before they come."""
    order = steps(equal(50), Y)
    found, other = (rivals(SCORES, y, order) for y in (Y, np.where(np.arange(N) < 300, Y, 1 - Y)))
    for name, p in found.items():
        assert p[:351].tolist() == other[name][:351].tolist(), name
        assert ((p > 0.0) & (p < 1.0)).all(), name


def test_rivals_of_abers_are_its_calibrators() -> None:
    """IVAP with a window and refits are those of `prequential`."""
    order = steps(equal(20), Y)
    found = rivals(SCORES, Y, order)
    ivap = VennAbers(window=100).prequential(SCORES, Y, delay=20).merged
    assert found["IVAP, 100"] == pytest.approx(np.clip(ivap, 1e-6, 1.0 - 1e-6), abs=1e-12)
    platt = Platt(window=1_000, refit=0.25).prequential(SCORES, Y, delay=20)
    assert found["Platt, 1,000"] == pytest.approx(np.clip(platt, 1e-6, 1.0 - 1e-6), abs=1e-12)


@pytest.mark.parametrize("level", [True, False])
def test_online_platt_scaling(*, level: bool) -> None:
    """OPS is the online Newton step with gamma .1 and rho 100; temperature has no constant."""
    theta, a = np.array([1.0, 0.0]), 100.0 * np.eye(2)
    wanted = []
    for x, y in zip(SCORES, Y, strict=True):
        features = np.array([x, float(level)])
        p = float(expit(theta @ features))
        wanted.append(p)
        gradient = (p - y) * features
        a += np.outer(gradient, gradient)
        theta = theta - 10.0 * np.linalg.solve(a, gradient)
        assert np.linalg.norm(theta) < 100.0
    line = OnlinePlatt(SCORES, level=level)
    assert ran(line, Y, steps(equal(0), Y)) == pytest.approx(wanted, abs=1e-9)


def test_tracking() -> None:
    """TOPS forecasts the share of label 1 in the bin of OPS, with its middle as one label."""
    line = ran(OnlinePlatt(SCORES), Y, steps(equal(0), Y))
    found = ran(Tracking(OnlinePlatt(SCORES)), Y, steps(equal(0), Y))
    bins = np.minimum((line * 10).astype(int), 9)
    for row in (0, 1, 50, N - 1):
        before = Y[:row][bins[:row] == bins[row]]
        middle = (bins[row] + 0.5) / 10
        assert found[row] == pytest.approx((before.sum() + middle) / (len(before) + 1))


def test_the_jumper() -> None:
    """The jumper is that of the oracle of the core."""
    raw = np.clip(expit(SCORES), 1e-6, 1.0 - 1e-6)
    oracle, wanted = experts.Jumper(), []
    for p, y in zip(raw.tolist(), Y.tolist(), strict=True):
        wanted.append(oracle.forecast(p))
        oracle.learn(p, y)
    assert ran(Jumper(raw), Y, steps(equal(0), Y)) == pytest.approx(wanted, rel=1e-9)


def test_the_stacker_begins_with_the_mean() -> None:
    """The stacker has the mean log odds until 250 labels came, and learns the better part then."""
    parts = np.column_stack([X[:, 0] - 0.5, np.zeros(N)])
    p = ran(Stacker(parts), Y, steps(equal(0), Y))
    assert p[:250] == pytest.approx(expit(parts[:250].mean(axis=1)))
    assert np.abs(logit(p[500:]) - parts[500:, 0]).mean() < 0.5 * np.abs(parts[500:, 0]).mean()


def test_the_calibration_error_has_no_bias() -> None:
    """For right forecasts the squared errors are about 0; for wrong ones the gap is found."""
    rng, squares = np.random.default_rng(1), []
    p = np.repeat(np.linspace(0.05, 0.95, 20), 200)
    for _ in range(200):
        y = (rng.random(len(p)) < p).astype(np.int64)
        squares.append(calibration_error(p, y))
    assert np.mean(np.equal(squares, 0.0)) == pytest.approx(0.5, abs=0.15)
    y = (rng.random(len(p)) < p * 0.5).astype(np.int64)
    assert calibration_error(p, y) == pytest.approx(math.sqrt(np.mean((p * 0.5) ** 2)), rel=0.05)

"""abers next to venn-abers and MAPIE: the same numbers wherever both obey the definition.

A peer is asked the published suite before it is compared with abers. Where a peer
is known to be wrong it is not asked here; `test_faults.py` says where that is.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.conformance.peers import (
    EVERY_PEER,
    MAPIE,
    VENN_ABERS,
    coupled,
    ends,
    means,
    unbounded_means,
)
from tests.conformance.test_suite import SUITE

from abers import OneVsOne, OneVsRest, VennAbers
from abers.batch import IVAR, UnboundedIVAR, cvap
from abers.calibration import cross_log_merge

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray
    from tests.conformance.peers import Floats

UNWEIGHTED = [bag for bag in SUITE["bags"] if {*bag["weights"]} == {1}]
TINY = 1e-12  # peers round at each step


def asked(peer: ModuleType, scores: Floats, queries: Floats) -> NDArray[np.bool_]:
    """Leave out what MAPIE answers wrongly: p1 above all scores."""
    return queries <= np.max(scores) if peer is MAPIE else np.full(len(queries), fill_value=True)


def drawn(n: int, m: int, levels: int = 0, seed: int = 3) -> tuple[Floats, Floats, Floats]:
    """Draw n scores with their labels, and m queries, on so many levels (0: without ties)."""
    rng = np.random.default_rng(seed)
    scores, queries = rng.random(n), rng.random(m)
    labels = (rng.random(n) < scores).astype(float)
    if levels:
        scores, queries = np.floor(scores * levels) / levels, np.floor(queries * levels) / levels
    return scores, labels, queries


@EVERY_PEER
@pytest.mark.parametrize("bag", UNWEIGHTED, ids=lambda bag: bag["name"])
def test_a_peer_passes_the_suite(peer: ModuleType, bag: dict[str, Any]) -> None:
    """Every bag of weight 1 has the published answers, which are no opinion of abers."""
    scores, queries = np.array(bag["scores"]), np.array(bag["queries"])
    kept = asked(peer, scores, queries)
    exact = [[float(Fraction(p)) for p in bag[side]] for side in ("p0", "p1")]
    found = ends(peer, scores, bag["labels"], queries[kept])
    assert np.abs(found - np.transpose(exact)[kept]).max(initial=0.0) <= TINY


@EVERY_PEER
@pytest.mark.parametrize("levels", [0, 7, 100, 1000])
@pytest.mark.large(5_000, reference=500)
def test_p0_and_p1(peer: ModuleType, levels: int, size: int) -> None:
    """Thousands of observations, with ties and without, give the same p0 and p1."""
    scores, labels, queries = drawn(size, 300, levels)
    kept = queries[asked(peer, scores, queries)]
    calibrator = VennAbers()
    calibrator.learn_many(scores, labels.astype(int))
    ours = np.column_stack(calibrator.predict_many(kept))
    assert np.abs(ends(peer, scores, labels, kept) - ours).max() <= TINY


@pytest.mark.native
@pytest.mark.large(20_000)
def test_folds(size: int) -> None:
    """p0, p1 and the log merge of five folds are those of venn-abers, ties among the scores."""
    scores, labels, queries = zip(
        *(drawn(size, 300, levels, seed) for seed, levels in enumerate((0, 0, 100, 1000, 7))),
        strict=True,
    )
    p0, p1 = cvap(scores, [fold.astype(int) for fold in labels], queries)
    theirs = np.array(
        [ends(VENN_ABERS, *fold) for fold in zip(scores, labels, queries, strict=True)]
    )
    q0, q1 = theirs[..., 0].T, theirs[..., 1].T
    assert np.abs(p0 - q0).max() <= TINY
    assert np.abs(p1 - q1).max() <= TINY
    mean = VENN_ABERS.geo_mean
    merged = mean(q1) / (mean(1 - q0) + mean(q1))
    assert np.abs(cross_log_merge(p0, p1) - merged).max() <= TINY


@EVERY_PEER
@pytest.mark.parametrize(
    ("kind", "name"), [(OneVsOne, "one_vs_one"), (OneVsRest, "one_vs_all")], ids=["pairs", "rest"]
)
def test_several_classes(peer: ModuleType, kind: type[OneVsOne | OneVsRest], name: str) -> None:
    """Probabilities of three classes are the same, by pairs and by each against the rest."""
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 3, 300)
    # No ties: a pair's shares are rounded one way or the other, and that may make or end a tie.
    scores = rng.dirichlet(np.ones(3), 300) + np.eye(3)[labels] / 2
    # One certain row for each class, so that no query is above all scores.
    scores, labels = np.vstack([np.eye(3), scores]), np.append([0, 1, 2], labels)
    queries = scores[3:203]
    calibrator = kind(range(3))
    calibrator.learn_many(scores, labels)
    theirs = coupled(peer, scores, labels, queries, name)
    assert np.abs(calibrator.predict_many(queries)[0] - theirs).max() <= 1e-9


def test_intervals_of_means() -> None:
    """Without ties the intervals of a mean are those of venn-abers, for labels of any size."""
    rng = np.random.default_rng(4)
    scores = rng.permutation(40) / 64
    labels = np.round(8 * scores + rng.normal(size=40), 1)
    queries = np.concatenate([scores, scores + 1 / 128, [-1.0, 1.0]])
    calibrator = IVAR(float(np.min(labels)), float(np.max(labels)))
    calibrator.learn_many(scores, labels)
    ours = [tuple(calibrator.predict_one(query)) for query in queries.tolist()]
    spread = float(np.ptp(labels))
    rounding = spread * 2.0**-28  # labels are multiples of 2**-30 of their range
    assert np.abs(means(scores, labels, queries) - ours).max() <= rounding


def test_intervals_of_means_without_bounds() -> None:
    """Without ties they are those of venn-abers, for labels of any size and any m."""
    rng = np.random.default_rng(5)
    for m in (1, 2, 5):
        scores = rng.permutation(40) / 64
        labels = 8 * scores + rng.standard_cauchy(40)
        queries = np.concatenate([scores, scores + 1 / 128, [-1.0, 1.0]])
        calibrator = UnboundedIVAR(m)
        calibrator.learn_many(scores, labels)
        low, high, *_ = calibrator.predict_many(queries)
        ours = np.column_stack([low, high])
        assert np.abs(unbounded_means(scores, labels, queries, m) - ours).max() <= 2.0**-20

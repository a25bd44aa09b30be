"""Isotonic regression as others have published it, each answer with where it stands.

A number here was printed by its source; none was made by abers. Labels that are not
0 or 1 are weights: y of at most `TOP` is a label 1 of weight y / TOP and a label 0 of the rest. The
worked examples of Venn-Abers prediction are in tests/engine, and in the suite.
"""

from __future__ import annotations

import pytest

from abers import VennAbers

TOP = 32.0  # a power of two: the weights are exact

# R's own examples, as its reference output has them (tests/Examples/stats-Ex.Rout.save, ?isoreg).
ISOREG = {
    "last label 0": ([1, 0, 4, 3, 3, 5, 4, 2, 0], [0.5] * 2 + [3] * 7),
    "last label 3": ([1, 0, 4, 3, 3, 5, 4, 2, 3], [0.5] * 2 + [10 / 3] * 3 + [3.5] * 4),
    "blocks": ([5, 9, 1, 2, 5, 6, 7, 8, 3, 8], [4.25] * 4 + [5] + [6] * 4 + [8]),
}

# Example 1.1.1 of Robertson, Wright & Dykstra (1988), Order Restricted Statistical Inference: size
# of the pituitary fissure by age; the data set `pituitary` of R's isotone.
AGES = [8, 8, 8, 10, 10, 10, 12, 12, 12, 14, 14]
SIZES = [21, 23.5, 23, 24, 21, 25, 21.5, 22, 19, 23.5, 25]

# The examples in the docstrings of sklearn.isotonic and scipy.optimize.isotonic_regression.
SKLEARN = ([5, 3, 1, 2, 8, 10, 7, 9, 6, 4], [2.75] * 4 + [7.33] * 6)
SCIPY = (
    [1.5, 1.0, 4.0, 6.0, 5.7, 5.0, 7.8, 9.0, 7.5, 9.5, 9.0],
    [1.25] * 2 + [4.0] + [5.56666667] * 3 + [7.8] + [8.25] * 2 + [9.25] * 2,
)


def fitted(scores: list[float], labels: list[float]) -> list[float]:
    """Regress labels on scores, and read the fit at every score."""
    calibrator = VennAbers()
    for score, label in zip(scores, labels, strict=True):
        for kind, weight in ((1, label / TOP), (0, 1.0 - label / TOP)):
            if weight:
                calibrator.learn_one(score, kind, weight=weight)
    fit = [calibrator.isotonic(score) for score in scores]
    return [value * TOP for value in fit if value is not None]


@pytest.mark.parametrize(("labels", "fit"), ISOREG.values(), ids=ISOREG)
def test_isoreg(labels: list[float], fit: list[float]) -> None:
    """The fit is that of R's stats::isoreg."""
    assert fitted([float(i) for i in range(len(labels))], labels) == pytest.approx(fit)


def test_tied_scores_are_pooled_as_the_textbook_does() -> None:
    """Means 22.5, 23.33, 20.83 and 24.25 become 22.22 thrice and 24.25.

    R's fdrtool::monoreg prints the same; in R's isotone it is ties="secondary".
    """
    expected = [22.22222] * 9 + [24.25] * 2
    assert fitted([float(age) for age in AGES], SIZES) == pytest.approx(expected, abs=1e-5)


def test_ties_may_be_split_by_whoever_wishes() -> None:
    """Ages in their order give what R's isotone prints for ties="primary"."""
    order = sorted(zip(AGES, SIZES, strict=True))
    expected = [21.0] + [22.375] * 8 + [23.5, 25.0]
    scores = [float(i) for i in range(len(order))]
    assert fitted(scores, [size for _, size in order]) == pytest.approx(expected)


@pytest.mark.parametrize(("labels", "fit"), [SKLEARN, SCIPY], ids=["scikit-learn", "scipy"])
def test_the_examples_of_python_packages(labels: list[float], fit: list[float]) -> None:
    """The fit is the one in the documentation of scikit-learn and of scipy."""
    scores = [float(i) for i in range(len(labels))]
    tolerance = 0.005 if labels is SKLEARN[0] else 1e-7  # digits printed; weights are rounded
    assert fitted(scores, labels) == pytest.approx(fit, abs=tolerance)

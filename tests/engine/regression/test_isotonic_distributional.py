"""`IVAPR` next to isotonic distributional regression, which it brackets.

The fit is scikit-learn's, one threshold at a time, and uses no code of abers.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from abers.regression import IVAPR

TINY = 1e-12  # scikit-learn's means are rounded

BAGS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5)), min_size=1, max_size=25)


def idr(scores: list[float], labels: list[float], t: float, query: float) -> float:
    """Fit the chance of a label of at most t, falling in the score, and interpolate it."""
    fit = IsotonicRegression(increasing=False, out_of_bounds="clip")
    fit.fit(scores, np.array(labels) <= t)
    (value,) = fit.predict([query])
    return float(value)


@given(BAGS, st.sampled_from(np.linspace(-1.0, 7.0, 17).tolist()))
def test_the_band_holds_the_fit(bag: list[tuple[int, int]], query: float) -> None:
    """At every label the fit without the query lies between the CDFs of the two with it."""
    scores, labels = zip(*bag, strict=True)
    calibrator = IVAPR()
    calibrator.learn_many(np.array(scores, float), np.array(labels, float))
    found = calibrator.predict_one(query)
    for t in sorted({*labels}):
        fit = idr([*scores], [*labels], t, query)
        assert found.lower(t) - TINY <= fit <= found.upper(t) + TINY


@pytest.mark.large(3_000, reference=300)
def test_the_band_closes_about_the_fit(size: int) -> None:
    """With more labels the two CDFs come together, and the fit is between them still."""
    rng = np.random.default_rng(5)
    scores = rng.uniform(0.0, 10.0, size)
    labels = scores + rng.normal(size=size)
    widths = []
    for n in (size // 10, size):
        calibrator = IVAPR()
        calibrator.learn_many(scores[:n], labels[:n])
        found = calibrator.predict_one(5.0)
        for t in (3.5, 5.0, 6.5):
            fit = idr(scores[:n].tolist(), labels[:n].tolist(), t, 5.0)
            assert found.lower(t) - TINY <= fit <= found.upper(t) + TINY
        widths.append(found.upper(5.0) - found.lower(5.0))
    assert widths[1] < widths[0]

"""The confidence sequence, against the mixture and its roots computed with scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, special
from tests.oracles import confidence_sequence, incomplete_gamma

from abers.exceptions import ParameterError
from abers.monitoring import ConfidenceSequence

TIGHTEST, LEVEL = 500.0, 0.003
LOG = -2.0 * math.log(LEVEL)


def rho(tightest: float, scale: float) -> float:
    """Return the shape of the mixing distribution."""
    return tightest / scale**2 / (LOG + math.log1p(LOG))


def log_mixture(s: float, v: float, r: float) -> float:
    """Return the mixture of proposition 9 for scale 1."""
    a, x = v + r, s + v + r
    prior = r * math.log(r) - special.gammaln(r) - math.log(special.gammainc(r, r))
    kernel = special.gammaln(a) + math.log(special.gammainc(a, x)) - a * math.log(x) + s + v
    return float(prior + kernel)


@given(s=st.floats(0, 1e4), v=st.floats(0, 1e6), scale=st.floats(0.5, 20))
def test_mixture_in_closed_form(s: float, v: float, scale: float) -> None:
    """The logarithm of the mixture is that of the proposition, in units of the scale."""
    expected = log_mixture(s / scale, v / scale**2, rho(TIGHTEST, scale))
    found = ConfidenceSequence(TIGHTEST, LEVEL, scale).log_mixture(s, v)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-6)


@pytest.mark.parametrize(("s", "v"), [(0.0, 0.0), (3.0, 4.0), (20.0, 50.0), (90.0, 500.0)])
def test_mixture_by_integration(s: float, v: float) -> None:
    """The mixture is the mean of exp(a S - psi(a) V) over rates a, psi of the exponential kind."""
    r = rho(TIGHTEST, 1.0)

    def weight(rate: float) -> float:
        return float((1.0 - rate) ** (r - 1.0) * math.exp(-r * (1.0 - rate)))

    def term(rate: float) -> float:
        psi = -math.log1p(-rate) - rate
        return math.exp(rate * s - psi * v) * weight(rate)

    mean = integrate.quad(term, 0.0, 1.0)[0] / integrate.quad(weight, 0.0, 1.0)[0]
    found = ConfidenceSequence(TIGHTEST, LEVEL).log_mixture(s, v)
    assert found == pytest.approx(math.log(mean), abs=1e-7)


@given(v=st.floats(0, 1e6), alpha=st.floats(1e-9, 0.5), scale=st.sampled_from([1.0, 6.0]))
def test_boundary_is_the_root(v: float, alpha: float, scale: float) -> None:
    """The boundary is where the mixture of scipy reaches 1/alpha."""
    r, threshold = rho(TIGHTEST, scale), -math.log(alpha)

    def excess(s: float) -> float:
        return log_mixture(s, v / scale**2, r) - threshold

    most = 1.0
    while excess(most) < 0.0:
        most *= 2.0
    root = scale * optimize.brentq(excess, 0.0, most)
    sequence = ConfidenceSequence(TIGHTEST, LEVEL, scale)
    assert sequence.boundary(v, alpha) == pytest.approx(root, rel=1e-6)
    assert sequence.reaches(1.000_01 * root + 1e-9, v, alpha)
    assert not sequence.reaches(0.999_99 * root, v, alpha)


@given(
    s=st.floats(0, 1e4), v=st.floats(0, 1e5), alpha=st.floats(1e-12, 0.9), scale=st.floats(0.5, 20)
)
def test_the_core_equals_its_oracle(s: float, v: float, alpha: float, scale: float) -> None:
    """Mixture, decision and boundary are those of plain Python, to the last bit."""
    native = ConfidenceSequence(TIGHTEST, LEVEL, scale)
    plain = confidence_sequence.ConfidenceSequence(TIGHTEST, LEVEL, scale)
    assert native.log_mixture(s, v) == plain.log_mixture(s, v)
    assert native.reaches(s, v, alpha) == plain.reaches(s, v, alpha)
    assert native.boundary(v, alpha) == plain.boundary(v, alpha)


@given(a=st.floats(1e-9, 1e9))
def test_gamma_function(a: float) -> None:
    """The logarithm of the gamma function is that of the library, but for rounding."""
    found = incomplete_gamma.log_gamma(a)
    assert found == pytest.approx(math.lgamma(a), rel=1e-13, abs=1e-14 * max(a, 1.0))


@given(s=st.floats(-1e6, 0.0), v=st.floats(0, 1e6))
def test_no_deviation_is_never_significant(s: float, v: float) -> None:
    """A sum of 0 or less reaches no boundary, also where nothing varies."""
    assert not ConfidenceSequence(TIGHTEST, LEVEL).reaches(s, v, 0.999)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((0.0, 0.1), "tightest"), ((1, 0), "alpha"), ((1, 1), "alpha"), ((1.0, 0.1, 0.0), "scale")],
)
def test_bad_parameters(arguments: tuple[float, ...], name: str) -> None:
    """Parameters out of their ranges are refused."""
    with pytest.raises(ParameterError, match=f"^{name}="):
        ConfidenceSequence(*arguments)


@pytest.mark.simulation
def test_coverage_of_drifting_means() -> None:
    """Sums of labels leave the boundary, at any time, in at most a share alpha of the runs."""
    rng = np.random.default_rng(1)
    runs, n, alpha = 2_000, 2_000, 0.1
    sequence = ConfidenceSequence(100.0, alpha)
    truth = 0.5 + 0.4 * np.sin(np.arange(n) / 100.0)
    labels = rng.random((runs, n)) < truth
    sums = (labels - truth).cumsum(axis=1)
    squares = ((labels - truth) ** 2).cumsum(axis=1)
    left = 0
    for s, v in zip(sums.tolist(), squares.tolist(), strict=True):
        left += any(sequence.reaches(a, b, alpha) for a, b in zip(s[9::10], v[9::10], strict=True))
    assert 0.005 * runs < left <= runs * alpha

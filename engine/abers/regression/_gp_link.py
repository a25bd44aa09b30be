"""The link of GP-Beta: from three latent values to a beta map, and to the density ratio of a label.

Governing rule: everything is a logarithm, ln a and ln b of the map and ln u and ln(1 - u) of the
label's PIT value, so that no tail is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from abers._arrays import Floats

__all__ = ["log_ratio"]


def log_ratio(curve: Floats, below: Floats, above: Floats) -> tuple[Floats, Floats]:
    """Give the log of the calibrated density over the base density, and its gradient.

    Parameters
    ----------
    curve
        Array of shape (3, ..., n): ln a, ln b and c of the map (Song et al. 2019, equation 7).
    below, above
        Arrays of shape (n,): ln u and ln(1 - u), u the base CDF at the label.

    Returns
    -------
    tuple
        Arrays of shape (..., n), and (3, ..., n) by `curve`.
    """
    (a, b), c = np.exp(curve[:2]), curve[2]
    z = a * below - b * above + c
    left, right = curve[0] - below, curve[1] - above
    spread = np.logaddexp(left, right)
    tail = np.exp(-np.abs(z))
    ratio = spread - np.abs(z) - 2.0 * np.log1p(tail)
    pull = np.copysign((1.0 - tail) / (1.0 + tail), z)  # -d/dz of the log slope of the logistic
    share = np.exp(left - spread)
    by_curve = np.stack((share - pull * a * below, 1.0 - share + pull * b * above, -pull))
    return ratio, by_curve

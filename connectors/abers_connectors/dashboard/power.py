"""Evidence as a power of ten, as pages show it."""

from __future__ import annotations

import math

__all__ = ["HIGHEST", "evidence_text", "power"]

HIGHEST = 30.0
"""Largest power of ten of evidence that is shown."""


def power(log_wealth: float) -> float:
    """Return the power of ten, up to the largest that is shown."""
    return min(log_wealth / math.log(10.0), HIGHEST)


def evidence_text(log_wealth: float, log_threshold: float) -> str:
    """Return evidence and its threshold as powers of ten.

    Examples
    --------
    >>> evidence_text(2.302585, 13.815511), evidence_text(500.0, 13.815511)
    ('1.00 of 6.00', '30 or more of 6.00')
    """
    height = power(log_wealth)
    evidence = f"{height:z.2f}" if height < HIGHEST else f"{HIGHEST:.0f} or more"
    return f"{evidence} of {power(log_threshold):.2f}"

"""Mixture of experts as a monitor reads it: price, weights and losses."""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["Expert", "Mixture"]


class Mixture(Protocol):
    """Mixture of experts in lanes, such as `abers.ProtectedVennAbers`."""

    @property
    def lanes(self) -> int:
        """Largest number of observations that ever awaited their labels together."""
        ...

    @property
    def price(self) -> float:
        """Bound on the log loss in excess of that of the raw probability, in nats in all."""
        ...

    def expert_weights(self) -> dict[str, float]:
        """Return the mean weight of each expert over the lanes."""
        ...

    def expert_losses(self) -> dict[str, float]:
        """Return the total log loss of each expert, and of the mixture as "protected"."""
        ...


class Expert(NamedTuple):
    """An expert of mixtures; the mixture itself, "protected", has the weight None.

    Attributes
    ----------
    weight
        Mean weight over the lanes.
    loss
        Total log loss in nats.
    """

    weight: float | None
    loss: float

"""Mixture of experts as a monitor reads it: price, weights and losses."""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["Expert", "Mixture"]


class Mixture(Protocol):
    """Mixture of experts in lanes, such as `abers.ProtectedVennAbers`.

    The first expert is the base: what the loss of the mixture is compared with.
    """

    @property
    def lanes(self) -> int:
        """Largest number of observations that ever awaited their labels together."""
        ...

    @property
    def price(self) -> float:
        """Bound on the total loss in excess of that of the base."""
        ...

    def expert_weights(self) -> dict[str, float]:
        """Return the mean weight of each expert over the lanes."""
        ...

    def expert_losses(self) -> dict[str, float]:
        """Return the total loss of each expert, and of the mixture as "protected"."""
        ...


class Expert(NamedTuple):
    """An expert of mixtures; the mixture itself, "protected", has the weight None.

    Attributes
    ----------
    weight
        Mean weight over the lanes.
    loss
        Total loss: of probabilities the log loss in nats, of distributions the CRPS in the unit of
        the label.
    """

    weight: float | None
    loss: float

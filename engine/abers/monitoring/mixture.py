"""Mixture of experts as a monitor reads it: price, weights and losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats

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

    @property
    def experts(self) -> Sequence[str]:
        """Names of the experts, in order."""
        ...

    def expert_table(self) -> Floats:
        """Return mean weight over the lanes and total loss of each expert, a row each.

        A last row has the total loss of the mixture, and a weight of NaN.
        """
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

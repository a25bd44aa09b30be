"""Access to what river keeps private. No other module of the engine reaches into a private name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from river.base import Classifier

__all__ = ["is_multiclass"]


def is_multiclass(classifier: Classifier) -> bool:
    """Return whether a river classifier handles more than two classes."""
    # river's own checks read the same property; there is no public one.
    return bool(classifier._multiclass)  # noqa: SLF001

"""The specifications of the native core in plain Python.

This package has the names of `abers._core`, and is what runs without a compiler. A change of
behaviour starts here; tests compare both bit for bit. Its modules depend on `abers.arrays` only,
and each is imported at the first use of its names: beside the native core few are used.
"""

import importlib
from typing import TYPE_CHECKING

from abers.arrays import LEARN, LIFETIME, LIMIT, ONE, PREDICT, REMOVE

if TYPE_CHECKING:
    from typing import Any

    from abers.reference.aggregation import Aggregation
    from abers.reference.calibration_set import CalibrationSet
    from abers.reference.class_aggregation import ClassAggregation
    from abers.reference.distribution_pool import DistributionPool
    from abers.reference.elementary import geometric_means, logistics
    from abers.reference.exit_timer import ExitTimer
    from abers.reference.group_sums import GroupSums
    from abers.reference.observation_set import WeightedObservation, decayed
    from abers.reference.pava import Block, pool, pooled
    from abers.reference.pending_store import PendingStore
    from abers.reference.predictive_set import PredictiveSet
    from abers.reference.protection import Protection
    from abers.reference.reorder_buffer import ReorderBuffer
    from abers.reference.tally import (
        Tally,
        add_loss_differences,
        add_scores,
        added,
        bet_on_bins,
        first_unscored,
    )
    from abers.reference.text_columns import are_names, distinct

__all__ = [
    "LEARN",
    "LIFETIME",
    "LIMIT",
    "ONE",
    "PREDICT",
    "REMOVE",
    "Aggregation",
    "Block",
    "CalibrationSet",
    "ClassAggregation",
    "DistributionPool",
    "ExitTimer",
    "GroupSums",
    "PendingStore",
    "PredictiveSet",
    "Protection",
    "ReorderBuffer",
    "Tally",
    "WeightedObservation",
    "add_loss_differences",
    "add_scores",
    "added",
    "are_names",
    "bet_on_bins",
    "decayed",
    "distinct",
    "first_unscored",
    "geometric_means",
    "logistics",
    "pool",
    "pooled",
]

_MODULES = {
    "aggregation": ("Aggregation",),
    "calibration_set": ("CalibrationSet",),
    "class_aggregation": ("ClassAggregation",),
    "distribution_pool": ("DistributionPool",),
    "elementary": ("geometric_means", "logistics"),
    "exit_timer": ("ExitTimer",),
    "group_sums": ("GroupSums",),
    "observation_set": ("WeightedObservation", "decayed"),
    "pava": ("Block", "pool", "pooled"),
    "pending_store": ("PendingStore",),
    "predictive_set": ("PredictiveSet",),
    "protection": ("Protection",),
    "reorder_buffer": ("ReorderBuffer",),
    "tally": (
        "Tally",
        "add_loss_differences",
        "add_scores",
        "added",
        "bet_on_bins",
        "first_unscored",
    ),
    "text_columns": ("are_names", "distinct"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> "Any":  # noqa: ANN401 - one of the names above
    """Import the module of a name."""
    if name not in _HOME:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    return found


def __dir__() -> list[str]:
    """List the names of the core."""
    return __all__

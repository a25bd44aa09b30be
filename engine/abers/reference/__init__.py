"""The specifications of the native core in plain Python.

This package has the names of `abers._core`, and is what runs without a compiler. A change of
behaviour starts here; tests compare both bit for bit. Its modules depend on `abers.arrays` only.
"""

from abers.arrays import LEARN, ONE, PREDICT, REMOVE
from abers.reference.aggregation import Aggregation
from abers.reference.calibration_set import CalibrationSet
from abers.reference.class_aggregation import ClassAggregation
from abers.reference.distribution_pool import DistributionPool
from abers.reference.elementary import geometric_means, logistics
from abers.reference.group_sums import GroupSums
from abers.reference.observation_set import LIFETIME, LIMIT, WeightedObservation, decayed
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

"""Classification: calibrators of binary scores and of several classes, and baselines."""

from __future__ import annotations

from abers.calibration.beta import BetaCalibration
from abers.calibration.cross import CrossVennAbers
from abers.calibration.cross_batch import cvap
from abers.calibration.cross_interval import (
    CrossInterval,
    cross_brier_merge,
    cross_ends,
    cross_log_merge,
)
from abers.calibration.direct import DirectIsotonic
from abers.calibration.interval import VennInterval, brier_merge, log_merge
from abers.calibration.isotonic import Isotonic
from abers.calibration.mondrian import Mondrian
from abers.calibration.multi_interval import MultiInterval
from abers.calibration.one_vs_one import OneVsOne
from abers.calibration.one_vs_rest import OneVsRest
from abers.calibration.platt import Platt
from abers.calibration.scoring import Scorer
from abers.calibration.simplified import SimplifiedVennAbers
from abers.calibration.taxonomies import (
    ByFeature,
    IsotonicTaxonomy,
    NearestNeighbours,
    PredictedClass,
    ScoreBins,
)
from abers.calibration.transductive import TransductiveVennAbers
from abers.calibration.uncalibrated import Uncalibrated
from abers.calibration.venn import Taxonomy, VennPrediction, VennPredictor
from abers.calibration.venn_abers import Hull, VennAbers

__all__ = [
    "BetaCalibration",
    "ByFeature",
    "CrossInterval",
    "CrossVennAbers",
    "DirectIsotonic",
    "Hull",
    "Isotonic",
    "IsotonicTaxonomy",
    "Mondrian",
    "MultiInterval",
    "NearestNeighbours",
    "OneVsOne",
    "OneVsRest",
    "Platt",
    "PredictedClass",
    "ScoreBins",
    "Scorer",
    "SimplifiedVennAbers",
    "Taxonomy",
    "TransductiveVennAbers",
    "Uncalibrated",
    "VennAbers",
    "VennInterval",
    "VennPrediction",
    "VennPredictor",
    "brier_merge",
    "cross_brier_merge",
    "cross_ends",
    "cross_log_merge",
    "cvap",
    "log_merge",
]

"""Methods that no stream uses; they are imported only on request.

For a set of observations at once: the full and the simplified Venn-Abers predictor, Venn predictors
with any taxonomy, the cross Venn-Abers prediction of a batch. Calibrators around others: one for
each category, intervals for a mean or around predictions, and maps that recalibrate predictive
distributions.
"""

from abers.batch.bag_predictors import SimplifiedVennAbers, TransductiveVennAbers, cvap
from abers.batch.conformal_interval import ConformalInterval
from abers.batch.continuous import CalibratedDistribution
from abers.batch.gp_beta import GPBeta
from abers.batch.ivar import IVAR, MeanInterval, MeanIntervals
from abers.batch.mondrian import Mondrian
from abers.batch.multicalibration import VennMulticalibration
from abers.batch.pit_maps import BetaCDF, QuantileCalibration
from abers.batch.self_calibrating_interval import (
    CalibratedInterval,
    CalibratedIntervals,
    SelfCalibratingInterval,
)
from abers.batch.unbounded_ivar import UnboundedIVAR, UnboundedMean, UnboundedMeans
from abers.batch.venn import (
    ByFeature,
    IsotonicTaxonomy,
    NearestNeighbours,
    PredictedClass,
    ScoreBins,
    Scorer,
    Taxonomy,
    VennPrediction,
    VennPredictor,
)

__all__ = [
    "IVAR",
    "BetaCDF",
    "ByFeature",
    "CalibratedDistribution",
    "CalibratedInterval",
    "CalibratedIntervals",
    "ConformalInterval",
    "GPBeta",
    "IsotonicTaxonomy",
    "MeanInterval",
    "MeanIntervals",
    "Mondrian",
    "NearestNeighbours",
    "PredictedClass",
    "QuantileCalibration",
    "ScoreBins",
    "Scorer",
    "SelfCalibratingInterval",
    "SimplifiedVennAbers",
    "Taxonomy",
    "TransductiveVennAbers",
    "UnboundedIVAR",
    "UnboundedMean",
    "UnboundedMeans",
    "VennMulticalibration",
    "VennPrediction",
    "VennPredictor",
    "cvap",
]

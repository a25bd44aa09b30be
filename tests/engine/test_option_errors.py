"""Options that are no numbers: the error is that of abers and names the option."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abers import OneVsRest, ParameterError, ProtectedVennAbers, registry
from abers.batch import ConformalInterval
from abers.calibration import cross_brier_merge, cross_ends, cross_log_merge
from abers.learners.gaussian import Ridge
from abers.monitoring import (
    CalibrationEProcess,
    CalibrationErrorSequence,
    ConfidenceSequence,
    DistributionEProcess,
    EDetector,
    ExchangeabilityEProcess,
    ForecastGroups,
    LossDifference,
    Martingale,
    VerdictSequence,
    corp,
)
from abers.notebook import monitor, report
from abers.regression import CoverageTracker, PredictiveDistribution, ProtectedIVAPR
from abers.stream import Processor

if TYPE_CHECKING:
    from collections.abc import Callable

NO_NUMBERS: list[Any] = [
    *([0.5], (), {}, "a", "0.5", b"1", 1j, object(), math.nan, -1),
    *(np.array([0.5, 0.2]), np.array(["x"])),
]
detector, intervals = partial(EDetector, "a"), partial(DistributionEProcess, [0.9])
PREDICTIVE = PredictiveDistribution([0.0, 1.0], [0.0, 0.5, 1.0])

pytestmark = pytest.mark.native


def refused(call: Callable[[Any], object], values: list[Any], name: str) -> None:
    """Check that each value is refused by an error that names the option."""
    for value in values:
        with pytest.raises(ParameterError, match=rf"^{name}\b"):
            call(value)


@pytest.mark.parametrize(
    "kind",
    [
        *(CalibrationErrorSequence, LossDifference, CalibrationEProcess, ExchangeabilityEProcess),
        lambda alpha: Martingale("a", alpha=alpha),
        lambda alpha: ConfidenceSequence(1.0, alpha),
        lambda alpha: VerdictSequence("calibrated", 1.0, alpha),
        lambda alpha: DistributionEProcess([0.9], alpha=alpha),
    ],
)
def test_an_alpha_is_one_number_between_0_and_1(kind: Callable[..., object]) -> None:
    """Arrays, texts and numbers outside (0, 1) are refused as `alpha`."""
    named = isinstance(kind, type)
    refused(
        lambda alpha: kind(alpha=alpha) if named else kind(alpha), [*NO_NUMBERS, 0, 1.0], "alpha"
    )


@pytest.mark.parametrize(
    "kind",
    [
        *(ForecastGroups, lambda tolerance: VerdictSequence("calibrated", tolerance)),
        lambda tolerance: CalibrationEProcess(tolerance=tolerance),
        lambda tolerance: DistributionEProcess([0.9], tolerance=tolerance),
        lambda tolerance: monitor(tolerance=tolerance),
        lambda tolerance: report([0, 1], [0.2, 0.7], tolerance=tolerance),
    ],
)
def test_a_tolerance_is_a_finite_ratio(kind: Callable[[Any], object]) -> None:
    """Arrays, texts, infinity and ratios below 1 are refused as `tolerance`."""
    refused(kind, [*NO_NUMBERS, math.inf, 0.999, 10**400], "tolerance")


@pytest.mark.parametrize("kind", [detector, CalibrationEProcess, intervals])
def test_run_lengths_and_cooldowns_are_single_numbers(kind: Callable[..., object]) -> None:
    """A run length is above 1, a run time a whole number, and a cooldown 1 or more."""
    refused(
        lambda value: kind(average_run_length=value),
        [*NO_NUMBERS, 1.0, math.inf, None],
        "average_run_length",
    )
    refused(lambda value: kind(average_run_time=value), [*NO_NUMBERS, 0, 2**63], "average_run_time")
    refused(lambda value: kind(cooldown=value), [*NO_NUMBERS, 0.5, None], "cooldown")


def test_a_grace_period_is_a_whole_number() -> None:
    """E-processes refuse any other before they count."""
    refused(lambda one: CalibrationEProcess(grace_period=one), [*NO_NUMBERS, 1.5], "grace_period")
    refused(lambda one: intervals(grace_period=one), [*NO_NUMBERS, 1.5], "grace_period")


def test_a_level_is_one_number() -> None:
    """Of an interval, a tracker and bands it lies between 0 and 1; a list of levels is refused."""
    bad = [*NO_NUMBERS, 0, 1.0]
    refused(ConformalInterval, bad, "level")
    refused(lambda level: CoverageTracker(level, (0.0, 1.0)), bad, "level")
    refused(corp([0.2, 0.7], [0, 1]).bands, bad, "level")
    refused(lambda level: DistributionEProcess([level]), [*NO_NUMBERS[:-2], 0, 1.0], "level")
    refused(lambda slack: CoverageTracker(0.9, (0.0, 1.0), slack=slack), NO_NUMBERS, "slack")
    refused(lambda n: corp([0.2], [0]).bands(resamples=n), [*NO_NUMBERS, 0], "resamples")
    refused(Ridge, [*NO_NUMBERS, math.inf], "alpha")
    refused(lambda one: ConfidenceSequence(one, 0.1), [*NO_NUMBERS, 0.0, math.inf], "tightest")
    refused(lambda one: ConfidenceSequence(1.0, 0.1, one), [*NO_NUMBERS, 0.0, math.inf], "scale")


def test_a_seed_is_a_whole_number_or_a_generator() -> None:
    """Draws refuse other seeds, and take a generator where they say so."""
    bad: list[Any] = ["a", -1, math.nan, [0.5], object()]
    refused(lambda seed: corp([0.2], [0]).bands(seed=seed), bad, "seed")
    refused(lambda seed: PREDICTIVE.sample(2, seed), bad, "seed")
    refused(lambda seed: PREDICTIVE.pit(0.5, seed), bad, "seed")
    assert len(PREDICTIVE.sample(2, np.random.default_rng(0))) == 2


def test_a_name_is_no_array() -> None:
    """An array where the kind of the scores is expected, often the scores, is refused."""
    scores = np.array([0.2, 0.7])
    refused(lambda kind: ProtectedVennAbers(scores=kind), [scores, [0.2]], "scores")
    refused(lambda kind: ProtectedIVAPR((0.0, 1.0), scores=kind), [scores, [0.2]], "scores")
    refused(lambda kind: ConformalInterval(0.9, kind), [scores, [0.2]], "score")
    refused(OneVsRest, [2, math.nan, object(), "ab"], "classes")
    for call in (registry.names, registry.protected_forms, lambda one: registry.find("ivap", one)):
        refused(call, ["a", ["binary"], 1, scores], "task")


@pytest.mark.parametrize("merge", [cross_log_merge, cross_brier_merge, cross_ends])
def test_the_intervals_of_folds_are_an_array_with_a_fold(
    merge: Callable[[Any, Any], object],
) -> None:
    """A number, a text and no fold are refused, with the name of the argument."""
    refused_as_intervals: list[Any] = [0.5, "a", [], None, {}, [["a"]]]
    for bad in refused_as_intervals:
        with pytest.raises(ParameterError, match=r"^p0\b"):
            merge(bad, [0.5])
        with pytest.raises(ParameterError, match=r"^p1\b"):
            merge([0.5], bad)


def test_a_key_is_bytes() -> None:
    """A text of the right length is refused as a key of saved state, and is not repeated."""
    refused(lambda key: Processor().snapshot(key=key), ["k" * 32, 32, [1] * 32], "key")
    with pytest.raises(ParameterError, match=r"^key is a str and not bytes; give 16 to 64"):
        Processor().snapshot(key="k" * 32)  # type: ignore[arg-type]

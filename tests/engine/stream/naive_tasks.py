"""The naive processor for labels of several classes, and for labels that are numbers.

As in `naive`; only scores, labels and predictions differ.

*Several classes.* A score is a mapping from some of the classes to finite numbers, 0 for those
left out: probabilities that sum to 1 within a hundredth where the settings say so, and of at least
0 for pairs of classes. A label is one of the classes, or the whole number that is written so.

*Numbers.* A score and a label are finite real numbers, the label inside the support if there is
one. With distributions the whole band is predicted, and the label scores it by the CRPS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from tests.engine.stream.naive import Naive

from abers import OneVsOne, ProtectedMultiClass
from abers.regression import IVAPR, PredictiveDistribution
from abers.stream import (
    Label,
    MultiClassOutcome,
    MultiClassPrediction,
    Observation,
    RegressionOutcome,
    RegressionPrediction,
)

if TYPE_CHECKING:
    from abers.stream import Processor, Settings

__all__ = ["NaiveClasses", "NaiveNumbers", "band_of", "naive"]


class NaiveClasses(Naive):
    """A processor of several classes."""

    def is_label(self, value: Any) -> bool:  # noqa: ANN401
        """Return a class, or its number, from anything else."""
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return (isinstance(value, str) or whole) and shortly(value) in self.settings.classes

    def as_learned(self, value: Any) -> Any:  # noqa: ANN401
        """Return a class."""
        return str(value)

    def is_score(self, score: Any) -> bool:  # noqa: ANN401
        """Return scores of the classes from anything else."""
        if not isinstance(score, Mapping) or not {*score} <= {*self.settings.classes}:
            return False
        given = [number(value) for value in self.kept(score).values()]
        if not all(map(math.isfinite, given)):
            return False
        probabilities = self.settings.scores == "probability"
        pairs = self.settings.calibrator == "one-vs-one"
        if (probabilities or pairs) and min(given) < 0.0:
            return False
        return not probabilities or abs(sum(given) - 1.0) <= 0.01

    def kept(self, score: Any) -> Any:  # noqa: ANN401
        """Return the scores of all classes, in their order."""
        return {name: number(score.get(name, 0.0)) for name in self.settings.classes}

    def made(self) -> Any:  # noqa: ANN401
        """Make a calibrator."""
        s = self.settings
        rule = {"window": s.window, "max_age": s.max_age, "half_life": s.half_life}
        if s.calibrator == "one-vs-one":
            return OneVsOne(s.classes, **rule)  # type: ignore[arg-type]
        if s.protected and s.labels_after is None:
            return ProtectedMultiClass(s.classes, **rule, raw_weight=s.raw_weight)  # type: ignore[arg-type]
        return super().made()

    def answer(self, calibrator: Any, event: Observation) -> Any:  # noqa: ANN401
        """Put the probabilities and their intervals into words."""
        number, aged = self.number(event), self.aged(event)
        if aged:
            calibrator.advance(aged["clock"])
        n = len(calibrator)
        found = calibrator.predict_one(self.score, number=number, **self.when(event), **aged)
        return MultiClassPrediction(
            id=event.id,
            time=event.time,
            model=event.model,
            score=self.score,
            p=found.p,
            low=found.low,
            high=found.high,
            n_labels=n,
            segment=event.segment,
            extra=event.extra,
        )

    def outcome(self, prediction: Any, label: Label) -> Any:  # noqa: ANN401
        """Put a class next to the prediction that it settles."""
        return MultiClassOutcome(
            id=prediction.id,
            time=label.time,
            model=prediction.model,
            prediction_time=prediction.time,
            label=label.value,
            score=prediction.score,
            p=prediction.p,
            low=prediction.low,
            high=prediction.high,
            segment=prediction.segment,
        )


class NaiveNumbers(Naive):
    """A processor of labels that are numbers."""

    def __init__(self, *given: Any, **options: Any) -> None:  # noqa: ANN401
        """Begin without a band."""
        super().__init__(*given, **options)
        self.bands: dict[tuple[str, str], PredictiveDistribution] = {}

    def is_label(self, value: Any) -> bool:  # noqa: ANN401
        """Return a finite number inside the support from anything else."""
        low, high = self.settings.support or (-math.inf, math.inf)
        return math.isfinite(number(value)) and low <= number(value) <= high

    def as_learned(self, value: Any) -> Any:  # noqa: ANN401
        """Return the number."""
        return number(value)

    def is_score(self, score: Any) -> bool:  # noqa: ANN401
        """Return a finite number from anything else."""
        return math.isfinite(number(score))

    def kept(self, score: Any) -> Any:  # noqa: ANN401
        """Return the number."""
        return number(score)

    def made(self) -> Any:  # noqa: ANN401
        """Make a calibrator."""
        s = self.settings
        forgetting = {"window": s.window, "max_age": s.max_age, "half_life": s.half_life}
        given = {"grid": s.grid or None, "support": s.support or None}
        return IVAPR(**forgetting, **given)  # type: ignore[arg-type]

    def answer(self, calibrator: Any, event: Observation) -> Any:  # noqa: ANN401
        """Put the quantiles of the merged distribution, and those of the band, into words."""
        band = None
        if self.settings.distributions != "none":
            band = calibrator.predict_one(self.score, **self.when(event))
            self.bands[event.model, event.id] = band
        levels = self.settings.quantiles
        when = {name: [time] for name, time in self.when(event).items()}
        times = when.get("time")
        found = calibrator.quantiles_many([self.score], levels, times=times)
        merged, low, high = (
            dict(zip(map(repr, levels), row[0].tolist(), strict=True)) for row in found
        )
        return RegressionPrediction(
            id=event.id,
            time=event.time,
            model=event.model,
            score=self.score,
            quantiles=merged,
            low=low,
            high=high,
            n_labels=len(calibrator),
            segment=event.segment,
            extra=event.extra,
            mean=None if band is None else band.mean,
            cdf=band.to_dict()
            if band is not None and self.settings.distributions == "full"
            else None,
        )

    def outcome(self, prediction: Any, label: Label) -> Any:  # noqa: ANN401
        """Put a number next to the prediction that it settles."""
        band = self.bands.get((prediction.model, prediction.id))
        return RegressionOutcome(
            id=prediction.id,
            time=label.time,
            model=prediction.model,
            prediction_time=prediction.time,
            label=label.value,
            score=prediction.score,
            quantiles=prediction.quantiles,
            low=prediction.low,
            high=prediction.high,
            segment=prediction.segment,
            mean=prediction.mean,
            crps=None if band is None else band.crps(number(label.value)),
        )


def band_of(cdf: Mapping[str, Any] | None) -> PredictiveDistribution:
    """Make the band that stands on the wire; an infinite end of its support is null there."""
    given: Any = dict(cdf or {})
    low, high = given.pop("support")
    ends = (-math.inf if low is None else low, math.inf if high is None else high)
    return PredictiveDistribution(**given, support=ends)


def naive(settings: Settings, learner: Any = None) -> Naive:  # noqa: ANN401
    """Make the naive processor of a task."""
    kinds: dict[str, type[Naive]] = {"multiclass": NaiveClasses, "regression": NaiveNumbers}
    return kinds[settings.task](settings, learner=learner)


def number(value: Any) -> float:  # noqa: ANN401
    """Return a number, which is not below 0 if it is 0; NaN for anything else."""
    try:
        return float(value) + 0.0 if isinstance(value, Real) else math.nan
    except OverflowError:
        return math.nan


def shortly(value: Any) -> str | None:  # noqa: ANN401
    """Write a text or a whole number; None for one of thousands of digits."""
    try:
        return str(value)
    except ValueError:
        return None


def same(processor: Processor, expected: Naive) -> bool:
    """Return whether what can be seen from outside is the same."""
    return processor.counters == expected.counters and processor.clock == expected.clock

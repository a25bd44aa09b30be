"""The capabilities that a calibrator declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Capabilities"]

_ANY_RULE = ("window", "max_age", "half_life")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a calibrator takes and returns; the check suite tests exactly this.

    Attributes
    ----------
    task
        The kind of prediction: "binary", "multiclass" or "regression".
    score
        A "number", a "probability", one number for each of several "folds", or for each of several
        "classes", "class probabilities", ascending "quantiles", a "prediction" of the label: two
        numbers, where the first is never above the second; or a prediction and 0 or 1 for each of
        several "segments".
    answer
        One "probability" of label 1, an "interval" of two, a "protected" probability with an
        interval, intervals by "folds" or "classes", a
        "distribution" of the label, a "mean" interval for it, or a "prediction interval" with the
        ends `low` and `high`.
    weights
        Whether observations may have weights.
    removal
        Whether observations can be removed from one that keeps all: "none" of them, each by
        itself with `remove_one` ("single"), or also in `run` ("any").
    forgetting
        The supported rules of forgetting.
    stateful
        Whether predictions change the state. Then observations have numbers, and expire if no label
        will come. Otherwise numbers and expiries have no effect.
    columns
        Names of further columns of a batch, such as "folds".
    options
        Further options that a stream gives it, by the names of `abers.stream.Settings`, such as
        "raw_weight".
    """

    task: Literal["binary", "multiclass", "regression"]
    score: Literal[
        "number",
        "probability",
        "folds",
        "classes",
        "class probabilities",
        "quantiles",
        "prediction",
        "segments",
    ] = "number"
    answer: Literal[
        "probability",
        "interval",
        "protected",
        "folds",
        "classes",
        "distribution",
        "mean",
        "prediction interval",
    ] = "interval"
    weights: bool = True
    removal: Literal["none", "single", "any"] = "any"
    forgetting: tuple[str, ...] = _ANY_RULE
    stateful: bool = False
    columns: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def of_probabilities(self) -> bool:
        """Whether scores must be probabilities."""
        return self.score in {"probability", "class probabilities"}

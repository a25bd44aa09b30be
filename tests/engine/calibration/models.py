"""Protected calibrators of the core by themselves: made, run, and their state as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.backends import core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["CLASSES", "FOLDS", "PRIORS", "SETS", "chances", "given", "made", "run", "saved"]

SETS = ("one", "folds", "classes")
"""The kinds of calibration sets."""

FOLDS, CLASSES = 3, 4

_TWO = [1 / 4, *[3 / 56] * 7, *[1 / 8] * 3]
PRIORS = {"one": _TWO, "folds": _TWO, "classes": [1 / 4, *[3 / 40] * 5, *[1 / 8] * 3]}
"""First weights of the methods."""


def made(sets: str, window: int = 0) -> Any:  # noqa: ANN401 - of three types
    """Make a calibrator of probabilities."""
    if sets == "one":
        return core.Protection(core.CalibrationSet(window))
    if sets == "folds":
        return core.FoldProtection([core.CalibrationSet(window) for _ in range(FOLDS)])
    return core.ClassProtection([core.CalibrationSet(window) for _ in range(CLASSES)])


def given(sets: str, rng: np.random.Generator) -> list[float]:
    """Draw the scores of an observation."""
    if sets == "classes":
        scores: list[float] = rng.dirichlet(np.full(CLASSES, 0.4)).tolist()
        return scores
    if sets == "folds":
        return [*rng.random(FOLDS).tolist(), float(rng.integers(FOLDS))]
    return [rng.random()]


def run(
    model: Any,  # noqa: ANN401 - of three types
    kind: int,
    numbers: Sequence[int],
    label: int = 0,
    scores: Sequence[float] = (0.9,),
) -> NDArray[np.float64]:
    """Run steps of one kind, all with the same scores; return rows of predictions."""
    n = len(numbers)
    out, labels = np.empty((n, model.forecast_width)), np.full(n, label)
    columns = np.full(n, kind, np.uint8), np.tile(scores, (n, 1)), labels
    assert model.run(*columns, None, None, np.array(numbers, np.int64), out, None) == n
    return out


def saved(mixture: Any) -> dict[str, NDArray[Any]]:  # noqa: ANN401 - of both kinds, or plain
    """Return the state of a mixture as columns, by lane the last two in rows."""
    lanes, experts, kept = mixture.lane_rows, mixture.experts, mixture.kept_size
    columns: dict[str, Any] = {
        "own": np.empty(mixture.parameter_count),
        "exponents": np.empty(experts + 1, np.int64),
        "numbers": np.empty(lanes, np.int64),
        "moments": np.empty(lanes, np.int64),
        "weights": np.empty(lanes * experts),
        "forecasts": np.empty(lanes * kept),
    }
    mixture.save(*columns.values())
    columns["weights"] = columns["weights"].reshape(lanes, experts)
    columns["forecasts"] = columns["forecasts"].reshape(lanes, kept)
    return columns


def chances(sets: str, row: list[float], kept: list[float], label: int) -> list[float]:
    """Return what each method, and then what was served in a row, gave to a label."""
    if sets == "classes":
        return [*kept[label : 9 * CLASSES : CLASSES], row[label]]
    return [p if label else 1.0 - p for p in (*kept[:11], row[-1])]

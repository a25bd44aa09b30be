"""A backtest over 200 models: which can be trusted, and what calibration would have done.

Usage: python examples/backtest.py         (needs pip install "abers[files]")

A bank scores loans in 200 markets, each by a model of its own, and a label comes a month later.
Half-way through the year twenty models go off; twenty others have been off all the time. One pass
over the table, in the order of time, says what abers would have served, and which scores it would
have found to be wrong. docs/gallery/backtest.md shows the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from abers.stream import Events, Processor, Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DAY, START = 86_400_000, 1_735_689_600_000  # milliseconds; the start of 2025
LOANS, MODELS, WRONG, JULY = 200_000, 200, 20, 181
TIMES_TOO_HIGH = 4.0  # the odds of the scores of a model that is off
STATES = ("right", "off all year", "off from July on")


def state(model: str) -> str:
    """Return what is true of a model."""
    market = int(model.removeprefix("market-"))
    if market >= 2 * WRONG:
        return "right"
    return "off all year" if market < WRONG else "off from July on"


def loans() -> tuple[pa.Table, Floats]:
    """Make up the table of a year, and the true probabilities, which nobody knows."""
    rng = np.random.default_rng(1)
    day = np.sort(rng.uniform(0, 365, LOANS))
    market = rng.integers(0, MODELS, LOANS)
    log_odds = rng.normal(-1.5, 1.2, LOANS)
    off = (market < WRONG) | ((market < 2 * WRONG) & (day > JULY))
    truth = 1 / (1 + np.exp(np.where(off, np.log(TIMES_TOO_HIGH), 0.0) - log_odds))
    columns = {
        "id": [f"loan-{n}" for n in range(LOANS)],
        "time": START + (day * DAY).astype(int),
        "model": [f"market-{n:03}" for n in market],
        "score": 1 / (1 + np.exp(-log_odds)),
        "label": (rng.random(LOANS) < truth).astype(int),
        "known": START + ((day + 30) * DAY).astype(int),
    }
    return pa.table(columns), truth


def main() -> None:
    """Print answers by what is true of a model, and log losses."""
    table, truth = loans()
    processor = Processor(Settings(scores="probability", label_timeout=31 * DAY))
    outputs = processor.process_batch(Events.from_arrow(table, {"label_time": "known"}))
    answers = {
        name: found  # about the scores, and about what abers served
        for (name, _), monitor in zip(processor.keys, processor.monitors, strict=True)
        if (found := monitor.answers()) is not None
    }
    labels, names = np.asarray(table["label"]), table["model"].to_pylist()
    served = {
        "model": np.asarray(table["score"]),
        "abers": np.asarray(outputs.predictions.columns["p"]),
        "truth": truth,
    }
    losses = {name: -np.log(np.where(labels, p, 1 - p)) for name, p in served.items()}
    print("the model is       models  found off at the end          log loss of the")
    print("                            the scores      abers       model  abers  truth")
    for one in STATES:
        of = [found for name, found in answers.items() if state(name) == one]
        raw, own = (sum(found[n].state == "no" for found in of) for n in ("model", "calibrated"))
        rows = np.array([state(name) == one for name in names])
        means = "  ".join(f"{loss[rows].mean():.3f}" for loss in losses.values())
        print(f"{one:<18} {len(of):>6} {raw:>11} {own:>11}       {means}")
    worst = min(answers, key=lambda name: answers[name]["model"].high or 0.0)
    print(f"\n{worst}: {answers[worst]['model'].sentence}")


if __name__ == "__main__":
    main()

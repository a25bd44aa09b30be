"""Fraud scores with chargebacks as labels: they come weeks later, and only for frauds.

Usage: python examples/fraud.py         (needs pip install "abers[files]")

The model was trained on all frauds and one of twenty other payments, so its scores are far too
high: 0.5 means one fraud in twenty-one payments. docs/gallery/fraud.md shows the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from abers.stream import Events, Processor, Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

DAY, START = 86_400_000, 1_735_689_600_000  # milliseconds; the start of 2025
PAYMENTS, DAYS, MORE_FRAUD = 60_000, 360, 200
WAIT = 60  # days after which a payment without a chargeback is no fraud
REVIEW = 5.0  # cost of a review in euros; a fraud without one costs its amount


class Payments(NamedTuple):
    """Payments in the order of their days, and when a chargeback came."""

    day: NDArray[np.float64]
    amount: NDArray[np.float64]
    score: NDArray[np.float64]
    fraud: NDArray[np.bool_]
    chargeback: NDArray[np.float64]


def payments() -> Payments:
    """Make up payments; the odds of a fraud triple on the way, and the scores do not change."""
    rng = np.random.default_rng(1)
    day = np.sort(rng.uniform(0, DAYS, PAYMENTS))
    log_odds = rng.normal(-4.8, 1.6, PAYMENTS)
    now = log_odds + np.where(day > MORE_FRAUD, np.log(3), 0.0)
    fraud = rng.random(PAYMENTS) < 1 / (1 + np.exp(-now))
    score = 1 / (1 + np.exp(-log_odds - np.log(20)))
    amount = np.exp(rng.normal(3.8, 0.9, PAYMENTS))
    chargeback = day + np.minimum(rng.gamma(4, 6, PAYMENTS), WAIT)
    return Payments(day, amount, score, fraud, chargeback)


def probabilities(given: Payments) -> NDArray[np.float64]:
    """Replay the payments, with each label on the day when it is known; return what was served."""
    known = np.where(given.fraud, given.chargeback, given.day + WAIT)
    columns = {
        "id": [f"payment-{n}" for n in range(PAYMENTS)],
        "time": START + (given.day * DAY).astype(int),
        "score": given.score,
        "label": given.fraud.astype(int),
        "known": START + (known * DAY).astype(int),
    }
    events = Events.from_arrow(pa.table(columns), {"label_time": "known"})
    settings = Settings(
        scores="probability", probability="merged", window=10_000, label_timeout=(WAIT + 1) * DAY
    )
    served = Processor(settings).process_batch(events).predictions.columns
    # Before the first label nothing is known, and the score is as good as anything.
    return np.where(np.asarray(served["n_labels"]) > 0, served["p"], given.score)


def cost(given: Payments, probability: NDArray[np.float64]) -> float:
    """Return the cost if each payment with a higher expected loss than a review is reviewed."""
    reviewed = probability * given.amount > REVIEW
    return float(np.where(reviewed, REVIEW, given.fraud * given.amount)[given.day >= WAIT].sum())


def main() -> None:
    """Print how many frauds were expected, and what decisions by these numbers cost."""
    given = payments()
    served = probabilities(given)
    print("                               frauds expected by")
    print("    days    payments  frauds   the model     abers")
    for first, last in ((0, 60), (60, 90), (90, 200), (200, 260), (260, 300), (300, 360)):
        rows = (given.day >= first) & (given.day < last)
        sums = [one[rows].sum() for one in (given.score, served)]
        counts = f"{first + 1:>3} - {last:>3} {rows.sum():>10,} {given.fraud[rows].sum():>7,}"
        print(f"{counts} {sums[0]:>11,.0f} {sums[1]:>9,.0f}")
    print(f"\nCost from day {WAIT + 1} on, if payments are reviewed by")
    print(f"  the score of the model {cost(given, given.score):>9,.0f} €")
    print(f"  abers                  {cost(given, served):>9,.0f} €")
    print(f"  nothing: no reviews    {cost(given, np.zeros(PAYMENTS)):>9,.0f} €")


if __name__ == "__main__":
    main()

"""Labels that come late, some never: protected and merged probabilities.

Usage: python examples/late_labels.py

A model scores 6,000 observations, and half-way its scores turn into their opposites. Each label
comes 500 observations after its prediction, and one in ten is lost. The program prints the mean log
loss of the scores and of the probabilities as they were served, in parts of the stream:

    observations        raw  merged  protected
        1 -   500     0.510   0.693      0.510   no label has come
      501 - 3,000     0.494   0.505      0.495   the scores are right
    3,001 - 3,500     1.478   1.369      1.469   they are wrong, and no label shows it yet
    3,501 - 4,500     1.525   1.123      0.986   labels show it
    4,501 - 6,000     1.465   0.814      0.582
    protected minus raw: -1232 nats in total; promised: at most 695
    most weight: share
"""

from __future__ import annotations

from collections import deque

import numpy as np

from abers import ProtectedVennAbers, VennAbers

N, LATE, LOST = 6_000, 500, 0.1
PARTS = {
    (0, 500): "no label has come",
    (500, 3_000): "the scores are right",
    (3_000, 3_500): "they are wrong, and no label shows it yet",
    (3_500, 4_500): "labels show it",
    (4_500, N): "",
}


def stream() -> tuple[list[float], list[int]]:
    """Return scores and labels; from the middle on the scores are the opposites."""
    rng = np.random.default_rng(1)
    chance = rng.random(N)
    labels = rng.random(N) < chance
    scores = np.where(np.arange(N) < N // 2, chance, 1.0 - chance)
    return scores.tolist(), labels.astype(int).tolist()


def served(scores: list[float], labels: list[int]) -> tuple[list[list[float]], ProtectedVennAbers]:
    """Predict each observation under its number, and learn its label later, or let it expire."""
    lost = np.random.default_rng(2).random(N) < LOST
    merged, protected = VennAbers(), ProtectedVennAbers()
    rows, waiting = [], deque[int]()
    for number, score in enumerate(scores):
        probability = protected.predict_one(score, number=number).probability
        rows.append([score, merged.predict_one(score).merged, probability])
        waiting.append(number)
        if len(waiting) > LATE:
            of = waiting.popleft()
            if lost[of]:
                protected.expire_one(of)
            else:
                merged.learn_one(scores[of], labels[of])
                protected.learn_one(scores[of], labels[of], number=of)
    return rows, protected


def main() -> None:
    """Print the losses of each part of the stream, then the promise and the best method."""
    scores, labels = stream()
    rows, protected = served(scores, labels)
    losses = -np.log(np.where(np.array(labels)[:, np.newaxis] == 1, rows, 1.0 - np.array(rows)))
    print("observations        raw  merged  protected")
    for (first, last), what in PARTS.items():
        means = losses[first:last].mean(axis=0)
        row = f"{first + 1:>5,} - {last:>5,} {means[0]:>9.3f} {means[1]:>7.3f} {means[2]:>10.3f}"
        print(f"{row}   {what}".rstrip())
    total, weights = protected.expert_losses(), protected.expert_weights()
    excess = total["protected"] - total["raw"]
    promised = f"promised: at most {protected.price:.0f}"
    print(f"protected minus raw: {excess:.0f} nats in total; {promised}")
    print(f"most weight: {max(weights, key=weights.__getitem__)}")


if __name__ == "__main__":
    main()

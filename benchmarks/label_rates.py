"""Labels that are missing or late by class: what the guarantee of an interval is worth then.

    python -m benchmarks.label_rates

It writes docs/evidence/label_rates.md. The guarantee is about p_Y, the end of the interval that
belongs to the true label: the mean of Y - p_Y is 0 in every bin of p_Y. A z value is the sum of
Y - p_Y over its standard error.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers import VennAbers
from abers.arrays import LEARN, PREDICT
from abers.stream import Label, Observation, Processor, Settings
from benchmarks.page import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from abers.stream import Event

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "label_rates.md"

DRAWS, BAG = 100_000, 25
RATES = (0.5, 1.0)
ASSUMED = {"without": (1.0, 1.0), "known": RATES, "taken as .4": (0.4, 1.0)}
EDGES = np.array([0.2, 0.4, 0.6, 0.8])
FALL = 0.8  # score from which the model is wrong

LENGTH, SEEDS = 5_000, 60
SKIPPED, AGE, DELAYS = 1_000, 600, (200, 5)  # first rows; max_age; delays of both classes


class Bias(NamedTuple):
    """The mean of Y - p, and its z value."""

    mean: float
    z: float

    @classmethod
    def of(cls, errors: Floats) -> Bias:
        """Return that of independent errors."""
        return cls(float(errors.mean()), float(errors.sum() / np.sqrt((errors**2).sum())))

    def __str__(self) -> str:
        """Return the mean, with z in parentheses."""
        return f"{self.mean:+.3f} ({self.z:+.1f})".replace("-", "\N{MINUS SIGN}")


def chances(scores: Floats) -> Floats:
    """Return the probabilities of label 1: they rise with the score, and fall at the end."""
    return np.where(scores < FALL, 0.1 + 0.7 * scores, 0.4)


# Labels that never come


def missing(draws: int, bag: int) -> tuple[Floats, Integers]:
    """Return rows of labelled observations, the first that have labels, and of a query."""
    rng = np.random.default_rng(0)
    scores = np.round(rng.random((draws, 4 * bag + 1)), 2)
    labels = (rng.random(scores.shape) < chances(scores)).astype(np.int64)
    came = rng.random(scores.shape) < np.asarray(RATES)[labels]
    came[:, -1] = False  # the query is any observation
    kept = np.sort(np.argsort(~came, axis=1, kind="stable")[:, :bag], axis=1)
    if not np.take_along_axis(came, kept, 1).all():
        msg = f"fewer than {bag} of {4 * bag} observations have labels; draw more"
        raise RuntimeError(msg)
    rows = np.column_stack((kept, np.full(draws, 4 * bag)))
    return np.take_along_axis(scores, rows, 1), np.take_along_axis(labels, rows, 1)


def missing_by_bin(draws: int = DRAWS, bag: int = BAG) -> Iterator[list[object]]:
    """Yield a row for each bin of p_Y, and one for all, by the rates that are assumed."""
    scores, labels = missing(draws, bag)
    kinds = np.tile([LEARN] * bag + [PREDICT], (draws, 1)).ravel()
    truth = labels[:, -1]
    selected = []
    for rates in ASSUMED.values():
        calibrator = VennAbers(window=bag, label_rates=rates)
        ends = calibrator.run(kinds, scores.ravel(), labels.ravel())
        p0, p1 = (end[kinds == PREDICT] for end in ends)
        selected.append(np.where(truth == 1, p1, p0))
    bins = [np.digitize(p, EDGES) for p in selected]
    for one in range(len(EDGES) + 1):
        low, high = [0.0, *EDGES][one], [*EDGES, 1.0][one]
        found = [Bias.of((truth - p)[at == one]) for p, at in zip(selected, bins, strict=True)]
        yield [f"{low:.1f} – {high:.1f}", *found]
    yield ["all", *(Bias.of(truth - p) for p in selected)]


# Labels that are late


class Late(NamedTuple):
    """A stream of observations, one a millisecond."""

    scores: Floats
    labels: Integers

    @classmethod
    def of(cls, seed: int, length: int) -> Late:
        """Draw it."""
        rng = np.random.default_rng(seed)
        scores = rng.random(length)
        return cls(scores, (rng.random(length) < chances(scores)).astype(np.int64))

    def events(self) -> list[Event]:
        """Return the events of the stream in the order of their times."""
        delays = np.asarray(DELAYS)[self.labels]
        timed: list[tuple[int, int, Event]] = []
        for at, (score, label, delay) in enumerate(
            zip(self.scores.tolist(), self.labels.tolist(), delays.tolist(), strict=True)
        ):
            timed.append((at, 1, Observation(str(at), at, score=score)))
            timed.append((at + delay, 0, Label(str(at), at + delay, value=label)))
        return [event for *_, event in sorted(timed, key=lambda one: one[:2])]


def on_arrival(stream: Late) -> tuple[Floats, Floats]:
    """Return both ends where each label is learned when it comes."""
    n = len(stream.scores)
    rows, times = np.arange(n), np.arange(n)
    came = times + np.asarray(DELAYS)[stream.labels]
    order = np.lexsort((np.repeat([1, 0], n), np.concatenate((times, came))))
    row, kinds = np.concatenate((rows, rows))[order], np.repeat([PREDICT, LEARN], n)[order]
    calibrator = VennAbers(max_age=AGE)
    ends = calibrator.run(kinds, stream.scores[row], stream.labels[row], times=times[row] * 1.0)
    p0, p1 = (end[kinds == PREDICT] for end in ends)
    return p0, p1


def of_stream(stream: Late, learn_after: int | None) -> tuple[Floats, Floats]:
    """Return both ends in a stream, by the order of predictions or at an age."""
    settings = Settings(
        probability="merged",
        max_age=AGE,
        learn_after=learn_after,
        label_timeout=10 * AGE,
        max_jump=10 * AGE,
        monitors=False,
    )
    predicted = Processor(settings, outcomes=False).process_many(stream.events())
    p0, p1 = ([getattr(one, end) for one in predicted] for end in ("p0", "p1"))
    return np.array(p0), np.array(p1)


WAYS: dict[str, Callable[[Late], tuple[Floats, Floats]]] = {
    "when it comes": on_arrival,
    "in the order of predictions, the default of a stream": lambda one: of_stream(one, None),
    "at age 200, `limits.learn_after`": lambda one: of_stream(one, max(DELAYS)),
}


def late_by_way(seeds: int = SEEDS, length: int = LENGTH) -> Iterator[list[object]]:
    """Yield a row for each way to learn: the errors of p_Y and of the merge."""
    for name, way in WAYS.items():
        means = []
        for seed in range(seeds):
            stream = Late.of(seed, length)
            p0, p1 = (end[SKIPPED:] for end in way(stream))
            truth = stream.labels[SKIPPED:]
            selected, merged = np.where(truth == 1, p1, p0), p1 / (1.0 - p0 + p1)
            means.append([(truth - p).mean() for p in (selected, merged)])
        yield [name, *(_of_streams(column) for column in np.transpose(means))]


def _of_streams(means: Floats) -> Bias:
    """Return the mean over streams; they are independent, and what they are of is not."""
    error = means.std(ddof=1) / np.sqrt(len(means))
    return Bias(float(means.mean()), float(means.mean() / error))


# The page

HEAD = """# Labels missing or late by class

After this page you know how wrong probabilities become if the labels of one class are missing or
late, and what [`label_rates`](../classification.md#labels-missing-by-class) and
`limits.learn_after` change. `python -m benchmarks.label_rates` writes the page.

The guarantee of `VennAbers` is about p_Y, the end of the interval that belongs to the true label
Y: in every bin of p_Y the mean of Y − p_Y is 0. Below 0 probabilities are too high. The z value
in parentheses is that mean over its standard error: without a bias it is mostly between −2 and 2.
"""

MISSING = """## Every second label 0 never comes

{draws:,} bags of {bag} labelled observations, with a query each; a query is any observation, with
a label or without. The rate of class 1 is 1. That of class 0 is .5, and the calibrator has no
rate, this rate, or a wrong one.

"""

LATER = """
With the known rates nothing is found. A wrong rate is a bias again: its ratio to the true one
multiplies odds.

Scores and tests are over labelled observations. There label 1 has the odds of p times the ratio of
the rates, and a stream compares labels with that.

## Label 0 comes after 200, label 1 after 5

{seeds} streams of {length:,} observations, one a millisecond; a calibrator keeps those of the last
600 (`max_age`), and the first {skipped:,} are left out. If a label is learned when it comes, the
newest 200 observations have no labels but 1. Rates do not fix that: they depend on the age. The
mean and z value are those over streams.

"""

END = """
The merge has no guarantee: it is drawn to .5, here by a point. In the order of predictions, and at
an age, an observation teaches when all labels of its time are known. `learn_after` needs a delay
that you know; the order of predictions finds it in the delays seen. A label that never comes is
another matter: name it by `input.unlabelled`, or give its rate.
"""


def page() -> str:
    """Run both simulations, and return the page."""
    assumed = [f"rates {name}" if name != "without" else "no rates" for name in ASSUMED]
    return "".join(
        (
            HEAD,
            "\n",
            MISSING.format(draws=DRAWS, bag=BAG),
            table(["p_Y", *assumed], missing_by_bin()).rstrip("\n"),
            "\n",
            LATER.format(seeds=SEEDS, length=LENGTH, skipped=SKIPPED),
            table(["a label is learned", "Y − p_Y", "Y − p, merged"], late_by_way()).rstrip("\n"),
            "\n",
            END,
        )
    )


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

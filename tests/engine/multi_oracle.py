"""The definition of calibration of several classes in fractions, which the tests compare with.

As in `oracle`, nothing is clever, and nothing is shared with the code under test.
An oracle remembers every observation whole, and asks the binary oracle anew for each answer.

- A class is known from its first score or label on; a score that is left out is 0.
- One-vs-rest: the bag of a class are all observations kept, labelled by whether they are of it.
- One-vs-one: the bag of a pair are the observations of the two that are among those kept, whatever
  else is kept; the score is the share of the first class (a double), 1/2 if both scores are 0.
- Merged for log loss; divided by the sum, or coupled by 1 / (sum of 1 / r_ij - (k - 2)).
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.engine.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Mapping

Label = str | int | bool


class Known(NamedTuple):
    """An observation that was learned."""

    scores: dict[Label, float]
    label: Label
    weight: float
    time: float


class Answer(NamedTuple):
    """Probability and ends of the interval of each class, exactly."""

    p: dict[Label, Fraction]
    low: dict[Label, Fraction]
    high: dict[Label, Fraction]


Pair = tuple[Fraction, Fraction]


def merged(pair: Pair) -> Fraction:
    """Merge for log loss."""
    p0, p1 = pair
    return p1 / (1 - p0 + p1)


def normalised(p: dict[Label, Fraction]) -> dict[Label, Fraction]:
    """Divide by the sum."""
    return {c: each / sum(p.values()) for c, each in p.items()}


def pkpd(r: list[Fraction]) -> Fraction:
    """Couple the probabilities of one class against each other one, in which 0 means 0."""
    if 0 in r:
        return Fraction(0)
    return 1 / (sum((1 / each for each in r), Fraction(0)) - (len(r) - 1))


class MultiOracle:
    """A calibrator of several classes that obeys the definition, and nothing else."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        """Forget as the options of the binary oracle say."""
        self.options = options
        self.stream = Oracle(**options)
        self.known: list[Known] = []
        self.classes: list[Label] = []

    def __len__(self) -> int:
        """Count the observations kept."""
        return len(self.stream)

    def learn(
        self,
        scores: Mapping[Label, float],
        label: Label,
        weight: float = 1.0,
        time: float = -math.inf,
    ) -> None:
        """Learn an observation, unless it is too old."""
        late = self.stream.late
        self.stream.learn(0.0, 0, weight, time)
        self.classes += [c for c in dict.fromkeys((*scores, label)) if c not in self.classes]
        if self.stream.late == late:
            self.known.append(Known(dict(scores), label, weight, time))

    def remove(self, scores: Mapping[Label, float], label: Label, weight: float = 1.0) -> None:
        """Forget an observation that was learned."""
        self.known.remove(Known(dict(scores), label, weight, -math.inf))
        self.stream.remove(0.0, 0, weight)

    def held(self, now: float) -> list[Known]:
        """List what is remembered at a time."""
        if self.stream.window is not None:
            return self.known[-self.stream.window :]
        reach = math.inf if self.stream.reach is None else self.stream.reach
        return [each for each in self.known if each.time >= max(self.stream.newest, now) - reach]

    def one_vs_rest(
        self, scores: Mapping[Label, float], weight: float = 1.0, time: float = -math.inf
    ) -> Answer:
        """Answer for each class against the rest."""
        pairs = {}
        for c in dict.fromkeys((*self.classes, *scores)):
            bag = Oracle(**self.options)
            for each in self.known:
                bag.learn(each.scores.get(c, 0.0), int(each.label == c), each.weight, each.time)
            score = scores.get(c, 0.0)
            p0, p1 = (bag.probability(y, score, weight, time) for y in (0, 1))
            pairs[c] = p0, p1
        return Answer(
            normalised({c: merged(pair) for c, pair in pairs.items()}),
            {c: p0 for c, (p0, _) in pairs.items()},
            {c: p1 for c, (_, p1) in pairs.items()},
        )

    def one_vs_one(
        self, scores: Mapping[Label, float], weight: float = 1.0, time: float = -math.inf
    ) -> Answer:
        """Answer for each class by its pairs with all others."""
        classes = [*dict.fromkeys((*self.classes, *scores))]
        if len(classes) == 1:
            one, zero = Fraction(1), Fraction(0)
            return Answer({classes[0]: one}, {classes[0]: zero}, {classes[0]: one})
        now = max(time, self.stream.newest)
        r: dict[Label, list[tuple[Fraction, Fraction, Fraction]]] = {c: [] for c in classes}
        for i, j in combinations(classes, 2):
            p0, p1 = self._pair(i, j, scores, weight, now)
            middle = merged((p0, p1))
            r[i].append((middle, p0, p1))
            r[j].append((1 - middle, 1 - p1, 1 - p0))
        p, low, high = (
            {c: pkpd([ends[which] for ends in r[c]]) for c in classes} for which in range(3)
        )
        return Answer(normalised(p), low, high)

    def _pair(
        self, i: Label, j: Label, scores: Mapping[Label, float], weight: float, now: float
    ) -> Pair:
        bag = Oracle(half_life=self.options.get("half_life"))
        for each in self.held(now):
            if each.label in {i, j}:
                bag.learn(share(each.scores, i, j), int(each.label == i), each.weight, each.time)
        score = share(scores, i, j)
        when = now if self.options.get("half_life") and bag.entries else -math.inf
        p0, p1 = (bag.probability(y, score, weight, when) for y in (0, 1))
        return p0, p1


def share(scores: Mapping[Label, float], i: Label, j: Label) -> float:
    """Return the share of class i in the scores of i and j."""
    a, b = scores.get(i, 0.0), scores.get(j, 0.0)
    return a / (a + b) if a + b else 0.5

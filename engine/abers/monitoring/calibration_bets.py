"""Bets against the forecasts of a binary label, which win if these are not calibrated.

Governing rule: the bet on an observation is made when it is predicted, from labels that had come by
then; what bets win is multiplied in the order of the observations, whenever labels come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.calibration import VennAbers, _checks, log_merge
from abers.exceptions import ScoreError
from abers.monitoring._in_order import InOrder
from abers.monitoring.evidence import ChangeDetector, SinceStart

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from abers.monitoring.evidence import Betting, Episode, Evidence

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["EXPIRES", "LEARNS", "PREDICTS", "CalibrationBets", "Opened", "Steps"]

PREDICTS, LEARNS, EXPIRES = 0, 1, 2  # kinds of steps

_GRID = 4096.0  # forecasts are rounded to its parts for the bag, so that it stays small
_WINDOW = 1000  # labels from which changes are bet on: those before a change soon have left it
_FORECAST, _LABEL, _BETS = 0, 1, slice(2, 4)  # columns of what waits: a bet for each test


class Steps(NamedTuple):
    """What happens to observations, a row a step, in order.

    Attributes
    ----------
    kinds
        0: it is predicted. 1: its label comes. 2: its label will not come.
    numbers
        Of the observations, ascending among those that are predicted.
    times
        Event times of the observations.
    values
        Array of shape (n, width): what the bets are told. `CalibrationBets` are told the
        probability of label 1 where an observation is predicted, and 0 or 1 where a label comes.
    """

    kinds: NDArray[np.uint8]
    numbers: Integers
    times: Integers
    values: Floats


class Opened(NamedTuple):
    """An episode that opened.

    Attributes
    ----------
    step
        The last step that it needed.
    test
        Name of the test.
    episode
        The episode as it opened.
    """

    step: int
    test: str
    episode: Episode


class CalibrationBets:
    """Test whether forecasts are calibrated, by betting against them with Venn-Abers prediction.

    Parameters
    ----------
    alpha
        Of the test since the beginning, see `SinceStart`.
    distance, quiet
        Of the detector of changes, see `ChangeDetector`.

    Attributes
    ----------
    skipped
        Observations that expired.

    Notes
    -----
    The hypothesis is that P(Y = 1), given all that was known when the forecast p was issued and
    the labels of all observations before it, is p. The bet q is the merged Venn-Abers probability
    that an `abers.VennAbers` gives p, rounded to 1/4096: one of all labels for the test since the
    beginning, one of the last 1,000 for the detector. The factor is q/p for label 1, and
    (1 - q)/(1 - p) for label 0; its mean is 1 if the hypothesis is true. A label 1 that was
    forecast with 0, or a label 0 with 1, makes it infinite.

    **Guarantee.** That of each test, see `SinceStart` and `ChangeDetector`; they hold however long
    labels take, also if that depends on the label, because a factor waits until all observations
    before it have their labels or expired. An observation that expires is left out; that is
    valid only if being without a label for so long does not depend on the label.

    What waits is bounded only by what the caller lets wait: let observations expire.

    References
    ----------
    Henzi, Puke, Dimitriadis & Ziegel (2023), A safe Hosmer-Lemeshow test; Vovk & Petej (2014),
    Venn-Abers predictors.

    Examples
    --------
    >>> bets = CalibrationBets(alpha=0.05)
    >>> bets.predict(0, 0.01)
    >>> bets.predict(1, 0.01)
    >>> bets.learn(1, 1)  # waits for the label of observation 0
    []
    >>> [(one.step, one.test, round(one.episode.log_wealth, 4)) for one in bets.learn(0, 1)]
    [(0, 'since-start', 3.912)]
    >>> [(one.name, round(one.log_wealth, 4)) for one in bets.evidence()]
    [('since-start', 7.824), ('change', 7.8438)]
    """

    def __init__(
        self, *, alpha: float = 0.01, distance: float = 1_000_000.0, quiet: float = 10_000.0
    ) -> None:
        self._tests: tuple[Betting, ...] = (
            SinceStart("since-start", alpha=alpha),
            ChangeDetector("change", distance=distance, quiet=quiet),
        )
        self._bettors = (VennAbers(), VennAbers(window=_WINDOW))
        self._waiting = InOrder(4)
        self.skipped = 0

    @property
    def waiting(self) -> Integers:
        """Numbers of the observations that are not done with, or wait for such, ascending."""
        return self._waiting.numbers

    def predict(self, number: int, forecast: float, time: int = 0) -> None:
        """Bet on an observation, with a number above all before it."""
        self.run(_step(PREDICTS, number, time, forecast))

    def learn(self, number: int, label: int) -> list[Opened]:
        """Take a label; the episodes that it opens."""
        return self.run(_step(LEARNS, number, 0, label))

    def expire(self, number: int) -> list[Opened]:
        """Let an observation wait no longer; the episodes that this opens."""
        return self.run(_step(EXPIRES, number, 0, 0.0))

    def run(self, steps: Steps) -> list[Opened]:
        """Run any sequence of steps; the primitive that all calls use.

        Parameters
        ----------
        steps
            They. A label, or an end, of what does not wait is ignored; what waits was predicted
            in an earlier step.

        Returns
        -------
        list of Opened
            The episodes that opened, in the order of the observations.

        Raises
        ------
        ScoreError, LabelError
            If a forecast is no probability, or a label is neither 0 nor 1; nothing is done then.
        """
        predicts, values = steps.kinds == PREDICTS, steps.values[:, 0]
        _require_probabilities(predicts, values)
        labels = _checks.labels(np.where(steps.kinds == LEARNS, values, 0.0), len(values))
        new = np.full((int(predicts.sum()), 4), np.nan)
        new[:, _FORECAST] = values[predicts]
        self._waiting.push(steps.numbers[predicts], steps.times[predicts], new)
        places = self._waiting.places(steps.numbers)
        ends = self._first(places, np.flatnonzero((places >= 0) & ~predicts))
        learns = ends[steps.kinds[ends] == LEARNS]
        self._bet(steps.kinds, labels, places, learns)
        self._waiting.rows[places[learns], _LABEL] = labels[learns]
        self._waiting.finish(places[ends])
        return [
            Opened(int(ends[places[ends] <= place][-1]), test, episode)
            for place, test, episode in self._settle()
        ]

    def _first(self, places: Integers, ends: Integers) -> Integers:
        """Leave out the ends of what had an end before, in the same batch."""
        by_place = np.empty(len(self._waiting.numbers), np.int64)
        by_place[places[ends[::-1]]] = ends[::-1]  # the one that is written last stays
        first: Integers = ends[by_place[places[ends]] == ends]
        return first

    def _bet(
        self,
        kinds: NDArray[np.uint8],
        labels: NDArray[np.uint8],
        places: Integers,
        learns: Integers,
    ) -> None:
        """Bet on what is predicted, and learn what comes, as they follow each other."""
        takes = kinds == PREDICTS
        takes[learns] = True
        at, taken = places[takes], kinds[takes]
        forecasts = np.rint(self._waiting.rows[at, _FORECAST] * _GRID) / _GRID
        bets = [log_merge(*one.run(taken, forecasts, labels[takes])) for one in self._bettors]
        made = taken == PREDICTS
        self._waiting.rows[at[made], _BETS] = np.column_stack(bets)[made]

    def _settle(self) -> Iterable[tuple[int, str, Episode]]:
        """Give the tests what waits no longer; place, test and episode of what that opens."""
        times, rows = self._waiting.release()
        told = ~np.isnan(rows[:, _LABEL])
        self.skipped += len(told) - int(told.sum())
        forecast, label, *bets = rows[told].T
        dates = times[told].tolist()
        for test, bet in zip(self._tests, bets, strict=True):
            with np.errstate(divide="ignore", over="ignore"):  # what was impossible came
                factors = np.where(label == 1.0, bet / forecast, (1.0 - bet) / (1.0 - forecast))
            for place, episode in test.update(factors.tolist(), dates):
                yield int(np.flatnonzero(told)[place]), test.name, episode

    def evidence(self) -> tuple[Evidence, ...]:
        """Give what the tests have come to."""
        return tuple(test.evidence(self.skipped) for test in self._tests)

    def state(self) -> tuple[Any, ...] | None:
        """Give what is remembered: what `load` takes; None before the first observation."""
        if not (len(self._bettors[0]) or self.skipped or len(self.waiting)):
            return None
        bettors = [one.to_bytes() for one in self._bettors]
        tests = [test.state() for test in self._tests]
        return (bettors, self._waiting.state(), self.skipped, tests)

    def load(self, state: Sequence[Any] | None) -> None:
        """Remember what gave this `state`, when nothing is remembered yet."""
        if state is None:
            return
        bettors, waiting, self.skipped, tests = state
        everything, recent = map(VennAbers.from_bytes, bettors)
        self._bettors = (everything, recent)
        self._waiting.load(waiting)
        for test, one in zip(self._tests, tests, strict=True):
            test.load(one)


def _require_probabilities(predicts: NDArray[np.bool_], values: Floats) -> None:
    bad = np.flatnonzero(predicts & ~((values >= 0.0) & (values <= 1.0)))
    if bad.size:
        forecast = float(values[bad[0]])
        msg = f"row {bad[0]}: forecast {forecast!r} is no probability; it must lie between 0 and 1"
        raise ScoreError(msg)


def _step(kind: int, number: int, time: int, value: float) -> Steps:
    return Steps(
        np.array([kind], np.uint8),
        np.array([number], np.int64),
        np.array([time], np.int64),
        np.array([[value]], np.float64),
    )

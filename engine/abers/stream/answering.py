"""The answers to a batch: every calibrator runs its steps, and the outputs are worded.

Governing rule: a prediction is stored with its score when it is made, and what
a label settles is read from there; nothing is computed twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers._clocks import NO_CLOCK
from abers.stream.bets import Bets, alarms
from abers.stream.columns import objects
from abers.stream.grouping import by_key
from abers.stream.outputs import Judged
from abers.stream.tasks import Answers, Settled, Steps
from abers.stream.waiting import Waiting, judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.regression import PredictiveDistribution
    from abers.stream.admission import Admitted
    from abers.stream.columns import Rows
    from abers.stream.events import Alarm
    from abers.stream.settings import Settings
    from abers.stream.tasks import Calibrator, Monitor, Task

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Answered", "Answering", "Dropped", "Taken"]

_SPARE = 8  # rows grow by one part in so many: doubling would waste half of a million


class Taken(NamedTuple):
    """What the ledger made of a batch: steps of calibrators, a row each.

    Attributes
    ----------
    learns
        0 predicts, 1 learns.
    rows
        Row of the admitted event that brought the step about.
    slots
        Where the prediction is kept.
    keys
        Number of the calibrator.
    times
        Event time of the observation.
    told
        Event time of the label that is learned.
    clocks
        Clock of the model; `NO_CLOCK` where it is not known yet.
    values
        What is learned.
    """

    learns: NDArray[np.uint8]
    rows: Integers
    slots: Integers
    keys: Integers
    times: Integers
    told: Integers
    clocks: Integers
    values: Floats


class Dropped(NamedTuple):
    """Observations that wait no longer for a label, a row each.

    Attributes
    ----------
    rows
        Row of the admitted event that brought it about.
    slots
        Where the prediction was kept.
    keys
        Number of the calibrator.
    """

    rows: Integers
    slots: Integers
    keys: Integers


class Answered(NamedTuple):
    """What a batch brought about.

    Attributes
    ----------
    answers
        Of the calibrators.
    predictions, outcomes
        As `Outputs` has them.
    judged
        What was judged; None if there are neither monitors nor outcomes.
    alarms
        Each with the row of the admitted event that brought it about.
    """

    answers: Answers
    predictions: Rows[Any]
    outcomes: Rows[Any] | None
    judged: Judged | None
    alarms: list[tuple[int, Alarm]]


class Answering:
    """The calibrators and monitors, one of each for every key, and the predictions that wait.

    Parameters
    ----------
    task
        What makes and words predictions.
    settings
        Whether they are judged and bet against, and how long bets wait.

    Attributes
    ----------
    rows
        Scores and answers by slot.
    waiting
        Predictive distributions by slot; None if the task has none.
    bets
        Against the predictions; None if there are none.
    """

    def __init__(self, task: Task, settings: Settings) -> None:
        self._task = task
        self.rows = np.empty((1, task.score_width + task.answer_width))
        self.waiting = Waiting() if task.distributions else None
        self.calibrators: list[Calibrator] = []
        self.monitors: list[Monitor] | None = [] if settings.monitors else None
        self._aging = settings.max_age is not None or settings.half_life is not None
        tested = settings.monitors and settings.tests
        self.bets = Bets(task.bets, settings.max_pending) if tested else None

    def make_room(self, keys: int, slots: int) -> None:
        """Have a calibrator for every key, and a row for every slot."""
        while len(self.calibrators) < keys:
            self.calibrators.append(self._task.calibrator())
            if self.monitors is not None:
                self.monitors.append(self._task.monitor())
        if self.bets is not None and self.monitors is not None:
            for monitor in self.monitors[len(self.bets.by_key) :]:
                monitor.bets = [self.bets.add()]
            self.bets.make_room(slots)
        if slots > len(self.rows):
            shape = (slots + slots // _SPARE, self.rows.shape[1])
            self.rows.resize(shape, refcheck=False)
        if self.waiting is not None:
            self.waiting.make_room(slots)

    def forget(self, key: int) -> None:
        """Begin anew with a calibrator, its monitor and its bets."""
        self.calibrators[key] = self._task.calibrator()
        if self.monitors is not None:
            self.monitors[key] = self._task.monitor()
            if self.bets is not None:
                self.monitors[key].bets = [self.bets.renew(key)]

    def keep(self, keys: Integers, slots: Integers) -> None:
        """Keep what is of these keys and slots alone, in their order: slots begin with 1."""
        self.calibrators = [self.calibrators[key] for key in keys.tolist()]
        if self.monitors is not None:
            self.monitors = [self.monitors[key] for key in keys.tolist()]
        if self.bets is not None:
            self.bets.keep(keys, slots)
        kept = self.rows[slots]
        self.rows = np.empty((len(slots) + 1, self.rows.shape[1]))
        self.rows[1:] = kept
        if self.waiting is not None:
            self.waiting.retain(slots.tolist())

    def run(  # noqa: PLR0913 - what was decided, by its parts
        self,
        admitted: Admitted,
        taken: Taken,
        dropped: Dropped,
        keys: Sequence[tuple[str, str]],
        known: Answers | None,
        *,
        outcomes: bool,
    ) -> Answered:
        """Run steps, with outcomes only if they are wanted.

        `keys` gives model and segment of each calibrator, `known` the answers of before if the
        steps were run before: no prediction is made then.
        """
        width, rows, slots = self._task.score_width, self.rows, taken.slots
        learns = taken.learns == 1
        predicts = ~learns
        predicted, causes = slots[predicts], taken.rows[predicts]
        rows[predicted, :width] = admitted.scores[causes]
        times, delays = _timed(taken)
        steps = Steps(taken.learns, rows[slots, :width], taken.values, times)
        # Before the clock is known, a wrong time could make a calibrator forget all that comes.
        usable = predicts | (taken.clocks != NO_CLOCK) | (not self._aging)
        if known is None:
            answers = self._run(steps, taken.keys, predicts, usable)
        else:
            answers = known
            self._learn(steps, taken.keys, learns & usable)
        rows[predicted, width:] = answers.rows
        said = answers._replace(rows=rows[predicted])
        if self.waiting is not None and answers.bands is not None:
            self.waiting.keep(predicted.tolist(), answers.bands)
        seen = admitted.events.heads().take(causes)
        predictions = self._task.predictions(seen, said)
        waited = self._settle(slots[learns].tolist(), dropped.slots.tolist())
        if self.monitors is None and not outcomes:
            return Answered(answers, predictions, None, None, [])
        settled, values, of = rows[slots[learns]], taken.values[learns], taken.keys[learns]
        if waited is not None:
            settled = np.hstack((settled, judged(waited, values)))
        self._judge(settled, values, of)
        told = Judged(of, delays[learns], settled, values)
        raised = self._bet(taken, dropped, said.rows, settled, keys)
        if not outcomes:
            return Answered(answers, predictions, None, told, raised)
        spoken = Settled(
            admitted.events.heads().take(taken.rows[learns]),
            objects([segment for _, segment in keys])[of],
            taken.told[learns],
            taken.times[learns],
            settled,
            values,
        )
        return Answered(answers, predictions, self._task.outcomes(spoken), told, raised)

    def _settle(
        self, settled: Sequence[int], dropped: Sequence[int]
    ) -> list[PredictiveDistribution] | None:
        """Take out the distributions whose labels came, and those that wait no longer."""
        if self.waiting is None:
            return None
        taken = self.waiting.settle(settled)
        self.waiting.drop(dropped)
        return taken

    def _run(
        self, steps: Steps, keys: Integers, asked: NDArray[np.bool_], usable: NDArray[np.bool_]
    ) -> Answers:
        """Run the usable steps of each calibrator, and give the answers to those `asked`."""
        if not usable.all():
            columns: list[Any] = [column[usable] for column in steps]
            steps, keys, asked = Steps(*columns), keys[usable], asked[usable]
        answers = np.empty((len(keys), self._task.answer_width))
        held = np.empty(len(keys), np.int64)
        bands = np.empty(len(keys), object) if self._task.distributions else None
        for key, rows in by_key(keys):
            part = Steps(*(column[rows] for column in steps))
            said = self.calibrators[key].run(part)
            answers[rows], held[rows] = said.rows, said.held
            if bands is not None:
                bands[rows] = said.bands
        return Answers(answers[asked], held[asked], None if bands is None else bands[asked])

    def _learn(self, steps: Steps, keys: Integers, learns: NDArray[np.bool_]) -> None:
        """Run nothing but the labels: predictions leave no trace in a calibrator."""
        told: list[Any] = [column[learns] for column in steps]
        for key, rows in by_key(keys[learns]):
            self.calibrators[key].run(Steps(*(column[rows] for column in told)))

    def _bet(
        self,
        taken: Taken,
        dropped: Dropped,
        said: Floats,
        settled: Floats,
        keys: Sequence[tuple[str, str]],
    ) -> list[tuple[int, Alarm]]:
        if self.bets is None:
            return []
        staked, learned = self._task.stakes(said, settled, taken.values[taken.learns == 1])
        opened = self.bets.run(taken, dropped, staked, learned)
        return alarms(opened, keys, self.bets.by_key)

    def _judge(self, settled: Floats, values: Floats, keys: Integers) -> None:
        if self.monitors is None:
            return
        for key, rows in by_key(keys):
            self.monitors[key].update(settled[rows], values[rows])


def _timed(taken: Taken) -> tuple[Integers, Integers]:
    """Return the times of observations, and the delays of labels, as far as clocks believe them.

    A time that is later than the clock of its model is taken for the clock.
    """
    believed = np.where(taken.clocks == NO_CLOCK, np.iinfo(np.int64).max, taken.clocks)
    times = np.minimum(taken.times, believed)
    return times, np.minimum(taken.told, believed) - times

"""Cost against the number of observations: prequential, one at a time, sliding window.

Every contender gets the same stream at a bag of n. Without a window the bag grows while it is
timed, from below n to as much above, and is restored after each turn.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from benchmarks.chart import chart
from benchmarks.contenders import (
    BRUTE,
    BY_SCORE,
    NATIVE,
    PAVA,
    REFERENCE,
    Abers,
    BruteByScore,
    Contender,
    contenders,
)
from benchmarks.page import Key, Section, size, table
from benchmarks.plan import PATIENCE, Plan
from benchmarks.streams import Stream, ordinary
from benchmarks.timing import Spread, digits, in_turns, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Maker = Callable[[int], Contender]
    Turn = Callable[[Contender, Stream], object]
    Draw = Callable[[int], Stream]


def _at_once(contender: Contender, events: Stream) -> None:
    contender.prequential(events.scores, events.labels)


def _one_by_one(contender: Contender, events: Stream) -> None:
    calibrator = cast("Abers", contender).calibrator
    predict, learn = calibrator.predict_one, calibrator.learn_one
    for score, label in zip(events.scores.tolist(), events.labels.tolist(), strict=True):
        predict(score)
        learn(score, label)


def rounded(decimals: int) -> Draw:
    """Return what draws streams whose scores have so many decimals."""

    def draw(n: int) -> Stream:
        stream = ordinary(n)
        return stream._replace(scores=stream.scores.round(decimals))

    return draw


class _Runner:
    """A contender at a bag of n, ready to take turns."""

    def __init__(  # noqa: PLR0913 - of one use
        self, make: Maker, turn: Turn, n: int, plan: Plan, draw: Draw, *, window: bool
    ) -> None:
        """Find out how many events fit into a turn, then put n in the middle of one."""
        self._make, self._turn, self._window = make, turn, n if window else 0
        self._stream = draw(n + plan.most * (plan.rounds + 3))
        self._fill(n)
        self.events = self._repeats = 1
        self.cost = self() / 1e6  # seconds an event
        most = plan.most if window else min(plan.most, n)
        while self.events < most and self.cost * self.events < plan.turn / 4:
            self.events = min(most, 4 * self.events)
            self.cost = self() / 1e6
        self.events = max(1, min(most, int(plan.turn / self.cost)))
        if not window:
            self._repeats = max(1, int(plan.turn / self.cost / self.events))
            self._fill(n - self.events // 2)

    def _fill(self, held: int) -> None:
        self._contender = self._make(self._window)
        self._contender.fill(self._stream.scores[:held], self._stream.labels[:held])
        self._next = held

    def __call__(self) -> float:
        """Take a turn; microseconds an event."""
        taken = 0.0
        for _ in range(self._repeats):
            events = self._stream.part(self._next, self._next + self.events)
            taken += seconds(partial(self._turn, self._contender, events))
            if self._window:
                self._next += self.events
            else:
                self._contender.unlearn(events.scores, events.labels)
        return taken / self._repeats / self.events * 1e6


class _Measured:
    """Costs of all contenders at all sizes, and why some are unknown."""

    def __init__(
        self,
        turn: Turn,
        plan: Plan,
        makers: Mapping[str, Maker],
        *,
        draw: Draw = ordinary,
        window: bool = False,
    ) -> None:
        """Measure; a contender drops out where an event takes longer than `PATIENCE`."""
        self.costs: dict[str, dict[int, Spread]] = {name: {} for name in makers}
        self.why: dict[str, str] = {}
        for n in plan.sizes:
            runners = {}
            for name, make in makers.items():
                if name not in self.why and not self._too_slow(name, n):
                    runner = _Runner(make, turn, n, plan, draw, window=window)
                    if runner.cost <= PATIENCE:
                        runners[name] = runner
                    else:
                        self.why[name] = f"an event at n = {size(n)} took {digits(runner.cost)} s"
            for name, spread in in_turns(plan.rounds, runners).items():
                self.costs[name][n] = spread

    def _too_slow(self, name: str, n: int) -> bool:
        """Estimate from the size before: the cost of all that refit grows at least like n."""
        if not self.costs[name]:
            return False
        before, spread = max(self.costs[name].items())
        ahead = spread.low / 1e6 * n / before
        if ahead > PATIENCE:
            self.why[name] = f"an event at n = {size(n)} would take {digits(ahead)} s or more"
        return ahead > PATIENCE

    def values(self, form: str) -> dict[Key, Spread]:
        """Key the costs for the table of figures."""
        return {(form, name, n): s for name, costs in self.costs.items() for n, s in costs.items()}

    def costs_table(self, sizes: Sequence[int]) -> str:
        """Write microseconds an event, and the reasons for dashes."""
        rows = [[name, *(costs.get(n, "—") for n in sizes)] for name, costs in self.costs.items()]
        reasons = "".join(f"- {name}: {why}\n" for name, why in self.why.items())
        dashes = f"Dashes, where one event takes more than a second:\n\n{reasons}\n"
        return table(["µs an event", *map(size, sizes)], rows) + (dashes if reasons else "")

    def ratios_table(self, sizes: Sequence[int]) -> str:
        """Write how many times the cost of the native core each contender takes, by medians."""
        native = self.costs[NATIVE]
        rows = [
            [name, *(digits(costs[n].median / native[n].median) if n in costs else "—"
                     for n in sizes)]
            for name, costs in self.costs.items()
            if name != NATIVE
        ]  # fmt: skip
        return table(["times the cost of abers native", *map(size, sizes)], rows)

    def curves(self) -> dict[str, Mapping[int, float]]:
        """Take the medians for the chart."""
        return {
            name: {n: spread.median for n, spread in costs.items()}
            for name, costs in self.costs.items()
            if costs
        }


def _only(*names: str) -> dict[str, Maker]:
    """Return those of these names that can take part here."""
    return {name: make for name, make in contenders().items() if name in names}


def prequential(plan: Plan) -> Section:
    """Measure predict + learn through whole arrays."""
    found = _Measured(_at_once, plan, contenders())
    body = (
        "Each observation of an array is predicted, then learned, at a bag of n. abers takes the"
        " whole array in one call of `VennAbers.prequential`, and so does the C++ refit; for the"
        " others the loop over the events is Python's, and small compared with the refits.\n\n"
        + found.costs_table(plan.sizes)
        + found.ratios_table(plan.sizes)
        + chart(found.curves())
    )
    title = "Against the alternatives: predict and learn a whole stream"
    return Section(title, body, found.values("batch"))


def huge(plan: Plan) -> Section:
    """Measure predict + learn at ten times the largest size."""
    n = 10 * max(plan.sizes)
    found = _Measured(_at_once, plan._replace(sizes=(n,)), _only(NATIVE, PAVA, BRUTE))
    body = "The same at ten times as many observations.\n\n" + found.costs_table((n,))
    return Section("Ten million observations", body, found.values("huge"))


def ties(plan: Plan) -> Section:
    """Measure predict + learn of scores with few decimals."""
    body = (
        "Scores rounded to so many decimals, as many models write them; otherwise as above. *Smart"
        " brute by score* counts labels by distinct score, and fits over these, so its cost does"
        " not grow with n.\n\n"
    )
    values: dict[Key, Spread] = {}
    makers = _only(NATIVE, PAVA, BRUTE) | {BY_SCORE: BruteByScore}
    for decimals in (2, 3):
        found = _Measured(_at_once, plan, makers, draw=rounded(decimals))
        values |= found.values(f"{decimals} decimals")
        body += f"{decimals} decimals:\n\n{found.costs_table(plan.sizes)}"
    return Section("Ties", body, values)


def one_at_a_time(plan: Plan) -> Section:
    """Measure predict_one + learn_one."""
    found = _Measured(_one_by_one, plan, _only(NATIVE, REFERENCE))
    body = (
        "The pair of calls `predict_one`, `learn_one` in a Python loop, the loop included. (The"
        " Python rivals of the table above are driven one at a time there too.)\n\n"
        + found.costs_table(plan.sizes)
    )
    return Section("One at a time from Python", body, found.values("one"))


def sliding_window(plan: Plan) -> Section:
    """Measure query + insert + delete."""
    found = _Measured(_at_once, plan, contenders(), window=True)
    body = (
        "`VennAbers(window=n)`, full: each event is a query, an insertion and the deletion of the"
        " oldest observation.\n\n"
        + found.costs_table(plan.sizes)
        + found.ratios_table(plan.sizes)
        + chart(found.curves())
    )
    return Section("Sliding window", body, found.values("window"))

"""The targets of the project, and the measurements of this run.

The median of the rounds decides. Where only the best round reaches a target, the table says so.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.arrow import ARROW
from benchmarks.arrow import BATCHES as ARROW_BATCHES
from benchmarks.contenders import BRUTE, NATIVE, PACKAGE
from benchmarks.cross import BATCH
from benchmarks.distribution import FIT, LABELS, SCORES
from benchmarks.events import ONE
from benchmarks.journal import ADDED as NOTING
from benchmarks.journal import PAUSE, RESTORE
from benchmarks.live import DIFFERENT, READERS
from benchmarks.live import LOST as LOOKED
from benchmarks.live import ONE as ONE_MODEL
from benchmarks.many_models import BATCH as BATCHED
from benchmarks.many_models import RESTORE as RESTORED
from benchmarks.monitors import COST, STREAMS
from benchmarks.multiclass import BINARY, REST
from benchmarks.page import Key, Section, folded, size, table
from benchmarks.predictive import BAND, GRID_RUN, QUANTILE
from benchmarks.scrape import COUNTING, SCRAPE
from benchmarks.service import CPU, FAST, MEDIAN, SERVICE, SHARE, TAIL
from benchmarks.single_events import BARE, DEFAULT, SINGLE
from benchmarks.streams import UNIT, WEIGHTED
from benchmarks.timing import Spread, digits
from benchmarks.unchanged import LATER
from benchmarks.wrapped import ADDED, EVENTS, WITH_IDS, WITHOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_K, _M = 10**3, 10**6
_10K, _100K = 10**4, 10**5

Values = dict[Key, Spread]


class Measured(NamedTuple):
    """A figure of this run, by the median and by the best round, with a remark."""

    value: float
    best: float
    text: str


class Target(NamedTuple):
    """A figure that was asked for; the measure raises a KeyError where something is missing."""

    asked: str
    limit: float
    measure: Callable[[Values], Measured]
    at_least: bool = False


def _time(*key_of: object, unit: str = "µs") -> Callable[[Values], Measured]:
    def measure(values: Values) -> Measured:
        spread = values[key_of]  # type: ignore[index]
        return Measured(spread.median, spread.low, f"{spread} {unit}".rstrip())

    return measure


def _rate(*key_of: object, unit: str = "") -> Callable[[Values], Measured]:
    def measure(values: Values) -> Measured:
        spread = values[key_of]  # type: ignore[index]
        return Measured(spread.median, spread.high, f"{spread} {unit}".rstrip())

    return measure


def _growth(values: Values) -> Measured:
    large, small = values["batch", NATIVE, _M], values["batch", NATIVE, _K]
    ratio, best = large.median / small.median, large.low / small.low
    return Measured(ratio, best, f"{digits(ratio)} times, by the best rounds {digits(best)}")


def _hostile(values: Values) -> Measured:
    keys = [key for key in values if key[0] in {"arriving", "cycle"} and key[1] in UNIT]
    if not keys:
        raise KeyError

    def by_median(key: Key) -> float:
        return values[key].median / values[key[0], "random", key[2]].median

    def by_best(key: Key) -> float:
        return values[key].low / values[key[0], "random", key[2]].low

    worst, best = max(keys, key=by_median), max(map(by_best, keys))
    form, name, n = worst
    text = f"{digits(by_median(worst))} times ({name}, {form}, n = {size(n)})"
    return Measured(by_median(worst), best, f"{text}, by the best rounds {digits(best)}")


def _worst(values: Values) -> Measured:
    by_name = {name: values["worst", name, _M] for name in WEIGHTED}
    name, spread = max(by_name.items(), key=lambda item: item[1].median)
    tail = max(values["p99.9", name, _M].median for name in WEIGHTED)
    text = f"{digits(spread.median)} µs ({name}), p99.9 {digits(tail)} µs"
    return Measured(spread.median, spread.low, f"{text}, worst seen {digits(spread.high)} µs")


def _sublinear(values: Values) -> Measured:
    ratios: Mapping[str, float] = {
        name: values["cycle", name, _M].median / values["cycle", name, _10K].median
        for name in WEIGHTED
    }
    name = max(ratios, key=lambda name: ratios[name])
    return Measured(ratios[name], ratios[name], f"{digits(ratios[name])} times ({name})")


def _faster(values: Values) -> Measured:
    brute, native = values["batch", BRUTE, _100K], values["batch", NATIVE, _100K]
    ratio, best = brute.median / native.median, brute.low / native.low
    return Measured(ratio, best, f"{digits(ratio)} times, by the best rounds {digits(best)}")


def _cross(values: Values) -> Measured:
    package, native = values[BATCH, PACKAGE, _100K], values[BATCH, NATIVE, _100K]
    ratio, best = package.median / native.median, package.low / native.low
    return Measured(ratio, best, f"{digits(ratio)} times, by the best rounds {digits(best)}")


def _replayed(suffix: str) -> Callable[[Values], Measured]:
    def measure(values: Values) -> Measured:
        spread = values["replayed", f"{ONE}, {suffix}", _100K]
        return Measured(spread.median, spread.high, f"{spread} thousand")

    return measure


def _entry(name: str) -> Callable[[Values], Measured]:
    return _time("entry", f"{name} characters", _M, unit="")


def _rest(values: Values) -> Measured:
    binary, rest = (values["multi", name, _100K] for name in (BINARY, REST))
    ratio, best = rest.median / binary.median, rest.low / binary.low
    return Measured(ratio, best, f"{digits(ratio)} times, by the best rounds {digits(best)}")


_BATCH = _time("batch", NATIVE, _M)
CALIBRATORS = (
    Target("prequential at n = 1e6, the dream: 1 µs", 1, _BATCH),
    Target("prequential at n = 1e6, the goal: 2 µs", 2, _BATCH),
    Target("prequential at n = 1e6, the most: 3 µs", 3, _BATCH),
    Target("over 2 µs: at most 4 times the cost at n = 1e3", 4, _growth),
    Target("one at a time, the pair at n = 1e3: 1 µs", 1, _time("one", NATIVE, _K)),
    Target("one at a time, the pair at n = 1e6: 4 µs", 4, _time("one", NATIVE, _M)),
    Target(
        "an unchanged calibrator of 1e6, batches of 10 000: 40 ns a query",
        40,
        _time("unchanged", LATER, _M, unit="ns"),
    ),
    Target("sliding window of 1e6: 6 µs", 6, _time("window", NATIVE, _M)),
    Target("unit weights: no order over 5 times the random one", 5, _hostile),
    Target(
        "real weights: the slowest operation at n = 1e6, in its fastest pass: 100 µs", 100, _worst
    ),
    Target("real weights: n from 1e4 to 1e6, 100 times, cost at most 25 times", 25, _sublinear),
    Target("at n = 1e5 at least 400 times as fast as smart brute", 400, _faster, at_least=True),
    Target("batch CVAP: at least 10 times as fast as venn-abers", 10, _cross, at_least=True),
    Target("batch CVAP: the goal, 30 times as fast as venn-abers", 30, _cross, at_least=True),
    Target("resident, no window: 24 bytes", 24, _time("bytes built", "no window", _M, unit="")),
    Target("resident, window: 40 bytes", 40, _time("bytes built", "window", _M, unit="")),
    Target("to_bytes of 1e6: 0.1 s", 0.1, _time("to_bytes", "no window", _M, unit="s")),
    Target("from_bytes of 1e6: 0.1 s", 0.1, _time("from_bytes", "no window", _M, unit="s")),
    Target("to_bytes, window of 1e6: 0.1 s", 0.1, _time("to_bytes", "window", _M, unit="s")),
    Target("from_bytes, window of 1e6: 0.1 s", 0.1, _time("from_bytes", "window", _M, unit="s")),
    Target("one-vs-rest of 10 classes: at most 1.2 times its binary calibrators", 1.2, _rest),
    *(
        Target(f"predictive: {asked}", limit, _time("predictive", name, n))
        for asked, limit, name, n in (
            ("both CDFs at n = 1e4, the goal: 0.5 ms", 500, BAND, _10K),
            ("both CDFs at n = 1e4: 2 ms", 2_000, BAND, _10K),
            ("both CDFs at n = 1e5, the goal: 6 ms", 6_000, BAND, _100K),
            ("both CDFs at n = 1e5: 25 ms", 25_000, BAND, _100K),
            ("one quantile at n = 1e4: 0.3 ms", 300, QUANTILE, _10K),
            ("99 thresholds at n = 1e5, an event: 0.3 ms", 300, GRID_RUN, _100K),
        )
    ),
    Target("a river learner wrapped, with ids: 10 µs more", 10, _time(ADDED, WITH_IDS, EVENTS)),
    Target("a river learner wrapped, without ids: 10 µs more", 10, _time(ADDED, WITHOUT, EVENTS)),
    Target(
        "GP-Beta, 1 000 labels, 32 inducing points, a fit: 6 s",
        6,
        _time("gp-beta", FIT.format(32), LABELS, unit="s"),
    ),
    Target("GP-Beta, 5 000 predictions: 0.3 s", 0.3, _time("gp-beta", SCORES, LABELS, unit="s")),
)
STREAMED = (
    Target(
        "replay, JSON Lines: the goal, 300 thousand a second",
        300,
        _replayed("jsonl"),
        at_least=True,
    ),
    Target(
        "replay, JSON Lines: at least 200 thousand a second", 200, _replayed("jsonl"), at_least=True
    ),
    Target(
        "replay, Parquet: at least 400 thousand a second", 400, _replayed("parquet"), at_least=True
    ),
    Target(
        "Arrow to Arrow, one model without monitors: 1 million events a second",
        1_000,
        _rate("arrow", ARROW, ARROW_BATCHES[-1], unit="thousand"),
        at_least=True,
    ),
    Target("waiting, id of 16 characters: 200 bytes", 200, _entry("waiting, id of 16")),
    Target("waiting, id of 36 characters: 280 bytes", 280, _entry("waiting, id of 36")),
    Target("finished, id of 16 characters: 150 bytes", 150, _entry("finished, id of 16")),
    Target(
        "a journal of batches of 2 000: 0.15 more", 0.15, _time("journal", NOTING, 2_000, unit="")
    ),
    Target(
        "1 000 models, protected, batches of 2 000 without monitors: 5 µs",
        5,
        _time(BATCHED, "protected", _K),
    ),
    Target(
        "restoring 1 000 merged models of 20 labels: 0.08 s",
        0.08,
        _time(RESTORED, "merged", _K, unit="s"),
    ),
    Target("a snapshot while the loop runs: 50 ms", 50, _time(PAUSE, "loop", _M, unit="ms")),
    *(
        Target(
            f"all monitors of {stream.name}, batches of {size(stream.batch)}: 4 µs",
            4,
            _time(COST, stream.name, stream.batch),
        )
        for stream in STREAMS
    ),
    *(
        Target(f"process(event), {name}: 20 µs", 20, _time(SINGLE, name, 1))
        for name in (DEFAULT, BARE)
    ),
    *(
        Target(
            f"the service, {batch} records a transaction: {what}",
            limit,
            _rate("service", SHARE, batch),
            at_least=True,
        )
        for batch in (500, 2_000)
        for what, limit in (("the goal, 0.9 of a bare loop", 0.9), ("0.7 of a bare loop", 0.7))
    ),
    Target(
        "the service: 12 thousand inputs a second",
        12,
        _rate("service", SERVICE, 2_000, unit="thousand"),
        at_least=True,
    ),
    *(
        Target(
            f"the service on {FAST}, {batch} records a transaction: 0.5 of a bare loop",
            0.5,
            _rate("service", f"{SHARE} {FAST}", batch),
            at_least=True,
        )
        for batch in (500, 2_000)
    ),
    Target(
        f"the service on {FAST}: 100 thousand inputs a second",
        100,
        _rate("service", f"{SERVICE} {FAST}", 2_000, unit="thousand"),
        at_least=True,
    ),
    Target(
        f"the service on {FAST}: 8 µs of processor time an input",
        8,
        _time("service", f"{CPU} {FAST}", 2_000),
    ),
    Target(
        "the service, 500 events a second: median 40 ms", 40, _time("late", MEDIAN, 500, unit="ms")
    ),
    Target(
        "the service, 500 events a second: 99 % 250 ms", 250, _time("late", TAIL, 500, unit="ms")
    ),
    Target(
        f"the service on {FAST}, 500 events a second: median 20 ms",
        20,
        _time("late", f"{MEDIAN} {FAST}", 500, unit="ms"),
    ),
    Target("metrics, a scrape of 100 models: 50 ms", 50, _time(SCRAPE, "models", 100, unit="ms")),
    Target(
        "metrics, a scrape of 10 000 models: 100 ms",
        100,
        _time(SCRAPE, "models", _10K, unit="ms"),
    ),
    Target("metrics, counting an event: 4 µs", 4, _time(COUNTING, "models", 1)),
    *(
        Target(
            f"{count} readers {whom} on the live page: {limit} % of a core",
            limit,
            _time(LOOKED, whom, count, unit="%"),
        )
        for whom, count, limit in ((ONE_MODEL, READERS, 5), (DIFFERENT, 32, 10))
    ),
    Target("snapshot and tail restored: 3 s", 3, _time("restored", RESTORE, _M, unit="s")),
)


TARGETS = {"": CALIBRATORS, "_streams": STREAMED}
REACHED, BEST, MISSED = "yes", "only by the best round", "**no**"
ABSENT = "not in this run"


def _verdict(target: Target, found: Measured) -> str:
    def reached(value: float) -> bool:
        return value >= target.limit if target.at_least else value <= target.limit

    if reached(found.value):
        return REACHED
    return BEST if reached(found.best) else MISSED


def figures(targets: Sequence[Target], values: Values) -> Section:
    """Name the targets that are missed; all fold away behind them, each with its measurement."""
    rows = []
    for target in targets:
        try:
            found = target.measure(values)
        except KeyError:
            rows.append([target.asked, ABSENT, "—"])
        else:
            rows.append([target.asked, found.text, _verdict(target, found)])
    count = Counter(row[2] for row in rows)
    text = (
        f"By the medians of the rounds {count[REACHED]} of {len(rows)} targets are reached. By the"
        f" best round alone: {count[BEST]}. Not measured: {count['—']}.{_missed(rows)}\n\n"
    )
    every = table(["target", "measured", "reached"], rows)
    return Section("Targets", text + folded("All targets", every), {})


def _missed(rows: Sequence[Sequence[str]]) -> str:
    """Name the targets that are missed, each with its figure."""
    some = [f"{asked} (**{text}**)" for asked, text, found in rows if found == MISSED]
    return f" Missed: {'; '.join(some)}." if some else ""

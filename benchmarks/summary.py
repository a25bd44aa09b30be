"""The summary of a page: what abers takes, what its nearest rival takes, and who wins."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.by_hand import HAND
from benchmarks.class_events import CLASS_EVENTS
from benchmarks.contenders import BRUTE, BY_SCORE, NATIVE, PACKAGE, PAVA
from benchmarks.cross import BATCH as FOLDS
from benchmarks.defaults import ABERS, BATCHES, DEFAULTS, REPLAY, SINGLE
from benchmarks.events import ONE as ONE_FILE
from benchmarks.floor import BARE_CONTAINERS
from benchmarks.many_models import BATCH as MODELS
from benchmarks.many_models import RESTORE
from benchmarks.multiclass import AT_ONCE, REST
from benchmarks.page import table
from benchmarks.predictive import BAND, CREPES, GRID_RUN, IDR, PETEJ
from benchmarks.predictive import BATCH as QUERIES
from benchmarks.record_formats import ALONE, NARROW
from benchmarks.router import BARE as BARE_ROUTER
from benchmarks.router import ROUTER
from benchmarks.serve import ABERS as ABERS_SERVE
from benchmarks.serve import BARE as BARE_SERVER
from benchmarks.serve import LOADS, figure
from benchmarks.service import BARE, CLIENTS, DEFAULT, SERVICE
from benchmarks.starts import FLOOR, ROWS, START
from benchmarks.starts import REPLAY as REPLAY_START
from benchmarks.timing import digits
from benchmarks.unchanged import ISOTONIC, LATER, STEPS
from benchmarks.wrapped import BARE as BARE_LEARNER
from benchmarks.wrapped import EVENTS, WITH_IDS, WRAPPED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.page import Key
    from benchmarks.timing import Spread

    Values = dict[Key, Spread]

_K, _10K, _100K, _M = 10**3, 10**4, 10**5, 10**6


class Comparison(NamedTuple):
    """A figure of abers, and the same figure of those that can do the same."""

    what: str
    unit: str
    ours: Key
    rivals: dict[str, Key]
    rate: bool = False  # more is better


def _among(what: str, form: str, n: int, ours: str, *rivals: str, unit: str = "µs") -> Comparison:
    """Compare contenders of a form at a size."""
    return Comparison(what, unit, (form, ours, n), {name: (form, name, n) for name in rivals})


def _service(client: str) -> Comparison:
    of = "" if client == DEFAULT else f" {client}"
    keys: list[Key] = [("service", name + of, 2_000) for name in (SERVICE, BARE)]
    return Comparison(f"{client}", "k/s", keys[0], {"bare loop": keys[1]}, rate=True)


def _router(client: str) -> Comparison:
    of = "" if client == DEFAULT else f" {client}"
    keys: list[Key] = [("router", name + of, 2_000) for name in (ROUTER, BARE_ROUTER)]
    return Comparison(f"router, {client}", "µs", keys[0], {"bare loop": keys[1]})


def _http(rate: int, events: int) -> Comparison:
    return _among(
        f"HTTP, {events} a request", figure(rate, events), events, ABERS_SERVE, BARE_SERVER
    )


_REFITS = (PAVA, BRUTE, PACKAGE)
_SHORT = {
    STEPS: "numpy",
    ISOTONIC: "scikit-learn",
    PETEJ: "Petej",
    BARE_LEARNER: "bare",
    ALONE: "msgspec",
    FLOOR: "imports alone",
    BARE_SERVER: "bare uvicorn",
}

CALIBRATORS = (
    _among("stream, n = 10³", "batch", _K, NATIVE, *_REFITS),
    _among("stream, n = 10⁶", "batch", _M, NATIVE, *_REFITS),
    _among("stream, n = 10⁷", "huge", 10 * _M, NATIVE, *_REFITS),
    _among("stream, 2 decimals", "2 decimals", _M, NATIVE, *_REFITS, BY_SCORE),
    Comparison(
        "singly, n = 10⁶",
        "µs",
        ("one", NATIVE, _M),
        {name: ("batch", name, _M) for name in (BRUTE, PACKAGE)},
    ),
    _among("window of 10⁶", "window", _M, NATIVE, *_REFITS),
    _among("bare containers", "floor", _M, NATIVE, *BARE_CONTAINERS),
    _among("lookup, n = 10⁶", "unchanged", _M, LATER, STEPS, PACKAGE, ISOTONIC, unit="ns"),
    _among("five folds, batch", FOLDS, _100K, NATIVE, PACKAGE, unit="ms"),
    Comparison(
        "10 classes, batch",
        "s",
        (AT_ONCE, REST, _100K),
        {PACKAGE: (AT_ONCE, f"{PACKAGE}, {REST}", _100K)},
    ),
    _among(
        "10 classes, singly",
        *(CLASS_EVENTS, _10K, REST),
        *(f"{name}, {REST}" for name in (BRUTE, PACKAGE)),
    ),
    _among("CDFs, n = 10³", "predictive", _K, BAND, IDR, CREPES),
    _among("CDFs, n = 10⁶", "predictive", _M, BAND, CREPES),
    _among("CDFs, a batch", "predictive batch", _10K, QUERIES, PETEJ),
    _among("99 thresholds", "predictive", _100K, GRID_RUN, CREPES),
    _among("river, wrapped", WRAPPED, EVENTS, WITH_IDS, BARE_LEARNER),
)
STREAMED = (
    *(
        _among(what, f"{DEFAULTS}, {way}", _10K, ABERS, HAND)
        for what, way in (
            ("single events", SINGLE),
            ("batches of events", BATCHES),
            ("replay, tested", REPLAY),
        )
    ),
    Comparison(
        "replay, bare",
        "k/s",
        ("replayed", f"{ONE_FILE}, jsonl", _100K),
        {"least work": ("replayed", "floor", _100K)},
        rate=True,
    ),
    _among("1,000 models", MODELS, _K, "merged", HAND),
    _among("their restore", RESTORE, _K, "merged", HAND, unit="s"),
    *map(_service, CLIENTS),
    *map(_router, CLIENTS),
    *(_http(rate, events) for rate, events in LOADS if not rate),
    _among("JSON to columns", NARROW, 0, "JSON", ALONE),
    _among("`abers replay`", START, ROWS, REPLAY_START, FLOOR, unit="ms"),
)
SUMMARIES = {"": CALIBRATORS, "_streams": STREAMED}


def compared(comparisons: Iterable[Comparison], values: Values) -> str:
    """Write the table; a figure that is missing says so."""
    head = ["what", "abers", "nearest rival", "times", ""]
    return table(head, (_row(one, values) for one in comparisons))


def _row(one: Comparison, values: Values) -> list[str]:
    found = {name: values[key] for name, key in one.rivals.items() if key in values}
    if one.ours not in values or not found:
        return [one.what, "not measured", "", "", ""]
    ours = values[one.ours]
    choose = max if one.rate else min
    name = choose(found, key=lambda each: found[each].median)
    theirs, name = found[name], _SHORT.get(name, name.partition(",")[0])
    ratio = ours.median / theirs.median if one.rate else theirs.median / ours.median
    shown = [f"{digits(each.median)} {one.unit}".rstrip() for each in (ours, theirs)]
    won = verdict(ours, theirs, rate=one.rate)
    return [one.what, shown[0], f"{name} {shown[1]}", digits(ratio), won]


def verdict(ours: Spread, theirs: Spread, *, rate: bool) -> str:
    """Return who wins, if the ranges of the rounds are apart."""
    below, above = ours.high < theirs.low, ours.low > theirs.high
    won, lost = (above, below) if rate else (below, above)
    return "won" if won else "**lost**" if lost else "undecided"

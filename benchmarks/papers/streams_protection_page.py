"""The parts of the page of the streams about protected probabilities of two classes.

Every sentence is counted from the answers that are there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.page import table
from benchmarks.papers.streams_cases import (
    RAW,
    Case,
    P,
    columns,
    compared,
    gaps,
    kept,
    lost,
    outside,
    results,
    won,
)
from benchmarks.papers.streams_protection import BINS
from benchmarks.papers.streams_rivals import HALF_LIFE, WINDOWS, window_name
from benchmarks.papers.streams_steps import LAWS, MEAN, MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Answers = Mapping[tuple[str, str], Mapping[str, Any]]  # by data and scorer: cases by law

__all__ = ["PROTOCOL", "cases", "sentences", "summary", "tables"]

PROTOCOL = f"""\
- **Protected probabilities** ([what they are](../protection.md)). The streams of two classes;
  MNIST has its first 50,000 rows. Each stream has two scorers. *online* is the logistic
  regression above, which learns each label when it comes. *frozen* is scikit-learn's
  `HistGradientBoostingClassifier` (seed 0), trained on the first fifth and never again; only the
  rest is forecast.
- **When labels come.** At once, or 100, 1,000 or 10,000 observations late. *random*: delays are
  geometric with mean {MEAN:.0f}, cut at {MOST:,} (seed 0). *by label*: these are the delays of
  label 1, and label 0 comes after {MOST:,}, as where only its absence is known. What is missing at
  the end comes then.
- **Rivals** have the same scores, and learn each label when it comes. All forecasts are clipped to
  between 10⁻⁶ and 1 less that. IVAP keeps all labels, or the last 100, 300, 1,000 or 3,000. shrunk
  has a half-life of {HALF_LIFE:,.0f} predictions and is drawn to raw where its interval is wide.
  OPS is online Platt scaling (Gupta & Ramdas 2023, with their constants, from raw on). TOPS is its
  tracking form: the share of label 1 in ten bins of OPS, where the middle of a bin counts as a
  label. temperature is OPS without its constant. jumper is the composite jumper (Vovk, Petej &
  Gammerman 2021). Platt and beta calibration are fitted to the last 1,000 labels, and the stacker,
  a logistic regression on the log odds of raw, IVAP and OPS, to the last 3,000: anew after each 250
  labels. Isotonic regression is fitted to the last 1,000 after each label.
- **Chosen afterwards**, so they could not have been used: the *best fixed rival* has the smallest
  mean log loss over the streams, for a scorer and a law of delays. The *best here* has the
  smallest on this stream. *IVAP, best window* is the best of its windows on each stream. *loses
  to* names all rivals that did better than p on a stream.
- p is `ProtectedVennAbers`. Differences are in 10⁻⁴ nats an event; below 0 p is better. The price
  is the bound on the difference of p and raw. *error* is the debiased calibration error of Kumar,
  Liang & Ma (2019): in {BINS} bins of equal counts the mean squared gap between forecast and share
  of label 1, less what chance adds to it, then the root.
"""
_BRIER, _ERROR = "Brier", "error"
_SCORES = "log", _BRIER, _ERROR
_WORST = 6  # cells that are listed


def cases(answers: Answers) -> list[Case]:
    """Order answers by scorer and law."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for (data, scorer), result in answers.items():
        for law, cell in result.items():
            found.setdefault((scorer, law), {})[data] = cell
    laws = [*LAWS]
    keys = sorted(found, key=lambda key: (-ord(key[0][0]), laws.index(key[1])))
    return [Case(*key, found[key]) for key in keys]


def sentences(found: list[Case]) -> Iterator[str]:
    """Yield where p wins and where it loses."""
    if not found:
        return
    yield from compared(found)
    units, best = found[0].units, gaps(found, lambda case: partial(window, case))
    yield f"p is below the best of the four windows of IVAP in {won(best)}{lost(best, units)}."
    raw = gaps(found, lambda _: lambda _: RAW)
    worst = sorted(raw, key=raw.__getitem__, reverse=True)[:_WORST]
    listed = ", ".join(f"{name} ({units(raw[name])})" for name in worst)
    yield f"The worst cells against raw: {listed}."
    yield kept(found)
    yield outside(found, "the forecasts p")


def window(case: Case, data: str) -> str:
    """Name the best window of IVAP on a stream."""
    return min(map(window_name, WINDOWS), key=lambda name: case.score(data, name))


def summary(found: list[Case]) -> str:
    """Write a row for each scorer and law: means and worst cells over the streams."""
    head = ["scorer, labels", "p - raw", "worst", "below raw", "best fixed rival", "p - it"]
    head += ["worst", "below it", "place of p", "error, raw", "error, it", "error, p"]
    rows = []
    for case in found:
        fixed = case.fixed()
        row = [case.title, *_compared(case, lambda _: RAW)]
        row += [fixed, *_compared(case, lambda _, name=fixed: name)]  # type: ignore[misc]
        row += [f"{case.rank()} of {len(case.names)}"]
        row += [f"{case.mean(name, _ERROR):.3f}" for name in (RAW, fixed, P)]
        rows.append(row)
    return table(head, rows)


def _compared(case: Case, other: Callable[[str], str]) -> list[str]:
    below = case.below(other).values()
    wins = sum(gap < 0.0 for gap in below)
    mean = sum(below) / len(below)
    return [case.units(mean), case.units(max(below)), f"{wins} of {len(below)}"]


def tables(found: list[Case]) -> Iterator[str]:
    """Yield two tables for each scorer and law: p and the best others, and all methods."""
    for case in found:
        yield f"### Protected, {case.title}\n"
        yield table(["", *columns(RAW)], [[data, *results(case, data)] for data in case.of])
        streams = [*case.of]
        rows = [
            _scores(case, name, lambda _, name=name: name)  # type: ignore[misc]
            for name in sorted(case.names, key=case.mean)
        ]
        rows.append(_scores(case, "IVAP, best window", partial(window, case)))
        yield table(["log loss", *streams, "mean", "Brier", "error"], rows)


def _scores(case: Case, title: str, name: Callable[[str], str]) -> list[str]:
    """Write the scores of the method that is named for each stream."""
    parts = [[case.score(data, name(data), score) for data in case.of] for score in _SCORES]
    means = [sum(part) / len(part) for part in parts]
    return [title, *(f"{one:.4f}" for one in (*parts[0], *means))]

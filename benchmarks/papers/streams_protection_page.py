"""The parts of the page of the streams about protected probabilities of two classes.

Every sentence is counted from the answers that are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.page import table
from benchmarks.papers.streams_protection import BINS
from benchmarks.papers.streams_rivals import HALF_LIFE, WINDOWS, window_name
from benchmarks.papers.streams_steps import LAWS, MEAN, MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Answers = Mapping[tuple[str, str], Mapping[str, Any]]  # by data and scorer: cases by law

__all__ = ["PROTOCOL", "Case", "cases", "sentences", "summary", "tables"]

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
P = "protected"
_RAW, _LOG, _BRIER, _ERROR = "raw", "log", "Brier", "error"
_UNIT = 1e-4  # nats
_ROUND = 9.5  # units that are written without a decimal
_WORST = 6  # cells that are listed


class Case(NamedTuple):
    """The results of a scorer and a law of delays, by stream."""

    scorer: str
    law: str
    of: Mapping[str, Mapping[str, Any]]

    @property
    def title(self) -> str:
        """Name the case."""
        return f"{self.scorer}, {self.law}"

    @property
    def names(self) -> list[str]:
        """List the methods."""
        return [*next(iter(self.of.values()))["methods"]]

    @property
    def rivals(self) -> list[str]:
        """List the methods but for p."""
        return [name for name in self.names if name != P]

    def score(self, data: str, name: str, score: str = _LOG) -> float:
        """Return a score of a method on a stream."""
        return float(self.of[data]["methods"][name][score])

    def mean(self, name: str, score: str = _LOG) -> float:
        """Return the mean over streams."""
        return sum(self.score(data, name, score) for data in self.of) / len(self.of)

    def fixed(self) -> str:
        """Name the best fixed rival."""
        return min(self.rivals, key=self.mean)

    def best(self, data: str) -> str:
        """Name the best rival on a stream."""
        return min(self.rivals, key=lambda name: self.score(data, name))

    def window(self, data: str) -> str:
        """Name the best window of IVAP on a stream."""
        return min(map(window_name, WINDOWS), key=lambda name: self.score(data, name))

    def below(self, other: Callable[[str], str]) -> dict[str, float]:
        """Return the log loss of p less that of another method, by stream."""
        return {data: self.score(data, P) - self.score(data, other(data)) for data in self.of}

    def rank(self) -> int:
        """Return the place of p by mean log loss."""
        return 1 + sum(self.mean(name) < self.mean(P) for name in self.rivals)


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
    raw = _gaps(found, lambda _: lambda _: _RAW)
    yield f"p is below raw in {_wins(raw)}{_losses(raw)}."
    fixed = _gaps(found, lambda case: lambda _: case.fixed())
    yield f"p is below the best fixed rival in {_wins(fixed)}{_losses(fixed)}."
    best = _gaps(found, lambda case: case.best)
    yield f"p is below every rival, the best of each stream included, in {_wins(best)}."
    window = _gaps(found, lambda case: case.window)
    yield f"p is below the best of the four windows of IVAP in {_wins(window)}{_losses(window)}."
    worst = sorted(raw, key=raw.__getitem__, reverse=True)[:_WORST]
    listed = ", ".join(f"{name} ({_units(raw[name])})" for name in worst)
    yield f"The worst cells against raw: {listed}."
    kept = sum(
        case.score(data, P) - case.score(data, _RAW) <= cell["price"]
        for case in found
        for data, cell in case.of.items()
    )
    yield f"p exceeds raw by at most the price in {kept} of {len(raw)} cells."
    shares = [cell["outside"] for case in found for cell in case.of.values()]
    low, high = 100 * min(shares), 100 * max(shares)
    yield f"In a cell, {low:.0f} % to {high:.0f} % of the forecasts p lie outside their intervals."


def _gaps(found: list[Case], other: Callable[[Case], Callable[[str], str]]) -> dict[str, float]:
    return {
        f"{data} {case.title}": gap
        for case in found
        for data, gap in case.below(other(case)).items()
    }


def _wins(gaps: Mapping[str, float]) -> str:
    return f"{sum(gap < 0.0 for gap in gaps.values())} of {len(gaps)} cells"


def _losses(gaps: Mapping[str, float]) -> str:
    lost = {name: gap for name, gap in gaps.items() if gap >= 0.0}
    if not lost:
        return ""
    return ", not in " + ", ".join(f"{name} ({_units(gap)})" for name, gap in lost.items())


def _units(gap: float) -> str:
    units = gap / _UNIT
    return f"{units:+,.{0 if abs(units) > _ROUND else 1}f}" if gap else "0"


def summary(found: list[Case]) -> str:
    """Write a row for each scorer and law: means and worst cells over the streams."""
    head = ["scorer, labels", "p - raw", "worst", "below raw", "best fixed rival", "p - it"]
    head += ["worst", "below it", "place of p", "error, raw", "error, it", "error, p"]
    rows = []
    for case in found:
        fixed = case.fixed()
        row = [case.title, *_compared(case.below(lambda _: _RAW))]
        row += [fixed, *_compared(case.below(lambda _, name=fixed: name))]  # type: ignore[misc]
        row += [f"{case.rank()} of {len(case.names)}"]
        row += [f"{case.mean(name, _ERROR):.3f}" for name in (_RAW, fixed, P)]
        rows.append(row)
    return table(head, rows)


def _compared(gaps: Mapping[str, float]) -> list[str]:
    mean = sum(gaps.values()) / len(gaps)
    wins = sum(gap < 0.0 for gap in gaps.values())
    return [_units(mean), _units(max(gaps.values())), f"{wins} of {len(gaps)}"]


def tables(found: list[Case]) -> Iterator[str]:
    """Yield two tables for each scorer and law: p and the best others, and all methods."""
    head = ["", "raw", "p", "p - raw", "price", "best fixed rival", "p - it", "best here", "p - it"]
    head += ["best method in p", "p - it", "loses to"]
    for case in found:
        yield f"### Protected, {case.title}\n"
        yield table(head, [_row(case, data) for data in case.of])
        streams = [*case.of]
        rows = [
            _scores(case, name, lambda _, name=name: name)  # type: ignore[misc]
            for name in sorted(case.names, key=case.mean)
        ]
        rows.append(_scores(case, "IVAP, best window", case.window))
        yield table(["log loss", *streams, "mean", "Brier", "error"], rows)


def _row(case: Case, data: str) -> list[str]:
    p, cell = case.score(data, P), case.of[data]
    fixed, best = case.fixed(), case.best(data)
    method = min(cell["experts"], key=cell["experts"].__getitem__)
    better = [name for name in case.rivals if case.score(data, name) < p]
    return [
        data,
        *(f"{case.score(data, name):.4f}" for name in (_RAW, P)),
        _units(p - case.score(data, _RAW)),
        f"{cell['price']:.4f}",
        *(fixed, _units(p - case.score(data, fixed))),
        *(best, _units(p - case.score(data, best))),
        *(method, _units(p - cell["experts"][method])),
        "; ".join(better) or "none",
    ]


def _scores(case: Case, title: str, name: Callable[[str], str]) -> list[str]:
    """Write the scores of the method that is named for each stream."""
    parts = [[case.score(data, name(data), score) for data in case.of] for score in _SCORES]
    means = [sum(part) / len(part) for part in parts]
    return [title, *(f"{one:.4f}" for one in (*parts[0], *means))]


_SCORES = _LOG, _BRIER, _ERROR

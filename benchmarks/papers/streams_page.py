"""The page of the streams: a table for each stream and delay, and what follows from them.

Every sentence that compares is counted from the answers that are there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from benchmarks.page import table
from benchmarks.papers import streams_protected_classes_page as protected_classes
from benchmarks.papers import streams_protected_numbers_page as protected_numbers
from benchmarks.papers import streams_protection_page as protected_two
from benchmarks.papers.figure import Axis, draw
from benchmarks.papers.paper import Page
from benchmarks.papers.report import NONE
from benchmarks.papers.streams_cases import counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.papers.runner import Answer
    from benchmarks.papers.streams_cases import Case

    Row = Mapping[str, Any]
    Tables = dict[tuple[str, int], Mapping[str, Row]]  # by data and delay: calibrators

__all__ = ["page"]

_HEAD = f"""\
# Calibrators on streams

After this page you know where calibration helps on a stream, where it does not, and which
forgetting to choose. `python -m benchmarks.papers streams` writes it; no paper has these tables.

### Protocol

- Every observation is forecast when it comes. Its label is learned after 0 or 1,000 further
  observations, or as a table says. All forecasts count, from the first on.
- **Two classes.** The scorer is an online logistic regression (scikit-learn's `SGDClassifier`, a
  constant rate of 0.01) on features standardised by the rows so far; pixels are divided by 255.
  raw is its probability. Platt, isotonic and beta calibration are fitted to all labels so far.
  IVAP is merged for the log loss; its window is 1,000 labels, its half-life 1,000 observations.
  CVAP has five folds with a scorer each, which learns the labels of the other four folds, so its
  scores differ.
- The classes are: Elec2, up or down; MNIST, an odd or an even digit; Insects, the last of its six
  classes in alphabetical order or another; Bike sharing, more than 142 bicycles an hour (the
  median) or fewer; Phishing and Banana, their own.
{protected_two.PROTOCOL.strip()}
- **Several classes.** The six classes of Insects and the ten digits. The scorers are logistic
  regressions as above, one for each class against the rest; raw is their probabilities divided by
  the sum. Platt, isotonic, beta and IVAP calibrate each class against the rest and are divided by
  their sum too (`OneVsRest`); "IVAP, pairs" calibrates pairs and couples them (`OneVsOne`). MCB
  is of the class with the largest probability.
{protected_classes.PROTOCOL.strip()}
- **Numbers.** The base is Bayesian linear regression on the features as they are, fitted anew to
  all labels so far whenever these are 5 % more; the first 100 labels are for its first fit. It
  predicts normal distributions. Quantile calibration, the beta CDF and GP-Beta are fitted to the
  last 1,000 labels, GP-Beta every 100; IVAPR takes the predicted mean as its score. Quantiles are
  clipped to the support that IVAPR is given: 0 to 1,000 bicycles, 0 to 100 % approval, 0 to 400
  grams. Before it has a label, the quantiles of IVAPR are the ends of that support, while the base
  already has its 100 labels. This raises the CRPS, most of all of short streams and late labels.
{protected_numbers.PROTOCOL.strip()}
- log: mean log loss, ∞ with a count if labels had probability 0; MCB and DSC:
  miscalibration and discrimination of the Brier score, by the CORP diagram of the exact
  forecasts; ECE in ten bins; width: the mean of p1 - p0. CRPS: twice the mean pinball loss of the
  99 percentiles, which is the integral without its tails; pinball: of 5, 10, …, 95 %. Smaller is
  better except for DSC, accuracy and coverage.
"""
_TWO = "Protected probabilities of two classes, in sentences"
_FORGETTING = "IVAP", "IVAP, window", "IVAP, half-life"
_OF_NUMBERS = "IVAPR", "IVAPR, window", "IVAPR, half-life"


def page(answers: Mapping[str, Answer]) -> Page:
    """Write the page from the results so far."""
    classes, several, numbers = (_tables(answers, k) for k in ("classes", "several", "numbers"))
    protection = protected_two.cases(_by(answers, "protection", "data", "scorer"))
    protected = protected_classes.cases(_by(answers, "protected classes", "data", "law"))
    distributions = protected_numbers.cases(_by(answers, "protected numbers", "data", "law"))
    kinds = {"two classes": protection, "several classes": protected, "numbers": distributions}
    parts = [_HEAD, "## What follows\n", _counted(kinds)]
    parts += _list(_TWO, protected_two.sentences(protection))
    several_found = protected_classes.sentences(protected)
    parts += _list("Protected probabilities of several classes, in sentences", several_found)
    numbered = protected_numbers.sentences(distributions)
    parts += _list("Protected distributions, in sentences", numbered)
    parts += _list("Calibrators alone, in sentences", _found(classes, several, numbers))
    drawn = {data: rows for (data, delay), rows in classes.items() if not delay}
    parts += ["## Two classes\n", _reliability(drawn)]
    parts += [_classes(*each) for each in classes.items()]
    parts += ["## Protected probabilities\n", protected_two.summary(protection)]
    parts += protected_two.tables(protection)
    parts += ["## Several classes\n", *(_several(*each) for each in several.items())]
    parts += protected_classes.tables(protected)
    parts += ["## Numbers\n", *(_numbers(*each) for each in numbers.items())]
    parts += protected_numbers.tables(distributions)
    figures = {_file(data): _diagram(data, rows) for data, rows in drawn.items()}
    return Page("\n".join(parts), figures)


def _counted(kinds: Mapping[str, Sequence[Case]]) -> str:
    """Write where protected predictions win, a row for each kind of label."""
    text = (
        "A cell is a stream with a law of delays, of two classes also with a scorer. Protected"
        " predictions p are below (log loss, or CRPS of numbers):\n\n"
    )
    head = ["labels", "raw or base", "the best fixed rival", "every rival, chosen afterwards"]
    rows = [counts(title, found) for title, found in kinds.items() if found]
    return text + table([*head, "raw or base and the price"], rows) if rows else ""


def _list(title: str, found: Iterable[str]) -> list[str]:
    """Write sentences under a title, if there are any."""
    lines = [f"- {line}" for line in found if line]
    return [f"### {title}\n", *lines, ""] if lines else []


def _tables(answers: Mapping[str, Answer], kind: str) -> Tables:
    return _by(answers, kind, "data", "delay")


def _by(answers: Mapping[str, Answer], kind: str, *keys: str) -> dict[Any, Any]:
    """Return the results of a kind, by parts of their specifications."""
    return {
        tuple(answer.spec[key] for key in keys): answer.result
        for name, answer in answers.items()
        if name.split("/")[1] == kind
    }


def _loss(row: Row) -> float:
    """Return the score of a row: the log loss of two classes, the CRPS of numbers."""
    if "CRPS" in row:
        return float(row["CRPS"])
    return math.inf if row["log"] is None else float(row["log"])


def _found(classes: Tables, several: Tables, numbers: Tables) -> list[str]:
    return [
        _better(classes, "IVAP", "raw", "log loss"),
        _better(classes, "IVAP", "Platt", "log loss"),
        _better(classes, "IVAP", "isotonic", "log loss"),
        _better(classes, "IVAP", "beta", "log loss"),
        _better(classes, "CVAP", "IVAP", "log loss"),
        _infinite(classes),
        _best(classes, _FORGETTING, "log loss"),
        *(
            _better(several, "IVAP", other, "log loss", "streams of several classes")
            for other in ("raw", "Platt", "isotonic", "beta", "IVAP, pairs")
        ),
        _better(numbers, "quantile calibration", "the learner", "CRPS"),
        _better(numbers, "GP-Beta", "the learner", "CRPS"),
        _better(numbers, "IVAPR", "the learner", "CRPS"),
        _best(numbers, _OF_NUMBERS, "CRPS"),
        _nearest(numbers),
    ]


def _better(tables: Tables, one: str, other: str, loss: str, streams: str = "streams") -> str:
    """Write on which streams one calibrator loses less than another, labels at once and late."""
    parts = []
    for delay in sorted({delay for _, delay in tables}):
        at = {data: rows for (data, late), rows in tables.items() if late == delay}
        wins = [data for data, rows in at.items() if _loss(rows[one]) < _loss(rows[other])]
        rest = ", ".join(data for data in at if data not in wins)
        but = f" (not on {rest})" if wins and rest else ""
        when = f"with labels {delay:,} late" if delay else "with labels at once"
        parts.append(f"{len(wins)} of {len(at)} {streams} {when}{but}")
    return f"{one} has a smaller {loss} than {other} on {', and on '.join(parts)}." if parts else ""


def _infinite(tables: Tables) -> str:
    """Write which calibrators gave a label the probability 0."""
    names = dict.fromkeys(name for rows in tables.values() for name in rows)
    counts = {n: sum(rows[n]["log"] is None for rows in tables.values()) for n in names}
    found = [f"{name} in {count}" for name, count in counts.items() if count]
    if not found:
        return ""
    named = ", ".join(found)
    return f"Of {len(tables)} tables, the log loss is infinite for {named}, and for no other."


def _best(tables: Tables, names: Iterable[str], loss: str) -> str:
    """Write which form of forgetting is best where."""
    if not tables:
        return ""
    found: dict[str, list[tuple[str, int]]] = {}
    for key, rows in tables.items():
        found.setdefault(min(names, key=lambda name: _loss(rows[name])), []).append(key)
    words = (f"{name} on {_named(keys)}" for name, keys in found.items())
    return f"The form of forgetting with the smallest {loss} is {'; '.join(words)}."


def _nearest(tables: Tables) -> str:
    """Write whose 80 % intervals cover nearest to 80 %."""
    if not tables:
        return ""
    found: dict[str, list[tuple[str, int]]] = {}
    for key, rows in tables.items():
        nearest = min(rows, key=lambda name: abs(rows[name]["80 %"] - 0.8))
        found.setdefault(nearest, []).append(key)
    words = (f"{name} on {_named(keys)}" for name, keys in found.items())
    return f"The coverage of the 80 % intervals is nearest to 80 % for {'; '.join(words)}."


def _named(keys: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{data} (delay {delay:,})" for data, delay in keys)


def _classes(key: tuple[str, int], rows: Mapping[str, Row]) -> str:
    return _scored(key, rows, ["Brier", "MCB", "DSC", "ECE", "width"])


def _reliability(drawn: Iterable[str]) -> str:
    text = (
        "### Reliability diagrams\n\n"
        "With labels at once: how often label 1 came, by the CORP diagram, at twenty"
        " quantiles of the forecasts. The nearer to the diagonal, the better calibrated.\n"
    )
    return "\n".join([text, *(f"![Reliability on {data}]({_file(data)})\n" for data in drawn)])


def _file(data: str) -> str:
    return f"streams_{data.lower().replace(' ', '_')}.svg"


def _diagram(data: str, rows: Mapping[str, Row]) -> str:
    names = ("raw", "Platt", "isotonic", "IVAP", "IVAP, half-life")
    axes = Axis("forecast", 0.0, 1.0), Axis("share of label 1", 0.0, 1.0)
    curves = {name: rows[name]["curve"] for name in names}
    return draw(f"Reliability on {data}", *axes, curves, diagonal=True)


def _several(key: tuple[str, int], rows: Mapping[str, Row]) -> str:
    return _scored(key, rows, ["Brier", "accuracy", "MCB"])


def _scored(key: tuple[str, int], rows: Mapping[str, Row], names: list[str]) -> str:
    cells = []
    for name, row in rows.items():
        log = f"∞ ({row['infinite']})" if row["log"] is None else f"{row['log']:.4f}"
        cells.append([name, log, *(_four(row[each]) for each in names)])
    return f"### {key[0]}, delay {key[1]:,}\n\n{table(['', 'log', *names], cells)}"


def _numbers(key: tuple[str, int], rows: Mapping[str, Row]) -> str:
    head = ["CRPS", "pinball", "50 %", "80 %", "90 %"]
    cells = [[name, *(_four(row[each]) for each in head)] for name, row in rows.items()]
    covers = ["CRPS", "pinball", "in 50 %", "in 80 %", "in 90 %"]
    return f"### {key[0]}, delay {key[1]:,}\n\n{table(['', *covers], cells)}"


def _four(value: float | None) -> str:
    return NONE if value is None else f"{value:.4f}"

"""The page of Vovk & Petej (2014): their tables beside ours.

A cell is the mean over all splits that were run, and infinite as soon as one is.
"""

from __future__ import annotations

import math
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.page import table
from benchmarks.papers.encoded import SETS
from benchmarks.papers.figure import Axis, draw
from benchmarks.papers.manifest import HERE, MANIFEST, records
from benchmarks.papers.paper import Page
from benchmarks.papers.report import NONE, Mean, beside, mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.papers.runner import Answer

__all__ = ["FULL", "SPLITS", "page", "ranking"]

SPLITS, FULL = 100, 16  # of W, SVA and DIR; of VA, others

Key = tuple[str, str, str, str, str]  # source, loss, data, scorer, method
Found = dict[Key, Mean]
Published = dict[tuple[str, str, str, str], float]
_LOSSES = {"log": "Table 1, mean log loss", "rmse": "Table 2, root of the mean square error"}
_SCORERS = {
    "J": "J48",
    "JB": "J48 with bagging",
    "LR": "logistic regression",
    "NB": "naïve Bayes",
    "NN": "neural network",
    "SVM": "SVM with Platt's sigmoid",
}
_METHODS = "W", "VA", "SVA", "DIR"
_OURS = {"IVAP": "IVAP", "stream": "streaming IVAP", "CVAP": "CVAP"}
_PAIRS = "VA", "SVA", "IVAP", "stream"  # those that answer with p0 and p1
_DRAWN = "J", "NB", "NN"  # the scorers that are far from calibrated
_ENOUGH = 100  # forecasts of a tenth
_NAME = "venn_abers_2014"

_HEAD = """\
# Vovk & Petej (2014), Venn-Abers predictors

After this page you know how near abers comes to tables 1 to 3 of the paper, and see its theorem
and its Proposition 2 simulated. `python -m benchmarks.papers venn_abers_2014` writes it. Smaller
is better everywhere; a cell of ours is a mean over random splits, ± its standard error. A log
loss is infinite as soon as one test object of one split had probability 0 of its label; it is
counted (“∞ (3 of 10)”: in 3 of 10 splits) and never clipped.

### Protocol

- Two thirds of a random permutation train, the rest is the test set. W is the scorer's own
  probability. SVA and DIR calibrate on the scores of the training set itself. VA trains the
  scorer twice for each test object, on splits of its own, as in the paper.
- Log loss is of the log merge, square loss of the Brier merge of (p0, p1).
- Ours where the paper has none: IVAP trains on two thirds of the training part and calibrates on
  the rest; streaming IVAP is the same, but learns the label of each test object after predicting
  it; CVAP has five folds.

### Deviations

- The paper states neither the fraction of the split nor the options of Weka; two thirds and the
  defaults of Weka 3.6.14 are used except where others come closer: naïve Bayes has kernel densities
  (`-K`), SVM fits its sigmoid (`-M`), the neural network learns at the rate 0.1 (`-L`), and
  bagging is of REPTree, which is what Weka bags by default. In 40 splits with J48
  bagged the RMSE of DIR is above the published one on all nine sets (by 0.009 on Australian, 0.029
  on Diabetes, 0.024 on Liver), with REPTree within 0.005 of it on these; in 20 splits a network at
  Weka's rate of 0.3 has 0.03 more than published on Liver and Echo.
- The nominal features of Australian and Breast are numbers in alphabetical order; Echo is without
  survival, still_alive, mult and group. Elsewhere nominal features are nominal.
- scikit-learn's scorers are the nearest, not the same: J is a pruned entropy tree of
  `DecisionTreeClassifier`, not C4.5; JB is bagging of ten unpruned ones; NN is fitted by L-BFGS and
  stopped after 100 iterations; naïve Bayes is our own, with kernels for numbers and Laplace's
  counts for words; SVM has our `Platt` on its training outputs. Features are scaled to [0, 1],
  missing ones filled in.
- The paper has 100 splits, and 16 others for VA. Ours are other splits, as many as the tables say:
  for W, SVA and DIR in blocks of 20, for VA one by one, with the scorers of Weka alone.
- Bagging, SVM and the neural network of Weka depend on the order of the training objects, so the
  theorem does not cover VA with them; the same is true in the paper.
"""


def page(answers: Mapping[str, Answer]) -> Page:
    """Write the page from the results so far."""
    found = _found(answers)
    published = {
        (r["loss"], r["data"], r["scorer"], r["method"]): float(r["value"])
        for r in records(HERE / "published" / f"{_NAME}.tsv")
    }
    parts = [_HEAD, _agreement(found, published), _splits(found)]
    parts += [_compared(found, published, loss) for loss in _LOSSES]
    parts += [_ranks(found), _others(found), _widths(found), _reliability(), _validity(answers)]
    drawn = {name: _diagram(answers, name) for name in _DRAWN}
    figures = {_file(name): text for name, text in drawn.items()}
    figures |= {f"{_NAME}_selector.svg": _selector(answers), f"{_NAME}_widths.svg": _cloud(found)}
    return Page("\n".join(parts), figures)


def _found(answers: Mapping[str, Answer]) -> Found:
    values: dict[Key, list[float | None]] = {}
    for answer in answers.values():
        if "splits" not in answer.spec:
            continue
        of = answer.spec
        for method, measured in answer.result.items():
            for what in (*_LOSSES, "width"):
                key = of["source"], what, of["data"], of["scorer"], method
                values.setdefault(key, []).extend(measured[what])
    return {key: mean(each) for key, each in values.items()}


_MISSING = mean([])


def _agreement(found: Found, published: Published) -> str:
    """Write how near the published numbers came, by source and scorer."""
    rows = []
    for source in ("weka", "sklearn"):
        for scorer, name in _SCORERS.items():
            cells = [f"{name}, {source}"]
            for loss in _LOSSES:
                gaps = [
                    abs(found[source, *key].value - value)
                    for key, value in published.items()
                    if key[0] == loss and key[2] == scorer and (source, *key) in found
                ]
                finite = [gap for gap in gaps if math.isfinite(gap)]
                cells.append(f"{np.median(finite):.3f} ({len(finite)})" if finite else NONE)
            rows.append(cells)
    head = ["scorer", "log loss", "RMSE"]
    text = (
        "Median of |ours - published| over the data sets and methods (in brackets: how many cells):"
    )
    return f"## How near\n\n{text}\n\n{table(head, rows)}"


def _splits(found: Found) -> str:
    """Write how many splits were run, of the methods of the paper."""
    goals = (
        ("W, SVA and DIR", ("weka", "sklearn"), ("W", "SVA", "DIR"), SPLITS),
        ("VA", ("weka",), ("VA",), FULL),
    )
    words = []
    for name, sources, methods, goal in goals:
        keys = [
            (source, "log", data, scorer, method)
            for source in sources
            for data in SETS
            for scorer in _SCORERS
            for method in methods
        ]
        counts = [found.get(key, _MISSING).repetitions for key in keys]
        words.append(f"{counts.count(goal)} of {len(counts)} rows of {name} have all {goal} splits")
    return f"{', '.join(words)}; the others have fewer. The end says how long the rest takes.\n"


def _compared(found: Found, published: Published, loss: str) -> str:
    parts = [f"## {_LOSSES[loss]}\n"]
    for scorer, name in _SCORERS.items():
        rows = []
        for data in SETS:
            for method in _METHODS:
                keys = [(s, loss, data, scorer, method) for s in ("weka", "sklearn")]
                ours = [found.get(key, _MISSING) for key in keys]
                goal = FULL if method == "VA" else SPLITS
                splits = " / ".join(f"{each.repetitions} of {goal}" for each in ours)
                value = published[loss, data, scorer, method]
                rows.append([f"{data}, {method}", *beside(value, ours), splits])
        head = ["data, method", "published", "ours, Weka", "difference"]
        head += ["ours, scikit-learn", "difference", "splits"]
        parts.append(f"### {name}\n\n{table(head, rows)}")
    return "\n".join(parts)


def ranking(found: Found, source: str, loss: str, data: str) -> list[str]:
    """Rank the methods by their best scorer, as "method (scorer)"."""
    best = []
    for method in _METHODS:
        values = {
            scorer: found[key].value
            for scorer in _SCORERS
            if (key := (source, loss, data, scorer, method)) in found
        }
        if values:
            scorer = min(values, key=values.__getitem__)
            best.append((values[scorer], f"{method} ({scorer})"))
    return [name for value, name in sorted(best, key=itemgetter(0)) if math.isfinite(value)]


def _ranks(found: Found) -> str:
    rows, places = [], 0
    for record in records(HERE / "published" / f"{_NAME}_ranks.tsv"):
        theirs = [record[f"place{place}"] for place in (1, 2, 3)]
        ours = ranking(found, "weka", record["loss"], record["data"])[:3]
        same = sum(a.split()[0] == b.split()[0] for a, b in zip(theirs, ours, strict=False))
        name = f"{record['data']}, {record['loss']}"
        places += same
        rows.append([name, ", ".join(theirs), ", ".join(ours) or NONE, f"{same} of 3"])
    head = ["data, loss", "published", "ours, Weka", "places alike"]
    text = (
        "Methods ranked by their best scorer; VA stands only where it was run. The method is that"
        f" of the paper in {places} of {3 * len(rows)} places.\n"
    )
    return f"## Table 3\n\n{text}\n### Table 3, place by place\n\n{table(head, rows)}"


def _others(found: Found) -> str:
    parts = ["## Ours and published\n\nWith the scorers of Weka, where the paper has no row.\n"]
    for loss, title in _LOSSES.items():
        rows = [
            [f"{data}, {name}"]
            + [found.get(("weka", loss, data, s, m), _MISSING).shown() for s in _SCORERS]
            for data in SETS
            for m, name in {"SVA": "SVA", **_OURS}.items()
        ]
        parts.append(f"### {title}\n\n{table(['data, method', *_SCORERS], rows)}")
    return "\n".join(parts)


def _widths(found: Found) -> str:
    rows = []
    for data in SETS:
        for method in _PAIRS:
            keys = [("weka", "width", data, scorer, method) for scorer in _SCORERS]
            cells = [found.get(key, _MISSING).shown() for key in keys]
            rows.append([f"{data}, {_OURS.get(method, method)}", *cells])
    text = (
        "How far p1 is above p0 in the mean, with the scorers of Weka: what is not known of a"
        " probability. IVAP has a third of the training part to calibrate on, VA and SVA have all"
        " of it.\n\n"
    )
    image = f"![Widths against the labels that are known]({_NAME}_widths.svg)\n\n"
    numbers = f"### Widths, in numbers\n\n{table(['data, method', *_SCORERS], rows)}"
    return f"## Widths\n\n{text}{image}{numbers}"


def _cloud(found: Found) -> str:
    """Draw the widths of each data set and scorer against the labels that the method has."""
    shares = {"VA": 2 / 3, "SVA": 2 / 3, "IVAP": 2 / 9}
    clouds = {
        method: [
            (share * MANIFEST[what.file].rows, found[key].value)
            for data, what in SETS.items()
            for scorer in _SCORERS
            if (key := ("weka", "width", data, scorer, method)) in found
        ]
        for method, share in shares.items()
    }
    axes = Axis("labels that calibrate", 0.0, 550.0), Axis("mean of p1 - p0", 0.0, 1.0)
    return draw("Widths, nine data sets and six scorers", *axes, clouds, dots=True)


def _file(scorer: str) -> str:
    return f"{_NAME}_reliability_{scorer.lower()}.svg"


def _reliability() -> str:
    text = (
        "The share of label 1 among forecasts of the same tenth, all data sets and splits"
        " together, with the scorers of Weka; tenths with fewer than 100 forecasts are left out."
        " The nearer to the diagonal, the better calibrated.\n"
    )
    parts = ["### Reliability diagrams\n", text]
    parts += [f"![Reliability with {_SCORERS[name]}]({_file(name)})\n" for name in _DRAWN]
    return "\n".join(parts)


def _diagram(answers: Mapping[str, Answer], scorer: str) -> str:
    found = [
        answer.result
        for answer in answers.values()
        if answer.spec.get("source") == "weka" and answer.spec["scorer"] == scorer
    ]
    tenths = {
        method: np.sum([each[method]["tenths"] for each in found if method in each], axis=0)
        for method in ("W", "DIR", "SVA", "VA", "IVAP", "CVAP")
        if any(method in each for each in found)
    }
    curves = {
        method: [(p / n, ones / n) for n, p, ones in each.T.tolist() if n >= _ENOUGH]
        for method, each in tenths.items()
    }
    axes = Axis("forecast", 0.0, 1.0), Axis("share of label 1", 0.0, 1.0)
    return draw(f"Reliability, {_SCORERS[scorer]}", *axes, curves, diagonal=True)


_THEORY = """\
## The theorem, and Proposition 2

By Theorem 1 and its corollary the mean of p0 is at most, and that of p1 at least, the probability
of label 1, for VA with any scorer. SVA has no such property: a scorer that knows its labels by
heart (the label of a training object, 2 for all others) drives its lower probability far above a
fair coin. Simulated with objects that are uniform on [0, 1]: with the first scorer, the difference
of the distances to the mean objects of the two labels, label 1 has the probability of the object;
with the second it has probability 1/2.
"""


def _validity(answers: Mapping[str, Answer]) -> str:
    rows = []
    for name, answer in answers.items():
        if name.split("/")[1] != "validity":
            continue
        for predictor, runs in answer.result.items():
            p0, p1, label = (mean(column) for column in zip(*runs, strict=True))
            inside = "yes" if _holds(p0, p1) else "**no**"
            cells = [each.shown() for each in (p0, label, p1)]
            rows.append([f"{predictor}, n = {answer.spec['n']}", *cells, inside, len(runs)])
    head = ["predictor, scorer", "mean p0", "share of 1", "mean p1", "1/2 inside", "bags"]
    figure = (
        "The selector of the theorem takes p1 where the label is 1, and p0 where it is 0. What it"
        " takes should be the frequency of label 1 among the bags where it is taken:\n\n"
        f"![The probability that the selector takes, against the frequency]({_NAME}_selector.svg)\n"
    )
    return f"{_THEORY}\n{table(head, rows)}{figure}"


def _holds(p0: Mean, p1: Mean) -> bool:
    """Return whether the true probability, 1/2, is within two standard errors of the interval."""
    return p0.value - 2 * p0.error <= 0.5 <= p1.value + 2 * p1.error  # noqa: PLR2004


def _selector(answers: Mapping[str, Answer]) -> str:
    curves = {}
    for name, answer in answers.items():
        if name.split("/")[1] != "validity" or answer.spec["n"] != 20:  # noqa: PLR2004 - of 10, 20
            continue
        for predictor, runs in answer.result.items():
            columns = np.array(runs)
            label = columns[:, 2]
            taken = np.where(label == 1.0, columns[:, 1], columns[:, 0])
            bins = np.minimum((10 * taken).astype(int), 9)
            curves[predictor] = [
                (float(taken[bins == b].mean()), float(label[bins == b].mean()))
                for b in range(10)
                if (bins == b).sum() >= 20  # noqa: PLR2004 - enough to be a frequency
            ]
    axes = Axis("probability that the selector takes", 0.0, 1.0), Axis("share of label 1", 0.0, 1.0)
    return draw("The selector of Theorem 1, 20 objects", *axes, curves, diagonal=True)

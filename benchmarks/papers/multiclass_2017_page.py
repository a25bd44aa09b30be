"""The page of Manokhin (2017): tables 1 to 4 and ours, and the ratio of the parts.

Who is first is said of our means as of the published ones, whatever it is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.page import table
from benchmarks.papers.figure import Axis, draw
from benchmarks.papers.manifest import HERE, records
from benchmarks.papers.paper import Page
from benchmarks.papers.report import Mean, beside, mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.papers.runner import Answer

    Found = dict[tuple[str, str, int, str], Mean]  # data, base, ratio, loss and system

__all__ = ["page"]

_NAME = "multiclass_2017"
_NONE = mean([])
_SYSTEMS = "Platt", "IVAP", "CVAP"
_LOSSES = "Brier", "log"
_RATIO = 3
_HONEST = "MNIST, calibrated on training rows"
_BASES = {"SVM": "SVM", "LR": "logistic regression", "NN": "neural network"}  # figures 1 to 3

_HEAD = """\
# Manokhin (2017), multi-class inductive and cross Venn-Abers predictors

After this page you know how near abers comes to tables 1 to 4 and figures 1 to 3 of the paper.
`python -m benchmarks.papers multiclass_2017` writes it. Brier and log loss over the vector of
classes, smaller is better; a cell of ours is a mean over random splits, ± its standard error.

### Protocol

- A scorer and a calibrator for each pair of classes, coupled by p_i = 1 / (sum of 1 / r_ij -
  (k - 2)) and divided by the sum, as `OneVsOne` does it.
- The training part is parted 3 : 1; the quarter calibrates Platt and IVAP. CVAP has four folds of
  the whole training part. Log loss is of the log merge, Brier loss of the Brier merge.

### Deviations

- The paper has one split, and names its rows only for satimage; ours are random splits of the same
  sizes. With vehicle 562 rows train, and the other 284 of 846 test (282 in the paper).
- Kernel, layers and options are not stated: `LogisticRegression`, `SVC` with the Gaussian kernel
  and its decision values, and `MLPClassifier` with 20 hidden units, L-BFGS of at most 100
  iterations and its logits, all of scikit-learn, on standardised features. Platt has Platt's
  smoothed targets. Other learners have other losses: the digits cannot match.
- MNIST: the first 2,500 test rows calibrate Platt and IVAP, as in the paper, and the losses are
  those of the other 7,500; CVAP has folds of the training rows. SVM has the first 20,000 of the
  60,000 training rows, for time. One run, without an error. Below it once more with a quarter of
  the training rows for calibration, as with the other sets.
- satimage has six classes in the file, and seven in the paper; one of these is empty.
"""


def page(answers: Mapping[str, Answer]) -> Page:
    """Write the page from the results so far."""
    found = _found(answers)
    published = {
        (r["data"], r["base"], f"{r['loss']} {r['system']}"): float(r["value"])
        for r in records(HERE / "published" / f"{_NAME}.tsv")
    }
    parts = [_HEAD, *(_table(found, published, loss) for loss in _LOSSES)]
    parts += [_honest(found), _first(found, published), _ratios(found)]
    figures = {_file(base, loss): _figure(found, base, loss) for base in _BASES for loss in _LOSSES}
    return Page("\n".join(parts), figures)


def _found(answers: Mapping[str, Answer]) -> Found:
    values: dict[tuple[str, str, int, str], list[float | None]] = {}
    for answer in answers.values():
        of = answer.spec
        for name, each in answer.result.items():
            data = _HONEST if of.get("honest") else of["data"]
            values.setdefault((data, of["base"], of["ratio"], name), []).extend(each)
    return {key: mean(each) for key, each in values.items()}


Published = dict[tuple[str, str, str], float]


def _table(found: Found, published: Published, loss: str) -> str:
    rows = []
    for data, base in dict.fromkeys(key[:2] for key in published):
        cells, splits = [f"{data}, {base}"], 0
        for system in _SYSTEMS:
            ours = found.get((data, base, _RATIO, f"{loss} {system}"), _NONE)
            cells += beside(published[data, base, f"{loss} {system}"], [ours])
            splits = ours.repetitions
        rows.append([*cells, str(splits)])
    head = ["data, base"]
    for system in _SYSTEMS:
        head += [f"{system} published", "ours", "difference"]
    title = "Brier loss" if loss == "Brier" else "log loss"
    return f"## Tables 1 to 4, {title}\n\n{table([*head, 'splits'], rows)}"


def _best(values: dict[str, float]) -> str:
    finite = {system: value for system, value in values.items() if math.isfinite(value)}
    return min(finite, key=finite.__getitem__) if finite else "-"


def _first(found: Found, published: Published) -> str:
    rows, alike, both = [], 0, 0
    for data, base in dict.fromkeys(key[:2] for key in published):
        cells = [f"{data}, {base}"]
        for loss in _LOSSES:
            names = {system: f"{loss} {system}" for system in _SYSTEMS}
            theirs = _best({s: published[data, base, name] for s, name in names.items()})
            keys = {s: (data, base, _RATIO, name) for s, name in names.items()}
            ours = _best({s: found.get(key, _NONE).value for s, key in keys.items()})
            cells += [theirs, ours]
            both += ours != "-"
            alike += ours == theirs
        rows.append(cells)
    head = ["data, base", "Brier: first published", "first of ours"]
    head += ["log loss: first published", "first of ours"]
    count = f"The same system is first in {alike} of the {both} cells that were run."
    return f"## Who is first\n\n{count}\n\n### Who is first, row by row\n\n{table(head, rows)}"


def _honest(found: Found) -> str:
    names = [f"{loss} {system}" for loss in _LOSSES for system in _SYSTEMS]
    rows = [
        [name, *(found.get((_HONEST, base, _RATIO, each), _NONE).shown() for each in names)]
        for base, name in _BASES.items()
    ]
    return f"### {_HONEST}\n\n{table(['base', *names], rows)}"


_RATIOS = """\
## Figures 1 to 3, the ratio of the parts

The paper draws figures of waveform, without numbers. In them CVAP is below Platt in Brier loss with
every learner; with SVM below IVAP too; with LR IVAP and CVAP are below Platt in log loss; with NN
IVAP and CVAP are below Platt, CVAP below IVAP. Ours:
"""


def _ratios(found: Found) -> str:
    parts = [_RATIOS]
    names = [f"{loss} {system}" for loss in _LOSSES for system in _SYSTEMS]
    for number, (base, words) in enumerate(_BASES.items(), 1):
        rows = []
        for ratio in sorted({key[2] for key in found if key[:2] == ("waveform", base)}):
            cells = [found[("waveform", base, ratio, name)] for name in names]
            rows.append([f"{ratio} : 1", *(cell.shown(4) for cell in cells)])
        drawn = [f"![{loss} loss against the ratio]({_file(base, loss)})\n" for loss in _LOSSES]
        head = f"### Figure {number}, {words}\n"
        parts += [head, table(["training : validation", *names], rows), *drawn]
    return "\n".join(parts)


def _file(base: str, loss: str) -> str:
    return f"{_NAME}_{base}_{loss}.svg".lower()


def _figure(found: Found, base: str, loss: str) -> str:
    curves = {
        system: [
            (float(key[2]), value.value)
            for key, value in sorted(found.items(), key=lambda item: item[0])
            if key[:2] == ("waveform", base) and key[3] == f"{loss} {system}"
        ]
        for system in _SYSTEMS
    }
    heights = [y for curve in curves.values() for _, y in curve if math.isfinite(y)] or [0.0, 1.0]
    low, high = math.floor(min(heights) * 50) / 50, math.ceil(max(heights) * 50) / 50
    name = "Brier loss" if loss == "Brier" else "log loss"
    axes = Axis("training : validation", 0.0, 10.0), Axis(name, low, max(high, low + 0.02))
    return draw(f"waveform, {_BASES[base]}", *axes, curves)

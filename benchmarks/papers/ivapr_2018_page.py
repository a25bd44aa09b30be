"""The page of Petej (2018): table 1 and ours, and its three figures.

The scale of ranks is compared with the published numbers, which fit it; units of the
label stand by themselves.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.page import table
from benchmarks.papers.figure import Axis, draw
from benchmarks.papers.manifest import HERE, records
from benchmarks.papers.paper import Page
from benchmarks.papers.report import Mean, beside, mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.papers.runner import Answer

    Answers = Mapping[str, Answer]
    Found = dict[tuple[str, str, str], Mean]  # data, regressor, system and scale

__all__ = ["page"]

_NAME = "ivapr_2018"
_NONE = mean([])
_NEAR, _FAR = 0.01, 0.03

_HEAD = """\
# Petej (2018), Inductive Venn-Abers prediction for regression

After this page you know how near abers comes to table 1 and figures 1 to 3 of the paper. `python
-m benchmarks.papers ivapr_2018` writes it. The tables have the CRPS, smaller is better; a cell of
ours is a mean over random splits, ± its standard error.

### Protocol

- 70 % of a random permutation train, the rest is the test set. A is a step at the prediction of
  the regressor, IVAPR calibrates the prediction.
- The published numbers fit no unit of the label, but the scale of ranks: the mean over the
  training labels t of (P(y < t) - 1{y < t})², with the strict sign, as in the paper's Algorithm
  2. The first table compares with that. In units of the label the CRPS needs a support: the range
  of the training labels, with the mass beyond them at its ends.
- The paper does not say where the calibration pairs come from. The column IVAPR calibrates on the
  training set's own predictions, which fits the published numbers best and has no guarantee;
  “honest” trains on two thirds of the training part and calibrates on the rest.

### Deviations

- The grids and the degree of the polynomials are not stated. Ours: degree 2, least squares; trees
  of depth 4, 8 or any, with 1 or 5 rows a leaf; forests of 50 trees with a third or all of the
  features; SVR with a Gaussian kernel on standardised features, C of 1, 10, 100 or 1000; each
  chosen by threefold cross-validation, as in the paper.
- Machine has ERP as its target and is without the vendor; Facebook is without the rows that have
  gaps, and its features include comments, likes and shares, which add up to the target; Forest
  has the burnt area itself as its target. Words are coded by indicators. The number of splits is
  not stated.
"""


def page(answers: Answers) -> Page:
    """Write the page from the results so far."""
    found = _found(answers)
    published = {
        (r["data"], r["regressor"], r["system"]): float(r["value"])
        for r in records(HERE / "published" / f"{_NAME}.tsv")
    }
    parts = [_HEAD, _table(found, published), _units(found, published)]
    parts += [_figures(answers)]
    drawn = {"1": _noiseless(answers), "1_density": _densities(answers)}
    drawn |= {"2": _coverage(answers), "3": _medians(answers)}
    return Page("\n".join(parts), {f"{_NAME}_{k}.svg": text for k, text in drawn.items()})


def _found(answers: Answers) -> Found:
    values: dict[tuple[str, str, str], list[float | None]] = {}
    for name, answer in answers.items():
        if name.split("/")[1] == "table":
            for system, each in answer.result.items():
                key = answer.spec["data"], answer.spec["regressor"], system
                values.setdefault(key, []).extend(each)
    return {key: mean(each) for key, each in values.items()}


def _table(found: Found, published: Mapping[tuple[str, str, str], float]) -> str:
    rows, better, both = [], 0, 0
    for data, regressor in dict.fromkeys(key[:2] for key in published):
        a, ivapr, honest = (
            found.get((data, regressor, f"{system} rank"), _NONE)
            for system in ("A", "IVAPR", "honest")
        )
        cells = beside(published[data, regressor, "A"], [a])
        cells += beside(published[data, regressor, "IVAPR"], [ivapr])
        rows.append([f"{data}, {regressor}", *cells, honest.shown(), a.repetitions])
        both += a.repetitions > 0
        better += ivapr.value < a.value
    head = ["data, regressor", "A published", "A ours", "difference", "IVAPR published"]
    head += ["IVAPR ours", "difference", "honest", "splits"]
    count = f"IVAPR is below A in {better} of {both} rows of ours; published: in 24 of 25."
    near = _nearness(found, published)
    return f"## Table 1, CRPS on the scale of ranks\n\n{table(head, rows)}{count} {near}\n"


def _nearness(found: Found, published: Mapping[tuple[str, str, str], float]) -> str:
    """Write how many cells are near, and which are not."""
    gaps = {
        key: abs(found[*key[:2], f"{key[2]} rank"].value - value)
        for key, value in published.items()
        if (*key[:2], f"{key[2]} rank") in found
    }
    near = sum(gap <= _NEAR for gap in gaps.values())
    far = dict.fromkeys(
        f"{data} {regressor}" for (data, regressor, _), gap in gaps.items() if gap > _FAR
    )
    return (
        f"{near} of {len(gaps)} cells are within {_NEAR} of the published number; further than"
        f" {_FAR} from it are cells of {', '.join(far)}; their regressors must differ from ours."
    )


def _units(found: Found, published: Mapping[tuple[str, str, str], float]) -> str:
    rows = [
        [f"{data}, {regressor}"]
        + [
            found.get((data, regressor, f"{system} unit"), _NONE).shown()
            for system in ("A", "IVAPR", "honest")
        ]
        for data, regressor in dict.fromkeys(key[:2] for key in published)
    ]
    head = ["data, regressor", "A", "IVAPR", "honest"]
    return f"### CRPS in units of the label\n\n{table(head, rows)}"


def _figures(answers: Answers) -> str:
    parts = ["## Figures\n"]
    parts.append(
        "### Figure 1, noiseless labels\n\n"
        "Labels that equal their scores, 1 to 100: the predictive CDFs of three scores"
        " rise where the label is, and their densities, differences of the CDF between labels,"
        " have their peaks there.\n\n"
        f"![Predictive CDFs of the scores 10, 30 and 60]({_NAME}_1.svg)\n\n"
        f"![Predictive densities of the scores 10, 30 and 60]({_NAME}_1_density.svg)\n"
    )
    rows = []
    for name, answer in answers.items():
        if "figure/2-" in name:
            for bag, runs in answer.result.items():
                shown = [mean(column).shown(2) for column in zip(*runs, strict=True)]
                rows.append([f"{answer.spec['data']}, {bag}", *shown])
    levels = [f"{level * 10} %" for level in range(1, 10)]
    parts.append(
        "### Figure 2, coverage\n\n"
        "The share of test labels in central intervals, of the merged CDF, over 100"
        " splits 2 : 1 with a linear model (the paper does not name its own); Facebook without"
        " comments, likes and shares, since a linear model of them is exact:\n\n"
        + table(["data, calibrated on the", *levels], rows)
        + f"![Coverage against the level]({_NAME}_2.svg)\n"
    )
    for name, answer in answers.items():
        if name.endswith("figure/3"):
            gaps = np.array(answer.result["median"]) - np.array(answer.result["truth"])
            parts.append(
                "### Figure 3, medians\n\n"
                "Labels from 1 to 500, scores with standard normal noise, 300 learned,"
                " 200 predicted: the predicted median, the middle of where the CDF is 1/2, less the"
                f" label has the mean {gaps.mean():+.2f} ±"
                f" {gaps.std(ddof=1) / len(gaps) ** 0.5:.2f} and the standard deviation"
                f" {gaps.std(ddof=1):.2f}; the paper says “little or no bias”.\n\n"
                f"![Predicted medians against labels]({_NAME}_3.svg)\n"
            )
    return "\n".join(parts)


def _noiseless(answers: Answers) -> str:
    axes = Axis("label", 0.0, 100.0), Axis("predictive CDF", 0.0, 1.0)
    return draw("Labels equal scores, 1 to 100", *axes, _cdfs(answers))


def _densities(answers: Answers) -> str:
    curves = {
        name: [(t, p - q) for (_, q), (t, p) in pairwise(cdf)]
        for name, cdf in _cdfs(answers).items()
    }
    axes = Axis("label", 0.0, 100.0), Axis("predictive density", 0.0, 0.5)
    return draw("Labels equal scores, 1 to 100", *axes, curves)


def _cdfs(answers: Answers) -> dict[str, list[tuple[float, float]]]:
    return {
        f"score {float(score):.0f}": [(t + 1.0, value) for t, value in enumerate(values)]
        for name, answer in answers.items()
        if name.endswith("figure/1")
        for score, values in answer.result.items()
    }


def _coverage(answers: Answers) -> str:
    curves = {
        f"{answer.spec['data']}, {bag.split()[0]}": [
            ((level + 1) / 10, float(np.mean(column)))
            for level, column in enumerate(zip(*runs, strict=True))
        ]
        for name, answer in answers.items()
        if "figure/2-" in name
        for bag, runs in answer.result.items()
    }
    axes = Axis("level of the interval", 0.0, 1.0), Axis("share of labels inside", 0.0, 1.0)
    return draw("Coverage of central intervals", *axes, curves, diagonal=True)


def _medians(answers: Answers) -> str:
    cloud: list[tuple[float, float]] = []
    for name, answer in answers.items():
        if name.endswith("figure/3"):
            cloud = [*zip(answer.result["truth"], answer.result["median"], strict=True)]
    axes = Axis("label", 0.0, 500.0), Axis("predicted median", 0.0, 500.0)
    return draw("Medians", *axes, {"test labels": cloud}, dots=True, diagonal=True)

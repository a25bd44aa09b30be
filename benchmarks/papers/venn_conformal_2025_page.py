"""The page of conformal intervals of van der Laan & Alaa: their tables and ours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.page import table
from benchmarks.papers.manifest import HERE, records
from benchmarks.papers.paper import Page
from benchmarks.papers.report import beside, mean, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.papers.runner import Answer

    Answers = Mapping[str, Answer]

__all__ = ["page"]

_NAME = "venn_conformal_2025"
_HEAD = """\
# van der Laan & Alaa (2024, 2025), conformal intervals by Venn–Abers

After this page you know what `ConformalInterval` and `SelfCalibratingInterval` cover, and how near
they come to the published figures. `python -m benchmarks.papers venn_conformal_2025` writes it.
All intervals have the level 90 %. A cell of ours is a mean, ± its standard error.

## Protocol

- **Simulations.** A score x is uniform, the prediction 10 x, and the label normal around it with
  the standard deviation 0.5 + 2.5 x, which is the difficulty. Each run draws a bag of n labels and
  a query in each third of x, so the runs are independent.
- **Data.** Half of the rows of a random split train, 30 % calibrate, and 20 % are the test set.
  Quantile Venn–Abers (arXiv 2502.05676): a model of the median, and one of the 90 % quantile of its
  absolute errors, which is the difficulty. Width is the median over test rows. The conditional
  error is the mean, over the values of the calibrated difficulty in the test set, of how far the
  coverage is below 90 %. Self-calibrating (arXiv 2402.07307): labels are log(1 + label). A is
  working day (bike) and age at or above its median (concrete).
- Published: the outputs stored in the authors' repositories, VennCalibration (100 splits) and
  SelfCalibratingConformal (one split).

## Deviations

- Models are gradient boosting of scikit-learn in place of XGBoost, with the stated depth, rate,
  leaves and early stopping. CQR with LightGBM, Mondrian bins and the kernel are left out.
- bike is the Kaggle set in the papers; here it is made of the days up to the 19th of each month of
  the UCI set, the same 10,886 hours.
- SC-CP of the paper bins scores by a tree with 30 rows or more in a leaf and searches a grid of
  labels, so its ends are finite; ours is the isotonic mean itself with exact ends, infinite where
  few labels share a mean. Its widths are means and ours medians.
- bio, star, meps_21 and community of the papers are not among the data sets here.
"""


def page(answers: Answers) -> Page:
    """Write the page from the results so far."""
    published: dict[tuple[str, str], list[float]] = {
        (r["data"], r["method"]): [float(r[key]) for key in ("a", "b", "c", "d") if r[key]]
        for r in records(HERE / "published" / f"{_NAME}.tsv")
    }
    found: dict[tuple[str, str], list[list[float]]] = {}
    for name, answer in answers.items():
        if name.split("/")[2] == "split":
            for method, rows in answer.result.items():
                found.setdefault((answer.spec["data"], method), []).extend(rows)
    parts = [_HEAD, _simulations(answers), _quantile(found, published)]
    return Page("\n".join([*parts, _self_calibrated(found, published)]), {})


def _simulations(answers: Answers) -> str:
    rows = []
    for name, answer in answers.items():
        if name.split("/")[1] == "simulation":
            runs = answer.spec["runs"]
            for method, each in answer.result.items():
                shares = [f"{p:.3f} ± {math.sqrt(p * (1 - p) / runs):.3f}" for p in each["covered"]]
                width = math.inf if each["widths"] is None else each["widths"]
                rows.append([f"{answer.spec['n']}, {method}", *shares, number(width, 2)])
    head = ["labels, method", "lowest third", "middle", "highest", "median width"]
    return (
        f"## Simulations, coverage by thirds of the score\n\n{table(head, rows)}"
        "Split conformal covers 90 % of all queries, too many where errors are small and too few"
        " where they are large.\n"
    )


Found = dict[tuple[str, str], list[list[float]]]


def _quantile(found: Found, published: Mapping[tuple[str, str], list[float]]) -> str:
    rows = []
    for (data, method), theirs in published.items():
        if len(theirs) == 3:  # noqa: PLR2004 - coverage, width and error
            ours = [mean(column) for column in zip(*found.get((data, method), []), strict=True)]
            ours = ours or [mean([])] * 3
            cells = [
                beside(value, [each], digits)[:2]
                for value, each, digits in zip(theirs, ours, (3, 2, 3), strict=True)
            ]
            rows.append([f"{data}, {method}", *(c for pair in cells for c in pair)])
            rows[-1].append(f"{ours[0].repetitions}")
    head = ["data, method", "coverage published", "ours", "width published", "ours"]
    head += ["conditional error published", "ours", "splits"]
    return f"## Quantile Venn–Abers\n\n{table(head, rows)}"


def _self_calibrated(found: Found, published: Mapping[tuple[str, str], list[float]]) -> str:
    rows = []
    for (data, method), theirs in published.items():
        if len(theirs) == 4:  # noqa: PLR2004 - coverage and width, for both values of A
            ours = [mean(column) for column in zip(*found.get((data, method), []), strict=True)]
            ours = ours or [mean([])] * 5
            cells = [beside(value, [each])[:2] for value, each in zip(theirs, ours, strict=False)]
            rows.append([f"{data}, {method}", *(c for pair in cells for c in pair)])
            rows[-1] += [ours[-1].shown(), f"{ours[0].repetitions}"]
    head = ["data, method", "coverage A = 0 published", "ours", "coverage A = 1 published", "ours"]
    head += [
        "width A = 0 published",
        "ours",
        "width A = 1 published",
        "ours",
        "without an end",
        "splits",
    ]
    return (
        f"## Self-calibrating intervals\n\n{table(head, rows)}"
        "*Without an end* is the share of our intervals with an infinite end.\n"
    )

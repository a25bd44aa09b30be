"""The page of Allen et al. (2025): coverage in thirds of the score, widths and thickness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.page import table
from benchmarks.papers.paper import Page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.papers.runner import Answer

    Answers = Mapping[str, Answer]

__all__ = ["page"]

_METHODS = {"band": "band", "merged": "merged CDF", "split": "split conformal"}

_HEAD = """\
# Allen et al. (2025), In-sample calibration yields conformal calibration guarantees

After this page you know what intervals of 90 % from the band of `IVAPR` cover, and what that
costs. `python -m benchmarks.papers conformal_idr_2025` writes it. Allen, Gavrilopoulos, Henzi,
Kleger and Ziegel fit isotonic distributional regression with the query's label at both
infinities; that is the band. Its theorem: the interval of the band covers with a probability of
at least 90 % at every number of labels, see [Regression](../regression.md#what-is-guaranteed).

## Protocol

- The score s is uniform on [0, 10]. *noise*: the label is s plus a normal error with the
  deviation 0.5 + s/5. The others are the designs of the paper's simulations (arXiv 2503.03841,
  `sim_study.R` of the R package ConformalIDR). *isotonic*: gamma with the shape √s and a scale of
  s, clipped to 1 and 6; *antitonic*: the same of 10 − s, so the score is upside down; *less
  isotonic*: normal around 2s + 5 sin s with the deviation s/5.
- Each data set has n labels and 10 queries in each third of the scores; ± is a standard error
  over data sets. band is `interval(0.9, band=True)`, merged CDF is `interval(0.9)`, and split
  conformal has a radius around the score, an order statistic of the n errors.
- Infinite intervals count as covering. Widths are means over the queries where all intervals are
  finite; thickness is the mean of the largest distance between the two CDFs.
- The script of the paper draws its results as figures; no number of them is compared with ours.
"""


def page(answers: Answers) -> Page:
    """Write the page from the results so far."""
    parts = [_HEAD, "## Coverage of 90 % intervals\n", _covered(answers), _said(answers)]
    parts += ["## Width and thickness\n", _widths(answers)]
    return Page("\n".join(parts), {})


def _cell(values: Sequence[float]) -> str:
    value, error = values
    return f"{value:.3f} ± {error:.3f}"


def _covered(answers: Answers) -> str:
    rows = [
        [
            f"{answer.spec['design']}, n = {answer.spec['n']:,}",
            shown,
            *map(_cell, answer.result[f"{name} covered"]),
        ]
        for answer in answers.values()
        for name, shown in _METHODS.items()
        if f"{name} covered" in answer.result
    ]
    head = ["labels", "interval", "lowest scores", "middle scores", "highest scores", "all"]
    return table(head, rows)


def _said(answers: Answers) -> str:
    """Write in how many rows each kind of interval falls short of its level."""
    short = {name: [0, 0] for name in ("band", "merged")}
    for answer in answers.values():
        for name, counts in short.items():
            value, error = answer.result[f"{name} covered"][-1]
            counts[0] += value < 0.9 - 2.0 * error
            counts[1] += 1
    words = " ".join(
        f"Of the {_METHODS[name]} the coverage over all scores is below 90 % by more than two"
        f" standard errors in {below} of {of} rows."
        for name, (below, of) in short.items()
    )
    return f"{words} The theorem is on all scores together; within a third it promises nothing.\n"


def _widths(answers: Answers) -> str:
    rows = []
    for answer in answers.values():
        found = answer.result
        band, merged, *split = found["widths"]
        rows.append(
            [
                f"{answer.spec['design']}, n = {answer.spec['n']:,}",
                f"{100.0 * (1.0 - found['limited']):.1f}",
                f"{band:.2f}",
                f"{merged:.2f}",
                f"{split[0]:.2f}" if split else "-",
                _cell(found["thickness"]),
            ]
        )
    head = ["labels", "band without a limit, %", "band", "merged CDF", "split conformal"]
    return table([*head, "thickness"], rows)

"""The parts of the page of the streams about protected probabilities of several classes.

Every sentence is counted from the answers that are there.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from benchmarks.page import table
from benchmarks.papers.streams_cases import (
    RAW,
    Case,
    columns,
    compared,
    kept,
    most_lost,
    outside,
    results,
)
from benchmarks.papers.streams_steps import LAWS, MOST
from benchmarks.papers.streams_worst import WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Answers = Mapping[tuple[str, str], Mapping[str, Any]]  # by data and law

__all__ = ["PROTOCOL", "cases", "sentences", "tables"]

PROTOCOL = f"""\
- **Protected probabilities of several classes.** Labels come by the laws above. By label, the
  second, fourth and sixth insect in alphabetical order, and the odd digits, have the delays of
  label 1; all other classes come after {MOST:,}. MNIST has its first 50,000 rows. raw is the
  scorer's probabilities, clipped and divided by their sum; p is `ProtectedMultiClass` of them.
  Rivals learn each label when it comes. IVAP is that of the several classes, with the log odds of
  each class, of all labels or of the last 1,000; all others have the probabilities. shrunk, OPS and
  isotonic regression are as above, for each class against the rest, then divided by the sum.
  temperature is one power of all probabilities, which learns by the steps and constants of OPS. ECE
  is of the class with the largest probability. Differences are in 10⁻⁴. *Worst {WINDOW}* is the
  largest mean loss above raw over {WINDOW} labels in sequence, in nats. Outside is the share of the
  probabilities of single classes that lie outside the interval of the class, which is that before
  the division.
"""
_SCORES = "Brier score", "ECE"
_THAT = "that of "


def cases(answers: Answers) -> list[Case]:
    """Order answers by law."""
    found: dict[str, dict[str, Any]] = {law: {} for law in LAWS}
    for (data, law), cell in answers.items():
        found[law][data] = cell
    return [Case("", law, of) for law, of in found.items() if of]


def sentences(found: list[Case]) -> Iterator[str]:
    """Yield where p wins and where it loses."""
    if not found:
        return
    yield from compared(found)
    yield most_lost(found)
    for score in _SCORES:
        other = compared([case._replace(loss=score) for case in found], f"The {score} of p", _THAT)
        yield from islice(other, 2)
    yield kept(found)
    yield outside(found, "the probabilities of a class")


def tables(found: list[Case]) -> Iterator[str]:
    """Yield a table of p and the best others, and for each law one of all methods."""
    if not found:
        return
    yield "## Protected classes\n"
    rows = [
        [f"{data}, {case.title}", *results(case, data), f"{case.of[data]['outside']:.2f}"]
        for case in found
        for data in case.of
    ]
    yield "### Protected classes, by stream\n"
    yield table(["", *columns(RAW), "outside"], rows)
    for case in found:
        yield f"### Protected classes, {case.title}\n"
        worst = [f"worst {WINDOW}, {data}" for data in case.of]
        head = ["log loss", *case.of, "mean", *worst, *_SCORES]
        yield table(head, [_method(case, name) for name in sorted(case.names, key=case.mean)])


def _method(case: Case, name: str) -> list[str]:
    """Write the scores of a method."""
    losses = [case.score(data, name) for data in case.of]
    worst = [case.worst(data, name) for data in case.of]
    means = [case.mean(name, score) for score in _SCORES]
    cells = [f"{one:.4f}" for one in (*losses, case.mean(name))]
    cells += [f"{one:+.4f}" if one else "0" for one in worst]
    return [name, *cells, *(f"{one:.4f}" for one in means)]

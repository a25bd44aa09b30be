"""The parts of the page of the streams about protected probabilities of several classes.

Every sentence is counted from the answers that are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.page import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Cases = Mapping[tuple[str, int], Mapping[str, Any]]  # by data and delay: answers

__all__ = ["PROTOCOL", "methods", "sentences", "tables"]

PROTOCOL = """\
- **Protected probabilities of several classes.** With labels 0, 100 and 1,000 late. raw is the
  scorer's probabilities, clipped and divided by their sum; IVAP is that of the several classes;
  shrunk is `OneVsRest` of the scorer's probabilities with a half-life of 3,000 predictions, each
  class drawn to raw where its interval is wide, then divided by the sum; protected is
  `ProtectedMultiClass`. ECE is of the class with the largest probability. Outside is the share of
  the probabilities of single classes that lie outside the interval of the class, which is that
  before the division.
"""
_LOG, _BRIER, _ECE = "log", "Brier", "ECE"


def methods(cases: Cases) -> dict[tuple[str, int], Mapping[str, Any]]:
    """Return the scores of each method, by data and delay."""
    return {key: case["methods"] for key, case in cases.items()}


def sentences(cases: Cases, outside: str) -> Iterator[str]:
    """Yield what follows: protected and shrunk against raw and IVAP; and what is outside what."""
    if not cases:
        return
    for name in ("protected", "shrunk"):
        above = _above(cases, name, "raw", _LOG)
        below, better = _below(above), _below(_above(cases, name, "IVAP", _LOG))
        yield (
            f"The log loss of {name} is below that of raw in {below} of {len(cases)} cases"
            f"{_most(above)}; it is below that of IVAP in {better}."
        )
        brier = _above(cases, name, "raw", _BRIER)
        yield f"The Brier score of {name} is below that of raw in {_below(brier)}{_most(brier)}."
    regrets = [case["methods"]["protected"][_LOG] - _best(case)[1] for case in cases.values()]
    yield (
        f"The log loss of protected is below that of the best single method in {_below(regrets)} "
        f"of {len(cases)} cases{_most(regrets)}."
    )
    yield from _errors(cases)
    shares = [case["outside"] for case in cases.values()]
    yield f"Between {100 * min(shares):.0f} % and {100 * max(shares):.0f} % of {outside}."
    above = _above(cases, "protected", "raw", _LOG)
    kept = sum(one <= case["price"] for one, case in zip(above, cases.values(), strict=True))
    yield (
        f"The log loss of protected exceeds that of raw by at most the price in {kept} of "
        f"{len(cases)} cases."
    )


def _errors(cases: Cases) -> Iterator[str]:
    """Yield the mean ECE at each delay."""
    for delay in sorted({delay for _, delay in cases}):
        at = [case["methods"] for (_, late), case in cases.items() if late == delay]
        means = {name: sum(one[name][_ECE] for one in at) / len(at) for name in at[0]}
        listed = ", ".join(f"{name} {mean:.4f}" for name, mean in means.items())
        when = f"with labels {delay:,} late" if delay else "with labels at once"
        yield f"Mean ECE {when}: {listed}."


def _above(cases: Cases, one: str, other: str, score: str) -> list[float]:
    rows = methods(cases).values()
    return [row[one][score] - row[other][score] for row in rows]


def _below(differences: list[float]) -> int:
    return sum(one < 0.0 for one in differences)


def _most(differences: list[float]) -> str:
    """Write how far the worst case is above, if one is."""
    worst = max(differences)
    return f", and at most {worst:.4f} above it in the others" if worst > 0.0 else ""


def _best(case: Mapping[str, Any]) -> tuple[str, float]:
    """Return the name and the log loss of the best method."""
    name = min(case["experts"], key=case["experts"].__getitem__)
    return name, case["experts"][name]


def tables(cases: Cases) -> Iterator[str]:
    """Yield two tables for each delay: log losses with regrets, and the other scores."""
    for delay in sorted({delay for _, delay in cases}):
        at = {data: case for (data, late), case in cases.items() if late == delay}
        names = [*next(iter(at.values()))["methods"]]
        yield f"### Protected classes, delay {delay:,}\n"
        head = ["log loss", *names, "regret to raw", "best method", "regret to it", "price"]
        yield table(head, [_losses(data, case) for data, case in at.items()])
        scores = [f"{score}, {name}" for score in (_BRIER, _ECE) for name in names]
        yield table(["", *scores, "outside"], [_scores(data, case) for data, case in at.items()])


def _losses(data: str, case: Mapping[str, Any]) -> list[str]:
    of = {name: row[_LOG] for name, row in case["methods"].items()}
    expert, least = _best(case)
    regrets = f"{of['protected'] - of['raw']:+.4f}", expert, f"{of['protected'] - least:+.4f}"
    return [data, *(f"{one:.4f}" for one in of.values()), *regrets, f"{case['price']:.4f}"]


def _scores(data: str, case: Mapping[str, Any]) -> list[str]:
    rows = case["methods"].values()
    cells = [f"{row[score]:.4f}" for score in (_BRIER, _ECE) for row in rows]
    return [data, *cells, f"{case['outside']:.2f}"]

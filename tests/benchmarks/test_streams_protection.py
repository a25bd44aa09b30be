"""What the kept answers of the streams promise of protected predictions, and what the page says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.papers import runner
from benchmarks.papers import streams_protected_numbers_page as numbers_page
from benchmarks.papers import streams_protection_page as page
from benchmarks.papers.streams import PAPER

EVIDENCE = Path(__file__).resolve().parents[2] / "docs" / "evidence"
FILE = EVIDENCE / "answers" / "streams.jsonl"
STREAMS = "Elec2", "Bike sharing", "Insects", "Phishing", "Banana", "MNIST"
NUMBERS = "Bike sharing", "Trump approval", "Chick weights"
Cases = dict[tuple[str, int], dict[str, Any]]


def kept(kind: str) -> Cases:
    """Read the kept answers of a kind, by data and delay."""
    text = FILE.read_text(encoding="utf-8")
    lines = [line for line in map(json.loads, text.splitlines()) if "task" in line]
    found = {}
    for line in lines:
        _, its, data, delay = line["task"].split("/")
        if its == kind:
            found[data, int(delay)] = line["result"]
    return found


def above(cases: Cases, score: str, other: str) -> list[float]:
    """Return how far protected is above another method, in each case."""
    rows = [case["methods"] for case in cases.values()]
    return [row["protected"][score] - row[other][score] for row in rows]


def test_two_classes() -> None:
    """Protected is hardly ever above raw, mostly below it and IVAP, and as well calibrated."""
    cases = kept("protection")
    assert {*cases} == {(data, late) for data in STREAMS for late in (0, 100, 1_000, 10_000)}
    near = {key: case for key, case in cases.items() if key[1] <= 1_000}
    assert max(above(near, "log", "raw")) <= 0.002
    assert sum(one < 0 for one in above(near, "log", "raw")) >= 15
    assert sum(one < 0 for one in above(near, "log", "IVAP")) >= 15
    assert max(above(near, "Brier", "raw")) <= 0.001
    for delay in (0, 100, 1_000):
        at = {key: case for key, case in near.items() if key[1] == delay}
        assert sum(above(at, "ECE", "raw")) <= 0


def test_several_classes() -> None:
    """Protected has a smaller log loss than raw and IVAP in each case, and a smaller mean ECE."""
    cases = kept("protected classes")
    assert {*cases} == {(data, late) for data in ("Insects", "MNIST") for late in (0, 100, 1_000)}
    assert max(above(cases, "log", "raw")) < 0
    assert max(above(cases, "log", "IVAP")) < 0
    assert sum(above(cases, "ECE", "raw")) < 0


@pytest.mark.parametrize("kind", ["protection", "protected classes"])
def test_the_promise(kind: str) -> None:
    """No loss is above that of raw by more than the price; shrunk is the expert of its name."""
    for case in kept(kind).values():
        methods, experts = case["methods"], case["experts"]
        assert methods["protected"]["log"] <= methods["raw"]["log"] + case["price"]
        assert experts["raw"] == pytest.approx(methods["raw"]["log"], rel=1e-5)
        assert experts["half_life_3000"] == pytest.approx(methods["shrunk"]["log"], rel=1e-5)


def test_numbers() -> None:
    """The CRPS is below those of base and IVAPR, and tracked intervals are within their bound."""
    cases = kept("protected numbers")
    assert {data for data, _ in cases} == {*NUMBERS}
    assert len(cases) == 9
    for case in cases.values():
        crps = case["CRPS"]
        assert crps["protected"] < min(crps["base"], crps["IVAPR"])
        assert case["experts"]["base"] == pytest.approx(crps["base"], rel=5e-4)
        assert crps["protected"] <= case["experts"]["base"] + case["price"]
        assert abs(case["coverage"]["tracked"]["share"] - 0.8) <= case["bound"]


def test_the_page_is_of_the_kept_answers() -> None:
    """Every sentence and table of the page is that of the kept answers."""
    answers = runner.kept(FILE, PAPER.tasks(quick=False))
    text = (EVIDENCE / "streams.md").read_text(encoding="utf-8")
    assert text.startswith(PAPER.page(answers).markdown)


def case(protected: float, **other: float) -> dict[str, Any]:
    """Return an answer whose methods have one score each, for all three scores."""
    losses = {"raw": 0.5, "IVAP": 0.6, "shrunk": 0.55, "protected": protected}
    methods = {name: dict.fromkeys(("log", "Brier", "ECE"), loss) for name, loss in losses.items()}
    return {"methods": methods, "experts": {"raw": 0.5}, "price": 0.01, "outside": 0.25, **other}


def test_sentences_count_cases() -> None:
    """Cases are counted below and above raw; those with later labels, and the promise, apart."""
    cases = {("A", 0): case(0.4), ("B", 0): case(0.505), ("A", 10_000): case(0.52)}
    found = [*page.sentences(cases, "somewhere")]
    assert found[0] == (
        "The log loss of protected is below that of raw in 1 of 2 cases, and at most 0.0050 above "
        "it in the others; it is below that of IVAP in 2."
    )
    assert "Between 25 % and 25 % of somewhere." in found
    assert "10,000 late, the log loss of protected is below that of raw in 0 of 1" in found[-2]
    assert "by at most the price in 2 of 3 cases" in found[-1]
    assert not [*page.sentences({}, "")]


def numbered(protected: float, share: float, worst: float, labels: int) -> dict[str, Any]:
    """Return an answer of numbers; intervals of protected cover .7, and .5 at worst."""
    given = {"share": 0.7, "worst": 0.5, "width": 2.0}
    tracked = {"share": share, "worst": worst, "width": 3.0}
    return {
        "labels": labels,
        "CRPS": {"base": 2.0, "IVAPR": 3.0, "shrunk": 1.9, "protected": protected},
        "experts": {"base": 2.0, "ivapr": 1.8},
        "price": 0.5,
        "coverage": {"protected": given, "tracked": tracked},
        "bound": 0.06,
    }


def test_sentences_of_numbers_count_cases() -> None:
    """CRPS are compared as shares, and the worst 500 only where there are more labels."""
    cases = {("A", 0): numbered(1.5, 0.85, 0.4, 501), ("B", 0): numbered(2.02, 0.72, 0.9, 400)}
    found = [*numbers_page.sentences(cases)]
    assert found[0] == (
        "The CRPS of protected is below that of base in 1 of 2 cases, and at most 1 % above it in "
        "the others; it is below that of IVAPR in 2."
    )
    assert "best single expert in 1 of 2 cases, and at most 12 % above" in found[2]
    assert "by at most the price in 2 of 2" in found[3]
    assert "within its bound in 1 of 2 cases. It is between 0.720 and 0.850" in found[4]
    assert found[4].endswith("nearer to 80 % than that of protected in 2.")
    assert "more than those of protected in 0 of 1 cases; the least share is 0.400" in found[5]
    assert found[6] == "Tracked intervals are 1.50 to 1.50 times as wide as those of protected."
    assert not [*numbers_page.sentences({})]

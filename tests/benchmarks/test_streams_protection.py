"""What the kept answers of the streams promise of protected predictions, and what the page says."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from benchmarks.papers import runner
from benchmarks.papers import streams_protected_classes_page as classes_page
from benchmarks.papers import streams_protected_numbers_page as numbers_page
from benchmarks.papers import streams_protection_page as page
from benchmarks.papers.streams import PAPER, SCORERS
from benchmarks.papers.streams_rivals import WINDOWS, window_name
from benchmarks.papers.streams_steps import LAWS

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


def two_classes() -> list[page.Case]:
    """Read the kept answers of two classes, by scorer and law of delays."""
    found = {}
    for name, answer in runner.kept(FILE, PAPER.tasks(quick=False)).items():
        _, kind, data, scorer = name.split("/")
        if kind == "protection":
            found[data, scorer] = answer.result
    return page.cases(found)


def test_two_classes() -> None:
    """Protected is on average below all rivals, nowhere far above raw, and better calibrated."""
    cases = two_classes()
    assert [(one.scorer, one.law) for one in cases] == [*product(SCORERS, LAWS)]
    assert all({*one.of} == {*STREAMS} for one in cases)
    near = [one for one in cases if one.law != "10,000 late"]
    raw = [gap for one in near for gap in one.below(lambda _: "raw").values()]
    assert max(raw) <= 0.0075
    assert sum(gap < 0 for gap in raw) >= 57
    assert len(raw) == 60
    for one in near:
        assert one.mean("protected") < one.mean(one.fixed())
        assert one.mean("protected", "error") < one.mean("raw", "error")


def test_several_classes() -> None:
    """Protected has a smaller log loss than raw and IVAP in each case, and a smaller mean ECE."""
    cases = kept("protected classes")
    assert {*cases} == {(data, late) for data in ("Insects", "MNIST") for late in (0, 100, 1_000)}
    assert max(above(cases, "log", "raw")) < 0
    assert max(above(cases, "log", "IVAP")) < 0
    assert sum(above(cases, "ECE", "raw")) < 0


def test_the_promise() -> None:
    """No loss is above that of raw by more than the price, and raw is the method of its name."""
    cells = [cell for one in two_classes() for cell in one.of.values()]
    for case in (*cells, *kept("protected classes").values()):
        methods, experts = case["methods"], case["experts"]
        assert methods["protected"]["log"] <= methods["raw"]["log"] + case["price"]
        assert experts["raw"] == pytest.approx(methods["raw"]["log"], rel=1e-5)


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
    """Return an answer of several classes whose methods have the same number for each score."""
    losses = {"raw": 0.5, "IVAP": 0.6, "shrunk": 0.55, "protected": protected}
    methods = {name: dict.fromkeys(("log", "Brier", "ECE"), loss) for name, loss in losses.items()}
    return {"methods": methods, "experts": {"raw": 0.5}, "price": 0.01, "outside": 0.25, **other}


def test_sentences_count_cases() -> None:
    """Cases are counted below and above raw, and by whether the promise is kept."""
    cases = {("A", 0): case(0.4), ("B", 0): case(0.505), ("A", 1_000): case(0.52)}
    found = [*classes_page.sentences(cases, "somewhere")]
    assert found[0] == (
        "The log loss of protected is below that of raw in 1 of 3 cases, and at most 0.0200 above "
        "it in the others; it is below that of IVAP in 3."
    )
    assert "Between 25 % and 25 % of somewhere." in found
    assert "by at most the price in 2 of 3 cases" in found[-1]
    assert not [*classes_page.sentences({}, "")]


def cell(protected: float, **others: float) -> dict[str, Any]:
    """Return an answer of two classes; raw has a log loss of .5, windows of IVAP one of .6."""
    losses = {"protected": protected, "raw": 0.5, **others}
    losses |= {window_name(labels): 0.6 for labels in WINDOWS}
    methods = {name: {"log": loss, "Brier": 0.1, "error": 0.01} for name, loss in losses.items()}
    return {"methods": methods, "experts": {"raw": 0.5}, "price": 0.01, "outside": 0.25}


def test_what_is_chosen_afterwards() -> None:
    """The best fixed rival is that of all streams, the best here that of one, and each is named."""
    answers = {
        ("A", "online"): {"at once": cell(0.4, OPS=0.41, TOPS=0.55)},
        ("B", "online"): {"at once": cell(0.505, OPS=0.51, TOPS=0.45)},
    }
    (found,) = page.cases(answers)
    assert (found.fixed(), found.best("A"), found.best("B")) == ("OPS", "OPS", "TOPS")
    assert found.rank() == 1
    lines = [*page.sentences([found])]
    assert lines[0] == "p is below raw in 1 of 2 cells, not in B online, at once (+50)."
    assert lines[1] == "p is below the best fixed rival in 2 of 2 cells."
    assert lines[2].endswith("in 1 of 2 cells.")
    assert lines[5] == "p exceeds raw by at most the price in 2 of 2 cells."
    _, losses, scores = page.tables([found])
    assert losses.splitlines()[-2].endswith("| raw; TOPS |")
    assert "| B | 0.5000 | 0.5050 | +50 | 0.0100 | OPS | -50 | TOPS | +550 | raw | +50 |" in losses
    assert "| IVAP, best window | 0.6000 | 0.6000 | 0.6000 | 0.1000 | 0.0100 |" in scores
    row = page.summary([found]).splitlines()[2]
    assert row.startswith("| online, at once | -475 | +50 | 1 of 2 | OPS | -75 | -50 | 2 of 2 |")
    assert not [*page.sentences([])]


def numbered(protected: float, share: float, worst: float, labels: int) -> dict[str, Any]:
    """Return an answer of numbers; intervals of protected cover .7, and .5 at worst."""
    given = {"share": 0.7, "worst": 0.5, "width": 2.0}
    tracked = {"share": share, "worst": worst, "width": 3.0}
    return {
        "labels": labels,
        "CRPS": {"base": 2.0, "IVAPR": 3.0, "protected": protected},
        "points": {"base": 2.0, "gaussian": 2.2, "protected": protected},
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
    assert found[1] == (
        "Of points, the CRPS of protected is below that of base in 1 of 2 cases, and at most 1 % "
        "above it in the others; the mean of all is -12.0 %."
    )
    assert "best single method in 1 of 2 cases, and at most 12 % above" in found[2]
    assert "by at most the price in 2 of 2" in found[3]
    assert "within its bound in 1 of 2 cases. It is between 0.720 and 0.850" in found[4]
    assert found[4].endswith("nearer to 80 % than that of protected in 2.")
    assert "more than those of protected in 0 of 1 cases; the least share is 0.400" in found[5]
    assert found[6] == "Tracked intervals are 1.50 to 1.50 times as wide as those of protected."
    assert not [*numbers_page.sentences({})]

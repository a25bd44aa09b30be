"""What the kept answers of the streams promise of protected predictions, and what the page says."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.papers import runner
from benchmarks.papers import streams_protected_classes_page as classes_page
from benchmarks.papers import streams_protected_numbers_page as numbers_page
from benchmarks.papers import streams_protection_page as page
from benchmarks.papers.report import foldings
from benchmarks.papers.streams import NUMBERS, PAPER, SCORERS, SEVERAL
from benchmarks.papers.streams_cases import counts
from benchmarks.papers.streams_rivals import WINDOWS, window_name
from benchmarks.papers.streams_steps import LAWS, LAWS_OF_NUMBERS

if TYPE_CHECKING:
    from benchmarks.papers.streams_cases import Case

EVIDENCE = Path(__file__).resolve().parents[2] / "docs" / "evidence"
FILE = EVIDENCE / "answers" / "streams.jsonl"
STREAMS = "Elec2", "Bike sharing", "Insects", "Phishing", "Banana", "MNIST"
Cases = dict[tuple[str, str], dict[str, Any]]


def kept(kind: str, second: str = "law") -> Cases:
    """Read the kept answers of a kind, by data and another part of their specifications."""
    answers = runner.kept(FILE, PAPER.tasks(quick=False))
    return {
        (answer.spec["data"], answer.spec[second]): answer.result
        for name, answer in answers.items()
        if name.split("/")[1] == kind
    }


def two_classes() -> list[Case]:
    """Read the kept answers of two classes, by scorer and law of delays."""
    return page.cases(kept("protection", "scorer"))


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
    """Protected has a smaller log loss than raw in each case, and on average than all rivals."""
    cases = classes_page.cases(kept("protected classes"))
    assert [(one.law, *one.of) for one in cases] == [(law, *SEVERAL) for law in LAWS]
    raw = [gap for one in cases for gap in one.below(lambda _: "raw").values()]
    assert max(raw) < 0
    for one in cases:
        if one.law != "10,000 late":
            assert one.mean("protected") < one.mean(one.fixed())
            assert one.mean("protected", "ECE") < one.mean("raw", "ECE")


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
    assert {*cases} == {*product(NUMBERS, LAWS_OF_NUMBERS)}
    for case in cases.values():
        methods, base = case["methods"], case["experts"]["base"]
        crps = {name: methods[name]["CRPS"] for name in ("protected", "base", "IVAPR")}
        assert crps["protected"] < min(crps["base"], crps["IVAPR"])
        assert base == pytest.approx(crps["base"], rel=1e-3)
        assert crps["protected"] <= base + case["price"]
        assert abs(methods["tracked"]["share"] - 0.8) <= case["bound"]


def test_the_page_is_of_the_kept_answers() -> None:
    """Every sentence and table of the page is that of the kept answers."""
    answers = runner.kept(FILE, PAPER.tasks(quick=False))
    text = (EVIDENCE / "streams.md").read_text(encoding="utf-8")
    assert text.startswith(foldings(PAPER.page(answers).markdown))


def case(protected: float, worst: float) -> dict[str, Any]:
    """Return an answer of several classes whose methods have the same number for each score."""
    losses = {"raw": 0.5, "IVAP": 0.6, "OPS": 0.51, "protected": protected}
    scores = ("log", "Brier score", "ECE")
    methods = {name: dict.fromkeys(scores, loss) for name, loss in losses.items()}
    excess = {"raw": 0.0, "IVAP": 0.1, "OPS": 0.2, "protected": worst}
    methods = {name: {**row, "worst": excess[name]} for name, row in methods.items()}
    return {"methods": methods, "experts": {"raw": 0.5}, "price": 0.01, "outside": 0.25}


def test_sentences_count_cells() -> None:
    """Cells are counted below and above raw, and by whether the promise is kept."""
    answers = {
        ("A", "at once"): case(0.4, 0.15),
        ("B", "at once"): case(0.505, 0.02),
        ("A", "by label"): case(0.52, 0.25),
    }
    found = classes_page.cases(answers)
    lines = [*classes_page.sentences(found)]
    assert lines[0] == "p is below raw in 1 of 3 cells, not in B at once (+50), A by label (+200)."
    assert lines[1].startswith("p is below the best fixed rival in 1 of 3 cells, not in B at once")
    assert lines[3] == (
        "Over the worst 500 labels in sequence p loses less to raw than the best fixed rival in 0 "
        "of 3 cells; p loses at most 0.250 nats (A by label), and the best fixed rivals 0.000 nats."
    )
    assert lines[4] == (
        "The Brier score of p is below that of raw in 1 of 3 cells, not in B at once (+50), A by "
        "label (+200)."
    )
    assert lines[8] == "p exceeds raw by at most the price in 2 of 3 cells."
    assert "In a cell, 25 % to 25 % of the probabilities of a class" in lines[9]
    assert not [*classes_page.sentences([])]
    assert counts("A and B", found) == ["A and B", "1 of 3", "1 of 3", "1 of 3", "2 of 3"]
    _, _, first, _, second, _, _ = classes_page.tables(found)
    assert "| B, at once | 0.5000 | 0.5050 | +50 | 0.0100 | raw | +50 | raw | +50 |" in first
    assert first.strip().splitlines()[-1].endswith("| raw; OPS | 0.25 |")
    wanted = "| protected | 0.4000 | 0.5050 | 0.4525 | +0.1500 | +0.0200 | 0.4525 | 0.4525 |"
    assert wanted in second


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


def numbered(protected: float, share: float, least: float, labels: int) -> dict[str, Any]:
    """Return an answer of numbers; intervals of protected cover .7, and .5 at worst."""
    given = {"share": 0.7, "least": 0.5, "width": 2.0, "score": 0.9}
    tracked = {"share": share, "least": least, "width": 3.0, "score": 0.8}
    crps = {"base": (2.0, 0.0), "IVAPR": (3.0, 0.5), "protected": (protected, 0.1)}
    rows = {name: {**given, "CRPS": each, "worst": most} for name, (each, most) in crps.items()}
    rows["base"]["score"] = 1.0
    return {
        "labels": labels,
        "methods": {**rows, "tracked": tracked, "ACI": {**tracked, "score": 0.85}},
        "points": {"base": 2.0, "gaussian": 2.2, "protected": protected},
        "experts": {"base": 2.0, "ivapr": 1.8},
        "price": 0.01,
        "bound": 0.06,
    }


def test_sentences_of_numbers_count_cells() -> None:
    """CRPS are compared as shares of the base, intervals by their scores with their own rivals."""
    answers = {
        ("A", "at once"): numbered(1.5, 0.85, 0.4, 501),
        ("B", "at once"): numbered(2.02, 0.72, 0.9, 400),
    }
    found = numbers_page.cases(answers)
    assert (found[0].fixed(), found[0].rank()) == ("base", 1)
    lines = [*numbers_page.sentences(found)]
    assert lines[0] == (
        "The CRPS of p is below that of base in 1 of 2 cells, not in B at once (+1.0)."
    )
    assert lines[3].endswith("p loses at most 5.0 % (A at once), and the best fixed rivals 0.0 %.")
    assert lines[4].endswith("below that of base in 1 of 2 cells; the mean of all is -12.0 %.")
    assert lines[5] == "The CRPS of p exceeds that of base by at most the price in 1 of 2 cells."
    assert lines[6] == "The interval score of p is below that of base in 2 of 2 cells."
    assert lines[7].endswith("in 0 of 2 cells, not in A at once (+5.0), B at once (+5.0).")
    assert lines[10] == (
        "The interval score of tracked is below that of the best fixed rival in 2 of 2 cells."
    )
    assert lines[12] == "That of tracked is below that of p in 2 of 2 cells."
    assert "within its bound in 1 of 2 cells. It is between 0.720 and 0.850" in lines[13]
    assert "more than those of p in 0 of 1 cells; the least share is 0.400" in lines[14]
    assert lines[15] == "Tracked intervals are 1.50 to 1.50 times as wide as those of p."
    assert not [*numbers_page.sentences([])]
    _, _, losses, _, _, _, scores, _, methods, intervals = numbers_page.tables(found)
    assert losses.strip().splitlines()[-1].endswith("| base | +1.0 | ivapr | +11 | base |")
    row = "| B, at once | 1.000 | 0.9000 | 0.8000 | ACI | +5.0 | -5.0 | ACI | none |"
    assert scores.strip().splitlines()[-1] == row
    assert "| protected | 1.500 | 2.020 | -12.0 | +5.0 |" in methods
    assert (
        "| tracked | -20.0 | 0.8000 | 0.8000 | 0.850 (0.400) | 0.720 (0.900) | 3.000 | 3.000 |"
        in intervals
    )

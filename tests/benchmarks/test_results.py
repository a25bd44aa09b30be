"""Results of benchmarks are kept a line a section, and the pages are made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from benchmarks.contenders import BruteByScore, SmartBrute
from benchmarks.many_models import KINDS, by_hand, filled
from benchmarks.page import Section
from benchmarks.pages import page, written
from benchmarks.results import Result, Run, keep, read
from benchmarks.streams import Stream
from benchmarks.summary import Comparison, compared, verdict
from benchmarks.targets import Measured, Target, figures
from benchmarks.timing import Spread
from benchmarks.unchanged import steps
from hypothesis import given
from hypothesis import strategies as st

from abers import VennAbers
from abers.stream import Observation, Prediction

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("one", "window")  # sections of the first page
KEY = ("a", "b", 3)


def result(name: str, value: float, *, date: str = "2026-11-30", system: str = "Linux") -> Result:
    """Return the result of a section with a figure."""
    section = Section(f"Title of {name}", f"It took {value}.", {KEY: Spread.of([value])})
    machine = {"processor": "P", "system": system}
    return Result.of(name, section, Run(date, 2.0, (0.5, 1.5), (2.0, 1.0, 4.0), machine))


def test_a_section_replaces_its_own_line(tmp_path: Path) -> None:
    """A section measured anew replaces its line, and the others stay, in the order of the run."""
    path = tmp_path / "results.jsonl"
    for name, value in (("window", 1.0), ("one", 2.0), ("window", 3.0)):
        keep(path, NAMES, result(name, value))
    assert read(path, NAMES) == {"one": result("one", 2.0), "window": result("window", 3.0)}
    assert [*read(path, NAMES)] == [*NAMES]
    assert len(path.read_bytes().splitlines()) == len(NAMES)
    assert read(path, NAMES)["one"].section.values == {KEY: Spread.of([2.0])}


def test_a_section_that_is_gone_leaves_the_results(tmp_path: Path) -> None:
    """A line whose section no run has any more is dropped with the next result."""
    path = tmp_path / "results.jsonl"
    keep(path, ("old", *NAMES), result("old", 1.0))
    keep(path, NAMES, result("one", 1.0))
    assert [*read(path, ("old", *NAMES))] == ["one"]


def test_pages_say_what_differs_between_runs() -> None:
    """A page has each section, the dates of all, and the sections of each system."""
    results = [
        result("one", 1.0, date="2026-11-28"),
        result("window", 2.0, date="2026-11-30", system="Darwin"),
    ]
    text = page("", {one.name: one for one in results})
    for one in results:
        assert f"## {one.title}\n\n{one.body}\n" in text
    assert "Measured on P; 2026-11-28 to 2026-11-30; load 0.5 to 1.5." in text
    assert "| system | Linux (one) |" in text
    assert "| system | Darwin (window) |" in text
    assert "| processor | P |" in text
    assert "| `window` | 2026-11-30 | 2 | 0.5 to 1.5 | 2.00 | 4.00 |" in text


def test_pages_of_no_results(tmp_path: Path) -> None:
    """Before anything is measured both pages are there, and say so."""
    for path in written(tmp_path / "results.jsonl"):
        assert "not measured" in path.read_text("utf-8")


OURS, FAST, SLOW = Spread(2.0, 1.0, 3.0), Spread(8.0, 3.5, 9.0), Spread(10.0, 9.0, 11.0)
RIVALS = {"fast": ("f", "fast", 1), "slow": ("f", "slow", 1), "absent": ("f", "absent", 1)}
FIGURES = {("f", "abers", 1): OURS, ("f", "fast", 1): FAST, ("f", "slow", 1): SLOW}


@pytest.mark.parametrize(
    ("rate", "row"),
    [
        (False, "| it | 2.00 s | fast 8.00 s | 4.00 | won |"),
        (True, "| it | 2.00 s | slow 10.0 s | 0.2 | **lost** |"),
    ],
)
def test_the_nearest_rival(rate: bool, row: str) -> None:  # noqa: FBT001 - a parameter
    """The best rival counts, by time or by rate, and the ratio is above 1 where abers wins."""
    one = Comparison("it", "s", ("f", "abers", 1), RIVALS, rate=rate)
    assert row in compared([one], FIGURES)


def test_a_missing_figure_is_no_victory() -> None:
    """Without abers, or without any rival, a row says that it was not measured."""
    for figures_ in ({}, {("f", "abers", 1): OURS}, {("f", "fast", 1): FAST}):
        one = Comparison("it", "s", ("f", "abers", 1), RIVALS)
        assert "| it | not measured |" in compared([one], figures_)


def test_ranges_that_overlap_decide_nothing() -> None:
    """Who has the better median has not won if the rounds of both overlap."""
    assert verdict(Spread(2.0, 1.0, 4.0), FAST, rate=False) == "undecided"
    assert verdict(OURS, FAST, rate=False) == "won"
    assert verdict(FAST, OURS, rate=False) == "**lost**"


def test_missed_targets_stay_open() -> None:
    """A target that is missed stands above the fold with its figure, a reached one below."""
    targets = [
        Target("missed: 1 s", 1.0, lambda _: Measured(3.0, 2.0, "3 s")),
        Target("reached: 1 s", 1.0, lambda _: Measured(0.5, 0.4, "0.5 s")),
    ]
    above, _, below = figures(targets, {}).body.partition("<details")
    assert "Missed: missed: 1 s (**3 s**)." in above
    assert "reached: 1 s" not in above
    assert "| reached: 1 s | 0.5 s | yes |" in below


SCORES = st.lists(st.integers(0, 9).map(lambda one: one / 10), min_size=2, max_size=30)


@given(SCORES, st.data())
def test_steps_are_those_of_the_calibrator(scores: list[float], data: st.DataObject) -> None:
    """The lookup that numpy gets answers as the calibrator, at each score, between and outside."""
    labels = data.draw(st.lists(st.integers(0, 1), min_size=len(scores), max_size=len(scores)))
    calibrator = VennAbers()
    calibrator.learn_many(scores, labels)
    asked = np.linspace(-0.5, 1.5, 201).round(2)
    found = steps(calibrator, np.array(scores))(asked)
    for ours, theirs in zip(calibrator.predict_many(asked), found, strict=True):
        assert ours.tolist() == theirs.tolist()


@given(SCORES, st.data())
def test_counts_by_score_are_the_same_bag(scores: list[float], data: st.DataObject) -> None:
    """Smart brute by score predicts what smart brute does, also after labels are taken back."""
    labels = data.draw(st.lists(st.integers(0, 1), min_size=len(scores), max_size=len(scores)))
    whole = Stream(np.array(scores), np.array(labels, np.uint8))
    half = len(scores) // 2
    first, second = whole.part(0, half), whole.part(half, len(scores))
    plain, counted = SmartBrute(0), BruteByScore(0)
    for one in (plain, counted):
        one.fill(first.scores, first.labels)
        one.prequential(second.scores, second.labels)
        one.unlearn(second.scores, second.labels)
    predicted = [
        np.array(one.prequential(second.scores, second.labels)) for one in (plain, counted)
    ]
    assert np.abs(predicted[0] - predicted[1]).max() < 1e-12


def test_by_hand_predicts_what_abers_predicts() -> None:
    """The dictionaries by hand have learned what a processor has: the same interval comes next."""
    hand, processor = by_hand(50), filled(KINDS["merged"], 50)
    for score in (0.1, 0.5, 0.9):
        event = Observation(f"new {score}", 10**15, "m3", score)
        (made,) = processor.process_many([event])
        assert isinstance(made, Prediction)
        assert made.n_labels == 20
        found = hand.process(event)
        assert found is not None
        assert found == pytest.approx((made.p0, made.p1, made.p), abs=1e-12)

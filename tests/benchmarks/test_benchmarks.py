"""The benchmarks run, and measure contenders that compute the same; nothing here is timed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from benchmarks.agreement import TOLERANCE, differences
from benchmarks.arrow import ARROW
from benchmarks.arrow import BATCHES as ARROW_BATCHES
from benchmarks.contenders import MAKERS, NATIVE, contenders
from benchmarks.cross import BATCH, CONTENDERS, folds, ours, theirs
from benchmarks.distribution import FIT, LABELS, SCORES
from benchmarks.events import FORMATS, LATE, ONE, arriving, write_files
from benchmarks.journal import ADDED as NOTING
from benchmarks.journal import PAUSE, RESTORE
from benchmarks.kept import LOST, POINTS, over_a_stream
from benchmarks.live import CROWDS
from benchmarks.live import LOST as LOOKED
from benchmarks.many_models import BATCH as BATCHED
from benchmarks.many_models import KINDS, batches, filled
from benchmarks.many_models import RESTORE as RESTORED
from benchmarks.monitors import COST, STREAMS
from benchmarks.multiclass import BINARY, REST
from benchmarks.predictive import BAND, GRID_RUN, QUANTILE, observations, petej
from benchmarks.processor import ENTRIES
from benchmarks.rivals import compiler
from benchmarks.scrape import COUNTING, SCRAPE
from benchmarks.sections import PAGES
from benchmarks.service import BATCHES, CPU, FAST, MEDIAN, SERVICE, SHARE, TAIL
from benchmarks.single_events import BARE, DEFAULT, SINGLE
from benchmarks.starts import REPLAY
from benchmarks.streams import UNIT, WEIGHTED, hostile
from benchmarks.targets import TARGETS, figures
from benchmarks.timing import Spread
from benchmarks.unchanged import LATER
from benchmarks.wrapped import ADDED, EVENTS, WITH_IDS, WITHOUT

if TYPE_CHECKING:
    from benchmarks.page import Key

from abers import VennAbers
from abers.regression import IVAPR
from abers.stream import Label, Observation
from abers_connectors.config.model import load
from abers_connectors.replay.job import job_of_config

ROOT = Path(__file__).resolve().parents[2]
QUICK = [sys.executable, "-m", "benchmarks", "--quick"]
OPEN = ["Summary", "Targets"]  # what each page begins with


def made(folder: Path, *options: str) -> list[str]:
    """Return the pages of a quick run, which have each section that it prints."""
    results = folder / "benchmarks.jsonl"
    command = [*QUICK, *options, "--results", str(results)]
    ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    pages = [(folder / f"benchmarks{suffix}.md").read_text("utf-8") for suffix in PAGES]
    for section in ran.stdout.split("\n\n## "):
        assert section.strip() in "".join(pages)
    return pages


def titles(page: str) -> list[str]:
    """Return the headings of a page."""
    return [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]


def test_a_quick_run_makes_some_sections(tmp_path: Path) -> None:
    """`--quick --only` measures the sections that it names, each contender among them."""
    pages = made(tmp_path, "--only", "prequential", "monitors")
    assert [*map(titles, pages)] == [
        [*OPEN, "Against the alternatives: predict and learn a whole stream"],
        [*OPEN, "Live monitors"],
    ]
    for name in contenders():
        assert f"| {name} |" in pages[0]


@pytest.mark.long
def test_a_quick_run_makes_the_pages(tmp_path: Path) -> None:
    """A quick run measures all sections, and a later run for the pages alone changes nothing."""
    pages = made(tmp_path)
    assert [len(titles(page)) for page in pages] == [
        len(OPEN) + sum(map(len, groups.values())) for groups in PAGES.values()
    ]
    assert made(tmp_path, "--page") == pages


def test_a_quick_run_measures_starts(tmp_path: Path) -> None:
    """Each process of the section ends well, and has its milliseconds."""
    (_, page) = made(tmp_path, "--only", "start")
    assert titles(page) == [*OPEN, "Start"]
    assert f"| {REPLAY} |" in page


def test_all_contenders_agree() -> None:
    """Every contender gives the p0 and p1 of every other, with and without ties and a window."""
    found = differences()
    assert set(found) == set(MAKERS) if compiler() else NATIVE in found
    for row in found.values():
        assert max(row.values()) <= TOLERANCE


def test_both_sides_of_a_cross_prediction_agree() -> None:
    """The two sides merge the same probabilities from the same folds."""
    case = folds(500)
    assert [len(scores) for scores in case.scores] == [100] * 5
    assert np.abs(ours(case) - theirs(case)).max() <= TOLERANCE


@pytest.mark.parametrize("name", [*UNIT, *WEIGHTED])
def test_hostile_streams_are_what_they_say(name: str) -> None:
    """A hostile stream has its size, its probes can be tried on it, and its hull is known."""
    n, m = 1_000, 50
    case = hostile(name, n, m)
    assert len(case.stream.scores) == n
    assert len(case.probes.scores) == m
    assert (case.stream.weights is not None) == (name in WEIGHTED)
    calibrator = VennAbers()
    calibrator.learn_many(*case.stream[:2], weights=case.stream.weights)
    if case.held:
        steps = np.full(m, 2, np.uint8)
        calibrator.run(steps, *case.probes[:2], weights=case.probes.weights)
        calibrator.learn_many(*case.probes[:2], weights=case.probes.weights)
    vertices = len(calibrator.hull().value)
    if name.startswith("largest hull"):
        assert vertices > 0.8 * n ** (2 / 3)
    if name.startswith("n/2 vertices"):
        assert vertices == n / 2


def everything(value: float) -> dict[Key, Spread]:
    """Make a run in which every figure of time and memory has one value."""
    spread = Spread.of([value])
    values = {
        (form, name, n): spread
        for form in ("batch", "one", "window")
        for name in MAKERS
        for n in (10**3, 10**5, 10**6)
    }
    values |= {
        (form, name, n): spread
        for form in ("arriving", "cycle", "p99.9", "worst")
        for name in (*UNIT, *WEIGHTED)
        for n in (10**4, 10**6)
    }
    values |= {
        (form, rule, 10**6): spread
        for form in ("bytes built", "to_bytes", "from_bytes")
        for rule in ("no window", "window")
    }
    values |= {("replayed", f"{ONE}, {suffix}", 10**5): spread for suffix in FORMATS}
    values |= {(BATCH, name, 10**5): spread for name in CONTENDERS}
    values |= {(ADDED, name, EVENTS): spread for name in (WITH_IDS, WITHOUT)}
    values |= {("gp-beta", name, LABELS): spread for name in (FIT.format(32), SCORES)}
    values |= {
        ("predictive", name, n): spread
        for name in (BAND, GRID_RUN, QUANTILE)
        for n in (10**4, 10**5)
    }
    values["arrow", ARROW, ARROW_BATCHES[-1]] = spread
    values["unchanged", LATER, 10**6] = spread
    values |= {("multi", name, 10**5): spread for name in (BINARY, REST)}
    values |= {("journal", NOTING, 2_000): spread}
    values |= {(PAUSE, "loop", 10**6): spread, ("restored", RESTORE, 10**6): spread}
    values |= {(BATCHED, "protected", 1_000): spread, (RESTORED, "merged", 1_000): spread}
    values |= {(COST, stream.name, stream.batch): spread for stream in STREAMS}
    values |= {("entry", name, 10**6): spread for name in ENTRIES}
    values |= {
        ("service", name + client, batch): spread
        for name in (SERVICE, SHARE, CPU)
        for client in ("", f" {FAST}")
        for batch in BATCHES
    }
    values["late", f"{MEDIAN} {FAST}", 500] = spread
    values |= {(COUNTING, "models", 1): spread, (SCRAPE, "models", 100): spread}
    values[SCRAPE, "models", 10_000] = spread
    values |= {(SINGLE, name, 1): spread for name in (BARE, DEFAULT)}
    values |= {(LOOKED, whom, count): spread for whom, count in CROWDS}
    values |= {("late", name, 500): spread for name in (MEDIAN, TAIL)}
    return values


@pytest.mark.parametrize(("value", "verdict"), [(0.01, "yes"), (1e5, "**no**")])
def test_figures_are_compared_with_targets(value: float, verdict: str) -> None:
    """Small values reach figures of time and memory, large ones rates, small ratios ratios."""
    targets = [target for some in TARGETS.values() for target in some]
    lines = figures(targets, everything(value)).body.partition("All targets")[2].splitlines()
    rows = [line for line in lines if line.startswith("|")][2:]
    by_target = dict(zip((target.asked for target in targets), rows, strict=True))
    for asked, row in by_target.items():
        if asked.endswith("a second") or "of a bare loop" in asked:
            assert row.endswith("| yes |") == (verdict != "yes")
        elif "as fast as" in asked:
            assert row.endswith("| **no** |")
        elif "times" in asked:
            assert row.endswith("| yes |")
        else:
            assert row.endswith(f"| {verdict} |")


def test_a_figure_that_was_not_measured_has_no_verdict() -> None:
    """An empty run reaches nothing and misses nothing."""
    for targets in TARGETS.values():
        body = figures(targets, {}).body
        assert body.count("not in this run") == len(targets)
        assert "yes" not in body


def test_each_label_of_a_replay_is_late() -> None:
    """Every observation is followed by its label, after so many further observations."""
    events = [event for block in range(4) for event in arriving(block, 3)]
    place = {event.id: i for i, event in enumerate(events) if type(event) is Observation}
    answers = [(i, event.id) for i, event in enumerate(events) if type(event) is Label]
    assert sorted(id_ for _, id_ in answers) == sorted(place)
    for i, id_ in answers[:LATE]:
        further = [event for event in events[place[id_] + 1 : i] if type(event) is Observation]
        assert len(further) == LATE


def test_many_models_have_as_many_labels_each() -> None:
    """Each model of a filled stream gets the labels that the page says, and each label is late."""
    processor = filled(KINDS["merged"], 50)
    assert len(processor.keys) == 50
    assert processor.held[0] == 50 * 20
    each = [event for batch in batches(50, 8, 20) for event in batch]
    assert [type(one) for one in each[-4:]] == [Observation, Label] * 2
    assert len({one.id for one in each if type(one) is Observation}) == 80


def test_all_forms_of_a_replay_are_one_stream(tmp_path: Path) -> None:
    """Mixed, merged and delayed, in JSON Lines and in Parquet: the predictions are the same."""
    predicted = set()
    for given in write_files(tmp_path, 3).values():
        flags = {**given, "output.predictions": str(tmp_path / "predictions.jsonl")}
        with job_of_config(load(flags=flags, environ={})).start() as run:
            assert list(run.run())[-1] >= 3 * LATE
        predicted.add((tmp_path / "predictions.jsonl").read_bytes())
    assert len(predicted) == 1


def test_memory_is_watched_to_the_end() -> None:
    """A stream is sampled ten times, after equal parts, the last time at its end."""
    events = [events for events, _ in over_a_stream(20 * LATE)]
    assert len(events) == POINTS
    assert events[-1] == 2 * 20 * LATE * (1 - 1 / (2 * LOST))


def test_the_precomputation_gives_the_same_distributions() -> None:
    """A binary fit for each threshold gives every query the CDFs that `IVAPR` gives it."""
    scores, labels = observations(40)
    queries = np.array([-1.0, 0.1, scores[0], 3.0])
    lower, upper = petej(scores, labels, queries)
    calibrator = IVAPR()
    calibrator.learn_many(scores, labels)
    for i, predicted in enumerate(calibrator.predict_many(queries)):
        assert predicted.lower(np.sort(labels)).tolist() == lower[:, i].tolist()
        assert predicted.upper(np.sort(labels)).tolist() == upper[:, i].tolist()

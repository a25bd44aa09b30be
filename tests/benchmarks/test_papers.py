"""The published tables are made again: in what order the methods come, never to which digits."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.papers.__main__ import PAPERS
from benchmarks.papers.manifest import HERE, MANIFEST, excuse, records
from benchmarks.papers.report import difference, mean
from benchmarks.papers.runner import Budget, Spec, Task, run
from benchmarks.papers.venn_abers_2014_page import ranking

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "benchmarks.papers", "--quick", "--processes", "1"]


def ran(name: str, folder: Path, data: str | Path) -> tuple[dict[str, Any], str]:
    """Run a paper quickly, and return its results by the names of the tasks, and what was said."""
    words = [*COMMAND, name, "--data", data, "--cache", folder, "--output", folder / "pages"]
    said = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stderr
    kept = (folder / name).rglob("*.json")
    found = {
        str(path.relative_to(folder / name).with_suffix("")): json.loads(path.read_text())["result"]
        for path in kept
    }
    return found, said


@pytest.mark.data
def test_venn_abers_2014(tmp_path: Path) -> None:
    """SVA mends naive Bayes and is never infinite, DIR is; the theorem holds, and SVA breaks it."""
    found, _ = ran("venn_abers_2014", tmp_path, os.environ["ABERS_DATA"])
    losses = found["sklearn/NB/Vote/0"]
    assert np.mean(losses["SVA"]["rmse"]) < np.mean(losses["W"]["rmse"])
    assert np.mean(losses["SVA"]["log"]) < np.mean(losses["W"]["log"])
    tables = [result for name, result in found.items() if name.startswith("sklearn")]
    assert any(None in result["DIR"]["log"] for result in tables if "DIR" in result)
    merged = [m for result in tables for m in ("VA", "SVA", "IVAP", "CVAP") if m in result]
    assert len(merged) == 13
    assert not any(None in result[m]["log"] for result in tables for m in result if m in merged)
    p0 = {name: np.mean(runs, axis=0)[0] for name, runs in found["validity/20"].items()}
    assert p0["SVA, by heart"] > 0.8
    assert p0["VA, by heart"] < 0.5
    page = (tmp_path / "pages" / "venn_abers_2014.md").read_text(encoding="utf-8")
    assert "| Vote, SVA | 0.211 | - | - |" in page


@pytest.mark.data
def test_ivapr_2018(tmp_path: Path) -> None:
    """IVAPR is better than its point predictions, with either calibration."""
    found, _ = ran("ivapr_2018", tmp_path, os.environ["ABERS_DATA"])
    for data in ("Concrete", "Energy"):
        means = {name: np.mean(each) for name, each in found[f"table/Linear/{data}/0"].items()}
        assert means["IVAPR rank"] < means["A rank"]
        assert means["honest rank"] < means["A rank"]
        assert means["honest unit"] < means["A unit"]
    medians = found["figure/3"]
    assert abs(np.subtract(medians["median"], medians["truth"]).mean()) < 0.5
    assert found["figure/1"]["30.0"][28:30] == pytest.approx([1 / 3, 2 / 3])


@pytest.mark.data
def test_multiclass_2017(tmp_path: Path) -> None:
    """CVAP is better than IVAP on waveform, in both losses."""
    found, _ = ran("multiclass_2017", tmp_path, os.environ["ABERS_DATA"])
    losses = found["LR/waveform/3-0"]
    assert losses["log CVAP"] < losses["log IVAP"]
    assert losses["Brier CVAP"] < losses["Brier IVAP"]
    assert set(found) == {"LR/waveform/3-0", "LR/vehicle/3-0"}


@pytest.mark.data
def test_gp_beta_2019(tmp_path: Path) -> None:
    """GP-Beta is better than least squares on Boston in every loss, ISO in the pinball loss."""
    found, _ = ran("gp_beta_2019", tmp_path, os.environ["ABERS_DATA"])
    losses = found["OLS/Boston/same-0"]
    for metric in ("NLL", "MSE", "PBL"):
        assert losses["G8"][metric] < losses["Base"][metric]
    assert losses["ISO"]["PBL"] < losses["Base"]["PBL"]
    assert losses["ISO"]["NLL"] > losses["G8"]["NLL"]


@pytest.mark.data
def test_streams(tmp_path: Path) -> None:
    """Calibration mends an online scorer, and intervals that are too narrow."""
    found, _ = ran("streams", tmp_path, os.environ["ABERS_DATA"])
    rows = found["classes/Elec2/0"]
    for name in ("Platt", "IVAP", "IVAP, window", "IVAP, half-life", "CVAP"):
        assert rows[name]["log"] < rows["raw"]["log"]
        assert rows[name]["MCB"] < rows["raw"]["MCB"]
    assert rows["IVAP, half-life"]["log"] < rows["IVAP"]["log"]
    numbers = found["numbers/Chick weights/0"]
    for name in ("quantile calibration", "beta CDF", "IVAPR"):
        assert abs(numbers[name]["80 %"] - 0.8) < abs(numbers["the learner"]["80 %"] - 0.8)
    page = (tmp_path / "pages" / "streams.md").read_text(encoding="utf-8")
    assert "IVAP has a smaller log loss than raw on 1 of 1 streams with labels at once." in page


def test_a_missing_set_costs_a_line(tmp_path: Path) -> None:
    """Without data each missing set is named in a line, and what needs none is computed."""
    found, said = ran("venn_abers_2014", tmp_path, tmp_path)
    missing = [line for line in said.splitlines() if line.startswith("venn_abers_2014: without")]
    assert len(missing) == 9
    assert "vote.csv is missing; it comes from Debian weka" in missing[-1]
    assert set(found) == {"validity/10", "validity/20"}


def test_another_file_of_the_same_name_is_refused(tmp_path: Path) -> None:
    """A file with another digest than the manifest's is not taken for the data set."""
    (tmp_path / "vote.csv").write_text("a,target\n1,0\n")
    assert "another file" in str(excuse(tmp_path, "vote"))


def counted(folder: Path, spec: Spec) -> int:
    """Leave a mark in a folder, and count the marks."""
    with (folder / "marks").open("a") as file:
        file.write("x")
    return len((folder / "marks").read_text()) * int(spec["factor"])


def test_runs_go_on_where_they_ended(tmp_path: Path) -> None:
    """What is kept is not computed again, unless the specification is another one."""
    budget = Budget(1, math.inf)
    for factor, result in ((1, 1), (1, 1), (10, 20)):
        answers = run([Task("a/b", counted, {"factor": factor})], tmp_path, tmp_path / "c", budget)
        assert answers["a/b"].result == result
        assert answers["a/b"].environment["abers"]
    assert not run([Task("c", counted, {"factor": 1})], tmp_path, tmp_path / "c", Budget(1, 0.0))


def test_infinite_losses_are_counted() -> None:
    """A mean is infinite as soon as one repetition is, and says how many; it has no difference."""
    infinite, finite = mean([0.5, None, 1.0, None]), mean([0.25, 0.75])
    assert infinite.shown() == "∞ (2 of 4)"
    assert difference(0.5, infinite) == "-"
    assert finite.shown() == "0.500 ± 0.250"
    assert difference(0.75, finite) == "-0.250"


def test_published_ranks_follow_from_published_losses() -> None:
    """Table 3 of Vovk & Petej comes out of their tables 1 and 2, every place."""
    tables = records(HERE / "published" / "venn_abers_2014.tsv")
    found = {
        ("", r["loss"], r["data"], r["scorer"], r["method"]): mean([float(r["value"])])
        for r in tables
    }
    assert len(tables) == 432
    for record in records(HERE / "published" / "venn_abers_2014_ranks.tsv"):
        places = ranking(found, "", record["loss"], record["data"])[:3]
        assert places == [record[f"place{place}"] for place in (1, 2, 3)]


def test_papers_name_their_data() -> None:
    """Every data set of a paper is in the manifest."""
    for paper in PAPERS.values():
        assert {*paper.sets.values()} <= MANIFEST.keys()

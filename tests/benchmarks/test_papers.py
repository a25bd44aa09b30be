"""The published tables are reproduced: the order of the methods, not the digits."""

from __future__ import annotations

import json
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
from benchmarks.papers.streams import QUICK
from benchmarks.papers.venn_abers_2014_page import ranking

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "benchmarks.papers", "--quick", "--processes", "1"]


def ran(name: str, folder: Path, data: str | Path) -> tuple[dict[str, Any], str]:
    """Run a paper quickly; return its results by task name, and its output."""
    words = [*COMMAND, name, "--data", data, "--output", folder]
    said = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stderr
    return answers(folder / "answers", name), said


def answers(folder: Path, name: str) -> dict[str, Any]:
    """Return the stored results of a paper by task name."""
    text = (folder / f"{name}.jsonl").read_text(encoding="utf-8")
    lines = [line for line in map(json.loads, text.splitlines()) if "task" in line]
    return {line["task"].removeprefix(f"{name}/"): line["result"] for line in lines}


def hold(found: dict[str, Any], name: str, tasks: set[str]) -> None:
    """Compare means with those of the answers that the pages are made of.

    Other processors add in another order, so that equal scores may differ there in a last bit.
    """
    published = answers(ROOT / "docs" / "evidence" / "answers", name)
    for task in tasks:
        mine, theirs = means(found[task]), means(published[task])
        alike = mine.keys() & theirs.keys()
        assert alike
        for key in alike:
            assert mine[key] == pytest.approx(theirs[key], rel=0.05), (task, key)


def means(result: Any, name: str = "") -> dict[str, float]:  # noqa: ANN401 - JSON
    """Average the numbers of each name, but for infinite ones and counts of tenths."""
    if isinstance(result, dict):
        parts = [means(each, f"{name}/{key}") for key, each in result.items() if key != "tenths"]
        return {key: value for part in parts for key, value in part.items()}
    return {} if not result or None in result else {name: float(np.mean(result))}


@pytest.mark.data
def test_venn_abers_2014(tmp_path: Path) -> None:
    """SVA improves naive Bayes and is never infinite, DIR is; SVA breaks the theorem."""
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
    page = (tmp_path / "venn_abers_2014.md").read_text(encoding="utf-8")
    assert "| Vote, SVA | 0.211 | - | - |" in page
    hold(found, "venn_abers_2014", {"sklearn/NB/Vote/0", "sklearn/NB/Echo/0"})


@pytest.mark.data
@pytest.mark.long
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
    assert found["figure/1"]["30.0"][28:30] == pytest.approx([1 / 3, 2 / 3], abs=1e-6)
    hold(found, "ivapr_2018", {*found})


def test_conformal_idr_2025(tmp_path: Path) -> None:
    """The band covers in all thirds of the score, where split conformal falls short in one."""
    found, _ = ran("conformal_idr_2025", tmp_path, tmp_path)
    assert {*found} == {"noise/100", "isotonic/100"}
    for result in found.values():
        covered = [value for value, _ in result["band covered"]]
        assert min(covered) > 0.9
        assert covered[-1] == pytest.approx(np.mean(covered[:-1]), abs=1e-5)
        assert result["widths"][0] >= result["widths"][1]  # band, merged
        assert 0.0 < result["thickness"][0] < 1.0
    assert found["noise/100"]["split covered"][2][0] < 0.8
    page = (tmp_path / "conformal_idr_2025.md").read_text(encoding="utf-8")
    assert "| noise, n = 100 | split conformal | " in page
    assert "<summary>Data<" not in page


@pytest.mark.data
@pytest.mark.long
def test_multiclass_2017(tmp_path: Path) -> None:
    """CVAP is better than IVAP on waveform, in both losses."""
    found, _ = ran("multiclass_2017", tmp_path, os.environ["ABERS_DATA"])
    losses = found["LR/waveform/3-0"]
    assert losses["log CVAP"] < losses["log IVAP"]
    assert losses["Brier CVAP"] < losses["Brier IVAP"]
    assert set(found) == {"LR/waveform/3-0", "LR/vehicle/3-0"}
    hold(found, "multiclass_2017", {*found})


@pytest.mark.data
@pytest.mark.long
def test_gp_beta_2019(tmp_path: Path) -> None:
    """GP-Beta beats least squares on Boston, and has maps that differ where two lines cross."""
    found, _ = ran("gp_beta_2019", tmp_path, os.environ["ABERS_DATA"])
    losses = found["OLS/Boston/same-0"]
    for metric in ("NLL", "MSE", "PBL"):
        assert losses["G8"][metric] < losses["Base"][metric]
    assert losses["ISO"]["PBL"] < losses["Base"]["PBL"]
    assert losses["ISO"]["NLL"] > losses["G8"]["NLL"]
    crossed, apart = (np.array(found["figure/2"]["maps"][at])[[25, 75]] for at in ("-0.2", "0.8"))
    assert np.diff(crossed) > 0.6  # the half in the middle of the base has more than that
    assert np.diff(apart) < 0.4
    page = (tmp_path / "gp_beta_2019_maps.svg").read_text(encoding="utf-8")
    assert page.count("<polyline") == 3


@pytest.mark.data
@pytest.mark.long
def test_streams(tmp_path: Path) -> None:
    """Calibration improves an online scorer, and intervals that are too narrow."""
    found, _ = ran("streams", tmp_path, os.environ["ABERS_DATA"])
    rows = found["classes/Elec2/0"]
    for name in ("Platt", "IVAP", "IVAP, window", "IVAP, half-life", "CVAP"):
        assert rows[name]["log"] < rows["raw"]["log"]
        assert rows[name]["MCB"] < rows["raw"]["MCB"]
    assert rows["IVAP, half-life"]["log"] < rows["IVAP"]["log"]
    for scorer in ("online", "frozen"):
        for case in found[f"protection/Elec2/{scorer}"].values():
            losses = {name: row["log"] for name, row in case["methods"].items()}
            assert losses["protected"] < min(losses["raw"], losses["IVAP"])
            assert losses["protected"] <= losses["raw"] + case["price"]
            assert case["experts"]["raw"] == pytest.approx(losses["raw"], rel=1e-5)
    several = found["several/Insects/0"]
    for name in ("Platt", "IVAP", "IVAP, half-life", "IVAP, pairs"):
        assert several[name]["log"] < several["raw"]["log"]
        assert several[name]["MCB"] < several["raw"]["MCB"]
    for law in QUICK:
        classes = found[f"protected classes/Insects/{law}"]
        losses = {name: row["log"] for name, row in classes["methods"].items()}
        assert losses["protected"] < min(losses["raw"], losses["IVAP"])
        assert classes["experts"]["raw"] == pytest.approx(losses["raw"], rel=1e-5)
    at_once = found["protected classes/Insects/at once"]["methods"]
    assert at_once["IVAP"]["log"] == pytest.approx(several["IVAP"]["log"], rel=1e-5)
    numbers = found["numbers/Chick weights/0"]
    for name in ("quantile calibration", "beta CDF", "IVAPR"):
        assert abs(numbers[name]["80 %"] - 0.8) < abs(numbers["the learner"]["80 %"] - 0.8)
    page = (tmp_path / "streams.md").read_text(encoding="utf-8")
    assert "IVAP has a smaller log loss than raw on 1 of 1 streams with labels at once." in page
    assert "p is below raw in 4 of 4 cells." in page
    assert "p is below raw in 2 of 2 cells." in page
    assert "The CRPS of p is below that of base in 2 of 2 cells." in page


@pytest.mark.data
@pytest.mark.long
def test_venn_conformal_2025(tmp_path: Path) -> None:
    """Margins by difficulty cover where errors are large; one margin for all does not."""
    found, _ = ran("venn_conformal_2025", tmp_path, os.environ["ABERS_DATA"])
    for n in (100, 1_000):
        shares = {name: each["covered"] for name, each in found[f"simulation/{n}"].items()}
        assert min(shares["`ConformalInterval`"]) > 0.8
        assert shares["split conformal"][2] < shares["`ConformalInterval`"][2]
    assert found["concrete/split/0"]["Uncalibrated"][0][0] < 0.8
    assert found["concrete/split/0"]["Venn-Abers"][0][0] > 0.8
    hold(found, "venn_conformal_2025", {"concrete/split/0"})


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


def test_infinite_losses_are_counted() -> None:
    """A mean is infinite as soon as one repetition is, and says how many; it has no difference."""
    infinite, finite = mean([0.5, None, 1.0, None]), mean([0.25, 0.75])
    assert infinite.shown() == "∞ (2 of 4)"
    assert difference(0.5, infinite) == "-"
    assert finite.shown() == "0.500 ± 0.250"
    assert difference(0.75, finite) == "-0.250"


def test_published_ranks_follow_from_published_losses() -> None:
    """Table 3 of Vovk & Petej follows from their tables 1 and 2, in every cell."""
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

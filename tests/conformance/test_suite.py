"""The published suite: valid, made by its script, and what both backends of abers answer.

The answers are compared exactly, as the double nearest to the fraction; what
another implementation is asked for by `run.py` is less.
"""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from tests.conformance import publish
from tests.engine.oracle import Oracle

from abers import VennAbers
from abers.regression import IVAPR

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted(publish.SUITES)
LARGEST = 300_000  # bytes of the two together
IMPORTED = "from abers import VennAbers as Calibrator"
SWAPPED = """
import abers

class Calibrator(abers.VennAbers):
    def predict_one(self, score):
        p0, p1 = super().predict_one(score)
        return p1, p0
"""
SILENT = SWAPPED.replace("p1, p0\n", "p0, float('nan')\n")


def read(file: str) -> Any:  # noqa: ANN401 - as JSON has it
    """Read one of the published files."""
    return json.loads((publish.FOLDER / file).read_text(encoding="utf-8"))


SUITE, DISTRIBUTIONS = read("binary.json"), read("regression.json")
BAGS = pytest.mark.parametrize("case", SUITE["bags"], ids=lambda case: case["name"])
STREAMS = pytest.mark.parametrize("case", SUITE["streams"], ids=lambda case: case["name"])
CDFS = pytest.mark.parametrize("case", DISTRIBUTIONS["bags"], ids=lambda case: case["name"])


def doubles(exact: list[str]) -> list[float]:
    """Round fractions to the nearest doubles."""
    return [float(Fraction(one)) for one in exact]


def columns(case: dict[str, Any]) -> list[tuple[float, Any, float]]:
    """List what a bag has learned."""
    return list(zip(case["scores"], case["labels"], case["weights"], strict=True))


@pytest.mark.once
@pytest.mark.parametrize("file", FILES)
def test_is_what_its_script_makes(file: str) -> None:
    """The file is written from the definition, to the last byte."""
    made = publish.text(publish.SUITES[file]())
    assert (publish.FOLDER / file).read_text(encoding="utf-8") == made


@pytest.mark.parametrize("file", FILES)
def test_validates(file: str) -> None:
    """The file obeys its schema, which obeys that of schemas."""
    schema = read(file.replace(".json", ".schema.json"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(read(file), schema, jsonschema.Draft202012Validator)


def test_the_schema_refuses() -> None:
    """A fraction as a number, a label of 2, a step of three parts: each is refused."""
    validator = jsonschema.Draft202012Validator(read("binary.schema.json"))
    for where, fault in (("p0", 0.5), ("labels", 2), ("weights", 0)):
        faulty = read("binary.json")
        faulty["bags"][0][where][0] = fault
        assert not validator.is_valid(faulty)
    faulty = read("binary.json")
    faulty["streams"][0]["steps"][0].pop()
    assert not validator.is_valid(faulty)


def test_is_small() -> None:
    """Both files together are read in no time."""
    assert sum((publish.FOLDER / file).stat().st_size for file in FILES) < LARGEST


def test_names_are_unique() -> None:
    """A case is known by its name."""
    for cases in (SUITE["bags"] + SUITE["streams"], DISTRIBUTIONS["bags"]):
        names = [case["name"] for case in cases]
        assert len({*names}) == len(names)


@pytest.mark.once
@BAGS
def test_bags_agree_with_the_formula(case: dict[str, Any]) -> None:
    """The max-min formula in fractions, the other form of the definition, has the same answers."""
    oracle = Oracle()
    for row in columns(case):
        oracle.learn(*row)
    step = 1 + len(case["scores"]) // 100  # the formula takes the square of them
    for query, *exact in list(zip(case["queries"], case["p0"], case["p1"], strict=True))[::step]:
        assert [oracle.probability(y, query) for y in (0, 1)] == [Fraction(p) for p in exact]


@BAGS
def test_bags(case: dict[str, Any]) -> None:
    """Every answer is the double nearest to the published fraction, one by one and in a batch."""
    calibrator = VennAbers()
    for score, label, weight in columns(case):
        calibrator.learn_one(score, label, weight=weight)
    expected = [doubles(case["p0"]), doubles(case["p1"])]
    found = [calibrator.predict_one(query) for query in case["queries"]]
    assert [list(side) for side in zip(*found, strict=True)] == expected
    assert [side.tolist() for side in calibrator.predict_many(case["queries"])] == expected


@STREAMS
def test_streams(case: dict[str, Any]) -> None:
    """After every step of a stream the answers are the published ones."""
    calibrator = VennAbers(window=case["window"])
    for step, score, *rest in case["steps"]:
        if step == "learn":
            calibrator.learn_one(score, rest[0], weight=rest[1])
        elif step == "remove":
            calibrator.remove_one(score, rest[0], weight=rest[1])
        else:
            assert list(calibrator.predict_one(score)) == doubles(rest)


@CDFS
def test_distributions(case: dict[str, Any]) -> None:
    """Both predictive CDFs are the published ones at every threshold."""
    calibrator = IVAPR()
    for score, label, weight in columns(case):
        calibrator.learn_one(score, label, weight=weight)
    for query, lower, upper in zip(case["queries"], case["lower"], case["upper"], strict=True):
        predicted = calibrator.predict_one(query)
        assert predicted.lower(case["thresholds"]).tolist() == doubles(lower)
        assert predicted.upper(case["thresholds"]).tolist() == doubles(upper)


def ran(folder: Path, calibrator: str) -> subprocess.CompletedProcess[str]:
    """Run the published runner on another calibrator."""
    (folder / "binary.json").write_bytes((publish.FOLDER / "binary.json").read_bytes())
    runner = (publish.FOLDER / "run.py").read_text(encoding="utf-8")
    assert IMPORTED in runner
    (folder / "run.py").write_text(runner.replace(IMPORTED, calibrator), encoding="utf-8")
    words = [sys.executable, str(folder / "run.py")]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_runner_passes_abers(tmp_path: Path) -> None:
    """The runner finds nothing wrong with abers, and says so by its exit code."""
    done = ran(tmp_path, IMPORTED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("calibrator", [SWAPPED, SILENT], ids=["swapped", "nan"])
def test_the_runner_finds_faults(tmp_path: Path, calibrator: str) -> None:
    """Ends that are swapped, or no numbers, are named with case, query and what is right."""
    done = ran(tmp_path, calibrator)
    assert done.returncode == 1
    assert "worked at 0.2: " in done.stderr
    assert "right: 0/1, 1/2" in done.stderr

"""The core with buckets of 8 groups, at full speed, against the reference.

The buckets of the released core are so large that a test of some thousand steps
grows hardly a tree, and a slope next to a bridge that is out of date hides. Here every stream grows
one of dozens of buckets, and after each step every invariant is checked from the definitions.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from abers import reference
from abers.arrays import LEARN, ONE, PREDICT, REMOVE

if TYPE_CHECKING:
    from numpy.typing import NDArray

pytestmark = [pytest.mark.native, pytest.mark.simulation]

ROW = np.dtype([("step", "u1"), ("label", "u1"), ("score", "f8"), ("weight", "i8")])
STEPS = 4_000
SHAPES = ("rising", "falling", "flat", "parted", "steps")
WEIGHTS = ("unit", "few", "wild")
SOURCES = Path(__file__).parents[2] / "engine" / "abers" / "_core"


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the core as it is built for release, but with small buckets and the checks."""
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
    if compiler is None:
        pytest.skip("needs a C++ compiler; on Debian, run: apt-get install g++")
    program = tmp_path_factory.mktemp("core") / "small_buckets"
    flags = ["-std=c++20", "-O2", "-ffp-contract=off", "-DABERS_CHECK", f"-I{SOURCES}"]
    source = Path(__file__).with_name("small_buckets.cpp")
    subprocess.run([compiler, *flags, str(source), "-o", str(program)], check=True)
    return program


def rates(shape: str, groups: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return how often the label is 1, by group."""
    place = np.arange(groups) / groups
    return {
        "rising": 0.05 + 0.9 * place,
        "falling": 0.95 - 0.9 * place,
        "flat": np.full(groups, rng.choice([0.02, 0.5, 0.98])),
        "parted": np.where(place > 0.5, 0.995, 0.005),
        "steps": (np.floor(place * 8) / 8) ** 2,
    }[shape]


def stream(seed: int, shape: str, weighed: str) -> NDArray[np.void]:
    """Make steps with many ties, in which what is kept grows, shrinks and grows again."""
    rng = np.random.default_rng([seed, SHAPES.index(shape), WEIGHTS.index(weighed)])
    groups = int(rng.integers(40, 300))
    rate = rates(shape, groups, rng)
    rows = np.zeros(STEPS, ROW)
    held: list[int] = []  # numbers of the rows that learned what is held
    for number in range(STEPS):
        wave = 0.55 + 0.35 * np.sin(number / 300)  # the share of what is learned
        at = int(rng.integers(groups))
        weight = {
            "unit": ONE,
            "few": int(rng.choice([ONE, 2 * ONE, ONE // 2])),
            "wild": int(2.0 ** rng.uniform(0, 50)),
        }[weighed]
        if rng.random() < 0.1:
            rows[number] = (PREDICT, 0, (at + rng.choice([0.0, 0.5])) / 256, weight)
        elif not held or rng.random() < wave:
            rows[number] = (LEARN, rng.random() < rate[at], at / 256, weight)
            held.append(number)
        else:
            place = int(rng.integers(len(held)))
            held[place], held[-1] = held[-1], held[place]
            rows[number] = rows[held.pop()]
            rows[number]["step"] = REMOVE
    return rows


def ran(core: Path, window: int, rows: NDArray[np.void]) -> NDArray[np.float64]:
    """Run steps on the core; the two probabilities of each prediction."""
    given = window.to_bytes(8, "little") + rows.tobytes()
    done = subprocess.run([core], input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return np.frombuffer(done.stdout).reshape(-1, 2)


def expected(window: int, rows: NDArray[np.void]) -> NDArray[np.float64]:
    """Run steps on the reference."""
    plain = reference.CalibrationSet(window)
    p0, p1 = np.zeros((2, len(rows)))
    step, score, label, weight = (rows[name] for name in ("step", "score", "label", "weight"))
    assert plain.run(step, score, label, weight, None, p0, p1) == len(rows)
    both: NDArray[np.float64] = np.column_stack([p0, p1])[step == PREDICT]
    return both


@pytest.mark.parametrize("weighed", WEIGHTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_learning_and_removing(core: Path, shape: str, weighed: str, seed: int) -> None:
    """The tree stays sound as it grows and shrinks, and predicts what the reference does."""
    rows = stream(seed, shape, weighed)
    np.testing.assert_array_equal(ran(core, 0, rows), expected(0, rows))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("window", [30, 400])
def test_windows(core: Path, window: int, shape: str) -> None:
    """So it does where each observation drives out the oldest."""
    rows = stream(7, shape, "few")
    rows = rows[rows["step"] != REMOVE]
    np.testing.assert_array_equal(ran(core, window, rows), expected(window, rows))


def test_it_can_fail(core: Path) -> None:
    """A step that cannot be done ends the program with its number."""
    rows = np.array([(LEARN, 1, 0.5, ONE), (REMOVE, 0, 0.5, ONE)], ROW)
    done = subprocess.run([core], input=bytes(8) + rows.tobytes(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"step 1 is refused\n")

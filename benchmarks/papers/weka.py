"""The scorers of Weka, where Debian's package weka and a JDK are installed.

An object is the number of a row of the data set; one Java process trains and scores
as it is asked, so that Weka's classifiers are scorers like any others.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.papers.manifest import HERE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from abers.batch import Scorer
    from benchmarks.papers.encoded import Encoded

    Floats = NDArray[np.float64]
    Labels = NDArray[np.uint8]
    Rows = NDArray[np.int64]

__all__ = ["CLASSIFIERS", "JAR", "available", "scorer"]

JAR = Path("/usr/share/java/weka.jar")  # where Debian's package puts it
_FUNCTIONS = "weka.classifiers.functions"
CLASSIFIERS = {
    "J": ["weka.classifiers.trees.J48"],
    "JB": ["weka.classifiers.meta.Bagging"],  # of its default, REPTree: see the page's deviations
    "LR": [f"{_FUNCTIONS}.Logistic"],
    "NB": ["weka.classifiers.bayes.NaiveBayes", "-K"],
    "NN": [f"{_FUNCTIONS}.MultilayerPerceptron", "-L", "0.1"],  # likewise
    "SVM": [f"{_FUNCTIONS}.SMO", "-M"],
}


def available() -> bool:
    """Return whether Weka can be run."""
    return JAR.is_file() and shutil.which("javac") is not None


class _Java:
    """The one Java process of this one; it ends with it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        words = "-cp", str(JAR), "-d", str(self.folder), str(HERE / "Scores.java")
        subprocess.run(("javac", *words), check=True)  # noqa: S603, S607 - our own program
        self._process = subprocess.Popen(  # noqa: S603 - likewise
            ("java", "-XX:+UseSerialGC", "-cp", f"{JAR}:{self.folder}", "Scores"),  # noqa: S607 - likewise
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.trained = 0
        atexit.register(self._end)

    def write(self, line: str) -> None:
        """Send a command."""
        assert self._process.stdin is not None  # noqa: S101 - for the types
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def numbers(self) -> Floats:
        """Read an answer."""
        assert self._process.stdout is not None  # noqa: S101 - for the types
        return np.array(self._process.stdout.readline().split(), np.float64)

    def _end(self) -> None:
        self._process.communicate()
        self._folder.cleanup()


@cache
def _java() -> _Java:
    return _Java()


def scorer(data: Encoded, name: str) -> Scorer:
    """Make a scorer of rows; scores must be asked for before the next training of any."""
    java = _java()
    path = java.folder / "rows.arff"
    path.write_text(_arff(data), encoding="utf-8")
    java.write("\t".join(["open", str(path), *CLASSIFIERS[name]]))

    def train(rows: Rows, labels: Labels) -> Callable[[Rows], Floats]:
        pairs = zip(rows.tolist(), labels.tolist(), strict=True)
        java.write("train " + " ".join(f"{row}:{label}" for row, label in pairs))
        java.trained += 1
        number = java.trained

        def score(asked: Rows) -> Floats:
            if number != java.trained:
                msg = "another classifier was trained since; ask for scores before that"
                raise RuntimeError(msg)
            java.write("score " + " ".join(map(str, asked.tolist())))
            return java.numbers()

        return score

    return train


def _arff(data: Encoded) -> str:
    """Write the features as Weka reads them, with a class that every training replaces."""
    lines = ["@relation rows"]
    for j, levels in enumerate(data.levels):
        kind = "{" + ",".join(f"v{level}" for level in range(levels)) + "}" if levels else "numeric"
        lines.append(f"@attribute a{j} {kind}")
    lines += ["@attribute class {0,1}", "@data"]
    for row, label in zip(data.features.tolist(), data.labels.tolist(), strict=True):
        words = [
            "?" if value != value else f"v{value:.0f}" if levels else repr(value)  # noqa: PLR0124 - NaN
            for value, levels in zip(row, data.levels, strict=True)
        ]
        lines.append(",".join([*words, str(label)]))
    return "\n".join(lines) + "\n"

"""A fixed classifier of scikit-learn and its calibrator, in two files, neither of them a pickle."""

import os
from pathlib import Path
from typing import Any, Self

import pandas as pd
import skops.io

from abers import VennAbers


class CalibratedModel:
    """A classifier that does not change, and a calibrator that learns from every label."""

    def __init__(self, classifier: Any, calibrator: VennAbers) -> None:  # noqa: ANN401
        self.classifier, self.calibrator = classifier, calibrator

    # --8<-- [start:example]
    def predict(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return p0, p1 and the probability p of label 1, for each row of features."""
        found = self.calibrator.predict_many(self._scores(rows))
        return pd.DataFrame({"p0": found.p0, "p1": found.p1, "p": found.merged})

    def learn(self, rows: pd.DataFrame, labels: list[int]) -> None:
        """Calibrate with the labels of rows; their scores are those that were predicted."""
        self.calibrator.learn_many(self._scores(rows), labels)

    def save(self, folder: Path) -> None:
        """Write both files; each is whole at any time."""
        write_file(folder / "classifier.skops", skops.io.dumps(self.classifier))
        self.save_calibrator(folder)

    def save_calibrator(self, folder: Path) -> None:
        """Write only what learns."""
        write_file(folder / "calibrator.abers", self.calibrator.to_bytes())

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read both files; no code in them can run."""
        classifier = skops.io.load(folder / "classifier.skops", trusted=[])
        calibrator = VennAbers.from_bytes((folder / "calibrator.abers").read_bytes())
        return cls(classifier, calibrator)

    # --8<-- [end:example]

    def _scores(self, rows: pd.DataFrame) -> Any:  # noqa: ANN401 - an array of floats
        return self.classifier.predict_proba(rows[self.classifier.feature_names_in_])[:, 1]


def write_file(path: Path, content: bytes) -> None:
    """Write a file that readers see whole, as it was or as it is now."""
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()  # or what is synchronized lacks what Python still holds
        os.fsync(file.fileno())
    unfinished.replace(path)

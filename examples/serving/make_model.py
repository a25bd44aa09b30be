"""Fit a classifier, calibrate it, and write both into a folder, by default `model`."""

import sys
from pathlib import Path

import pandas as pd
from calibrated_model import CalibratedModel
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

from abers import VennAbers

TRAINED, CALIBRATED = 200, 200  # rows; the rest is served


def make_model(folder: Path) -> tuple[pd.DataFrame, list[int]]:
    """Write the model, and return rows with labels that it has not seen."""
    data, labels = load_breast_cancer(return_X_y=True, as_frame=True)
    ends = TRAINED, TRAINED + CALIBRATED
    model = CalibratedModel(GaussianNB().fit(data[: ends[0]], labels[: ends[0]]), VennAbers())
    model.learn(data[ends[0] : ends[1]], labels[ends[0] : ends[1]].tolist())
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder)
    return data[ends[1] :], labels[ends[1] :].tolist()


if __name__ == "__main__":
    make_model(Path(sys.argv[1] if len(sys.argv) > 1 else "model"))

"""What the help says of flags that are options of a configuration: group, metavar and sentence.

`python -m tests.surface.option_pages --write` writes this from the declarations of the
options: they import the engine, and help imports nothing.
"""

# ruff: noqa: E501 - a sentence is a line

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FLAGS"]

FLAGS: Mapping[str, tuple[str, str | None, str]] = {
    "--task": (
        "Input",
        "TASK",
        "What is predicted: the probability of label 1, those of several classes, or the distribution of a number.",
    ),
    "--scores": (
        "Input",
        None,
        "Kind of the scores.",
    ),
    "--calibrator": (
        "Calibrator",
        "NAME",
        "The calibrator; the first of each task is the default.",
    ),
    "--distributions": (
        "Calibrator",
        None,
        "How much of the whole distributions of a regression is written, besides their quantiles.",
    ),
    "--support": (
        "Calibrator",
        "LOW HIGH",
        "The two ends between which all labels lie.",
    ),
    "--probability": (
        "Calibrator",
        None,
        "Which probability is predicted with the interval.",
    ),
    "--coverage": (
        "Calibrator",
        "LEVEL",
        "Share of labels that one more interval of each prediction is to cover.",
    ),
    "--label-rates": (
        "Calibrator",
        "OF_0 OF_1",
        "Shares of the labels of class 0, and of class 1, that ever come.",
    ),
    "--window": (
        "Calibrator",
        "N",
        "Number of the newest labels that are kept.",
    ),
    "--max-age": (
        "Calibrator",
        "SPAN",
        "Age beyond which a label is forgotten, counted from its observation.",
    ),
    "--half-life": (
        "Calibrator",
        "SPAN",
        "Time in which the weight of a label halves.",
    ),
    "--learner": (
        "Input",
        "NAME",
        "The learner that scores the features and learns from each label.",
    ),
    "--labels": (
        "Input",
        "FILE",
        "A second file, of labels.",
    ),
    "--delay": (
        "Time",
        "DELAY",
        "How much later the label of a record is released, if each record has its own.",
    ),
    "--positive": (
        "Input",
        "LABEL",
        "Values that mean label 1; all others mean 0.",
    ),
    "--timezone": (
        "Input",
        "ZONE",
        'Time zone of times without an offset, such as "2013-04-01 05:00:00".',
    ),
    "--delimiter": (
        "Input",
        "CHARACTER",
        "What separates the fields of a CSV file.",
    ),
    "--decimal": (
        "Input",
        "CHARACTER",
        'What precedes the decimals of numbers in CSV, "." or ",".',
    ),
    "--id": (
        "Input",
        "COLUMN",
        "The id by which a label refers to its observation.",
    ),
    "--time": (
        "Input",
        "COLUMN",
        "Event time: integer milliseconds since 1970, or RFC 3339 with an offset (see --timezone).",
    ),
    "--model-column": (
        "Input",
        "COLUMN",
        "The model, which has its own calibrator.",
    ),
    "--segment-column": (
        "Input",
        "COLUMN",
        "A part of a model with a calibrator of its own.",
    ),
    "--score": (
        "Input",
        "COLUMN",
        "The score to calibrate.",
    ),
    "--label": (
        "Input",
        "COLUMN",
        "The label.",
    ),
    "--label-time": (
        "Input",
        "COLUMN",
        "Event time at which the label becomes known, in files where each record contains its own label.",
    ),
    "--output": (
        "Output",
        "FILE",
        "File of the predictions, with a line or row for each observation.",
    ),
    "--host": (
        "Server",
        "ADDRESS",
        'Address to listen on: "127.0.0.1" is this machine only, "0.0.0.0" everybody.',
    ),
    "--port": (
        "Server",
        "N",
        "The port; 0 is any free one, which the log shows.",
    ),
    "--data": (
        "Server",
        "FOLDER",
        "Folder of the state, which is created if it is not there.",
    ),
}

"""Example documents of several classes, of numbers, and of many models."""

from __future__ import annotations

from math import sin
from typing import TYPE_CHECKING

from tests.engine.pages.example_parts import (
    LEGEND,
    NUMBERS,
    gap,
    mark,
    name,
    over_time,
    simple,
    spark,
)

from abers.pages.blocks import (
    AlarmBlock,
    AnswerBlock,
    AnswersBlock,
    Column,
    Document,
    FigureBlock,
    Mark,
    Picture,
    SectionBlock,
    Span,
    TableBlock,
    TableRow,
    TextBlock,
    TilesBlock,
    TileValue,
)

if TYPE_CHECKING:
    from abers.pages.blocks import Cell

__all__ = ["classes", "models", "temperatures"]

WAVE = [3 * sin(0.7 * row) - 1 for row in range(30)]


def classes() -> Document:
    """Return the report of three classes."""
    caption = "right − promised over time"
    page_table = simple(
        "classes-table",
        (
            Column(head="class", align="left"),
            Column(head="labels", room="much"),
            Column(head="promised", unit="%"),
            Column(head="came", unit="%"),
            Column(head="gap"),
            Column(head="range"),
            Column(head="largest fault", align="left"),
        ),
        NUMBERS["CLASSES"],
        "Promised and came of each class",
        keep=False,
        place="page",
    )
    text_table = TableBlock(
        key="classes-text",
        place="text",
        caption="Classes",
        columns=(
            Column(head="class", align="left"),
            Column(head="labels", room="some"),
            Column(head="promised"),
            Column(head="came"),
            Column(head="model", align="left"),
            Column(head="calibrated", align="left"),
        ),
        rows=tuple(
            TableRow((*cells, Mark(*model), Mark(*served)))  # type: ignore[arg-type] # texts
            for cells, model, served in (
                (("spruce", "3,851", "55.4 %", "56.6 %"), ("no", "< 0.1 too low"), NO_FAULT),
                (("lodgepole", "2,464", "36.4 %", "36.2 %"), ("no", "≥ 0.9 too high"), NO_FAULT),
                (
                    ("other", "486", "8.2 %", "7.1 %"),
                    ("partly", "≥ 0.7 leans high"),
                    ("partly", "leans high, by 1.1"),
                ),
            )
        ),
    )
    return Document(
        title="covtype3.csv",
        lead="Forest cover, 3 classes. The cards are about the first choice: how often is it "
        "right, and how often does its probability say so?",
        blocks=(
            AnswersBlock(
                key="answers",
                note="Latest 6,801 labels. Ranges: 95 %, however often you look.",
                cards=(
                    AnswerBlock(
                        key="model",
                        name="Model",
                        question="Is my model telling the truth?",
                        state="no",
                        group="First choice ≥ 0.75",
                        sentence="promised 91.5 %, right 87.0 %",
                        number="4.5",
                        unit="points too high",
                        range="range 2.6 to 6.3, in 4,546 of 6,801 labels",
                        spark=spark(WAVE, "raw", "Gap of the first choice, raw", caption),
                        then="Of 3 classes 2 are off beyond the tolerance somewhere, 1 leans high.",
                    ),
                    AnswerBlock(
                        key="calibrated",
                        name="Calibrated",
                        question="Is what is served right?",
                        state="undecided",
                        sentence="no fault found; ≥ 0.76 may be up to 2.7 points too high "
                        "(tolerance 2.2)",
                        spark=spark(
                            WAVE, "calibrated", "Gap of the first choice, calibrated", caption
                        ),
                        then="Of 3 classes none is off beyond the tolerance; “other” leans high, "
                        "by 1.1 points.",
                    ),
                    AnswerBlock(
                        key="pays",
                        name="Pays",
                        question="Does calibration pay?",
                        state="yes",
                        sentence="log loss 0.456 instead of 0.498",
                        number="8.5 %",
                        unit="lower",
                        range="at least 3.6 %, over 49,750 labels",
                        then="Latest 6,801 labels: 12 % lower, at least 4 %.",
                    ),
                ),
            ),
            SectionBlock(
                key="classes",
                title="Each class",
                why="Promised and came of each class, and in which group its fault is largest.",
                blocks=(page_table, text_table),
            ),
            AlarmBlock(
                key="alarms-text",
                head="3 alarms, the last at row 42,959: calibrated was too high",
                words="(gap −3.1 points in 883 labels since row 42,077)",
                place="text",
            ),
            SectionBlock(
                key="first-choice",
                title="First choice: over time",
                blocks=(
                    FigureBlock(
                        key="first-choice-figure",
                        legend=LEGEND[:3],
                        pictures=(
                            Picture(
                                "over_time",
                                over_time(NUMBERS["UPPER"]),
                                "First choice: share right, raw and calibrated promise",
                                title="Over 50,000 labels",
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )


NO_FAULT = ("undecided", "no fault found")


def temperatures() -> Document:
    """Return the report of a stream of numbers."""
    caption = "1970 to 2019; line: 0"
    columns = (
        Column(head="interval", align="left"),
        Column(head="labels", room="some"),
        Column(head="inside", unit="%"),
        Column(head="gap"),
        Column(head="range"),
        Column(head="below / above", room="much"),
        Column(head="width", unit="°F"),
        Column(head="narrow ← gap → wide", align="centre", room="much"),
        Column(head="so", align="left"),
    )
    rows = []
    for line in NUMBERS["INTERVALS"].strip().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        drawn: tuple[Cell, ...] = (gap(cells[7], "calibrated", 8.0), mark(cells[8]))
        rows.append(TableRow((*cells[:7], *drawn)))
    return Document(
        title="temperature.csv",
        lead="Temperature of tomorrow. A promise here is an interval: nine of ten labels should be "
        "inside the 90 % interval.",
        blocks=(
            AnswersBlock(
                key="answers",
                note="Latest 4,000 labels, 6 Oct 2008 – 18 Sep 2019, UTC.",
                cards=(
                    AnswerBlock(
                        key="model",
                        name="Model",
                        question="Is my model telling the truth?",
                        state="undecided",
                        word="No promise",
                        sentence="a single number promises nothing that labels could contradict",
                        number="4.33",
                        unit="°F mean error",
                        range="in the latest 4,000 labels",
                        spark=spark(WAVE, "raw", "Mean error over time", f"mean error, {caption}"),
                        then="Give quantiles or a distribution to have them tested.",
                    ),
                    AnswerBlock(
                        key="calibrated",
                        name="Calibrated",
                        question="Is what is served right?",
                        state="undecided",
                        sentence="no fault found",
                        number="91.6 %",
                        unit="inside the 90 % intervals",
                        range="range 89.9 to 93.2 %, in 4,000 labels",
                        spark=spark(
                            WAVE,
                            "calibrated",
                            "Coverage of the 90 % interval less 90, over time",
                            "inside − promised, 1970 to 2019",
                        ),
                        then="Whole stream: the 95 % intervals were too wide: 96.5 % inside "
                        "(96.0 to 97.0 %).",
                    ),
                    AnswerBlock(
                        key="pays",
                        name="Pays",
                        question="Does calibration pay?",
                        state="undecided",
                        word="Even",
                        sentence="error of the median 4.31 instead of 4.33; it adds intervals",
                        number="0.4 %",
                        unit="lower error",
                        range="range −0.1 to +0.8 %",
                        then="Mean width of the 90 % interval: 18.8 °F.",
                    ),
                ),
            ),
            SectionBlock(
                key="intervals",
                title="Are the intervals right?",
                why="The gap is inside − promised, in points: below zero too narrow, above wide.",
                blocks=(
                    TableBlock(
                        key="intervals-table",
                        columns=columns,
                        rows=tuple(rows),
                        caption="Intervals by level, the latest 4,000 labels",
                    ),
                ),
            ),
            TextBlock(
                key="endless",
                words="574 of 18,158 predictions had an interval without an end. They are in no "
                "mean width.",
            ),
        ),
    )


def models() -> Document:
    """Return the report of many models."""
    columns = (
        Column(head="carrier", align="left"),
        Column(head="labels", room="some"),
        Column(head="raw", align="left"),
        Column(head="where, points", room="much"),
        Column(head="calibrated", align="left"),
        Column(head="where, points", room="much"),
        Column(head="wrong at least (raw)"),
        Column(head="gap of calibrated", align="centre", room="much"),
    )
    rows = []
    for line in NUMBERS["MODELS"].strip().splitlines():
        carrier, labels, raw, raw_at, served, at, wrong, _ = (
            one.strip() for one in line.split("|")
        )
        least, _, of_raw = wrong.partition(" ")
        counted: Cell = (least, Span(f" {of_raw}", "soft")) if of_raw else least
        drawn: Cell = ""
        if of_raw:
            drawn = spark(WAVE, "calibrated", f"{carrier}: gap of calibrated over time", "")
        cells = (carrier, labels, mark(raw), raw_at, mark(served), at, counted, drawn)
        rows.append(TableRow(cells))
    worst = (
        ("EV", "3,105", ("partly", "≥ 0.38: −10 (−20 to −0.2)"), ("partly", "−15 at ≥ 0.38"), "1"),
        ("MQ", "3,823", NO_FAULT, ("no", "−11 at ≥ 0.30"), "0"),
        ("AA", "4,665", NO_FAULT, ("no", "−10 at ≥ 0.21"), "0"),
        ("B6", "5,539", NO_FAULT, ("partly", "−9 at ≥ 0.29"), "0"),
        ("UA", "5,574", ("yes", "right"), ("partly", "−6 at ≥ 0.24"), "0"),
    )
    return Document(
        title="flights.csv, 16 carriers",
        blocks=(
            TilesBlock(
                key="states",
                detail="answers",
                tiles=(
                    TileValue("2 no, 7 partly, 5 undecided, 2 have too few labels", "Model"),
                    TileValue("1 yes, 1 partly, 12 undecided, 2 have too few labels", "Calibrated"),
                ),
            ),
            SectionBlock(
                key="models",
                title="Models",
                why="Sorted by harm: how many labels the calibrated probabilities are wrong by at "
                "least, in the two halves together (raw in brackets). Same window rule for each. "
                "A model with few labels is never called wrong for that.",
                blocks=(
                    TableBlock(
                        key="models-table",
                        place="page",
                        columns=columns,
                        rows=tuple(rows),
                        caption="Models, the worst first",
                    ),
                    TableBlock(
                        key="models-text",
                        place="text",
                        caption="Models",
                        columns=(
                            Column(head="worst", align="left"),
                            Column(head="labels", room="some"),
                            Column(head="calibrated", align="left"),
                            Column(head="model", align="left"),
                            Column(head="wrong by"),
                        ),
                        rows=tuple(
                            TableRow((name(one), labels, Mark(*served), Mark(*raw), wrong))  # type: ignore[arg-type] # texts
                            for one, labels, served, raw, wrong in worst
                        ),
                        note="… 11 more (--models all)",
                    ),
                ),
            ),
            TextBlock(
                key="harm-text",
                place="text",
                words="wrong by: how many labels the calibrated probabilities are off by at least. "
                "Each row is about the latest labels of its model. 8 alarms, all for the model: "
                "EV, UA, AA, B6, 9E, DL, US, MQ. Dates and sizes: report.html",
            ),
        ),
    )

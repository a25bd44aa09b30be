"""Example documents, written by hand: what a reader finds in reports of streams of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.engine.pages.example_parts import (
    LEGEND,
    NUMBERS,
    groups,
    over_time,
    reliability,
    simple,
    spark,
)
from tests.engine.pages.example_tasks import classes, models, temperatures

from abers.pages.blocks import (
    AlarmBlock,
    AnswerBlock,
    AnswersBlock,
    BlockGroup,
    ChoiceBlock,
    Column,
    Document,
    FigureBlock,
    FoldBlock,
    Picture,
    SectionBlock,
    Span,
    TextBlock,
    TilesBlock,
    TileValue,
    Trace,
    Traces,
)

if TYPE_CHECKING:
    from abers.pages.blocks import Block

__all__ = ["EXAMPLES"]


def flights() -> Document:
    """Return the report of a stream of two classes that moves."""
    upper, lower = over_time(NUMBERS["UPPER"], [6.4]), over_time(NUMBERS["LOWER"], [6.4])
    figure = FigureBlock(
        key="over-time-halves",
        legend=LEGEND,
        pictures=(
            Picture(
                "over_time",
                upper,
                "Cases with a raw probability of 0.27 and above: raw promised far more than came",
                title="Raw probability of 0.27 and above",
            ),
            Picture(
                "over_time", lower, "Cases with a raw probability below 0.27", title="Below 0.27"
            ),
        ),
        traces=Traces(
            title="≥ 0.27 over time",
            low="17 %",
            high="55 %",
            traces=(
                Trace("model promised", tuple(upper["raw"]), "raw"),
                Trace("came", tuple(upper["came"])),
            ),
        ),
    )
    return Document(
        title="flights.csv",
        lead=(
            "The model’s higher probabilities promise too much: 36 % promised, 24 % came. "
            "Calibrated ones are better, but lately still too high."
        ),
        facts=(
            "50,000 predictions, all labels came",
            "1 Jan – 30 Nov 2013, time of New York",
            "each prediction is scored once, as it was issued",
            "not counted: the first 218 (warm-up, fewer than 200 labels known)",
        ),
        blocks=(
            _flight_answers(),
            SectionBlock(
                key="over-time",
                title="Promised and came over time",
                why=(
                    "Each dot is 2,000 predictions. Where a line runs above the dots, too much was "
                    "promised. The shaded range is of each dot alone."
                ),
                blocks=(figure,),
            ),
            AlarmBlock(
                key="alarm-text",
                head="Alarm, 7 Jan: the model is too high",
                words="(gap −19 points, 99 labels since 6 Jan)",
                place="text",
            ),
            TextBlock(
                key="outside-text",
                words="p is outside its interval in 98 % of cases: see “Methods” (-v).",
                place="text",
            ),
            TextBlock(
                key="outside",
                note=True,
                place="page",
                words=(
                    Span("p lies outside its interval in 98 % of cases", "strong"),
                    (
                        ", by 6 points on average. The interval [p0, p1] is that of one method, "
                        "“all labels”; p is a mean of seven, and others are trusted more now. The "
                        "verdicts above are about p: use p. The guarantee of the interval is for "
                        "streams that do not move."
                    ),
                ),
                record={"share": 0.98214, "points": 6.0321},
            ),
            ChoiceBlock(
                key="period",
                words="Numbers below are of",
                detail="more",
                options=(
                    BlockGroup(name="now: latest 4,923", blocks=_period("now")),
                    BlockGroup(name="whole stream: 49,782", blocks=_period("all")),
                ),
            ),
            *_folds(),
        ),
        foot="Made by abers 0.1.0 from flights.csv.",
    )


def _flight_answers() -> AnswersBlock:
    when = "Jan to Nov"
    upper = over_time(NUMBERS["UPPER"])
    raw, served = (
        [100 * (came - promised) for came, promised in zip(upper["came"], upper[view], strict=True)]
        for view in ("raw", "calibrated")
    )
    saved = [6.1, 2.2, 4.0, 9.0, 0.9, 3.1, 4.6, 5.5, 4.4, 4.8, 4.2, 2.0, 3.9, 1.1, 3.5, 5.2, 3.0]
    gap_caption = f"gap, {when}; green: tolerance"
    return AnswersBlock(
        key="answers",
        note="Latest 4,923 labels, 28 Oct – 30 Nov 2013, New York. "
        "Ranges: 95 %, however often you look.",
        record={"first_row": 45_078, "last_row": 50_000, "labels": 4_923},
        cards=(
            AnswerBlock(
                key="model",
                name="Model",
                question="Is my model telling the truth?",
                state="no",
                group="≥ 0.27",
                sentence="promised 36 %, came 24 %",
                number="12",
                unit="points too high",
                range="range 6 to 18, in 747 of 4,923 labels",
                remark="right on average",
                spark=spark(raw, "raw", "Gap of raw probabilities over time", gap_caption),
                then="Since 10 Jan 2013. Whole stream: 8.8 points too high (7.3 to 10.3). "
                "Alarm on 7 Jan 2013.",
                record={"state": "no", "gap": -11.9214, "low": -17.8332, "high": -6.0096},
            ),
            AnswerBlock(
                key="calibrated",
                name="Calibrated",
                question="Is what is served right?",
                state="partly",
                group="≥ 0.26",
                sentence="promised 38 %, came 28 %",
                number="9",
                unit="points too high",
                range="range 3 to 15, in 866 of 4,923 labels",
                remark="right on average",
                spark=spark(
                    served, "calibrated", "Gap of calibrated probabilities over time", gap_caption
                ),
                then="Whole stream: right in both halves; below 0.1 3.1 points too low "
                "(1.7 to 4.5). No alarm.",
                record={"state": "partly", "gap": -9.2607, "low": -15.3, "high": -3.2},
            ),
            AnswerBlock(
                key="pays",
                name="Pays",
                question="Does calibration pay?",
                state="yes",
                sentence="log loss 0.497 instead of 0.521",
                number="4.5 %",
                unit="lower",
                range="at least 3.7 %, over 49,782 labels",
                spark=spark(
                    saved,
                    "calibrated",
                    "Loss saved over time in per cent: positive in all windows",
                    f"per cent saved, {when}; line: 0",
                    tolerance=None,
                ),
                then="Latest 4,923 labels: 3.0 % (range −0.5 to +6.4 %): "
                "not certain for these alone.",
                record={"state": "yes", "saved": 0.045297, "at_least": 0.0371},
            ),
        ),
    )


def _period(period: str) -> tuple[Block, ...]:
    lines = {
        "now": (NUMBERS["RAW_NOW"], NUMBERS["CALIBRATED_NOW"]),
        "all": (NUMBERS["RAW_ALL"], NUMBERS["CALIBRATED_ALL"]),
    }[period]
    what = {"now": "the latest 4,923 labels, 28 Oct – 30 Nov 2013", "all": "the whole stream"}
    raw = groups(
        f"groups-raw-{period}",
        (Span("Raw: what the model said", "raw"),),
        "raw",
        f"Raw probabilities by group, {what[period]}",
        lines[0],
    )
    served = groups(
        f"groups-calibrated-{period}",
        (Span("Calibrated: what is served", "calibrated"),),
        "calibrated",
        f"Calibrated probabilities by group, {what[period]}",
        lines[1],
    )
    return (
        SectionBlock(
            key=f"groups-{period}",
            title="Where is it off?",
            why=(
                "The gap is came − promised, in points. A bar within the green is right, outside "
                "it wrong; one that only clears the middle line leans. All ranges hold together "
                "with 95 %, however often you look."
            ),
            blocks=(raw, served),
            detail="more",
        ),
        SectionBlock(
            key=f"against-{period}",
            title="Promised against came",
            why=(
                "On the dotted line promise and outcome agree. Dots are the groups of the table "
                "above, with their ranges; the thin line needs no groups (isotonic regression). "
                "Green is the tolerance. Below: cases in each tenth."
            ),
            blocks=(
                FigureBlock(
                    key=f"reliability-{period}",
                    pictures=(
                        reliability("raw", raw, [1379, 2040, 959, 365, 114, 43, 15, 1, 3, 4]),
                        reliability(
                            "calibrated", served, [1340, 2100, 836, 368, 185, 62, 21, 8, 3, 0]
                        ),
                    ),
                ),
            ),
        ),
    )


def _folds() -> tuple[Block, ...]:
    tests = simple(
        "tests",
        (
            Column(head="test", align="left"),
            Column(head="evidence now"),
            Column(head="alarm line", room="much"),
            Column(head="state", align="left"),
        ),
        NUMBERS["TESTS"],
        "Tests of raw and calibrated probabilities",
        detail="more",
        note=(
            "Evidence of 100 to 1: a bet against the probabilities turned 1 into 100. Only “beyond "
            "tolerance, lately” raises alarms. A test that is on stays on until the fault is over."
        ),
    )
    methods = simple(
        "methods-table",
        (
            Column(head="method", align="left"),
            Column(head="what it does", align="left", room="much"),
            Column(head="weight now"),
            Column(head="loss against raw"),
        ),
        NUMBERS["METHODS"],
        "Methods with their weights",
        detail="more",
        note="The loss of p is at most 59.6 nats above that of raw, on any stream.",
    )
    alarm = AlarmBlock(
        key="alarm",
        head="7 Jan 2013, 09:08: raw is too high.",
        words="Since about 6 Jan, 15:50: 99 labels, 37.5 promised, 19 came (gap −19 points).",
        small="While all odds are within a factor of 1.25, at least 1,000,000 labels lie between "
        "false alarms on average.",
        detail="more",
    )
    check = TextBlock(
        key="check",
        detail="more",
        words=(
            "To check a row: filter ",
            Span("predictions.parquet", "code"),
            " to rows 45,078 to 50,000, keep ",
            Span("p ≥ 0.26", "code"),
            (
                ", join your labels. 866 rows, 245 labels 1, sum of p 325.2: "
                "gap (245 − 325.2) / 866 = −9.3 points."
            ),
        ),
    )
    words = simple(
        "words-table",
        (Column(head="word", align="left"), Column(head="meaning", align="left")),
        NUMBERS["WORDS"],
        "What the words mean",
        detail="more",
    )
    return (
        FoldBlock(
            key="alarms",
            title="Alarms and tests",
            summary="1 alarm, for raw, on 7 Jan 2013. A test bets against the probabilities; "
            "winning is evidence.",
            blocks=(alarm, tests),
        ),
        FoldBlock(
            key="methods",
            title="Methods",
            summary="p is a weighted mean of seven calibration methods; now mostly “switching”.",
            blocks=(methods,),
        ),
        FoldBlock(
            key="words",
            title="What the words mean, and how to check a number",
            summary="With the rows and the sum behind one number.",
            blocks=(words, check),
        ),
    )


QUESTIONS = (
    ("model", "Model", "Is my model telling the truth?"),
    ("calibrated", "Calibrated", "Is what is served right?"),
    ("pays", "Pays", "Does calibration pay?"),
)


def _state(title: str, *cards: tuple[str, str, str], **more: object) -> Document:
    """Return a live page in a state: its cards are a state, a word and a sentence."""
    answers = AnswersBlock(
        key="answers",
        cards=tuple(
            AnswerBlock(
                key=key,
                name=name,
                question=question,
                state=state,  # type: ignore[arg-type] # a text
                word=word,
                sentence=sentence,
            )
            for (key, name, question), (state, word, sentence) in zip(QUESTIONS, cards, strict=True)
        ),
        note=more.get("note", ""),  # type: ignore[arg-type] # words
        progress=more.get("progress"),  # type: ignore[arg-type] # two numbers
    )
    tiles = TilesBlock(
        key="counts",
        detail="more",
        tiles=(
            TileValue("50,000", "predictions"),
            TileValue("49,978", "labels"),
            TileValue("22", "wait for a label; 0 overdue"),
            TileValue("2.6 h", "median label delay"),
            TileValue("0", "unreadable records"),
        ),
    )
    alarm = more.get("alarm")
    alarms = (alarm,) if isinstance(alarm, AlarmBlock) else ()
    return Document(title=title, blocks=(*alarms, tiles, answers))


def waiting() -> Document:
    """Return a live page before enough labels came."""
    return _state(
        "flights",
        ("waiting", "", "36 of 200 labels"),
        ("waiting", "", "until then p is the raw probability"),
        ("waiting", "", "36 of 200 labels"),
        progress=(36, 200),
        note="The first label is expected about 2.6 hours after its prediction.",
    )


def undecided() -> Document:
    """Return a live page on which the labels decide nothing yet."""
    return _state(
        "flights",
        ("undecided", "", "no fault found; up to 6 points too high is possible (tolerance 2.2)"),
        ("undecided", "", "no fault found; about 1,700 more labels decide"),
        ("undecided", "", "log loss 0.510 instead of 0.521: 2.1 % lower (range −1.0 to +5.2 %)"),
        note="Latest 812 labels, 3 – 9 Jan 2013, New York.",
    )


def wrong() -> Document:
    """Return a live page with an alarm that is active."""
    return _state(
        "flights",
        ("no", "", "promised 38 %, came 19 %"),
        ("undecided", "", "no fault found"),
        ("undecided", "", "log loss 0.519 instead of 0.521"),
        alarm=AlarmBlock(
            key="alarm",
            head="Alarm, 7 Jan, 09:08: the model is too high.",
            words="99 labels since about 6 Jan, 15:50: 37.5 promised, 19 came.",
            active=True,
        ),
    )


def recovering() -> Document:
    """Return a live page whose fault is not seen any more."""
    return _state(
        "flights",
        ("recovering", "", "the fault of 7 Jan is not seen in the latest 4,120 labels"),
        ("yes", "", "promised 17.5 %, came 16.9 %"),
        ("yes", "", "log loss 0.494 instead of 0.521"),
        alarm=AlarmBlock(
            key="over",
            head="Recovering since 3 Mar.",
            words="The fault of 7 Jan is not seen in the latest 4,120 labels. It is called over "
            "when both halves are right.",
            state="yes",
            active=True,
        ),
    )


def silent() -> Document:
    """Return a live page without new labels, whose answers are old."""
    return _state(
        "flights",
        ("waiting", "No", "as of 14:08: 12 points too high"),
        ("waiting", "Yes", "as of 14:08: promised 17.5 %, came 16.9 %"),
        ("waiting", "Yes", "as of 14:08: 4.5 % lower log loss"),
        alarm=AlarmBlock(
            key="silent",
            head="No label for 5 h 20 min.",
            words="312 predictions wait; the oldest since 06:15. Verdicts are as of 14:08.",
            state="partly",
            active=True,
        ),
    )


EXAMPLES = {
    "two_classes": flights,
    "classes": classes,
    "numbers": temperatures,
    "models": models,
    "waiting": waiting,
    "undecided": undecided,
    "wrong": wrong,
    "recovering": recovering,
    "silent": silent,
}

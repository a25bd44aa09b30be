"""Documents of models, from real streams: `abers.pages.model_document` and what it is made of."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from tests.engine.monitoring.label_monitor import Labels
from tests.engine.pages import test_html
from tests.engine.pages.model_streams import STREAMS, blocks_of, document_of, of_kind

from abers.monitoring import BinaryMonitor, ScoredRows
from abers.pages.blocks import (
    AlarmBlock,
    AnswerBlock,
    AnswersBlock,
    Document,
    FigureBlock,
    Mark,
    Picture,
    TableBlock,
    TextBlock,
    plain,
    record,
    walk,
)
from abers.pages.model_document import model_blocks
from abers.pages.model_findings import ModelDetails, Silence
from abers.pages.models_table import ModelRow, models_blocks, states_line
from abers.pages.text import text
from abers.stream import Label, Observation, Processor, Settings

if TYPE_CHECKING:
    from abers.pages.blocks import Block, Cell, Detail

MINUS = "\N{MINUS SIGN}"
TESTED = [name for name in STREAMS if name not in {"waiting", "unlabelled", "untested"}]
QUIET = {
    *("just-begun", "one-class", "row-numbers", "margins", "numbers", "recovered"),
    *("many-classes", "medians", "as-it-is"),
}
DETAILS: list[Detail] = ["answers", "usual", "more"]


def block(document: Document, key: str) -> Any:  # noqa: ANN401 - of any kind
    """Return the block of a key."""
    return next(one for one in walk(document.blocks) if one.key == key)


def words(cell: Cell) -> str:
    """Return the words of a cell; none of a picture."""
    match cell:
        case Mark():
            return f"{cell.word} {cell.note}".strip()
        case Picture():
            return ""
        case said:
            return plain(said)


def cells(table: TableBlock) -> list[list[str]]:
    """Return the words of all cells without signs that do not break."""
    return [
        [words(one).replace("\N{NO-BREAK SPACE}", " ") for one in row.cells] for row in table.rows
    ]


def fixed(value: float, places: int, *, sign: bool = False) -> str:
    """Return a number with decimals: a minus of its own length, more where it would be 0."""
    while value and round(value, places) == 0.0:
        places += 1
    text_ = f"{abs(value):,.{places}f}"
    before = MINUS if value < 0.0 else "+" if sign and value > 0.0 else ""
    return before + text_


def gap_and_range(row: dict[str, Any]) -> list[str]:
    """Return gap and range of a record as a table has them."""
    low, high = row["low"], row["high"]
    places = 0 if high - low >= 10.0 else 1
    ends = [fixed(one, places, sign=True) for one in (low, high)]
    return [fixed(row["gap"], places, sign=True), " to ".join(ends)]


def group_cells(row: dict[str, Any]) -> list[str]:
    """Return a row of a record as the table of groups has it."""
    shares = [fixed(100.0 * row[name], 1) for name in ("promised", "came")]
    return [row["name"], f"{row['labels']:,}", *shares, *gap_and_range(row), "", row["status"]]


@pytest.mark.parametrize("name", [one for one in TESTED if one not in {"numbers", "medians"}])
def test_groups_are_their_record(name: str) -> None:
    """Each number in the tables of groups is that of the record, formatted."""
    document = document_of(name)
    periods = record(document)["period"]
    keys = {one.key for one in walk(document.blocks)}
    shown = 0
    for period in ("now", "whole"):
        for view, found in periods[period]["views"].items():
            if f"groups-{view}-{period}" not in keys:
                assert periods["now"]["labels"] == periods["whole"]["labels"]
                continue
            table = block(document, f"groups-{view}-{period}")
            assert cells(table) == [*map(group_cells, found["rows"])]
            assert [row.main for row in table.rows] == [row["main"] for row in found["rows"]]
            shown += 1
    assert shown >= len(periods["now"]["views"])


def test_bars_have_the_numbers_of_their_rows() -> None:
    """The bar of a gap has gap, range and tolerance in full precision, on the scale of a table."""
    document = document_of("two")
    rows = record(document)["period"]["now"]["views"]["raw"]["rows"]
    bars = [row.cells[6].data for row in block(document, "groups-raw-now").rows]
    for row, bar in zip(rows, bars, strict=True):
        assert (bar["gap"], bar["low"], bar["high"]) == (row["gap"], row["low"], row["high"])
        assert bar["tolerance"] == (row["tolerance_low"], row["tolerance_high"])
    assert len({bar["limit"] for bar in bars}) == 1
    assert bars[0]["limit"] >= max(abs(row["gap"]) for row in rows)


def test_classes_are_their_record() -> None:
    """Each class has a row for each view, with its numbers, and the group that is worst."""
    document = document_of("three")
    expected = []
    for one in record(document)["classes"]["classes"]:
        for view, found in one["views"].items():
            first = found["rows"][0]
            shares = [fixed(100.0 * first[name], 1) for name in ("promised", "came")]
            numbers = [f"{first['came_count']:,}", *shares, *gap_and_range(first)]
            expected.append([f"{one['name']}, {view}", *numbers])
    table = cells(block(document, "classes-table"))
    assert [row[:-1] for row in table] == expected
    off = [row[-1] for row in table if row[-1].startswith(("too", "leans"))]
    assert off
    assert all(re.search(r"(high|low) (All|[<≥0]).*: [+−]\d", one) for one in off)


def test_intervals_are_their_record() -> None:
    """Each level has its labels, shares, gap, range and mean width, in both periods."""
    document = document_of("numbers")
    (period,) = {
        one.key.split("-")[1]
        for one in walk(document.blocks)
        if one.key.startswith("intervals-") and one.key.endswith("-table")
    }
    rows = record(document)["period"][period]["views"]["calibrated"]["rows"]
    for row, shown in zip(rows, cells(block(document, f"intervals-{period}-table")), strict=True):
        n = row["labels"]
        shares = [
            fixed(100.0 * row[name] / n, 1) for name in ("came_count", "below_count", "above_count")
        ]
        below = f"{shares[1]} / {shares[2]}"
        head = [row["name"].replace("\N{NO-BREAK SPACE}", " "), f"{n:,}", shares[0]]
        assert shown[:6] == [*head, *gap_and_range(row), below]
        assert float(shown[6]) == pytest.approx(row["width"], rel=0.005)
        assert shown[8] == row["status"]


def test_the_latest_labels_are_those_of_the_stream() -> None:
    """The figure of the latest labels has the last 60, with the ends of all intervals."""
    stream, document = of_kind("numbers"), document_of("numbers")
    data = block(document, "latest-figure").pictures[0].data
    last = [float(stream.labels[one.id]) for one in stream.predictions[-60:]]
    assert data["label"] == last
    assert [one["level"] for one in data["bands"]] == [95, 90, 50]
    assert data["unit"] == " °C"


def test_methods_are_their_record() -> None:
    """Weights and losses are those of the record; the mixture is last, and the base is 0."""
    document = document_of("two")
    experts = record(document)["methods"]["experts"]
    table = cells(block(document, "methods-table"))
    names = {"unchanged": "raw", "all labels": "venn_abers", "switching": "jumper"}
    for row in table:
        if row[0] in names:
            one = experts[names[row[0]]]
            change = 100.0 * (one["loss"] / experts["raw"]["loss"] - 1.0)
            assert row[2] == f"{fixed(100.0 * one['weight'], 0)} %"
            assert row[3] == f"{fixed(change, 1, sign=True)} %"
    assert len(table) == len(experts) == 12
    assert table[-1][0] == "calibrated"
    weights = [int(row[2].removesuffix(" %")) for row in table[:-1]]
    assert weights == sorted(weights, reverse=True)
    points = block(document, "weights").record["points"]
    assert points[-1]["experts"] == experts


def test_a_tiny_weight_is_no_zero() -> None:
    """A weight that no reader would count is below the least that is shown."""
    document = document_of("row-numbers")
    weight = record(document)["methods"]["experts"]["raw"]["weight"]
    assert 0.0 < weight < 0.001
    shown = {row[0]: row[2] for row in cells(block(document, "methods-table"))}
    assert shown["unchanged"] == "< 0.1 %"


def test_scores_are_their_record() -> None:
    """Log losses are those of the answers, and all scores those of the record."""
    document = document_of("two")
    found, losses = record(document)["scores"], record(document)["period"]["whole"]["losses"]
    table = {row[0]: row[2:] for row in cells(block(document, "scores-table"))}
    assert table["log loss"][:2] == [fixed(losses[one], 3) for one in ("raw", "calibrated")]
    for name, key in (("Brier score", "brier"), ("ECE, ten bins", "ece")):
        assert table[name][:2] == [fixed(found[one][key], 4) for one in ("raw", "calibrated")]
    parts = [found["raw"][one] for one in ("miscalibration", "discrimination", "uncertainty")]
    assert parts[0] - parts[1] + parts[2] == pytest.approx(found["raw"]["brier"], abs=1e-4)


@pytest.mark.parametrize("name", ["two", "three", "as-it-is", "numbers"])
def test_the_calibration_error_is_a_sentence(name: str) -> None:
    """Ranges of both views are those of the record, rounded to the cautious side; none of numbers.

    The whole stream has a sentence of its own if it has more labels than now, and else the only.
    """
    document = document_of(name)
    periods = record(document)["period"]
    texts = [one for one in walk(document.blocks) if isinstance(one, TextBlock)]
    said = [one for one in texts if one.key == "calibration-error"]
    if name == "numbers":
        assert not said
        return
    now, *whole = plain(said[0].words).removesuffix(".").split(". Whole stream: ")
    assert bool(whole) == (periods["now"]["labels"] < periods["whole"]["labels"])
    of = " of the first choice" if name == "three" else ""
    assert now.startswith(f"The calibration error{of} is ")
    of_each = ("now", "whole") if whole else ("whole",)
    for words_of, period in zip((now, *whole), of_each, strict=True):
        views = periods[period]["views"]
        assert len(re.findall("between|at most", words_of)) == len(views)
        for view, found in views.items():
            low, high = (100.0 * found["error"][one] for one in ("low", "high"))
            parts = words_of.split(", and ")
            part = next(one for one in parts if f"({view})" in one or len(views) == 1)
            numbers = [float(one) for one in re.findall(r"[\d.]+", part)]
            assert numbers[-1] >= high
            assert numbers[-1] - high <= (1.0 if high - low >= 10.0 else 0.1) + 1e-9
            assert len(numbers) == 1 + (low > 0.0)
            assert low <= 0.0 or numbers[0] <= low


def test_the_calibration_error_of_a_young_stream_is_over_tenths() -> None:
    """Gaps that cancel between tenths count, though the rows of a young window are few."""
    processor = Processor(Settings(scores="probability", calibrator="none"))
    for k in range(1_200):
        processor.process(Observation(f"{k}", k, "m", (0.25, 0.75)[k % 2]))
        processor.process(Label(f"{k}", k, "m", k // 2 % 2))  # a half of each
    document = Document(title="young", blocks=model_blocks(processor.monitors[0]))
    (said,) = (
        plain(one.words)
        for one in walk(document.blocks)
        if isinstance(one, TextBlock) and one.key == "calibration-error"
    )
    low, high = (float(one) for one in re.findall(r"[\d.]+(?= )", said))
    assert 10.0 < low <= 25.0 <= high


@pytest.mark.parametrize("name", TESTED)
def test_a_card_says_the_sentence_of_its_answer(name: str) -> None:
    """Group, sentence, number, unit and range of a card make the sentence of its answer."""
    document = document_of(name)
    checked = 0
    for card in (one for one in walk(document.blocks) if isinstance(one, AnswerBlock)):
        answer = card.record
        if answer["state"] in {"no", "partly"} and answer["question"] != "pays":
            group = f"{card.group}: " if card.group else ""
            ends, _, counted = card.range.partition(", ")
            said = f"{group}{card.sentence}: {card.number} {card.unit} ({ends}), {counted}."
            assert (said[:1].upper() + said[1:]) == answer["sentence"]
            checked += 1
        elif card.number and answer["question"] == "pays":
            ends = card.range.partition(", over ")[0]
            said = f"{card.sentence}: {card.number} {card.unit}, {ends}."
            assert (said[:1].upper() + said[1:]) == answer["sentence"]
        elif not (answer["question"] == "model" and card.word):
            said = f"{card.sentence}."
            assert (said[:1].upper() + said[1:]) == answer["sentence"]
    assert checked or name in QUIET


@pytest.mark.parametrize("name", TESTED)
def test_a_text_speaks_of_nothing_that_a_terminal_cannot_show(name: str) -> None:
    """With all detail a text names no dots, bars, colours, bold rows, or a report."""
    said = text(document_of(name), width=100, detail="more")
    shown = r"\b(dots?|bars?|shaded|bold|green|grey|report|page|below:)\b"
    assert re.findall(shown, said) == []


def test_one_count_for_an_alarm_everywhere() -> None:
    """Banner, fold and record say the same count, which is that of the output."""
    stream, document = of_kind("two"), document_of("two")
    found = record(document)["alarms"]["alarms"]
    assert found
    shown = [one for one in walk(document.blocks) if isinstance(one, AlarmBlock)]
    for one in found:
        p = "score" if one["view"] == "raw" else "p"
        rows = [
            (getattr(each, p), stream.labels[each.id])
            for each in stream.predictions
            if one["since"] <= each.time <= one["time"] and each.id in stream.labels
        ]
        assert one["labels"] == len(rows)
        assert one["promised"] == pytest.approx(sum(score for score, _ in rows))
        assert one["came"] == sum(label for _, label in rows)
        said = (
            f"{len(rows):,} labels, {fixed(one['promised'], 1)} promised, {one['came']:,.0f} came."
        )
        assert sum(plain(each.words).endswith(said) for each in shown) >= 1
    assert all(" labels, " in plain(each.words) for each in shown)


def test_the_worked_example_can_be_followed() -> None:
    """The rows and sums of the example give its gap, from the output alone."""
    stream, document = of_kind("two"), document_of("two")
    said = plain(block(document, "check").words).replace(",", "").replace(MINUS, "-")
    first, last = map(int, re.findall(r"rows (\d+) to (\d+)", said)[0])
    rows = [one for one in stream.predictions[first - 1 : last] if one.id in stream.labels]
    p = np.array([one.p for one in rows])
    y = np.array([stream.labels[one.id] for one in rows])
    kept = re.findall(r"keep p (≥|<|in) ([\d.]+)(?:–([\d.]+))?", said)
    if kept:
        ((way, a, b),) = kept
        inside = {"≥": p >= float(a), "<": p < float(a)}.get(way)
        inside = (p >= float(a)) & (p < float(b)) if inside is None else inside
        p, y = p[inside], y[inside]
    n, k, s = re.findall(r"(\d+) rows (\d+) labels 1 sum of p ([\d.]+)", said)[0]
    assert (int(n), int(k)) == (len(p), int(y.sum()))
    assert float(s) == pytest.approx(p.sum(), abs=0.05)
    gap = re.findall(r"= ([+-]?[\d.]+) points", said)[0]
    assert float(gap) == pytest.approx(100.0 * (y - p).mean(), abs=0.5 if "." not in gap else 0.051)


def test_figures_over_time_have_the_points_of_the_record() -> None:
    """Each dot is a point of the record, with its range and both promises."""
    document = document_of("two")
    points = record(document)["over-time"]["points"]
    upper, lower = block(document, "over-time-figure").pictures
    for picture, key in ((upper, "upper"), (lower, "lower")):
        dots = [one["groups"].get(key) for one in points]
        data = picture.data
        assert data["labels"] == [one["labels"] if one else 0 for one in dots]
        assert data["came"] == [one["came"]["calibrated"] if one else None for one in dots]
        for view in ("raw", "calibrated"):
            assert data[view] == [one["promised"][view] if one else None for one in dots]
        assert data["zone"] == "Europe/Berlin"
    assert upper.data["ends"] == lower.data["ends"]


def test_event_times_that_are_no_dates() -> None:
    """Without dates the figures have no zone, and the words call them event times."""
    document = document_of("row-numbers")
    assert block(document, "over-time-figure").pictures[0].data["zone"] is None
    note = plain(block(document, "answers").note).replace("\N{NO-BREAK SPACE}", " ")
    assert re.match(r"Latest [\d,]+ labels, event times [\d,]+ – [\d,]+\. ", note)


@pytest.mark.parametrize("name", STREAMS)
def test_a_page_passes_what_examples_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are whole, ask nobody, and have headings, captions and labels for all readers."""
    document = document_of(name)
    monkeypatch.setitem(test_html.DOCUMENTS, name, lambda: document)
    test_html.test_a_page_is_whole_and_asks_nobody(name)
    test_html.test_a_reader_without_eyes_has_it_all(name)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("detail", DETAILS)
def test_a_text_keeps_its_width(name: str, detail: Detail) -> None:
    """No line is wider than the terminal."""
    for width in (50, 80):
        lines = text(document_of(name), width, detail=detail).splitlines()
        assert lines
        assert max(map(len, lines)) <= width


def test_waiting_says_how_many_labels_came() -> None:
    """Before the end of the warm-up each answer waits, with the labels that came and must."""
    document = document_of("waiting")
    answers = block(document, "answers")
    assert {card.state for card in answers.cards} == {"waiting"}
    came, least = answers.progress
    assert answers.cards[0].sentence == f"{came} of {least} labels"
    assert not any(
        isinstance(one, FigureBlock) and not one.pictures for one in walk(document.blocks)
    )
    assert "period" not in {one.key for one in walk(document.blocks)}


def test_a_page_before_the_first_label() -> None:
    """Before any label the methods have a worst case in total, and none a label."""
    document = document_of("unlabelled")
    assert {card.state for card in block(document, "answers").cards} == {"waiting"}
    note = block(document, "methods-table").note
    assert "the total loss is at most 416 nats above that of raw" in note


def test_without_tests_one_card_says_so() -> None:
    """Without tests a page has one undecided answer, which says how to have more."""
    answers = block(document_of("untested"), "answers")
    (card,) = answers.cards
    assert card.state == "undecided"
    assert card.sentence == "tests are off, so labels decide nothing; set monitoring.tests = true"


def test_without_raw_probabilities() -> None:
    """Scores that are no probabilities have no table, no loss, and a reason on their cards."""
    document = document_of("margins")
    keys = {one.key for one in walk(document.blocks)}
    assert "groups-calibrated-now" in keys
    assert "groups-raw-now" not in keys
    assert block(document, "model").state == block(document, "pays").state == "undecided"
    assert "no probabilities" in block(document, "model").sentence


def test_scores_that_are_served_as_they_are() -> None:
    """Without a calibrator there are three answers, two of them about the same probabilities."""
    document = document_of("as-it-is")
    cards = {card.key: card for card in block(document, "answers").cards}
    assert [*cards] == ["model", "calibrated", "pays"]
    assert cards["model"].state == cards["calibrated"].state != "waiting"
    assert cards["pays"].sentence == "the raw probability is served as it is"


def test_without_an_interval_nothing_is_promised() -> None:
    """Of medians alone there is no figure over time, no table of intervals, and no example."""
    document = document_of("medians")
    keys = {one.key for one in walk(document.blocks)}
    assert keys.isdisjoint({"over-time", "check", "intervals-now"})
    assert block(document, "calibrated").sentence == "no central interval is served"


def test_a_text_has_few_of_many_classes() -> None:
    """A page has every class; a text has ten, those first that are wrong by most."""
    document = document_of("many-classes")
    assert len(block(document, "classes-table").rows) == 2 * 14
    table = block(document, "classes-text")
    assert len(table.rows) == 10
    assert table.note == "… 4 more classes"


def test_a_text_of_numbers_has_the_intervals() -> None:
    """A text of usual detail has the levels of intervals, and no groups of probabilities."""
    said = text(document_of("numbers"), 80)
    assert re.search(r"^  90.%", said, re.MULTILINE)
    assert "Where is it off" not in text(document_of("two"), 80)


def test_a_silence_makes_answers_old() -> None:
    """While no labels come, answers keep their word, and say as of when they are."""
    since = 1_700_000_000_000
    document = document_of("two", silence=Silence(19_200_000, 312, since, since))
    said = block(document, "silence")
    assert said.head.replace("\N{NO-BREAK SPACE}", " ") == "No label for 5 h 20 min."
    assert (
        plain(said.words)
        .replace("\N{NO-BREAK SPACE}", " ")
        .startswith("312 predictions wait; the oldest since 14 Nov")
    )
    card = block(document, "model")
    assert (card.state, card.word) == ("waiting", "No")
    assert card.sentence.startswith("as of 14")


def test_the_record_is_that_of_the_answers() -> None:
    """Answers, periods and points stand in the record in full precision, under their keys."""
    stream, document = of_kind("two"), document_of("two")
    answers = stream.processor.monitors[0].answers("Europe/Berlin")
    assert answers is not None
    whole, found = answers.record(), record(document)
    assert found["period"] == {name: whole[name] for name in ("now", "whole")}
    assert found["over-time"]["points"] == whole["over_time"]
    assert found["answers"] == {name: whole[name] for name in ("wrong_by", "warm_up")}
    for one in whole["answers"]:
        assert found[one["question"]] == one


def test_bars_below_are_the_tenths_of_the_table() -> None:
    """Of the whole stream the bars have the labels of the tenths; the isotonic line ascends."""
    document = document_of("two")
    rows = record(document)["period"]["whole"]["views"]["raw"]["rows"]
    data = block(document, "reliability-whole").pictures[0].data
    labels = {one["key"]: one["labels"] for one in rows}
    assert data["tenths"] == [labels.get(f"tenth-{k}", 0) for k in range(10)]
    assert sum(data["tenths"]) == labels["all"]
    assert data["isotonic_x"] == sorted(data["isotonic_x"])
    assert data["isotonic_y"] == sorted(data["isotonic_y"])
    for row, low, high in zip(
        [one for one in rows if not one["main"]], data["low"], data["high"], strict=True
    ):
        ends = (row["promised"] + row["low"] / 100.0, row["promised"] + row["high"] / 100.0)
        assert (low, high) == pytest.approx((max(ends[0], 0.0), min(ends[1], 1.0)))


def test_a_fault_that_is_over() -> None:
    """A fault that is not seen any more has a banner with its day, and no alarm that is active."""
    document = document_of("recovered")
    card = block(document, "model")
    assert card.state == "recovering"
    said = block(document, "recovering-model")
    assert (said.head, said.state, said.active) == ("Recovering.", "yes", True)
    assert plain(said.words).startswith(card.record["sentence"])
    assert "the fault of" in card.sentence


def test_models_of_several_partitions_together() -> None:
    """A model in several partitions has no row numbers, and its counts are the sums."""
    monitors = of_kind("segments").processor.monitors
    whole = type(monitors[0]).total(monitors)
    document = Document(
        title="both", blocks=model_blocks(whole, ModelDetails(where="predictions.parquet"))
    )
    each = [one.answers() for one in monitors]
    labels = sum(one.now.labels for one in each if one is not None and one.now is not None)
    assert record(document)["period"]["now"]["labels"] == labels
    assert plain(block(document, "answers").note).startswith(f"Latest {labels:,} labels")
    assert " to rows " not in plain(block(document, "check").words)


@pytest.mark.parametrize(
    ("state", "since", "banner"),
    [("no", 0, True), ("recovering", 0, False), ("yes", None, False), ("no", 1 << 50, False)],
)
def test_an_alarm_stands_while_its_incident_is_open(
    state: str,
    since: int | None,
    banner: bool,  # noqa: FBT001 - a case
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A banner has the last alarm of an open incident; none is above a Yes, or a later incident."""
    monitor = of_kind("two").processor.monitors[0]
    known = monitor.answers("UTC")
    assert known is not None
    answers = [
        msgspec.structs.replace(one, state=state, since=since) if one.question == "model" else one
        for one in known.answers
    ]
    found = msgspec.structs.replace(known, answers=answers)
    monkeypatch.setattr(type(monitor), "answers", lambda _self, _zone="UTC": found)
    keys = [one.key for one in document_of("two").blocks]
    assert ("alarm-active-raw" in keys) == banner
    assert ("alarm-text" in keys) != banner


def test_card_and_alarm_say_one_date() -> None:
    """The card says since when as its alarm does, and the record has the same time."""
    document = document_of("two")
    card, alarm = block(document, "model"), block(document, "alarm-active-raw")
    (raised,) = (one for one in record(document)["alarms"]["alarms"] if one["view"] == "raw")
    time = datetime.fromisoformat(card.record["since"])
    assert time.timestamp() * 1000 == raised["since"]
    day, _, _ = plain(alarm.words).removeprefix("Since ").partition(",")
    assert card.then.startswith(f"Since {day}.")


@pytest.mark.parametrize(
    ("name", "guarantee"),
    [
        ("two", "its guarantee is for streams that do not move"),
        ("folds", "with folds it has no guarantee"),
        ("three", "their guarantee is for streams that do not move"),
    ],
)
def test_p_outside_its_interval_is_explained(name: str, guarantee: str) -> None:
    """A note has the share of p outside its interval, and says what interval and p are."""
    document = document_of(name)
    stream, note = of_kind(name), block(document, "outside")
    said, share = plain(note.words).replace("\N{NO-BREAK SPACE}", " "), note.record["share"]
    assert said.startswith(f"p lies outside its interval in {100.0 * share:.0f} % of cases.")
    assert guarantee in said
    assert ("folds" in said) == (name == "folds")
    assert "mean of" in said
    if name == "two":
        outside = [
            not one.p0 <= one.p <= one.p1 for one in stream.predictions if one.id in stream.labels
        ]
        assert share == pytest.approx(sum(outside) / len(outside))


def test_monitors_of_their_own_have_a_fold() -> None:
    """A monitor that somebody adds has its numbers and the tables of its figures on the page."""
    monitor, labels = BinaryMonitor(raw=False), Labels()
    monitor.calibrated.update_many([0.25, 0.75, 0.5, 0.5], [0, 1, 1, 1])
    labels.update(ScoredRows(np.array([0.0, 1.0, 1.0, 1.0])))
    monitor.others = [labels]
    document = Document(title="own", blocks=model_blocks(monitor))
    fold = block(document, "labels")
    assert fold.record == {"label_mean": 0.75, "label_count": 4}
    assert [row[::2] for row in cells(fold.blocks[0])] == [
        ["mean label", "0.7500"],
        ["labels", "4"],
    ]
    assert cells(fold.blocks[1]) == [["count", "4"], ["sum", "3.000"]]
    assert fold.title == "Labels"


def _segments() -> list[ModelRow]:
    processor = of_kind("segments").processor
    rows = []
    for place, (model, segment) in enumerate(processor.keys):
        blocks: tuple[Block, ...] = blocks_of("segments", place, prefix=f"m{place}-")
        rows.append(ModelRow(model, processor.monitors[place].answers(), segment, (), blocks))
    return rows


def test_models_are_sorted_by_harm() -> None:
    """Models stand by labels that are wrong at least, each before a fold with its blocks."""
    rows = [*_segments(), ModelRow("untested", None)]
    document = Document(title="models", blocks=models_blocks(rows))
    table = block(document, "models-table")
    found = table.record["models"]
    harms = [one["answers"]["wrong_by"] for one in found if one["answers"]]
    assert harms == sorted(harms, reverse=True)
    assert [row.cells[0] for row in table.rows] == [
        " · ".join(filter(None, (one["model"], one["segment"]))) for one in found
    ]
    for row, one in zip(cells(table), found, strict=True):
        if one["answers"]:
            assert row[1] == f"{one['answers']['now']['labels']:,}"
            assert row[6].split(" ")[0] == f"{one['answers']['wrong_by']:,.0f}"
    titles = {block(document, key).title for key in ("model-1", "model-2")}
    assert titles == {"m · s", "m · t"}
    assert states_line(rows, "model").endswith(", 1 without tests")
    lines = text(document, 80).splitlines()
    assert max(map(len, lines)) <= 80


def test_all_predictions_in_one_picture_over_time() -> None:
    """Where raw probabilities are 0 and 1 alone there are no halves, and the picture is of all."""
    processor = Processor(Settings(scores="probability", grace_period=20))
    for i in range(200):
        processor.process(Observation(f"{i}", i, "m", i % 2))
        processor.process(Label(f"{i}", i, "m", i % 3 % 2))
    blocks = model_blocks(processor.monitors[0])
    figures = [one for one in walk(blocks) if isinstance(one, FigureBlock)]
    drawn = [one.title for figure in figures for one in figure.pictures if one.kind == "over_time"]
    assert drawn == ["All"]


def test_labels_that_wait_for_earlier_ones_are_not_too_few() -> None:
    """Where enough labels came and none counts yet, a model waits, and has 0 labels."""
    processor = Processor(Settings(scores="probability", grace_period=20))
    for i in range(60):
        processor.process(Observation(f"{i}", i, "m", 0.5))
        if i != 20:
            processor.process(Label(f"{i}", i, "m", i % 2))
    row = ModelRow("m", processor.monitors[0].answers())
    document = Document(title="models", blocks=models_blocks([row, row]))
    assert states_line([row], "model") == "1 waits for earlier labels"
    assert states_line([row, row], "model") == "2 wait for earlier labels"
    assert cells(block(document, "models-table"))[0][:4] == ["m", "0", "waiting", ""]


def test_a_text_has_the_worst_models() -> None:
    """A text has a few models, and how many more there are."""
    document = Document(title="models", blocks=models_blocks(_segments(), most=1))
    table = block(document, "models-text")
    assert len(table.rows) == 1
    assert table.note == "… 1 more"


def test_answers_have_the_state_of_the_stream() -> None:
    """A model that drifts is off, and calibration pays."""
    document = document_of("two")
    answers = block(document, "answers")
    assert isinstance(answers, AnswersBlock)
    assert answers.cards[0].state == "no"
    assert answers.cards[2].state == "yes"
    assert document.lead.startswith("The model is off.")

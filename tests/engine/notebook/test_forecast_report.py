"""Reports on forecasts in arrays, `abers.report`."""

from __future__ import annotations

import json
import math
import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from tests.engine.monitoring.answers_recomputed import MAIN, TENTH, counted, groups, now_start

import abers
from abers import MissingExtraError, ParameterError
from abers.monitoring import VerdictSequence, Words
from abers.notebook.forecast_rows import forecast_rows
from abers.pages.blocks import record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import DTypeLike

N = 12_000
HOUR = 3_600_000
START = 1_750_000_000_000
WORDS = Words("forecasts")


def stream(factor: float = 1.0, n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, forecasts and times; the odds of the forecasts are too high by a factor."""
    rng = np.random.default_rng(7)
    p = rng.beta(2, 5, n)
    odds = p / (1.0 - p) / factor
    y = (rng.random(n) < odds / (1.0 + odds)).astype(int)
    return y, p, START + HOUR * np.arange(n)


class Column:
    """A column of another library: numpy can convert it, and that is all."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: DTypeLike | None = None, *, copy: bool | None = None) -> np.ndarray:
        """Return the array."""
        return np.array(self.values, dtype=dtype, copy=copy)


class Page(HTMLParser):
    """Elements that begin and end in a page, and all its texts outside of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag; those that are never empty must end."""
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that the innermost element ends."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        if "script" not in self.open:
            self.texts.append(data)


@pytest.mark.parametrize("factor", [1.0, 1.7])
def test_the_verdict_is_that_of_a_sequence(factor: float) -> None:
    """The verdict equals that of `VerdictSequence` on the same rows."""
    y, p, times = stream(factor)
    sequence = VerdictSequence("raw", 1.25, words=WORDS)
    sequence.update(p, y, times)
    report = abers.report(y, p, times)
    assert report.verdict == sequence.verdict()
    assert report.verdict.status == ("trustworthy" if factor == 1.0 else "too high")


def test_the_numbers_are_those_of_the_definition() -> None:
    """Log loss, Brier score and ECE are the means over all labels."""
    y, p, _ = stream(n=500)
    report = abers.report(y, p)
    assert report.labels == 500
    assert report.log_loss == pytest.approx(-np.log(np.where(y == 1, p, 1 - p)).mean())
    assert report.brier == pytest.approx(((y - p) ** 2).mean())
    bins = [(p >= k / 10) & (p < (k + 1) / 10) for k in range(10)]
    gaps = [abs((y[one] - p[one]).sum()) for one in bins]
    assert report.ece == pytest.approx(sum(gaps) / 500)


@pytest.mark.parametrize(
    "column",
    [np.asarray, list, pd.Series, lambda values: pd.Series(values, index=values[::-1]), Column],
)
def test_every_column_that_numpy_converts_gives_the_same(
    column: Callable[[np.ndarray], Any],
) -> None:
    """Lists, numpy, pandas and columns of other libraries give the same report."""
    y, p, times = stream(n=400)
    model = np.array(["a", "b"] * 200)
    report = abers.report(y, p, times, model)
    assert abers.report(*map(column, (y, p, times, model))) == report
    assert abers.report(column(y == 1), column(p), column(times), column(model)) == report


@pytest.mark.parametrize(
    "convert",
    [
        lambda times: pd.Series(pd.to_datetime(times, unit="ms")),
        lambda times: pd.Series(pd.to_datetime(times, unit="ms", utc=True)),
        lambda times: pd.Series(pd.to_datetime(times, unit="ms", utc=True)).dt.tz_convert(
            "Asia/Tokyo"
        ),
        lambda times: times.astype("datetime64[ms]"),
        lambda times: times.astype("datetime64[ms]").tolist(),
        lambda times: times + 0.25,
    ],
)
def test_datetimes_are_milliseconds(convert: Callable[[np.ndarray], Any]) -> None:
    """Datetimes, with or without a timezone, are milliseconds since 1970."""
    y, p, times = stream(n=100)
    assert abers.report(y, p, convert(times)).verdict == abers.report(y, p, times).verdict


def test_rows_are_sorted_by_time() -> None:
    """Rows that are not in the order of time give the report of the sorted ones, groups too."""
    y, p, times = stream()
    model = np.where(p > 0.3, "high", "low")
    mixed = np.random.default_rng(1).permutation(N)
    columns = [one[mixed] for one in (y, p, times, model)]
    sorted_, report = abers.report(y, p, times, model), abers.report(*columns)
    assert report == sorted_
    assert report.verdict.until == times[-1]


@pytest.mark.parametrize(
    ("unit", "convert"),
    [
        *((unit, made) for unit in ("us", "ns") for made in (list, np.asarray, pd.Series)),
        ("us", np.ndarray.tolist),  # of "ns" it has whole numbers
    ],
)
def test_rows_within_a_millisecond_are_sorted(unit: str, convert: Callable[[Any], Any]) -> None:
    """Rows are sorted by whole times, also where a report tells milliseconds apart."""
    y, p, _ = stream(n=500)
    start = np.array("2026-01-01", f"datetime64[{unit}]")
    times = start + np.arange(500) * np.timedelta64(10, "us")
    mixed = np.random.default_rng(1).permutation(500)
    rows = forecast_rows(y[mixed], p[mixed], convert(times[mixed]), 0)
    assert rows.order.tolist() == np.argsort(mixed).tolist()


def test_rows_of_one_time_keep_their_order() -> None:
    """Sorting is stable: of two times, each has its rows in the order in which they came."""
    y, p, _ = stream(1.7)
    p = np.sort(p)
    times = np.arange(N) % 2
    by_hand = np.concatenate([np.arange(0, N, 2), np.arange(1, N, 2)])
    rows = forecast_rows(y, p, times, 0)
    assert rows.order.tolist() == by_hand.tolist()
    assert rows.forecasts.tolist() == p[by_hand].tolist()


def test_verdicts_by_model_and_segment() -> None:
    """Each group has the verdict of a sequence of its own rows; both names make a pair."""
    y, p, times = stream(1.7)
    model = np.where(np.arange(N) % 3 == 0, "b", "a")
    segment = np.arange(N) % 2
    by_model = abers.report(y, p, times, model).verdicts
    assert [*by_model] == ["a", "b"]
    for name, verdict in by_model.items():
        sequence = VerdictSequence("raw", 1.25, words=WORDS)
        sequence.update(p[model == name], y[model == name], times[model == name])
        assert verdict == sequence.verdict()
    assert [*abers.report(y, p, times, segment=segment).verdicts] == ["0", "1"]
    both = abers.report(y, p, times, model, segment).verdicts
    assert [*both] == [("a", "0"), ("a", "1"), ("b", "0"), ("b", "1")]


def test_the_tolerance_is_that_of_the_verdict() -> None:
    """Odds that are off by 1.7 are within a tolerance of 3."""
    y, p, _ = stream(1.7)
    wide = abers.report(y, p, model=["m"] * N, tolerance=3.0)
    assert wide.verdict.status == wide.verdicts["m"].status == "trustworthy"
    assert wide.verdict.tolerance == wide.verdicts["m"].tolerance == 3.0
    assert (wide.answers["model"].state, wide.answers.tolerance) == ("yes", 3.0)


def counted_rows(found: dict[str, Any], p: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Return forecasts and labels of a period, by its row numbers."""
    rows = slice(found["first_row"] - 1, found["last_row"])
    return [p[rows], y[rows]]


@pytest.mark.parametrize("factor", [1.0, 1.7])
def test_each_number_can_be_made_anew(factor: float, tmp_path: Path) -> None:
    """Rows, cut, counts, promised, came, gap, range and tolerance follow from the two arrays."""
    y, p, times = stream(factor)
    abers.report(y, p, times).save(tmp_path / "report.json")
    record = json.loads((tmp_path / "report.json").read_text("utf-8"))["record"]
    start, before = now_start((p * (1.0 - p))[50:])
    for name, begin, earlier in (
        ("now", 50 + start, 50 + before if start else 0),
        ("whole", 50, 0),
    ):
        found = record["period"][name]
        assert (found["first_row"], found["last_row"]) == (begin + 1, N)
        assert found["labels"] == N - begin
        assert found["start"] == datetime.fromtimestamp(times[begin] / 1000, UTC).isoformat(
            timespec="milliseconds"
        )
        view, (scores, labels) = found["views"]["raw"], counted_rows(found, p, y)
        cut, tenths = groups(p[earlier:begin], merged=name == "now")
        assert view["cut"] == cut
        ends = {"all": (0.0, 2.0), "lower": (0.0, cut), "upper": (cut, 2.0)}
        ends |= {f"tenth-{round(10 * low)}": (low, high) for low, high in tenths}
        for row in view["rows"]:
            low, high = ends[row["key"]]
            kept = (scores >= low) & ((scores < high) | (high == 1.0))
            level = MAIN if row["main"] else TENTH
            part = counted(scores[kept], labels[kept], 1.25, level)
            shown = (row["labels"], row["came_count"], row["promised_sum"])
            assert shown == pytest.approx(part[:3])
            names = ("gap", "low", "high", "tolerance_low", "tolerance_high")
            assert [row[one] for one in names] == pytest.approx(part[3:], abs=1e-6)
    assert record["model"]["state"] == ("yes" if factor == 1.0 else "no")
    assert record["answers"]["warm_up"] == 50


def test_the_text_says_what_was_found() -> None:
    """`print` shows the answer with its number and range, groups by harm, and the scores."""
    y, p, times = stream(1.7)
    report = abers.report(y, p, times, model=["m"] * N)
    said = " ".join(str(report).replace("\N{NO-BREAK SPACE}", " ").split())
    answer = report.answers["model"]
    assert answer.number is not None
    assert answer.high is not None
    loss = f"log loss {report.log_loss:.4f} nats"
    assert repr(report) == f"ForecastReport: 12,000 labels, no, {loss}"
    assert repr(abers.report([], [])) == "ForecastReport: 0 labels, waiting"
    assert said.startswith("✗ Model NO promised ")
    assert f"{abs(answer.number):.1f} points too high range {-answer.high:.1f} to" in said
    assert f"in {answer.labels:,} labels" in said
    assert f"12,000 labels: log loss {report.log_loss:.3f}, Brier score {report.brier:.4f}" in said
    assert f"ECE of ten bins {report.ece:.4f}." in said
    assert "Model 1 no" in said
    assert "Calibrated" not in said


def test_few_labels_wait_and_need_more() -> None:
    """The first 50 forecasts are a warm-up; `needs` has about how many labels decide."""
    y, p, _ = stream()
    few = abers.report(y[:50], p[:50])
    assert few.answers["model"].state == "waiting"
    assert "no label after the warm-up counts yet" in " ".join(str(few).split())
    more = abers.report(y[:300], p[:300])
    assert more.answers["model"].state == "undecided"
    assert more.answers["model"].of == 250
    assert [one.labels > 300 for one in more.needs] == [True, True]
    assert abers.report(y, p).needs == ()


def test_no_labels() -> None:
    """A report on nothing waits, and has no figure."""
    report = abers.report([], [])
    assert str(report).split() == ["·", "Model", "WAITING", "0", "of", "50", "labels"]
    assert math.isnan(report.brier)
    assert (report.figures, report.needs, report.plots()) == ((), (), [])


def test_many_groups_are_cut_in_the_text() -> None:
    """A text names the first 20 groups and counts the others."""
    report = abers.report([0, 1] * 30, [0.5] * 60, model=range(60))
    assert str(report).count("too few") == 21  # the line of all, too
    assert "… 40 more in .answers_by_group" in str(report)
    assert len(report.verdicts) == len(report.answers_by_group) == 60


def test_groups_stand_by_harm() -> None:
    """Each group has the answer of a report of its own rows; the worst stands first."""
    y, p, times = stream(1.7)
    model = np.where(np.arange(N) % 4 == 0, "few", "many")
    report = abers.report(y, p, times, model)
    for name, answers in report.answers_by_group.items():
        rows = model == name
        assert answers == abers.report(y[rows], p[rows], times[rows]).answers
    table = record(report.document)["models-table"]["models"]
    assert [one["model"] for one in table] == ["many", "few"]
    harms = [one["answers"]["wrong_by"] for one in table]
    assert harms == sorted(harms, reverse=True)


def test_a_page_is_whole_and_asks_for_nothing(tmp_path: Path) -> None:
    """The page is well formed and small, has no script, and loads nothing from elsewhere."""
    y, p, _ = stream(n=300)
    report = abers.report(y, p, model=["<script>alert(1)</script>&"] * 300)
    report.save(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    page = Page(text)
    assert page.open == []
    assert not [dict_ for _, dict_ in page.tags if "src" in dict_]
    assert all(str(dict_.get("href", "#")).startswith("#") for _, dict_ in page.tags)
    assert "script" not in {name for name, _ in page.tags}
    assert len(text) < 200_000
    assert "default-src 'none'" in text
    assert "<script>alert(1)</script>&" in page.texts


def test_a_notebook_shows_the_same_texts() -> None:
    """The HTML for a notebook is well formed and escaped, and needs no library."""
    y, p, _ = stream(n=300)
    html = abers.report(y, p, model=["<b>"] * 300)._repr_html_()
    assert Page(html).open == []
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "Is my model telling the truth?" in html
    assert "Is what is served right?" not in html


def test_json_has_all(tmp_path: Path) -> None:
    """The JSON document has the numbers, verdicts, needs and figures of the report."""
    y, p, times = stream(n=300)
    report = abers.report(y, p, times, ["a", "b", "b"] * 100)
    report.save(tmp_path / "report.json")
    read = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert (read["labels"], read["log_loss"], read["brier"], read["ece"]) == (
        report.labels,
        report.log_loss,
        report.brier,
        report.ece,
    )
    assert read["verdict"]["sentence"] == report.verdict.sentence
    fields = report.verdict._asdict() | {"words": report.verdict.words._asdict()}
    assert {name: read["verdict"][name] for name in fields} == fields
    assert [one["group"] for one in read["verdicts"]] == ["a", "b"]
    assert [one["labels"] for one in read["needs"]] == [one.labels for one in report.needs]
    figure = read["figures"][0]
    assert (figure["kind"], figure["rows"]) == (
        "corp",
        [list(one) for one in report.figures[0].rows],
    )
    assert read["record"]["period"]["whole"]["labels"] == 250
    assert [one["model"] for one in read["record"]["models-table"]["models"]] == ["b", "a"]


def test_infinite_loss_is_null(tmp_path: Path) -> None:
    """A label that was forecast with probability 0 makes the log loss infinite, in JSON null."""
    report = abers.report([1, 0], [0.0, 0.5])
    assert report.log_loss == math.inf
    report.save(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["log_loss"] is None


def test_another_suffix_is_an_error(tmp_path: Path) -> None:
    """A file that is neither a page nor JSON is not written."""
    with pytest.raises(ParameterError, match=r"must end in \.html for a page, or in \.json"):
        abers.report([0], [0.5]).save(tmp_path / "report.pdf")
    assert [*tmp_path.iterdir()] == []


def test_without_plotly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts, notebooks, pages and JSON need no plotly; `plots` names the extra."""
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    report = abers.report([0, 1] * 40, [0.4] * 80)
    assert report._repr_html_()
    for suffix in ("json", "html"):
        report.save(tmp_path / f"report.{suffix}")
    with pytest.raises(MissingExtraError, match="abers\\[plots\\]"):
        report.plots()


def test_rows_whose_label_is_not_known_yet() -> None:
    """They are counted and not scored, and groups and times keep their rows."""
    y, p = [0, None, 1, float("nan")], [0.25, 0.5, 0.75, 0.5]
    found = abers.report(y, p, time=[4, 3, 2, 1], model=["a", "b", "c", "c"])
    known = abers.report([0, 1], [0.25, 0.75], time=[4, 2], model=["a", "c"])
    assert (found.labels, found.unlabelled, found.brier) == (2, 2, known.brier)
    assert found.verdict == known.verdict
    assert found.verdicts == known.verdicts
    assert found.notes == ("Rows without a label yet, which are not scored: 2.",)


def test_columns_that_are_in_doubt(tmp_path: Path) -> None:
    """Text, page and JSON say which column may not be what it seems."""
    path = tmp_path / "report.json"
    for y, p, sentence in (
        ([0] * 30, [0.25] * 30, "None of the 30 labels is 1"),
        ([1] * 30, [0.25] * 30, "All 30 labels are 1"),
        ([0, 1] * 15, [0, 1] * 15, "All scores are 0 or 1"),
        ([0, 1] * 50, [0.75, 0.25] * 50, "Label 1 is rarer where scores are higher"),
    ):
        found = abers.report(y, p)
        assert sentence in " ".join(str(found).split())
        assert sentence in found._repr_html_()
        found.save(path)
        assert sentence in json.loads(path.read_text())["notes"][0]
    assert abers.report([0, 1] * 50, [0.25, 0.75] * 50).notes == ()

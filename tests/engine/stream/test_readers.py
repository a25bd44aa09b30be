"""The readers of cells: `many` returns what `one` returns of each cell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abers.stream.cells import BadRecordError, column, objects
from abers.stream.option import said
from abers.stream.readers import (
    CellReader,
    ClassReader,
    ClassScoresReader,
    ExtraReader,
    FeaturesReader,
    FoldScoresReader,
    IdReader,
    LabelReader,
    NameReader,
    NumberReader,
    PlainReader,
    ScoreReader,
)
from abers.stream.times import TimeReader

pd = pytest.importorskip("pandas")

FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999  # milliseconds of the years 1 to 9999

READERS: dict[str, CellReader] = {
    "id": IdReader(),
    "name": NameReader("model"),
    "time": TimeReader(),
    "time in a zone": TimeReader(ZoneInfo("Europe/Berlin")),
    "score": ScoreReader(),
    "number": NumberReader("label", "drop it"),
    "fold scores": FoldScoresReader(),
    "class scores": ClassScoresReader(),
    "binary label": LabelReader(),
    "named label": LabelReader(["fraud", 1, "x"]),
    "class": ClassReader(["cat", "7", "true"]),
    "features": FeaturesReader(),
    "plain": PlainReader(),
    "extra": ExtraReader(),
}

TEXTS = st.sampled_from(
    [
        *("a", "1", "01", "0", "0.5", "1e3", "1_0", " 7 ", "nan", "inf", "-0.0", "true", "False"),
        *("fraud", "cat", "7.0", "9" * 400, "2026-03-01", "2026-03-01 00:00:00+00", "T00:00Z"),
        *("2026-03-01T00:00Z", "20260301T000000Z", "2026-03-01 00:00:00 Z", "1700000000000"),
        *("2026-02-30T00:00:00Z", "0000-01-01T00:00:00Z", "2026-03-01T00:00:00+24:00"),
        *("2026-03-01T23:59:60Z", "2026-10-25 02:30:00", "1700000000", "17000000000000000"),
    ]
)
ZONES = st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)))
MOMENTS = st.datetimes(timezones=st.one_of(st.none(), st.just(UTC), ZONES))
RFC_3339 = st.builds(
    lambda moment, form: moment.isoformat(timespec=form),
    st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(minutes=-90))])),
    st.sampled_from(["seconds", "milliseconds", "microseconds"]),
).map(lambda text: text.replace("+00:00", "Z"))
NUMBERS = st.one_of(
    *(st.integers(), st.integers(0, 1), st.booleans(), st.floats(), st.sampled_from([0.0, -0.0])),
    *(st.integers(-(10**14), 10**14), st.decimals(), st.fractions()),
    *(st.integers(-5, 5).map(np.int64), st.floats(width=32).map(np.float32)),
    *(st.booleans().map(np.bool_), st.integers(0, 255).map(np.uint8)),
)
OTHERS = st.one_of(
    *(TEXTS, TEXTS.map(np.str_), st.text(min_size=1), st.dates(), MOMENTS, RFC_3339, st.uuids()),
    st.binary(),
    st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(pd.Timestamp),  # noqa: DTZ001
    st.integers(-(10**15), 10**15).map(lambda n: np.datetime64(n, "ms")),
    st.sampled_from([pd.NaT, np.datetime64("NaT", "ms"), np.timedelta64(5, "s")]),
)
CELLS = st.one_of(NUMBERS, OTHERS)
NESTED = st.one_of(
    st.lists(NUMBERS, max_size=3), st.dictionaries(st.sampled_from("ab"), NUMBERS, max_size=2)
)
COLUMNS = st.one_of(
    st.lists(st.one_of(CELLS, NESTED), max_size=6),
    *(
        st.lists(kind, min_size=1, max_size=6)
        for kind in (TEXTS, RFC_3339, MOMENTS, st.integers(0, 1), st.integers(), st.floats())
    ),
    *(st.lists(kind, min_size=1, max_size=6) for kind in (st.booleans(), st.decimals(), NESTED)),
    st.lists(st.just("a"), min_size=1, max_size=4),
)


def outcome(reader: CellReader, cell: object) -> tuple[type, str]:
    """Return type and text of what a reader makes of a cell, or of its error."""
    try:
        found = reader.one(cell)
    except BadRecordError as error:
        return BadRecordError, f"{error.reason}: {error}"
    return type(found), repr(found)


@pytest.mark.parametrize("name", READERS)
@given(cells=COLUMNS)
@example(cells=["2026-03-01T00:00:00Z", "2026-03-01T00:00:00.25+02:00"])
@example(cells=["2026-03-01T00:00:00Z", "2026-03-01T00:00:00z", "9999-12-31T23:59:59Z"])
def test_many_is_one_for_each_cell(name: str, cells: list[object]) -> None:
    """Values, their types and errors of a column are those of its cells."""
    reader = READERS[name]
    for given_column in (column(cells), objects(cells)):
        found, refused = reader.many(given_column)
        expected = [outcome(reader, cell) for cell in cells]
        bad = {row: f"{reason}: {said(text, 'python')}" for row, reason, text in refused}
        assert bad == {
            row: text for row, (kind, text) in enumerate(expected) if kind is BadRecordError
        }
        values = found.tolist()
        assert len(values) == len(cells)
        for row, (kind, text) in enumerate(expected):
            if row not in bad:
                assert (type(values[row]), repr(values[row])) == (kind, text)


@given(st.lists(st.integers(FIRST, LAST), min_size=1))
@example([FIRST, LAST])
def test_a_column_of_moments_is_one_of_their_milliseconds(times: list[int]) -> None:
    """A datetime64 counts milliseconds from 1970 in UTC, in a column and alone."""
    cells = np.array(times, "datetime64[ms]")
    for name in ("time", "time in a zone"):
        for given_ in (cells, objects([*cells])):
            found, refused = READERS[name].many(given_)
            assert (found.tolist(), refused) == (times, [])
        assert [READERS[name].one(cell) for cell in cells] == times


@pytest.mark.parametrize("time", [FIRST - 1, LAST + 1, 2**62, np.iinfo(np.int64).min])
def test_a_moment_outside_the_calendar_is_no_time(time: int) -> None:
    """Years before 1 and after 9999 are refused, as in a text; a row next to them is read."""
    cells = np.array([time, 5], "datetime64[ms]")
    found, refused = READERS["time"].many(cells)
    assert found.tolist()[1] == 5
    assert [(one.row, one.reason) for one in refused] == [(0, "bad-time")]


@pytest.mark.parametrize("text", ["1.77232E+12", "1.77232e+12", "1.7E+12"])
def test_a_time_that_a_spreadsheet_rounded(text: str) -> None:
    """Milliseconds of which a spreadsheet left six digits are refused; exact ones are read."""
    _, refused = TimeReader().many(objects([text, "1.772323200123E12", "1772323200123.0"]))
    ((row, _, words),) = refused
    assert row == 0
    assert f"time '{text}' is rounded, as a spreadsheet does; write whole" in said(words, "python")


def test_moments_elsewhere_are_whole_milliseconds() -> None:
    """A datetime64 that is no time of an event is a number: as an id, in features, or passed on."""
    moment = np.datetime64("1971-01-01", "ms")
    whole = 365 * 86_400_000
    for cells in (np.array([moment]), objects([moment])):
        assert IdReader().many(cells)[0].tolist() == [str(whole)]
        assert READERS["plain"].many(cells)[0].tolist() == [whole]
    nested = {"a": moment, "b": [{"c": moment}]}
    for name in ("features", "plain"):
        found, _ = READERS[name].many(objects([nested]))
        assert found.tolist() == [{"a": whole, "b": [{"c": whole}]}]

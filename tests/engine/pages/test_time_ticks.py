"""Ticks of time axes, `abers.pages.figures.plot`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.pages.figures.plot import can_be_times, time_text, time_ticks

ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo"]


def milliseconds(text: str, zone: str = "UTC") -> float:
    """Return a local time in milliseconds since 1970."""
    local = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    return local.timestamp() * 1_000


def plain(text: str) -> str:
    """Return a text with plain spaces."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("first", "last", "texts"),
    [
        ("2013-01-01", "2013-11-30", "2013 Mar May Jul Sep Nov"),
        ("2013-02-10", "2013-05-30", "Mar Apr May"),
        ("2010-06-01", "2018-06-01", "2012 2014 2016 2018"),
        ("1925-01-01", "2025-01-01", "1940 1960 1980 2000 2020"),
        ("2013-10-28", "2013-11-02", "28 Oct|29 Oct|30 Oct|31 Oct|1 Nov|2 Nov"),
        ("2013-10-07", "2013-11-05", "7 Oct|14 Oct|21 Oct|28 Oct|4 Nov"),
        ("2013-10-28T10:00", "2013-10-29T08:00", "12:00 18:00|29 Oct|06:00"),
        ("2013-10-28T10:00", "2013-10-28T12:10", "10:00 10:30 11:00 11:30 12:00"),
        ("2013-10-28T10:00", "2013-10-28T10:04", "10:00 10:01 10:02 10:03 10:04"),
        ("2013-10-28T10:00:02", "2013-10-28T10:00:17", "10:00:05 10:00:10 10:00:15"),
    ],
)
def test_ticks_follow_the_range(first: str, last: str, texts: str) -> None:
    """Years, months, days, hours or seconds are shown, by what the range has room for."""
    ticks = time_ticks(milliseconds(first), milliseconds(last), "UTC", 6)
    wanted = texts.split("|") if "|" in texts else texts.split()
    assert [plain(one.text) for one in ticks] == [
        word for text in wanted for word in (text.split() if ":" in text else [text])
    ]


def test_a_tick_stands_at_its_local_time() -> None:
    """In New York 1 March begins five hours later than in UTC."""
    ends = milliseconds("2013-02-10"), milliseconds("2013-03-20")
    (tick,) = [one for one in time_ticks(*ends, "America/New_York", 2) if one.text == "Mar"]
    assert tick.value == milliseconds("2013-03-01T05:00")


def test_an_hour_that_clocks_skip_has_no_tick() -> None:
    """When clocks go from 2:00 to 3:00, no tick says 2:00, and no two are at one place."""
    place = "America/New_York"
    ends = milliseconds("2013-03-10T00:30", place), milliseconds("2013-03-10T05:30", place)
    ticks = time_ticks(*ends, place, 6)
    assert [one.text for one in ticks] == ["01:00", "03:00", "04:00", "05:00"]
    assert len({one.value for one in ticks}) == 4


@given(
    st.datetimes(datetime(1950, 1, 1), datetime(2090, 1, 1)),  # noqa: DTZ001 - taken as UTC
    st.floats(1, 40 * 365.25 * 86_400),
    st.sampled_from(ZONES),
    st.integers(1, 9),
)
def test_ticks_are_round_local_times(start: datetime, seconds: float, zone: str, most: int) -> None:
    """Ticks lie inside, in order, and their texts are those of the clocks there."""
    low = start.replace(tzinfo=UTC).timestamp() * 1_000
    high = low + seconds * 1_000
    ticks = time_ticks(low, high, zone, most)
    values = [one.value for one in ticks]
    assert values == sorted(values)
    assert all(low <= one <= high for one in values)
    assert len(values) <= most + 3  # months are not all as long as the mean
    for value, text in ticks:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value)
        local = moment.astimezone(ZoneInfo(zone))
        if ":" in text:
            assert f"{local:%H:%M:%S}".startswith(text)
        elif local.hour == 0:  # in some places clocks skip midnight
            day = f"{local.day} {local:%b}"
            assert plain(text) in {day, f"{local:%b}" if local.day == 1 else day, str(local.year)}


@pytest.mark.parametrize(
    ("days", "text"), [(1, "14:08"), (20, "7 Jan"), (334, "7 Jan"), (400, "7 Jan 2013")]
)
def test_a_time_is_as_short_as_its_range_allows(days: float, text: str) -> None:
    """Within two days it is an hour, within a year a day, and beyond it has the year."""
    value = milliseconds("2013-01-07T14:08", "America/New_York")
    assert plain(time_text(value, days * 86_400_000, "America/New_York")) == text


def test_numbers_outside_the_calendar_are_no_times() -> None:
    """Milliseconds of the years 3 to 9997 can be shown as times."""
    assert can_be_times(milliseconds("0004-01-01"), milliseconds("9997-01-01"))
    assert not can_be_times(milliseconds("0002-01-01"), 0)
    assert not can_be_times(0, milliseconds("9998-06-01"))

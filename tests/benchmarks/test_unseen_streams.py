"""The streams that nothing was tuned on: how rows are read, and what the page says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from benchmarks.papers.streams_cases import RAW, P
from benchmarks.papers.streams_protection import FROZEN, ONLINE
from benchmarks.unseen_data import STREAMS, flights_of, rain_of
from benchmarks.unseen_streams import ANSWERS, CHOSEN, answered, cases, main, page, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.native

FLIGHT = {
    "month": "1", "day": "1", "sched_dep_time": "515", "sched_arr_time": "819",
    "distance": "1400", "carrier": "UA", "origin": "EWR", "arr_delay": "16",
}  # fmt: skip
HOUR = {
    "time_hour": "2013-01-01T06:00:00Z", "origin": "EWR", "temp": "39", "dewp": "26",
    "humid": "59", "wind_dir": "270", "wind_speed": "10", "precip": "0", "pressure": "1012",
    "visib": "10", "hour": "1",
}  # fmt: skip


def test_flights_are_in_the_order_of_planned_departures() -> None:
    """Late is more than 15 minutes, and a flight that did not arrive has no label."""
    rows = [
        FLIGHT | {"day": "2", "arr_delay": "15"},
        FLIGHT | {"arr_delay": "NA"},
        FLIGHT | {"carrier": "AA"},
    ]
    x, y = flights_of(rows)
    assert y.tolist() == [1, 0]
    assert x.tolist() == [[515, 819, 1400, 1, 0, 1], [515, 819, 1400, 0, 1, 1]]


def test_rain_is_that_of_the_next_hour_at_the_same_airport() -> None:
    """Airports do not mix; the last hour of each has no label, and a gap takes the hour before."""
    rows = [
        HOUR,
        HOUR | {"origin": "JFK", "precip": "0.2"},
        HOUR | {"time_hour": "2013-01-01T07:00:00Z", "precip": "0.1", "temp": "NA"},
        HOUR | {"time_hour": "2013-01-01T07:00:00Z", "origin": "JFK"},
    ]
    x, y = rain_of(rows)
    assert y.tolist() == [1, 0]
    assert x[:, 5].tolist() == [0.0, 0.2]
    later, _ = rain_of([*rows, HOUR | {"time_hour": "2013-01-01T08:00:00Z"}])
    assert later[2, 0] == 39.0


def test_a_missing_file_is_named_with_the_way_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the archive the command says how to get it, writes nothing, and ends with 1."""
    before = ANSWERS.read_bytes()
    excuse = STREAMS["Flights"].excuse(tmp_path)
    assert excuse is not None
    assert "pip download" in excuse
    assert "no folder" in str(STREAMS["Flights"].excuse(None))
    assert main(["--data", str(tmp_path), "--only", "Flights"]) == 1
    assert "pip download" in capsys.readouterr().err
    assert ANSWERS.read_bytes() == before


def test_a_run_keeps_the_price_under_each_law() -> None:
    """Both scorers have a loss of p within the price of that of raw."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    y = (rng.random(600) < 1.0 / (1.0 + np.exp(-x[:, 0]))).astype(np.int64)
    for scorer in (ONLINE, FROZEN):
        found = run(x, y, scorer)
        assert [*found] == [*CHOSEN]
        for cell in found.values():
            loss = {name: scores["log"] for name, scores in cell["methods"].items()}
            assert loss[P] <= cell["experts"][RAW] + cell["price"]


def test_the_page_has_every_stream_in_every_case() -> None:
    """Six streams, two scorers, and five laws of delays."""
    found = cases(answered())
    assert len(found) == 2 * len(CHOSEN)
    assert all([*case.of] == [*STREAMS] for case in found)
    text = page(answered())
    assert text.count("\n| Appliances |") == len(found)
    assert "in 60 of 60 cells" in text  # the price is a bound

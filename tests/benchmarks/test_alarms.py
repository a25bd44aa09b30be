"""Streams on which alarms are tried, in a shorter form than the page of evidence."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest
from benchmarks import alarms

from abers import VennAbers

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {
    kind: [one._replace(labels=3_000) for one in settings()]
    for kind, (settings, _) in alarms.KINDS.items()
}


def most(mean: float) -> float:
    """Return the largest number of rare events, but for a chance of about one in a million."""
    return mean + 5.0 * math.sqrt(mean) + 5.0


@pytest.mark.simulation
@pytest.mark.parametrize("setting", SETTINGS["false"], ids=lambda one: one.name)
def test_right_forecasts_raise_few_alarms(setting: alarms.Setting) -> None:
    """However late labels are, few streams of right forecasts trigger the test of all time."""
    runs = 60
    found = [
        alarms.crossings(alarms.factors_now(alarms.drawn(setting, [1, seed])))
        for seed in range(runs)
    ]
    assert sum(bool(since) for since, *_ in found) <= most(runs * alarms.ALPHA)
    assert sum(len(change) for _, change, *_ in found) <= 2


def test_earlier_bets_by_definition() -> None:
    """The earlier bets are those of two sets of the labels that had come."""
    setting = SETTINGS["lost"][-1]._replace(labels=1_300)
    p, y, kinds, numbers = stream = alarms.drawn(setting, [2])
    factors = alarms.factors_before(stream)
    sets, known, expected = (VennAbers(), VennAbers(window=1_000)), [0, 0], dict[int, list[float]]()
    for kind, number in zip(kinds.tolist(), numbers.tolist(), strict=True):
        score = round(p[number] * 4096) / 4096
        if kind == 1:
            for one in sets:
                one.learn_one(score, int(y[number]))
            continue
        known = [len(one) for one in sets]
        merged = [one.predict_one(score).merged for one in sets]
        expected[number] = [
            (n * q + 100 * p[number]) / (n + 100) for n, q in zip(known, merged, strict=True)
        ]
    for number, row in enumerate(factors):
        for q, factor in zip(expected[number], row[:2].tolist(), strict=True):
            won = q / p[number] if y[number] else (1 - q) / (1 - p[number])
            assert factor == pytest.approx(won, rel=1e-9)
    assert 0 < len(factors) < 1_300


def test_observations_wait_for_those_before() -> None:
    """Both bets settle the same observations, those before the first without a label."""
    stream = alarms.drawn(SETTINGS["false"][2], [3])
    assert len(alarms.factors_now(stream)) == len(alarms.factors_before(stream))


def test_answers_and_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is run and kept; the section has every setting."""

    def shortened(kind: str) -> list[alarms.Setting]:
        return [one._replace(labels=300) for one in SETTINGS[kind]]

    short = {kind: (partial(shortened, kind), bets) for kind, (_, bets) in alarms.KINDS.items()}
    monkeypatch.setattr(alarms, "KINDS", short)
    file = tmp_path / "answers"
    with ThreadPoolExecutor(1) as pool:
        found = alarms.answers(file, pool, streams=1)
        assert len(found) == sum(len(one()) * len(bets) for one, bets in short.values())
        kept = file.read_text()
        assert alarms.answers(file, pool, streams=1) == found
    assert file.read_text() == kept
    text = alarms.section(found)
    for name in (*alarms.FAULTS, *alarms.LOST):
        assert f"| {name}" in text
    assert text.count("> -> >") > 10


def test_summary_of_crossings() -> None:
    """A median counts from the beginning of a fault, and is none where half find nothing."""
    setting = SETTINGS["power"][0]._replace(begin=100)
    found = [[[150, 160], [], [90], []], [[170], [], [], []], [[], [], [120], []]]
    one = alarms.answered(setting, "power", "now", found)
    assert one.triggered == [2, 0, 2, 0]
    assert one.times == [3, 0, 2, 0]
    assert one.medians == [70, None, 20, None]

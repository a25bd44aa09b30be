"""The loop, against a naive one that keeps a dictionary and works each answer out anew."""

from __future__ import annotations

import io
import math
from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import RecordError, VennAbers
from abers_connectors.files import GivenScores, JsonLines
from abers_connectors.records import Observation
from abers_connectors.replay import Replay, Summary

if TYPE_CHECKING:
    from collections.abc import Iterator

Rows = list[tuple[float, int]]
ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 1.0]), st.integers(0, 1)), max_size=30
)
DELAYS = st.integers(0, 8)


class Memory:
    """A source that holds its rows: the scores, and their labels."""

    name = "memory"

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Observation]:
        """Give the rows, with their numbers as ids and times."""
        for number, (score, label) in enumerate(self._rows, start=1):
            yield Observation(number, str(number), number, label, score)

    def where(self, position: int) -> str:
        """Name the row."""
        return f"row {position}"

    def fraction(self) -> None:
        """Know nothing of the end."""


def replayed(rows: Rows, delay: int, calibrator: VennAbers | None = None) -> tuple[bytes, Summary]:
    """Return the bytes that a replay writes, and its summary."""
    source, scorer, written = Memory(rows), GivenScores(probabilities=True), io.BytesIO()
    calibrator = VennAbers() if calibrator is None else calibrator
    replay = Replay(source, scorer, calibrator, JsonLines(written), delay=delay)
    replay.run(source)
    return written.getvalue(), replay.summary(1.0)


def venn_abers(bag: Rows, score: float) -> tuple[float, float]:
    """Return p0 and p1 by the definition, in fractions."""
    weights: dict[float, int] = defaultdict(int)
    positives: dict[float, int] = defaultdict(int)
    for s, label in bag:
        weights[s] += 1
        positives[s] += label
    points = [(0, 0)]
    for s in sorted(weights):
        points.append((points[-1][0] + weights[s], points[-1][1] + positives[s]))
    before = sum(s < score for s in weights)
    until = sum(s <= score for s in weights)
    p0, p1 = (
        max(
            min(Fraction(y_c - y_a + y, w_c - w_a + 1) for w_c, y_c in points[until:])
            for w_a, y_a in points[: before + 1]
        )
        for y in (0, 1)
    )
    return float(p0), float(p1)


def naive(rows: Rows, delay: int, window: int | None) -> list[dict[str, Any]]:
    """Return the predictions as a loop without any cleverness makes them."""
    bag: Rows = []
    pending: dict[int, tuple[float, int]] = {}
    records = []
    for i, (score, label) in enumerate(rows):
        p0, p1 = venn_abers(bag, score)
        p = p1 / (1.0 - p0 + p1)
        number = i + 1
        record = {"v": 1, "id": str(number), "time": number, "model": "default", "score": score}
        records.append(record | {"p0": p0, "p1": p1, "p": p, "n": len(bag)})
        pending[i] = (score, label)
        if i - delay in pending:
            bag = [*bag, pending.pop(i - delay)][-(window or 0) :]
    return records


@given(ROWS, DELAYS, st.none() | st.integers(1, 5))
def test_equals_the_naive_loop(rows: Rows, delay: int, window: int | None) -> None:
    """Every field of every prediction, and their order, is that of the naive loop."""
    written, _ = replayed(rows, delay, VennAbers(window))
    records = [msgspec.json.decode(line) for line in written.splitlines()]
    expected = naive(rows, delay, window)
    assert records == expected
    assert [list(record) for record in records] == [list(record) for record in expected]


@given(ROWS, DELAYS)
def test_summary_scores_the_written_predictions(rows: Rows, delay: int) -> None:
    """The table is a function of the predictions as written and of the labels, nothing else."""
    written, summary = replayed(rows, delay)
    records = [msgspec.json.decode(line) for line in written.splitlines()]
    assert (summary.observations, summary.labels) == (len(rows), len(rows))
    if not rows:
        assert summary.mean_width is None
        assert summary.calibrated.log_loss is None
        return
    labels = [label for _, label in rows]
    losses = [
        -math.log(r["p"] if y else 1.0 - r["p"]) for r, y in zip(records, labels, strict=True)
    ]
    assert summary.calibrated.log_loss == pytest.approx(sum(losses) / len(rows))
    squares = [(y - r["score"]) ** 2 for r, y in zip(records, labels, strict=True)]
    assert summary.raw is not None
    assert summary.raw.brier == pytest.approx(sum(squares) / len(rows))
    impossible = [(s, y) for s, y in rows if s == 1 - y]
    assert summary.raw.log_loss_infinite == len(impossible)
    assert (summary.raw.log_loss is None) == bool(impossible)
    widths = [r["p1"] - r["p0"] for r in records]
    assert summary.mean_width == pytest.approx(sum(widths) / len(rows))


@given(ROWS, DELAYS, st.none() | st.integers(1, 5))
def test_again_gives_the_same_bytes(rows: Rows, delay: int, window: int | None) -> None:
    """A replay can be repeated: the same stream gives byte-identical predictions."""
    assert replayed(rows, delay, VennAbers(window)) == replayed(rows, delay, VennAbers(window))


@given(ROWS, DELAYS)
def test_equals_prequential(rows: Rows, delay: int) -> None:
    """One at a time or through `VennAbers.prequential`, the intervals are the same."""
    written, _ = replayed(rows, delay)
    records = [msgspec.json.decode(line) for line in written.splitlines()]
    scores, labels = np.array(rows, dtype=float).reshape(-1, 2).T
    p0, p1 = VennAbers().prequential(scores, labels, delay=delay)
    assert [(r["p0"], r["p1"]) for r in records] == list(zip(p0, p1, strict=True))


class Diary:
    """A scorer that notes what it is asked, and whose scores move with every label it learns."""

    probabilities = True

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.scores: list[float] = []

    def score(self, observation: Observation) -> float:
        """Note the observation and answer with a score never given before."""
        self.notes.append(f"score {observation.id}")
        self.scores.append(1 / (2 + len(self.notes)))
        return self.scores[-1]

    def learn(self, observation: Observation) -> None:
        """Note the label."""
        self.notes.append(f"learn {observation.id}")


def test_a_label_waits_for_its_delay() -> None:
    """Each label is learned once `delay` further observations are scored, the rest at the end."""
    source, diary = Memory([(0.0, 1)] * 4), Diary()
    replay = Replay(source, diary, VennAbers(), JsonLines(io.BytesIO()), delay=2)
    replay.run(source)
    scored = ["score 1", "score 2", "score 3", "learn 1", "score 4", "learn 2"]
    assert diary.notes == [*scored, "learn 3", "learn 4"]


def test_no_delay_means_at_once() -> None:
    """With a delay of 0 each label is learned right after its own prediction."""
    source, diary = Memory([(0.0, 1)] * 2), Diary()
    Replay(source, diary, VennAbers(), JsonLines(io.BytesIO()), delay=0).run(source)
    assert diary.notes == ["score 1", "learn 1", "score 2", "learn 2"]


def test_never_scores_again() -> None:
    """The calibrator and the metrics get the score of prediction time, however late the label."""
    source, diary, calibrator = Memory([(0.0, 1)] * 5), Diary(), VennAbers()
    replay = Replay(source, diary, calibrator, JsonLines(io.BytesIO()), delay=3)
    replay.run(source)
    assert sorted(calibrator.hull().lower) == [min(diary.scores)]
    assert calibrator.hull().upper.tolist() == [max(diary.scores)]
    raw = replay.summary(1.0).raw
    assert raw is not None
    assert raw.brier == pytest.approx(sum((1 - s) ** 2 for s in diary.scores) / 5)


@pytest.mark.parametrize("option", ["max_age", "half_life"])
def test_event_times_drive_the_forgetting(option: str) -> None:
    """With `max_age` or `half_life` the times of the observations reach the calibrator."""
    rows = [(0.5, 1)] * 40
    _, summary = replayed(rows, 0, VennAbers(**{option: 1}))
    _, unlimited = replayed(rows, 0)
    assert summary.mean_width is not None
    assert unlimited.mean_width is not None
    assert summary.mean_width > unlimited.mean_width


def test_a_score_that_is_no_number_is_blamed_on_its_observation() -> None:
    """A learner whose score overflows stops the replay with the place in the source."""
    source = Memory([(0.5, 1), (math.inf, 0)])
    scorer = GivenScores(probabilities=False)
    replay = Replay(source, scorer, VennAbers(), JsonLines(io.BytesIO()), delay=5)
    with pytest.raises(RecordError, match=r"row 2: score inf is not a finite number"):
        replay.run(source)


def test_a_time_that_cannot_be_used_is_blamed_on_its_observation() -> None:
    """So does a time out of the calibrator's range."""
    source = Memory([(0.5, 1)])
    scorer = GivenScores(probabilities=False)
    calibrator = VennAbers(half_life=1e-20)
    replay = Replay(source, scorer, calibrator, JsonLines(io.BytesIO()), delay=0)
    with pytest.raises(RecordError, match="row 1: time"):
        replay.run(source)


def test_raw_metrics_need_declared_probabilities() -> None:
    """Without the declaration there are no raw metrics, whatever the scores look like."""
    source = Memory([(0.5, 1)])
    scorer = GivenScores(probabilities=False)
    replay = Replay(source, scorer, VennAbers(), JsonLines(io.BytesIO()), delay=0)
    replay.run(source)
    assert replay.summary(1.0).raw is None

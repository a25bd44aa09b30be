"""Verdicts on a stream, block after block."""

from __future__ import annotations

import math
import struct
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import verdict_sequence

from abers import LabelError, ParameterError, ScoreError
from abers.backends import core
from abers.monitoring import ForecastGroups, VerdictSequence
from abers.monitoring.forecast_groups import GRID, STATUSES

Rows = Any  # forecasts, labels, times
HOUR = 3_600_000


def rows(n: int, factor: float = 1.0, seed: int = 1, start: int = 0) -> Rows:
    """Draw forecasts and labels, the odds of which are lower by a factor; an hour between them."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 5, n)
    labels = (rng.random(n) < p / (p + (1.0 - p) * factor)).astype(np.float64)
    return p, labels, (start + np.arange(n)) * HOUR


def watched(*parts: Rows, tolerance: float = 1.25) -> VerdictSequence:
    """Pass parts of a stream."""
    sequence = VerdictSequence("raw", tolerance)
    for part in parts:
        sequence.update(*part)
    return sequence


STREAM = [np.concatenate(one) for one in zip(rows(1_500, 3.0), rows(4_000, 0.4, 2), strict=True)]


@pytest.mark.once
@settings(max_examples=30)
@given(cuts=st.lists(st.integers(0, 5_500), max_size=5))
def test_batches_make_no_difference(cuts: list[int]) -> None:
    """However rows are batched, blocks, verdicts and sums are the same."""
    sequence = VerdictSequence("raw", 1.25)
    for start, end in pairwise([0, *sorted(cuts), 5_500]):
        sequence.update(*(column[start:end] for column in STREAM))
    whole = watched(tuple(STREAM))
    assert sequence.state() == whole.state()
    assert whole.blocks > 3


@pytest.mark.once
@settings(max_examples=30)
@given(cut=st.integers(0, 5_500), restarts=st.booleans())
def test_restored(cut: int, *, restarts: bool) -> None:
    """A restored sequence goes on as the saved one would have."""
    first, second = (tuple(one[part] for one in STREAM) for part in (slice(cut), slice(cut, None)))
    sequence = watched(first)
    if restarts:
        sequence.restart(cut)
    restored = VerdictSequence("raw", 1.25)
    restored.load(sequence.state())
    assert restored.verdict() == sequence.verdict()
    for one in (sequence, restored):
        one.update(*second)
    assert restored.state() == sequence.state()
    assert restored.verdict() == sequence.verdict()


def test_evaluations() -> None:
    """A block is evaluated when it has grown by 1 %, and by 10 labels at least."""
    sequence, columns, evaluated = VerdictSequence("raw", 1.25), rows(2_000), [0]
    while sequence.next <= 2_000:
        evaluated.append(sequence.next)
        sequence.update(*(one[evaluated[-2] : evaluated[-1]] for one in columns))
    for before, after in pairwise(evaluated):
        assert after == before + max(10, math.ceil(before / 100))


def test_too_high() -> None:
    """Odds off by 2 are found, and the numbers are those of the block that found it."""
    p, labels, times = rows(3_000, 2.0)
    sequence = watched((p, labels, times))
    verdict = sequence.held
    assert verdict is not None
    assert sequence.open
    assert (verdict.status, verdict.where, verdict.since) == ("too high", "", 0)
    n = int(verdict.until // HOUR) + 1 - int(verdict.start // HOUR)
    block = slice(int(verdict.start // HOUR), int(verdict.start // HOUR) + n)
    assert (verdict.labels, verdict.observed) == (n, labels[block].sum())
    assert verdict.expected == pytest.approx(p[block].sum())
    assert sequence.verdict() == verdict


def test_levels_of_blocks() -> None:
    """Block k has alpha / (k (k + 1)): the second block needs more labels for the same rows."""
    part = rows(3_000, 2.0)
    until = []
    for blocks in (1, 2, 50):
        sequence = VerdictSequence("raw", 1.25)
        for _ in range(1, blocks):
            sequence.update(*(one[:1] for one in part))
            sequence.restart(0)
        for size in range(10, 3_000, 10):
            sequence.update(*(one[size - 10 : size] for one in part))
            if sequence.blocks > blocks:
                break
        groups = ForecastGroups(1.25)
        groups.add(part[0][:size], part[1][:size])
        level = 0.05 / (blocks * (blocks + 1))
        status, *_ = core.find_groups(np.array(groups.groups()), level)
        assert STATUSES[status] == "too high"
        until.append(size)
    assert until[0] < until[1] < until[2]


def test_incident() -> None:
    """An incident opens with a verdict outside, goes on while others are, and ends inside."""
    wrong = watched(rows(6_000, 2.0))
    assert wrong.blocks > 2
    verdict = wrong.verdict()
    assert verdict.since == 0 < verdict.start  # renewed
    assert wrong.open
    wrong.update(*rows(20_000, seed=3, start=6_000))
    assert (wrong.open, wrong.held) == (False, None)
    assert wrong.verdict().status == "trustworthy"
    assert wrong.verdict().start >= 5_000 * HOUR


def test_another_status_has_another_start() -> None:
    """A verdict of another status is since its own block."""
    sequence = watched(rows(1_500, 3.0), rows(4_000, 0.4, 2, 1_500))
    verdict = sequence.verdict()
    assert verdict.status == "too low"
    assert verdict.since >= 1_000 * HOUR


def test_parts_become_over_confident() -> None:
    """One half that is outside is shown, and its block goes on until the other is decided."""
    rng = np.random.default_rng(4)
    p = np.tile([0.2, 0.8], 10_000)
    truth = np.where(p < 0.5, 0.3, 0.74)  # the lower half is found first
    labels = (rng.random(20_000) < truth).astype(np.float64)
    sequence = VerdictSequence("calibrated", 1.25)
    seen, confirmed = [], []
    for start in range(0, 20_000, 10):
        part = slice(start, start + 10)
        sequence.update(p[part], labels[part], np.arange(start, start + 10))
        verdict = sequence.verdict()
        status = verdict.status, sequence.blocks
        confirmed.append(verdict.confirmed - verdict.until)
        if status not in seen:
            seen.append(status)
    assert seen[:3] == [
        ("no miscalibration found", 1),
        ("too low", 1),
        ("over-confident", 1),
    ]
    assert {status for status, _ in seen[2:]} == {"over-confident"}  # parts do not replace it,
    assert max(confirmed) > 0  # but confirm it


def test_patience() -> None:
    """A block with one half outside ends when it is eight times as long as then."""
    rng = np.random.default_rng(5)
    p = np.tile([0.2, 0.8], 20_000)
    truth = np.where(p < 0.5, 0.3, 0.8 / (0.8 + 0.2 * 1.25))  # the upper half is never decided
    labels = (rng.random(40_000) < truth).astype(np.float64)
    sequence = VerdictSequence("raw", 1.25)
    first = 0
    while sequence.blocks == 1:
        n = sequence.labels
        part = slice(n, n + 10)
        sequence.update(p[part], labels[part], np.arange(n, n + 10))
        if sequence.held is not None and not first:
            first = sequence.labels
    assert 8 * first <= n + 10 <= 8.1 * first
    assert sequence.verdict().status == "too low"


def test_the_other_half() -> None:
    """Once the other half of a block is outside in another way, that is shown, with its sizes."""
    rng = np.random.default_rng(4)
    p = np.tile([0.2, 0.8], 4_000)
    early = np.arange(8_000) < 600
    truth = np.where(p < 0.5, np.where(early, 0.4, 0.16), np.where(early, 0.8, 0.7))
    labels = (rng.random(8_000) < truth).astype(np.float64)
    sequence = VerdictSequence("raw", 1.25)
    seen: list[tuple[str, str, int]] = []
    for start in range(0, 8_000, 100):
        part = slice(start, start + 100)
        sequence.update(p[part], labels[part], np.arange(start, start + 100))
        verdict = sequence.verdict()
        shown = verdict.status, verdict.where[:7], sequence.blocks
        if not seen or seen[-1] != shown:
            seen.append(shown)
    outside = [one for one in seen if one[1]]
    assert outside[:2] == [("too low", "for p <", 1), ("too high", "for p ≥", 1)]


def four_times(truth: float, n: int = 2_000) -> VerdictSequence:
    """Pass 0.5 with labels 0, found too high at once, and then n labels with a share of 1."""
    sequence = VerdictSequence("raw", 1.25)
    labels = np.zeros(50)
    while sequence.held is None:
        sequence.update(np.full(10, 0.5), labels[:10], np.arange(10))
    every = math.ceil(truth * 100)
    labels = np.tile(np.arange(100) % 100 < every, n // 100).astype(np.float64)
    labels = np.random.default_rng(1).permuted(labels.reshape(-1, 100), axis=1).ravel()
    sequence.update(np.full(n, 0.5), labels, np.arange(n))
    return sequence


def test_what_later_labels_do_not_repeat() -> None:
    """A verdict outside is shown no more once four times as many labels are within the tolerance.

    The incident stays open, for they do not show yet that forecasts are inside.
    """
    held = four_times(0.5, 0).verdict()
    assert held.status == "too high"
    before = four_times(0.5, 100)
    assert 4 * held.labels > before.labels
    assert before.verdict() == held
    after = four_times(0.5, 400)
    assert 4 * held.labels <= after.labels
    assert (after.held, after.open) == (None, True)
    assert after.verdict().status == "no miscalibration found"
    assert after.verdict().labels == 400
    restored = VerdictSequence("raw", 1.25)
    restored.load(after.state())
    assert restored.state() == after.state()


def test_what_later_labels_still_lean_to() -> None:
    """A verdict outside is shown while the later labels are outside on its side, undecided."""
    sequence = four_times(0.4, 500)
    assert sequence.labels == 500
    assert sequence.verdict().status == "too high"


def test_restart() -> None:
    """An alarm opens an incident and starts a block, but no second one before a label."""
    sequence = watched(rows(50))
    for time in (7, 8):
        sequence.restart(time)
    assert (sequence.open, sequence.blocks, sequence.labels) == (True, 2, 0)
    assert (sequence.start, sequence.until) == (49 * HOUR, 49 * HOUR)
    assert "no label is counted yet" in sequence.verdict().sentence
    sequence.update(*rows(50, start=100))
    assert (sequence.start, sequence.until, sequence.labels) == (100 * HOUR, 149 * HOUR, 50)


@pytest.mark.parametrize("start", [0, -20_000])
def test_a_verdict_never_ends_before_it_began(start: int) -> None:
    """Of labels whose event times go back, the latest time is the end, in every block."""
    p, labels, times = rows(9_000, 0.4, start=start)
    verdicts = []
    sequence = VerdictSequence("raw", 1.25)
    for at in range(0, 9_000, 500):
        part = slice(at, at + 500)
        sequence.update(p[part], labels[part], times[::-1][part])
        verdicts.append(sequence.verdict())
    assert sequence.blocks > 1
    assert {one.until for one in verdicts} == {times[-1]}
    assert all(one.since <= one.until and one.start <= one.until for one in verdicts)


def test_the_share_that_came() -> None:
    """Observations without a label are counted in the block of the next label."""
    p, labels, times = rows(40)
    skipped = np.zeros(40, np.int64)
    skipped[[0, 39]] = 5
    sequence = VerdictSequence("raw", 1.25)
    sequence.update(p, labels, times, skipped)
    assert sequence.verdict().came == 0.8
    sequence.restart(0)
    sequence.update(p, labels, times)
    assert sequence.verdict().came == 1.0


def test_nothing_yet() -> None:
    """Before the first label nothing is found."""
    sequence = VerdictSequence("raw", 1.25)
    verdict = sequence.verdict()
    assert (verdict.status, verdict.labels) == ("no miscalibration found", 0)
    assert math.isnan(verdict.came)
    restored = VerdictSequence("raw", 1.25)
    restored.load(sequence.state())
    assert restored.state() == sequence.state()


def test_another_tolerance() -> None:
    """With another tolerance than was saved, a new block begins."""
    saved = watched(rows(50)).state()
    sequence = VerdictSequence("raw", 1.5)
    sequence.load(saved)
    assert (sequence.labels, sequence.blocks, sequence.groups.tolerance) == (0, 2, 1.5)


def test_total() -> None:
    """The total of partitions has their sums, and a level that is shared by their blocks."""
    first, second = watched(rows(3_000)), watched(rows(4_000, seed=2, start=10))
    second.restart(0)
    second.update(*rows(4_000, seed=3, start=5_000))
    total = VerdictSequence.total([first, second])
    assert (total.partitions, total.blocks, total.labels) == (2, 2, 7_000)
    assert (total.start, total.until) == (0, 8_999 * HOUR)
    assert total.open
    # Of the combinations with one more block than partitions there are two.
    verdict = total.verdict()
    squares = total.groups.groups()[0].squares
    assert verdict.margin == pytest.approx(core.margin(squares, 0, 0.05 / (2 * 3) / 2), rel=1e-10)
    assert verdict.observed == first.verdict().observed + second.verdict().observed


def test_an_incident_began_with_its_fault() -> None:
    """An incident began with the block that is outside, or with the fault of its last alarm."""
    sequence = watched(rows(300, start=4))
    quiet = sequence.began
    assert quiet is None
    sequence.restart(310 * HOUR, 250 * HOUR)
    assert sequence.began == 250 * HOUR
    other = watched(rows(3_000, 2.0, start=4))
    assert other.began == 4 * HOUR
    assert VerdictSequence.total([sequence, other]).began == 4 * HOUR
    other.restart(4_000 * HOUR, 3_900 * HOUR)
    assert VerdictSequence.total([sequence, other]).began == 250 * HOUR
    assert other.began == 3_900 * HOUR


def test_many_partitions() -> None:
    """A total of hundreds of partitions that had hundreds of blocks has a verdict."""
    sequence = VerdictSequence("raw", 1.25)
    for time in range(600):
        sequence.update(np.array([0.5]), np.array([1.0]), np.array([time]))
        sequence.restart(time)
    total = VerdictSequence.total([sequence, *(VerdictSequence("raw", 1.25) for _ in range(599))])
    assert (total.partitions, total.blocks) == (600, 601)
    assert total.verdict().status == "no miscalibration found"


def test_levels_of_combinations_add_up() -> None:
    """Over all combinations of blocks of three partitions, the levels add up to alpha at most."""
    total, most = 0.0, 40
    for k in range(1, most):
        combinations = sum(1 for a in range(k) for b in range(k - a))
        total += combinations * core.verdict_level(0.05, k, 3)
    assert total == pytest.approx(0.05 * (1.0 - 1.0 / most))


def test_total_shows_what_a_partition_found() -> None:
    """A verdict outside in one partition is shown, the last of them, until it is inside."""
    first, second = watched(rows(3_000)), watched(rows(6_000, 2.0))
    assert VerdictSequence.total([first, second]).verdict() == second.verdict()
    assert VerdictSequence.total([first]).verdict() == first.verdict()


@pytest.mark.parametrize(
    ("p", "label", "error"), [(1.5, 0, ScoreError), (math.nan, 0, ScoreError), (0.5, 2, LabelError)]
)
def test_bad_rows(p: float, label: float, error: type[Exception]) -> None:
    """A bad row anywhere in a batch is refused, and the state stays."""
    sequence = watched(rows(95))
    state = sequence.state()
    forecasts, labels, times = rows(100)
    forecasts[50], labels[50] = p, label
    with pytest.raises(error):
        sequence.update(forecasts, labels, times)
    with pytest.raises(ParameterError, match="event times"):
        sequence.update(forecasts[:3], np.zeros(3), np.arange(4))
    assert sequence.state() == state


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_bad_level(alpha: float) -> None:
    """An alpha that is no probability between 0 and 1 is refused."""
    with pytest.raises(ParameterError, match="alpha"):
        VerdictSequence("raw", 1.25, alpha)


HEAD = struct.Struct("<BB10q")  # open, held, and the counts
HELD = struct.Struct("<9q6d")


def damaged() -> list[bytes]:
    """Return states of which one part is wrong."""
    state = watched(rows(6_000, 2.0)).state()
    head, held = HEAD.unpack_from(state), HELD.unpack_from(state, HEAD.size)
    sums = state[HEAD.size + HELD.size :]

    def changed(values: dict[int, float]) -> bytes:
        """Return the state with other values by their place among head, kept and sums."""
        parts = [*head, *held]
        for at, value in values.items():
            if at < len(parts):
                parts[at] = value
        numbers = np.frombuffer(sums).copy()
        for at, value in values.items():
            if at >= len(parts):
                numbers[at - len(parts)] = value
        front = HEAD.pack(*parts[: len(head)]) + HELD.pack(*parts[len(head) :])
        return front + numbers.tobytes()

    labels = head[4]
    wrong: list[dict[int, float]] = [
        {0: 0},  # no incident, and a verdict
        {0: 2},
        {2: 0},  # partitions
        {3: 0},  # blocks
        {4: labels + 1},
        {5: -1},  # observations without a label
        {6: labels},  # next evaluation
        {6: 1 << 40},
        {7: 1, 8: 1},  # limit and rank
        {7: 0, 8: 1},
        {8: 3, 7: 1 << 20},
        {12: 0},  # status
        {12: 3, 13: 0},
        {12: 6},
        {13: -1},  # group
        {13: 13},
        {18: -1},  # labels of the verdict
        {19: held[6] + 1},  # more counted than there are
        {20: held[7] + 1},
        {21: 1.5},  # cut
        {22: math.nan},
        {23: -1.0},
        {24: math.inf},
        {25: 0.5},  # tolerance
        {26: 0.5},
        {27: math.nan},  # tolerance of the block
        {28: -1.0},  # sums
        {30: 0.5},
        {31: math.nan},
    ]
    quiet = watched(rows(95)).state()
    began = quiet[: HEAD.size - 8] + b"\1" + quiet[HEAD.size - 7 :]  # without an incident
    return [b"", state[:-1], state + b"\0", began, *map(changed, wrong)]


@pytest.mark.parametrize("number", range(len(damaged())))
def test_what_is_no_state(number: int) -> None:
    """A state that no sequence has is refused, and nothing is changed."""
    sequence = watched(rows(100))
    before = sequence.state()
    with pytest.raises(ValueError, match=r"."):
        sequence.load(damaged()[number])
    assert sequence.state() == before


@pytest.mark.once
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    factor=st.sampled_from([1.0, 1.5, 3.0, 0.4]),
    tolerance=st.sampled_from([1.0, 1.25, 2.0]),
    level=st.sampled_from([None, 0.5]),
    restarts=st.booleans(),
)
def test_the_core_equals_its_oracle(
    *, seed: int, factor: float, tolerance: float, level: float | None, restarts: bool
) -> None:
    """Verdicts, turns and incidents are those of plain Python, to the last bit, also restored."""
    rng = np.random.default_rng(seed)
    tolerances = np.array([tolerance, *GRID])
    plain = verdict_sequence.VerdictSequence(0.05, tolerances, level)

    def empty() -> Any:  # noqa: ANN401 - of two kinds
        if level is None:
            return core.GroupVerdicts(0.05, tolerances)
        return core.LevelVerdicts(0.05, level, tolerances)

    native = empty()
    for part in range(6):
        p, y, times = rows(300, factor if part % 3 else 1.0, int(rng.integers(1 << 30)))
        first = p if level is None else np.minimum(y, rng.integers(0, 2, 300).astype(float))
        columns = (first, y, rng.permutation(times), rng.integers(0, 2, 300))
        assert native.add(*columns) == plain.add(*columns)
        if restarts and part == 3:
            native.restart(7, 5)
            plain.restart(7, 5)
        restored = empty()
        restored.load(native.save())
        native = restored
        assert (native.open, native.blocks, native.next) == (plain.open, plain.blocks, plain.next)
        assert native.began == plain.began
        assert repr(native.verdict()) == repr(tuple(plain.verdict()))
        assert native.held == plain.held


@pytest.mark.parametrize(("blocks", "partitions"), [(1, 1), (7, 1), (2, 2), (5, 40), (600, 600)])
def test_levels_equal_the_oracle(blocks: int, partitions: int) -> None:
    """The level of a block is that of plain Python, to the last bit."""
    found = core.verdict_level(0.05, blocks, partitions)
    assert found == verdict_sequence.verdict_level(0.05, blocks, partitions)

"""The order in which labels teach: decisions, and what is saved."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from benchmarks.stalls import LOST, events
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.oracles import teaching_order as oracle

from abers import ProtectedVennAbers, StateError
from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.backends import core
from abers.serialization import seal

if TYPE_CHECKING:
    from abers._core import TeachingByAge, TeachingOrder

pytestmark = pytest.mark.native

CALLS = {PREDICT: "predict", LEARN: "label", EXPIRE: "expire"}
WAITS = st.sampled_from((0, 1, 7, 300))
MOST = st.sampled_from((2**62, 0, 1, 20))  # labels that wait
PLACES = st.integers(0, 10**6)


def facts(order: TeachingOrder | oracle.TeachingOrder) -> tuple[int, int, bool, bool]:
    """Return what an order says of itself."""
    return order.held, order.cap, order.stalled, order.by_arrival


class Decisions(RuleBasedStateMachine):
    """Predictions, labels, expiries and reloads in any order."""

    @initialize(wait=WAITS, classes=st.sampled_from((2, 5)), most=MOST)
    def begin(self, wait: int, classes: int, most: int) -> None:
        """Begin without rows."""
        self.options, self.classes = (wait, classes, most), classes
        self.native = core.TeachingOrder(*self.options)
        self.plain = oracle.TeachingOrder(*self.options)
        self.unsaved = core.TeachingOrder(*self.options)  # the same history, never reloaded
        self.number, self.open = -1, [0][:0]

    def predict(self, gap: int) -> None:
        """Predict a row."""
        self.number += 1 + gap
        self.open.append(self.number)
        expected = self.plain.predict(self.number)
        assert self.native.predict(self.number) == expected
        assert self.unsaved.predict(self.number) == expected

    def settle(self, number: int, *, label: int) -> None:
        """Bring the label of a row."""
        expected = self.plain.label(number, label)
        assert self.native.label(number, label) == expected
        assert self.unsaved.label(number, label) == expected

    @rule(gaps=st.lists(st.sampled_from((0, 0, 0, 1, 5)), min_size=1, max_size=9))
    def predicts(self, gaps: list[int]) -> None:
        """Predict rows whose numbers may have gaps."""
        for gap in gaps:
            self.predict(gap)

    @rule(place=PLACES, label=st.integers(0, 4))
    def labels(self, place: int, *, label: int) -> None:
        """Bring the label of any row that waits, or of none."""
        number = self.open.pop(place % len(self.open)) if self.open else place
        self.settle(number, label=label % self.classes)

    @rule(place=PLACES)
    def expires(self, place: int) -> None:
        """Let any row expire that waits, or none."""
        number = self.open.pop(place % len(self.open)) if self.open else place
        expected = self.plain.expire(number)
        assert self.native.expire(number) == expected
        assert self.unsaved.expire(number) == expected

    @rule(
        seed=PLACES,
        count=st.integers(1, 160),
        delays=st.tuples(st.integers(0, 40), st.integers(0, 40)),
        lost=st.tuples(st.sampled_from((0.0, 0.3, 1.0)), st.sampled_from((0.0, 0.3, 1.0))),
        spread=st.integers(0, 30),
    )
    def flows(
        self,
        seed: int,
        count: int,
        delays: tuple[int, int],
        lost: tuple[float, float],
        spread: int,
    ) -> None:
        """Predict many rows whose delays and losses depend on the label."""
        rng = random.Random(seed)  # noqa: S311 - no secret
        due: dict[int, list[tuple[int, int]]] = {}
        for step in range(count):
            self.predict(0)
            label = rng.randrange(self.classes)
            if rng.random() >= lost[label % 2]:
                at = step + delays[label % 2] + rng.randrange(spread + 1)
                due.setdefault(at, []).append((self.number, label))
            for number, its in due.pop(step, []):
                self.open.remove(number)
                self.settle(number, label=its)

    @rule()
    def reload(self) -> None:
        """Continue from what was saved."""
        saved = self.native.save()
        self.native = core.TeachingOrder(*self.options)
        self.native.load(saved)
        assert self.native.save() == saved

    @invariant()
    def agree(self) -> None:
        """Compare what the orders say of themselves; equal histories save equal bytes."""
        assert facts(self.native) == facts(self.plain)
        assert self.native.save() == self.unsaved.save()
        for number in (*self.open[-2:], *self.open[:2], self.number + 1):
            assert self.native.waits(number) == self.plain.waits(number) == (number in self.open)


class DecisionsByAge(RuleBasedStateMachine):
    """Rows at any times, and a clock that may stand still."""

    @initialize(age=st.sampled_from((0, 3, 20)), most=MOST)
    def begin(self, age: int, most: int) -> None:
        """Begin without rows."""
        self.options, self.clock, self.number, self.open = (age, most), 0, -1, [0][:0]
        self.native, self.plain = core.TeachingByAge(age, most), oracle.TeachingByAge(age, most)

    @rule(gap=st.sampled_from((0, 0, 2)), off=st.integers(-30, 5))
    def predicts(self, gap: int, off: int) -> None:
        """Predict a row of a time near the clock."""
        self.number += 1 + gap
        self.open.append(self.number)
        time = self.clock + off
        assert self.native.predict(self.number, time) == self.plain.predict(self.number, time)

    @rule(place=PLACES, label=st.booleans())
    def labels(self, place: int, *, label: bool) -> None:
        """Bring the label of any row that waits, or of none."""
        number = self.open.pop(place % len(self.open)) if self.open else place
        assert self.native.label(number, label) == self.plain.label(number, label)

    @rule(place=PLACES)
    def expires(self, place: int) -> None:
        """Let any row expire that waits, or none."""
        number = self.open.pop(place % len(self.open)) if self.open else place
        assert self.native.expire(number) == self.plain.expire(number) == []

    @rule(by=st.integers(-3, 12))
    def advances(self, by: int) -> None:
        """Move the clock, or try to move it back."""
        assert self.native.advance(self.clock + by) == self.plain.advance(self.clock + by)
        self.clock += max(by, 0)

    @rule()
    def reload(self) -> None:
        """Continue from what was saved."""
        saved = self.native.save()
        self.native = core.TeachingByAge(*self.options)
        self.native.load(saved)
        assert self.native.save() == saved

    @invariant()
    def agree(self) -> None:
        """Compare what waits and what is kept."""
        assert self.native.held == self.plain.held
        for number in (*self.open[-2:], *self.open[:2], self.number + 1):
            assert self.native.waits(number) == self.plain.waits(number) == (number in self.open)


# Examples are few, for a flow has hundreds of steps.
Decisions.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestDecisions = Decisions.TestCase
TestDecisionsByAge = DecisionsByAge.TestCase


# Named streams


class Decided(NamedTuple):
    """Rows in the order in which they were taught, and the steps in stalls and by arrival."""

    taught: list[int]
    stalls: list[int]
    arrival: list[int]
    order: TeachingOrder


def decided(delays: list[int], labels: list[bool], expiry: int | None = None) -> Decided:
    """Run a stream, and check each decision against the plain rule."""
    native, plain = core.TeachingOrder(), oracle.TeachingOrder()
    taught: list[int] = []
    stalls: list[int] = []
    arrival: list[int] = []
    for step, (kind, row) in enumerate(events(np.array(delays), expiry)):
        its = (labels[row],) if kind == LEARN else ()
        due = getattr(native, CALLS[kind])(row, *its)
        assert due == getattr(plain, CALLS[kind])(row, *its)
        assert facts(native) == facts(plain)
        taught += due
        stalls += [step] * native.stalled
        arrival += [step] * native.by_arrival
    return Decided(taught, stalls, arrival, native)


def coin(rate: float, n: int, seed: int) -> tuple[list[bool], random.Random]:
    """Draw labels, and return them with the generator."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    return [rng.random() < rate for _ in range(n)], rng


def test_labels_that_come_in_order_are_taught_at_once() -> None:
    """Nothing is kept where all delays are equal, from the first label on."""
    labels, _ = coin(0.3, 600, 3)
    found = decided([25] * 600, labels)
    assert found.taught == [*range(575)]
    assert not found.stalls
    assert found.order.held == 0


def test_early_positives_wait_for_the_negatives_before_them() -> None:
    """Where positives come first, all rows are taught in the order of prediction."""
    labels, _ = coin(0.4, 800, 4)
    found = decided([1 if label else 60 for label in labels], labels)
    assert found.taught == [*range(len(found.taught))]
    assert not found.arrival


def test_delays_that_say_nothing_lead_to_the_order_of_arrival() -> None:
    """With 50 labels of each class of equal spread delays, labels are taught as they come."""
    labels, rng = coin(0.5, 900, 5)
    found = decided([rng.randrange(120) for _ in labels], labels)
    assert found.order.by_arrival
    assert found.order.held == 0
    assert found.taught != sorted(found.taught)


@pytest.mark.parametrize("seed", range(18))
def test_the_order_never_switches_where_delays_tell_the_label(seed: int) -> None:
    """In 18 streams whose positives come first, the order of arrival is never taken."""
    labels, rng = coin((0.5, 0.1, 0.03)[seed % 3], 3_000, seed)
    order = core.TeachingOrder()
    delays = [min(rng.randrange(1, 200), 300) if label else 300 for label in labels]
    for kind, row in events(np.array(delays)):
        if kind == PREDICT:
            order.predict(row)
        else:
            order.label(row, labels[row])
        assert not order.by_arrival


def test_a_class_that_never_comes_holds_back_so_many_rows() -> None:
    """With labels of one class and a third of all lost, rows older than 131,072 are passed."""
    order, taught, count = core.TeachingOrder(), [0][:0], 140_000
    for row in range(count):
        due = order.predict(row)
        if row % 3:
            due += order.label(row, 0) or []
        taught += due
    assert order.stalled
    waits = next(row for row in range(count - 1 - 131_072, count) if row % 3 == 0)
    assert taught == [row for row in range(waits) if row % 3]


def test_a_stall_holds_the_other_class_back() -> None:
    """While negatives stop, positives wait; when they come, all are taught in order."""
    labels, _ = coin(0.5, 1_200, 6)
    delays = [600 + 300 - row if 600 <= row + 20 < 900 and not its else 20
              for row, its in enumerate(labels)]  # fmt: skip
    found = decided(delays, labels)
    assert found.stalls
    assert found.order.held == 0
    misplaced = sum(a > b for a, b in zip(found.taught, found.taught[1:], strict=False))
    assert misplaced <= 12  # the rows that were passed before the stall was noticed


@pytest.mark.once
@pytest.mark.parametrize("seed", range(6))
def test_long_streams_are_decided_as_the_rule_says(seed: int) -> None:
    """Streams whose delays and losses change, by class, give the same decisions."""
    labels, rng = coin((0.5, 0.3, 0.7)[seed % 3], 5_000, seed)
    delays: list[int] = []
    while len(delays) < len(labels):
        least = [rng.choice((0, 3, 20)) for _ in range(2)] if rng.random() < 0.7 else [5, 5]
        spread = [rng.choice((1, 4, 60, 120)) for _ in range(2)] if rng.random() < 0.5 else [90, 99]
        lost = [rng.choice((0.0, 0.05, 0.1, 0.4, 1.0)) for _ in range(2)]
        delays += [
            LOST if rng.random() < lost[its] else least[its] + rng.randrange(spread[its])
            for its in labels[len(delays) :][: rng.choice((300, 1_000, 1_500))]
        ]
    assert decided(delays, labels, expiry=200).stalls


def test_the_order_of_arrival_begins_with_50_labels_of_each_class() -> None:
    """With 49 labels of the second class labels still wait for those before them."""
    order = core.TeachingOrder()
    for number in range(100):
        order.predict(number)
    for number in range(100):
        assert not order.by_arrival
        order.label(99 - number, number % 2 == 0)
    assert order.by_arrival


@pytest.mark.parametrize(("late", "arrival"), [(85, False), (110, True)])
def test_delays_must_differ_for_the_order_of_arrival(late: int, arrival: bool) -> None:  # noqa: FBT001
    """Delays of 60 and 85 are too near for it, those of 60 and 110 are not."""
    labels, rng = coin(0.5, 700, 12)
    found = decided([rng.choice((60, late)) for _ in labels], labels)
    assert found.order.by_arrival is arrival


def test_the_usual_share_forgets_its_first_notes() -> None:
    """A share of missing labels that came after 4,000 rows is as usual as the rule says."""
    labels, rng = coin(0.5, 7_000, 13)
    lost = [0.02 + 0.04 * (row > 4_000) + 0.4 * (row > 6_000) for row in range(7_000)]
    found = decided([LOST if rng.random() < one else 3 for one in lost], labels, expiry=30)
    assert found.stalls


def test_no_stall_begins_before_100_notes() -> None:
    """After an expiry 25 missing labels begin no stall until a hundred rows are noted."""
    order = core.TeachingOrder()
    order.predict(0)
    order.expire(0)
    for number in range(1, 101):
        assert not order.stalled
        order.predict(number)
        if number < 75:
            order.label(number, number % 2 == 0)
    assert order.cap == 0
    assert order.stalled


def test_a_row_that_is_lost_for_ever_stops_nothing() -> None:
    """Rows behind a lost one are taught once it is older than the delays of either class."""
    labels, _ = coin(0.3, 500, 7)
    found = decided([LOST, *([10] * 499)], labels)
    assert found.taught == [*range(1, 490)]
    assert found.order.waits(0)


def test_a_late_label_of_a_lost_row_teaches_at_once() -> None:
    """A label whose row was passed is taught when it comes."""
    order = core.TeachingOrder(5)
    for number in range(7):
        order.predict(number)
    assert order.label(3, label=True) == []
    assert order.label(0, label=False) == [0]


def test_an_expired_row_holds_nothing_back() -> None:
    """The labels behind a row are taught when it expires."""
    order = core.TeachingOrder()
    for number in (3, 4, 9):
        order.predict(number)
    assert order.label(9, label=True) == []
    assert order.expire(3) == []
    assert order.expire(4) == [9]
    assert order.label(3, label=False) is None


@pytest.mark.parametrize("seed", [14, 15, 16])
def test_few_labels_that_begin_to_be_lost_are_no_stall(seed: int) -> None:
    """Where one label in 100 of either class is lost from some row on, teaching goes on."""
    labels, rng = coin(0.4, 3_000, seed)
    delays = [LOST if row > 1_000 and rng.random() < 0.01 else 10 for row in range(3_000)]
    assert not decided(delays, labels, expiry=1_000).stalls


def test_a_stall_of_a_rare_class_is_seen_before_its_rows_are_passed() -> None:
    """Where one label in 20 is 1 and these stop, nearly all rows wait for them and their order."""
    labels, _ = coin(0.05, 3_000, 15)
    delays = [2_000 + 20 - row if 1_000 <= row < 2_000 and its else 20
              for row, its in enumerate(labels)]  # fmt: skip
    found = decided(delays, labels)
    assert found.stalls
    late = [number for number in found.taught if labels[number] and 1_000 <= number < 2_000]
    after = [found.taught.index(number) for number in late]
    taught_before = [max(found.taught[:at]) for at in after]
    assert sum(earlier > number for earlier, number in zip(taught_before, late, strict=True)) <= 3


def test_many_lost_labels_are_usual_once_one_expired() -> None:
    """Where 30 % of the labels are lost from the start, teaching goes on soon after one expired."""
    labels, rng = coin(0.4, 1_000, 8)
    delays = [LOST if rng.random() < 0.3 else 10 for _ in labels]
    found = decided(delays, labels, expiry=100)
    assert len(found.taught) >= 600
    first = delays.index(LOST)
    kinds = [(kind, row) for kind, row in events(np.array(delays), 100)]
    assert max(found.stalls) <= kinds.index((EXPIRE, first)) + 200


def test_early_labels_of_both_classes_do_not_tell_how_late_others_are() -> None:
    """Where few negatives are early and most are late, positives wait for the late ones, too."""
    labels, rng = coin(0.5, 1_500, 14)
    delays = [2 if its else 5 if rng.random() < 0.04 else 600 for its in labels]
    found = decided(delays, labels)
    first = delays.index(600)
    assert found.taught.index(first) <= first + 10


def test_one_class_of_missing_labels_is_not_taught_alone() -> None:
    """Positives wait while the labels of most older rows are missing and no negative ever came."""
    order = core.TeachingOrder(50)
    taught = 0
    for number in range(400):
        taught += len(order.predict(number))
        taught += len(order.label(number, label=True) or []) if number % 3 == 0 else 0
    assert order.stalled
    assert taught <= 10


def test_the_caller_s_wait_is_the_cap_until_both_classes_came() -> None:
    """The first label of the second class ends the wait."""
    order = core.TeachingOrder(77)
    order.predict(0)
    order.label(0, label=True)
    assert order.cap == 77
    order.predict(1)
    order.label(1, label=False)
    assert order.cap == 0
    assert core.TeachingOrder().cap == 4_096


# Saved state


def lived(seed: int = 9) -> TeachingOrder:
    """Return an order with rows that wait, are kept, were passed and have expired."""
    labels, rng = coin(0.5, 400, seed)
    order: TeachingOrder = core.TeachingOrder(300)
    for kind, row in events(np.array([rng.choice((5, 40, LOST)) for _ in labels])):
        if kind == PREDICT:
            order.predict(3 * row)
        else:
            order.label(3 * row, labels[row])
    order.expire(1_185)
    return order


def lived_by_age() -> TeachingByAge:
    """Return an order by age with rows that wait, and labels that are kept."""
    order: TeachingByAge = core.TeachingByAge(50)
    for number in range(40):
        order.predict(2 * number, 10 * number)
    for number in range(0, 80, 6):
        order.label(number, number % 4 == 0)
    order.advance(200)
    return order


def test_saved_state_that_is_wrong_is_refused() -> None:
    """What is cut short, extended or has a wrong byte is refused or lives; nothing else changes."""
    rng = random.Random(10)  # noqa: S311 - no secret
    lives: tuple[TeachingOrder | TeachingByAge, ...] = (lived(), lived_by_age())
    for whole in lives:
        saved, refused = whole.save(), 0
        wrong = [saved[:size] for size in range(len(saved))] + [saved + b"\0"]
        for _ in range(1_500):
            damaged = bytearray(saved)
            damaged[rng.randrange(len(saved))] ^= 1 << rng.randrange(8)
            wrong.append(bytes(damaged))
        for one in wrong:
            before = whole.save()
            try:
                whole.load(one)
            except ValueError:
                assert whole.save() == before
                refused += 1
                continue
            assert whole.save() == one
            number = int.from_bytes(one[8:16], "little", signed=True)
            for later in range(number + 1, min(number + 200, 2**62)):
                times = (later,) * isinstance(whole, core.TeachingByAge)
                whole.predict(later, *times)
                whole.label(later - 3, label=True)
                whole.expire(later - 7)
            whole.load(saved)
        assert refused > len(saved)


def behind(order: TeachingOrder, rows: int) -> bytes:
    """Return the state of an order after so many more predictions, without notes of them."""
    predictions, last = struct.unpack_from("<qq", order.save())
    return struct.pack("<qq", predictions + rows, last + rows) + order.save()[16:]


def test_a_state_without_notes_on_its_rows_is_refused() -> None:
    """A state that would have 2**48 rows to note is refused; of 2**32 a prediction notes a part."""
    order = core.TeachingOrder()
    for number in range(40):
        order.predict(number)
        order.label(number, label=number % 2 == 0)
    before = order.save()
    with pytest.raises(ValueError, match="notes on rows"):
        order.load(behind(order, 2**48 - 100))
    assert order.save() == before
    order.load(behind(order, 2**32))
    order.predict(2**32 + 40)
    noted = struct.unpack_from("<q", order.save(), 16)[0]
    assert noted - struct.unpack_from("<q", before, 16)[0] == 65_536


def test_a_calibrator_with_such_a_state_is_a_state_error() -> None:
    """Nobody needs a key to make one: only its digest, which everybody can compute."""
    calibrator = ProtectedVennAbers()
    for number in range(40):
        calibrator.predict_one(0.5, number=number)
        calibrator.learn_one(0.5, number % 2, number=number)
    blob = calibrator.to_bytes()
    magic, payload = blob[:8], bytearray(blob[8:-16])
    more, counts = 2**48 - 100, struct.pack("<qq", 40, 39)
    at = payload.index(counts)  # of the order: predictions, and the last number
    payload[at : at + 16] = struct.pack("<qq", 40 + more, 39 + more)
    moment = payload.index(struct.pack("<qq", 40, 40))  # of the lanes: predictions, and labels
    payload[moment : moment + 8] = struct.pack("<q", 40 + more)
    with pytest.raises(StateError, match="notes on rows"):
        ProtectedVennAbers.from_bytes(seal(magic, bytes(payload)))


def test_numbers_must_ascend() -> None:
    """A row whose number is not above all before is refused, and nothing changes."""
    for order, time in ((core.TeachingOrder(), ()), (core.TeachingByAge(3), (0,))):
        order.predict(5, *time)
        before = order.save()
        with pytest.raises(ValueError, match="must ascend"):
            order.predict(5, *time)
        assert order.label(4, label=True) is None
        assert order.save() == before
    with pytest.raises(ValueError, match="must not be negative"):
        core.TeachingOrder(-1)
    with pytest.raises(ValueError, match="must not be negative"):
        core.TeachingByAge(-1)
    with pytest.raises(ValueError, match="too far from 0"):
        core.TeachingByAge(1).predict(0, 2**61)


def test_memory_is_that_of_rows_that_wait() -> None:
    """Neither a long stream nor rows that are lost take more than rows that wait at once."""
    empty = core.TeachingOrder().__sizeof__()
    assert empty <= 1_200
    order = core.TeachingOrder()
    for number in range(30_000):
        order.predict(number)
        if number >= 100 and number != 150:
            order.label(number - 100, number % 3 == 0)
    assert order.__sizeof__() <= empty + 101 * 16 * 5
    for number in range(30_000, 130_000):
        order.predict(number)
    assert order.__sizeof__() <= empty + 100_101 * 16 * 3
    for number in range(130_000):
        order.expire(number)
    assert order.__sizeof__() <= empty + 16_000

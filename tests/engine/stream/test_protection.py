"""What all protected tasks of a stream share: replay, resets, and input that cannot be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as tried
from hypothesis import strategies as st
from tests.engine.stream import test_protected as binary
from tests.engine.stream import test_protected_classes as several
from tests.engine.stream import test_protected_cross as cross
from tests.engine.stream import test_protected_regression as numbers
from tests.engine.stream.cases import saved_calibrators

from abers import (
    ParameterError,
    ProtectedCrossVennAbers,
    ProtectedMultiClass,
    ProtectedVennAbers,
)
from abers.regression import ProtectedIVAPR
from abers.serialization import pack, seal, unseal
from abers.stream import DeadLetter, Events, Label, Observation, Processor, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.stream import Event


@dataclass(frozen=True)
class Case:
    """A protected task."""

    settings: Settings
    events: Callable[[int, int], list[Event]]
    kind: Any  # its calibrator
    score: Any
    value: Any
    other: Any
    ends: tuple[Any, ...]  # scores that are certain
    bad: tuple[Any, ...]  # scores that are refused

    def calibrator(self, processor: Processor) -> Any:  # noqa: ANN401 - of the kind
        """Return a copy of the only calibrator of a processor."""
        (saved,) = saved_calibrators(processor)
        if self.kind is ProtectedMultiClass:  # a stream saves the model of the core, without names
            text = b'[100, "a", "b", "c"]'
            saved = seal(
                b"abersPM\x01", pack([text, bytes(unseal(b"abersPN\x01", saved, "a model"))])
            )
        return self.kind.from_bytes(saved)


CERTAIN = ({"a": 1.0, "b": 0.0, "c": 0.0}, {"a": 0.0, "b": 0.0, "c": 1.0})
CASES = {
    "binary": Case(
        binary.SETTINGS,
        binary.events,
        ProtectedVennAbers,
        0.9,
        0,
        1,
        (0.0, 1.0, 0, 1),
        (1.5, -0.1, float("nan"), "0.5"),
    ),
    "cross": Case(
        cross.SETTINGS,
        cross.events,
        ProtectedCrossVennAbers,
        [0.9, 0.8, 0.7],
        0,
        1,
        ([0.0, 0.0, 1.0], [1.0, 1.0, 1.0], 0.0),
        ([0.1, 1.5, 0.2], [0.1, 0.2], -0.1, float("inf")),
    ),
    "several": Case(
        several.SETTINGS,
        several.events,
        ProtectedMultiClass,
        {"a": 0.8, "b": 0.1, "c": 0.1},
        "b",
        "a",
        CERTAIN,
        ({"a": 0.5}, {"a": 1.5, "b": -0.5}, {"a": 0.5, "d": 0.5}, 0.5),
    ),
    "numbers": Case(
        numbers.SETTINGS,
        numbers.events,
        ProtectedIVAPR,
        4.0,
        7.0,
        1.0,
        (0.0, 10.0, -1e300, 1e300),
        (float("nan"), float("inf"), "4"),
    ),
}
EVERY = pytest.mark.parametrize("name", CASES)


@EVERY
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 120), max_size=6),
    resets=st.lists(st.integers(1, 120), max_size=2),
)
@tried(max_examples=12, deadline=None)
def test_any_split_restore_and_replay(
    name: str, seed: int, cuts: list[int], resets: list[int]
) -> None:
    """Batches cut anywhere, restores, the journal, and resets between: the same bytes."""
    case = CASES[name]
    stream = case.events(45, seed)
    whole, split, other = (Processor(case.settings) for _ in range(3))
    ends = sorted({*cuts, *resets, len(stream)})
    first, expected = 0, []
    for end in sorted({*resets, len(stream)}):
        expected += whole.process_many(stream[first:end])
        first = min(end, len(stream))
        if end in resets:
            whole.reset_model(stream[0].model)
    first, found = 0, []
    for end in ends:
        outputs, entry = split.process_logged(Events.of(stream[first:end]))
        assert other.apply(entry).in_order() == outputs.in_order()
        found += outputs.in_order()
        first = min(end, len(stream))
        if end in resets:
            split.reset_model(stream[0].model)
            other.reset_model(stream[0].model)
        split = Processor.restore(split.snapshot(), case.settings)
    assert found == expected
    assert whole.state_bytes() == split.state_bytes() == other.state_bytes()


@EVERY
def test_a_reset_while_observations_wait(name: str) -> None:
    """Labels of older observations teach the experts, hold no lane, and count in no loss."""
    case = CASES[name]
    processor = Processor(case.settings)
    processor.process_many([Observation(f"a{n}", n, score=case.score) for n in range(10)])
    assert case.calibrator(processor).awaiting == 10
    processor.reset_model("default")
    fresh = case.calibrator(processor)
    assert (fresh.awaiting, fresh.lanes, len(fresh)) == (0, 0, 0)
    processor.process_many([Label(f"a{n}", 50, value=case.value) for n in range(10)])
    after = case.calibrator(processor)
    assert (after.awaiting, after.lanes, len(after)) == (0, 0, 10)
    assert set(after.expert_losses().values()) == {0.0}
    processor.process(Observation("b", 60, score=case.score))
    processor.process(Label("b", 61, value=case.other))
    last = case.calibrator(processor)
    assert (last.lanes, len(last)) == (1, 11)
    assert min(last.expert_losses().values()) > 0.0


@EVERY
def test_scores_that_are_certain(name: str) -> None:
    """Scores at the ends get a prediction, and their labels a finite loss."""
    case = CASES[name]
    processor = Processor(case.settings)
    for n, score in enumerate(case.ends):
        (found,) = processor.process(Observation(f"a{n}", n, score=score))
        assert not isinstance(found, DeadLetter)
        processor.process(Label(f"a{n}", n, value=case.value))
    calibrator = case.calibrator(processor)
    assert len(calibrator) == len(case.ends)
    assert all(0.0 <= one < 1e3 for one in calibrator.expert_losses().values())


@EVERY
def test_scores_that_are_refused(name: str) -> None:
    """Scores that are no probabilities, or no numbers, are dead letters and change nothing."""
    case = CASES[name]
    processor = Processor(case.settings)
    processor.process(Observation("a", 1, score=case.score))
    before = case.calibrator(processor)
    for score in case.bad:
        (refused,) = processor.process(Observation("b", 2, score=score))
        assert isinstance(refused, DeadLetter)
        assert refused.reason == "bad-score"
    assert case.calibrator(processor) == before
    processor.process(Observation("b", 2, score=case.score))  # the id was not used up
    assert case.calibrator(processor).awaiting == 2


@EVERY
def test_labels_of_expired_observations(name: str) -> None:
    """They count as late, teach nothing, and the lanes are free again."""
    case = CASES[name]
    processor = Processor(case.settings)
    processor.process_many([Observation(f"{n}", n, score=case.score) for n in range(3)])
    processor.process(Observation("late", 2_000, score=case.score))
    assert case.calibrator(processor).awaiting == 1
    for n in range(3):
        processor.process(Label(f"{n}", 2_001 + n, value=case.value))
    calibrator = case.calibrator(processor)
    assert processor.counters["late_labels"] == 3
    assert (calibrator.lanes, calibrator.awaiting, len(calibrator)) == (3, 1, 0)
    assert set(calibrator.expert_losses().values()) == {0.0}


@EVERY
@pytest.mark.parametrize("weight", [0.0, 1.0, -0.5, float("nan"), 1, "0.25", None])
def test_first_weights_that_are_refused(name: str, weight: Any) -> None:  # noqa: ANN401 - anything
    """The weight of the raw forecast at first is between 0 and 1; the error names it."""
    settings, key = CASES[name].settings, "base_weight" if name == "numbers" else "raw_weight"
    mistake = "is not a number|is too small; write more than 0|is too large; write less than 1"
    with pytest.raises(ParameterError, match=f"^{key}: .* ({mistake})"):
        msgspec.structs.replace(settings, **{key: weight})

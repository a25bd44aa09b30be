"""Numbers of the answers, for metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.engine.pages.model_streams import of_kind

from abers.monitoring import ANSWERS, Number, answer_numbers
from abers.monitoring.answer_numbers import STATES

if TYPE_CHECKING:
    from abers.monitoring.answers import Answers


def answers_of(kind: str) -> Answers:
    """Return the answers about the model of a stream."""
    found = of_kind(kind).processor.monitors[0].answers()
    assert found is not None
    return found


def by_name(numbers: list[Number]) -> dict[tuple[str, ...], float]:
    """Return numbers by name, view and labels, each of which is there once."""
    keys = [(one.name, one.view, *one.labels.values()) for one in numbers]
    assert len({*keys}) == len(keys)
    return dict(zip(keys, (one.value for one in numbers), strict=True))


@pytest.mark.parametrize("kind", ["two", "three", "numbers", "margins", "waiting", "recovered"])
def test_each_number_is_that_of_the_answers(kind: str) -> None:
    """States are sets with a single 1; shares, gaps and ranges are those of the main rows."""
    answers = answers_of(kind)
    found = by_name([*answer_numbers(answers)])
    for one in answers.answers:
        states = {state: found.pop(("answer", "", one.question, state)) for state in STATES}
        assert [state for state, value in states.items() if value == 1.0] == [one.state]
        assert sum(states.values()) == 1.0
    pays = answers["pays"]
    for name, value in (("", pays.number), ("_low", pays.low), ("_high", pays.high)):
        known = found.pop((f"loss_saved{name}_ratio", ""), None)
        assert known == (None if value is None else pytest.approx(value / 100.0))
    if answers.now is None or answers.whole is None:
        assert not found
        return
    for period, part in (("now", answers.now), ("whole", answers.whole)):
        for view, rows in part.views.items():
            for end in ("low", "high"):
                value = found.pop((f"calibration_error_{end}_ratio", view, period), None)
                assert value == (None if rows.error is None else getattr(rows.error, end))
            assert (rows.error is None) == (kind == "numbers")
    assert found.pop(("now_labels", "")) == answers.now.labels
    assert found.pop(("now_wrong_labels", "")) == answers.wrong_by
    for view, rows in answers.now.views.items():
        for row in rows.main:
            shares = [
                found.pop((f"now_{one}_ratio", view, row.key)) for one in ("promised", "came")
            ]
            assert shares == [row.promised, row.came]
            gap, low, high = (
                found.pop((f"now_gap{one}_ratio", view, row.key)) for one in ("", "_low", "_high")
            )
            assert gap == pytest.approx(shares[1] - shares[0])
            assert low <= gap <= high
            assert [100.0 * low, 100.0 * high] == pytest.approx([row.low, row.high])
    assert not found


def test_all_are_defined() -> None:
    """Each number has a definition of its own, with a gauge and a sentence."""
    made = {one.measure for kind in ("two", "numbers") for one in answer_numbers(answers_of(kind))}
    assert made == {*ANSWERS}
    assert len({one.metric for one in ANSWERS}) == len(ANSWERS)
    assert all(one.help.endswith(".") for one in ANSWERS)


@pytest.mark.parametrize("kind", ["two", "numbers"])
def test_answers_of_now_need_no_points(kind: str) -> None:
    """Sums without points over time give the same answers."""
    (process,) = of_kind(kind).processor.monitors[0].e_processes
    whole, brief = process.answer_sums(), process.answer_sums(over_time=False)
    assert brief.trail == ()
    assert whole._replace(trail=()) == brief

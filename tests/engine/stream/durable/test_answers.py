"""Answers by id, `abers.stream.durable.answers`: who asks again gets the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.engine.stream.replies import lab, obs

from abers import ParameterError, StateError
from abers.stream import DurableProcessor, Prediction, Processor, Settings
from abers.stream.durable.answers import AnswerMemory, EventAnswer
from abers.stream.durable.folder import StateFolder

if TYPE_CHECKING:
    from pathlib import Path

    from abers.stream import Event

MOST = 1_000


def statuses(found: list[EventAnswer]) -> list[str]:
    """Return the statuses of answers."""
    return [one.status for one in found]


def ask(durable: DurableProcessor, *events: Event) -> list[EventAnswer]:
    """Return the answers to events."""
    return durable.answer([*events]).result()


def test_the_result_of_each(tmp_path: Path) -> None:
    """Each event is answered by its result, in one group or in several."""
    events: list[Event] = [
        obs("a", 1, score=0.3),
        obs("a", 2, score=0.9),
        lab("a", 3),
        lab("a", 4),
        lab("a", 5, 0),
    ]
    events += [lab("b", 6), obs("b", 7), lab("b", 8), obs("c", 9, score=None), lab("d", 9, value=7)]
    expected = ["predicted", "known", "learned", "duplicate", "conflict"]
    expected += ["waiting", "predicted", "duplicate", "refused", "refused"]
    for name, size in (("one", 1), ("all", len(events))):
        with DurableProcessor(tmp_path / name, most_answers=MOST) as durable:
            parts = [ask(durable, *events[at : at + size]) for at in range(0, len(events), size)]
        found = [one for part in parts for one in part]
        assert statuses(found) == expected
        assert found[0].prediction == found[1].prediction
        made = msgspec.json.decode(found[0].prediction or b"", type=Prediction)
        assert (made.id, made.score, made.p) == ("a", 0.3, 0.5)
        assert [one.dead_letter.reason for one in found if one.dead_letter] == [
            "bad-score",
            "bad-label",
        ]


def test_answers_survive(tmp_path: Path) -> None:
    """Answers are there behind a restart, from a snapshot and from the journal behind it."""
    first: list[EventAnswer] = []
    with DurableProcessor(tmp_path, journal_bytes=2_000, most_answers=MOST) as durable:
        number = 0
        while len(StateFolder(tmp_path).numbers("answers")) < 2:
            first += ask(durable, obs(f"{number}", number, score=number % 7 / 7))
            assert statuses(ask(durable, lab(f"{number}", number, number % 2))) == ["learned"]
            number += 1
        first += ask(durable, obs("last", number))
    with DurableProcessor(tmp_path, most_answers=MOST) as durable:
        names = [*map(str, range(number)), "last"][-MOST:]
        again = ask(durable, *(obs(name, number) for name in names))
        assert {*statuses(again)} == {"known"}
        assert [one.prediction for one in again] == [one.prediction for one in first[-MOST:]]
        repeated = ask(durable, *(lab(name, number, int(name) % 2) for name in names[:-1]))
        assert {*statuses(repeated)} == {"duplicate"}
        assert statuses(ask(durable, lab(names[0], number, 1 - int(names[0]) % 2))) == ["conflict"]
    newest = max(tmp_path.glob("*.snapshot")).with_suffix(".answers")  # a copy may be killed
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.raises(StateError, match=r"\.answers: a file of answers has a wrong checksum"):
        DurableProcessor(tmp_path, most_answers=MOST)


def test_what_is_forgotten() -> None:
    """The oldest ids are forgotten, and their observations are known without a prediction."""
    answers, processor = AnswerMemory(2), Processor()
    for name in "abc":
        answers.take([obs(name)], processor.process_logged([obs(name)])[0])
    assert len(answers) == 2
    for name, status in (("a", "forgotten"), ("c", "known")):
        found = answers.take([obs(name)], processor.process_logged([obs(name)])[0])
        assert statuses(found) == [status]


def test_answers_that_are_not_remembered(tmp_path: Path) -> None:
    """Without room for answers there are none, and a call says how to get them."""
    with DurableProcessor(tmp_path) as durable, pytest.raises(ParameterError, match="most_answers"):
        durable.answer([obs("a")])


def test_a_late_label() -> None:
    """A label of an observation that no longer waits is late."""
    answers, processor = AnswerMemory(MOST), Processor(Settings(label_timeout=10, max_jump=2**53))
    events: list[Event] = [obs("a", 0), obs("b", 1), obs("c", 1), obs("d", 100), obs("e", 100)]
    events += [obs("f", 100), lab("a", 100)]
    found = answers.take(events, processor.process_logged(events)[0])
    assert statuses(found)[-1] == "late"

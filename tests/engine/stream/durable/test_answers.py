"""Answers by id, `abers.stream.durable.answers`: who asks again gets the same."""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.engine.stream.replies import lab, obs

from abers import ParameterError, StateError
from abers.stream import DurableProcessor, Observation, Prediction, Processor, Settings
from abers.stream.durable.answers import AnswerMemory, EventAnswer, without_answers
from abers.stream.durable.folder import StateFolder

if TYPE_CHECKING:
    from pathlib import Path

    from abers.stream import Event


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
    events += [lab("b", 6), lab("b", 6, 0), lab("b", 6), obs("b", 7), lab("b", 8)]
    events += [obs("c", 9, score=None), lab("d", 9, value=7)]
    expected = ["predicted", "known", "learned", "duplicate", "conflict"]
    expected += ["waiting", "conflict", "duplicate", "predicted", "duplicate", "refused", "refused"]
    for name, size in (("one", 1), ("all", len(events))):
        with DurableProcessor(tmp_path / name, answers=True) as durable:
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
    with DurableProcessor(tmp_path, journal_bytes=2_000, answers=True) as durable:
        number = 0
        while len(StateFolder(tmp_path).numbers("answers")) < 2:
            first += ask(durable, obs(f"{number}", number, score=number % 7 / 7))
            assert statuses(ask(durable, lab(f"{number}", number, number % 2))) == ["learned"]
            number += 1
        first += ask(durable, obs("last", number))
    with DurableProcessor(tmp_path, answers=True) as durable:
        names = [*map(str, range(number)), "last"]
        again = ask(durable, *(obs(name, number) for name in names))
        assert {*statuses(again)} == {"known"}
        assert [one.prediction for one in again] == [one.prediction for one in first]
        repeated = ask(durable, *(lab(name, number, int(name) % 2) for name in names[:-1]))
        assert {*statuses(repeated)} == {"duplicate"}
        assert statuses(ask(durable, lab(names[0], number, 1 - int(names[0]) % 2))) == ["conflict"]
    newest = max(tmp_path.glob("*.snapshot")).with_suffix(".answers")  # a copy may be killed
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.raises(StateError, match=r"\.answers: a file of answers has a wrong checksum"):
        DurableProcessor(tmp_path, answers=True)


LIMITS = {
    "time": Settings(label_timeout=10, dedup_ttl=5, max_jump=2**53),
    "ids": Settings(dedup_max_ids=2, max_jump=2**53),
    "bytes": Settings(max_bytes=6_000, max_jump=2**53),
    "early": Settings(max_early=1, max_pending=3, max_jump=2**53),
    "assumed": Settings(label_timeout=6, unlabelled=0, dedup_ttl=9, max_jump=2**53),
}


def drawn(chance: random.Random, number: int, time: int) -> Event:
    """Return an observation or a label of an id, about now."""
    id_, time = f"{number}", time + chance.randrange(3)
    if chance.random() < 0.5:
        return obs(id_, time, score=chance.random())
    return lab(id_, time, chance.randrange(2))


@pytest.mark.parametrize("name", LIMITS)
def test_an_answer_is_there_as_long_as_its_id_is_known(tmp_path: Path, name: str) -> None:
    """Answers agree with the counters of the processor, also where it forgets ids or restarts."""
    chance, time = random.Random(name), 0  # noqa: S311 - of a test
    made: dict[str, bytes | None] = {}
    ends: Counter[str] = Counter()
    for _ in range(6):
        with DurableProcessor(tmp_path, LIMITS[name], journal_bytes=4_000, answers=True) as durable:
            for _ in range(60):
                ids = chance.sample(range(12), chance.choice([1, 1, 1, 2, 7]))
                events = [drawn(chance, number, time) for number in ids]
                time += chance.randrange(4)
                with durable.reading() as processor:
                    before = Counter(processor.counters)
                found = ask(durable, *events)
                with durable.reading() as processor:
                    counted = Counter(processor.counters) - before
                for event, one in zip(events, found, strict=True):
                    if one.status == "predicted":
                        made[event.id] = one.prediction
                    elif type(event) is Observation:
                        assert (one.status, one.prediction) == ("known", made[event.id])
                given = Counter(statuses(found))
                assert given["predicted"] == counted["predictions"]
                assert given["known"] == counted["duplicate_observations"]
                assert given["waiting"] == counted["early_labels"]
                assert given["late"] == counted["late_labels"]
                assert given["duplicate"] + given["conflict"] == counted["duplicate_labels"]
                ends += given
    assert {*ends} >= {"predicted", "known", "waiting", "learned", "duplicate", "conflict"}


@pytest.mark.parametrize("name", LIMITS)
def test_answers_do_not_depend_on_what_waits_together(name: str) -> None:
    """Events that come together, of ids that are forgotten meanwhile, are answered as alone."""
    chance = random.Random(name)  # noqa: S311 - of a test
    events = [drawn(chance, chance.randrange(9), 2 * time) for time in range(600)]
    found: list[list[EventAnswer]] = []
    for most in (1, 7, 90):
        processor, answers = Processor(LIMITS[name]), AnswerMemory()
        made: list[EventAnswer] = []
        answers.adjust(processor)
        while len(made) < len(events):
            group = events[len(made) :][: chance.randint(1, most)]
            made += answers.take(group, processor.process_logged(group)[0], processor)
        found.append(made)
    assert found[0] == found[1] == found[2]
    assert {*statuses(found[0])} >= {"predicted", "known", "learned", "duplicate", "conflict"}


def test_a_retired_model(tmp_path: Path) -> None:
    """The ids of a model that was retired are new when they come again."""
    settings = Settings(max_models=2, retire_after=10, max_jump=2**53)
    with DurableProcessor(tmp_path, settings, answers=True) as durable:
        ask(durable, obs("a", model="old"), lab("a", model="old"), lab("b", model="old"))
        ask(durable, *(obs(f"{n}", n, model="busy") for n in range(200)))
        again: list[Event] = [lab("a", 201, 0, model="old"), lab("a", 201, model="old")]
        again += [obs("a", 201, model="old"), lab("b", 201, 0, model="old")]
        assert statuses(ask(durable, *again)) == ["waiting", "conflict", "predicted", "waiting"]


class Tired:
    """A learner that scores once."""

    def __init__(self) -> None:
        self.scored = False

    def score(self, x: dict[Any, Any]) -> float:
        """Return the score of features, or fail."""
        if self.scored:
            msg = f"too tired for {x}"
            raise RuntimeError(msg)
        self.scored = True
        return 0.5

    def learn(self, x: dict[Any, Any], value: float) -> None:
        """Learn nothing."""


def test_a_learner_that_fails_when_a_request_is_repeated() -> None:
    """An id keeps its prediction, whether or not the learner could score it again."""
    processor, answers = Processor(Settings(), learner=Tired()), AnswerMemory()
    answers.adjust(processor)
    events: list[Event] = [obs(name, score=None, x={"n": 1}) for name in ("a", "a", "b")]
    first, again, other = answers.take(events, processor.process_logged(events)[0], processor)
    assert statuses([first, again, other]) == ["predicted", "known", "refused"]
    assert again.prediction == first.prediction


def test_answers_count_as_bytes() -> None:
    """A processor with answers has room for as many ids as `max_bytes` has with their answers."""
    settings = without_answers(Settings(max_bytes=10**6))
    processor, answers = Processor(settings), AnswerMemory()
    answers.adjust(processor)
    for number in range(3_000):
        for event in (obs(f"{number}"), lab(f"{number}")):
            answers.take([event], processor.process_logged([event])[0], processor)
    answers.adjust(processor)
    assert len(answers) == processor.known_count < 3_000
    size = sum(
        sys.getsizeof(key) + sum(map(sys.getsizeof, (key[1], known, known[0]))) + 100
        for key, known in answers._known.items()  # noqa: SLF001 - how much they take
    )
    assert 0.6 * 10**6 < size + 110 * len(answers) < 1.2 * 10**6


def test_ids_from_before_answers_were_kept(tmp_path: Path) -> None:
    """An id that was predicted without answers is known without one, and its label is learned."""
    settings = Settings()
    with DurableProcessor(tmp_path, without_answers(settings)) as durable:
        durable.process([obs("a"), obs("b"), lab("b")])
    with DurableProcessor(tmp_path, without_answers(settings), journal_bytes=1) as durable:
        number = 0
        while durable.last_snapshot is None:
            durable.process([obs(f"{number}")])
            number += 1
    with DurableProcessor(tmp_path, settings, answers=True) as durable:
        found = ask(durable, obs("a"), lab("a"), lab("a", value=0), obs("b"), lab("b", value=0))
    assert statuses(found) == ["forgotten", "learned", "conflict", "forgotten", "duplicate"]


def test_answers_that_are_not_remembered(tmp_path: Path) -> None:
    """Without room for answers there are none, and a call says how to get them."""
    with DurableProcessor(tmp_path) as durable, pytest.raises(ParameterError, match="answers=True"):
        durable.answer([obs("a")])


def test_a_late_label() -> None:
    """A label of an observation that no longer waits is late."""
    answers, processor = AnswerMemory(), Processor(Settings(label_timeout=10, max_jump=2**53))
    answers.adjust(processor)
    events: list[Event] = [obs("a", 0), obs("b", 1), obs("c", 1), obs("d", 100), obs("e", 100)]
    events += [obs("f", 100), lab("a", 100)]
    found = answers.take(events, processor.process_logged(events)[0], processor)
    assert statuses(found)[-1] == "late"

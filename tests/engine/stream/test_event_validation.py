"""What cannot be used changes nothing, `abers.stream.validation`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.stream.cases import (
    BAD_IDS,
    BAD_LABELS,
    BAD_MODELS,
    BAD_SCORES,
    BAD_TIMES,
    DEEP,
    Scorer,
)
from tests.engine.stream.replies import identities, kinds, lab, obs, only, processor, refused

from abers.stream import DeadLetter, Event, Observation, Prediction, Processor, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.stream.option import Front


@pytest.mark.parametrize("score", BAD_SCORES, ids=lambda score: repr(score)[:12])
def test_bad_scores(score: Any) -> None:  # noqa: ANN401
    """A score is a finite real number."""
    assert refused(processor(), obs("a", score=score)) == "bad-score"


@pytest.mark.parametrize("score", [-5e-324, 1 + 2**-52, 17, -math.pi])
def test_bad_probabilities(score: float) -> None:
    """Scores that are declared to be probabilities lie in [0, 1]."""
    assert refused(processor(scores="probability"), obs("a", score=score)) == "bad-score"
    assert kinds(processor(scores="any").process(obs("a", score=score))) == ["Prediction"]
    assert kinds(processor(scores="logit").process(obs("a", score=score))) == ["Prediction"]


@pytest.mark.parametrize("score", [0, 0.0, -0.0, 1, 1.0, 0.5])
def test_probabilities(score: float) -> None:
    """0 and 1 are probabilities."""
    said = only(processor(scores="probability").process(obs("a", score=score)))
    assert said.score == score


@pytest.mark.parametrize("value", BAD_LABELS, ids=repr)
def test_bad_labels(value: Any) -> None:  # noqa: ANN401
    """Any label but 0 and 1 is refused."""
    assert refused(processor(), lab("a", value=value)) == "bad-label"


@pytest.mark.parametrize("id_", BAD_IDS, ids=repr)
def test_bad_ids(id_: Any) -> None:  # noqa: ANN401
    """An id is a string that is not empty."""
    assert refused(processor(), obs(id_)) == "bad-id"
    assert refused(processor(), lab(id_)) == "bad-id"


@pytest.mark.parametrize("model", BAD_MODELS, ids=repr)
def test_bad_models(model: Any) -> None:  # noqa: ANN401
    """Models and segments are strings."""
    assert refused(processor(), obs("a", model=model)) == "bad-model"
    assert refused(processor(), obs("a", segment=model)) == "bad-model"
    assert refused(processor(), lab("a", model=model)) == "bad-model"


@pytest.mark.parametrize("text", ["a" * 257, "é" * 129, "日" * 86, "🐦" * 65, "x" * 10**6])
def test_too_long(text: str) -> None:
    """Ids, models and segments of more than 256 bytes are refused, and named by their beginning."""
    p = processor()
    wrong: list[Event] = [
        obs(text),
        lab(text),
        obs("a", model=text),
        lab("a", model=text),
        obs("a", segment=text),
    ]
    for event in wrong:
        assert refused(p, event) == "too-long"
        detail = only(p.process(event)).detail
        assert f"{text[:5]}" in detail
        assert f"takes {len(text.encode()):,} bytes" in detail
        assert len(detail) < 200
    assert (p.keys, p.waiting) == ([], (0, 0))


def test_lengths_are_settings() -> None:
    """Ids have a limit of their own, and models and segments share one."""
    p = processor(max_id_bytes=3, max_name_bytes=2)
    assert refused(p, obs("abcd")) == "too-long"
    assert refused(p, obs("abc", model="mno")) == "too-long"
    assert refused(p, obs("abc", model="mn", segment="sté")) == "too-long"
    assert kinds(p.process(obs("abc", model="mn", segment="é"))) == ["Prediction"]


@pytest.mark.parametrize(
    ("front", "length", "score"),
    [
        ("python", "max_id_bytes=3; shorten it, or raise max_id_bytes", "Set scores='any'"),
        (
            "toml",
            "limits.max_id_bytes = 3; shorten it, or raise limits.max_id_bytes",
            'Set task.scores = "any"',
        ),
        ("flag", "limits.max_id_bytes = 3 in a configuration; shorten it, or ", "Add --scores any"),
    ],
)
def test_options_are_named_as_their_user_writes_them(front: Front, length: str, score: str) -> None:
    """A dead letter names parameters, keys or flags."""
    p = Processor(Settings(max_id_bytes=3, scores="probability"), front=front)
    assert length in only(p.process(obs("abcd"))).detail
    assert score in only(p.process(obs("a", score=7.0))).detail


@pytest.mark.parametrize("time", BAD_TIMES, ids=repr)
def test_bad_times(time: Any) -> None:  # noqa: ANN401
    """A time is a whole number of milliseconds that a double and JSON can hold."""
    assert refused(processor(), obs("a", time)) == "bad-time"
    assert refused(processor(), lab("a", time)) == "bad-time"


@pytest.mark.parametrize("time", [2**53 - 1, 1 - 2**53, 0, -1])
def test_extreme_times(time: int) -> None:
    """Times up to 2**53 from zero are accepted, those before 1970 too."""
    assert kinds(processor().process(obs("a", time))) == ["Prediction"]


def test_order_of_reasons() -> None:
    """Of several faults the value comes first, then id, model, lengths, time and future."""
    p = Processor(Settings(max_models=1, max_clock_skew=10))
    p.process(obs("a", 0, model="m"))
    event: dict[str, Any] = {"id_": "", "time": None, "model": None, "score": None}
    assert refused(p, obs(**event)) == "bad-score"
    assert refused(p, obs(**event | {"score": 0.5})) == "bad-id"
    assert refused(p, obs(**event | {"score": 0.5, "id_": "b"})) == "bad-model"
    long: dict[str, Any] = {"id_": "b" * 257, "time": None, "model": "n", "score": 0.5}
    assert refused(p, obs(**long | {"model": None})) == "bad-model"
    assert refused(p, obs(**long)) == "too-long"
    assert refused(p, obs("b", None, 0.5, model="n")) == "bad-time"  # type: ignore[arg-type]
    assert refused(p, obs("b", 11, 0.5, model="n", recorded=0)) == "time-in-future"
    assert refused(p, obs("b", 10, 0.5, model="n", recorded=0)) == "too-many-models"


def test_row_of_a_dead_letter() -> None:
    """A dead letter names the row of its event in the call that brought it."""
    p = processor()
    bad: dict[int, Event] = {1: obs("a", score=None), 3: lab("", value=1), 4: lab("b", value=7)}
    events = [bad.get(i, obs(f"{i}")) for i in range(6)]
    dead_letters = [o for o in p.process_many(events) if isinstance(o, DeadLetter)]
    assert [(dead_letter.row, dead_letter.event) for dead_letter in dead_letters] == list(
        bad.items()
    )
    assert only(p.process(bad[1])).row == 0


@pytest.mark.parametrize(
    "bad",
    [
        *(obs("bad", score=score) for score in (*BAD_SCORES, 1.5, -0.5)),
        *(lab("bad", value=value) for value in BAD_LABELS),
        *(obs(id_) for id_ in BAD_IDS),
        *(obs("bad", model=model) for model in BAD_MODELS),
        *(obs("bad", segment=model) for model in BAD_MODELS),
        *(lab("bad", time) for time in BAD_TIMES),
        *(obs("bad", model="é" * 129), obs("bad", segment="é" * 129)),
        *(lab("bad", model="a" * 257), lab("a" * 257), obs("a" * 257)),
    ],
    ids=lambda bad: repr(bad)[:60],
)
def test_bad_event_in_a_good_batch(bad: Event) -> None:
    """What is refused alone is refused amid what is not, wherever it stands."""
    p = processor(scores="probability")
    reason = kinds(p.process(bad))
    for at in range(3):
        good = ["Prediction", "Prediction"]
        events: list[Event] = [obs(f"{at}-{i}", at, i / 2) for i in range(2)]
        assert kinds(p.process_many([*events[:at], bad, *events[at:]])) == [
            *good[:at],
            *reason,
            *good[at:],
        ]


@pytest.mark.parametrize(
    "value", [10**5000, -(10**5000), DEEP, "x" * 10**6], ids=["large", "small", "deep", "long"]
)
def test_wording_of_a_refusal(value: Any) -> None:  # noqa: ANN401
    """A refusal is worded in a few words, whatever the value is."""
    wrong: list[Event] = [
        obs("a", score=value),
        lab("a", value=value),
        obs("a", value),
        obs("a", recorded=value),
    ]
    if not isinstance(value, str):
        wrong += [obs(value), obs("a", model=value), obs("a", segment=value)]
    for event in wrong:
        said = only(processor().process(event))
        accepted = isinstance(event, Observation) and event.recorded == 10**5000
        assert accepted if isinstance(said, Prediction) else len(said.detail) < 500


def test_duplicate_with_a_bad_value_is_refused() -> None:
    """Values are looked at before duplicates."""
    p = processor()
    p.process_many([obs("a"), lab("a")])
    assert refused(p, obs("a", score=None)) == "bad-score"
    assert refused(p, lab("a", value=None)) == "bad-label"


def test_bad_label_leaves_its_observation_waiting() -> None:
    """After a label that cannot be used, a good one settles the observation."""
    p = processor()
    p.process(obs("a"))
    assert refused(p, lab("a", value="1")) == "bad-label"
    assert kinds(p.process(lab("a", value=1))) == ["Outcome"]


@pytest.mark.parametrize("time", [2**53 - 1, 1 - 2**53, 2**50, 2**50 + 1, -(2**50) - 1])
@pytest.mark.parametrize("options", [{"half_life": 1}, {"max_age": 1}])
def test_extreme_times_of_forgetting_calibrators(time: int, options: dict[str, int]) -> None:
    """No time that is accepted makes a calibrator fail: a dead letter is the worst."""
    p = processor(**options)
    p.process_many([obs("a", 5), lab("a", 6)])
    p.process_many([obs("b", time, recorded=time), lab("b", time, recorded=time)])
    assert set(kinds(p.process(obs("c", 7)))) == {"Prediction"}
    identities(p, waiting=0)


@pytest.mark.parametrize("text", ["\0", "a" * 256, "é" * 128, "Ω\n", "\x1f|,;", "\U0001f600"])
def test_any_text_is_a_name(text: str) -> None:
    """Every text of up to 256 bytes names an id, a model or a segment, and can be saved."""
    p = processor()
    p.process_many([obs(text, model=text, segment=text), lab(text), obs("x", extra={text: text})])
    p = Processor.restore(p.snapshot(), p.settings)
    assert kinds(p.process(lab(text, model=text))) == ["Outcome"]
    assert p.counters["duplicate_labels"] == 0
    p.process(lab(text))
    assert p.counters["duplicate_labels"] == 1


@pytest.mark.parametrize("learner", [None, Scorer()], ids=["scores", "learner"])
def test_no_event(learner: Scorer | None) -> None:
    """A batch with something that is no event is refused as a whole, and changes nothing."""
    p = Processor(learner=learner)
    p.process_many([obs("a", x={}), lab("a"), obs("b", x={})])
    before = p.state_bytes()
    wrong: Any = {"id": "d"}
    rest: list[Event] = [obs("c", model="new", segment="new", x={}), lab("b"), lab("c", value=7)]
    with pytest.raises(ValueError, match="row 3"):
        p.process_many([*rest, wrong, obs("d", x={})])
    assert p.state_bytes() == before
    assert kinds(p.process_many(rest)) == ["Prediction", "Outcome", "bad-label"]


def test_events_that_fail() -> None:
    """Events that cannot be fetched to the end change nothing."""

    def failing() -> Iterator[Event]:
        yield obs("c")
        raise OSError

    p = processor()
    p.process(obs("a"))
    before = p.state_bytes()
    with pytest.raises(OSError):  # noqa: PT011 - its own error, bare
        p.process_many(failing())
    assert p.state_bytes() == before
    assert kinds(p.process_many([lab("a"), obs("c")])) == ["Outcome", "Prediction"]


def test_nothing_comes_of_nothing() -> None:
    """No events change nothing."""
    p = Processor()
    before = p.state_bytes()
    assert p.process_many([]) == []
    assert p.state_bytes() == before

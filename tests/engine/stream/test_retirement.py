"""Retirement of models, `abers.stream.state`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import SETTINGS, Scorer, plain
from tests.engine.stream.naive import Naive
from tests.engine.stream.replies import identities, kinds, lab, obs, only
from tests.engine.stream.test_journal import followed, through

from abers import StateError
from abers.stream import (
    DeadLetter,
    Event,
    Events,
    Observation,
    Output,
    Prediction,
    Processor,
    Settings,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

DAY = 86_400_000
AFTER = 3 * DAY
HONEST = ("fraud", "spam", "churn")
LIMITED = Settings(max_models=6, retire_after=AFTER, label_timeout=30 * DAY)


def settings(**options: Any) -> Settings:  # noqa: ANN401
    """Make settings in which six models are too many after three days."""
    return msgspec.structs.replace(LIMITED, **options)


def day(number: int, models: Sequence[str] = HONEST, **fields: Any) -> list[Event]:  # noqa: ANN401
    """Make a day of some models: of each four observations with labels, and one that waits."""
    made: list[Event] = []
    for i in range(5):
        for model in models:
            id_, at, score = f"{number}-{i}", number * DAY + i, (i + 1) / 7
            made.append(obs(id_, at, score, model=model, x={"a": score}, **fields))
            if i < 4:
                made.append(lab(id_, at, i % 2, model=model))
    return made


def often(models: Sequence[str], at: int = 0, *, times: int = 100) -> list[Event]:
    """Make so many events of some models, all but the first of which change nothing."""
    return [lab("often", at, 1, model=model) for model in models for _ in range(times)]


def junk(number: int, at: int) -> list[Event]:
    """Make an observation and an early label of an unknown model."""
    name = f"junk-{number}"
    return [obs("x", at, model=name, x={"a": 0.5}), lab("early", at, model=name)]


def full(wanted: Settings, **options: Any) -> Processor:  # noqa: ANN401
    """Make a processor that honest models share with three that came once, on the first day."""
    p = Processor(wanted, **options)
    p.process_many([*often(HONEST), *day(0), *junk(1, 5), *junk(2, 5), *junk(3, 5)])
    for number in (1, 2, 3, 4):
        p.process_many(day(number))
    return p


def models(p: Processor) -> list[str]:
    """Name the models that have a calibrator."""
    return [model for model, _ in p.keys]


def test_junk_stays_without_the_option() -> None:
    """Without the option, models that came once stay, and a new model is refused."""
    p = full(settings(retire_after=None))
    assert kinds(p.process(obs("a", 400 * DAY, model="new"))) == ["too-many-models"]
    assert p.counters["retired"] == 0


def test_junk_goes() -> None:
    """With the option, silent models are retired, and all that is dropped with them is counted."""
    p = full(settings())
    before = p.counters
    said = p.process_many([obs(id_, 5 * DAY, model=m) for id_, m in (("a", "new"), ("b", "fraud"))])
    assert kinds(said) == ["unknown-id"] * 3 + ["Prediction"] * 2
    dead_letters = [one for one in said if isinstance(one, DeadLetter)]
    assert [(one.event.id, one.event.model, one.row) for one in dead_letters] == [
        ("early", f"junk-{i}", None) for i in (1, 2, 3)
    ]
    changed = {name: n - before[name] for name, n in p.counters.items() if n != before[name]}
    assert changed == {
        "observations": 2,
        "predictions": 2,
        "retired": 3,
        "expired": 3,
        "retired_observations": 3,
        "unknown_labels": 3,
        "dead:unknown-id": 3,
    }
    assert models(p) == [*HONEST, "new"]
    identities(p, 3)


def test_none_retires_below_max_models() -> None:
    """A model stays, however long it is silent, until there are `max_models` and another comes."""
    p = full(settings(max_models=7))
    p.process_many(day(300))
    assert (p.counters["retired"], len(p.keys)) == (0, 6)


def test_a_span_that_is_not_over() -> None:
    """A model that is behind by the span itself stays, one by a millisecond more goes."""
    for behind, gone in ((AFTER, 0), (AFTER + 1, 1)):
        p = Processor(settings(max_models=4, max_jump=2**53))
        p.process(obs("a", 0, model="silent"))
        p.process_many([*often(HONEST), *(obs("a", behind, model=model) for model in HONEST)])
        p.process(obs("b", behind, model="fraud"))
        assert p.counters["retired"] == gone


def test_segments_make_no_room_alone() -> None:
    """Where pairs of model and segment are too many, silent models go with all of theirs."""
    p = Processor(settings(max_models=5, max_jump=2**53))
    p.process_many([obs(f"{i}", 0, model="old", segment=f"{i}") for i in range(2)])
    p.process_many(often(HONEST, 4 * DAY))
    p.process_many([obs("a", 4 * DAY, model=model, segment="s") for model in HONEST])
    assert kinds(p.process(obs("b", 4 * DAY, model="fraud", segment="t"))) == ["Prediction"]
    assert p.keys == [*((model, "s") for model in HONEST), ("fraud", "t")]


def test_two_wrong_clocks_retire_none() -> None:
    """Where the clocks of two models are wrong for good, all the others stay."""
    p = full(settings())
    p.process_many(day(5))  # from here on there are three honest models, and they agree
    before = p.counters["retired"]
    wrong = ("wrong", "false")
    p.process_many([*day(5000, wrong), *often(wrong, 5000 * DAY), *junk(7, 5 * DAY)])
    assert len(p.keys) == 6
    p.process_many(day(6))
    assert p.counters["retired"] == before
    assert kinds(p.process(obs("z", 6 * DAY, model="one more"))) == ["too-many-models"]


@pytest.mark.parametrize("times", [0, 89])
def test_rare_models_retire_none(times: int) -> None:
    """Models of fewer than a hundred events do not say what is late, however many there are."""
    p = Processor(settings())
    p.process_many([*often(HONEST), *day(0)])
    for i in range(3):
        seldom = [f"junk-{i}"]
        p.process_many([*day(5000, seldom), *often(seldom, 5000 * DAY, times=times)])
    assert len(p.keys) == 6
    p.process_many(day(1))
    assert p.counters["retired"] == 0


def test_one_model_alone() -> None:
    """A single honest model is enough to retire rare ones."""
    p = Processor(settings(max_models=2))
    p.process_many([*often(["fraud"]), *day(0, ["fraud"]), *day(0, ["junk"])])
    for number in (1, 2, 3):
        p.process_many(day(number, ["fraud"]))
    assert only(p.process(obs("a", 3 * DAY + 9, model="new"))).reason == "too-many-models"
    p.process_many(day(4, ["fraud"]))
    assert kinds(p.process(obs("a", 4 * DAY, model="new"))) == ["Prediction"]
    assert models(p) == ["fraud", "new"]


def test_it_comes_again() -> None:
    """A model that was retired is a new one when it comes again."""
    p = full(settings())
    p.process_many(day(5))
    (said,) = p.process(obs("x", 5 * DAY, model="junk-1"))
    assert isinstance(said, Prediction)
    assert said.n_labels == 0
    assert (p.counters["duplicate_observations"], p.counters["retired"]) == (0, 3)


def test_a_model_that_begins_anew() -> None:
    """A model whose clock was reset does not count as silent."""
    p = full(settings())
    p.reset_model("fraud")
    p.process_many(day(5, ("spam", "churn")))
    assert "fraud" in models(p)


KINDS: dict[str, tuple[Settings, dict[str, Any]]] = {
    "binary": (settings(), {}),
    "half-life": (settings(half_life=DAY), {}),
    "bets": (settings(grace_period=0, average_run_length=2, cooldown=3, max_pending=8), {}),
    "no monitors": (settings(monitors=False), {}),
    "learner": (settings(learner="logistic"), {}),
    "one learner": (settings(), {"learner": Scorer}),
    "multiclass": (settings(task="multiclass", classes=("0", "1"), learner="softmax"), {}),
    "regression": (settings(task="regression", grace_period=0), {}),
    "distributions": (
        settings(task="regression", distributions="full", learner="linear", grace_period=0),
        {},
    ),
}


def made(kind: str) -> Processor:
    """Make a processor of a kind."""
    wanted, options = KINDS[kind]
    return Processor(wanted, **{name: make() for name, make in options.items()})


def lives(kind: str, *, noisy: bool = True) -> list[list[Event]]:
    """Make batches of honest models, with or without a junk model every day."""
    several = KINDS[kind][0].task == "multiclass"
    batches = []
    for number in range(14):
        batch: list[Event] = [*([] if number else often(HONEST)), *day(number)]
        batch += junk(number, number * DAY + 9) if noisy else []
        if number:
            batch += [lab(f"{number - 1}-4", number * DAY, 1, model=model) for model in HONEST]
        batches.append(batch)
    return [[_classed(one) for one in batch] for batch in batches] if several else batches


def _classed(event: Event) -> Event:
    if isinstance(event, Observation):
        return event
    return msgspec.structs.replace(event, value=str(event.value))


def of_honest(outputs: Sequence[Output]) -> list[Any]:
    """Return the outputs of honest models."""
    return [
        plain(one)
        for one in outputs
        if (one.event.model if isinstance(one, DeadLetter) else one.model) in HONEST
    ]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in {"one learner", "bets"}])
def test_others_answer_as_if_it_had_never_come(kind: str) -> None:
    """Outputs of honest models are those without the junk, before and after it is retired."""
    p, quiet = made(kind), made(kind)
    for noisy, honest in zip(lives(kind), lives(kind, noisy=False), strict=True):
        assert of_honest(p.process_many(noisy)) == of_honest(quiet.process_many(honest))
    assert p.counters["retired"] > 5
    monitored = [monitor.state() for monitor in p.monitors[:3]]
    assert monitored == [monitor.state() for monitor in quiet.monitors]


KEY = b"a secret of tests"


@pytest.mark.parametrize("kind", KINDS)
def test_redone_and_restored(kind: str) -> None:
    """Entries and snapshots around a retirement give the same outputs and bytes of state."""
    live, other = made(kind), made(kind)
    restored = made(kind)
    for batch in lives(kind):
        before = restored.snapshot(key=KEY)
        wanted, options = KINDS[kind]
        learner = {name: make() for name, make in options.items()}
        restored = Processor.restore(before, wanted, key=KEY, **learner)
        followed(live, other, batch)
        restored.process_many(batch)
        assert restored.state_bytes() == live.state_bytes()
    assert live.counters["retired"] > 5


def test_redone_under_other_limits() -> None:
    """The entry has the retired models, so limits may change before it is redone."""
    live = Processor(settings())
    other = Processor(settings(max_models=100, retire_after=None))
    for batch in lives("binary"):
        followed(live, other, batch)
    assert live.counters["retired"] > 5


@pytest.mark.parametrize("gone", [[-1], [6], [1, 0], [2, 2]], ids=str)
def test_an_entry_that_retires_an_unknown_model(gone: list[int]) -> None:
    """An entry that retires a model that is not there is refused, and changes nothing."""
    live, other = full(settings()), full(settings())
    _, entry = live.process_logged(Events.of(day(5)))
    wrong = msgspec.structs.replace(through(entry), retired=gone)
    before = other.state_bytes()
    with pytest.raises(StateError, match="retired models"):
        other.apply(wrong)
    assert other.state_bytes() == before
    other.apply(entry)


def test_learners_go() -> None:
    """The learner of a retired model is forgotten, a new one begins for it."""
    p = full(settings(learner="logistic"))
    learning = p._state.join.learners  # noqa: SLF001
    assert learning is not None
    assert "junk-1" in learning.by_model
    p.process_many(day(5))
    assert learning.by_model.keys() == {*HONEST}


def test_an_empty_batch_retires_none() -> None:
    """A batch without events changes nothing."""
    p = full(settings())
    before = p.state_bytes()
    p.process_batch(Events.of([Observation("a", 5, score=0.5)])[:0])
    assert p.state_bytes() == before


def test_outputs_have_the_retired_names() -> None:
    """The outputs of the batch before which models were retired name them, as redone ones do."""
    live, other = full(settings()), full(settings())
    outputs, entry = live.process_logged(Events.of(day(5)))
    assert outputs.retired == ["junk-1", "junk-2", "junk-3"]
    assert other.apply(entry).retired == outputs.retired


@st.composite
def crowded(draw: st.DrawFn) -> list[list[Event]]:
    """Draw batches of a stream of many models, each of which is silent at times."""
    now = 0
    made: list[Event] = []
    for _ in range(draw(st.integers(0, 30))):
        now += draw(st.sampled_from((0, 1, 3, 10)))
        id_, model = draw(st.sampled_from("abcd")), draw(st.sampled_from("mmmnnopqr"))
        if draw(st.sampled_from((False, False, False, True))):
            made += often([model], now, times=draw(st.sampled_from((98, 99, 100))))
        elif draw(st.booleans()):
            segment = draw(st.sampled_from(("", "", "s")))
            made.append(obs(id_, now, model=model, segment=segment, x={"a": 0.5}))
        else:
            made.append(lab(id_, now, draw(st.sampled_from((0, 1))), model=model))
    size = draw(st.sampled_from((30, 70, 150, 400)))
    return [made[at : at + size] for at in range(0, len(made), size)]


@pytest.mark.parametrize("learns", [False, True], ids=["scores", "learner"])
@given(data=st.data())
def test_any_stream(data: st.DataObject, learns: bool) -> None:  # noqa: FBT001
    """Whatever comes, in whatever batches, outputs, counters and what is kept obey the rules."""
    wanted = msgspec.structs.replace(
        data.draw(SETTINGS),
        max_models=data.draw(st.sampled_from((1, 2, 3, 4))),
        max_jump=data.draw(st.sampled_from((2**53, 2**53, 300, 6, 0))),
        retire_after=data.draw(st.sampled_from((0, 1, 5, 20))),
    )
    learner: Any = [{"learner": Scorer()} if learns else {} for _ in range(3)]
    p, redone = Processor(wanted, **learner[0]), Processor(wanted, **learner[1])
    naive = Naive(wanted, **learner[2])
    for batch in data.draw(crowded()):
        outputs, entry = p.process_logged(Events.of(batch))
        assert [*map(plain, outputs.in_order())] == [*map(plain, naive.process_many(batch))]
        assert p.counters == naive.counters
        assert models(p) == [model for model, *_ in naive.calibrators]
        redone.apply(through(entry))
        assert redone.state_bytes() == p.state_bytes()

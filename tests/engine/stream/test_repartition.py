"""States that are split by model and joined again, `abers.stream.repartition`.

The oracle of a part is a processor that gets the events of its models alone, in the same batches.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream import damage
from tests.engine.stream.cases import (
    FOREVER,
    IDS,
    MODELS,
    SETTINGS,
    Scorer,
    events,
    plain,
    rowless,
    stream,
)
from tests.engine.stream.replies import identities, lab, obs
from tests.engine.stream.test_journal import LIVES
from tests.engine.stream.test_retirement import HONEST, day, junk, often
from tests.engine.stream.test_retirement import LIMITED as RETIRING

from abers import ParameterError, StateError
from abers.exceptions import SettingsError
from abers.serialization import seal
from abers.stream import Alarm, DeadLetter, Event, Events, Processor, Settings, accounts
from abers.stream.repartition import join, split
from abers.stream.saved_state import Clocks
from abers.stream.snapshot import MAGIC, Snapshot, read, write

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY = b"a secret of tests"
Owners = dict[str, int]
OWNERS = st.fixed_dictionaries({model: st.integers(0, 2) for model in MODELS})


def saved(processor: Processor, key: bytes | None = None) -> Snapshot:
    """Return the state of a processor, as it is read from its snapshot."""
    return read(processor.snapshot(key=key), key)


def payloads(state: Snapshot, *, without: Sequence[str] = ("counters",)) -> dict[str, bytes]:
    """Return the bytes of the components, mostly all but the counters."""
    parts = state.components.items()
    return {name: bytes(one.payload) for name, one in parts if name not in without}


def restored(state: Snapshot, key: bytes | None = None, **options: Any) -> Processor:  # noqa: ANN401
    """Write a state, and restore a processor from it."""
    blob = b"".join(write(state, None, key, ""))
    return Processor.restore(blob, state.settings, key=key, **options)


def owner_of(event: Event, owners: Owners) -> int:
    """Return the part of an event; what is of no model is of the first."""
    return owners.get(event.model, 0) if isinstance(event.model, str) else 0


def mine(batch: Sequence[Event], owners: Owners, part: int) -> list[Event]:
    """Return the events of a part."""
    return [one for one in batch if owner_of(one, owners) == part]


def fed(processor: Processor, batch: Sequence[Event]) -> list[Any]:
    """Process a batch, and return its outputs and its alarms."""
    outputs = processor.process_batch(Events.of(batch))
    return [*outputs.in_order(), *(alarm for _, alarm in outputs.alarms)]


def of_part(outputs: Sequence[Any], owners: Owners, part: int) -> list[Any]:
    """Return the outputs of a part as values, without rows."""
    found = []
    for one in outputs:
        model = one.event.model if isinstance(one, DeadLetter) else one.model
        if (owners.get(model, 0) if isinstance(model, str) else 0) == part:
            found.append(rowless(one))
    return found


def unbound(settings: Settings) -> Settings:
    """Return settings without limits that all models share."""
    return msgspec.structs.replace(settings, max_models=FOREVER, max_bytes=FOREVER)


def require_exact(settings: Settings, batches: Sequence[Sequence[Event]], owners: Owners) -> None:
    """Split a processor after the first batch, join it after the second, and compare it always."""
    numbers = range(3)
    whole, alone = Processor(settings), [Processor(settings) for _ in numbers]
    fed(whole, batches[0])
    for part in numbers:
        fed(alone[part], mine(batches[0], owners, part))
    parts = split(saved(whole), 3, owners.__getitem__)
    assert [*map(payloads, parts)] == [payloads(saved(one)) for one in alone]
    apart = [*map(restored, parts)]
    outputs = fed(whole, batches[1])
    for part in numbers:
        found = fed(apart[part], mine(batches[1], owners, part))
        assert [*map(rowless, found)] == of_part(outputs, owners, part)
        fed(alone[part], mine(batches[1], owners, part))
        assert payloads(saved(apart[part])) == payloads(saved(alone[part]))
        assert accounts.unbalanced(apart[part].accounts) == []
    joined = restored(join([saved(one) for one in apart]))
    assert joined.counters == whole.counters
    assert joined.clock == whole.clock
    assert [*map(plain, fed(joined, batches[2]))] == [*map(plain, fed(whole, batches[2]))]
    assert joined.counters == whole.counters
    ends = (split(saved(one), 3, owners.__getitem__) for one in (joined, whole))
    assert_alike(*ends)


def assert_alike(first: Sequence[Snapshot], second: Sequence[Snapshot]) -> None:
    """Check that states are equal to the byte, counters included."""
    assert [payloads(one, without=()) for one in first] == [
        payloads(one, without=()) for one in second
    ]


# Exactness


@pytest.mark.parametrize("task", LIVES)
@given(data=st.data())
def test_models_go_on_to_the_bit(data: st.DataObject, task: str) -> None:
    """A part has the bytes of its models alone, and goes on, joined again too, as the whole does.

    Whatever the order of observations and labels, early, late, repeated or missing, and whatever
    expires, is evicted, or is no event at all.
    """
    settings, draws, _ = LIVES[task]
    made = events(data.draw(st.lists(draws, max_size=40)))
    ends = sorted(data.draw(st.tuples(*[st.integers(0, len(made))] * 2)))
    batches = [made[: ends[0]], made[ends[0] : ends[1]], made[ends[1] :]]
    require_exact(unbound(data.draw(settings)), batches, data.draw(OWNERS))


@pytest.mark.parametrize("name", [name for name in damage.MADE if name != "learner"])
def test_every_kind_goes_on_to_the_bit(name: str) -> None:
    """Of every task, calibrator and way to forget, with tests that raise alarms or none at all."""
    settings = unbound(damage.made(name).settings)
    made = damage.events(settings, damage.START, 240, learner=False)
    batches = [made[:150], made[150:300], made[300:]]
    require_exact(settings, batches, {"m": 2, "n": 0})


def test_alarms_go_on() -> None:
    """A part raises the alarms of its models, at the same events, with the same words."""
    settings = Settings(scores="probability", grace_period=5, average_run_length=20)
    scores, draws = np.random.default_rng(7).random((2, 600))
    made: list[Event] = []
    for i, (score, draw) in enumerate(zip(scores.tolist(), draws.tolist(), strict=True)):
        value = draw < score if i < 300 else draw > score
        for model in ("m", "ms"):
            made.append(obs(f"{i}", 10 * i, score, model=model))
            made.append(lab(f"{i}", 10 * i + 5, value, model=model))
    whole = Processor(settings)
    fed(whole, made[:1_200])
    owners = {"m": 0, "ms": 1}
    apart = [*map(restored, split(saved(whole), 2, owners.__getitem__))]
    outputs = fed(whole, made[1_200:])
    assert {one.model for one in outputs if isinstance(one, Alarm)} == {"m", "ms"}
    for part, processor in enumerate(apart):
        found = fed(processor, mine(made[1_200:], owners, part))
        assert [*map(rowless, found)] == of_part(outputs, owners, part)


# Counters


def counted(state: Snapshot) -> dict[str, int]:
    """Return the saved counters that are not 0."""
    found = msgspec.msgpack.decode(state.components["counters"].payload, type=dict[str, int])
    return {name: count for name, count in found.items() if count}


def test_what_waits_is_counted_where_it_waits() -> None:
    """All else is counted in the first part, also of models that are in another."""
    processor = Processor(Settings(unlabelled=0, label_timeout=1_000, max_jump=2**53))
    fed(
        processor,
        [
            *(obs(f"{i}", 10, model="second") for i in range(3)),  # their label is assumed
            *(obs(f"{i}", 5_000 + i, model="second") for i in range(3, 8)),
            lab("3", 5_010, model="second"),
            lab("4", 5_011, model="second"),
            lab("4", 5_012, model="second"),  # repeated
            lab("early", 5_013, model="second"),
            obs("only", 5_000, model="third"),
            obs("", 5_000, model="third"),  # a dead letter
        ],
    )
    of = {"second": 1, "third": 2}
    first, second, third = split(saved(processor), 3, of.__getitem__)
    assert counted(second) == {
        "observations": 3,
        "predictions": 3,
        "labels_in": 1,
        "early_labels": 1,
    }
    assert counted(third) == {"observations": 1, "predictions": 1}
    assert counted(first) == {
        "observations": 3 + 2 + 1,
        "predictions": 3 + 2,
        "labels_in": 3,
        "labels": 2,
        "assumed": 3,
        "duplicate_labels": 1,
        "dead:bad-id": 1,
    }


@given(
    SETTINGS,
    st.sampled_from((None, 3, 50)),
    st.lists(LIVES["binary"][1], max_size=60).map(events),
    OWNERS,
)
def test_accounts_add_up(
    settings: Settings, retire_after: int | None, made: list[Event], owners: Owners
) -> None:
    """Accounts close in each part, and their sums are those of the whole, whatever limits bind."""
    processor = Processor(msgspec.structs.replace(settings, retire_after=retire_after))
    middle = len(made) // 2
    fed(processor, made[:middle])
    fed(processor, made[middle:])  # models retire where batches begin
    states = split(saved(processor), 3, owners.__getitem__)
    parts = [*map(restored, states)]
    for one in parts:
        identities(one, one.waiting[1])
        assert accounts.unbalanced(one.accounts) == []
    assert accounts.total(one.accounts for one in parts) == accounts.total([processor.accounts])
    assert accounts.total(one.counters for one in parts) == processor.counters
    whole = join(states)
    assert restored(whole).counters == processor.counters
    again = split(whole, 3, owners.__getitem__)
    assert_alike(again, states)


def test_retired_models_are_of_the_first_part() -> None:
    """What ended with them is counted there, and the others have their own bytes alone."""
    owners = {model: part for part, model in enumerate(HONEST)}
    batches = [[*often(HONEST), *day(0), *junk(1, 5), *junk(2, 5), *junk(3, 5)]]
    batches += [day(number) for number in range(1, 6)]
    whole, alone = Processor(RETIRING), [Processor(RETIRING) for _ in HONEST]
    for batch in batches:
        fed(whole, batch)
        for part, processor in enumerate(alone):
            fed(processor, [one for one in batch if owners.get(one.model) == part])
    assert whole.accounts["retired"] == whole.counters["retired"] == 3
    states = split(saved(whole), len(HONEST), owners.__getitem__)
    assert [*map(payloads, states)] == [payloads(saved(one)) for one in alone]
    parts = [restored(one) for one in states]
    assert [one.accounts["retired"] for one in parts] == [3, 0, 0]
    assert [accounts.unbalanced(one.accounts) for one in parts] == [[], [], []]
    assert accounts.total(one.accounts for one in parts) == accounts.total([whole.accounts])


def test_a_whole_is_its_only_part() -> None:
    """A split into one part, and a join of one state, change no byte."""
    processor = Processor()
    fed(processor, stream(300, every=20))
    whole = saved(processor)
    (part,) = split(whole, 1, lambda _: 0)
    for one in (part, join([whole])):
        assert b"".join(write(one, whole.position, None, "")) == processor.snapshot()


def test_empty_parts() -> None:
    """A part without models is the state of a new processor; so is each of a new processor."""
    processor = Processor()
    fresh = saved(processor)
    assert_alike(split(fresh, 2, lambda _: 0), [fresh, fresh])
    fed(processor, stream(50))
    _, empty = split(saved(processor), 2, lambda _: 0)
    assert_alike([empty], [fresh])


def test_a_state_is_written_for_its_owner() -> None:
    """The seal has the key and the owner, and the snapshot the position, that are given."""
    processor = Processor()
    fed(processor, stream(50))
    blob = b"".join(write(saved(processor), {"offset": 7}, KEY, "app-3"))
    assert blob == processor.snapshot({"offset": 7}, KEY, "app-3")
    with pytest.raises(StateError, match="sealed for 'app-3', not for 'app-4'"):
        read(blob, KEY, "app-4")


# Learners


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_learners_go_with_their_models(task: Any) -> None:  # noqa: ANN401 - a literal
    """Learners that the settings name, and features that wait, are in the part of their model."""
    learner = "linear" if task == "regression" else "logistic"
    classes = damage.CLASSES if task == "multiclass" else ()
    settings = Settings(task=task, classes=classes, learner=learner)
    made = damage.events(settings, damage.START, 200, learner=True)
    whole, owners = Processor(settings), {"m": 1, "n": 0}
    fed(whole, made[:250])
    states = split(saved(whole, KEY), 2, owners.__getitem__, KEY)
    apart = [restored(one, KEY) for one in states]
    outputs = fed(whole, made[250:400])
    for part, processor in enumerate(apart):
        found = fed(processor, mine(made[250:400], owners, part))
        assert [*map(rowless, found)] == of_part(outputs, owners, part)
    joined = restored(join([saved(one, KEY) for one in apart], KEY), KEY)
    assert [*map(plain, fed(joined, made[400:]))] == [*map(plain, fed(whole, made[400:]))]


def shared_parts() -> list[Processor]:
    """Return the two processors of a state with a learner that all models share."""
    processor = Processor(learner=Scorer())
    fed(processor, stream(100))
    parts = split(saved(processor, KEY), 2, lambda model: int(model == "m"), KEY)
    return [restored(one, KEY, learner=Scorer()) for one in parts]


def test_a_shared_learner_is_in_every_part() -> None:
    """Each part scores as the whole did, and parts that learned nothing since can be joined."""
    parts = shared_parts()
    probe = [obs("probe", stream(100)[-1].time, x={"a": 0.25}, model="new")]
    (first,), (second,) = (fed(one, probe) for one in parts)
    assert first == second
    parts = shared_parts()
    joined = restored(join([saved(one, KEY) for one in parts], KEY), KEY, learner=Scorer())
    (third,) = fed(joined, probe)
    assert third == first


def test_shared_learners_that_differ_are_refused() -> None:
    """Nothing is the union of two learners."""
    first, second = shared_parts()
    fed(first, [obs("a", x={"a": 0.5}, model="mine"), lab("a", model="mine")])
    with pytest.raises(StateError, match=r"share a learner.*each; .*name a learner|no learner for"):
        join([saved(one, KEY) for one in (first, second)], KEY)


def test_learners_are_read_under_protection_alone() -> None:
    """A pickle can run any code, so the caller has the key, or trusts the types of skops."""
    processor = Processor(learner=Scorer())
    fed(processor, stream(20))
    state = saved(processor, KEY)
    with pytest.raises(StateError, match="only under a secret key"):
        split(state, 1, lambda _: 0)
    with pytest.raises(StateError, match="only under a secret key"):
        join([state])
    with pytest.raises(StateError, match="only under a secret key"):
        write(state, None, None, "")
    with pytest.raises(StateError, match="no skops file"):
        split(state, 1, lambda _: 0, trusted_types=[])


# Refusals


def state_of(*models: str, **options: Any) -> Snapshot:  # noqa: ANN401
    """Return a state in which an observation and a finished id of each model are."""
    processor = Processor(Settings(**options))
    for model in models:
        fed(processor, [obs(id_, model=model) for id_ in IDS])
        fed(processor, [lab("a", model=model)])
    return saved(processor)


def test_a_model_in_two_states_is_refused() -> None:
    """The message names the model, both states and the remedy."""
    states = [state_of("a"), state_of("b", "c"), state_of("d", "b")]
    match = r"model 'b' has a calibrator in each of states 1 and 2.*no exact union; derive"
    with pytest.raises(StateError, match=match):
        join(states)


def test_states_of_other_settings_or_versions_are_refused() -> None:
    """The message names what differs, and how to get states that are alike."""
    first = state_of("a")
    with pytest.raises(StateError, match=r"other settings: window is None and 5; start abers"):
        join([first, state_of("b", window=5)])
    other = msgspec.structs.replace(state_of("b"), version="0.0.7")
    with pytest.raises(StateError, match=r"versions .*0\.0\.7.*start abers"):
        join([first, other])
    second = state_of("b")
    fewer = {name: one for name, one in second.components.items() if name != "history"}
    with pytest.raises(StateError, match="different components; start abers"):
        join([first, msgspec.structs.replace(second, components=fewer)])


def test_components_of_an_older_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are still read, but are to be written anew before they are split."""
    state = state_of("a")
    monkeypatch.setattr(Clocks, "formats", {**Clocks.formats, 2: Clocks.formats[1]})
    assert restored(state).keys == [("a", "")]
    match = r"'clocks' in version 1, and abers .* writes version 2; start abers .* once"
    with pytest.raises(StateError, match=match):
        split(state, 1, lambda _: 0)
    with pytest.raises(StateError, match=match):
        join([state])


def test_unknown_components_are_refused() -> None:
    """What this version does not know cannot be split, unless its readers may drop it."""
    state = state_of("a")
    new = msgspec.structs.replace(state.components["clocks"], version=1)
    known = msgspec.structs.replace(state, components={**state.components, "new": new})
    with pytest.raises(StateError, match=r"'new', which abers .* does not know"):
        split(known, 1, lambda _: 0)
    new.missing = "empty"
    (part,) = split(known, 1, lambda _: 0)
    assert_alike([part], [state])


def test_parts_that_there_are_not() -> None:
    """An owner that gives no number of a part is refused, and so is a split into nothing."""
    state = state_of("a")
    for wrong in (-1, 2):
        with pytest.raises(ParameterError, match=rf"model 'a' is of part {wrong}; .* from 0 to 1"):
            split(state, 2, lambda _, wrong=wrong: wrong)  # type: ignore[misc]
    with pytest.raises(ParameterError, match="parts=0; give at least 1"):
        split(state_of(), 0, lambda _: 0)
    with pytest.raises(ParameterError, match="give at least one"):
        join([])


# Limits of one processor


def test_more_models_than_the_limit() -> None:
    """The whole is refused when it is restored, with the limit to raise, and loses nothing then."""
    whole = join([state_of("a", "b", max_models=3), state_of("c", "d", max_models=3)])
    with pytest.raises(SettingsError, match=r"4 models or segments.*max_models"):
        restored(whole)
    raised = msgspec.structs.replace(whole.settings, max_models=4)
    blob = b"".join(write(whole, None, None, ""))
    assert len(Processor.restore(blob, raised).keys) == 4


def test_more_bytes_than_the_limit() -> None:
    """States are joined as long as the whole drops nothing for want of room, and no further."""
    ids = sum(len(one.encode()) for one in IDS)
    room = 2 * (180 * (len(IDS) - 1) + 110 + ids)  # observations that wait, and a finished id
    fits = restored(join([state_of(model, max_bytes=room) for model in "ab"]))
    before = fits.waiting
    fed(fits, [obs("b", model=model) for model in "ab"])  # changes nothing but the count
    assert (fits.counters["forgotten"], fits.waiting, fits.held[1]) == (0, before, 2)
    with pytest.raises(StateError, match=r"limits\.max_bytes is .*join fewer states"):
        join([state_of(model, max_bytes=room - 1) for model in "ab"])


def test_features_count_for_the_limit() -> None:
    """Features that wait take room until their label is known or assumed."""
    x = {"a": 0.5}
    made = {model: [obs("a", x=x, model=model)] for model in "ab"}
    room = 2 * (180 + 1 + len(msgspec.msgpack.encode(x)))

    def states(most: int) -> list[Snapshot]:
        found = []
        for batch in made.values():
            processor = Processor(Settings(max_bytes=most), learner=Scorer())
            fed(processor, batch)
            found.append(saved(processor, KEY))
        return found

    fits = restored(join(states(room), KEY), KEY, learner=Scorer())
    fed(fits, made["a"])
    assert (fits.counters["evicted"], fits.waiting) == (0, (2, 0))
    with pytest.raises(StateError, match="join fewer states"):
        join(states(room - 1), KEY)


# Damage


@pytest.mark.parametrize("name", damage.MADE)
@pytest.mark.parametrize("times", [20, pytest.param(2_000, marks=pytest.mark.long)])
def test_damaged_states(name: str, times: int) -> None:
    """A state that cannot be one is refused with a StateError when it is split, joined or used."""
    refused = 0
    for number in range(times):
        rng = random.Random(f"split {name} {number}")  # noqa: S311 - no secret
        refused += tried(damage.made(name), rng)
    assert 0 < refused < times


def tried(one: damage.Kind, rng: random.Random) -> bool:
    """Split a damaged state, join its parts, and use them; return whether it was refused."""
    key = damage.KEY if one.learner else None
    blob = seal(MAGIC, msgspec.msgpack.encode(damage.damaged_snapshot(one, rng)), key)
    try:
        parts = split(read(blob, key), 2, lambda model: int(model == "m"), key)
        for part in (*parts, join(parts, key)):
            damage.look(restored(part, key, learner=one.scorer()))
    except StateError:
        return True
    return False

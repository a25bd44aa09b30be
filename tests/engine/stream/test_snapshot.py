"""Saving and restoring a processor, `abers.stream.snapshot`."""

from __future__ import annotations

import gc
import json
import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream import released
from tests.engine.stream.cases import EVENTS, MODELS, SETTINGS, Scorer, plain, stream

import abers.stream.snapshot as saved
from abers import ParameterError, StateError, VennAbers
from abers.exceptions import SettingsError
from abers.serialization import seal, unseal
from abers.stream import Event, Label, Observation, Prediction, Processor, Settings
from abers.validation import shown

KEY = b"a secret of tests"
LIMITED = Settings(label_timeout=2_000, max_pending=20, max_early=4, dedup_max_ids=60)
BEFORE, AFTER = (events := stream(400, every=20))[:500], events[500:]
"""Some labels of the second part settle observations of the first one."""
NAMED = msgspec.structs.replace(LIMITED, learner="logistic")


def probe(name: str) -> list[Event]:
    """Make observations of the same features whatever the name, all of one model."""
    model, time = MODELS[0], AFTER[0].time
    return [Observation(f"{name}-{a}", time, model, x={"a": a / 10}) for a in range(11)]


def fed(settings: Settings = LIMITED, learner: Scorer | None = None) -> Processor:
    """Make a processor of several models and segments in which things wait."""
    processor = Processor(settings, learner=learner)
    processor.process_many(BEFORE)
    return processor


def payloads(blob: bytes) -> dict[str, Any]:
    """Return the parts of a snapshot by name, as plain lists and mappings."""
    found = saved.read(blob).components
    return {name: msgspec.msgpack.decode(one.payload) for name, one in found.items()}


BLOB = fed().snapshot({"line": 7})


@given(SETTINGS, EVENTS, EVENTS)
def test_restored_goes_on(settings: Settings, before: list[Event], after: list[Event]) -> None:
    """A restored processor does what the saved one does."""
    processor = Processor(settings)
    processor.process_many(before)
    restored = Processor.restore(processor.snapshot(), settings)
    assert restored.counters == processor.counters
    assert restored.clock == processor.clock
    expected = list(map(plain, processor.process_many(after)))
    assert list(map(plain, restored.process_many(after))) == expected
    assert restored.state_bytes() == processor.state_bytes()
    assert restored.snapshot() == processor.snapshot()


def test_saving_changes_nothing() -> None:
    """The same state gives the same snapshot twice, and goes on without it."""
    processor, other = fed(), fed()
    assert processor.snapshot({"line": 7}) == processor.snapshot({"line": 7}) == BLOB
    assert processor.state_bytes() == other.state_bytes()
    assert processor.process_many(AFTER) == other.process_many(AFTER)


def test_without_finished_ids() -> None:
    """A snapshot without finished ids has all else, and a restored processor knows none."""
    processor = fed()
    blob = b"".join(processor.snapshot_pieces(finished_ids=False))
    assert len(blob) < len(processor.snapshot())
    restored = Processor.restore(blob, LIMITED)
    assert (restored.counters, restored.clock) == (processor.counters, processor.clock)
    assert restored.waiting == processor.waiting
    assert (processor.held[1] > 0, restored.held[1]) == (True, 0)
    whole, rest = (payloads(one) for one in (processor.snapshot(), blob))
    rest["pending"][-1] = whole["pending"][-1]
    assert rest == whole


def test_restored_is_apart() -> None:
    """The restored processor does not depend on the saved one."""
    processor = fed()
    state = processor.state_bytes()
    restored = Processor.restore(processor.snapshot(), LIMITED)
    processor.process_many(AFTER)
    assert restored.state_bytes() == state != processor.state_bytes()


@pytest.mark.parametrize(
    "position", [None, 0, -1.5, "é", [], {"a.jsonl": {"offset": 2**60, "lines": [1, None, True]}}]
)
def test_position(position: Any) -> None:  # noqa: ANN401
    """The position is kept as it was given, outside the state."""
    processor = fed()
    restored = Processor.restore(processor.snapshot(position), LIMITED)
    assert restored.position == position
    assert restored.state_bytes() == processor.state_bytes()


@pytest.mark.parametrize("runs", [False, True])
def test_the_garbage_collector_runs_as_before(runs: bool) -> None:  # noqa: FBT001 - a case
    """A restore, also one that is refused, leaves the collector on or off, as it was."""
    whole = saved.read(BLOB)
    wrong = msgspec.structs.replace(whole.components["counters"], payload=msgspec.Raw(b"\xc0"))
    parts = {**whole.components, "counters": wrong}
    whole = msgspec.structs.replace(whole, components=parts)
    refused = seal(saved.MAGIC, msgspec.msgpack.encode(whole))
    before = gc.isenabled()
    try:
        (gc.enable if runs else gc.disable)()
        Processor.restore(BLOB, LIMITED)
        assert gc.isenabled() == runs
        with pytest.raises(StateError, match="inconsistent"):
            Processor.restore(refused, LIMITED)
        assert gc.isenabled() == runs
    finally:
        (gc.enable if before else gc.disable)()


def test_no_position() -> None:
    """A new processor has no position, and one that cannot be saved is refused."""
    processor = fed()
    assert processor.position is None
    with pytest.raises(StateError, match="position"):
        processor.snapshot(object())


def test_restored_without_outcomes() -> None:
    """Whether outcomes come out is not part of the state."""
    restored = Processor.restore(BLOB, LIMITED, outcomes=False)
    said = restored.process_many([Observation("x", 0, score=0.5), Label("x", 0, value=1)])
    assert len(said) == 1
    assert restored.counters["labels"] == fed().counters["labels"] + 1


# Bytes that are no snapshot


def test_wrong_magic() -> None:
    """Bytes of another kind are refused by name."""
    for blob in (b"", b"{}", b"PK\x03\x04" * 100, VennAbers().to_bytes(), bytes(1000)):
        with pytest.raises(StateError, match="not a snapshot"):
            Processor.restore(blob, LIMITED)


@pytest.mark.parametrize("version", [0, 2, 255])
def test_unknown_version(version: int) -> None:
    """A snapshot of another format is refused with both versions and the remedy."""
    blob = BLOB[:7] + bytes([version]) + BLOB[8:]
    with pytest.raises(
        StateError, match=rf"format \[{version}\].*reads format 1.*version of abers"
    ):
        Processor.restore(blob, LIMITED)


@given(st.integers(0, len(BLOB) - 1), st.integers(1, 255))
def test_flipped_bits(at: int, bits: int) -> None:
    """Every changed byte is detected."""
    blob = bytearray(BLOB)
    blob[at] ^= bits
    with pytest.raises(StateError):
        Processor.restore(bytes(blob), LIMITED)


@given(st.integers(0, len(BLOB) - 1))
def test_truncated(length: int) -> None:
    """A snapshot that was cut short is refused."""
    with pytest.raises(StateError):
        Processor.restore(BLOB[:length], LIMITED)


@given(st.binary(min_size=1, max_size=40))
def test_appended(rest: bytes) -> None:
    """A snapshot with further bytes behind it is refused."""
    with pytest.raises(StateError):
        Processor.restore(BLOB + rest, LIMITED)


PAYLOAD = bytes(unseal(saved.MAGIC, BLOB, "a snapshot"))


@given(st.integers(0, len(PAYLOAD) - 1), st.integers(1, 255), st.booleans())
def test_sealed_nonsense(at: int, bits: int, cut: bool) -> None:  # noqa: FBT001 - drawn
    """Nonsense under a good seal is refused, or is a state; nothing else is raised."""
    payload = bytearray(PAYLOAD)
    payload[at] ^= bits
    blob = seal(saved.MAGIC, bytes(payload[: at if cut else None]))
    try:
        Processor.restore(blob, LIMITED)
    except StateError as error:
        assert str(error)  # noqa: PT017 - it need not be raised


# Other settings


OTHER: dict[str, Any] = {
    "scores": "logit",
    "window": 5,
    "max_age": 5,
    "half_life": 5,
    "label_rates": (0.5, 1.0),
    "learner": "logistic",
    "label_timeout": 1,
    "unlabelled": 0,
    "learn_after": 5,
    "allowed_lateness": 1,
    "max_clock_skew": 1,
    "max_jump": 1,
    "dedup_ttl": 1,
    "dedup_max_ids": 1,
    "max_pending": 1,
    "max_early": 1,
    "max_bytes": 1,
    "monitors": False,
    "tests": False,
    "grace_period": 10,
    "tolerance": 2.0,
    "average_run_time": 10,
    "average_run_length": 10,
    "cooldown": 10,
    "calibrator": "ivap",
    "probability": "protected",
    "raw_weight": 0.5,
    "base_weight": 0.25,
    "folds": 3,
}


@pytest.mark.parametrize("name", OTHER)
def test_other_settings(name: str) -> None:
    """Each setting that differs is refused by name, with both values and the remedy."""
    was, now = getattr(LIMITED, name), OTHER[name]
    other = msgspec.structs.replace(LIMITED, **{name: now})
    with pytest.raises(StateError, match=name) as refusal:
        Processor.restore(fed().snapshot(key=KEY), other, key=KEY)
    assert f"{name} was {shown(was)} and is {shown(now)}" in str(refusal.value)
    assert "set them back" in str(refusal.value)


def test_all_other_settings() -> None:
    """Everything that differs is named at once, and nothing else."""
    other = msgspec.structs.replace(LIMITED, window=5, max_early=1)
    with pytest.raises(StateError) as refusal:
        Processor.restore(BLOB, other)
    assert [name for name in OTHER if f"{name} was" in str(refusal.value)] == [
        "window",
        "max_early",
    ]


def test_every_setting_is_tried() -> None:
    """The tests above leave no setting out, but for those of another task."""
    of_others = {"task", "classes", "distributions", "support", "coverage", "quantiles", "grid"}
    assert of_others | {*OTHER} | {*FITTING} == set(Settings.__struct_fields__)


# Limits of admission: how many models and pairs, and how long the longest name and id in BLOB are
FITTING = {"max_models": 9, "max_name_bytes": 2, "max_id_bytes": 9, "retire_after": 10**9}


@pytest.mark.parametrize("name", FITTING)
@pytest.mark.parametrize("more", [0, 1, 10**6])
def test_limits_of_validation_may_change(name: str, more: int) -> None:
    """A state goes on under any of them that lets in what it holds, and saves the new one."""
    other = msgspec.structs.replace(LIMITED, **{name: FITTING[name] + more})
    restored = Processor.restore(BLOB, other)
    assert restored.state_bytes() == fed().state_bytes()
    again = Processor.restore(restored.snapshot(), other)
    assert again.settings == other
    assert again.process_many(AFTER) == fed().process_many(AFTER)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("max_models", "9 models or segments"),
        ("max_name_bytes", "a model or segment of 2 bytes"),
        ("max_id_bytes", "an id of 9 bytes"),
    ],
)
def test_limits_of_validation_that_the_state_exceeds(name: str, what: str) -> None:
    """A limit that the state exceeds is refused with both, and with the least that will do."""
    least = FITTING[name]
    other = msgspec.structs.replace(LIMITED, **{name: least - 1})
    with pytest.raises(SettingsError) as refusal:
        Processor.restore(BLOB, other)
    assert str(refusal.value) == (
        f"the state holds {what}, and {name}={least - 1}; set {name} to {least} or more"
    )


def test_more_models_come_in() -> None:
    """After `max_models` is raised, models that were refused come in."""
    full = Processor(Settings(max_models=1))
    full.process_many([Observation("a", 0, model, score=0.5) for model in ("m", "n")])
    assert full.counters["dead:too-many-models"] == 1
    wider = Processor.restore(full.snapshot(), Settings(max_models=2))
    wider.process(Observation("a", 1, "n", score=0.5))
    assert wider.keys == [("m", ""), ("n", "")]


# Learners


def test_learners_go_on() -> None:
    """Restored learners score as the saved ones, and learn on from what waits."""
    pytest.importorskip("river")
    processor = fed(NAMED)
    restored = Processor.restore(processor.snapshot(key=KEY), NAMED, key=KEY)
    assert restored.state_bytes() == processor.state_bytes()
    events = [*probe("before"), *AFTER, *probe("after")]
    expected = processor.process_many(events)
    assert restored.process_many(events) == expected
    scores = [
        [o.score for o in expected if isinstance(o, Prediction) and o.id.startswith(name)]
        for name in ("before", "after")
    ]
    assert scores[0] != scores[1]
    assert len(set(scores[0])) == len(set(scores[1])) == 11


def test_given_learner_goes_on() -> None:
    """A learner that was given is saved too, and takes the place of the one given then."""
    processor = fed(learner=Scorer())
    restored = Processor.restore(processor.snapshot(key=KEY), LIMITED, key=KEY, learner=Scorer())
    events = [*probe("before"), *AFTER, *probe("after")]
    assert restored.process_many(events) == processor.process_many(events)


def test_refused_models_leave_no_learner() -> None:
    """Models beyond the cap take no room, neither in memory nor in a snapshot."""
    pytest.importorskip("river")
    processor = Processor(Settings(learner="logistic", max_models=1))
    processor.process(Observation("a", 0, "m", x={"a": 1.0}))
    before = len(processor.snapshot(key=KEY))
    processor.process_many([Observation("a", 0, f"m{i}", x={"a": 1.0}) for i in range(50)])
    assert processor.counters["dead:too-many-models"] == 50
    assert len(processor.snapshot(key=KEY)) < before + 100


def test_learners_need_a_key() -> None:
    """Learners are neither saved nor loaded without a key."""
    processor = fed(learner=Scorer())
    with pytest.raises(StateError, match="give one"):
        processor.snapshot()
    for blob in (processor.snapshot(key=KEY), BLOB):
        with pytest.raises(StateError, match="give one"):
            Processor.restore(blob, LIMITED, learner=Scorer())


@pytest.mark.parametrize("size", [0, 15, 65])
def test_short_and_long_keys(size: int) -> None:
    """A key that can be guessed, or that is longer than what is used of it, is refused."""
    for act in (
        lambda key: fed().snapshot(key=key),
        lambda key: Processor.restore(BLOB, LIMITED, key=key),
    ):
        with pytest.raises(ParameterError, match=f"key of {size} bytes; give 16 to 64 random"):
            act(bytes(range(size)))


@pytest.mark.parametrize("learner", [None, Scorer()])
def test_wrong_key(learner: Scorer | None) -> None:
    """A snapshot that was saved under another key is not loaded, with learners or without."""
    blob = fed(learner=learner).snapshot(key=KEY)
    with pytest.raises(StateError, match="under another key"):
        Processor.restore(blob, LIMITED, key=KEY + b"!", learner=learner)


SEALED = fed().snapshot({"line": 7}, KEY, "fraud[3]@17")


def test_all_of_it_is_under_the_key() -> None:
    """Calibrators and all else: with a key nothing without its seal is loaded, and the reverse."""
    restored = Processor.restore(SEALED, LIMITED, key=KEY, owner="fraud[3]@17")
    assert restored.state_bytes() == fed().state_bytes()
    with pytest.raises(StateError, match="is not sealed, and a key is given"):
        Processor.restore(BLOB, LIMITED, key=KEY)
    with pytest.raises(StateError, match=r"is sealed, and there is no key.*ABERS_STATE_KEY"):
        Processor.restore(SEALED, LIMITED, owner="fraud[3]@17")


@pytest.mark.parametrize("place", ["", "fraud[2]@17", "other[3]@17", "fraud[3]@18"])
def test_sealed_for_another_owner(place: str) -> None:
    """A snapshot of another application, partition or position is refused before it is read."""
    with pytest.raises(StateError, match=r"for 'fraud\[3\]@17', not for"):
        Processor.restore(SEALED, Settings(), key=KEY, owner=place)


@given(st.integers(0, len(SEALED) - 1), st.integers(1, 255), st.booleans())
def test_sealed_bytes_that_were_changed(at: int, bits: int, cut: bool) -> None:  # noqa: FBT001
    """No byte of what is sealed can be changed, and none cut off, without the key."""
    blob = bytearray(SEALED)
    blob[at] ^= bits
    with pytest.raises(StateError, match=r"not a snapshot|not sealed|another key"):
        Processor.restore(bytes(blob[: at if cut else None]), LIMITED, key=KEY, owner="fraud[3]@17")


def test_sealed_in_another_format() -> None:
    """What a later abers sealed under the same key is refused with the remedy."""
    later = seal(saved.MAGIC[:-1] + b"\xfe", PAYLOAD, KEY, "")
    with pytest.raises(StateError, match=r"another format .*version of abers that wrote it"):
        Processor.restore(later, LIMITED, key=KEY)


def test_learners_are_not_loaded_unasked() -> None:
    """Learners in a snapshot are refused where the settings name none, and the reverse."""
    with pytest.raises(StateError, match="learner"):
        Processor.restore(fed(learner=Scorer()).snapshot(key=KEY), LIMITED, key=KEY)
    with pytest.raises(StateError, match="learner"):
        Processor.restore(fed().snapshot(key=KEY), LIMITED, key=KEY, learner=Scorer())


class Trap:
    """A pickle of this does harm when it is loaded."""

    sprung = False

    def __reduce__(self) -> Any:  # noqa: ANN401
        """Run harmful code on loading."""
        return _spring, ()


def _spring() -> None:
    Trap.sprung = True


@pytest.mark.parametrize("key", [None, KEY + b"!"])
@pytest.mark.parametrize("given", [None, KEY])
def test_forged_learners_are_never_unpickled(key: bytes | None, given: bytes | None) -> None:
    """Without the key, nobody who can write the file gets anything unpickled."""
    blob = fed(learner=Scorer()).snapshot(key=KEY)
    whole = saved.read(blob, KEY)
    trap = msgspec.msgpack.encode(pickle.dumps(Trap()))
    whole.components["learners"].payload = msgspec.Raw(trap)
    forged = seal(saved.MAGIC, msgspec.msgpack.encode(whole), key, "")
    for learner in (Scorer(), None):
        with pytest.raises(StateError):
            Processor.restore(forged, LIMITED, key=given, learner=learner)
    assert not Trap.sprung


@pytest.mark.parametrize(
    ("place", "settings"), [("fraud[2]@17", LIMITED), ("fraud[3]@17", Settings())]
)
def test_learners_of_another_owner_are_never_unpickled(place: str, settings: Settings) -> None:
    """Under the right key too: another place, or other settings, and no pickle is read."""
    blob = fed(learner=Scorer()).snapshot(key=KEY)
    whole = saved.read(blob, KEY)
    trap = msgspec.msgpack.encode(pickle.dumps(Trap()))
    whole.components["learners"].payload = msgspec.Raw(trap)
    sealed = seal(saved.MAGIC, msgspec.msgpack.encode(whole), KEY, "fraud[3]@17")
    with pytest.raises(StateError, match=r"sealed for|other settings"):
        Processor.restore(sealed, settings, key=KEY, owner=place, learner=Scorer())
    assert not Trap.sprung


def test_state_leaves_the_learners_out() -> None:
    """The state is the same whatever object scores, if it scores the same."""

    class Same(Scorer):
        """Pickles otherwise, scores alike."""

        extra = "of another class"

    assert fed(learner=Scorer()).state_bytes() == fed(learner=Same()).state_bytes()


# Formats that were released


def test_golden() -> None:
    """A snapshot of the released format loads, and goes on as it did when it was written."""
    path = released.present()
    expected = json.loads(path.with_suffix(".json").read_text())
    restored = Processor.restore(path.read_bytes(), released.SETTINGS)
    assert restored.position == expected["position"] == released.POSITION
    assert restored.clock == expected["clock"]
    later = dict.fromkeys(released.LATER, 0)
    assert restored.counters == expected["counters"] | later
    assert released.digest(restored) == expected["state"]
    assert released.spoken(restored) == expected["spoken"]


def test_golden_formats() -> None:
    """There is a golden file of the present format alone: formats began with it."""
    assert [path.name for path in released.FOLDER.glob("*.bin")] == [released.present().name]

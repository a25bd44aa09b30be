"""Learners in snapshots, `abers.stream.learners`: by skops instead of as a pickle."""

from __future__ import annotations

import os
import pickle
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import Scorer, stream

import abers.stream.snapshot as saved
from abers import ParameterError, StateError
from abers.exceptions import MissingExtraError
from abers.learners.sklearn_adapters import SklearnClassifier
from abers.serialization import seal
from abers.stream import Observation, Prediction, Processor, Settings
from abers.stream.repartition import join, split

skops = pytest.importorskip("skops.io")
from sklearn.linear_model import SGDClassifier  # noqa: E402 - only where it is installed
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = b"a secret of tests"
EVENTS = stream(400, every=20)
BEFORE, AFTER = EVENTS[:500], EVENTS[500:]
SCORER = f"{Scorer.__module__}.{Scorer.__qualname__}"
ADAM = "sklearn.neural_network._stochastic_optimizers.AdamOptimizer"
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: SGDClassifier(loss="log_loss", average=True, random_state=3),
    "bayes": lambda: GaussianNB().fit([[0.1], [0.6], [0.4], [0.9]], [0, 0, 1, 1]),
    "net": lambda: MLPClassifier((4,), random_state=3),
}


def fed(learner: Any, trusted_types: list[str] | None) -> Processor:  # noqa: ANN401
    """Return a processor whose learner has learned."""
    processor = Processor(learner=learner, trusted_types=trusted_types)
    processor.process_many(BEFORE)
    return processor


def restored(blob: bytes, trusted_types: Any, key: bytes | None = None) -> Processor:  # noqa: ANN401
    """Return the processor of a snapshot, with its learner."""
    return Processor.restore(blob, key=key, learner=Scorer(), trusted_types=trusted_types)


BAYES = fed(SklearnClassifier(CLASSIFIERS["bayes"](), ["a"]), []).snapshot()
SAVED = msgspec.msgpack.decode(saved.read(BAYES).components["learners"].payload)


def with_learners(learners: bytes) -> bytes:
    """Return a snapshot whose learners are these bytes, as anybody can write it without a key."""
    whole = saved.read(BAYES)
    whole.components["learners"].payload = msgspec.Raw(msgspec.msgpack.encode(learners))
    return seal(saved.MAGIC, msgspec.msgpack.encode(whole))


@pytest.mark.once
@pytest.mark.parametrize(("name", "types"), [("sgd", []), ("bayes", []), ("net", [ADAM])])
@pytest.mark.parametrize("key", [None, KEY], ids=["bare", "sealed"])
def test_a_learner_of_scikit_learn_goes_on(name: str, types: list[str], key: bytes | None) -> None:
    """It scores and learns on as the saved one, and as a copy by pickle, equal to the bit."""
    learner = SklearnClassifier(CLASSIFIERS[name](), ["a"])
    processor = fed(learner, types)
    again = restored(processor.snapshot(key=key), types, key)
    by_pickle = pickle.loads(pickle.dumps(learner)).score({"a": 0.25})  # noqa: S301
    first, *_ = again.process(Observation("first", AFTER[0].time, x={"a": 0.25}))
    assert isinstance(first, Prediction)
    assert first.score == by_pickle
    processor.process(Observation("first", AFTER[0].time, x={"a": 0.25}))
    expected = processor.process_many(AFTER)
    scores = {one.score for one in expected if isinstance(one, Prediction)}
    assert len(scores) > 50
    assert again.process_many(AFTER) == expected
    assert again.state_bytes() == processor.state_bytes()


def test_each_model_keeps_its_own_learner() -> None:
    """A learner of one's own class is saved and loaded if its type is trusted."""
    processor = fed(Scorer(), [SCORER])
    again = restored(processor.snapshot(), [SCORER])
    assert again.process_many(AFTER) == processor.process_many(AFTER)


def test_parts_of_a_state_have_its_learner() -> None:
    """A state is split and joined without a key, if the caller trusts the types of its learner."""
    processor = fed(Scorer(), [SCORER])
    whole = saved.read(processor.snapshot())
    with pytest.raises(StateError, match="does not trust"):
        split(whole, 2, lambda model: int(model == "m"), trusted_types=[])
    parts = split(whole, 2, lambda model: int(model == "m"), trusted_types=[SCORER])
    joined = join(parts, trusted_types=[SCORER])
    again = restored(b"".join(saved.write(joined, None, None, "", [SCORER])), [SCORER])
    assert again.process_many(AFTER) == processor.process_many(AFTER)


class Trap(Scorer):
    """A learner that does harm when it is created from bytes."""

    sprung = False

    def __getstate__(self) -> dict[str, int]:
        """Return some state."""
        return {"count": 1}

    def __setstate__(self, state: dict[str, int]) -> None:
        """Run harmful code on loading."""
        Trap.sprung = True


class Caller(Scorer):
    """A learner that refers to a function that must not be called."""

    def __init__(self) -> None:
        super().__init__()
        self.call = os.system


TRAP, CALLER = (f"{one.__module__}.{one.__qualname__}" for one in (Trap, Caller))


@pytest.mark.parametrize(
    ("learner", "names"), [(Trap(), TRAP), (Caller(), f"posix.system, {CALLER}")]
)
def test_untrusted_types_are_refused(learner: Scorer, names: str) -> None:
    """They are named when they are to be saved, and never created from a snapshot of strangers."""
    sentence = f"does not trust: {names}; if you .* add their names to trusted_types"
    with pytest.raises(StateError, match=sentence):
        Processor(learner=learner, trusted_types=[]).snapshot()
    forged = with_learners(skops.dumps((learner, {})))
    with pytest.raises(StateError, match=sentence):
        restored(forged, [])
    with pytest.raises(StateError, match=sentence):
        restored(forged, [ADAM])
    assert not Trap.sprung


def test_trusted_types_are_created() -> None:
    """The trap does spring once its type is trusted, so the test above can fail."""
    restored(with_learners(skops.dumps((Trap(), {}))), [TRAP])
    assert Trap.sprung
    Trap.sprung = False


def test_a_pickle_is_never_loaded_in_place_of_skops() -> None:
    """Where types are given, a pickle is refused, with the key and without."""
    blob = fed(Scorer(), None).snapshot(key=KEY)
    with pytest.raises(StateError, match=r"may be a pickle.*leave trusted_types out if you trust"):
        restored(blob, [SCORER], KEY)
    with pytest.raises(StateError, match="may be a pickle"):
        restored(with_learners(pickle.dumps((Scorer(), {}))), [SCORER])
    assert restored(blob, None, KEY).state_bytes() == fed(Scorer(), None).state_bytes()


def test_skops_is_not_loaded_unasked() -> None:
    """Without types, learners that skops saved are refused with the remedy."""
    blob = fed(SklearnClassifier(CLASSIFIERS["sgd"](), ["a"]), []).snapshot(key=KEY)
    with pytest.raises(StateError, match="skops saved the learners in the snapshot; give trusted"):
        restored(blob, None, KEY)


def test_a_pickle_becomes_skops() -> None:
    """A processor that was restored from a pickle saves its learner by skops if asked to."""
    processor = fed(Scorer(), None)
    again = restored(processor.snapshot(key=KEY), None, KEY)
    again.trusted_types = [SCORER]
    moved = restored(again.snapshot(), [SCORER])
    assert moved.process_many(AFTER) == processor.process_many(AFTER)


@pytest.mark.parametrize(
    "harm",
    [
        lambda blob: blob[: len(blob) // 2],
        lambda blob: blob[:4],
        lambda blob: blob.replace(b'"protocol"', b'"protocox"'),
        lambda _: skops.dumps([1, 2]),
        lambda _: skops.dumps((None, 3)),
    ],
    ids=["half", "magic", "schema", "list", "number"],
)
def test_damaged_learners_are_refused(harm: Callable[[bytes], bytes]) -> None:
    """Bytes that skops cannot read, or that are no learners, are refused in one sentence."""
    with pytest.raises(StateError, match=r"cannot be loaded \(.*\); the bytes are damaged"):
        restored(with_learners(harm(SAVED)), [])


def test_what_is_no_learner_is_refused() -> None:
    """A trusted object without the methods of a learner is refused, too."""
    with pytest.raises(StateError, match="have no methods score and learn"):
        restored(with_learners(skops.dumps((GaussianNB(), {}))), [])


@given(st.integers(0, len(SAVED) - 1), st.integers(1, 255))
def test_learners_with_a_changed_byte(at: int, bits: int) -> None:
    """Whichever byte of the learners changes, it is a StateError or does not matter."""
    changed = bytearray(SAVED)
    changed[at] ^= bits
    try:
        again = restored(with_learners(bytes(changed)), [])
    except StateError:
        return
    assert again.process_many(AFTER) == restored(BAYES, []).process_many(AFTER)


def test_models_of_river_stay_pickles() -> None:
    """Part of their state is lost by skops, so they are refused."""
    pytest.importorskip("river")
    processor = Processor(Settings(learner="tree"), trusted_types=[])
    processor.process(Observation("a", 0, x={"a": 1.0}))
    with pytest.raises(StateError, match=r"river's models \(river\..*leave trusted_types out"):
        processor.snapshot(key=KEY)


class InUse(Scorer):
    """A learner that cannot be saved."""

    def __getstate__(self) -> dict[str, int]:
        """Refuse to be saved."""
        msg = "in use"
        raise RuntimeError(msg)


def test_what_skops_cannot_save() -> None:
    """An object that skops cannot save is refused with the remedy."""
    with pytest.raises(StateError, match=r"skops cannot save the learners \(in use\).*give a key"):
        Processor(learner=InUse(), trusted_types=[]).snapshot()


def test_one_string_is_no_list_of_types() -> None:
    """A name in place of a list of names is refused."""
    with pytest.raises(ParameterError, match="is one string; give a list of names"):
        Processor(learner=Scorer(), trusted_types=SCORER).snapshot()


def test_skops_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without skops the error says how to install it, when saving and when restoring."""
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(MissingExtraError, match=r"run: pip install 'abers\[skops\]'"):
        Processor(learner=Scorer(), trusted_types=[]).snapshot()
    with pytest.raises(MissingExtraError, match=r"run: pip install 'abers\[skops\]'"):
        restored(BAYES, [])

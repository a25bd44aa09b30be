"""Learners behind `abers serve`: features in, a probability out, the label later."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.connectors.serve.running import Running

from abers.learners.sklearn_adapters import SklearnClassifier
from abers.stream import Label, Observation, Processor, Settings

if TYPE_CHECKING:
    from pathlib import Path

    from abers.learners import Learner

NOW = 1_700_000_000_000
KEY = {"ABERS_STATE_KEY": hashlib.sha256(b"of a test").hexdigest()}


def logistic() -> SklearnClassifier:
    """Return a learner of scikit-learn."""
    linear = pytest.importorskip("sklearn.linear_model")
    return SklearnClassifier(linear.SGDClassifier(loss="log_loss", random_state=0), ["amount"])


def configuration(name: str, path: Path) -> tuple[str, Learner | None]:
    """Return the configuration of a server, and the learner if it is in a file."""
    if name == "river":
        pytest.importorskip("river")
        return "[learner]\nname = 'logistic'\n", None
    skops = pytest.importorskip("skops.io")
    learner = logistic()
    skops.dump(learner, path / "learner.skops")
    return f"serve.learner = '{path / 'learner.skops'}'\n", learner


@pytest.mark.parametrize("name", ["river", "skops"])
def test_a_learner_that_is_killed(name: str, tmp_path: Path) -> None:
    """A learner goes on where a killed server stopped: each prediction is that without a kill."""
    text, learner = configuration(name, tmp_path)
    config, key = tmp_path / "serve.toml", KEY if name == "river" else {}
    config.write_text(text)
    settings = Settings(learner="logistic") if learner is None else Settings()
    whole = Processor(settings, learner=learner)
    for life in range(2):
        with Running(tmp_path / "state", str(config), environ=key) as running:
            for number in range(10 * life, 10 * life + 10):
                id_, time, x = f"{number}", NOW + number, {"amount": number % 3 - 1.0}
                (made,) = running.predict({"id": id_, "time": time, "x": x})
                (expected,) = whole.process(Observation(id_, time, x=x))
                assert made == msgspec.json.decode(msgspec.json.encode(expected))
                if number % 4:
                    assert running.label({"id": id_, "label": number % 2, "time": time}) == [
                        "learned"
                    ]
                    whole.process(Label(id_, time, value=number % 2))
            (wrong,) = running.predict({"id": "none"})
            assert wrong["error"]["detail"] == 'the row has no "x"; add it'
    assert made["score"] != 0.5  # it has learned


def test_learners_that_cannot_be_served(tmp_path: Path) -> None:
    """A learner without a key, a second one, and a file without one are refused with a remedy."""
    config = tmp_path / "serve.toml"
    (tmp_path / "wrong.skops").write_bytes(b"pickle")
    for text, said in (
        ("[learner]\nname = 'logistic'\n", "ABERS_STATE_KEY"),
        ("serve.learner = 'a'\n[learner]\nname = 'logistic'\n", "is a second learner"),
        (f"serve.learner = '{tmp_path / 'wrong.skops'}'\n", "is no file of skops"),
        ("serve.learner = 'a'\n[task]\nkind = 'regression'\n", 'is for the task "binary"'),
    ):
        config.write_text(text)
        with Running(tmp_path / "state", str(config)) as wrong:
            assert wrong.ended() == 78
            assert said in "".join(wrong.said)

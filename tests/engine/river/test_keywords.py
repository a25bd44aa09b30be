"""The keywords that a model takes: `abers.river._wrapper.MethodKeywords`."""

from __future__ import annotations

import pickle

import pandas as pd
import pytest
from river import linear_model, multiclass, preprocessing
from tests.engine.river.streams import Noted, Weightless

from abers import ParameterError
from abers.river import VennAbersClassifier
from abers.river._wrapper import MethodKeywords

GIVEN = {"w": 2.0, "tone": "low"}


def test_only_what_a_signature_names_is_handed_on() -> None:
    """Each method is given the keywords that it names, and no other."""
    forwarded = MethodKeywords(Noted())
    assert forwarded.accepted("learn_one", GIVEN) == {"w": 2.0}
    assert forwarded.accepted("predict_proba_one", GIVEN) == {"tone": "low"}
    assert MethodKeywords(Weightless()).accepted("learn_one", {"w": 2.0}) == {}


def test_what_takes_anything_is_given_everything() -> None:
    """A method with `**kwargs` is given all keywords, also the one of a pipeline."""
    assert (
        MethodKeywords(multiclass.OneVsRestClassifier(Noted())).accepted("learn_one", GIVEN)
        == GIVEN
    )
    assert (
        MethodKeywords(preprocessing.StandardScaler() | Noted()).accepted("learn_one", GIVEN)
        == GIVEN
    )


def test_a_mini_batch_of_a_pipeline_gets_the_keywords_of_its_last_step() -> None:
    """A pipeline hands on all keywords of a mini-batch, so its last step decides."""
    forwarded = MethodKeywords(preprocessing.StandardScaler() | linear_model.LogisticRegression())
    assert forwarded.accepted("learn_many", {"w": 2.0}) == {"w": 2.0}
    assert forwarded.accepted("predict_proba_many", {"w": 2.0}) == {}
    with pytest.raises(ParameterError, match="tone= is no keyword of this method"):
        forwarded.accepted("learn_many", GIVEN)


def test_it_can_be_pickled() -> None:
    """What was read of signatures is kept in a pickle."""
    restored = pickle.loads(pickle.dumps(MethodKeywords(Noted())))  # noqa: S301 - our own
    assert restored.accepted("learn_one", GIVEN) == {"w": 2.0}


@pytest.mark.parametrize(
    ("method", "keyword"),
    [
        ("learn_one", "weight"),
        ("predict_proba_one", "ids"),
        ("predict_proba_one", "with_intervals"),
        ("predict_proba_many", "with_interval"),
    ],
)
def test_a_keyword_that_nobody_takes(method: str, keyword: str) -> None:
    """A misspelt keyword is refused, and not left out; one that the other method takes is not."""
    model = VennAbersClassifier(linear_model.LogisticRegression())
    x = pd.DataFrame([{"a": 1.0}]) if method.endswith("many") else {"a": 1.0}
    label = (True,) if method.startswith("learn") else ()
    with pytest.raises(ParameterError, match=rf"{keyword}= is no keyword of this method, nor of "):
        getattr(model, method)(x, *label, **{keyword: True})
    if not method.endswith("many"):
        model.learn_one({"a": 1.0}, 1, w=2.0)

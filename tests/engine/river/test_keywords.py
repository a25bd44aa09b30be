"""The keywords that a model takes: `abers.river._wrapper.MethodKeywords`."""

from __future__ import annotations

import pickle

from river import linear_model, multiclass, preprocessing
from tests.engine.river.streams import Noted, Weightless

from abers.river._wrapper import MethodKeywords

GIVEN = {"w": 2.0, "tone": "low", "t": 7}


def test_only_what_a_signature_names_is_handed_on() -> None:
    """Each method is given the keywords that it names, and no other."""
    forwarded = MethodKeywords(Noted())
    assert forwarded.accepted("learn_one", GIVEN) == {"w": 2.0}
    assert forwarded.accepted("predict_proba_one", GIVEN) == {"tone": "low"}
    assert MethodKeywords(Weightless()).accepted("learn_one", GIVEN) == {}


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
    assert forwarded.accepted("learn_many", GIVEN) == {"w": 2.0}
    assert forwarded.accepted("predict_proba_many", GIVEN) == {}


def test_it_can_be_pickled() -> None:
    """What was read of signatures is kept in a pickle."""
    restored = pickle.loads(pickle.dumps(MethodKeywords(Noted())))  # noqa: S301 - our own
    assert restored.accepted("learn_one", GIVEN) == {"w": 2.0}

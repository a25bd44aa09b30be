"""Venn predictors and their taxonomies: `abers.batch.venn` and `.taxonomies`."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors
from sklearn.tree import DecisionTreeClassifier
from tests.engine.cases import LABELS, SCORES
from tests.engine.validity import miscalibrated

from abers import InputError, LabelError, ParameterError, ScoreError, VennAbers
from abers.batch import (
    ByFeature,
    IsotonicTaxonomy,
    NearestNeighbours,
    PredictedClass,
    ScoreBins,
    Taxonomy,
    TransductiveVennAbers,
    VennPrediction,
    VennPredictor,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

Classifier = "Callable[[NDArray[Any]], NDArray[Any]]"


def tree(objects: NDArray[Any], labels: NDArray[Any]) -> Callable[[Any], Any]:
    """Train scikit-learn's decision tree."""
    model = DecisionTreeClassifier(max_depth=1, random_state=0)
    classify: Callable[[Any], Any] = model.fit(objects, labels).predict
    return classify


TAXONOMIES: dict[str, Taxonomy] = {
    "nearest": NearestNeighbours(),
    "three nearest": NearestNeighbours(3),
    "bins": ScoreBins([-0.5, 0.5], lambda objects: objects[:, 0]),
    "class": PredictedClass(tree),
    "feature": ByFeature(1),
    "labels": lambda _objects, labels: labels,
    "one": lambda objects, _labels: np.zeros(len(objects)),
}
EVERY_TAXONOMY = pytest.mark.parametrize("taxonomy", TAXONOMIES.values(), ids=TAXONOMIES)


def data(n: int, labels: Sequence[Any] = (0, 1), seed: int = 0) -> tuple[NDArray[Any], list[Any]]:
    """Make objects of two features, rounded so that distances tie, and their labels."""
    rng = np.random.default_rng(seed)
    objects = rng.normal(size=(n, 2)).round(0 if n > 10 else 1)
    chosen = (objects[:, 0] + rng.normal(size=n)).clip(-1, 0.999) + 1
    return objects, [labels[int(share * len(labels) / 2)] for share in chosen]


@EVERY_TAXONOMY
@pytest.mark.parametrize("labels", [(0, 1), ("low", "mid", "high")])
def test_obeys_the_definition(taxonomy: Taxonomy, labels: tuple[Any, ...]) -> None:
    """Each row has the frequencies of the labels in the category of the object, itself included."""
    objects, given_labels = data(20, labels)
    predictor = VennPredictor(taxonomy, labels)
    predictor.learn_many(objects, given_labels)
    for one in data(5, seed=1)[0]:
        prediction = predictor.predict_one(one)
        assert prediction.labels == predictor.labels == labels
        for candidate, row in zip(labels, prediction.rows, strict=True):
            given = [*given_labels, candidate]
            categories = list(taxonomy(np.vstack([objects, one]), np.array(given)))
            own = [y for y, c in zip(given, categories, strict=True) if c == categories[-1]]
            assert row == tuple(float(Fraction(own.count(y), len(own))) for y in labels)
            assert row[labels.index(candidate)] > 0


@EVERY_TAXONOMY
def test_taxonomies_ignore_the_order(taxonomy: Taxonomy) -> None:
    """If the observations of a bag change places, which of them share a category stays."""
    objects, given_labels = data(25)
    labels = np.array(given_labels)
    order = np.random.default_rng(3).permutation(25)

    def together(categories: Any) -> list[list[bool]]:  # noqa: ANN401
        listed = list(categories)
        return [[one == other for other in listed] for one in listed]

    straight = np.array(together(taxonomy(objects, labels)))
    moved = np.array(together(taxonomy(objects[order], labels[order])))
    assert np.array_equal(moved, straight[np.ix_(order, order)])


@given(st.lists(st.tuples(SCORES, LABELS), max_size=20), SCORES)
def test_isotonic_taxonomy_is_venn_abers(bag: list[tuple[float, int]], query: float) -> None:
    """The Venn predictor of the isotonic calibrator's values is the Venn-Abers predictor."""
    calibrator, predictor = VennAbers(), VennPredictor(IsotonicTaxonomy())
    for score, label in bag:
        calibrator.learn_one(score, label)
        predictor.learn_one(score, label)
    assert predictor.predict_one(query).binary == calibrator.predict_one(query)


def test_isotonic_taxonomy_of_a_scorer_is_the_full_predictor() -> None:
    """With a scorer that is trained, it is the full Venn-Abers predictor (Proposition 1)."""

    def scorer(objects: NDArray[Any], labels: NDArray[Any]) -> Callable[[Any], Any]:
        model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(objects, labels)
        return lambda asked: model.predict_proba(asked)[:, 1]

    objects, given_labels = data(25)
    predictor = VennPredictor(IsotonicTaxonomy(scorer))
    predictor.learn_many(objects, given_labels)
    full = TransductiveVennAbers(scorer, objects, given_labels)
    for one in data(8, seed=1)[0]:
        assert predictor.predict_one(one).binary == full.predict_one(one)


@pytest.mark.parametrize("k", [1, 2, 5, 40])
def test_neighbours_are_those_of_scikit_learn(k: int) -> None:
    """Without ties the labels counted are those of the k nearest others; beyond all, of all."""
    rng = np.random.default_rng(4)
    objects, labels = rng.normal(size=(30, 3)), rng.integers(0, 3, 30)
    found = NearestNeighbors(n_neighbors=min(k, 29)).fit(objects).kneighbors()[1]
    for category, near in zip(NearestNeighbours(k)(objects, labels), found, strict=True):
        values, counts = np.unique(labels[near], return_counts=True)
        assert dict(category) == dict(zip(values.tolist(), counts.tolist(), strict=True))  # type: ignore[call-overload]


def test_tied_neighbours_all_count() -> None:
    """Objects at the distance of the k-th nearest are all neighbours, whichever came first."""
    categories = NearestNeighbours()(np.array([0.0, 1.0, -1.0, 9.0]), np.array([0, 1, 0, 1]))
    assert categories[0] == ((0, 1), (1, 1))
    assert NearestNeighbours()(np.array([[1.0, 2.0]]), np.array([1])) == [()]


def test_probabilities_by_label() -> None:
    """A prediction has the ends of each label's probability, and a pair where labels are two."""
    prediction = VennPrediction(("a", "b"), ((0.75, 0.25), (0.5, 0.5)))
    assert prediction.interval("a") == (0.5, 0.75)
    assert prediction.binary == (0.25, 0.5)
    with pytest.raises(LabelError, match="'c'"):
        prediction.interval("c")
    with pytest.raises(ParameterError, match="not 3"):
        _ = VennPrediction((0, 1, 2), ((1.0, 0.0, 0.0),) * 3).binary


def test_labels_are_not_confused() -> None:
    """1 and "1" are two labels, though an array of both would hold strings."""
    predictor = VennPredictor(lambda _objects, labels: labels, (1, "1"))
    predictor.learn_many([[0.0], [0.0]], [1, "1"])
    assert predictor.predict_one([0.0]).rows == ((1.0, 0.0), (0.0, 1.0))


def test_an_empty_predictor_knows_nothing() -> None:
    """With no observations the object's own label has the frequency 1."""
    predictor = VennPredictor(NearestNeighbours(), ("a", "b", "c"))
    predictor.learn_many([], [])
    assert (len(predictor), bool(predictor)) == (0, True)
    assert predictor.predict_one([1.0]).rows == ((1, 0, 0), (0, 1, 0), (0, 0, 1))


# The guarantee


def drawn(taxonomy: Taxonomy, size: int, *, swap: bool = False) -> tuple[Any, Any]:
    """Select p_Y in independent draws of a bag of six and a test object."""
    rng = np.random.default_rng(12)
    objects = rng.integers(0, 6, (size, 7)) / 5
    labels = (rng.random(objects.shape) < np.where(objects < 0.9, objects, 0.3)).astype(np.int64)
    p = np.empty(size)
    for i in range(size):
        predictor = VennPredictor(taxonomy)
        predictor.learn_many(objects[i, :6], labels[i, :6])
        p[i] = predictor.predict_one(objects[i, 6]).binary[labels[i, 6] ^ swap]
    return p, labels[:, 6]


def own_label_last(objects: NDArray[Any], labels: NDArray[Any]) -> list[Any]:
    """Sort all but the last object by its neighbours, and that by its own label: no taxonomy."""
    return [*NearestNeighbours()(objects, labels)[:-1], ((labels[-1].item(), 1),)]


@pytest.mark.once
@pytest.mark.large(20_000, reference=6_000)
@pytest.mark.parametrize(
    "taxonomy", [NearestNeighbours(), NearestNeighbours(2), ScoreBins([0.3, 0.7])]
)
def test_selected_probability_is_calibrated(taxonomy: Taxonomy, size: int) -> None:
    """With any taxonomy p_Y is calibrated in every bin."""
    assert miscalibrated(*drawn(taxonomy, size)) == []


@pytest.mark.once
@pytest.mark.large(4_000, reference=4_000)
def test_planted_faults_are_found(size: int) -> None:
    """The check fails for a swapped pair, and for categories that tell the object from others."""
    assert miscalibrated(*drawn(NearestNeighbours(), size, swap=True))
    assert miscalibrated(*drawn(own_label_last, size))


# Bad input


@pytest.mark.parametrize("labels", [(), (0,), (0, 0), (0, 1, 1.0)])
def test_labels_must_be_two_or_more(labels: tuple[Any, ...]) -> None:
    """There are at least two labels, all different."""
    with pytest.raises(ParameterError, match="at least two"):
        VennPredictor(NearestNeighbours(), labels)


@pytest.mark.parametrize(
    ("objects", "labels", "error", "message"),
    [
        ([[1.0], [2.0]], [0, 2], LabelError, "row 1: label 2"),
        ([[1.0], [2.0]], [0, [1]], LabelError, "row 1"),
        ([[1.0], [2.0]], [0], ParameterError, "labels has 1 rows, objects has 2"),
        ([[1.0, 2.0]], [0], ParameterError, "shape"),
        ([[1.0], [1.0, 2.0]], [0, 1], ParameterError, "one shape"),
    ],
)
def test_bad_rows_are_refused(
    objects: Any,  # noqa: ANN401
    labels: Any,  # noqa: ANN401
    error: type[InputError],
    message: str,
) -> None:
    """A bad row is named, and nothing of its batch is learned."""
    predictor = VennPredictor(NearestNeighbours())
    predictor.learn_one([0.0], 1)
    with pytest.raises(error, match=message):
        predictor.learn_many(objects, labels)
    assert len(predictor) == 1


@pytest.mark.parametrize(
    ("taxonomy", "one", "error", "message"),
    [
        (NearestNeighbours(), [float("nan")], ParameterError, "not a finite number"),
        (NearestNeighbours(), ["x"], ParameterError, "vectors of numbers"),
        (NearestNeighbours(), [1.0, 2.0], ParameterError, "shape"),
        (ScoreBins([0.5], lambda x: x[:, 0]), [float("nan")], ScoreError, "row 1: score nan"),
        (lambda _x, _y: [0], [1.0], ParameterError, "1 categories for 2 objects"),
        (lambda _x, _y: [0.0, float("nan")], [1.0], ParameterError, "nan"),
    ],
)
def test_bad_objects_and_taxonomies_are_refused(
    taxonomy: Taxonomy,
    one: Any,  # noqa: ANN401
    error: type[InputError],
    message: str,
) -> None:
    """An object without a category, and a taxonomy that leaves one out, are errors of their own."""
    predictor = VennPredictor(taxonomy)
    predictor.learn_one([0.0], 1)
    with pytest.raises(error, match=message):
        predictor.predict_one(one)
    assert len(predictor) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: NearestNeighbours(0),
        lambda: NearestNeighbours(True),  # noqa: FBT003
        lambda: NearestNeighbours(1.5),  # type: ignore[arg-type]
        lambda: ScoreBins([0.5, 0.5]),
        lambda: ScoreBins([0.5, float("nan")]),
    ],
)
def test_taxonomies_check_their_parameters(make: Callable[[], Taxonomy]) -> None:
    """Numbers of neighbours are counts, and edges ascend."""
    with pytest.raises(InputError):
        make()

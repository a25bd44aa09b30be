"""The settings of a processor that say what is predicted, and by which calibrator."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from abers.calibration.label_rates import ALL
from abers.stream.declarations import count, share, span
from abers.stream.option import Option
from abers.stream.setting_rules import QUANTILES

__all__ = ["CalibrationSettings"]

_MOST_FOLDS = 100


class CalibrationSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The task, the calibrator and the learner; a part of `abers.stream.Settings`."""

    task: Annotated[
        Literal["binary", "multiclass", "regression"],
        Option(
            "task.kind",
            "What is predicted: the probability of label 1, those of several classes, or the "
            "distribution of a number.",
            'It is "binary", "multiclass" or "regression".',
            flag="--task",
            metavar="TASK",
            group="Input",
        ),
    ] = "binary"
    classes: Annotated[
        tuple[str, ...],
        Option("task.classes", 'The classes of a multiclass task, such as ["cat", "dog", "owl"].'),
    ] = ()
    quantiles: Annotated[
        tuple[float, ...],
        Option("task.quantiles", "Levels of the quantiles that a regression predicts, ascending."),
    ] = QUANTILES
    grid: Annotated[
        tuple[float, ...],
        Option(
            "calibrator.grid",
            'Values of the label at which "ivapr" computes the distribution, such as [10, 20, 50].',
            "A prediction then takes microseconds for each. If empty, the distribution is "
            "computed everywhere, at a cost that grows with the labels.",
        ),
    ] = ()
    distributions: Annotated[
        Literal["none", "scored", "full"],
        Option(
            "calibrator.distributions",
            "How much of the whole distributions of a regression is written, besides their "
            "quantiles.",
            '"scored" adds the mean to each prediction and scores it by its CRPS. "full" also '
            "writes the whole band with each prediction. Each pending observation then keeps its "
            "distribution, so bound them by `calibrator.window` or by `limits.max_pending`.",
            flag="--distributions",
            group="Calibrator",
        ),
    ] = "none"
    support: Annotated[
        tuple[float, ...],
        Option(
            "calibrator.support",
            "The two ends between which all labels lie.",
            "For example [0, 100]. The mean and the CRPS put the masses beyond the labels seen "
            "there; a label outside is a bad record. If empty, these are the smallest and the "
            "largest label kept. "
            '"protected" needs them; the closer they are, the stronger its promise.',
            flag="--support",
            metavar="LOW HIGH",
            group="Calibrator",
        ),
    ] = ()
    calibrator: Annotated[
        str | None,
        Option(
            "calibrator.kind",
            "The calibrator; the first of each task is the default.",
            'For a binary task "ivap", which returns the Venn-Abers interval, or "cvap", which '
            'does so by folds; for comparison also "platt", "isotonic", "dir" (direct isotonic '
            'regression) and "beta", which return one probability ("beta" needs probabilities). '
            'For several classes "one-vs-rest" or "one-vs-one". "protected" is "ivap" or '
            '"one-vs-rest" with protected probabilities, and "protected-cvap" "cvap" with them. '
            '"none" serves probabilities, of two classes or several, as they are: nothing is '
            'learned, and only monitors and tests run. For a regression "ivapr", or "protected", '
            "which needs `calibrator.support`. A class of your own is named by its import path, "
            '"package.module:Class".',
            flag="--calibrator",
            metavar="NAME",
            group="Calibrator",
            example="platt",
        ),
    ] = None
    probability: Annotated[
        Literal["protected", "merged"] | None,
        Option(
            "calibrator.probability",
            "Which probability is predicted with the interval.",
            '"protected" has a bounded price against the score, under drift and late labels, and '
            'may lie outside the interval; "merged" is made of the interval alone. Default: '
            '"protected" for "ivap" and "cvap" if scores are probabilities or logits, and for '
            '"one-vs-rest" if they are probabilities of at most 100 classes; else "merged".',
            flag="--probability",
            group="Calibrator",
            example="merged",
        ),
    ] = None
    raw_weight: Annotated[
        float,
        share(
            "calibrator.raw_weight",
            "Weight of the score in the protected probability at first, between 0 and 1.",
            "A larger one lowers the price against the score, and raises that against the "
            "calibrators. Of K scores it is the weight of their median.",
        ),
    ] = 0.25
    base_weight: Annotated[
        float,
        share(
            "calibrator.base_weight",
            'Weight of the base in the distribution of "protected" at first, between 0 and 1.',
            "A larger one lowers the price against the base, and raises that against the other "
            "methods.",
        ),
    ] = 0.5
    coverage: Annotated[
        float | None,
        share(
            "calibrator.coverage",
            "Share of labels that one more interval of each prediction is to cover.",
            'It is between 0 and 1, and only for a regression. With "ivapr" it is the interval of '
            "the band, and the share is at least this by theorem, with a fixed model and a stream "
            'that does not move; with "protected" a bound on the coverage holds on any stream, and '
            "where labels are late it costs some width. Default: no such interval.",
            flag="--coverage",
            metavar="LEVEL",
            group="Calibrator",
            example=0.8,
        ),
    ] = None
    folds: Annotated[
        int,
        Option(
            "calibrator.folds",
            'Number of folds of "cvap".',
            "Each fold has a copy of the learner that never learns the fold. Without a learner a "
            "score is one number for all folds, or a list with one number from each model.",
            least=2,
            most=_MOST_FOLDS,
        ),
    ] = 5
    label_rates: Annotated[
        tuple[float, ...],
        Option(
            "calibrator.label_rates",
            "Shares of the labels of class 0, and of class 1, that ever come.",
            "With [0.5, 1] one in two labels of class 0 never comes, and each of class 1 does. "
            "Predictions then are about all observations, and not about those with labels; tests, "
            "verdicts and scores compare what they say of observations with labels. It is for the "
            'calibrator "ivap" with merged probabilities. Labels are learned when they come; if '
            "those of one class come later, set `limits.learn_after` to an age by which all have.",
            flag="--label-rates",
            metavar="OF_0 OF_1",
            group="Calibrator",
            example=[0.5, 1.0],
        ),
    ] = ALL
    scores: Annotated[
        Literal["any", "probability", "logit"],
        Option(
            "task.scores",
            "Kind of the scores.",
            '"probability" refuses a score outside [0, 1], and with several classes those that do '
            "not sum to 1, and compares the raw probabilities with the calibrated ones. "
            '"logit" and "any" accept every finite number; logits are compared too.',
            flag="--scores",
            group="Input",
        ),
    ] = "any"
    window: Annotated[
        int | None,
        count(
            "calibrator.window",
            "Number of the newest labels that are kept.",
            "A calibrator forgets by at most one of `calibrator.window`, `calibrator.max_age` and "
            '`calibrator.half_life`, and "protected" numbers by a window alone. By default these '
            "keep 5,000 labels, and all others every label.",
            flag="--window",
            metavar="N",
            group="Calibrator",
            example=100_000,
        ),
    ] = None
    max_age: Annotated[
        int | None,
        span(
            "calibrator.max_age",
            "Age beyond which a label is forgotten, counted from its observation.",
            least=1,
            flag="--max-age",
            metavar="SPAN",
            group="Calibrator",
            example="30d",
        ),
    ] = None
    half_life: Annotated[
        int | None,
        span(
            "calibrator.half_life",
            "Time in which the weight of a label halves.",
            least=1,
            flag="--half-life",
            metavar="SPAN",
            group="Calibrator",
            example="7d",
        ),
    ] = None
    learner: Annotated[
        str | None,
        Option(
            "learner.name",
            "The learner that scores the features and learns from each label.",
            '"bayes", "forest", "logistic" (two classes only), "softmax", "tree", or the full name '
            'of a river classifier. For a regression "forest", "linear", "tree", or the full name '
            'of a river regressor. Default: "logistic", "softmax" for several classes, "linear" '
            "for a regression.",
            flag="--learner",
            metavar="NAME",
            group="Input",
            example="logistic",
        ),
    ] = None

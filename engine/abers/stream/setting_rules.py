"""Rules between the settings of a processor, and what follows from settings that agree.

Each function takes settings, or the values of settings that could be read.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from abers import registry
from abers.calibration.sets import ALL, LEAST
from abers.stream.option import REMOVE, SET, Quoted, fits
from abers.suggestions import closest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers.mathematics import Capabilities
    from abers.stream.option import OptionValues, Part, Problem, Rule

__all__ = [
    "FORGETTING",
    "QUANTILES",
    "RULES",
    "ascend",
    "calibrator_of",
    "has_raw_view",
    "is_protected",
    "unable",
    "usual_calibrator",
]

FORGETTING = ("window", "max_age", "half_life")
"""Settings that are rules of forgetting."""

QUANTILES = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
"""Levels that bound the central intervals of 95, 90, 80 and 50 per cent, and the median."""

# Calibrators that have an order of teaching.
_ORDERED = ("ivap", "cvap", "one-vs-rest", "protected", "protected-cvap")
# Kinds of scores that say probabilities, which are protected by default.
_SAYING = {"binary": ("probability", "logit"), "multiclass": ("probability",)}
_PROTECTED_CLASSES = 100  # time and memory of that grow with their number


def ascend(values: Sequence[float], low: float = -math.inf, high: float = math.inf) -> bool:
    """Return whether numbers ascend strictly between two ends.

    Examples
    --------
    >>> ascend([0.1, 0.9], 0.0, 1.0), ascend([0.1, 0.1]), ascend([0.0, 0.5], 0.0, 1.0)
    (True, False, False)
    """
    return all(a < b for a, b in pairwise([low, *values, high]))


def usual_calibrator(of: Any) -> str:  # noqa: ANN401 - settings, or values of them
    """Return the name of the calibrator that was named, or the default of the task."""
    return of.calibrator or registry.names(of.task)[0]


def has_raw_view(of: Any) -> bool:  # noqa: ANN401 - likewise
    """Return whether scores say probabilities: as they are, or as the logits of label 1."""
    return of.scores in _SAYING.get(of.task, ())


def is_protected(of: Any) -> bool:  # noqa: ANN401 - likewise
    """Return whether the probability is protected."""
    forms, name = registry.protected_forms(of.task), usual_calibrator(of)
    if of.probability is not None or name not in forms:
        return of.probability == "protected" or name in forms.values()
    return has_raw_view(of) and len(of.classes) <= _PROTECTED_CLASSES


def calibrator_of(of: Any) -> str:  # noqa: ANN401 - likewise
    """Return the name of the calibrator that predicts: the protected form if p is protected."""
    forms = registry.protected_forms(of.task) if is_protected(of) else {}
    name = usual_calibrator(of)
    return forms.get(name, name)


def _owners(v: OptionValues) -> Iterator[Problem]:
    """Find settings of another task."""
    owners = {
        "classes": ("multiclass", v.classes),
        "quantiles": ("regression", v.quantiles != QUANTILES and v.quantiles),
        "grid": ("regression", v.grid),
        "distributions": ("regression", v.distributions != "none"),
        "support": ("regression", v.support),
        "coverage": ("regression", v.coverage is not None),
        "label_rates": ("binary", v.label_rates != ALL),
    }
    for name, (owner, given) in owners.items():
        if given and v.task != owner:
            yield v.problem(name, "applies only to the task ", Quoted(owner), "; ", REMOVE)


def _classes(v: OptionValues) -> Iterator[Problem]:
    if v.task == "multiclass" and len({*v.classes}) < max(2, len(v.classes)):
        example = Quoted(["cat", "dog"])
        yield v.problem("classes", "must be two or more different classes, such as ", example)


def _lengths(v: OptionValues) -> Iterator[Problem]:
    """Find classes that are longer than names in records may be."""
    most = v.max_name_bytes
    for one in v.classes:
        if not fits(one, most):
            words = f" has {len(one.encode()):,} bytes; shorten it, or raise "
            yield v.problem("classes", Quoted(one), words, v.ref("max_name_bytes", most))


def _scores(v: OptionValues) -> Iterator[Problem]:
    if v.task == "regression" and v.scores == "probability":
        words = ("must be ", Quoted("any"), " or ", Quoted("logit"))
        yield v.problem("scores", *words, " for the task ", Quoted("regression"))


def _quantiles(v: OptionValues) -> Iterator[Problem]:
    if v.task == "regression" and not (v.quantiles and ascend(v.quantiles, 0.0, 1.0)):
        words = " is not an ascending list between 0 and 1"
        yield v.problem("quantiles", v.quoted("quantiles"), words)


def _grid(v: OptionValues) -> Iterator[Problem]:
    if v.task != "regression":
        return
    if not ascend(v.grid):
        yield v.problem("grid", v.quoted("grid"), " is not an ascending list of numbers")
    if v.grid and v.calibrator == "protected":
        yield v.problem("grid", "is not for ", Quoted("protected"), "; ", REMOVE)


def _coverage(v: OptionValues) -> Iterator[Problem]:
    if v.coverage is None or v.task != "regression":
        return
    if usual_calibrator(v) not in {"ivapr", "protected"}:
        others = (v.ref("calibrator", "ivapr"), " or ", Quoted("protected"))
        yield v.problem("coverage", "needs ", *others)
    elif v.half_life is not None:
        words = ("has no promise with unequal weights; forget by ", v.ref("window"))
        yield v.problem("coverage", *words, ", or remove ", v.ref("half_life"))


def _support(v: OptionValues) -> Iterator[Problem]:
    if v.task != "regression":
        return
    protected = v.calibrator == "protected"
    if protected and not v.support:
        words = " needs the ends of all labels; write [lowest, highest]"
        yield v.problem("support", Quoted("protected"), words)
    if not v.support:
        return
    if v.distributions == "none" and v.coverage is None and not protected:
        others = (" or ", Quoted("full"), ", or ", v.ref("coverage"))
        needs = ("needs ", v.ref("distributions", "scored"), *others)
        yield v.problem("support", *needs)
    elif len(v.support) != 2 or not ascend(v.support):  # noqa: PLR2004 - a pair
        words = " is not two numbers in ascending order"
        yield v.problem("support", v.quoted("support"), words)
    elif not all(v.support[0] <= one <= v.support[1] for one in v.grid):
        words = " does not contain "
        yield v.problem("support", v.quoted("support"), words, v.ref("grid"), "; widen it")


def _label_rates(v: OptionValues) -> Iterator[Problem]:
    if len(v.label_rates) != len(ALL) or not all(LEAST <= one <= 1.0 for one in v.label_rates):
        words = (
            f" must be two shares from {LEAST:f} to 1: of the labels of class 0, then of class 1"
        )
        yield v.problem("label_rates", v.quoted("label_rates"), words)
    elif v.label_rates != ALL and v.unlabelled is not None:
        assumed = v.ref("unlabelled", v.unlabelled)
        words = ", by which every label comes; remove one of them"
        yield v.problem("label_rates", "does not go with ", assumed, words)


def _forgetting(v: OptionValues) -> Iterator[Problem]:
    given = [name for name in FORGETTING if v[name] is not None]
    for name in given[1:]:
        words = ("cannot be combined with ", v.ref(given[0]), "; remove one of them")
        yield v.problem(name, *words)


def _calibrator(v: OptionValues) -> Iterator[Problem]:
    """Compare the calibrator with the task; one with an import path is not imported."""
    name, known = v.calibrator, registry.names(v.task)
    if name is None or name in known or registry.is_path(name):
        return
    if name in registry.names():
        yield _other_task(v)
        return
    near = closest(name, known)
    hint = ("; did you mean ", Quoted(near), "?") if near else ()
    words = (" is not one of ", *_listed(known, ", "), ", or ", Quoted("package.module:Class"))
    yield v.problem("calibrator", Quoted(name), *words, *hint)


def _other_task(v: OptionValues) -> Problem:
    """Return the problem of a calibrator of another task."""
    words = (" does not support the task ", Quoted(v.task), "; use ")
    known = _listed(registry.names(v.task), " or ")
    return v.problem("calibrator", Quoted(v.calibrator), *words, *known)


def _listed(names: Sequence[str], between: str) -> tuple[Part, ...]:
    return tuple(part for one in names for part in (between, Quoted(one)))[1:]


def _probability(v: OptionValues) -> Iterator[Problem]:
    """Compare the probability that is predicted with the calibrator."""
    forms, of = registry.protected_forms(v.task), usual_calibrator(v)
    able = (*forms, *forms.values())
    if v.probability == "merged" and of in forms.values():
        other = next(name for name, form in forms.items() if form == of)
        words: tuple[Part, ...] = ("cannot be ", Quoted("merged"), " for ", Quoted(of), "; ", SET)
        yield v.problem("probability", *words, v.ref("calibrator", other))
    if v.probability != "protected" or of in able:
        return
    if able:
        others = [part for one in able[1:] for part in (" or ", Quoted(one))]
        words = (" needs ", v.ref("calibrator", able[0]), *others, ", not ", Quoted(of), "; ")
    else:
        words = (" does not support the task ", Quoted(v.task), "; ")
    yield v.problem("probability", Quoted("protected"), *words, REMOVE)


def _able(v: OptionValues) -> Iterator[Problem]:
    """Compare the calibrator that predicts with scores and forgetting, if it has a name."""
    name = calibrator_of(v)
    if name not in registry.names(v.task):
        return
    yield from unable(v, name, registry.capabilities(name, v.task))


def unable(v: OptionValues, name: str, able: Capabilities) -> Iterator[Problem]:
    """Find a task, scores and rules of forgetting that a calibrator does not take."""
    if able.task != v.task:
        yield _other_task(v)
    for rule in FORGETTING:
        if v[rule] is not None and rule not in able.forgetting:
            yield v.problem(rule, "is not for ", Quoted(name), "; ", REMOVE)
    if able.of_probabilities and v.scores != "probability":
        key = "calibrator" if usual_calibrator(v) == name else "probability"
        given = name if key == "calibrator" else v.probability
        words = (" needs probabilities; ", SET, v.ref("scores", "probability"))
        yield v.problem(key, Quoted(given), *words)
    if v.task == "binary" and v.label_rates != ALL and "label_rates" not in able.options:
        yield _no_rates(v, name)


def _no_rates(v: OptionValues, name: str) -> Problem:
    """Return the problem of rates of labels for a calibrator that takes none."""
    if usual_calibrator(v) != registry.names(v.task)[0]:
        return v.problem("label_rates", "is not for ", Quoted(name), "; ", REMOVE)
    words = ("needs ", v.ref("probability", "merged"), ": the protected probability is about ")
    return v.problem("label_rates", *words, "observations with labels only")


def _learn_after(v: OptionValues) -> Iterator[Problem]:
    """Find an age at which labels are learned where they are learned as they come."""
    if v.learn_after is None or (v.task != "regression" and calibrator_of(v) in _ORDERED):
        return
    words = f"is for the calibrators {', '.join(_ORDERED[:-1])} and {_ORDERED[-1]}; "
    yield v.problem("learn_after", words, REMOVE)


def _unlabelled(v: OptionValues) -> Iterator[Problem]:
    """Find an assumed label that the task does not have."""
    known = v.classes or (0, 1)
    if v.unlabelled is None:
        return
    if v.task == "regression":
        why = " is a class, and labels are numbers; "
        yield v.problem("unlabelled", v.quoted("unlabelled"), why, REMOVE)
    elif type(v.unlabelled) is bool or v.unlabelled not in known:
        words = (" is not among ", Quoted([*known]), "; name one of them")
        yield v.problem("unlabelled", v.quoted("unlabelled"), *words)


def _wait(v: OptionValues) -> Iterator[Problem]:
    """Find an assumed label without a time to wait for the real one."""
    if v.unlabelled is not None and v.task != "regression" and v.label_timeout == 0:
        yield v.problem("unlabelled", "needs ", v.ref("label_timeout"), " above 0; set it")


RULES: tuple[Rule, ...] = (
    *(_owners, _classes, _lengths, _scores, _quantiles, _grid, _coverage, _support, _label_rates),
    *(_forgetting, _calibrator, _probability, _able, _learn_after, _unlabelled, _wait),
)
"""The rules between settings: each yields the mistakes that it finds."""

"""river's own checks of estimators, every one of them, on every wrapper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from river import checks

import abers.river as wrappers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLASSES: list[Any] = [
    wrappers.VennAbersClassifier,
    wrappers.CrossVennAbersClassifier,
    wrappers.VennAbersMultiClassifier,
    wrappers.VennAbersRegressor,
]
SKIPPED = {"check_learn_many_matches_learn_one"}
SLOW = "check_bounded_memory_growth"
"""The slowest check. It comes once for each stream: all but the first are long tests."""


def cases() -> Iterator[Any]:
    """Make a case of each check of each wrapper of each of its learners."""
    for kind in CLASSES:
        for number, options in enumerate(kind._unit_test_params()):  # noqa: SLF001 - river's name
            model = kind(**options)
            names: dict[str, int] = {}
            for check in checks.yield_checks(model):
                name = check.__name__
                names[name] = names.get(name, 0) + 1
                if name not in model._unit_test_skips():  # noqa: SLF001 - river's name
                    title = f"{kind.__name__}-{number}-{name}-{names[name]}"
                    marks = [pytest.mark.long] if name == SLOW and names[name] > 1 else []
                    yield pytest.param(model, check, id=title, marks=marks)


@pytest.mark.parametrize(("model", "check"), [*cases()])
def test_river_has_nothing_to_say(model: Any, check: Callable[[Any], None]) -> None:  # noqa: ANN401
    """An untrained clone passes the check."""
    check(model.clone())


@pytest.mark.parametrize("kind", CLASSES)
def test_hardly_a_check_is_left_out(kind: Any) -> None:  # noqa: ANN401 - a class of river's kind
    """A wrapper asks for no other check to be skipped than the one it cannot pass."""
    for options in kind._unit_test_params():  # noqa: SLF001 - river's name
        assert kind(**options)._unit_test_skips() <= SKIPPED  # noqa: SLF001 - river's name

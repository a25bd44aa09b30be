"""What is told of the texts of a batch, natively and by the specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import _texts
from abers._backend import core

if TYPE_CHECKING:
    from types import ModuleType

_SURROGATE = "a\ud800"


class _Text(str):
    """A text of another type."""

    __slots__ = ()


_ANYTHING = st.one_of(
    st.sampled_from(["", "a", "b", "é", "日本", "🐦", _SURROGATE, "🐦\udfff"]),
    st.builds(_Text, st.just("a")),
    st.sampled_from([1, None, b"a", np.str_("a")]),
)


@pytest.mark.native
@given(st.lists(_ANYTHING, max_size=8))
def test_backends_agree(texts: list[object]) -> None:
    """Both say the same of any list."""
    assert core.are_names(texts) == _texts.are_names(texts)
    native, plain = np.zeros((2, len(texts)), np.uint32)
    names = core.distinct(texts, native)
    assert names == _texts.distinct(texts, plain)
    if names is not None:
        np.testing.assert_array_equal(native, plain)


@pytest.mark.parametrize("module", [core, _texts])
def test_distinct_gives_order_of_appearance(module: ModuleType) -> None:
    """Equal texts have one number, though they are different objects."""
    numbers = np.empty(5, np.uint32)
    names = module.distinct(["b", str(b"a", "ascii"), "b", "c", "a"], numbers)
    assert names == ["b", "a", "c"]
    assert numbers.tolist() == [0, 1, 0, 2, 1]


@pytest.mark.parametrize("module", [core, _texts])
@pytest.mark.parametrize(
    ("texts", "are"),
    [
        ([], True),
        (["a", "é", "日本", "🐦"], True),
        (["a", ""], False),
        ([_SURROGATE], False),
        ([_Text("a")], False),
        ([b"a"], False),
    ],
)
def test_are_names(module: ModuleType, texts: list[object], *, are: bool) -> None:
    """A name is a text of at least one character, of the type str, without a surrogate."""
    assert module.are_names(texts) is are


@pytest.mark.native
def test_lengths_must_agree() -> None:
    """Numbers of another length are refused before anything is written."""
    with pytest.raises(ValueError, match="differ in length"):
        core.distinct(["a"], np.empty(2, np.uint32))

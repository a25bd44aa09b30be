"""Checks and numbers of a column of strings, native and by the specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.backends import core
from abers.reference import text_columns

if TYPE_CHECKING:
    from types import ModuleType

_SURROGATE = "a\ud800"


class _Text(str):
    """A subclass of str."""

    __slots__ = ()


_ANYTHING = st.one_of(
    st.sampled_from(["", "a", "b", "é", "日本", "🐦", _SURROGATE, "🐦\udfff"]),
    st.builds(_Text, st.just("a")),
    st.sampled_from([1, None, b"a", np.str_("a")]),
)

_MOST = st.integers(1, 12) | st.just(2**31 - 1)


@pytest.mark.native
@given(st.lists(_ANYTHING | st.text(st.sampled_from("aé日🐦"), max_size=6), max_size=8), _MOST)
def test_backends_agree(texts: list[object], most: int) -> None:
    """Both return the same for any list and any limit."""
    assert core.are_names(texts, most) == text_columns.are_names(texts, most)
    native, plain = np.zeros((2, len(texts)), np.uint32)
    names = core.distinct(texts, native, most)
    assert names == text_columns.distinct(texts, plain, most)
    if names is not None:
        np.testing.assert_array_equal(native, plain)


@pytest.mark.parametrize("module", [core, text_columns])
def test_distinct_gives_order_of_appearance(module: ModuleType) -> None:
    """Equal strings have one number, though they are different objects."""
    numbers = np.empty(5, np.uint32)
    names = module.distinct(["b", str(b"a", "ascii"), "b", "c", "a"], numbers, 1)
    assert names == ["b", "a", "c"]
    assert numbers.tolist() == [0, 1, 0, 2, 1]


@pytest.mark.parametrize("module", [core, text_columns])
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
    """A name is a non-empty string of the type str, without a surrogate."""
    assert module.are_names(texts, 100) is are


@pytest.mark.parametrize("module", [core, text_columns])
@pytest.mark.parametrize(
    ("text", "size"),
    [("abc", 3), ("aé", 3), ("ß" * 9, 18), ("日本", 6), ("a日", 4), ("🐦", 4), ("é🐦", 6)],
)
def test_lengths_are_bytes(module: ModuleType, text: str, size: int) -> None:
    """A string fits if its UTF-8 has at most that many bytes."""
    assert len(text.encode()) == size
    for most, fits in ((size, True), (size - 1, False)):
        assert module.are_names([text], most) is fits
        assert (module.distinct([text], np.empty(1, np.uint32), most) is not None) is fits


@pytest.mark.parametrize("module", [core, text_columns])
def test_no_text_is_short(module: ModuleType) -> None:
    """Every string of a list is measured, also one that follows itself."""
    texts, numbers = ["a", "a", "long", "long"], np.empty(4, np.uint32)
    assert not module.are_names(texts, 3)
    assert module.distinct(texts, numbers, 3) is None
    assert module.distinct(texts, numbers, 4) == ["a", "long"]


@pytest.mark.native
def test_lengths_must_agree() -> None:
    """Numbers of another length are refused before anything is written."""
    with pytest.raises(ValueError, match="differ in length"):
        core.distinct(["a"], np.empty(2, np.uint32), 9)

"""Texts, and the checks and numbers of a column of them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.backends import core
from abers.stream.option import fits, is_text

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


@given(st.lists(_ANYTHING | st.text(st.sampled_from("aé日🐦"), max_size=6), max_size=8), _MOST)
def test_texts_are_those_of_the_definition(texts: list[object], most: int) -> None:
    """A text is of the type str and of Unicode's characters; it fits if its UTF-8 does."""
    are = [type(text) is str and re.search("[\ud800-\udfff]", text) is None for text in texts]
    assert [is_text(text) for text in texts] == are
    good = [text for text, valid in zip(texts, are, strict=True) if valid]
    fit = [len(str(text).encode()) <= most for text in good]
    assert [fits(str(text), most) for text in good] == fit
    numbers = np.zeros(len(texts), np.uint32)
    names = core.distinct(texts, numbers, most)
    assert core.are_names(texts, most) is (all(are) and all(fit) and "" not in texts)
    assert (names is not None) is (all(are) and all(fit))
    if names is not None:
        assert names == [*dict.fromkeys(texts)]
        assert [names[number] for number in numbers] == texts


def test_distinct_gives_order_of_appearance() -> None:
    """Equal strings have one number, though they are different objects."""
    numbers = np.empty(5, np.uint32)
    names = core.distinct(["b", str(b"a", "ascii"), "b", "c", "a"], numbers, 1)
    assert names == ["b", "a", "c"]
    assert numbers.tolist() == [0, 1, 0, 2, 1]


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
def test_are_names(texts: list[object], *, are: bool) -> None:
    """A name is a non-empty string of the type str, without a surrogate."""
    assert core.are_names(texts, 100) is are


@pytest.mark.parametrize(
    ("text", "size"),
    [("abc", 3), ("aé", 3), ("ß" * 9, 18), ("日本", 6), ("a日", 4), ("🐦", 4), ("é🐦", 6)],
)
def test_lengths_are_bytes(text: str, size: int) -> None:
    """A string fits if its UTF-8 has at most that many bytes."""
    assert len(text.encode()) == size
    for most, fit in ((size, True), (size - 1, False)):
        assert core.are_names([text], most) is fit
        assert (core.distinct([text], np.empty(1, np.uint32), most) is not None) is fit


def test_no_text_is_short() -> None:
    """Every string of a list is measured, also one that follows itself."""
    texts, numbers = ["a", "a", "long", "long"], np.empty(4, np.uint32)
    assert not core.are_names(texts, 3)
    assert core.distinct(texts, numbers, 3) is None
    assert core.distinct(texts, numbers, 4) == ["a", "long"]


def test_lengths_must_agree() -> None:
    """Numbers of another length are refused before anything is written."""
    with pytest.raises(ValueError, match="differ in length"):
        core.distinct(["a"], np.empty(2, np.uint32), 9)

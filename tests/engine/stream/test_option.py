"""Declarations of options, and mistakes in the words of each front end: `abers.stream.option`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from abers.stream import Settings
from abers.stream.option import (
    REMOVE,
    SET,
    Front,
    Option,
    OptionValues,
    Problem,
    Quoted,
    Ref,
    declared,
    found_by,
    read_all,
    shown,
)
from abers.stream.settings import setting_options


class Example(msgspec.Struct, frozen=True):
    """Options of each kind."""

    word: Annotated[Literal["any", "logit"], Option("a.word", "A word.", flag="--word")] = "any"
    share: Annotated[float | None, Option("a.share", least=0.0, most=1.0, inner=True)] = None
    names: Annotated[tuple[str, ...], Option("a.names")] = ()
    numbers: Annotated[tuple[float, ...], Option("a.numbers")] = ()
    size: Annotated[int, Option("a.size", least=1)] = 5
    on: Annotated[bool, Option("a.on")] = True
    plain: int = 5


OPTIONS = declared(Example)
WORDS: dict[Front, str] = {
    "toml": 'a.share: needs a.word = "logit"; set a.names, or remove it',
    "env": 'ABERS_A__SHARE: needs ABERS_A__WORD="logit"; set ABERS_A__NAMES, or remove it',
    "flag": "a.share: needs --word logit; add a.names in a configuration, or leave it out",
    "python": "share: needs word='logit'; set names, or leave it out",
}


@pytest.mark.parametrize(("front", "words"), WORDS.items())
def test_words_of_a_front_end(front: Front, words: str) -> None:
    """A mistake is said in keys, variables, flags or arguments, as the option is written there."""
    text = (
        *("needs ", Ref(OPTIONS["word"], "logit"), "; ", SET, Ref(OPTIONS["names"])),
        *(", or ", REMOVE),
    )
    assert shown(Problem(OPTIONS["share"], text), front) == words


def test_what_a_field_says() -> None:
    """An option has the name, the choices and the default of its field."""
    assert [*OPTIONS] == ["word", "share", "names", "numbers", "size", "on"]
    assert OPTIONS["word"].choices == ("any", "logit")
    assert (OPTIONS["share"].optional, OPTIONS["share"].default) == (True, None)
    assert (OPTIONS["size"].optional, OPTIONS["size"].default) == (False, 5)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        (
            *("word", "logits"),
            'a.word: "logits" is not one of "any", "logit"; did you mean "logit"?',
        ),
        ("share", 1, "a.share: 1 is too large; write less than 1.0"),
        ("share", float("nan"), "a.share: NaN is not a number; write one, without quotes"),
        ("names", "ab", 'a.names: "ab" is not a list; write ["ab"]'),
        ("names", ["a", 5], "a.names.1: 5 is not a string; put it in quotes"),
        ("size", 0, "a.size: 0 is too small; write at least 1"),
        ("size", True, "a.size: true is not a whole number; write one, without quotes"),
        ("on", "yes", 'a.on: "yes" is not a boolean; write true or false, without quotes'),
        (
            "numbers",
            ["x"],
            'a.numbers: ["x"] is not a list of finite numbers; write a list such as [0.1, 0.5]',
        ),
    ],
)
def test_values_that_cannot_be_read(name: str, value: Any, says: str) -> None:  # noqa: ANN401
    """A value of a wrong type or out of range is a mistake of its option, and has no value."""
    read, problems = read_all(OPTIONS, {name: value})
    assert name not in read
    assert [shown(one, "toml") for one in problems] == [says]


def test_values_are_read() -> None:
    """A value has the type of its field; an option without a value has its default."""
    read, problems = read_all(OPTIONS, {"share": 0.5, "names": ["a"], "numbers": [1, 2.5]})
    assert problems == []
    assert read == {
        "word": "any",
        "share": 0.5,
        "names": ("a",),
        "numbers": (1.0, 2.5),
        "size": 5,
        "on": True,
    }


def test_a_rule_without_its_value_is_left_out() -> None:
    """A rule finds nothing if a value that it needs could not be read; others go on."""
    given = {"size": 0, "share": 0.5}
    read, _ = read_all(OPTIONS, given)
    values = OptionValues(OPTIONS, read, given)

    def broken(of: OptionValues) -> Any:  # noqa: ANN401
        yield of.problem("on", "with size ", Quoted(of.size))

    def whole(of: OptionValues) -> Any:  # noqa: ANN401
        yield of.problem("share", "is ", of.quoted("share"))

    assert [shown(one, "toml") for one in found_by([broken, whole], values)] == ["a.share: is 0.5"]


def test_each_setting_is_an_option() -> None:
    """A setting has a key and a sentence; only two that exclude each other share a key."""
    options = setting_options()
    assert [*options] == [*Settings.__struct_fields__]
    assert all(one.key and one.sentence.endswith(".") for one in options.values())
    keys = [one.key for one in options.values()]
    assert {one for one in keys if keys.count(one) > 1} == {"monitoring.average_run_length"}


def test_the_docstring_says_what_is_declared() -> None:
    """The documentation of the settings is made of the sentences of their options."""
    words = " ".join((Settings.__doc__ or "").split())
    for name, one in setting_options().items():
        assert f" {name} {one.sentence.split('`')[0].strip()}" in words

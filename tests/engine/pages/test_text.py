"""Documents as text, `abers.pages.text`; the files in `expected` are what a reader sees.

After a change that is meant, run `python -m tests.engine.pages.test_text --write`, and read them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest
from tests.engine.pages.examples import EXAMPLES

from abers.pages.blocks import (
    AnswerBlock,
    AnswersBlock,
    Column,
    Detail,
    Document,
    FigureBlock,
    FoldBlock,
    Mark,
    Picture,
    SectionBlock,
    Span,
    State,
    TableBlock,
    TableRow,
    TextBlock,
    TilesBlock,
    Trace,
    Traces,
)
from abers.pages.text import text, width_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.pages.blocks import Block

EXPECTED = Path(__file__).with_name("expected")
DETAILS: tuple[Detail, ...] = get_args(Detail)
CASES: list[tuple[str, Detail]] = [
    *((name, "usual") for name in EXAMPLES),
    ("two_classes", "answers"),
    ("two_classes", "more"),
]
ESCAPES = re.compile(r"\x1b\[[\d;]*m")


def written(*blocks: Block, width: int = 80, colour: bool = False, unicode: bool = True) -> str:
    """Return blocks as text."""
    return text(Document(title="it", blocks=blocks), width, colour=colour, unicode=unicode)


def card(group: str = "", said: str = "", word: str = "") -> AnswersBlock:
    """Return one answer."""
    answer = AnswerBlock(
        key="model",
        name="Model",
        question="?",
        state="no",
        sentence="promised 36 %, came 24 %",
        number="12",
        unit="points too high",
        group=group,
        word=word,
        range=said,
        remark=said,
    )
    return AnswersBlock(key="answers", cards=(answer,))


@pytest.mark.parametrize(("name", "detail"), CASES)
def test_the_examples_at_80_columns(name: str, detail: Detail) -> None:
    """Each example is what its file has, at each detail that differs."""
    expected = (EXPECTED / f"{name}_{detail}.txt").read_text("utf-8")
    assert text(EXAMPLES[name](), 80, detail=detail) == expected


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 250])
@pytest.mark.parametrize("unicode", [True, False])
def test_lines_end_at_the_width(name: str, width: int, *, unicode: bool) -> None:
    """No line is wider than the terminal or than 100 columns, but for a word that is longer."""
    for detail in DETAILS:
        for line in text(EXAMPLES[name](), width, unicode=unicode, detail=detail).splitlines():
            assert width_of(line) <= min(width, 100) or " " not in line.strip(), line
            assert line == line.rstrip()


@pytest.mark.parametrize("name", EXAMPLES)
def test_colours_change_no_word(name: str) -> None:
    """Text with colours is the text without, between escape sequences that all end."""
    for detail in DETAILS:
        coloured = text(EXAMPLES[name](), 80, colour=True, detail=detail)
        assert ESCAPES.sub("", coloured) == text(EXAMPLES[name](), 80, detail=detail)
        for line in coloured.splitlines():
            found = ESCAPES.findall(line)
            assert found[1::2] == ["\x1b[0m"] * (len(found) // 2)
            assert len(found) % 2 == 0


def test_more_detail_leaves_nothing_out() -> None:
    """Each detail has the words of the one before."""
    words = [{*text(EXAMPLES["two_classes"](), 80, detail=one).split()} for one in DETAILS]
    assert words[0] < words[1] < words[2]


@pytest.mark.parametrize("state", get_args(State))
def test_a_state_has_a_sign_and_a_word(state: State) -> None:
    """Signs are those of the terminal, or of ASCII; the colour is that of the state."""
    signs = {"yes": ("✓", "+"), "no": ("✗", "x"), "partly": ("!", "!"), "recovering": ("!", "!")}
    colours = {"yes": "1;32", "no": "1;31", "partly": "1;33", "recovering": "1;33"}
    best, plain = signs.get(state, ("·", "?"))
    block = AnswersBlock(
        key="answers",
        cards=(AnswerBlock(key="m", name="Model", question="?", state=state, sentence="so"),),
    )
    assert written(block) == f"{best} Model  {state.upper()}  so\n"
    assert written(block, unicode=False) == f"{plain} Model  {state.upper()}  so\n"
    coloured = written(block, colour=True)
    assert f"\x1b[{colours.get(state, '90')}m{state.upper()}\x1b[0m" in coloured


def test_ascii_says_the_same() -> None:
    """Without more than ASCII, minus signs, powers and names are still readable."""
    block = TextBlock(key="a", words="gap −14 … “Müller” ≥ 10³⁰ to 1, 6 – 25 Jan, 5\u00a0°C")
    assert written(block, unicode=False) == (
        '  gap -14 ... "M\\xfcller" >= 10^30 to 1, 6 - 25 Jan, 5 deg C\n'
    )


@pytest.mark.parametrize("unicode", [True, False])
def test_names_move_no_cursor(*, unicode: bool) -> None:
    """Control characters and line ends in any words are written out."""
    bad = "a\x1b[2Jb\nc\u202e"
    blocks: Sequence[Block] = (
        card(bad, bad, bad.upper()),
        TextBlock(key="t", words=(bad, Span(bad, "code"))),
        TableBlock(
            key="g",
            caption=bad,
            title=bad,
            note=bad,
            columns=(Column(head=bad, unit=bad), Column(head=bad)),
            rows=(TableRow((bad, Mark("no", bad, bad))),),
        ),
    )
    found = written(*blocks, unicode=unicode)
    assert all(one.isprintable() or one == "\n" for one in found)
    assert len(re.findall(re.escape(r"a\x1b[2Jb\nc\u202e"), found)) >= 10


def test_a_number_keeps_its_unit() -> None:
    """No line ends between a number and its unit, or at any space that must not break."""
    block = card(said="range 6 to 18")
    for width in range(50, 80):
        lines = written(block, width=width).splitlines()
        assert any("12 points" in line for line in lines)
    words = TextBlock(key="a", words="so 4.5\u00a0% it is")
    assert written(words, width=9) == "  so\n  4.5 %\n  it is\n"


def test_a_command_is_never_broken() -> None:
    """Code has a line to itself, longer than the terminal if it must."""
    command = "abers replay scores.csv --output predictions.parquet"
    block = TextBlock(key="a", words=("Next: ", Span(command, "code")))
    assert written(block, width=30) == f"  Next:\n  {command}\n"


def test_a_narrow_terminal_has_sentences_below_their_states() -> None:
    """With less than 30 columns next to the state, what an answer says stands below it."""
    assert written(card(), width=34) == (
        "✗ Model  NO\n  promised 36 %, came 24 %:\n  12 points too high\n"
    )


def test_blocks_without_content() -> None:
    """Blocks without answers, tiles, rows or values have no lines, and are no mistake."""
    none = (
        AnswersBlock(key="a", cards=()),
        TilesBlock(key="b", tiles=()),
        SectionBlock(key="c", title="empty"),
        FoldBlock(key="d", title="empty"),
        FigureBlock(key="e", pictures=(), traces=Traces(title="", low="", high="", traces=())),
    )
    assert written(*none) == ""
    assert text(Document(title="it", blocks=none), 80, detail="more") == ""
    assert written(table()) == "  name   cases   meaning\n"


def table(*rows: tuple[str, str, str]) -> TableBlock:
    """Return a table of names, numbers and words."""
    return TableBlock(
        key="t",
        caption="",
        columns=(
            Column(head="name", align="left"),
            Column(head="cases", room="some"),
            Column(head="meaning", align="left"),
        ),
        rows=tuple(TableRow(row) for row in rows),
    )


def test_columns_of_a_table() -> None:
    """Words stand on the left and numbers on the right; long words break, or columns go."""
    block = table(("a", "1,000", "one word and another"), ("b", "2", "so"))
    assert written(block) == (
        "  name   cases   meaning\n  a      1,000   one word and another\n  b          2   so\n"
    )
    assert written(block, width=34) == (
        "  name  cases  meaning\n"
        "  a     1,000  one word and\n"
        "               another\n"
        "  b         2  so\n"
    )
    assert written(block, width=26) == (
        "  name  meaning\n  a     one word and\n        another\n  b     so\n"
    )
    assert written(block, width=20) == (
        "  a\n    meaning one word\n    and another\n  b\n    meaning so\n"
    )


def lines_over_time(*values: float | None) -> FigureBlock:
    """Return a figure with a line for text."""
    traces = Traces(title="over time", low="0 %", high="7 %", traces=(Trace("came", values),))
    return FigureBlock(key="f", pictures=(Picture("over_time", {}, "label"),), traces=traces)


def test_a_line_over_time() -> None:
    """The least value has the lowest character, the largest the highest; a gap is a space."""
    block = lines_over_time(0, 1, None, 6, 7)
    assert written(block).splitlines()[1] == f"{'  came':24}▁▂ ▇█"
    assert "from 0 % (▁) to 7 % (█)" in written(block)
    assert written(block, unicode=False) == ""
    assert written(lines_over_time(None)) == ""


def test_a_long_line_over_time_fits() -> None:
    """Where there are more values than columns, neighbours become their mean."""
    drawn = written(lines_over_time(*([0.0, 2.0] * 20 + [7.0, 7.0])), width=45).splitlines()[-1]
    assert drawn == f"{'  came':24}{'▂' * 20}█"


def write() -> None:
    """Write the expected files."""
    EXPECTED.mkdir(exist_ok=True)
    for name, detail in CASES:
        path = EXPECTED / f"{name}_{detail}.txt"
        path.write_text(text(EXAMPLES[name](), 80, detail=detail), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    write()

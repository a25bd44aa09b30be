"""Documents as HTML, `abers.pages.html`."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.engine.pages.example_parts import NUMBERS, gap, over_time
from tests.engine.pages.examples import EXAMPLES

from abers.pages.blocks import (
    AlarmBlock,
    AnswerBlock,
    AnswersBlock,
    BlockGroup,
    ChoiceBlock,
    Column,
    Document,
    FigureBlock,
    FoldBlock,
    LegendEntry,
    Mark,
    Picture,
    SectionBlock,
    Span,
    TableBlock,
    TableRow,
    TextBlock,
    TilesBlock,
    TileValue,
    walk,
)
from abers.pages.html import fragment, notebook, page

if TYPE_CHECKING:
    from abers.pages.blocks import Words

BAD = '<script>alert("x")</script>\'&amp;'
VOID = {"meta", "br", "input"}


class Parsed(HTMLParser):
    """Elements of a page with their attributes; it fails at an end that closes nothing."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the element that was opened last."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note words."""
        if self._open and self._open[-1] != "style":
            self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        """Return the attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]


def hostile() -> Document:
    """Return a document of every block, with a script in every field that has words."""
    words: Words = (BAD, *(Span(BAD, tone) for tone in ("strong", "soft", "raw", "code")))
    key = "<b>'\"&"
    drawn = gap("gap −2 points, range −9 to +4; tolerance −3.8 to +4.3", "raw")
    picture = Picture("gap", drawn.data, BAD, caption=words)
    titled = Picture("over_time", over_time(NUMBERS["UPPER"]), BAD, words, words)
    table = TableBlock(
        key=f"{key}-table",
        columns=(Column(head=BAD, unit=BAD), Column(head=BAD), Column(head=BAD)),
        rows=(TableRow((words, Mark("no", BAD, BAD), picture)),),
        caption=BAD,
        title=words,
        note=words,
    )
    answer = AnswerBlock(
        key=f"{key}-answer",
        name=BAD,
        question=BAD,
        state="no",
        word=BAD,
        group=BAD,
        sentence=BAD,
        remark=BAD,
        number=BAD,
        unit=BAD,
        range=BAD,
        spark=picture,
        then=BAD,
    )
    figure = FigureBlock(
        key=f"{key}-figure", pictures=(titled,), legend=(LegendEntry("raw", words),)
    )
    section = SectionBlock(key=f"{key}-section", title=words, why=words, blocks=(figure,))
    group = BlockGroup(name=BAD, blocks=(TextBlock(key=f"{key}-text", words=words),))
    return Document(
        title=BAD,
        lead=words,
        facts=(words,),
        foot=words,
        blocks=(
            AnswersBlock(key=f"{key}-answers", cards=(answer,), note=words, progress=(1, 2)),
            AlarmBlock(key=f"{key}-alarm", head=BAD, words=words, small=words),
            TilesBlock(key=f"{key}-tiles", tiles=(TileValue(BAD, BAD),)),
            ChoiceBlock(
                key=f"{key}-choice",
                words=BAD,
                options=(group, BlockGroup(name=BAD, blocks=(section,))),
            ),
            FoldBlock(key=f"{key}-fold", title=words, summary=words, blocks=(table,)),
        ),
    )


DOCUMENTS = {**EXAMPLES, "hostile": hostile}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_page_is_whole_and_asks_nobody(name: str) -> None:
    """Every element ends, ids are unique, and nothing is a script or comes from elsewhere."""
    document = DOCUMENTS[name]()
    source = page(document)
    found = Parsed(source)
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len({*ids})
    assert {one.key for one in walk(document.blocks) if one.place != "text"} <= {*ids}
    for tag, attributes in found.elements:
        assert tag not in {"script", "link", "iframe", "object", "embed", "img", "base"}
        assert not {one for one in attributes if one.startswith("on")} | {"style", "src"} & {
            *attributes
        }
        assert attributes.get("href", "#").startswith("#")
        for one in attributes.get("aria-labelledby", "").split():
            assert one in ids
    assert not re.search(r"https?:|url\(|@import", source)
    assert len(source.encode()) < 1_000_000


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_reader_without_eyes_has_it_all(name: str) -> None:
    """Headings go down by single steps; tables have captions and scopes, pictures a label."""
    found = Parsed(page(DOCUMENTS[name]()))
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(found.all("caption")) == len(found.all("table"))
    assert {one.get("scope") for one in found.all("th")} <= {"col", "row"}
    for one in found.all("svg"):
        assert one.get("aria-hidden") == "true" or (one["role"] == "img" and one["aria-label"])


def test_words_are_never_markup() -> None:
    """A script in any field is shown as words, wherever a page or a notebook has the field."""
    document = hostile()
    fields = json.dumps(msgspec.to_builtins(document)).count(json.dumps(BAD)[1:-1])
    fields -= 3 + 1  # the labels of pictures, and the name of an answer, which only text has
    for source, shown in (
        (page(document), fields + 1),  # the title stands twice
        (notebook(document), fields - len(document.foot)),
    ):
        found = Parsed(source)
        assert "<script" not in source
        assert "".join(found.words).count(BAD) == shown
        assert sum(BAD in one.get("aria-label", "") for _, one in found.elements) == 4


def test_a_name_cannot_hide_or_turn_text() -> None:
    """Controls and reversals of text in a name are shown as in a terminal; joiners stay."""
    joined = "\N{ZERO WIDTH NON-JOINER}"
    document = Document(title=f"a\x1b[31m\u202eb\n{joined}", blocks=())
    source = page(document)
    assert f"<h1>a\\x1b[31m\\u202eb\\n{joined}</h1>" in source
    assert not {"\x1b", "\u202e"} & {*source}


def test_the_policy_knows_the_style() -> None:
    """The policy of a page allows its own style alone, by the hash of it."""
    source = page(EXAMPLES["waiting"]())
    style = source.partition("<style>")[2].partition("</style>")[0]
    hashed = b64encode(sha256(style.encode()).digest()).decode()
    policy = next(one["content"] for one in Parsed(source).all("meta") if "http-equiv" in one)
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashed}'; base-uri 'none'; form-action 'none'"
    )


def test_an_active_alarm_is_in_the_title() -> None:
    """The title warns while an alarm is active; a warning or good news changes nothing."""
    titles = {
        name: re.findall("<title>(.*)</title>", page(EXAMPLES[name]()))[0]
        for name in ("wrong", "recovering", "silent", "two_classes")
    }
    assert titles == {
        "wrong": "(!) flights · abers",
        "recovering": "flights · abers",
        "silent": "flights · abers",
        "two_classes": "flights.csv · abers",
    }
    assert 'role="alert"' in page(EXAMPLES["wrong"]())
    assert 'role="status"' in page(EXAMPLES["silent"]())


def test_a_block_alone_is_the_same_as_in_its_page() -> None:
    """A live page replaces the element of a key by the fragment of its block."""
    document = EXAMPLES["two_classes"]()
    whole = page(document)
    for block in document.blocks:
        assert (fragment(block) in whole) == (block.place != "text")
    section = document.blocks[1]
    inner = section.inner()[0]
    assert fragment(inner, level=3) in fragment(section)


def test_an_answer_is_a_sentence() -> None:
    """Sentences begin with a capital and end with a period; a group is quoted as it is."""
    card = AnswerBlock(
        key="model",
        name="Model",
        question="?",
        state="no",
        sentence="promised 36 %, came 24 %",
        remark="right on average",
    )
    assert '<p class="say">Promised 36 %, came 24 %. Right on average.</p>' in fragment(card)
    grouped = AnswerBlock(
        key="model", name="Model", question="?", state="no", group="spruce", sentence="right 87 %."
    )
    assert '<p class="say">spruce: right 87 %.</p>' in fragment(grouped)
    assert '<p class="say"></p>' not in fragment(grouped)


def test_text_blocks_are_not_on_a_page() -> None:
    """Blocks for text alone, at any depth, are left out."""
    said = TextBlock(key="said", words="only text", place="text")
    section = SectionBlock(key="more", title="More", blocks=(said,))
    document = Document(title="it", blocks=(said.__class__(key="b", words="b"), section))
    assert "only text" not in page(document)

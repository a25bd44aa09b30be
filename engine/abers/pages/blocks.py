"""Blocks that make up every finding: a page, a text and a record are renderings of the same.

A block has finished strings for people and, in its record, the same numbers in full precision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping  # noqa: TC003 - msgspec reads it
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "AlarmBlock",
    "AnswerBlock",
    "AnswersBlock",
    "BaseBlock",
    "Block",
    "BlockGroup",
    "Cell",
    "ChoiceBlock",
    "Column",
    "Detail",
    "Document",
    "FigureBlock",
    "FoldBlock",
    "LegendEntry",
    "Mark",
    "Picture",
    "SectionBlock",
    "Span",
    "State",
    "TableBlock",
    "TableRow",
    "TextBlock",
    "TileValue",
    "TilesBlock",
    "Tone",
    "Trace",
    "Traces",
    "Words",
    "plain",
    "record",
    "walk",
]

State: TypeAlias = Literal["yes", "no", "partly", "undecided", "waiting", "recovering"]
Tone: TypeAlias = Literal["strong", "soft", "raw", "calibrated", "code"]
Detail: TypeAlias = Literal["answers", "usual", "more"]


class Span(msgspec.Struct, frozen=True, tag="span"):
    """Words in a tone. A terminal never breaks those of code."""

    words: str
    tone: Tone


Words: TypeAlias = str | tuple[str | Span, ...]


class Mark(msgspec.Struct, frozen=True, tag="mark"):
    """A state in a table: its sign, and its word, which a narrow page drops unless it is kept."""

    state: State
    word: str
    note: str = ""
    keep: bool = False


class Picture(msgspec.Struct, frozen=True, tag="picture"):
    """A drawing of `abers.pages.figures`, with the label that a screen reader says."""

    kind: str
    data: Mapping[str, Any]
    label: str
    title: Words = ""
    caption: Words = ""


Cell: TypeAlias = str | tuple[str | Span, ...] | Mark | Picture


class BaseBlock(msgspec.Struct, frozen=True, kw_only=True, tag_field="block"):
    """What all blocks have.

    Attributes
    ----------
    key
        Name, unique in its document and stable, without spaces and colons. A live page replaces a
        block by its key.
    record
        Numbers of the block in full precision, for the JSON of the document.
    detail
        Least detail of a text that has the block. A page has every block.
    place
        Where the block is shown: everywhere, on pages only, or in text only.
    """

    key: str
    record: Mapping[str, Any] = {}
    detail: Detail = "usual"
    place: Literal["all", "page", "text"] = "all"

    def inner(self) -> tuple[Block, ...]:
        """Return the blocks inside this one."""
        return ()


class SectionBlock(BaseBlock, frozen=True, kw_only=True, tag="section"):
    """Blocks under a heading; a text says why in its own words, if it has some."""

    title: Words
    why: Words = ""
    why_text: Words = ""
    blocks: tuple[Block, ...] = ()

    def inner(self) -> tuple[Block, ...]:
        """Return the blocks of the section."""
        return self.blocks


class FoldBlock(BaseBlock, frozen=True, kw_only=True, tag="fold"):
    """Blocks that a page hides until the reader opens their title."""

    title: Words
    summary: Words = ""
    blocks: tuple[Block, ...] = ()
    detail: Detail = "more"

    def inner(self) -> tuple[Block, ...]:
        """Return the blocks of the fold."""
        return self.blocks


class BlockGroup(msgspec.Struct, frozen=True, kw_only=True, tag="option"):
    """Blocks that a choice shows under a name."""

    name: str
    blocks: tuple[Block, ...]


class ChoiceBlock(BaseBlock, frozen=True, kw_only=True, tag="choice"):
    """Groups of blocks, two to six. A page shows one, at first the first, as a text does."""

    words: str
    options: tuple[BlockGroup, ...]

    def __post_init__(self) -> None:
        """Refuse a number of groups that no page can switch between."""
        if len(self.options) not in OPTIONS:
            message = (
                f"the choice {self.key!r} has {len(self.options)} options; "
                f"give it {OPTIONS[0]} to {OPTIONS[-1]}, or use a table with folds"
            )
            raise ValueError(message)

    def inner(self) -> tuple[Block, ...]:
        """Return the blocks of all groups."""
        return tuple(block for option in self.options for block in option.blocks)


class TextBlock(BaseBlock, frozen=True, kw_only=True, tag="text"):
    """A paragraph; a note stands out on a page."""

    words: Words
    note: bool = False


class TileValue(msgspec.Struct, frozen=True):
    """A number or a few words, and what they are."""

    value: str
    label: str


class TilesBlock(BaseBlock, frozen=True, kw_only=True, tag="tiles"):
    """A strip of numbers."""

    tiles: tuple[TileValue, ...]


class AnswerBlock(BaseBlock, frozen=True, kw_only=True, tag="answer"):
    """The answer to a question.

    Attributes
    ----------
    name
        One word for the question, in a text.
    word
        Word of the state, if it is not the state's own.
    group
        Rows that the sentence is about, quoted before it.
    sentence, remark
        What holds, and what else. A page begins them with a capital and ends them with a period.
    number, unit, range
        The one number, and how sure it is.
    then
        Earlier or wider findings, on a page.
    """

    name: str
    question: str
    state: State
    word: str = ""
    group: str = ""
    sentence: str
    remark: str = ""
    number: str = ""
    unit: str = ""
    range: str = ""
    spark: Picture | None = None
    then: str = ""
    detail: Detail = "answers"


class AnswersBlock(BaseBlock, frozen=True, kw_only=True, tag="answers"):
    """The three answers, the rows that they are about, and how many labels of those needed came."""

    cards: tuple[AnswerBlock, ...]
    note: Words = ""
    progress: tuple[int, int] | None = None
    detail: Detail = "answers"

    def inner(self) -> tuple[Block, ...]:
        """Return the answers."""
        return self.cards


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a table.

    Attributes
    ----------
    head, unit
        Name, and the unit that a narrow page drops.
    align
        Side of its cells; a centred column has pictures.
    room
        How much room a page or a text must have to show the column.
    """

    head: str
    unit: str = ""
    align: Literal["left", "right", "centre"] = "right"
    room: Literal["any", "some", "much"] = "any"


class TableRow(msgspec.Struct, frozen=True):
    """A row, which begins with its name; main rows are bold, and a line separates groups."""

    cells: tuple[Cell, ...]
    main: bool = False
    separated: bool = False


class TableBlock(BaseBlock, frozen=True, kw_only=True, tag="table"):
    """A table; its caption is for those who do not see what stands around it."""

    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    caption: str
    title: Words = ""
    note: Words = ""

    def __post_init__(self) -> None:
        """Refuse rows that do not fit the columns."""
        for number, row in enumerate(self.rows):
            if len(row.cells) != len(self.columns):
                message = (
                    f"row {number} of the table {self.key!r} has {len(row.cells)} cells; "
                    f"give it {len(self.columns)}, one for each column"
                )
                raise ValueError(message)


class LegendEntry(msgspec.Struct, frozen=True):
    """What a line or a sign of a figure means."""

    sample: Literal["came", "raw", "calibrated", "alarm", "open"]
    words: Words


class Trace(msgspec.Struct, frozen=True):
    """A line over time that a text draws in blocks; `None` is a gap."""

    name: str
    values: tuple[float | None, ...]
    tone: Tone | None = None


class Traces(msgspec.Struct, frozen=True, kw_only=True):
    """What a text draws of a figure; low and high are the least and the largest value, written."""

    title: str
    low: str
    high: str
    traces: tuple[Trace, ...]


class FigureBlock(BaseBlock, frozen=True, kw_only=True, tag="figure"):
    """Pictures next to each other under one legend."""

    pictures: tuple[Picture, ...]
    legend: tuple[LegendEntry, ...] = ()
    traces: Traces | None = None


class AlarmBlock(BaseBlock, frozen=True, kw_only=True, tag="alarm"):
    """A message that comes first: no is an alarm, partly a warning, yes is good news.

    While it is active, the title of its page warns of it, and a screen reader says it at once.
    """

    head: str
    words: Words
    small: Words = ""
    state: Literal["no", "partly", "yes"] = "no"
    active: bool = False


Block: TypeAlias = (
    SectionBlock
    | FoldBlock
    | ChoiceBlock
    | TextBlock
    | TilesBlock
    | AnswerBlock
    | AnswersBlock
    | TableBlock
    | FigureBlock
    | AlarmBlock
)

OPTIONS = range(2, 7)  # the style sheet has a rule for each


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is said about a model, a stream or a run.

    Attributes
    ----------
    title, lead
        Name of what it is about, and the finding in a sentence or two.
    facts
        What the numbers are of: rows, dates, the zone of times.
    foot
        What made the page.
    """

    title: str
    lead: Words = ""
    facts: tuple[Words, ...] = ()
    blocks: tuple[Block, ...]
    foot: Words = ""

    def __post_init__(self) -> None:
        """Refuse keys that do not name exactly one block."""
        for key, count in Counter(block.key for block in walk(self.blocks)).items():
            if count > 1:
                message = f"{count} blocks have the key {key!r}; give each its own"
                raise ValueError(message)
            if not key or ":" in key or key.split() != [key]:
                message = f"the key {key!r} must be a name without spaces and colons"
                raise ValueError(message)


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield all blocks in their order, each before those inside it."""
    for block in blocks:
        yield block
        yield from walk(block.inner())


def record(document: Document) -> dict[str, Mapping[str, Any]]:
    """Return the numbers of a document in full precision, by the keys of its blocks."""
    return {block.key: block.record for block in walk(document.blocks) if block.record}


def plain(words: Words) -> str:
    """Return words without their tones."""
    if isinstance(words, str):
        return words
    return "".join(one if isinstance(one, str) else one.words for one in words)

"""Documents of blocks, `abers.pages.blocks`."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import msgspec
import pytest
from tests.engine.pages.examples import EXAMPLES

from abers import pages
from abers.pages.blocks import (
    BlockGroup,
    ChoiceBlock,
    Column,
    Document,
    FoldBlock,
    SectionBlock,
    TableBlock,
    TableRow,
    TextBlock,
    record,
    walk,
)


def said(key: str, **numbers: float) -> TextBlock:
    """Return a sentence with numbers."""
    return TextBlock(key=key, words="so it is", record=numbers)


def test_a_record_has_the_numbers_of_all_blocks() -> None:
    """Numbers stand under the keys of their blocks, those inside others too, in their order."""
    inner = BlockGroup(name="now", blocks=(said("d", gap=-0.1),))
    other = BlockGroup(name="all", blocks=(said("e", gap=0.2),))
    document = Document(
        title="it",
        blocks=(
            said("a", labels=3),
            SectionBlock(key="b", title="more", blocks=(said("c", share=0.1 + 0.2),)),
            ChoiceBlock(key="f", words="of", options=(inner, other)),
            FoldBlock(key="g", title="and", blocks=(said("h"),)),
        ),
    )
    found = record(document)
    assert found == {
        "a": {"labels": 3},
        "c": {"share": 0.30000000000000004},
        "d": {"gap": -0.1},
        "e": {"gap": 0.2},
    }
    assert [*found] == ["a", "c", "d", "e"]
    assert [block.key for block in walk(document.blocks)] == [
        "a",
        "b",
        "c",
        "f",
        "d",
        "e",
        "g",
        "h",
    ]


def test_two_blocks_never_share_a_key() -> None:
    """A document refuses a key that names two blocks, however deep they are."""
    inner = SectionBlock(key="b", title="more", blocks=(said("a"),))
    with pytest.raises(ValueError, match="2 blocks have the key 'a'; give each its own"):
        Document(title="it", blocks=(said("a"), inner))


@pytest.mark.parametrize("key", ["", "a b", "a:title", "a\n"])
def test_a_key_is_a_name(key: str) -> None:
    """A key must do as the id of an element, from which other ids are made with a colon."""
    with pytest.raises(ValueError, match="must be a name without spaces and colons"):
        Document(title="it", blocks=(said(key),))


@pytest.mark.parametrize("count", [1, 7])
def test_a_choice_has_two_to_six_groups(count: int) -> None:
    """A choice refuses what its page cannot switch between."""
    options = tuple(BlockGroup(name=str(n), blocks=(said(f"b{n}"),)) for n in range(count))
    with pytest.raises(ValueError, match=f"'period' has {count} options; give it 2 to 6"):
        ChoiceBlock(key="period", words="of", options=options)


def test_a_row_fits_its_table() -> None:
    """A table refuses a row with more or fewer cells than columns, and says which."""
    columns = (Column(head="a"), Column(head="b"))
    rows = (TableRow(("1", "2")), TableRow(("1",)))
    with pytest.raises(ValueError, match="row 1 of the table 'groups' has 1 cells; give it 2"):
        TableBlock(key="groups", caption="", columns=columns, rows=rows)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_document_goes_through_json(name: str) -> None:
    """A document that is encoded and decoded is the same, so another process may render it."""
    document = EXAMPLES[name]()
    encoded = msgspec.json.encode(document)
    assert msgspec.json.encode(msgspec.json.decode(encoded, type=Document)) == encoded


def test_pages_need_little() -> None:
    """Rendering needs msgspec, the standard library, and nothing else of abers but one module."""
    folder = Path(str(pages.__file__)).parent
    found, read = {"abers.pages.html", "abers.pages.text"}, set[str]()
    while more := {one for one in found if one.startswith("abers.pages.")} - read:
        name = more.pop()
        read.add(name)
        path = folder.joinpath(*name.split(".")[2:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {one.name for one in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module or "")
    others = {one for one in found if one.partition(".")[0] not in sys.stdlib_module_names}
    own = {one for one in others if one.startswith("abers.pages.")}
    assert others - own - {"abers.pages"} == {"msgspec"}

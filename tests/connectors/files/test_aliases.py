"""Two names of one file, and links that nobody named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from abers import ParameterError
from abers_connectors.files.aliases import Use, clashes, is_same, require_apart

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def dangling(link: Path, file: Path) -> None:
    """Link to a file that is not there any more."""
    link.symlink_to(file)
    file.unlink()


def through_a_folder(link: Path, file: Path) -> None:
    """Name the same file by another way to its folder."""
    link.parent.joinpath("way").symlink_to(file.parent)
    link.symlink_to(link.parent / "way" / file.name)


LINKS = [
    lambda link, file: link.symlink_to(file),
    lambda link, file: os.link(file, link),
    dangling,
    through_a_folder,
]


@pytest.mark.parametrize("make", LINKS)
def test_another_name_of_a_file_is_that_file(
    tmp_path: Path, make: Callable[[Path, Path], None]
) -> None:
    """Whatever link leads to a file, what is read is not written."""
    file, link = tmp_path / "scores.jsonl", tmp_path / "out.jsonl"
    file.write_text("kept")
    make(link, file)
    uses = [Use("input.observations", str(file), reads=True), Use("--output", str(link))]
    assert list(clashes(uses)) == [
        ("--output", f'"{link}" is input.observations already; name another file')
    ]
    assert is_same(str(file), str(link))
    assert not is_same(str(file), str(tmp_path / "other.jsonl"))


def test_a_file_that_is_not_there_is_known_by_its_folder(tmp_path: Path) -> None:
    """Two spellings of one new file are one, and its name in another folder is another."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to("a")
    assert is_same(str(tmp_path / "a" / "x"), str(tmp_path / "b" / ".." / "a" / "x"))
    assert is_same(str(tmp_path / "a" / "x"), str(tmp_path / "b" / "x"))
    assert not is_same(str(tmp_path / "a" / "x"), str(tmp_path / "x"))
    assert is_same(str(tmp_path / "none" / "x"), str(tmp_path / "none" / "x"))


def test_devices_take_everything_and_a_pipe_one_thing(tmp_path: Path) -> None:
    """Several outputs may go to /dev/null; of a pipe, what two outputs write would be mixed."""
    require_apart([Use("a", "/dev/null"), Use("b", "/dev/null"), Use("c", "/dev/zero", reads=True)])
    os.mkfifo(tmp_path / "pipe")
    require_apart([Use("a", str(tmp_path / "pipe")), Use("b", str(tmp_path / "file"))])
    with pytest.raises(ParameterError, match=r"b: .* is a already; name another file"):
        require_apart([Use("a", str(tmp_path / "pipe")), Use("b", str(tmp_path / "pipe"))])


def test_a_link_in_the_place_of_a_derived_name(tmp_path: Path) -> None:
    """It is refused wherever it leads; a name that was given may be a link."""
    link = tmp_path / "out.jsonl.dead.jsonl"
    link.symlink_to(tmp_path / "nothing")
    require_apart([Use("output.dead_letters", str(link))])
    with pytest.raises(ParameterError, match=r"dead\.jsonl\" is a link that nobody named; remove"):
        require_apart([Use("output.dead_letters", str(link), derived=True)])


def test_an_input_among_the_parts_of_an_output(tmp_path: Path) -> None:
    """Parts that no state knows are removed, so an input must not lie among them."""
    folder = tmp_path / "out.parquet"
    folder.mkdir()
    part = Use("input.observations", str(folder / "part-00000000.parquet"), reads=True)
    assert list(clashes([part, Use("output.predictions", str(folder))])) == [
        (part.name, f'"{part.path}" lies in output.predictions as if it were a part of it; move it')
    ]
    other = Use("input.observations", str(folder / "scores.parquet"), reads=True)
    assert list(clashes([other, Use("output.predictions", str(folder))])) == []

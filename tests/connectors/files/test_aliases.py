"""Two names of one file, and links instead of derived names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from abers import ParameterError
from abers_connectors.files import FileUse, clashes, is_same, require_apart

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def dangling(link: Path, file: Path) -> None:
    """Link to a file that is removed."""
    link.symlink_to(file)
    file.unlink()


def through_a_folder(link: Path, file: Path) -> None:
    """Link to the same file through another path of its folder."""
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
    """A file that is read is not written, whatever link leads to it."""
    file, link = tmp_path / "scores.jsonl", tmp_path / "out.jsonl"
    file.write_text("kept")
    make(link, file)
    uses = [FileUse("input.observations", str(file), reads=True), FileUse("--output", str(link))]
    assert [*map(str, clashes(uses))] == [
        f'--output: "{link}" is input.observations already; name another file'
    ]
    assert is_same(str(file), str(link))
    assert not is_same(str(file), str(tmp_path / "other.jsonl"))


def test_a_missing_file_is_identified_by_its_folder(tmp_path: Path) -> None:
    """Two spellings of a new file are the same file; its name in another folder is another."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to("a")
    assert is_same(str(tmp_path / "a" / "x"), str(tmp_path / "b" / ".." / "a" / "x"))
    assert is_same(str(tmp_path / "a" / "x"), str(tmp_path / "b" / "x"))
    assert not is_same(str(tmp_path / "a" / "x"), str(tmp_path / "x"))
    assert is_same(str(tmp_path / "none" / "x"), str(tmp_path / "none" / "x"))


def test_devices_and_pipes(tmp_path: Path) -> None:
    """Several outputs may share /dev/null; in a pipe they would be mixed."""
    require_apart(
        [
            FileUse("a", "/dev/null"),
            FileUse("b", "/dev/null"),
            FileUse("c", "/dev/zero", reads=True),
        ]
    )
    os.mkfifo(tmp_path / "pipe")
    require_apart([FileUse("a", str(tmp_path / "pipe")), FileUse("b", str(tmp_path / "file"))])
    with pytest.raises(ParameterError, match=r"b: .* is a already; name another file"):
        require_apart([FileUse("a", str(tmp_path / "pipe")), FileUse("b", str(tmp_path / "pipe"))])


def test_a_link_as_a_derived_name(tmp_path: Path) -> None:
    """A link as a derived name is an error, whatever its target; a given name may be a link."""
    link = tmp_path / "out.jsonl.dead.jsonl"
    link.symlink_to(tmp_path / "nothing")
    require_apart([FileUse("output.dead_letters", str(link))])
    with pytest.raises(
        ParameterError, match=r"dead\.jsonl\" is a link in the place of a derived name; remove"
    ):
        require_apart([FileUse("output.dead_letters", str(link), derived=True)])


def test_an_input_among_the_parts_of_an_output(tmp_path: Path) -> None:
    """Unknown parts are removed, so an input must not be among them."""
    folder = tmp_path / "out.parquet"
    folder.mkdir()
    part = FileUse("input.observations", str(folder / "part-00000000.parquet"), reads=True)
    (found,) = clashes([part, FileUse("output.predictions", str(folder))])
    problem = f'"{part.path}" lies in output.predictions as if it were a part of it; move it'
    assert str(found) == f"input.observations: {problem}"
    other = FileUse("input.observations", str(folder / "scores.parquet"), reads=True)
    assert list(clashes([other, FileUse("output.predictions", str(folder))])) == []

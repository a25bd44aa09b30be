"""Secrets from the environment or from files, `abers_connectors.secret`."""

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING

import pytest

from abers.exceptions import ConfigError
from abers_connectors.secret import Secret, is_exposed, read_secret

if TYPE_CHECKING:
    from pathlib import Path

NAME, KEY, VALUE = "ABERS_PASSWORD", "section.password_file", "open-sesame"


def test_a_secret_is_in_the_environment_or_in_a_file(tmp_path: Path) -> None:
    """Either has the value; without both there is none."""
    file = tmp_path / "password"
    file.write_text(VALUE)
    from_environment = read_secret(NAME, KEY, None, {NAME: VALUE})
    from_file = read_secret(NAME, KEY, str(file), {})
    assert from_environment == from_file == VALUE
    assert from_environment is not None
    assert from_environment.source == "the environment variable ABERS_PASSWORD"
    assert from_file is not None
    assert from_file.source == f"the file {file} (section.password_file)"
    assert read_secret(NAME, KEY, None, {}) is None


@pytest.mark.parametrize("content", [b"open-sesame", b"open-sesame\n", b"open-sesame\r\n"])
def test_the_newline_at_the_end_does_not_count(content: bytes, tmp_path: Path) -> None:
    """Editors and `echo` write one; nothing else is removed."""
    file = tmp_path / "password"
    file.write_bytes(content)
    assert read_secret(NAME, KEY, str(file), {}) == VALUE
    file.write_text(" open sesame \n")
    assert read_secret(NAME, KEY, str(file), {}) == " open sesame "


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    """A rotated secret needs no restart where it is read again."""
    file = tmp_path / "password"
    for value in ("one", "two"):
        file.write_text(value)
        assert read_secret(NAME, KEY, str(file), {}) == value


def test_both_are_refused(tmp_path: Path) -> None:
    """It would not be clear which one counts."""
    file = tmp_path / "password"
    file.write_text(VALUE)
    with pytest.raises(ConfigError) as error:
        read_secret(NAME, KEY, str(file), {NAME: "x"})
    (problem,) = error.value.problems
    assert problem == (
        "section.password_file: the environment variable ABERS_PASSWORD is set, too; remove one "
        "of the two"
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, r"cannot be read \(No such file or directory\)"),
        (b"", "is empty; write the secret into it"),
        (b"\n", "is empty"),
        (b"open-sesame\n\n", "has several lines"),
        (b"open-sesame\nmore", "has several lines"),
        (b"open-sesame\x00", "has several lines or control characters"),
        (b"open-sesame\xff", "is not UTF-8 text"),
        (b"open-sesame" * 10_000, "has more than 65,536 bytes"),
    ],
)
def test_files_that_are_no_secret(content: bytes | None, why: str, tmp_path: Path) -> None:
    """The message has the key and the path, and never the content."""
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"^section\.password_file: {file} {why}") as error:
        read_secret(NAME, KEY, str(file), {})
    assert VALUE not in str(error.value)


def test_a_folder_is_no_secret(tmp_path: Path) -> None:
    """A path that cannot be opened is named with the reason."""
    with pytest.raises(ConfigError, match=r"cannot be read \(Is a directory\)"):
        read_secret(NAME, KEY, str(tmp_path), {})


def test_a_secret_is_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    """No way of printing it shows the value, which a library gets by `reveal`."""
    secret = copy.copy(Secret(VALUE, "nowhere"))
    logging.getLogger("abers").error("%s %r %s", secret, secret, {"password": secret})
    shown = (str(secret), repr(secret), f"{secret}", f"{secret!s}", "{}".format(secret))  # noqa: UP032
    for one in (*shown, caplog.text, str([secret]), str({"a": (secret,)})):
        assert VALUE not in one
    assert secret.encode() == VALUE.encode()
    assert type(secret.reveal()) is str
    assert secret.reveal() == VALUE


def test_who_can_read_a_file(tmp_path: Path) -> None:
    """A file is exposed if other users can read it; one that is missing is not."""
    file = tmp_path / "password"
    file.write_text(VALUE)
    file.chmod(0o644)
    assert is_exposed(str(file))
    file.chmod(0o640)
    assert not is_exposed(str(file))
    assert not is_exposed(str(tmp_path / "none"))

"""Checks of what would stop a run over files before its first record."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from abers.exceptions import ConfigError, MissingExtraError, ParameterError, RecordError
from abers.learners.river_adapters import require_river
from abers_connectors.config.rules import format_of
from abers_connectors.files.aliases import FileUse, clashes
from abers_connectors.files.formats import STANDARD, SUFFIXES, scheme_of, suffix_of
from abers_connectors.regular_files import irregular
from abers_connectors.replay.inputs import open_input
from abers_connectors.replay.state_file import StateFile, orphaned
from abers_connectors.sources.data_files import files_of_name, is_table
from abers_connectors.state_key import KEYLESS, SEALED, state_key
from abers_connectors.suggestions import no_such_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers_connectors.config.model import Config
    from abers_connectors.sources.base import Batch

__all__ = [
    "file_problems",
    "files_of",
    "first_batch",
    "inputs_of",
    "require_files",
    "state_problems",
    "unreadable",
]


def require_files(config: Config, name: str) -> None:
    """Raise a ConfigError with everything that would stop a run; `name` is that of the file."""
    found = [*file_problems(config, name), *state_problems(config, os.environ)]
    if found:
        raise ConfigError([f"{name}: {problem}" for problem in found])


def file_problems(config: Config, name: str | None = None) -> Iterator[str]:
    """Yield the problems of inputs and outputs, each with its key; `name` is that of the file."""
    output = config.output
    for key, file in inputs_of(config):
        if problem := unreadable(file) or _unfit(config, file):
            yield f"{key}: {problem}"
    outputs = {
        "output.predictions": output.predictions,
        "output.outcomes": output.outcomes,
        "output.dead_letters": output.dead_letters_path,
        "state.path": config.state.path,
    }
    for key, path in outputs.items():
        if path is not None and (
            problem := _unwritable(path, resumed=config.state.path is not None)
        ):
            yield f"{key}: {problem}"
    state = outputs.pop("state.path")
    if state is not None and not Path(state).exists() and (problem := orphaned(outputs)):
        yield f"state.path: {state}: {problem}"
    uses = [] if name is None else [FileUse("the configuration", name, reads=True)]
    yield from map(str, clashes([*uses, *files_of(config)]))


def state_problems(config: Config, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the problems of the learner and of the secret that seals a state."""
    if config.settings().learner is not None:
        try:
            require_river()
        except MissingExtraError as error:
            yield f"learner: {error}"
    try:
        key = state_key(environ, config.state.key_file)
    except ConfigError as error:
        yield str(error)
        return
    if key is not None or config.settings().learner is None:
        return
    if config.serve is not None:
        yield f"learner: {SEALED}"
    elif config.state.path is not None:
        yield f"state.path: {KEYLESS}"


def inputs_of(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the key and the name of each input."""
    given = config.input
    for key, path in (("observations", given.observations), ("labels", given.labels)):
        if path is not None:
            yield f"input.{key}", path


def files_of(config: Config) -> Iterator[FileUse]:
    """Yield the files that a run reads and writes: inputs, outputs, and those of the state."""
    output = config.output
    for key, path in inputs_of(config):
        yield FileUse(key, path, reads=True)
    yield FileUse("output.predictions", output.predictions)
    if output.outcomes is not None:
        yield FileUse("output.outcomes", output.outcomes)
    derived = output.dead_letters is None
    yield FileUse("output.dead_letters", output.dead_letters_path, derived=derived)
    if config.state.path is not None:
        yield from StateFile(config.state.path, {}).uses()


def unreadable(path: str) -> str | None:
    """Describe why a file cannot be read; None if it can, or if the name is a URL."""
    file = Path(path)
    if path == STANDARD or scheme_of(path) is not None:
        return None
    if is_table(path):
        return _empty(path)
    if SUFFIXES.get(suffix_of(path)) == "parquet" and (what := irregular(path)):
        return f"{path} {what}"
    try:
        if stat.S_ISREG(file.stat().st_mode):  # opening a pipe would wait for its writer
            file.open("rb").close()
    except FileNotFoundError:
        return f"{path}: {no_such_file(file)}"
    except OSError as error:
        return f"{path} cannot be read ({error.strerror})"
    return f"{path} is a directory; name a file in it" if file.is_dir() else None


def _empty(path: str) -> str | None:
    """Describe why a folder or a pattern names no file that can be read."""
    try:
        files_of_name(path)
    except (ParameterError, RecordError) as error:
        return str(error)
    return None


def _unwritable(path: str, *, resumed: bool) -> str | None:
    file = Path(path)
    if scheme_of(path) is not None:
        return None
    if not file.parent.is_dir():  # that of "-" is the working directory
        return f"there is no directory {file.parent}; create it first"
    if file.is_dir() and not (resumed and format_of(path) == "parquet"):  # a directory of parts
        return f"{path} is a directory; name a file in it"
    return None


def _unfit(config: Config, path: str) -> str | None:
    """Describe why a file cannot be opened, or which columns it lacks."""
    try:
        with suppress(RecordError):  # the run says that, with its place
            first_batch(config, path)
    except (MissingExtraError, ParameterError) as error:
        return str(error)
    return None


def first_batch(config: Config, path: str) -> Batch | None:
    """Return the first records of a file or folder, as a run reads them.

    What is read only once, or over a network, is only opened, and the result is None.
    """
    batches = open_input(config, path).batches()
    if not (Path(path).is_file() or is_table(path)):
        return None
    return next(batches, None)

"""A job: everything that a run needs, from a configuration.

The sources that a configuration names. A second input has labels only. Without one, the records of
the first are observations with their labels if there is a delay or a field of the label's time, and
otherwise observations and labels as they came, unless that is newest first. Labelled observations,
and each of two inputs, are in the order of time, or are sorted.

Nothing is written before the inputs, the state and its key are known to be usable.
"""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import ConfigError, MissingExtraError, ParameterError, RecordError
from abers.learners.river_adapters import require_river
from abers.stream import Processor, Settings
from abers_connectors.config.rules import format_of
from abers_connectors.config.values import Lateness
from abers_connectors.files import (
    STANDARD,
    SUFFIXES,
    FileUse,
    clashes,
    is_stream,
    require_apart,
    scheme_of,
    suffix_of,
)
from abers_connectors.regular_files import irregular, no_such_file
from abers_connectors.replay.run import BaseRun, DeadLetterLimit, Run, at_once, row_types
from abers_connectors.replay.state_file import StateFile, orphaned
from abers_connectors.secret import KEYLESS, SEALED, state_key
from abers_connectors.sinks.base import LazySink, SinkOptions, open_sink
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.delayed_labels import DelayedLabels
from abers_connectors.sources.merge import MergedSource
from abers_connectors.sources.ordered import ArrivalLog, Bounds, OrderedSource
from abers_connectors.sources.registry import is_read_once, open_source, sort_remedy
from abers_connectors.sources.table_files import files_of_name, is_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from abers.stream import Events
    from abers.stream.cells import Fields
    from abers.stream.option import Front
    from abers_connectors.config.model import Config
    from abers_connectors.replay.workers import ParallelRun
    from abers_connectors.sinks.base import Sink
    from abers_connectors.sources.base import Batch, Source
    from abers_connectors.sources.ordered import Counted

__all__ = [
    "Job",
    "file_problems",
    "files_of",
    "first_batch",
    "inputs_of",
    "job_of_config",
    "open_input",
    "open_inputs",
    "state_problems",
    "unchecked_job",
    "unreadable",
]


def open_inputs(config: Config) -> Source:
    """Return all inputs as the stream that a processor reads; they must not be topics."""
    if config.serve is not None:
        raise ConfigError(["serve: this is a server without inputs; run `abers serve` with it"])
    first, second = config.input.observations, config.input.labels
    if first is None:
        raise ConfigError(["kafka: these are topics, not files; name a file with --from"])
    growing = config.state.path is not None  # rows may follow, also with labels of others
    if config.labelled:
        delay = config.input.delay or Lateness()
        ordered = _ordered(config, first)
        return DelayedLabels(ordered, count=delay.observations, span=delay.span, whole=not growing)
    if second is not None:
        return MergedSource([_ordered(config, first), _ordered(config, second)], growing=growing)
    source = open_input(config, first)
    return ArrivalLog(source, _remedy(config, source, config.fields()), **_limits(config, source))


def _ordered(config: Config, name: str) -> OrderedSource:
    """Return an input in the order of time; what is read once is not read ahead."""
    source, second = open_input(config, name), name == config.input.labels
    fields = config.label_fields() if second else config.fields()
    limits = _limits(config, source)
    counted: Counted = "labels" if second else "observations"
    return OrderedSource(source, _remedy(config, source, fields), counted=counted, **limits)


def _remedy(config: Config, source: Source, fields: Fields) -> Callable[[str], str]:
    return partial(sort_remedy, source, fields.time, config.input.format)


def _limits(config: Config, source: Source) -> dict[str, Any]:
    """Return how far a row may be behind, and what is kept to sort; nothing if it is read once."""
    bounds = Bounds(0, 0) if is_read_once(source) else Bounds()
    return {"lateness": config.settings().allowed_lateness, "bounds": bounds}


def open_input(config: Config, name: str) -> Source:
    """Return the source of the second input if that has the name, otherwise of a first input."""
    second = name == config.input.labels
    options = SourceOptions(
        fields=config.label_fields() if second else config.fields(),
        kind="labels" if second else config.first_kind,
        readers=config.reads(),
        format=None if format_of(name) else config.input.format,
        max_record_bytes=config.input.max_record_bytes,
        growing=config.state.path is not None,
        delimiter=config.input.delimiter,
        decimal=config.input.decimal,
    )
    return open_source(name, options)


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


class Job(NamedTuple):
    """Source, settings, outputs and state of a run."""

    source: Source
    settings: Settings  # of the processor
    outputs: dict[str, str]  # path of each, by the names of `run.row_types`
    limit: DeadLetterLimit
    state: StateFile | None = None
    every: int = 100_000  # records between two saves of the state
    others: tuple[FileUse, ...] = ()  # must not change: inputs, configuration, another run's files
    beside: bool = False  # whether the path of dead letters is derived from that of predictions
    zone: str = "UTC"  # IANA zone of the times of the input, in which people read them
    workers: int = 1  # processes that share the models; several need a source to read again
    front: Front = "toml"  # where its user writes options

    def require_apart(self, report: str | None = None) -> None:
        """Raise a ParameterError if a file, that of the report included, is used twice."""
        uses = [
            FileUse(f"the file of {name.replace('_', ' ')}", path, derived=self._is_derived(name))
            for name, path in self.outputs.items()
        ]
        uses += [] if self.state is None else self.state.uses()
        uses += [] if report is None else [FileUse("--report", report)]
        require_apart([*self.others, *uses])

    def _is_derived(self, name: str) -> bool:
        return self.beside and name == "dead_letters"

    @contextmanager
    def start(
        self,
        pace: Callable[[Events], Iterable[Events]] | None = None,
        say: Callable[[str], object] = lambda _: None,
    ) -> Iterator[BaseRun]:
        """Load the state and open the outputs at its positions, for a `with` block.

        Several workers have neither a state nor a pace; `say` takes a sentence about one that ends
        early.

        Raises
        ------
        StateError
            If another run has the state, if it cannot be used or is lost, or if an output
            differs from what was written.
        ParameterError
            If an output cannot be opened, or is used otherwise.
        """
        self.require_apart()
        with nullcontext() if self.state is None else self.state.held():
            several = self.workers > 1
            with self._parallel(say) if several else self._opened(pace) as run:
                yield run

    def _parallel(self, say: Callable[[str], object]) -> ParallelRun:
        """Open all outputs, and return the run of several workers."""
        from abers_connectors.replay.workers import (  # noqa: PLC0415 - imports multiprocessing
            ParallelRun,
        )

        return ParallelRun(
            self.source,
            self.settings,
            self._sinks({}),
            self.workers,
            outcomes="outcomes" in self.outputs,
            live=self._live(),
            limit=self.limit,
            say=say,
            front=self.front,
        )

    def _opened(self, pace: Callable[[Events], Iterable[Events]] | None) -> Run:
        """Load the state, open all outputs, and return the run."""
        outcomes = "outcomes" in self.outputs
        if self.state is None:
            processor = Processor(self.settings, outcomes=outcomes, front=self.front)
        else:
            processor = self.state.load(self.settings, outcomes=outcomes, front=self.front)
            if processor.position is None:
                self.state.begin(processor)
        return Run(
            self.source,
            processor,
            self._sinks((processor.position or {}).get("sinks", {})),
            live=self._live(),
            limit=self.limit,
            state=self.state,
            every=self.every,
            pace=pace or at_once,
        )

    def _live(self) -> list[str]:
        return [name for name, path in self.outputs.items() if is_stream(path)]

    def _sinks(self, written: Mapping[str, Any]) -> dict[str, Sink]:
        """Open all outputs at their positions; if one cannot be opened, none is."""
        sinks: dict[str, Sink] = {}
        with ExitStack() as opened:
            for name, path in self.outputs.items():
                sinks[name] = self._sink(name, path, written.get(name))
                opened.callback(sinks[name].discard)
            opened.pop_all()  # all are open, so none is discarded here
        return sinks

    def _sink(self, name: str, path: str, position: Any) -> Sink:  # noqa: ANN401 - JSON
        options = SinkOptions(
            resumable=self.state is not None, position=position, derived=self._is_derived(name)
        )
        opener = partial(open_sink, path, row_types(self.settings)[name], options)
        # Without rows there is a file of predictions and of outcomes, but not of dead letters.
        lazy = name == "dead_letters" and position is None
        return LazySink(opener, path) if lazy else opener()


def job_of_config(config: Config, name: str = "configuration") -> Job:
    """Return the job of a configuration, or raise a ConfigError with all that would stop it.

    The name of its file is for messages.
    """
    require_files(config, name)
    job = unchecked_job(config)
    return job._replace(others=(FileUse("the configuration", name, reads=True), *job.others))


def unchecked_job(config: Config) -> Job:
    """Return the job of a configuration, whether its inputs exist or not."""
    output, stops = config.output, config.output.on_bad_record == "stop"
    outputs = {"predictions": output.predictions}
    if output.outcomes is not None:
        outputs["outcomes"] = output.outcomes
    if not stops or config.state.path is not None:
        outputs["dead_letters"] = output.dead_letters_path
    return Job(
        open_inputs(config),
        config.settings(),
        outputs,
        DeadLetterLimit(stops, output.max_dead_letter_ratio),
        _state(config),
        config.state.snapshot_every,
        tuple(use for use in files_of(config) if use.reads),
        output.dead_letters is None,
        config.input.timezone or "UTC",
        front=config.front,
    )


def _state(config: Config) -> StateFile | None:
    """Return the state file of a configuration, or None if there is no state."""
    if config.state.path is None:
        return None
    given, output = config.input, config.output
    delay = given.delay
    late = delay and (delay.observations if delay.span is None else f"{delay.span}ms")
    files = {
        "input.observations": given.observations,
        "input.labels": given.labels,
        "input.delay": None if late is None else str(late),
        "output.predictions": output.predictions,
        "output.outcomes": output.outcomes,
        "output.dead_letters": output.dead_letters_path,
    }
    return StateFile(config.state.path, files, key_file=config.state.key_file)

"""A job: everything that a run needs, from a configuration.

Nothing is written before the inputs, the state and its key are known to be usable.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.stream import Processor, Settings
from abers_connectors.files.aliases import FileUse, require_apart
from abers_connectors.files.formats import is_stream
from abers_connectors.replay.file_checks import files_of, require_files
from abers_connectors.replay.inputs import open_inputs
from abers_connectors.replay.run import BaseRun, DeadLetterLimit, Run, at_once, row_types
from abers_connectors.replay.state_file import StateFile
from abers_connectors.sinks.base import LazySink, SinkOptions
from abers_connectors.sinks.registry import open_sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from abers.stream import Events
    from abers.stream.option import Front
    from abers_connectors.config.model import Config
    from abers_connectors.replay.parallel_run import ParallelRun
    from abers_connectors.sinks.base import Sink
    from abers_connectors.sources.base import Source

__all__ = ["Job", "job_of_config", "unchecked_job"]


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
        from abers_connectors.replay.parallel_run import (  # noqa: PLC0415 - imports multiprocessing
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

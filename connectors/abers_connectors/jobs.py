"""From a configuration to a run.

Governing rule: nothing is written before all that can be known to hinder the
run is known not to: the files that are read, the state, and its secret.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.stream import Processor, Settings
from abers_connectors.checking import refuse_hindered, uses_of
from abers_connectors.files.aliases import Use, require_apart
from abers_connectors.files.lazy import LazySink
from abers_connectors.files.places import is_stream
from abers_connectors.files.writing import open_sink
from abers_connectors.inputs import open_source
from abers_connectors.running import Run, Tolerance, at_once, outputs
from abers_connectors.statefile import StateFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from abers.stream import Events
    from abers_connectors.config import Config
    from abers_connectors.files.base import FileSink
    from abers_connectors.records import Source

__all__ = ["Job", "job_of", "of_config"]


class Job(NamedTuple):
    """What is to be run.

    Parameters
    ----------
    source, settings
        What is read, and how it is processed.
    outputs
        Path of each output, by the names of `running.outputs`.
    tolerance
        How many bad records are too many.
    state, every
        Where the state is kept, if anywhere, and how many records lie between two savings.
    others
        Files that stay as they are: those that are read, the configuration, and what belongs to
        another run.
    beside
        Whether the name of the dead letters is made of that of the predictions.
    """

    source: Source
    settings: Settings
    outputs: dict[str, str]
    tolerance: Tolerance
    state: StateFile | None = None
    every: int = 100_000
    others: tuple[Use, ...] = ()
    beside: bool = False

    def require_apart(self, report: str | None = None) -> None:
        """Refuse, with a ParameterError, to write what is used otherwise.

        Parameters
        ----------
        report
            A file that is written besides.
        """
        uses = [
            Use(f"output.{name}", path, derived=self._is_derived(name))
            for name, path in self.outputs.items()
        ]
        uses += [] if self.state is None else self.state.uses()
        uses += [] if report is None else [Use("--report", report)]
        require_apart([*self.others, *uses])

    def _is_derived(self, name: str) -> bool:
        return self.beside and name == "dead_letters"

    @contextmanager
    def start(self, pace: Callable[[Events], Iterable[Events]] | None = None) -> Iterator[Run]:
        """Load the state, and open the outputs where it says that they end, for a `with` block.

        Parameters
        ----------
        pace
            As of `Run`.

        Yields
        ------
        Run
            What is to be run in the block.

        Raises
        ------
        StateError
            If another run has the state, it cannot be used or is lost, or an output is not what
            it says.
        ParameterError
            If an output cannot be opened, or is a file that is used otherwise.
        """
        self.require_apart()
        with nullcontext() if self.state is None else self.state.held(), self._opened(pace) as run:
            yield run

    def _opened(self, pace: Callable[[Events], Iterable[Events]] | None) -> Run:
        outcomes = "outcomes" in self.outputs
        if self.state is None:
            processor = Processor(self.settings, outcomes=outcomes)
        else:
            processor = self.state.load(self.settings, outcomes=outcomes)
            if processor.position is None:
                self.state.begin(processor)
        written = (processor.position or {}).get("sinks", {})
        sinks: dict[str, FileSink] = {}
        with ExitStack() as opened:
            for name, path in self.outputs.items():
                sinks[name] = self._sink(name, path, written.get(name))
                opened.callback(sinks[name].discard)
            opened.pop_all()  # all could be opened, so none is discarded here
        return Run(
            self.source,
            processor,
            sinks,
            live=[name for name, path in self.outputs.items() if is_stream(path)],
            tolerance=self.tolerance,
            state=self.state,
            every=self.every,
            pace=pace or at_once,
        )

    def _sink(self, name: str, path: str, position: Any) -> FileSink:  # noqa: ANN401 - JSON
        kind, resumable = outputs(self.settings)[name], self.state is not None

        def opened() -> FileSink:
            return open_sink(
                path,
                kind,
                resumable=resumable,
                position=position,
                derived=self._is_derived(name),
            )

        # Predictions and outcomes have a file even if there are none, dead letters have not.
        lazy = name == "dead_letters" and position is None
        return LazySink(opened, path) if lazy else opened()


def of_config(config: Config, name: str = "configuration") -> Job:
    """Make a job of a configuration.

    Parameters
    ----------
    config
        A whole one.
    name
        Of its file, for messages.

    Returns
    -------
    Job
        It.

    Raises
    ------
    ConfigError
        If a file it names is not there, or a directory, or a library.
    """
    refuse_hindered(config, name)
    job = job_of(config)
    return job._replace(others=(Use("the configuration", name, reads=True), *job.others))


def job_of(config: Config) -> Job:
    """Make a job of a configuration, whether its files are there or not.

    Parameters
    ----------
    config
        A whole one.

    Returns
    -------
    Job
        It.
    """
    output, stops = config.output, config.output.on_bad_record == "stop"
    outputs = {"predictions": output.predictions}
    if output.outcomes is not None:
        outputs["outcomes"] = output.outcomes
    if not stops or config.state.path is not None:
        outputs["dead_letters"] = output.dead_letters_path
    return Job(
        open_source(config),
        config.settings(),
        outputs,
        Tolerance(stops, output.max_dead_per_1000),
        _state(config),
        config.state.every,
        tuple(use for use in uses_of(config) if use.reads),
        output.dead_letters is None,
    )


def _state(config: Config) -> StateFile | None:
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
    return StateFile(config.state.path, files)

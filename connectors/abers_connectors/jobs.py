"""From a configuration, or the words of `abers replay`, to a run.

Governing rule: what has a suffix or a directory is a file, which brings its
scores; everything else is the name of a bundled stream, which needs a learner.
An option that belongs to the other kind is refused, not ignored.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import ParameterError
from abers.learners.river import LEARNERS, make
from abers.stream import Processor, Settings
from abers_connectors import config as configuration
from abers_connectors._suggest import did_you_mean
from abers_connectors.delayed import Delayed
from abers_connectors.files.lazy import LazySink
from abers_connectors.files.peek import columns_of
from abers_connectors.files.writing import open_sink
from abers_connectors.inputs import open_source
from abers_connectors.river_streams import BundledStream
from abers_connectors.running import OUTPUTS, Run, Tolerance
from abers_connectors.statefile import StateFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers.stream import Event
    from abers_connectors.config import Config
    from abers_connectors.files.base import FileSink
    from abers_connectors.records import Sink, Source

__all__ = ["Job", "of_config", "of_stream"]

FIELDS = ("score", "label", "id", "time")
"""What `abers replay` can be told of a file's columns."""


class Job(NamedTuple):
    """What is to be run.

    Parameters
    ----------
    source, settings
        What is read, and how it is processed.
    outputs
        Path of each output, by the names of `running.OUTPUTS`.
    tolerance
        How many bad records are too many.
    state, every
        Where the state is kept, if anywhere, and how many records lie between two savings.
    """

    source: Source[Event]
    settings: Settings
    outputs: dict[str, str]
    tolerance: Tolerance
    state: str | None = None
    every: int = 100_000

    def start(self, **options: Any) -> Run:  # noqa: ANN401 - those of `Run`
        """Load the state, and open the outputs where it says that they end.

        Parameters
        ----------
        options
            More for `Run`.

        Returns
        -------
        Run
            A context manager.
        """
        outcomes = "outcomes" in self.outputs
        kept = None if self.state is None else StateFile(self.state)
        if kept is None:
            processor = Processor(self.settings, outcomes=outcomes)
        else:
            processor = kept.load(self.settings, outcomes=outcomes)
        written = (processor.position or {}).get("sinks", {})
        sinks = {
            name: self._sink(name, path, written.get(name), resumable=kept is not None)
            for name, path in self.outputs.items()
        }
        return Run(
            self.source,
            processor,
            sinks,
            tolerance=self.tolerance,
            state=kept,
            every=self.every,
            **options,
        )

    def _sink(self, name: str, path: str, position: Any, *, resumable: bool) -> Sink:  # noqa: ANN401
        kind = OUTPUTS[name]

        def opened() -> FileSink:
            return open_sink(path, kind, resumable=resumable, position=position)

        # Predictions and outcomes have a file even if there are none, dead letters have not.
        lazy = name == "dead_letters" and position is None
        return LazySink(opened, path) if lazy else opened()


def of_config(config: Config) -> Job:
    """Make a job of a configuration.

    Parameters
    ----------
    config
        A whole one.

    Returns
    -------
    Job
        It.
    """
    output = config.output
    outputs = {"predictions": output.predictions, "dead_letters": output.dead_letters_path}
    if output.outcomes is not None:
        outputs["outcomes"] = output.outcomes
    return Job(
        open_source(config),
        config.settings(),
        outputs,
        Tolerance(output.on_bad_record == "stop", output.max_dead_per_1000),
        config.state.path,
        config.state.every,
    )


def of_stream(  # noqa: PLR0913 - the options of the command
    stream: str,
    *,
    delay: int,
    output: str,
    learner: str | None = None,
    columns: Mapping[str, str] | None = None,
    probabilities: bool = False,
    forgetting: Mapping[str, Any] | None = None,
) -> Job:
    """Make a job of a bundled stream or a file of scores and labels.

    Parameters
    ----------
    stream
        Name of a bundled stream, or path of a file.
    delay
        How many further observations come before a label.
    output
        Where predictions go.
    learner
        What scores a bundled stream, by default a logistic regression.
    columns
        Names of a file's columns, where they differ from the default.
    probabilities
        Whether the scores of a file are probabilities.
    forgetting
        Of `config.Calibrator`: at most one of window, max_age, half_life.

    Returns
    -------
    Job
        It stops at the first bad record.

    Raises
    ------
    ParameterError
        If there is no such stream, or an option does not go with it.
    MissingExtraError
        If it is a bundled stream and river is not installed.
    """
    path, given = Path(stream), dict(columns or {})
    if not path.suffix and len(path.parts) == 1:
        misplaced = [*given, *(["probabilities"] if probabilities else [])]
        return _of_bundled(stream, delay, output, learner, misplaced, forgetting)
    _require_file(path, stream)
    if learner is not None:
        msg = f"--learner is for bundled streams; {stream} brings its scores, leave it out"
        raise ParameterError(msg)
    flags: dict[str, Any] = {
        "input.observations": stream,
        "input.delay": delay,
        "output.predictions": output,
        "output.on_bad_record": "stop",
        "task.scores": "probability" if probabilities else "any",
        "limits.max_models": 1,
        **{f"calibrator.{name}": value for name, value in (forgetting or {}).items()},
        **{f"input.fields.{field}": column for field, column in _fields(stream, given).items()},
    }
    return of_config(configuration.load(flags=flags, environ={}))


def _of_bundled(  # noqa: PLR0913, PLR0917 - see `of_stream`
    stream: str,
    delay: int,
    output: str,
    learner: str | None,
    misplaced: list[str],
    forgetting: Mapping[str, Any] | None,
) -> Job:
    source = BundledStream(stream)
    for option in misplaced:
        msg = f"--{option} is for files; {stream} is scored by its learner, leave it out"
        raise ParameterError(msg)
    name = learner or "logistic"
    try:
        make(name)  # so that a mistake is told before anything is read
    except ParameterError as error:
        msg = f"--learner {error}{did_you_mean(name, LEARNERS)}"
        raise ParameterError(msg) from None
    calibrator = configuration.Calibrator.model_validate(forgetting or {})
    settings = Settings(scores="probability", learner=name, **calibrator.model_dump())
    delayed = Delayed(source, count=delay)
    return Job(delayed, settings, {"predictions": output}, Tolerance(stop=True))


def _require_file(path: Path, stream: str) -> None:
    if path.is_dir():
        msg = f"{stream} is a directory; name a CSV, JSON Lines or Parquet file in it"
        raise ParameterError(msg)
    if not path.exists():
        beside = path.parent.iterdir() if path.parent.is_dir() else []
        msg = f"{stream}: no such file{did_you_mean(path.name, [one.name for one in beside])}"
        raise ParameterError(msg)


def _fields(stream: str, given: dict[str, str]) -> dict[str, str]:
    """Name the columns: id and time are the number of the record if there are no such columns."""
    there = columns_of(stream)
    return {
        field: "row" for field in ("id", "time") if there is not None and field not in there
    } | given

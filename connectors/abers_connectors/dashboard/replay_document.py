"""The document of a replay: of its only model, of its models by harm, or of its calibrators.

Terminal and report are renderings of it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

import abers
from abers import registry
from abers.calibration.sets import ALL
from abers.monitoring import formats
from abers.monitoring.formats import is_date
from abers.pages.blocks import AnswersBlock, Document, FoldBlock, TextBlock
from abers.pages.method_blocks import record_fold, score_fold
from abers.pages.model_document import model_blocks, model_document
from abers.pages.model_findings import city
from abers.pages.models_table import ModelRow, by_harm, models_blocks
from abers.stream.settings import CALIBRATORS
from abers_connectors.dashboard.observer import Observer
from abers_connectors.replay.summary import total_monitor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers.monitoring import TaskMonitor
    from abers.pages.blocks import Block
    from abers.stream.processor import Processor
    from abers_connectors.config.values import Lateness
    from abers_connectors.dashboard.observer import Key, ObservedModel, Reference
    from abers_connectors.replay.summary import Summary

__all__ = ["FOLDS", "FinishedReplay", "comparison_document", "observed", "replay_document"]


class FinishedReplay(NamedTuple):
    """All that is known of a replay at its end; files are named without their directories."""

    title: str  # command-line arguments that named the stream
    delay: Lateness | None  # of the labels; None if a configuration sets it
    inputs: str  # names of what was read
    zone: str  # IANA zone of the times of the input
    processors: Sequence[Processor]
    summary: Summary
    observer: Observer  # of the processors

    @property
    def stream(self) -> str:
        """Name of the stream."""
        return Path(self.title).name

    def facts(self) -> dict[str, Any]:
        """Return what was replayed."""
        settings, summary = self.processors[0].settings, self.summary
        counters = Counter[str]()
        for one in self.processors:
            counters.update(one.counters)
        return {
            "abers": abers.__version__,
            "stream": self.stream,
            "inputs": " and ".join(Path(name).name for name in self.inputs.split(" and ")),
            "task": settings.task,
            "calibrator": settings.calibrator or CALIBRATORS[settings.task][0],
            "delay": None if self.delay is None else str(self.delay),
            "settings": msgspec.to_builtins(settings),
            "records": summary.records,
            "dead_letters": summary.dead_letters,
            "observations": summary.observations,
            "waiting": summary.waiting,
            "losses": summary.losses,
            "unlabelled": summary.unlabelled,
            "notes": summary.notes,
            "counters": dict(counters),
        }


def observed(processors: Sequence[Processor]) -> Observer:
    """Return an observer of processors at the end of a replay."""
    observer = Observer()
    observer.hold(dict(enumerate(processors)))
    return observer


_SHOWN = (
    *("classes", "quantiles", "coverage", "folds", "label_rates", "scores"),
    *("window", "max_age", "half_life", "learner"),
)


def replay_records(facts: Mapping[str, Any], *, support: bool) -> tuple[tuple[str, str], ...]:
    """Return the settings and the counts of a replay.

    Parameters
    ----------
    facts
        As of `FinishedReplay.facts`.
    support
        Whether scores depend on the support of the labels, which is then named.
    """
    return (*_settings(facts, support=support), *_counts(facts))


def _settings(facts: Mapping[str, Any], *, support: bool) -> Iterator[tuple[str, str]]:
    known = {
        "stream": facts["stream"],
        "read from": facts["inputs"],
        "task": facts["task"],
        "calibrator": facts["calibrator"],
        **{name.replace("_", " "): facts["settings"][name] for name in _SHOWN},
    }
    able = registry.capabilities(facts["calibrator"], facts["task"])
    for name, belongs in (
        ("folds", able.score == "folds"),
        ("quantiles", facts["task"] == "regression"),
        ("label rates", tuple(facts["settings"]["label_rates"]) != ALL),
    ):
        if not belongs:
            del known[name]
    if support:
        known["support"] = facts["settings"]["support"] or "from the smallest to the largest label"
    if facts["delay"] is not None:
        known["labels"] = facts["delay"]
    for name, value in known.items():
        if value not in (None, [], ()):
            yield name, _text(value)


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _counts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield all counts but those that are 0; records are always counted."""
    yield "records", f"{facts['records']:,}"
    unreadable = {f"unreadable: {reason}": count for reason, count in facts["dead_letters"].items()}
    waiting = dict(zip(("observations", "labels"), facts["waiting"], strict=True))
    still = {f"{name} still waiting": count for name, count in waiting.items()}
    for name, count in {**_of_events(facts["counters"]), **unreadable, **still}.items():
        yield name, f"{count:,}"


def _of_events(counters: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of events, under other names than those of settings."""
    names = {"labels": "labels learned"}
    return {
        names.get(name, name.replace("_", " ")): count for name, count in counters.items() if count
    }


FOLDS = 10  # models of a page with a document of their own
_ANSWERED = 1_000  # models in a table: the answers of each take milliseconds
_SEVERAL = 2
_NAMED = 8  # models in a sentence
_WRONG_BY = (
    "wrong by: how many labels the calibrated probabilities are off by at least. "
    "Each row is about its latest labels."
)


class _Model(NamedTuple):
    """A model in a table of many, with what its fold is made of."""

    row: ModelRow
    key: Key
    observed: ObservedModel


def replay_document(run: FinishedReplay, *, folds: int = FOLDS, most: int = 5) -> Document:
    """Return the document of a replay.

    Parameters
    ----------
    run
        The replay.
    folds
        Number of models with a fold of their own, where there are several.
    most
        Number of models in a text.
    """
    statuses = run.observer.models()
    if not statuses:
        return _document(run, (_unscored(run), *_notes(run)))
    if len(statuses) < _SEVERAL:
        return _of_one(run)
    models = [_model(run, one.key) for one in statuses[:_ANSWERED]]
    return _of_many(run, models, len(statuses) - len(models), folds, most)


def comparison_document(runs: Mapping[str, FinishedReplay]) -> Document:
    """Return the document of replays by calibrator: their table, and a fold for each."""
    first = next(iter(runs.values()))
    rows = []
    for place, (name, run) in enumerate(runs.items()):
        if not run.observer.models():
            continue
        whole, prefix = run.observer.whole(), f"c{place + 1}-"
        blocks = (
            *_blocks(run, whole, prefix),
            *_reference(whole.reference, prefix),
            *record_fold(prefix, _records(run, whole.monitor)),
        )
        answers = whole.monitor.answers(run.zone)
        rows.append(ModelRow(name, answers, alarms=whole.history.alarms, blocks=blocks))
    if not rows:
        return _document(first, (_unscored(first), *_notes(first)))
    shown = models_blocks(rows, name="calibrator", most=len(rows))
    return _document(first, (*shown, *_notes(first)))


def _unscored(run: FinishedReplay) -> TextBlock:
    """Return that there is nothing to show; a note says why no label came."""
    why = ": monitoring is off." if run.summary.labels else "."
    return TextBlock(key="unscored", words=f"No prediction was scored{why}", detail="answers")


def _document(run: FinishedReplay, blocks: tuple[Block, ...]) -> Document:
    return Document(title=run.stream, facts=(*_counted(run),), blocks=blocks, foot=_foot())


def _foot() -> str:
    return f"Made by abers {abers.__version__}."


def _of_one(run: FinishedReplay) -> Document:
    """Return the document of the only model."""
    whole = run.observer.whole()
    found = model_document(
        whole.monitor,
        whole.details()._replace(records=_records(run, whole.monitor)),
        title=run.stream,
        zone=run.zone,
        facts=(*_counted(run), *_period(run, whole.monitor)),
        foot=_foot(),
    )
    blocks = [*found.blocks]
    at = next((n for n, one in enumerate(blocks, 1) if isinstance(one, AnswersBlock)), 0)
    blocks[at:at] = _notes(run)
    blocks += _reference(whole.reference)
    return msgspec.structs.replace(found, blocks=(*blocks,))


def _of_many(
    run: FinishedReplay, models: Sequence[_Model], left_out: int, folds: int, most: int
) -> Document:
    """Return the document of several models; the worst have folds."""
    found = {one.row.title: one for one in models}
    ordered = by_harm([one.row for one in models])
    rows = []
    for place, row in enumerate(ordered):
        if place < folds:
            one, prefix = found[row.title], f"m{place + 1}-"
            blocks = (*_blocks(run, one.observed, prefix),)
            blocks += _reference(one.observed.reference, prefix)
            rows.append(row._replace(blocks=blocks))
        else:
            rows.append(row)
    tiles, table, *behind = models_blocks(rows, name=_named(models), most=most)
    monitor = total_monitor(run.processors)  # the history of all together takes long
    scores = (
        ()
        if monitor is None
        else (*score_fold(monitor, None, "all-"), *record_fold("", _records(run, monitor)))
    )
    return _document(
        run,
        (
            tiles,
            table,
            TextBlock(key="wrong-by", words=_WRONG_BY, place="text"),
            *_alarms(ordered),
            *_left_out(left_out, len(ordered), min(folds, len(ordered))),
            *_notes(run),
            *behind,
            *scores,
        ),
    )


def _named(models: Sequence[_Model]) -> str:
    """Return what a row of the table is: a segment where there is but one model."""
    names = {model for model, _ in (one.key for one in models)}
    return "segment" if len(names) == 1 else "model"


def _model(run: FinishedReplay, key: Key) -> _Model:
    found = run.observer.observed(key)
    name, segment = key
    answers = found.monitor.answers(run.zone)
    row = ModelRow(name, answers, segment=segment, alarms=found.history.alarms)
    return _Model(row, key, found)


def _blocks(run: FinishedReplay, observed: ObservedModel, prefix: str) -> tuple[Block, ...]:
    return model_blocks(observed.monitor, observed.details(), zone=run.zone, prefix=prefix)


def _period(run: FinishedReplay, monitor: TaskMonitor) -> Iterator[str]:
    """Yield from when to when the stream is."""
    answers = monitor.answers(run.zone)
    if answers is not None and answers.whole is not None:
        whole = answers.whole
        zone = f", time of {city(run.zone)}" if is_date(whole.until) else ""
        yield f"{formats.period(whole.start, whole.until, run.zone)}{zone}"


def _counted(run: FinishedReplay) -> Iterator[str]:
    """Yield how many predictions and labels there were."""
    predictions, labels = run.summary.observations, run.summary.labels
    came = "all labels came" if predictions == labels else f"{formats.count(labels)} labels came"
    yield f"{formats.count(predictions)} predictions, {came}"
    yield "each prediction is scored once, as it was issued"


def _records(run: FinishedReplay, monitor: TaskMonitor) -> tuple[tuple[str, str], ...]:
    return replay_records(run.facts(), support="crps" in monitor.views()["calibrated"])


def _notes(run: FinishedReplay) -> tuple[TextBlock, ...]:
    """Return on a page what a terminal prints with its notes: losses, and doubts of columns."""
    said = (*run.summary.losses, *run.summary.notes)
    return tuple(
        TextBlock(key=f"note-{place}", words=one, note=True, place="page")
        for place, one in enumerate(said, 1)
    )


def _alarms(ordered: Sequence[ModelRow]) -> tuple[TextBlock, ...]:
    """Return how many alarms there were, and the models that had them."""
    counts = Counter({row.title: len(row.alarms) for row in ordered if row.alarms})
    if not (total := counts.total()):
        return ()
    names = [*counts]
    more = len(names) - _NAMED
    listed = ", ".join(names[:_NAMED]) + (f" and {formats.count(more)} more" if more > 0 else "")
    noun = "alarm" if total == 1 else "alarms"
    return (TextBlock(key="alarmed", words=f"{formats.count(total)} {noun}: {listed}."),)


def _left_out(left_out: int, shown: int, folds: int) -> tuple[TextBlock, ...]:
    """Return what a page of many models leaves out."""
    said = []
    if left_out:
        said.append(
            f"The table has the {formats.count(shown)} models with the strongest evidence against "
            f"their predictions; {formats.count(left_out)} more are not in it. "
            "A report with a name that ends in .json has the scores of all."
        )
    if folds < shown:
        said.append(f"The {folds} worst of {formats.count(shown)} can be opened below.")
    return tuple(
        TextBlock(key=f"left-out-{place}", words=words, place="page")
        for place, words in enumerate(said, 1)
    )


def _reference(found: Reference | None, prefix: str = "") -> tuple[FoldBlock, ...]:
    """Return the scores of the reference period, under the names of the other scores."""
    if found is None:
        return ()
    labels = formats.count(found.monitor.count)
    return tuple(
        msgspec.structs.replace(
            one,
            title=f"Reference period, {found.name}",
            summary=f"The scores of its {labels} labels.",
        )
        for one in score_fold(found.monitor, None, f"{prefix}reference-")
    )

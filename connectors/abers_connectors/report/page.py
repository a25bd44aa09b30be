"""A report as one page that needs nothing else.

Governing rule: a page asks nobody for anything: its scripts stand in it, and its content security
policy allows these two, by their hashes, and no request. Whatever a stream calls itself is text.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import msgspec

from abers.exceptions import MissingExtraError
from abers_connectors._means import left_out
from abers_connectors.models import CHANGE, identified, listed, titled
from abers_connectors.report.figures import drawn
from abers_connectors.report.tables import TESTS, Table, rang, scores, tests

if TYPE_CHECKING:
    from abers.plots.drawings import Drawing
    from abers_connectors.report.content import OfModel, Report
    from abers_connectors.report.findings import Findings
    from abers_connectors.summary import Means

__all__ = ["Page"]

_LAST = 5  # alarms
_SHOWN = ("classes", "quantiles", "folds", "scores", "window", "max_age", "half_life", "learner")


class _Block(NamedTuple):
    """A figure of the page: its description, and what plotly draws."""

    name: str
    heading: str
    sentence: str
    json: str
    table: Table


class _Model(NamedTuple):
    """What the page tells of a model and segment, and the fragment of its address that asks."""

    fragment: str
    title: str
    labels: int
    means: Means | None
    scores: Table
    sentences: list[str]
    tests: Table
    alarms: list[str]
    blocks: list[_Block]


class Page:
    """Makes pages of reports.

    Raises
    ------
    MissingExtraError
        If plotly or Jinja2 is not installed.
    """

    def __init__(self) -> None:
        try:
            import jinja2  # noqa: PLC0415 - of the extra
            import plotly  # noqa: F401, PLC0415 - likewise, its script
        except ImportError as error:
            msg = "a report as a page needs plotly and Jinja2; run: pip install 'abers[plots]'"
            raise MissingExtraError(msg) from error
        here = files("abers_connectors.report")
        strict = jinja2.Environment(
            autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._template = strict.from_string(here.joinpath("page.html").read_text("utf-8"))
        self._scripts = [
            (files("plotly") / "package_data" / "plotly.min.js").read_text("utf-8"),
            here.joinpath("page.js").read_text("utf-8"),
        ]
        self._style = here.joinpath("page.css").read_text("utf-8")

    def written(self, report: Report) -> bytes:
        """Write a report down.

        Parameters
        ----------
        report
            What it says.

        Returns
        -------
        bytes
            An HTML document.
        """
        models = [] if report.models is msgspec.UNSET else [*map(_model, report.models)]
        page = self._template.render(
            report=report,
            policy=" ".join(map(_hashed, self._scripts)),
            scripts=self._scripts,
            style=self._style,
            scores=scores(report),
            sentences=left_out(report.calibrated or {}, report.labels),
            tested=TESTS,
            tests=tests(report.tests),
            alarms=_alarms(report),
            facts=_facts(report),
            counts=_counts(report),
            blocks=_blocks(report),
            models=models,
            listed=Table(*listed([(one.title, one.labels, one.means) for one in models])),
        )
        return page.encode()


def _model(one: OfModel) -> _Model:
    key, means = (one.model, one.segment), one.calibrated
    rings = any(test.ringing for test in one.tests if test.name == CHANGE)
    return _Model(
        quote(identified(key), safe=""),
        titled(key, rings=rings),
        one.labels,
        means,
        scores(one),
        left_out(means or {}, one.labels),
        tests(one.tests),
        _alarms(one),
        _blocks(one),
    )


def _alarms(found: Findings) -> list[str]:
    """Tell of the last alarms, the newest first."""
    told = [rang(one) for one in found.alarms[: -_LAST - 1 : -1]]
    earlier = len(found.alarms) - len(told)
    return told + ([f"Before these {earlier:,} more were raised."] if earlier else [])


def _blocks(found: Findings) -> list[_Block]:
    if not found.over_time:
        return []
    return [
        _Block(one.name, one.heading, one.sentence, _encoded(one.figure), one.table)
        for one in drawn(found)
    ]


def _encoded(figure: Drawing) -> str:
    """Encode a figure without its title, which stands above it, and without any "<".

    One might end the element that it stands in.
    """
    figure.layout |= {"title": None, "margin": figure.layout["margin"] | {"t": 16}}
    return msgspec.json.encode(figure).decode().replace("<", "\\u003c")


def _hashed(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def _facts(report: Report) -> Table:
    known = {
        "stream": report.stream,
        "read from": report.inputs,
        "task": report.task,
        "calibrator": report.calibrator,
        **{name.replace("_", " "): report.settings[name] for name in _SHOWN},
    }
    for name, belongs in (
        ("folds", report.calibrator == "cvap"),
        ("quantiles", report.task == "regression"),
    ):
        if not belongs:
            del known[name]
    if report.pit is not None:  # a CRPS is finite only for a support, so it is named
        known["support"] = report.settings["support"] or "from the smallest to the largest label"
    if report.delay is not None:
        known["labels late by"] = f"{report.delay:,} observations"
    rows = [[name, _text(value)] for name, value in known.items() if value not in (None, [], ())]
    return Table(["what", "which"], rows)


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _counts(report: Report) -> Table:
    rest = {name.replace("_", " "): count for name, count in report.counters.items() if count}
    dead = {f"dead letters: {reason}": count for reason, count in report.dead_letters.items()}
    waiting = dict(zip(("observations", "labels"), report.waiting, strict=True))
    still = {f"{name} still waiting": count for name, count in waiting.items()}
    counts = {"records": report.records, **rest, **dead, **still}
    return Table(["what", "how many"], [[name, f"{count:,}"] for name, count in counts.items()])

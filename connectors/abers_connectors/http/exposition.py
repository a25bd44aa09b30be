"""Metrics as text.

Governing rule: what prometheus-client writes of them, without what none of them has (timestamps,
exemplars, units, names that need quotes), which takes it three times as long as all the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.exposition import choose_encoder
from prometheus_client.utils import floatToGoString

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry, Metric

__all__ = ["OPEN", "exposition"]

OPEN = "application/openmetrics-text"
"""The media type of the stricter of both formats, without its parameters."""

_PLAIN = 1e6  # below it Python writes numbers as Go does
_ENDINGS = {"counter": "_total", "info": "_info"}


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    r"""Write metrics in the format that whoever asks prefers.

    Parameters
    ----------
    registry
        Of metrics without timestamps, exemplars and units.
    accept
        The header of the request that says so; empty is the plain text format.

    Returns
    -------
    tuple
        The text, and its media type.

    Examples
    --------
    >>> from prometheus_client import CollectorRegistry, Counter
    >>> registry = CollectorRegistry()
    >>> counter = Counter("letters", "Sent.", ["to"], registry=registry)
    >>> exposition(registry, "")[0]
    b'# HELP letters_total Sent.\n# TYPE letters_total counter\n'
    """
    _, kind = choose_encoder(accept)
    strict = kind.startswith(OPEN)
    metrics, texts = [*registry.collect()], _Texts()
    lines = [line for metric in metrics for line in _lines(metric, texts, strict=strict)]
    return "".join([*lines, "# EOF\n" * strict]).encode(), kind


class _Texts:
    """Labels as they are written.

    Samples that share them have them written once: by their identity, which holds as long as all
    metrics are kept.
    """

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        self._values: dict[str, str] = {}

    def of(self, labels: dict[str, str]) -> str:
        found = self._known.get(id(labels))
        if found is None:
            told = ",".join([f'{key}="{self._value(labels[key])}"' for key in sorted(labels)])
            self._known[id(labels)] = found = f"{{{told}}}" if told else ""
        return found

    def _value(self, value: str) -> str:
        found = self._values.get(value)
        if found is None:
            found = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
            self._values[value] = found
        return found


def _lines(metric: Metric, texts: _Texts, *, strict: bool) -> Iterator[str]:
    told = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
    name, kind = metric.name, metric.type
    if strict:
        told = told.replace('"', r"\"")
    else:
        name += _ENDINGS.get(kind, "")
        kind = "gauge" if kind == "info" else kind
    yield f"# HELP {name} {told}\n# TYPE {name} {kind}\n"
    for sample in metric.samples:
        value = sample.value
        plain = type(value) is float and 0.0 <= value < _PLAIN
        number = repr(value) if plain else floatToGoString(value)  # type: ignore[no-untyped-call]
        yield f"{sample.name}{texts.of(sample.labels)} {number}\n"

"""Labels of samples as text, which is made once while scrapes use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prometheus_client import Metric

__all__ = ["LabelCache", "Labels"]

_Key: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]  # names and values

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Labels(dict[str, str]):
    r"""Labels of a sample.

    Attributes
    ----------
    text
        The labels as both formats have them; empty without labels.

    Examples
    --------
    >>> Labels({"view": "raw", "model": 'a "b"'}).text
    '{model="a \\"b\\"",view="raw"}'
    """

    __slots__ = ("text",)

    def __init__(self, labels: dict[str, str]) -> None:
        super().__init__(labels)
        pairs = [f'{name}="{labels[name].translate(_ESCAPES)}"' for name in sorted(labels)]
        self.text = f"{{{','.join(pairs)}}}" if pairs else ""


class LabelCache:
    """Labels that the last scrape used, and those of this scrape: no others are kept.

    Parameters
    ----------
    common
        Labels of all samples.

    Examples
    --------
    >>> cache = LabelCache({"process": "0"})
    >>> first = cache.of(("model",), ("a",))
    >>> cache.next_scrape()
    >>> cache.of(("model",), ("a",)) is first
    True
    >>> first.text
    '{model="a",process="0"}'
    """

    def __init__(self, common: Mapping[str, str]) -> None:
        self._common = dict(common)
        self._last: dict[_Key, Labels] = {}
        self._now: dict[_Key, Labels] = {}

    def next_scrape(self) -> None:
        """Forget the labels that the last scrape did not use."""
        self._last, self._now = self._now, {}

    def of(self, names: tuple[str, ...], values: tuple[str, ...]) -> Labels:
        """Return the labels with these names and values, and the common labels.

        A label without a value is left out, which means the same to Prometheus.
        """
        key = (names, values)
        found = self._now.get(key)
        if found is None:
            known = self._last.get(key)
            if known is None:
                given = {name: one for name, one in zip(names, values, strict=True) if one}
                known = Labels(given | self._common)
            found = self._now[key] = known
        return found

    def complete(self, metric: Metric) -> Metric:
        """Add the common labels to all samples of a metric, and return it."""
        metric.samples = [
            one._replace(labels=self.of((*one.labels,), (*one.labels.values(),)))
            for one in metric.samples
        ]
        return metric

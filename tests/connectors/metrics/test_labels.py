"""Labels of samples, `abers_connectors.metrics.service_metrics`."""

from __future__ import annotations

from abers_connectors.metrics.service_metrics import LabelCache


def test_common_labels() -> None:
    """All labels have the common ones, and no other label hides them."""
    cache = LabelCache({"application": "a", "process": "0"})
    assert cache.of((), ()).text == '{application="a",process="0"}'
    labels = cache.of(("model", "process"), ("m", "mine"))
    assert labels == {"application": "a", "model": "m", "process": "0"}


def test_labels_that_a_scrape_did_not_use_are_forgotten() -> None:
    """Models that come and go leave nothing behind: a scrape keeps only the labels it used."""
    cache = LabelCache({})
    stays, goes = (cache.of(("model",), (name,)) for name in ("stays", "goes"))
    cache.next_scrape()
    assert cache.of(("model",), ("stays",)) is stays
    cache.next_scrape()
    assert cache.of(("model",), ("stays",)) is stays
    again = cache.of(("model",), ("goes",))
    assert again is not goes
    assert again.text == goes.text == '{model="goes"}'

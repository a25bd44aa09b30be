"""The sections of a run, by the page and the group that shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import (
    agreement,
    arrow,
    class_events,
    conformal,
    cross,
    defaults,
    distribution,
    floor,
    footprint,
    growth,
    hostile,
    journal,
    keyed_models,
    live,
    many_models,
    means,
    monitors,
    multiclass,
    predictive,
    processor,
    protection_speed,
    record_formats,
    rescale,
    router,
    scrape,
    serve,
    service,
    service_models,
    single_events,
    split_state,
    starts,
    unchanged,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.page import Section
    from benchmarks.plan import Plan

    Make = Callable[[Plan], Section]
    Groups = dict[str, dict[str, Make]]

CALIBRATORS: Groups = {
    "Two classes, compared with the alternatives": {
        "prequential": growth.prequential,
        "agreement": lambda _: agreement.agreement(),
        "huge": growth.huge,
        "ties": growth.ties,
        "one": growth.one_at_a_time,
        "unchanged": unchanged.unchanged,
        "window": growth.sliding_window,
    },
    "Worst cases, memory, and the least possible cost": {
        "hostile": hostile.hostile_orders,
        "memory": footprint.memory,
        "saving": footprint.saving,
        "floor": floor.floor,
    },
    "Folds, several classes, and wrapped learners": {
        "cross": cross.cross,
        "multiclass": multiclass.multiclass,
        "class_events": class_events.class_events,
        "wrapped": wrapped.wrapped,
    },
    "Numbers: distributions and intervals": {
        "predictive": predictive.predictive,
        "distribution": distribution.distribution,
        "conformal": conformal.conformal,
        "means": means.means,
    },
}
STREAMS: Groups = {
    "Streams and files": {
        "stream": processor.stream,
        "defaults": defaults.defaults,
        "arrow": arrow.arrow,
        "monitors": monitors.monitors,
        "single": single_events.single_events,
        "protection": protection_speed.protection,
        "start": starts.starts,
    },
    "Many models and saved states": {
        "models": many_models.models,
        "split": split_state.split_state,
        "journal": journal.journal,
        "keyed": keyed_models.keyed,
    },
    "Services": {
        "service": service.service,
        "router": router.router,
        "rescale": rescale.rescale,
        "tasks": service_models.tasks,
        "http": serve.http,
        "formats": record_formats.record_formats,
        "scrape": scrape.scrape,
        "live": live.live,
    },
}

PAGES: dict[str, Groups] = {"": CALIBRATORS, "_streams": STREAMS}
SECTIONS: dict[str, Make] = {
    name: make
    for groups in PAGES.values()
    for group in groups.values()
    for name, make in group.items()
}
NAMES = tuple(SECTIONS)

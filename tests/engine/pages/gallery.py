"""Write a page with all figures: ``python -m tests.engine.pages.gallery FILE``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.engine.pages import samples

from abers.pages.figures import draw, sign

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.pages.figures.data import OverTimeData, ReliabilityData

LIGHT = """--bg:#f6f7f9;--card:#fff;--ink:#16202b;--soft:#4d5b69;--line:#d9dfe5;--hair:#e9edf1;
--raw:#a9480a;--cal:#12629f;--came:#16202b;--tol:#dfe9e2;--band:#16202b1c;--now:#12629f14;
--no:#a81d16;--m1:#1f6fae;--m2:#a85a00;--m3:#2c7a4c;--m4:#8f4a86;--m5:#746810;--m6:#1f7488;
--m7:#b03f58;--m8:#5b6773;"""
DARK = """--bg:#10161d;--card:#18212b;--ink:#e9eef3;--soft:#a9b6c3;--line:#2e3a47;--hair:#25303b;
--raw:#f2a25c;--cal:#6db6f2;--came:#f2f5f8;--tol:#22382d;--band:#f2f5f826;--now:#6db6f21a;
--no:#ff8d84;--m1:#5aa5e0;--m2:#e39a4c;--m3:#63b583;--m4:#bf7fb8;--m5:#b8a748;--m6:#74c3d6;
--m7:#de8294;--m8:#96a2ae;"""
PAGE = f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1"><title>Figures</title><style>
svg text{{fill:var(--soft)}}:root{{color-scheme:light dark;{LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}
*{{box-sizing:border-box}}body{{margin:0;padding:12px;background:var(--bg);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}}
section{{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:14px 12px;
margin:12px auto;max-width:1120px}}svg{{display:block}}h2{{font-size:1rem;margin:0 0 .4em}}
.wide.two{{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:22px}}
.narrow{{display:none}}
.bars{{width:230px}}.spark{{max-width:310px}}.cell{{width:110px}}
.signs svg{{width:28px;color:var(--no)}}
.signs{{display:flex;gap:12px}}
@media (max-width:860px){{.wide.two{{grid-template-columns:minmax(0,1fr)}}}}
@media (max-width:640px){{.wide,.wide.two{{display:none}}.narrow{{display:block}}}}
</style></head><body>"""
STATES = ["yes", "no", "partly", "undecided", "waiting", "recovering"]


PLACES = {"wide": 520.0, "narrow": 330.0}


def over_time() -> Iterator[OverTimeData]:
    """Yield rows, and times of years, weeks and a day; few ones, gaps, very many, and none."""
    for days in (334.0, 20.0, 1.0, 2_000.0):
        yield samples.over_time(zone="America/New_York", days=days)
    yield samples.over_time()
    rare = samples.over_time(5)
    rare["raw"], rare["calibrated"] = [0.001] * 5, [0.002] * 5
    rare["came"], rare["low"], rare["high"] = [
        [0.001 * n for n in range(m, m + 5)] for m in (1, 0, 2)
    ]
    yield rare
    gaps = samples.over_time(25)
    gaps["came"], gaps["raw"] = [0.9, None, 0.95, None, *[0.97] * 21], [None] * 25
    gaps["low"], gaps["high"], gaps["calibrated"] = [0.85] * 25, [1.0] * 25, [0.9] * 25
    gaps["alarms"] = [20_000, 25_000, 48_000]
    yield gaps
    yield samples.over_time(10_000)
    empty = samples.over_time(0)
    empty["missing"] = 164
    yield empty


def reliability() -> Iterator[ReliabilityData]:
    """Yield few cases at one end, and many everywhere."""
    yield samples.reliability()
    even = samples.reliability()
    even["which"], even["tenths"] = "raw", [12_345 + 900 * (one % 3) for one in range(10)]
    yield even


def sections() -> Iterator[tuple[str, str, str]]:
    """Yield a name, a class, and the figures."""
    yield "signs", "signs", "".join(map(sign, STATES))
    sparks = [samples.spark(), samples.saved(), samples.spark(10_000)]
    yield "spark", "spark", "".join(draw("spark", one, label="gap over time") for one in sparks)
    small = draw("spark", samples.spark(12), label="gap over time", width=110)
    yield "spark in a table", "cell", small
    gaps = [(-0.2, -2.1, 1.8), (-12, -18, -6), (-22, -42, -1), (18, 9, 60), (2, 1, 2.5)]
    bars = [draw("gap", samples.gap(*one), label="gap") for one in gaps]
    yield "gap", "bars", "".join(bars)
    last = samples.intervals()
    yield "intervals", "wide", draw("intervals", last, label="labels", width=1_060)
    for place, width in PLACES.items():
        yield (
            "over time",
            f"{place} two",
            "".join(draw("over_time", one, label="over time", width=width) for one in over_time()),
        )
        figures = [draw("reliability", one, label="came", width=width) for one in reliability()]
        labels = [last, samples.intervals(20, zone=None)]
        figures += [draw("intervals", one, label="labels", width=width) for one in labels]
        weights = [samples.shares(), samples.shares(1_000)]
        figures += [draw("shares", one, label="weights", width=width) for one in weights]
        yield "reliability, intervals, shares", f"{place} two", "".join(figures)


def page() -> str:
    """Return the page, whose colours follow the reader's choice of light or dark."""
    parts = [
        f'<section><h2>{name}</h2><div class="{css}">{figures}</div></section>'
        for name, css, figures in sections()
    ]
    return f"{PAGE}{''.join(parts)}</body></html>"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")

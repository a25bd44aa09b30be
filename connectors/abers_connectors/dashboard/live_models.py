"""The words of the answers in the bar, and the list of models, as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from abers.monitoring.answers import formats
from abers.pages.figures import sign
from abers.pages.html_text import escape
from abers_connectors.dashboard.models import key_id, key_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers.pages.blocks import AnswerBlock
    from abers_connectors.dashboard.model_states import ListedStatus
    from abers_connectors.dashboard.models import Key
    from abers_connectors.runtime.largest_models import LargeModel

__all__ = ["chips", "largest_table", "models_table"]

_CHIPS = {"Model": "model", "Calibrated": "served", "Pays": "pays"}
_WORDS = {"yes": "right"}
_HEADS = (
    '<th scope="col">model</th><th scope="col" class="some">labels</th>'
    '<th scope="col" class="left">raw</th><th scope="col" class="left">calibrated</th>'
    '<th scope="col" class="much">wrong at least (raw)</th>'
)

_LARGEST = "Models with the largest shares of the predictions in the last 5 to 10 minutes"
_LARGEST_HEADS = (
    '<th scope="col">model</th><th scope="col">share</th>'
    '<th scope="col" class="some">predictions</th><th scope="col">memory, about</th>'
)
_MIB = 1 << 20


def chips(cards: Iterable[AnswerBlock]) -> str:
    """Return the words of the answers, each with its sign."""
    return "".join(
        _mark(card.state, f"{_CHIPS[card.name]}: {(card.word or card.state).lower()}", keep=True)
        for card in cards
    )


def models_table(models: Sequence[ListedStatus], sentence: str, shown: Key | None) -> str:
    """Return a table of models, each a link, under a sentence that says which they are."""
    rows = "".join(_row(one, one.key == shown) for one in models)
    said = f'<p class="why">{escape(sentence)}</p>' if sentence else ""
    return (
        f"{said}<table><caption>Models, the worst first</caption><thead><tr>{_HEADS}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def largest_table(largest: Sequence[LargeModel]) -> str:
    """Return a table of the models with the largest shares; empty without any."""
    if not largest:
        return ""
    rows = "".join(
        f'<tr><th scope="row" class="long">{escape(one.model or "default")}</th>'
        f"<td>{100 * one.share:.1f} %</td>"
        f'<td class="some">{formats.count(one.predictions)}</td>'
        f"<td>{one.bytes / _MIB:,.1f} MiB</td></tr>"
        for one in largest
    )
    return (
        f'<p class="why">{_LARGEST}.</p><table><caption>{_LARGEST}</caption>'
        f"<thead><tr>{_LARGEST_HEADS}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _row(one: ListedStatus, is_shown: bool) -> str:  # noqa: FBT001 - it is named where it is made
    name, found = key_name(one.key) or "default", one.found
    where = ' aria-current="page"' if is_shown else ""
    alarm = " (alarm)" if one.status.active else ""
    link = f'<a href="/?model={escape(quote(key_id(one.key)))}"{where}>{escape(name)}</a>{alarm}'
    cells = [f'<td class="some">{formats.count(one.status.labels)}</td>']
    for question in ("model", "calibrated"):
        state = found and found.states[question]
        word = _mark(state, _WORDS.get(state, state)) if state else ""
        cells.append(f'<td class="left">{word}</td>')
    cells.append(f'<td class="much">{_wrong(one)}</td>')
    return f'<tr><th scope="row" class="long">{link}</th>{"".join(cells)}</tr>'


def _wrong(one: ListedStatus) -> str:
    """Return by how many labels promises are wrong at least, raw in brackets."""
    if one.found is None or one.found.states["calibrated"] == "waiting":
        return ""
    raw = one.found.raw_wrong_by
    behind = "" if raw is None else f' <span class="soft">({formats.count(raw)})</span>'
    return f"{formats.count(one.found.wrong_by)}{behind}"


def _mark(state: str, words: str, *, keep: bool = False) -> str:
    kept = " keep" * keep
    return f'<span class="mark {state}{kept}">{sign(state)}<span>{escape(words)}</span></span>'

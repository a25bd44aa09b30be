"""The outputs of all kinds as the rows of a table, which the functions of engines return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.arrays import require_pyarrow
from abers.stream.columns import Events
from abers.stream.processor import Processor
from abers.stream.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from abers.stream.outputs import ArrowOutputs

__all__ = ["one_table", "table_schema"]

_KINDS = {
    "predictions": "prediction",
    "outcomes": "outcome",
    "dead_letters": "dead_letter",
    "alarms": "alarm",
}


def one_table(outputs: ArrowOutputs) -> pa.Table:
    """Return outputs as a table.

    Parameters
    ----------
    outputs
        By kind, as `Outputs.to_arrow` or `process_history` gives them.

    Returns
    -------
    pyarrow.Table
        A row for each output, first all predictions. `kind` is "prediction", "outcome",
        "dead_letter" or "alarm"; the other columns are those of all kinds, null where a kind has
        no such column.

    Examples
    --------
    >>> from abers.stream import Label, Observation
    >>> events = Events.of([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
    >>> table = one_table(Processor().process_batch(events).to_arrow())
    >>> table.select(["kind", "id", "p", "label"]).to_pylist()[1]
    {'kind': 'outcome', 'id': 'a', 'p': 0.5, 'label': 1}
    """
    arrow = require_pyarrow()
    tables = [
        table.add_column(0, "kind", arrow.repeat(arrow.scalar(_KINDS[name]), len(table)))
        for name, table in outputs._asdict().items()
        if table is not None
    ]
    return arrow.concat_tables(tables, promote_options="default")


def table_schema(settings: Settings | None = None) -> pa.Schema:
    """Return the schema of `one_table`, with outcomes, for engines that ask for it beforehand.

    Parameters
    ----------
    settings
        Those that make the outputs.

    Returns
    -------
    pyarrow.Schema
        Of the table of any outputs with these settings.

    Examples
    --------
    >>> table_schema().names[:5]
    ['kind', 'v', 'id', 'time', 'model']
    """
    processor = Processor(settings or Settings())
    return one_table(processor.process_batch(Events.of([])).to_arrow()).schema

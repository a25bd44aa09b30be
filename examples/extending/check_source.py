"""Check the contract of a source on the table that `make_table.py` wrote."""

from tests.connectors.sources.contract import check_source

from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.registry import open_source

check_source(open_source("sqlite://scores.db/scores", SourceOptions()))

"""Models on engines such as Spark, Flink, Dask and Ray: streams, and long histories."""

from abers.engines.keyed_model import KeyedModel, KeyedState
from abers.engines.model_stream import process_history
from abers.engines.one_table import one_table, table_schema

__all__ = ["KeyedModel", "KeyedState", "one_table", "process_history", "table_schema"]

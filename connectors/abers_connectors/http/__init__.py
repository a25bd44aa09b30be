"""What a running service tells over HTTP: health and metrics."""

from abers_connectors.http.serving import serving

__all__ = ["serving"]

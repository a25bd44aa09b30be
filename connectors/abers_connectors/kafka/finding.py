"""What a look at the brokers finds."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Finding"]


class Finding(NamedTuple):
    """Something that is wrong with a topic, or may be.

    Parameters
    ----------
    where
        The dotted path of the key that names it.
    text
        What is wrong, and how to mend it.
    fatal
        Whether a service must not start with it.

    Examples
    --------
    >>> print(Finding("kafka.labels", "there is no topic labels"))
    kafka.labels: there is no topic labels
    """

    where: str
    text: str
    fatal: bool = True

    def __str__(self) -> str:
        """Give both as one sentence."""
        return f"{self.where}: {self.text}"

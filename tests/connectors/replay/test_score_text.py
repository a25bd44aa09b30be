"""Mean scores as text, of labels in any unit."""

from __future__ import annotations

import pytest

from abers_connectors.terminal import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0000"),
        (0.001, "0.0010"),
        (0.00044, "4.400e-04"),
        (-2.5e-10, "-2.500e-10"),
        (5e-324, "4.941e-324"),
        (99.99, "99.9900"),
        (123_456_789.0, "123,456,789.00"),
        (1.2e9, "1.200e+09"),
        (-1.7e308, "-1.700e+308"),
    ],
)
def test_it_tells_any_mean_in_a_few_figures(value: float, text: str) -> None:
    """Small losses are not shown as 0, and huge ones stay short."""
    assert number(value) == text

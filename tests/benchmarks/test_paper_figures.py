"""The figures of the paper show what is measured, and can be read in grey."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from benchmarks.paper_figures import costs, pictures

pytestmark = pytest.mark.native


@pytest.mark.parametrize("name", ["diagram", "cost", "delay", "broken"])
def test_a_figure_is_an_image_with_a_title_and_without_a_colour_to_tell_curves(name: str) -> None:
    """It is XML with a title; lines differ by dashes, and take their colour from the style."""
    text = pictures()[f"paper_{name}.svg"]
    root = ET.fromstring(text)  # noqa: S314 - our own
    assert root[0].tag.endswith("title")
    assert root[0].text
    assert not [one for one in root.iter() if "stroke" in one.attrib or "fill" in one.attrib]


def test_costs_are_those_of_the_page() -> None:
    """Each contender has a cost at each number of labels that the table has."""
    found = costs()
    assert [*found["abers native"]] == [1_000, 10_000, 100_000, 1_000_000]
    assert 1_000_000 not in found["venn-abers"]
    assert all(cost > 0.0 for curve in found.values() for cost in curve.values())


def test_the_diagram_names_both_probabilities() -> None:
    """Those of the query in the bag of twenty."""
    text = pictures()["paper_diagram.svg"]
    assert "p₀ = 1/3" in text
    assert "p₁ = 1/2" in text

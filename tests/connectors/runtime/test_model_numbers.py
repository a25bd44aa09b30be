from __future__ import annotations

from abers_connectors.runtime.label_routes import ModelNumbers


def test_free_numbers_are_searched_seldom() -> None:
    """While all numbers are in use a search takes place for a quarter as many further models."""
    numbers, searches = ModelNumbers(100), 0

    def in_use() -> range:
        nonlocal searches
        searches += 1
        return range(100)

    found = [numbers.of(f"model {number}", in_use) for number in range(1_100)]
    assert found == [*range(100), *[None] * 1_000]
    assert searches == 1_000 // 26 + 1


def test_numbers_go_on_from_their_names() -> None:
    """Numbers made from names and count give further models the same numbers."""
    numbers = ModelNumbers(4)
    for model in "abcdef":
        numbers.of(model, lambda: [2])
    other = ModelNumbers(4, numbers.names, numbers.since)
    for model in "ghcij":
        assert numbers.of(model, lambda: [0, 1]) == other.of(model, lambda: [0, 1])
        assert numbers.names == other.names

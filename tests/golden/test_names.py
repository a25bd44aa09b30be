"""The map of names: names change, and neither values nor the order of anything."""

from __future__ import annotations

from typing import Any

from tests.golden.names import Names
from tests.golden.outputs import renamed, text
from tests.golden.tables import compacted, named, table

ALARMS: list[dict[str, Any]] = [
    {"model": "m", "line": 2.5, "sentence": "It rings.", "at": {"topic": "t", "offset": 3}},
    {"model": "n", "line": 4.0, "sentence": "No line.", "at": {"topic": "u", "offset": 5}},
]


def same(known: dict[str, Any], kind: str, old: Any, new: Any) -> None:  # noqa: ANN401 - records
    """Require that a map makes of a table of old records that of new ones."""
    names = Names(known)
    was = names.table(compacted(table(kind, old, names), names))
    assert text(was) == text(compacted(named(table(kind, new, names), was), names))


def test_an_empty_map_changes_nothing() -> None:
    """Without names, a table is as it was."""
    same({}, "alarm", ALARMS, ALARMS)


def test_a_field_is_renamed_where_it_stands() -> None:
    """A field keeps its place and its values, which are not renamed."""
    known = {"fields": {"alarm": {"line": "log_threshold", "at.offset": "at.position"}}}
    new = [
        {
            "model": one["model"],
            "log_threshold": one["line"],
            "sentence": one["sentence"],
            "at": {"topic": one["at"]["topic"], "position": one["at"]["offset"]},
        }
        for one in ALARMS
    ]
    same(known, "alarm", ALARMS, new)
    found = Names(known).table(table("alarm", ALARMS))
    assert [*found["columns"]] == ["model", "log_threshold", "sentence", "at.topic", "at.position"]


def test_another_order_is_seen() -> None:
    """Records with the same fields in another order are not the same."""
    turned = [dict(reversed(one.items())) for one in ALARMS]
    assert text(table("alarm", ALARMS)) != text(table("alarm", turned))


def test_a_field_of_another_kind_stays() -> None:
    """Names are those of a kind, and of what is part of it."""
    known = {"fields": {"report": {"line": "threshold"}}}
    same(known, "alarm", ALARMS, ALARMS)
    same(known, "report.tests", [{"line": 1}], [{"threshold": 1}])


def test_a_record_takes_its_fields_along() -> None:
    """A nested record is renamed with all that is in it, and so are records in a list."""
    known = {"fields": {"alarm": {"at": "where"}, "run": {"rows": "steps"}, "run.rows": {"a": "b"}}}
    new = [{"where" if name == "at" else name: v for name, v in one.items()} for one in ALARMS]
    same(known, "alarm", ALARMS, new)
    same(known, "run", [{"rows": [{"a": 1}]}], [{"steps": [{"b": 1}]}])


def test_a_sentence_that_is_renamed_and_rewritten() -> None:
    """A sentence is read whole under both names, however many there are."""
    known = {"fields": {"alarm": {"sentence": "message"}}, "texts": [["It rings", "It is active"]]}
    new = [{"message": "It is active."} for _ in range(90)]
    same(known, "alarm", [{"sentence": "It rings."} for _ in range(90)], new)


def test_values_and_units() -> None:
    """A value from a fixed set has another name; a number another unit."""
    known = {
        "config": {"output.max_dead_per_1000": "output.max_dead_letter_ratio"},
        "units": {"config": {"output.max_dead_per_1000": 1000}},
        "values": {"config": {"calibrator.distributions": {"judged": "scored"}}},
    }
    old = {"output.max_dead_per_1000": 100, "calibrator.distributions": "judged", "a": None}
    new = {"output.max_dead_letter_ratio": 0.1, "calibrator.distributions": "scored", "a": None}
    assert text(Names(known).config(old)) == text(new)


def test_codes() -> None:
    """A reason is renamed wherever it stands, and nothing else that is written so."""
    known = {"codes": {"bad-id": "invalid-id"}}
    old = {"reason": "bad-id", "id": "bad-id", "counts": {"bad-id": 3}}
    new = {"reason": "invalid-id", "id": "bad-id", "counts": {"invalid-id": 3}}
    same(known, "dead_letter", [old], [new])
    line = Names(known).metric('abers_dead_letters_total{reason="bad-id"} 3.0')
    assert line == 'abers_dead_letters_total{reason="invalid-id"} 3.0'


def test_fields_that_are_new_or_gone() -> None:
    """A field may be new, or declared as no longer there."""
    known = {"fields": {"changelog": {"held": None}}}
    same(known, "changelog", [{"ids": 1, "held": 2}], [{"rows": 0, "ids": 1}])


def test_metrics() -> None:
    """A family is renamed with its samples, and no other whose name begins alike."""
    known = {
        "metrics": {"abers_commits": "abers_transactions_committed"},
        "texts": [["up", "away"]],
    }
    lines = [
        "# HELP abers_commits_total Not given up.",
        "# TYPE abers_commits_total counter",
        "abers_commits_total 3.0",
        'abers_commits_bucket{le="up"} 3.0',
        "abers_commits_late_total 1.0",
    ]
    assert renamed({"metrics": lines}, Names(known)) == {
        "metrics": [
            "# HELP abers_transactions_committed_total Not given away.",
            "# TYPE abers_transactions_committed_total counter",
            "abers_transactions_committed_total 3.0",
            'abers_transactions_committed_bucket{le="up"} 3.0',
            "abers_commits_late_total 1.0",
        ]
    }


def test_what_an_old_file_does_not_name() -> None:
    """New fields, metrics, labels, lines and columns are not compared, wherever they stand."""
    old = {
        "alarms": table("alarm", [{"a": 1, "runs": [{"b": 1}]}, {"a": 2}]),
        "metrics": ['abers_x{m="1"} 1.0', "abers_y 1.0"],
        "stderr": ["model labels", "─", "m 12"],
    }
    now = {
        "alarms": table("alarm", [{"n": 0, "a": 1, "runs": [{"n": 0, "b": 1}]}, {"a": 2}]),
        "metrics": ['abers_x{m="1",p="0"} 1.0', 'abers_n{m="1"} 1.0', 'abers_y{p="0"} 1.0'],
        "stderr": ["a new line", "model labels new", "─", "m 12 0.5"],
        "topic": table("topic", [{"a": 1}]),
    }
    assert text(compacted(named(now, old))) == text(compacted(old))


def test_what_an_old_file_names() -> None:
    """Another value, a field or a row that is gone, and a line that is gone are seen."""
    alarms, lines = table("alarm", [{"a": 1, "b": 1}, {"a": 2}]), ["m 12", "n 3"]
    old = {"alarms": alarms, "stderr": lines, "metrics": ['abers_x{m="1"} 1.0']}
    for other in (
        {"alarms": table("alarm", [{"a": 1, "b": 1}, {"a": 3}])},
        {"alarms": table("alarm", [{"a": 1}, {"a": 2, "b": 1}])},
        {"alarms": table("alarm", [{"a": 1}, {"a": 2}])},
        {"alarms": table("alarm", [{"a": 1, "b": 1}])},
        {"stderr": ["m 12"]},
        {"stderr": ["m 121", "n 3"]},
        {"stderr": ["n 3", "m 12"]},
        {"metrics": ['abers_x{m="2"} 1.0']},
    ):
        assert text(compacted(named(old | other, old))) != text(compacted(old))


def test_options() -> None:
    """An option may become several words."""
    known = {"options": {"--probabilities": ["--scores", "probability"]}}
    words = Names(known).words(["replay", "--probabilities", "x.csv"])
    assert words == ["replay", "--scores", "probability", "x.csv"]

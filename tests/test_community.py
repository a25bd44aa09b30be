"""The files that a host of repositories reads: the citation, and the forms of issues."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]+))?\)")
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def read(path: Path) -> Any:  # noqa: ANN401 - YAML
    """Read a file of YAML."""
    return YAML(typ="safe").load(path.read_text("utf-8"))


def found_by(schema: str, path: Path) -> str:
    """Return what a published schema finds wrong with a file; empty if nothing."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr if ran.returncode else ""


@pytest.mark.parametrize("form", FORMS, ids=lambda one: one.name)
def test_forms(form: Path) -> None:
    """Each form of issues fits the published schema."""
    kind = "config" if form.stem == "config" else "forms"
    assert not found_by(f"vendor.github-issue-{kind}", form)


def test_a_wrong_form_is_found(tmp_path: Path) -> None:
    """The check fails for a form without a description."""
    (wrong := tmp_path / "wrong.yml").write_text("name: x\nbody: []\n")
    assert "description" in found_by("vendor.github-issue-forms", wrong)


def test_fields_have_an_id_each() -> None:
    """Each field that can be filled in has its own id, and asks something."""
    for form in FORMS:
        fields = [one for one in read(form).get("body", []) if one["type"] != "markdown"]
        assert len({one["id"] for one in fields}) == len(fields)
        assert all(one["attributes"]["label"] for one in fields)


def test_the_citation() -> None:
    """CITATION.cff fits its schema, and says what the distribution says."""
    path = ROOT / "CITATION.cff"
    assert not found_by("vendor.citation-file-format", path)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = read(path)
    assert str(citation["version"]) == project["version"]
    assert citation["license"] == project["license"]
    assert citation["keywords"] == project["keywords"]
    assert [one["name"] for one in citation["authors"]] == [
        one["name"] for one in project["authors"]
    ]
    assert citation["title"] == f"{project['name']}: {_lower(project['description'])}"


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(name: str) -> None:
    """Each link to a file of the checkout has its file and, if it names one, its heading."""
    links = LINK.findall((ROOT / name).read_text("utf-8"))
    assert links
    for path, anchor in links:
        target = ROOT / (path or name)
        assert target.is_file(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page: those of its headings, and those that it names itself."""
    text = path.read_text("utf-8")
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
    return plain | {*re.findall(r'<a id="([^"]+)">', text)}


def test_templates_name_files_that_exist() -> None:
    """Each file that a template names is in the checkout."""
    templates = [*FORMS, ROOT / ".github" / "pull_request_template.md"]
    named = {
        name for one in templates for name in re.findall(r"[\w/]+\.md", one.read_text("utf-8"))
    }
    assert {"SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/api_promise.md"} <= named
    assert all((ROOT / name).is_file() for name in named)

"""What a release is made of: workflows, locks and the configuration of wheels."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.files import linted, read

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
LOCKS = sorted((ROOT / "locks").glob("*.txt"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEELS = PROJECT["tool"]["cibuildwheel"]


def commands(workflow: Path) -> list[str]:
    """Return what the steps of a workflow run."""
    jobs = read(workflow)["jobs"].values()
    return [step["run"] for job in jobs for step in job.get("steps", ()) if "run" in step]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda one: one.stem)
def test_a_workflow_has_the_schema(workflow: Path) -> None:
    """Each workflow has the schema of GitHub."""
    linted("check-jsonschema", "--builtin-schema", "vendor.github-workflows", workflow)


def test_what_is_pinned_is_renewed() -> None:
    """Dependabot proposes newer digests of the base image and newer commits of actions."""
    settings = ROOT / ".github" / "dependabot.yml"
    linted("check-jsonschema", "--builtin-schema", "vendor.dependabot", settings)
    renewed = {(one["package-ecosystem"], one["directory"]) for one in read(settings)["updates"]}
    assert renewed == {("docker", "/deploy"), ("github-actions", "/")}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda one: one.stem)
def test_a_workflow_runs_what_the_checkout_has(workflow: Path) -> None:
    """Targets of make are in the Makefile, and scripts are in the checkout."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in commands(workflow):
        assert set(re.findall(r"\bmake ([\w-]+)", command)) <= targets
        assert all(
            (ROOT / name).is_file() for name in re.findall(r"(?:scripts|\.ci)/[\w-]+", command)
        )


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda one: one.stem)
def test_a_workflow_may_do_little(workflow: Path) -> None:
    """Rights are given job by job, actions have the hash of a commit, and no secret is read."""
    text = workflow.read_text()
    assert read(workflow)["permissions"] == {}
    actions = re.findall(r"uses: (?!\./)(\S+)(.*)", text)
    assert all(re.search(r"@[0-9a-f]{40}$", name) for name, _ in actions)
    assert all(re.fullmatch(r" # v[\d.]+", version) for _, version in actions)
    assert "secrets." not in text


def test_only_the_release_may_publish() -> None:
    """Nothing but the job `publish` of a release has the identity that the package index trusts."""
    trusted = {
        (workflow.stem, name)
        for workflow in WORKFLOWS
        for name, job in read(workflow)["jobs"].items()
        if job.get("permissions", {}).get("id-token")
    }
    assert trusted == {("release", "publish"), ("docs", "publish")}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda one: one.stem)
def test_a_lock_has_hashes_and_no_address(lock: Path) -> None:
    """Each line pins one version with its hashes; no index is named."""
    text = lock.read_text()
    assert "://" not in text
    entries = re.split(r"\n(?=\S)", text.strip())
    assert entries
    for entry in entries:
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+( ; [^\\]+)? \\\n", entry), entry
        assert "--hash=sha256:" in entry


def test_locks_have_the_versions_of_the_tests() -> None:
    """What is locked for the container has the version that the tests ran with."""
    pinned = set(re.findall(r"^([\w.-]+==[\w.]+)", _constraints(), re.MULTILINE))
    locked = set()
    for name in ("run", "build"):
        text = (ROOT / "locks" / f"{name}.txt").read_text()
        lines = [line for line in text.splitlines() if "sys_platform == 'win32'" not in line]
        locked |= {found[0] for line in lines if (found := re.match(r"[\w.-]+==[\w.]+", line))}
    assert locked
    assert locked <= pinned


def _constraints() -> str:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return "\n".join(re.sub(r"^[\w.-]+", _normal, line) for line in lines)


def _normal(name: re.Match[str]) -> str:
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_wheels_are_built_for_what_is_declared() -> None:
    """The oldest Python and the one of the stable ABI are built, on every declared system."""
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=").replace(".", "")
    assert WHEELS["build"] == [
        f"cp{oldest}-*",
        f"{PROJECT['tool']['scikit-build']['wheel']['py-api']}-*",
    ]
    systems = {"POSIX :: Linux": "linux", "MacOS": "macos", "Microsoft :: Windows": "windows"}
    declared = {
        one.removeprefix("Operating System :: ")
        for one in PROJECT["project"]["classifiers"]
        if one.startswith("Operating System")
    }
    assert {systems[one] for one in declared} <= WHEELS.keys()


def test_the_core_runs_on_every_processor() -> None:
    """No option of the build asks for more than the processors of the platform have."""
    sources = [
        ROOT / "CMakeLists.txt",
        ROOT / "pyproject.toml",
        *(ROOT / "engine").rglob("_core/*.?pp"),
    ]
    assert len(sources) > 40
    found = [one.name for one in sources if re.search(r"-m(arch|tune|cpu)=", one.read_text())]
    assert found == []


def test_what_a_wheel_must_print_is_printed() -> None:
    """The check that each wheel must pass, `scripts/smoke`, passes for this environment."""
    command = [str(ROOT / "scripts" / "smoke"), sys.executable]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_what_is_released_has_licences() -> None:
    """Each licence that a script adds to the SBOM is of a package that the container has."""
    table = (ROOT / "scripts" / "licences").read_text()
    named = re.findall(r'^    "([\w-]+)":', table, re.MULTILINE)
    locked = (ROOT / "locks" / "run.txt").read_text()
    assert named
    assert [one for one in named if f"\n{one}==" not in locked] == []

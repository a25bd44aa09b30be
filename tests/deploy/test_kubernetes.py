"""The manifests for Kubernetes: valid by its schemas, and of one piece."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from starlette.routing import Route
from tests.deploy.files import DEPLOY, linted, read

from abers_connectors.config import load
from abers_connectors.http.app import app_of
from abers_connectors.kafka.status import Status

FILES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
KINDS: dict[str, Any] = {one["kind"]: one for one in map(read, FILES)}
STATEFULSET = KINDS["StatefulSet"]["spec"]
POD = STATEFULSET["template"]["spec"]
(CONTAINER,) = POD["containers"]
CONFIGURATION = tomllib.loads(KINDS["ConfigMap"]["data"]["abers.toml"])


def test_there_is_all() -> None:
    """There is what a service needs: pods that keep their names, probes, and a budget."""
    assert {*KINDS} == {"ConfigMap", "PodDisruptionBudget", "Service", "StatefulSet"}


@pytest.mark.parametrize("version", ["1.29", "1.34"])
def test_schemas(version: str) -> None:
    """Each manifest is valid, without unknown keys, in old and new versions of Kubernetes."""
    linted("kubernetes-validate", "--strict", "-k", version, *FILES)


def test_the_configuration() -> None:
    """The configuration is one, and a pod's name is its instance."""
    environ = {one["name"]: one["name"] for one in CONTAINER["env"]}
    assert environ.pop("ABERS_KAFKA__INSTANCE")
    config = load(flags=CONFIGURATION, environ=environ | {"ABERS_KAFKA__INSTANCE": "abers-2"})
    assert config.kafka is not None
    assert config.kafka.instance == "abers-2"
    (instance,) = [one for one in CONTAINER["env"] if one["name"] == "ABERS_KAFKA__INSTANCE"]
    assert instance["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    (listening,) = CONTAINER["ports"]
    assert listening["containerPort"] == config.http.port
    assert config.http.host == "0.0.0.0"  # noqa: S104 - the probes come from outside of the pod


def test_what_it_names_is_mounted() -> None:
    """The configuration, the authorities and the snapshots are where it looks for them."""
    mounted = {one["mountPath"]: one["name"] for one in CONTAINER["volumeMounts"]}
    assert mounted["/etc/abers"] == "configuration"
    assert CONTAINER["args"] == ["run", "/etc/abers/abers.toml"]
    cafile = CONFIGURATION["kafka"]["security"]["cafile"]
    assert mounted[cafile.rpartition("/")[0]] == "ca"
    (claim,) = STATEFULSET["volumeClaimTemplates"]
    assert mounted[CONFIGURATION["state"]["path"]] == claim["metadata"]["name"]
    claims = {claim["metadata"]["name"], *(one["name"] for one in POD["volumes"])}
    assert {*mounted.values()} == claims


def test_probes() -> None:
    """Kubernetes asks for pages that are there; a pod that restores is alive and not ready."""
    paths = {route.path for route in app_of(Status(60.0)).routes if isinstance(route, Route)}
    probes = {
        name: CONTAINER[f"{name}Probe"]["httpGet"]["path"]
        for name in ("startup", "liveness", "readiness")
    }
    assert probes == {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}
    assert {*probes.values()} < paths


def test_one_label_for_all() -> None:
    """Service, budget and pods mean the same pods."""
    label = STATEFULSET["template"]["metadata"]["labels"]
    assert STATEFULSET["selector"]["matchLabels"] == label
    assert KINDS["Service"]["spec"]["selector"] == label
    assert KINDS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == label
    assert KINDS["Service"]["metadata"]["name"] == STATEFULSET["serviceName"]


def test_secrets_are_named_not_shown() -> None:
    """Passwords come from a secret that is not here."""
    secrets = {
        one["name"]: one["valueFrom"] for one in CONTAINER["env"] if "PASSWORD" in one["name"]
    }
    assert secrets == {
        "ABERS_KAFKA_PASSWORD": {"secretKeyRef": {"name": "abers-kafka", "key": "password"}}
    }


def test_nobody_is_root() -> None:
    """A pod runs as the user of the image, without rights, and writes to its volumes only."""
    assert POD["securityContext"]["runAsNonRoot"]
    user = POD["securityContext"]["runAsUser"]
    assert f"USER {user}:{user}" in (DEPLOY / "Dockerfile").read_text()
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }

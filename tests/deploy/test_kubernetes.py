"""The manifests for Kubernetes: valid by its schemas, and of one piece."""

from __future__ import annotations

import tomllib
from contextlib import ExitStack
from typing import Any

import pytest
from tests.deploy.files import DEPLOY, linted, read

from abers_connectors.config.model import load
from abers_connectors.metrics.exposition import health_routes
from abers_connectors.runtime.status import Status

FILES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
KINDS: dict[str, Any] = {one["kind"]: one for one in map(read, FILES)}
STATEFULSET = KINDS["StatefulSet"]["spec"]
POD = STATEFULSET["template"]["spec"]
(CONTAINER,) = POD["containers"]
CONFIGURATION = tomllib.loads(KINDS["ConfigMap"]["data"]["abers.toml"])


def test_there_is_all() -> None:
    """There is what a service needs: pods that keep their names, probes, a budget, a policy."""
    assert {*KINDS} == {
        *("ConfigMap", "NetworkPolicy", "PodDisruptionBudget"),
        *("Service", "ServiceAccount", "StatefulSet"),
    }


@pytest.mark.parametrize("version", ["1.29", "1.34"])
def test_schemas(version: str) -> None:
    """Each manifest is valid, without unknown keys, in old and new versions of Kubernetes."""
    linted("kubernetes-validate", "--strict", "-k", version, *FILES)


def test_the_configuration() -> None:
    """The configuration is one, and a pod's name is its instance."""
    environ = {one["name"]: one.get("value", one["name"]) for one in CONTAINER["env"]}
    assert environ.pop("ABERS_KAFKA__GROUP_INSTANCE_ID")
    config = load(
        flags=CONFIGURATION, environ=environ | {"ABERS_KAFKA__GROUP_INSTANCE_ID": "abers-2"}
    )
    assert config.kafka is not None
    assert config.kafka.group_instance_id == "abers-2"
    (instance,) = [
        one for one in CONTAINER["env"] if one["name"] == "ABERS_KAFKA__GROUP_INSTANCE_ID"
    ]
    assert instance["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    (listening,) = CONTAINER["ports"]
    assert listening["containerPort"] == config.http.port
    assert config.http.host == "0.0.0.0"  # noqa: S104 - the probes come from outside of the pod
    assert config.http.check_host


def test_what_it_names_is_mounted() -> None:
    """The configuration, the authorities and the snapshots are where it reads them."""
    mounted = {one["mountPath"]: one["name"] for one in CONTAINER["volumeMounts"]}
    assert mounted["/etc/abers"] == "configuration"
    assert CONTAINER["args"] == ["run", "/etc/abers/abers.toml"]
    cafile = CONFIGURATION["kafka"]["security"]["cafile"]
    (authorities,) = [one for one in POD["volumes"] if "secret" in one]
    assert mounted[cafile.rpartition("/")[0]] == authorities["name"]
    assert cafile.rpartition("/")[2] in [one["path"] for one in authorities["secret"]["items"]]
    (claim,) = STATEFULSET["volumeClaimTemplates"]
    assert mounted[CONFIGURATION["state"]["path"]] == claim["metadata"]["name"]
    claims = {claim["metadata"]["name"], *(one["name"] for one in POD["volumes"])}
    assert {*mounted.values()} == claims


def test_the_pods_have_no_rights_in_the_cluster() -> None:
    """The account has no token, and neither have the pods that use it."""
    account = KINDS["ServiceAccount"]
    assert account["automountServiceAccountToken"] is POD["automountServiceAccountToken"] is False
    assert POD["serviceAccountName"] == account["metadata"]["name"]


def test_probes() -> None:
    """Kubernetes asks for pages that are there; a pod that restores is alive and not ready."""
    with ExitStack() as stack:
        paths = {route.path for route in health_routes(Status(60.0), stack.callback)}
    probes = {
        name: CONTAINER[f"{name}Probe"]["httpGet"]["path"]
        for name in ("startup", "liveness", "readiness")
    }
    assert probes == {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}
    assert {*probes.values()} < paths


def test_one_label_for_all() -> None:
    """Service, budget, policy and pods mean the same pods."""
    label = STATEFULSET["template"]["metadata"]["labels"]
    assert STATEFULSET["selector"]["matchLabels"] == label
    assert KINDS["Service"]["spec"]["selector"] == label
    assert KINDS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == label
    assert KINDS["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == label
    assert KINDS["Service"]["metadata"]["name"] == STATEFULSET["serviceName"]


def test_who_reaches_a_pod() -> None:
    """Prometheus and readers of the live page reach the one port, and no other pod reaches any."""
    spec = KINDS["NetworkPolicy"]["spec"]
    assert spec["policyTypes"] == ["Ingress"]
    (rule,) = spec["ingress"]
    (listening,) = CONTAINER["ports"]
    assert rule["ports"] == [{"protocol": "TCP", "port": listening["name"]}]
    assert all(one["podSelector"]["matchLabels"] for one in rule["from"])
    prometheus, _ = rule["from"]
    assert {*prometheus} == {"namespaceSelector", "podSelector"}  # both, not either


def test_a_page_that_the_cluster_reaches_asks_for_a_token() -> None:
    """What the manifests say is nothing that `abers check` warns of, and nothing that it lacks."""
    (token,) = [one for one in CONTAINER["env"] if one["name"] == "ABERS_HTTP_TOKEN"]
    assert token["valueFrom"] == {"secretKeyRef": {"name": "abers-http", "key": "token"}}


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


OPERATOR = DEPLOY / "kubernetes" / "prometheus-operator"


def test_the_prometheus_operator_has_the_rules() -> None:
    """The rules of the operator are those of deploy/rules.yml, and it selects them."""
    rules = read(OPERATOR / "prometheusrule.yaml")
    assert rules["spec"] == read(DEPLOY / "rules.yml")
    monitor = read(OPERATOR / "podmonitor.yaml")
    for one, kind in ((rules, "PrometheusRule"), (monitor, "PodMonitor")):
        assert {*one} == {"apiVersion", "kind", "metadata", "spec"}
        assert (one["apiVersion"], one["kind"]) == ("monitoring.coreos.com/v1", kind)
        assert one["metadata"]["name"] == "abers"
        assert one["metadata"]["labels"]["release"]


def test_the_prometheus_operator_reaches_the_pods() -> None:
    """The monitor selects the pods and their port; the operator's job is its namespace and name."""
    spec = read(OPERATOR / "podmonitor.yaml")["spec"]
    assert {*spec} == {"selector", "podMetricsEndpoints"}
    label = STATEFULSET["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == label
    (endpoint,) = spec["podMetricsEndpoints"]
    (listening,) = CONTAINER["ports"]
    assert endpoint == {"port": listening["name"], "path": "/metrics", "interval": "15s"}

"""The Helm chart: its values are checked, and it renders what deploy/kubernetes has.

The tests marked `long` run Helm, which `scripts/helm` compiles where there is none.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import tomllib
from io import StringIO
from math import ceil
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.saved import BASE, MIB, formula
from jsonschema import Draft7Validator
from ruamel.yaml import YAML
from tests.deploy.files import DEPLOY, linted, read

from abers_connectors.config.model import Config, load
from abers_connectors.http.credentials import ServeTokens

if TYPE_CHECKING:
    from pathlib import Path

ROOT = DEPLOY.parent
CHART = DEPLOY / "helm" / "abers"
VALUES: dict[str, Any] = read(CHART / "values.yaml")
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
KINDS = ("predict", "label", "read")
KEDA = {
    "keda.enabled": "true",
    "keda.bootstrapServers": "kafka-0:9092",
    "keda.consumerGroup": "fraud-calibration",
    "keda.topic": "fraud.scores",
}
SERVED: dict[str, Any] = {"serve": VALUES["serve"] | {"enabled": True}}
KEDA_ON = VALUES["keda"] | {
    **dict.fromkeys(("bootstrapServers", "consumerGroup", "topic"), "a"),
    "enabled": True,
}
VARIANTS: dict[str, dict[str, str]] = {
    "defaults": {},
    "one replica": {"replicas": "1"},
    "the Prometheus operator": {"prometheusOperator.enabled": "true"},
    "KEDA": KEDA | {"keda.authentication": "abers-kafka"},
    "a ConfigMap and a bucket": {
        "existingConfigMap": "mine",
        "snapshots.volume": "false",
        "variables.AWS_REGION": "eu-west-1",
        "serviceAccount.annotations.role": "reader",
    },
    "a server": {"serve.enabled": "true", "serve.hosts[0]": "abers.example.com"},
    "no secrets": {
        "secretVariables": "null",
        "secretFolders": "null",
        "createTopics": "true",
    },
    "an image by its digest": {
        "image.digest": "sha256:" + 64 * "0",
        "image.pullSecrets[0]": "registry",
        "snapshots.storageClass": "fast",
        "nodeSelector.disk": "ssd",
        "tolerations[0].key": "stream",
    },
}


def mistakes(changed: dict[str, Any]) -> list[str]:
    """Return what the schema refuses in the default values with changes."""
    return [one.message for one in Draft7Validator(SCHEMA).iter_errors(VALUES | changed)]


def test_the_version() -> None:
    """The chart has the version of the package, and the image is that of the chart by default."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = read(CHART / "Chart.yaml")
    assert chart["version"] == chart["appVersion"] == project["version"]
    assert VALUES["image"]["tag"] == VALUES["image"]["digest"] == ""


def test_the_default_values() -> None:
    """The schema is one, knows every default value, and refuses none."""
    Draft7Validator.check_schema(SCHEMA)
    assert mistakes({}) == []
    assert {*SCHEMA["properties"]} == {*VALUES, "global"}  # Helm passes `global` to every chart


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"replica": 3}, "replica"),
        ({"replicas": 0}, "less than the minimum"),
        ({"networkPolicy": {"from": []}}, "non-empty"),  # would admit everybody
        ({"keda": VALUES["keda"] | {"enabled": True}}, "non-empty"),
        ({"variables": {"ABERS_KAFKA_PASSWORD": "s3cret"}}, "should not be valid"),
        ({"image": VALUES["image"] | {"digest": "sha256:1"}}, "does not match"),
        (SERVED | {"keda": KEDA_ON}, "False was expected"),
        (SERVED | {"snapshots": VALUES["snapshots"] | {"volume": False}}, "True was expected"),
    ],
)
def test_a_mistake(changed: dict[str, Any], said: str) -> None:
    """A misspelled key, an open policy, half a ScaledObject or a secret is refused.

    So is a server of several pods, or without a volume.
    """
    assert said in " ".join(mistakes(changed))


def test_the_rules_are_not_copied() -> None:
    """The rules of the chart are deploy/rules.yml itself."""
    assert (CHART / "rules.yml").resolve() == DEPLOY / "rules.yml"


def test_the_memory_is_that_of_the_configuration() -> None:
    """The values of the memory are the limits that the default configuration has."""
    flags = tomllib.loads(VALUES["configuration"])
    config = load(flags=flags, environ={"ABERS_KAFKA_PASSWORD": "p"})
    memory, limits = VALUES["memory"], config.settings()
    assert memory["labels"] == limits.window
    assert memory["pending"] == limits.max_pending
    assert memory["early"] == limits.max_early
    assert memory["finished"] == limits.dedup_max_ids
    assert memory["maxBytes"] == limits.max_bytes
    assert memory["protected"] == config.settings().protected


def test_the_plain_manifests_have_the_configuration() -> None:
    """deploy/kubernetes has the default configuration; `scripts/manifests` writes it."""
    manifest = read(DEPLOY / "kubernetes" / "configmap.yaml")
    assert manifest["data"]["abers.toml"] == VALUES["configuration"]


def helm(*words: object) -> str:
    """Run Helm, which must succeed, and return what it prints."""
    if shutil.which("helm") is None and shutil.which("go") is None:
        pytest.skip("install Helm, or Go to compile it")
    command = [str(ROOT / "scripts" / "helm"), *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def rendered(values: dict[str, str], *words: object) -> dict[str, Any]:
    """Return the objects that the chart makes of values, by kind."""
    flags = [one for pair in values.items() for one in ("--set", "=".join(pair))]
    text = helm("template", "abers", CHART, "--kube-version", "1.34", *flags, *words)
    return {one["kind"]: one for one in YAML(typ="safe").load_all(StringIO(text))}


def resources(values: dict[str, str]) -> tuple[int, int]:
    """Return the request and the limit of memory, in MiB."""
    pod = rendered(values)["StatefulSet"]["spec"]["template"]["spec"]
    given = pod["containers"][0]["resources"]
    request, limit = (given[name]["memory"] for name in ("requests", "limits"))
    return int(request.removesuffix("Mi")), int(limit.removesuffix("Mi"))


@pytest.mark.long
@pytest.mark.parametrize("name", VARIANTS)
def test_lint(name: str) -> None:
    """Helm finds nothing in the chart."""
    flags = [one for pair in VARIANTS[name].items() for one in ("--set", "=".join(pair))]
    helm("lint", "--strict", CHART, *flags)


@pytest.mark.long
@pytest.mark.parametrize("name", VARIANTS)
def test_schemas(name: str, tmp_path: Path) -> None:
    """What the chart makes of any values is valid, in old and new versions of Kubernetes."""
    files = []
    for kind, one in rendered(VARIANTS[name]).items():
        if kind in {"PodMonitor", "PrometheusRule", "ScaledObject"}:
            continue  # of operators, which have schemas of their own
        files.append(tmp_path / f"{kind}.yaml")
        files[-1].write_text(json.dumps(one))
    for version in ("1.29", "1.34"):
        linted("kubernetes-validate", "--strict", "-k", version, *files)


@pytest.mark.long
def test_the_plain_manifests(tmp_path: Path) -> None:
    """deploy/kubernetes is what the chart makes of the default values, to the byte."""
    helm("version")
    subprocess.run([ROOT / "scripts" / "manifests", tmp_path / "new"], check=True)
    old, new = (
        {one.relative_to(folder): one.read_text() for one in folder.rglob("*.yaml")}
        for folder in (DEPLOY / "kubernetes", tmp_path / "new")
    )
    assert old == new


@pytest.mark.long
@pytest.mark.parametrize("name", ["abers.example.toml", "abers.kafka.toml"])
def test_a_configuration_from_a_file(name: str) -> None:
    """The ConfigMap has the file to the byte, and another configuration restarts the pods."""
    objects = rendered({}, "--set-file", f"configuration={DEPLOY / name}")
    assert objects["ConfigMap"]["data"]["abers.toml"] == (DEPLOY / name).read_text()
    template = objects["StatefulSet"]["spec"]["template"]
    before = rendered({})["StatefulSet"]["spec"]["template"]
    assert template["metadata"]["annotations"] != before["metadata"]["annotations"]
    assert template["spec"] == before["spec"]


@pytest.mark.long
def test_a_configuration_of_a_workstation() -> None:
    """The probes reach a service whose file says nothing of an address."""
    objects = rendered({}, "--set-file", f"configuration={DEPLOY / 'abers.kafka.toml'}")
    (container,) = objects["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    environ = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    text = objects["ConfigMap"]["data"]["abers.toml"]
    config: Config = load(flags=tomllib.loads(text), environ=environ)
    (port,) = container["ports"]
    assert (config.http.host, config.http.port) == ("0.0.0.0", port["containerPort"])  # noqa: S104


@pytest.mark.long
def test_pods_follow_the_lag() -> None:
    """With KEDA there are at least `replicas` pods, and never more than partitions."""
    objects = rendered(VARIANTS["KEDA"] | {"replicas": "2", "partitions": "12"})
    spec = objects["ScaledObject"]["spec"]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (2, 12)
    assert "replicas" not in objects["StatefulSet"]["spec"]  # an upgrade would undo the scaling
    assert spec["scaleTargetRef"]["name"] == objects["StatefulSet"]["metadata"]["name"]
    (trigger,) = spec["triggers"]
    assert trigger["authenticationRef"] == {"name": "abers-kafka"}
    assert trigger["metadata"] == {
        "bootstrapServers": "kafka-0:9092",
        "consumerGroup": "fraud-calibration",
        "topic": "fraud.scores",
        "lagThreshold": "10000",
        "version": "2.8.0",
        "allowIdleConsumers": "false",
    }


@pytest.mark.long
def test_a_server() -> None:
    """One value switches from Kafka to HTTP: a pod with a volume, tokens, and names for clients."""
    objects = rendered(VARIANTS["a server"] | {"replicas": "3"}, "--namespace", "ml")
    stateful = objects["StatefulSet"]["spec"]
    (container,) = stateful["template"]["spec"]["containers"]
    assert stateful["replicas"] == 1
    text = objects["ConfigMap"]["data"]["abers.toml"]
    environ = {one["name"]: one.get("value", one["name"]) for one in container["env"]}
    config: Config = load(flags={"serve": {}} | tomllib.loads(text), environ=environ)
    assert config.kafka is None
    names = ("abers", "abers.ml", "abers.ml.svc", "abers.ml.svc.cluster.local")
    assert config.http.hosts == (*names, "abers.example.com")
    assert (config.http.host, config.http.port) == ("0.0.0.0", 8090)  # noqa: S104
    assert all(ServeTokens(config.http, environ).allows(kind, ()) is False for kind in KINDS)
    command, file, option, folder = container["args"]
    mounted = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    assert (command, file, option) == ("serve", "/etc/abers/abers.toml", "--data")
    (claim,) = stateful["volumeClaimTemplates"]
    assert mounted[folder.rpartition("/")[0]] == claim["metadata"]["name"]
    (rule,) = objects["NetworkPolicy"]["spec"]["ingress"]
    assert rule["from"] == VALUES["networkPolicy"]["from"] + VALUES["serve"]["from"]
    assert "kafka" not in json.dumps(objects).lower()
    limits = config.settings()
    assert VALUES["memory"]["labels"] == limits.window


@pytest.mark.long
def test_two_releases() -> None:
    """Objects of two applications in a namespace have different names and select other pods."""
    flags = "--kube-version", "1.34", "--set", "prometheusOperator.enabled=true"
    text = helm("template", "two", CHART, *flags)
    for one in YAML(typ="safe").load_all(StringIO(text)):
        assert one["metadata"]["name"] == "two"
        assert one["metadata"]["labels"]["app.kubernetes.io/instance"] == "two"
    selectors = text.count("app.kubernetes.io/name: abers\n")
    assert selectors == text.count("app.kubernetes.io/instance: two\n")
    assert "jobLabel" not in text  # so the job of Prometheus is the namespace and the release


@pytest.mark.long
@pytest.mark.parametrize("protected", [False, True])
@pytest.mark.parametrize(("replicas", "usual", "most"), [(1, 6, 6), (3, 2, 3), (6, 1, 2)])
def test_the_memory(replicas: int, usual: int, most: int, *, protected: bool) -> None:
    """Request and limit are those of the page's formula, also while another pod is away."""
    values = {
        "replicas": str(replicas),
        "memory.protected": str(protected).lower(),
        "memory.labels": "200000",
        "memory.pending": "300000",
        "memory.early": "0",
        "memory.finished": "400000",
    }
    page = formula(200_000, 300_000, 400_000, protected=protected)
    # What that formula leaves out: the model with its history, and the lanes.
    held = page.held + 81_000 + (9_000 + 180 * 300_000 if protected else 0)
    process = BASE + 50 * MIB  # librdkafka
    expected = process + usual * held, process + 2 * most * held + page.making
    assert resources(values) == pytest.approx([ceil(one / MIB) for one in expected], abs=1)


@pytest.mark.long
def test_the_memory_of_a_partition_on_the_page() -> None:
    """A full partition of the default limits takes what the page says."""
    values = {"replicas": "6", "memory.protected": "false"}
    assert resources(values)[0] == pytest.approx(200 + 389, abs=1)


@pytest.mark.long
def test_many_models_share_the_limit_of_bytes() -> None:
    """What waits takes no more than `limits.max_bytes`, however many models there are."""
    few, many = (
        resources({"replicas": "6", "memory.protected": "false", "memory.models": models})[0]
        for models in ("100", "101")
    )
    assert few == pytest.approx(200 + ((100 * (81_000 + 3_000_000) + (1 << 29)) / MIB), abs=1)
    assert many - few == pytest.approx((81_000 + 3_000_000) / MIB, abs=1)


@pytest.mark.long
def test_a_mistake_in_helm() -> None:
    """Helm refuses what the schema refuses."""
    with pytest.raises(AssertionError, match="replica"):
        rendered({"replica": "3"})


@pytest.mark.long
def test_the_package(tmp_path: Path) -> None:
    """A packaged chart has the rules, which are a link in the checkout."""
    helm("package", CHART, "--destination", tmp_path)
    (archive,) = tmp_path.glob("abers-*.tgz")
    with tarfile.open(archive) as packed:
        rules = packed.extractfile("abers/rules.yml")
        assert rules is not None
        assert rules.read() == (DEPLOY / "rules.yml").read_bytes()

"""The image and the environment of Compose: what a linter and a schema can tell, and what fits."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from datetime import datetime
from itertools import islice
from typing import Any

from tests.deploy.files import DEPLOY, linted, read

from abers_connectors.config.model import Config, load
from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.server import serving
from abers_connectors.runtime.status import Status

DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
SERVED = DEPLOY / "compose.serve.yaml"
COMPOSE: dict[str, Any] = read(DEPLOY / "compose.yaml")
ABERS: dict[str, Any] = COMPOSE["services"]["abers"]


def configured() -> Config:
    """Load what the container of Compose loads."""
    return load(DEPLOY / "abers.kafka.toml", environ=ABERS["environment"])


def test_the_dockerfile() -> None:
    """A linter finds nothing in it."""
    linted("hadolint", "--failure-threshold", "info", DEPLOY / "Dockerfile")


def test_the_image_is_not_root() -> None:
    """The last stage runs as a user by number, which Kubernetes can see is not root."""
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER (\d+):\1$", last, re.MULTILINE)


def test_the_base_is_pinned() -> None:
    """Both stages begin with the same image, which a digest identifies."""
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:[\w.-]+@sha256:[0-9a-f]{64}", bases[0])


def test_the_build_has_what_it_needs() -> None:
    """All that makes the package reaches the build, and nothing of tests or environments."""
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    assert {"pyproject.toml", "CMakeLists.txt", "locks", "engine", "connectors"} < allowed
    assert all((DEPLOY.parent / name).exists() for name in allowed)
    assert lines[1] == "*"


def test_the_build_is_pinned() -> None:
    """Nothing is installed without a hash, and the build downloads nothing."""
    install = re.search(r"^RUN python -m venv(?:.*\\\n)*.*", DOCKERFILE, re.MULTILINE)
    assert install is not None
    steps = re.findall(r"pip (?:--python \S+ )?(?:install|wheel)(?:[^&]|\n)+", install[0])
    assert len(steps) == 4
    for step, lock in zip(steps[:2], ("build", "run"), strict=True):
        assert "--require-hashes" in step
        assert "--only-binary :all:" in step
        assert f"--requirement locks/{lock}.txt" in step
    assert "--no-build-isolation" in steps[2]
    assert "--no-index" in steps[3]
    built = (DEPLOY.parent / "locks" / "build.txt").read_text()
    pinned = re.findall(r"^([\w.-]+)==", built, re.MULTILINE)
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
    tools = [one.partition(">=")[0] for one in project["build-system"]["requires"]]
    assert {*tools, "cmake", "ninja", "pip"} <= {*pinned}


def test_the_health_check() -> None:
    """What Docker runs to see whether the container is well succeeds while the service is alive."""
    found = re.search(r'CMD \["python", "-c", "(.+)"\]', DOCKERFILE)
    assert found is not None
    clock = [0.0]
    status = Status(60.0, clock=lambda: clock[0])
    codes = []
    with serving(HttpSection(port=0), status) as url:
        script = found[1].replace("http://127.0.0.1:8090", url)
        for clock[0] in (0.0, 61.0):
            words = [sys.executable, "-c", script]
            codes.append(subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode)
    assert codes == [0, 1]
    assert HttpSection().port == 8090


def test_compose_without_kafka() -> None:
    """The other Compose file is valid; its server needs tokens, and answers by its name."""
    linted("check-jsonschema", "--builtin-schema", "vendor.compose-spec", SERVED)
    services = read(SERVED)["services"]
    assert {*services} == {"abers", "prometheus", "grafana"}
    abers = services["abers"]
    assert abers["command"][0] == "serve"
    variables = abers["environment"]
    assert json.loads(variables.pop("ABERS_HTTP__HOSTS")) == ["abers"]
    assert all(":?" in token for token in variables.values())
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (DEPLOY / "grafana" / "dashboards" / home.rpartition("/")[2]).exists()


def test_compose() -> None:
    """The file is one of Compose."""
    linted("check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


def test_what_is_mounted_is_there() -> None:
    """Every file that a container gets is in deploy/."""
    volumes = [one for service in COMPOSE["services"].values() for one in service["volumes"]]
    files = [one.split(":")[0] for one in volumes if one.startswith(".")]
    assert len(files) == 7
    assert all((DEPLOY / name).exists() for name in files)


def test_who_talks_to_whom() -> None:
    """The service finds the broker inside, and Prometheus and the host find the service."""
    config = configured()
    assert config.kafka is not None
    kafka = COMPOSE["services"]["kafka"]["environment"]
    assert f"INSIDE://{config.kafka.bootstrap_servers[0]}" in kafka["KAFKA_ADVERTISED_LISTENERS"]
    assert config.http.host == "0.0.0.0"  # noqa: S104 - inside of a container
    assert ABERS["ports"] == [f"127.0.0.1:{config.http.port}:{config.http.port}"]
    (job,) = read(DEPLOY / "prometheus.yml")["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"abers:{config.http.port}"]}]
    (source,) = read(DEPLOY / "grafana" / "datasource.yaml")["datasources"]
    assert source["url"] == "http://prometheus:9090"


def test_only_this_machine_is_served() -> None:
    """Nothing of an environment without passwords is reachable from other machines."""
    services = COMPOSE["services"].values()
    assert all(port.startswith("127.0.0.1:") for one in services for port in one.get("ports", ()))


def test_what_is_written_lasts() -> None:
    """Snapshots go to a volume; nothing else can be written."""
    config = configured()
    assert config.state.path is not None
    (folder,) = re.findall(r"^WORKDIR (/var\S+)", DOCKERFILE, re.MULTILINE)
    assert not config.state.path.startswith("/")  # so it is in the folder where the image begins
    assert f"abers:{folder}" in ABERS["volumes"]
    assert f"VOLUME {folder}" in DOCKERFILE
    assert ABERS["read_only"]


def test_the_producer() -> None:
    """Its records are observations and labels of the configuration, with the same keys."""
    spec = importlib.util.spec_from_file_location("producer", DEPLOY / "producer.py")
    assert spec is not None
    assert spec.loader is not None
    producer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(producer)
    config = configured()
    assert config.kafka is not None
    fields = config.input.fields
    written = [*islice(producer.records(1), producer.LATE + 2_000)]
    seen = set()
    for several in written:
        for topic, key, value in several:
            assert value[fields.id] == key
            assert datetime.fromisoformat(value[fields.time]).tzinfo is not None
            if topic == config.kafka.observations:
                seen.add(key)
                assert value["score"] == "unknown" or 0.0 <= value["score"] <= 1.0
            else:
                assert topic == config.kafka.labels
                assert type(value[fields.label]) is bool
                assert key in seen
    assert sum(len(one) == 2 for one in written) == 2_000
    assert f"{producer.BOOTSTRAP_SERVERS}" == ABERS["environment"]["ABERS_KAFKA__BOOTSTRAP_SERVERS"]

"""The public names of the command and the service: options, keys, metrics, exit codes."""

from __future__ import annotations

import signal
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import msgspec
import typer
from ruamel.yaml import YAML

from abers import exceptions, registry
from abers.learners.river_adapters import LEARNERS
from abers.monitoring import ANSWERS, TESTS, Monitor
from abers_connectors import errors, secret
from abers_connectors.cli.main import app
from abers_connectors.config.layers import keys_of, options
from abers_connectors.http import credentials
from abers_connectors.kafka import connection
from abers_connectors.metrics.service_metrics import METRICS
from abers_connectors.schemas import registry as registry_login

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.stream.option import Option

__all__ = ["codes", "commands", "keys", "metrics"]

OF_TYPER = {"--install-completion", "--show-completion"}
SECRETS = (
    *(secret.NAME, credentials.TOKEN, connection.KEY_PASSWORD),
    *(connection.PASSWORD, connection.CLIENT_SECRET, connection.TOKEN),
    *(registry_login.REGISTRY_PASSWORD, registry_login.REGISTRY_TOKEN),
)
CODES = ("FAILURE", "USAGE", "DATA", "UNAVAILABLE", "CONFIG")


def commands(command: Any = None, path: str = "abers") -> Iterator[str]:  # noqa: ANN401 - of click
    """Yield a line for each command, and for each of its arguments and options."""
    command = typer.main.get_command(app) if command is None else command
    yield path
    for one in sorted(command.params, key=lambda one: (one.param_type_name, one.opts)):
        if not OF_TYPER & {*one.opts}:
            yield f"{path} {_parameter(one)}"
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from commands(inner, f"{path} {name}")


def _parameter(one: Any) -> str:  # noqa: ANN401 - of click
    is_option = one.param_type_name == "option"
    kind = one.type_descriptor.annotation
    kind = get_args(kind)[0] if one.multiple else kind
    choices = "|".join(_choices(kind))
    shown = [
        ", ".join([*one.opts, *one.secondary_opts]) if is_option else one.metavar or one.name,
        "" if getattr(one, "is_flag", False) else choices or getattr(kind, "__name__", str(kind)),
        "several" if one.multiple else "",
        "required" if is_option and one.required else "",
        f"default {one.default}" if one.default and isinstance(one.default, str) else "",
    ]
    return " ".join(filter(None, shown))


def _choices(kind: Any) -> Iterator[str]:  # noqa: ANN401 - any annotation
    """Yield the words of all literals in a type."""
    for one in get_args(kind):
        if get_origin(kind) is Literal:
            yield str(one)
        else:
            yield from _choices(one)


def keys() -> Iterator[str]:
    """Yield a line for each key, with its default, each calibrator, learner and secret."""
    for path in map(".".join, keys_of()):
        one = options().get(path)
        yield path if one is None else f"{path} {_default(one)} {'|'.join(one.choices)}".rstrip()
    for task in ("binary", "multiclass", "regression"):
        yield from (f"calibrator of {task}: {name}" for name in registry.names(task))
    yield from (f"learner: {name}" for name in sorted(LEARNERS))
    yield from (f"environment: {name}" for name in SECRETS)


def _default(one: Option) -> str:
    if one.required:
        return "required"
    return "by other keys" if one.default in {"", msgspec.UNSET} else f"= {one.default!r}"


def metrics() -> Iterator[str]:
    """Yield a line for each metric with its labels, and for each rule and alert."""
    for one in METRICS:
        name = f"{one.name}_total" if one.kind == "counter" else one.name
        yield f"{name} {one.kind} {{{', '.join(one.labels)}}}"
    measures = [
        *TESTS,
        *ANSWERS,
        *(measure for one in _monitors(Monitor) for measure in one.measures),
    ]
    yield from sorted({f"{one.metric} gauge" for one in measures if one.metric})
    rules = YAML(typ="safe").load((files("abers_connectors") / "rules.yml").read_text("utf-8"))
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        yield f"alert {rule['alert']}" if "alert" in rule else f"record {rule['record']}"


def _monitors(kind: type[Any]) -> Iterator[type[Any]]:
    """Yield the monitors of abers: tests define others."""
    for one in kind.__subclasses__():
        if one.__module__.startswith("abers."):
            yield one
        yield from _monitors(one)


def codes() -> Iterator[str]:
    """Yield the exit code of each error, and of a signal."""
    for name in CODES:
        yield f"{name} {getattr(errors, name)}"
    for name in sorted(exceptions.__all__):
        error = getattr(exceptions, name)
        if not issubclass(error, Warning):
            yield f"{name} {_code(error(['text']) if name == 'ConfigError' else error('text'))}"
    yield f"{signal.SIGINT.name} {_code(KeyboardInterrupt())}"


def _code(error: BaseException) -> int:
    try:
        with errors.sentences(say=lambda _: None):
            raise error
    except typer.Exit as found:
        return found.exit_code

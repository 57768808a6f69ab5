"""The fields of KubeSchedulerConfiguration v1, and all that is wrong with a document by them.

Source: k8s.io/kube-scheduler config/v1/types.go and k8s.io/component-base config/v1alpha1/types.go, v0.36.
kube-scheduler decodes strictly: with an unknown field, a wrong type or a key that is there twice it does not start.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

from app.doctor.findings import VALIDATION, Finding, Severity
from app.doctor.go_duration import parse_go_duration

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
TYPES: Final = "kube-scheduler config/v1 types.go"

_LONGEST: Final = 60  # characters of a value that are shown

Spec: TypeAlias = "str | dict[str, Spec] | list[Spec]"
"""A scalar by name, an object by its fields, or a list by what is in it."""

_PLUGIN_SET: Final[Spec] = {
    "enabled": [{"name": "string", "weight": "integer"}],
    "disabled": [{"name": "string", "weight": "integer"}],
}
POINTS: Final = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind",
    "bind", "postBind", "multiPoint", "placementGenerate", "placementScore",
)  # fmt: skip
"""The extension points of a profile, and `multiPoint` for all of them."""
_EXTENDER: Final[Spec] = {
    "urlPrefix": "string",
    "filterVerb": "string",
    "preemptVerb": "string",
    "prioritizeVerb": "string",
    "weight": "integer",
    "bindVerb": "string",
    "enableHTTPS": "boolean",
    "tlsConfig": {
        "insecure": "boolean",
        **dict.fromkeys(("serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"), "string"),
    },
    "httpTimeout": "duration",
    "nodeCacheCapable": "boolean",
    "managedResources": [{"name": "string", "ignoredByScheduler": "boolean"}],
    "ignorable": "boolean",
}
_SCHEMA: Final[Spec] = {
    "apiVersion": "string",
    "kind": "string",
    "parallelism": "integer",
    "leaderElection": {
        "leaderElect": "boolean",
        **dict.fromkeys(("leaseDuration", "renewDeadline", "retryPeriod"), "duration"),
        **dict.fromkeys(("resourceLock", "resourceName", "resourceNamespace"), "string"),
    },
    "clientConnection": {
        **dict.fromkeys(("kubeconfig", "acceptContentTypes", "contentType"), "string"),
        "qps": "number",
        "burst": "integer",
    },
    "enableProfiling": "boolean",
    "enableContentionProfiling": "boolean",
    "percentageOfNodesToScore": "integer",
    "podInitialBackoffSeconds": "integer",
    "podMaxBackoffSeconds": "integer",
    "profiles": [
        {
            "schedulerName": "string",
            "percentageOfNodesToScore": "integer",
            "plugins": dict.fromkeys(POINTS, _PLUGIN_SET),
            "pluginConfig": [{"name": "string", "args": "anything"}],
        }
    ],
    "extenders": [_EXTENDER],
    "delayCacheUntilActive": "boolean",
}


def schema_findings(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong with the document by its schema: kind, unknown fields, types."""
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(key) != wanted:
            message = f"expected {wanted}, found {_shown(document.get(key))}"
            yield _error("wrong-kind", key, message, f"{key}: {wanted}")
    if document.get("kind") == KIND:
        yield from _findings(document, _SCHEMA, "")


def _findings(value: Any, spec: Spec, where: str) -> Iterator[Finding]:  # noqa: ANN401  # whatever YAML holds
    if value is None:
        return  # as if it were not there
    if isinstance(spec, dict):
        yield from _of_object(value, spec, where)
    elif isinstance(spec, list):
        if not isinstance(value, list):
            yield _wrong_type(where, "a list", value)
            return
        for index, item in enumerate(value):
            yield from _findings(item, spec[0], f"{where}[{index}]")
    elif spec == "duration":
        yield from _of_duration(value, where)
    elif not _is(value, spec):
        yield _wrong_type(where, f"a {spec}" if spec != "integer" else "an integer", value)


def _of_object(value: Any, spec: dict[str, Spec], where: str) -> Iterator[Finding]:  # noqa: ANN401  # the same
    if not isinstance(value, dict):
        yield _wrong_type(where, "fields with values", value)
        return
    for key, item in value.items():
        path = f"{where}.{key}" if where else str(key)
        if key in spec:
            yield from _findings(item, spec[key], path)
            continue
        folded = {name.lower(): name for name in spec}
        close = get_close_matches(str(key).lower(), folded, 1)
        meant = f"; did you mean {folded[close[0]]}?" if close else ""
        fix = f"rename {key} to {folded[close[0]]}" if close else f"take {path} out"
        yield _error(
            "unknown-field", path, f"there is no such field, and kube-scheduler does not start with it{meant}", fix
        )


def _of_duration(value: Any, where: str) -> Iterator[Finding]:  # noqa: ANN401  # the same
    if isinstance(value, str) and parse_go_duration(value) is not None:
        return
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    unit = f"{value:g}s" if is_number else "5s"
    message = f"{_shown(value)} is no duration: a number with a unit, in quotes or without (5s, 500ms, 1m30s)"
    yield _error("bad-duration", where, message, f"{where.rpartition('.')[2]}: {unit}")


def _is(value: object, spec: str) -> bool:
    if isinstance(value, bool):
        return spec in {"boolean", "anything"}
    kinds: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": ()}
    return spec == "anything" or isinstance(value, kinds[spec])


def _wrong_type(where: str, wanted: str, value: object) -> Finding:
    name = where.rpartition(".")[2] or "the document"
    return _error("wrong-type", where, f"expected {wanted}, found {_shown(value)}", f"give {name} {wanted}")


def _shown(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case dict():
            return "fields"
        case list():
            return "a list"
        case bool():
            return str(value).lower()
    return repr(value) if len(repr(value)) <= _LONGEST else f"{repr(value)[:_LONGEST]}..."


def _error(check: str, where: str, message: str, fix: str) -> Finding:
    return Finding(check, Severity.ERROR, where, message, fix, TYPES if check != "wrong-kind" else VALIDATION)

"""The fields of a Pod and the default plugins of a release, read from its Go modules, and kept in `1.NN.json`.

The files of the other releases have what differs from BASE, as a JSON merge patch (RFC 7396).

Nothing is compiled: the published OpenAPI description has the fields, and the sources are formatted by gofmt, so that
regular expressions read the rest. Text that does not look as expected raises RecordError, and is not skipped.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.e2e.binaries import MODULE, RELEASES, go_output

BASE: Final = "1.37"
_POD: Final = "io.k8s.api.core.v1.Pod"
_PLUGINS: Final = "pkg/scheduler/framework/plugins"
_METHODS: Final[Mapping[str, str]] = {
    "queueSort": "Less",
    "placementGenerate": "GeneratePlacements",
    "placementScore": "ScorePlacement",
}
"""Extension point -> the method of its plugins, where it is not the point's own name."""


class RecordError(RuntimeError):
    """The modules of a release do not look as the recording expects."""


class DefaultPlugin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plugin of kube-scheduler's default configuration. `gate` is set if a feature gate leaves it out by default."""

    points: Sequence[str]
    gate: str = ""


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """What a release has."""

    kubernetes: str
    points: Sequence[str]
    """The extension points of a configuration."""
    plugins: Mapping[str, DefaultPlugin]
    gates: Mapping[str, str]
    """TYPE.FIELD -> the feature gate without which the API server drops the field, if the gate is off by default."""
    fields: Mapping[str, Mapping[str, str]]
    """Type -> field -> the type of its value or of the values in it. Empty for a plain value. All types of a Pod."""


def file_of(release: str) -> Path:
    """Return the file of a release such as `1.37`."""
    return Path(__file__).with_name(f"{release}.json")


def recorded(release: str) -> Upstream:
    """Return what the file of a release has."""
    found = json.loads(file_of(release).read_bytes())
    return msgspec.convert(found if release == BASE else _merged(_base(), found), Upstream)


def encoded(upstream: Upstream) -> bytes:
    """Return the content of a file."""
    whole = msgspec.to_builtins(upstream)
    found = whole if release_of(upstream) == BASE else _difference(_base(), whole)
    return f"{json.dumps(found, indent=1, sort_keys=True)}\n".encode()


def release_of(upstream: Upstream) -> str:
    """Return the release of a patch release: `1.37` of `v1.37.1`."""
    return upstream.kubernetes[1:].rpartition(".")[0]


def _base() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file_of(BASE).read_bytes())
    return found


def _merged(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    made = {name: value for name, value in base.items() if name not in patch}
    for name, value in patch.items():
        if value is not None:
            made[name] = _merged(base.get(name, {}), value) if isinstance(value, dict) else value
    return made


def _difference(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that makes `other` of `base`."""
    patch: dict[str, Any] = dict.fromkeys(base.keys() - other.keys())
    for name, value in other.items():
        before = base.get(name)
        if value != before:
            patch[name] = _difference(before or {}, value) if isinstance(value, dict) else value
    return patch


def of_release(version: str) -> Upstream:
    """Return what a release such as `1.37` or `v1.37.1` has. Downloads its modules. Raises BuildError, RecordError."""
    version = RELEASES.get(version, version)
    kubernetes = _module("k8s.io/kubernetes", version)
    types = (_module("k8s.io/api", f"v0{version[2:]}") / "core/v1/types.go").read_text("utf-8")
    features = (kubernetes / "pkg/features/kube_features.go").read_text("utf-8")
    stages = Gates(features, int(version.split(".")[1]))
    openapi = json.loads((kubernetes / "api/openapi-spec/v3/api__v1_openapi.json").read_bytes())
    fields = pod_fields(openapi)
    gates = {
        field: gate
        for field, gate in gates_of_fields(types).items()
        if field.partition(".")[0] in fields and not (stages.known(gate) and stages.on(gate))
    }
    points = extension_points((kubernetes / "pkg/scheduler/apis/config/types.go").read_text("utf-8"))
    defaults = (kubernetes / "pkg/scheduler/apis/config/v1/default_plugins.go").read_text("utf-8")
    implemented = implemented_points(_packages(kubernetes / _PLUGINS), points)
    plugins = {
        name: DefaultPlugin(points=implemented[name], gate="" if not gate or stages.on(gate) else gate)
        for name, gate in default_plugins(defaults).items()
    }
    return Upstream(kubernetes=version, points=points, plugins=plugins, gates=gates, fields=fields)


def _module(name: str, version: str) -> Path:
    go = shutil.which("go")
    if go is None:
        raise RecordError("there is no Go to fetch the modules")
    return Path(json.loads(go_output(MODULE, go, "mod", "download", "-json", f"{name}@{version}"))["Dir"])


def pod_fields(openapi: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return type -> field -> type of its value, for all types of a Pod in an OpenAPI description."""
    schemas, found, left = openapi["components"]["schemas"], dict[str, dict[str, str]](), [_POD]
    while left:
        name = left.pop()
        if _short(name) in found:
            continue
        referred = {field: _referred(schema) for field, schema in schemas[name].get("properties", {}).items()}
        found[_short(name)] = {field: _short(each) for field, each in referred.items()}
        left += filter(None, referred.values())
    return {name: fields for name, fields in found.items() if fields}


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _referred(schema: Mapping[str, Any]) -> str:
    """Return the type that a schema, or the items or values of a schema, refer to. Empty for a plain value."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    parts = [*schema.get("allOf", ()), *schema.get("oneOf", ())]
    parts += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    return next(filter(None, map(_referred, parts)), "")


def gates_of_fields(types: str) -> dict[str, str]:
    """Return TYPE.FIELD -> feature gate, from the markers `+featureGate=` in types.go."""
    found: dict[str, str] = {}
    kind = gate = ""
    for line in types.splitlines():
        if struct := re.match(r"type (\w+) struct \{", line):
            kind, gate = struct[1], ""
        elif marker := re.match(r"\s*// \+featureGate=(\w+)", line):
            gate = marker[1]
        elif gate and (tag := re.search(r'json:"(\w+)', line)):
            found[f"{kind}.{tag[1]}"], gate = gate, ""
    return found


class Gates:
    """The feature gates of a release by kube_features.go."""

    def __init__(self, features: str, minor: int) -> None:
        """Take the text of the file, and the minor release."""
        self._features = features
        self._minor = minor

    def known(self, gate: str) -> bool:
        """Return whether the release has a gate. Markers of fields may be wrong: 1.34 has PodCertificateProjection."""
        return self._stages(gate) is not None

    def on(self, gate: str) -> bool:
        """Return whether a gate is on by default. Raises RecordError."""
        block = self._stages(gate)
        if block is None:
            raise RecordError(f"kube_features.go has no stages of {gate}")
        stages: list[tuple[str, str]] = re.findall(r'MustParse\("1\.(\d+)"\), Default: (true|false)', block[1])
        begun = [(int(minor), default == "true") for minor, default in stages if int(minor) <= self._minor]
        if not begun:
            raise RecordError(f"kube_features.go has no stage of {gate} at 1.{self._minor}")
        _, default = max(begun)
        return default

    def _stages(self, gate: str) -> re.Match[str] | None:
        return re.search(rf"^\t{gate}: \{{\n((?:\t\t.*\n)+?)\t\}},", self._features, re.MULTILINE)


def extension_points(types: str) -> list[str]:
    """Return the extension points of a profile, from the struct Plugins."""
    struct = re.search(r"^type Plugins struct \{\n(.*?)^\}", types, re.MULTILINE | re.DOTALL)
    if struct is None:
        raise RecordError("types.go has no struct Plugins")
    names = re.findall(r"^\t(\w+) PluginSet$", struct[1], re.MULTILINE)
    return [_camel(name) for name in names if name != "MultiPoint"]


def _camel(name: str) -> str:
    return name[0].lower() + name[1:]


def default_plugins(text: str) -> dict[str, str]:
    """Return plugin -> its feature gate, empty for none, from default_plugins.go. Raises RecordError."""
    functions = dict(re.findall(r"^func (\w+)\(.*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL))
    found = dict.fromkeys(_named(functions["getDefaultPlugins"]), "")
    gated = re.compile(r"Enabled\(features\.(\w+)\) \{\n(.*?)^\t\}", re.MULTILINE | re.DOTALL)
    for gate, body in gated.findall(functions["applyFeatureGates"]):
        called = [functions[name] for name in re.findall(r"(\w+)\(config\)", body)]
        names = [name for each in (body, *called) for name in _named(each)]
        if not names:
            raise RecordError(f"default_plugins.go: the gate {gate} adds no plugin")
        found |= dict.fromkeys(names, gate)
    return found


def _named(text: str) -> list[str]:
    return re.findall(r"\{Name: names\.(\w+)", text)


def _packages(folder: Path) -> Iterator[str]:
    """Yield the source of each package of plugins."""
    for package in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = [path for path in sorted(package.glob("*.go")) if not path.name.endswith("_test.go")]
        yield "\n".join(path.read_text("utf-8") for path in files)


def implemented_points(packages: Iterator[str], points: Sequence[str]) -> dict[str, list[str]]:
    """Return plugin -> its extension points, from the sources of the packages. Raises RecordError.

    The methods decide, as in Go. Not every plugin states its interfaces (`var _ fwk.FilterPlugin = ...`), but a stated
    one without a method means that the source was misread.
    """
    found: dict[str, list[str]] = {}
    for source in packages:
        constants = dict(re.findall(r"^(?:const|\t)\s*(\w+)\s*= names\.(\w+)$", source, re.MULTILINE))
        named = re.findall(r"^func \(\w+ \*?(\w+)\) Name\(\) string \{\n\treturn (\w+)$", source, re.MULTILINE)
        for kind, constant in named:
            if constant not in constants:
                continue
            interfaces = re.findall(rf"^var _ \w+\.(\w+)Plugin = &{kind}\{{\}}$", source, re.MULTILINE)
            stated = set(map(_camel, interfaces))
            methods = set(re.findall(rf"^func \(\w+ \*?{kind}\) (\w+)\(", source, re.MULTILINE))
            has = [point for point in points if _METHODS.get(point, point[0].upper() + point[1:]) in methods]
            if missing := (stated & {*points}) - {*has}:
                raise RecordError(f"{constants[constant]} states {sorted(missing)}, and has no method for it")
            found[constants[constant]] = has
    return found

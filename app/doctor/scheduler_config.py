"""A KubeSchedulerConfiguration as the checks see it: read from a file, with upstream's defaults filled in."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

import msgspec
import yaml

from app.doctor.findings import Finding, Severity
from app.doctor.go_duration import parse_go_duration
from app.doctor.plugin_sets import PluginSets, Profile
from app.doctor.scheduler_schema import TYPES, schema_findings

DEFAULT_TIMEOUT: Final = 5.0
"""Seconds: k8s.io/kubernetes pkg/scheduler/extender.go, DefaultExtenderTimeout."""
DEFAULT_SCHEDULER: Final = "default-scheduler"


class UnreadableError(ValueError):
    """An input that cannot be read; one line."""


class TlsConfig(msgspec.Struct, rename="camel", frozen=True):
    """ExtenderTLSConfig. Data wins over the file of the same."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""

    @property
    def has_ca(self) -> bool:
        """Whether it says whom to trust."""
        return bool(self.ca_file or self.ca_data)

    @property
    def has_certificate(self) -> bool:
        """Whether it says who asks; a half of it is as none: client-go transport/config.go, HasCertAuth."""
        return bool((self.cert_file or self.cert_data) and (self.key_file or self.key_data))


class ManagedResource(msgspec.Struct, rename="camel", frozen=True):
    """ExtenderManagedResource."""

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(msgspec.Struct, rename="camel", frozen=True):
    """An extender; `index` is its place in the list."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: TlsConfig | None = None
    http_timeout: str = "0"
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False
    index: int = 0

    @property
    def timeout(self) -> float:
        """Seconds for a whole call."""
        return parse_go_duration(self.http_timeout) or DEFAULT_TIMEOUT

    @property
    def verbs(self) -> dict[str, str]:
        """Field -> verb, of those that are set."""
        fields = {
            "filterVerb": self.filter_verb,
            "prioritizeVerb": self.prioritize_verb,
            "bindVerb": self.bind_verb,
            "preemptVerb": self.preempt_verb,
        }
        return {field: verb for field, verb in fields.items() if verb}

    @property
    def scheme(self) -> str:
        """Of its URL; empty if that is none."""
        return _split(self.url_prefix).scheme

    @property
    def host(self) -> str:
        """Of its URL; empty if that is none."""
        return _split(self.url_prefix).hostname or ""

    def at(self, field: str = "") -> str:
        """Return where a field of it is."""
        return f"extenders[{self.index}]" + (f".{field}" if field else "")


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


class SchedulerConfig(NamedTuple):
    """What the file says; profiles are never empty."""

    percentage_of_nodes_to_score: int
    profiles: tuple[Profile, ...]
    extenders: tuple[Extender, ...]

    def order(self) -> tuple[Extender, ...]:
        """Return the extenders as kube-scheduler asks them: those that are ignorable last (buildExtenders)."""
        return tuple(sorted(self.extenders, key=lambda extender: extender.ignorable))


class Reading(NamedTuple):
    """The configuration, None where it is not fit to be looked at, and what is wrong with it as a document."""

    config: SchedulerConfig | None
    findings: tuple[Finding, ...]


def read_scheduler_config(path: Path) -> Reading:
    """Read a file. Raises UnreadableError where it is not there, or no YAML."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnreadableError(f"{path}: not UTF-8") from None
    try:
        return parse_scheduler_config(text)
    except UnreadableError as error:
        raise UnreadableError(f"{path}: {error}") from None


def parse_scheduler_config(text: str) -> Reading:
    """Read a text. Raises UnreadableError where it is no YAML with fields."""
    duplicates: list[str] = []

    class Loader(yaml.SafeLoader):
        """Takes note of keys that are there twice, of which PyYAML takes the last."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002  # PyYAML's
            duplicates.extend(_duplicates(node))
            return super().construct_mapping(node, deep)

    try:
        documents = [each for each in yaml.load_all(text, Loader) if each is not None]  # a SafeLoader
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        raise UnreadableError(f"no YAML: {line}{getattr(error, 'problem', None) or 'too deep'}") from None
    if not documents or not isinstance(documents[0], dict):
        raise UnreadableError("no KubeSchedulerConfiguration: expected fields with values")
    findings = [*_document_findings(documents, duplicates), *schema_findings(documents[0])]
    unfit = any(finding.id in {"wrong-kind", "wrong-type", "bad-duration"} for finding in findings)
    return Reading(None if unfit else _config(documents[0]), tuple(findings))


def _duplicates(node: yaml.MappingNode) -> Iterator[str]:
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):  # others are an error anyway
            if key.value in seen:
                yield f"{key.value} (line {key.start_mark.line + 1})"
            seen.add(key.value)


def _document_findings(documents: list[Any], duplicates: list[str]) -> Iterator[Finding]:
    if len(documents) > 1:
        message = f"expected one document, found {len(documents)}; only the first is looked at"
        yield Finding("several-documents", Severity.ERROR, "", message, "keep one of them in the file", TYPES)
    for each in duplicates:
        message = f"the field is there twice: {each}; kube-scheduler does not start"
        yield Finding("duplicate-field", Severity.ERROR, each, message, "take one of them out", TYPES)


def _config(document: Mapping[str, Any]) -> SchedulerConfig:
    raw_profiles = document.get("profiles") or [{}]
    profiles = tuple(
        _profile(index, each or {}, only=len(raw_profiles) == 1) for index, each in enumerate(raw_profiles)
    )
    extenders = [
        msgspec.structs.replace(msgspec.convert(_without_nulls(each or {}), Extender), index=index)
        for index, each in enumerate(document.get("extenders") or [])
    ]
    return SchedulerConfig(document.get("percentageOfNodesToScore") or 0, profiles, tuple(extenders))


def _profile(index: int, raw: Mapping[str, Any], *, only: bool) -> Profile:
    return Profile(
        index=index,
        name=raw.get("schedulerName") or (DEFAULT_SCHEDULER if only else ""),
        percentage_of_nodes_to_score=raw.get("percentageOfNodesToScore"),
        plugins=PluginSets(raw.get("plugins") or {}),
        plugin_config={
            each["name"]: each.get("args") or {} for each in raw.get("pluginConfig") or [] if each.get("name")
        },
    )


def _without_nulls(value: Any) -> Any:  # noqa: ANN401  # whatever YAML holds
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value if item is not None] if isinstance(value, list) else value

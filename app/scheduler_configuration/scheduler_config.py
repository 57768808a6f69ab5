"""A KubeSchedulerConfiguration: read from a file, with upstream's defaults, and which of its extenders is Kindred."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

import msgspec
import yaml

from app.files import MAX_CONFIGURATION_BYTES, read_file
from app.scheduler_configuration.plugin_sets import Profile
from app.scheduler_configuration.schema import (
    TYPES,
    Finding,
    LeaderElection,
    Severity,
    WrittenConfig,
    WrittenExtender,
    WrittenProfile,
    parse_go_duration,
    read_document,
)

DEFAULT_TIMEOUT: Final = 5.0
"""Seconds: k8s.io/kubernetes pkg/scheduler/extender.go, DefaultExtenderTimeout."""
DEFAULT_SCHEDULER: Final = "default-scheduler"
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_ALL: Final = 100  # percent
_INT32: Final = 2**31 - 1


class UnreadableError(ValueError):
    """An unreadable input. The message is one line."""


class Extender(WrittenExtender, frozen=True):
    """An extender. `index` is its place in the list."""

    index: int = 0

    @property
    def timeout(self) -> float:
        """Timeout of a whole call in seconds."""
        return parse_go_duration(self.http_timeout) or DEFAULT_TIMEOUT

    @property
    def verbs(self) -> dict[str, str]:
        """Field -> verb, for the verbs that are set."""
        fields = {
            "filterVerb": self.filter_verb,
            "prioritizeVerb": self.prioritize_verb,
            "bindVerb": self.bind_verb,
            "preemptVerb": self.preempt_verb,
        }
        return {field: verb for field, verb in fields.items() if verb}

    @property
    def scheme(self) -> str:
        """The scheme of the extender's URL. Empty if the URL is invalid."""
        return _split(self.url_prefix).scheme

    @property
    def host(self) -> str:
        """The host of the extender's URL. Empty if the URL is invalid."""
        return _split(self.url_prefix).hostname or ""

    def is_asked_about(self, resources: Container[str]) -> bool:
        """Return whether kube-scheduler calls the extender for pods that request these resources: IsInterested."""
        return not self.managed_resources or any(each.name in resources for each in self.managed_resources)

    def at(self, field: str = "") -> str:
        """Return the path of a field of the extender."""
        return f"extenders[{self.index}]" + (f".{field}" if field else "")


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


class SchedulerConfig(NamedTuple):
    """The contents of the file. `profiles` is never empty."""

    percentage_of_nodes_to_score: int
    profiles: tuple[Profile, ...]
    extenders: tuple[Extender, ...]
    leader_election: LeaderElection = LeaderElection()

    def percentage_of(self, profile: Profile) -> tuple[str, int]:
        """Return the place and the value of a profile's percentageOfNodesToScore."""
        if profile.percentage_of_nodes_to_score is None:
            return "percentageOfNodesToScore", self.percentage_of_nodes_to_score
        return profile.at("percentageOfNodesToScore"), profile.percentage_of_nodes_to_score

    def order(self) -> tuple[Extender, ...]:
        """Return the extenders in the order of kube-scheduler's calls: ignorable ones last (buildExtenders)."""
        return tuple(sorted(self.extenders, key=lambda extender: extender.ignorable))


class Reading(NamedTuple):
    """The configuration (None if it cannot be checked), and the errors of its document."""

    config: SchedulerConfig | None
    findings: tuple[Finding, ...]


def read_scheduler_config(path: Path) -> Reading:
    """Read a file. Raises UnreadableError if it does not exist, or is not YAML."""
    try:
        text = read_file(path, MAX_CONFIGURATION_BYTES).decode()
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnreadableError(f"{path}: not UTF-8") from None
    try:
        return parse_scheduler_config(text)
    except UnreadableError as error:
        raise UnreadableError(f"{path}: {error}") from None


def load_scheduler_config(path: Path) -> SchedulerConfig:
    """Read the file of a running kube-scheduler. Raises UnreadableError if kube-scheduler would reject it."""
    config, findings = read_scheduler_config(path)
    problems = [f"{each.where}: {each.message}".removeprefix(": ") for each in findings]
    if config is not None:
        problems += rejected_values(config)
    if problems or config is None:
        raise UnreadableError(f"{path}: {'; '.join(problems)}")
    return config


def rejected_values(config: SchedulerConfig) -> Iterator[str]:
    """Yield "PLACE: RULE" for values that kube-scheduler rejects, and for weights that are too large for Kindred."""
    names = Counter(profile.name for profile in config.profiles)
    places = [("percentageOfNodesToScore", config.percentage_of_nodes_to_score, _ALL)]
    for profile in config.profiles:
        if not profile.name:
            yield f"{profile.at('schedulerName')}: required where there are several profiles"
        elif names.pop(profile.name, 1) > 1:
            yield f"{profile.at('schedulerName')}: several profiles have the name {profile.name}"
        for plugin, count in Counter(each.name for each in profile.plugin_config).items():
            if count > 1:
                yield f"{profile.at('pluginConfig')}: several entries have the name {plugin}"
        places.append((profile.at("percentageOfNodesToScore"), profile.percentage_of_nodes_to_score or 0, _ALL))
        for point in profile.plugins:
            where = profile.at(f"plugins.{point}.enabled")
            places += [(f"{where}: {name}: weight", weight, _INT32) for name, weight in profile.enabled(point).items()]
    places += [(extender.at("weight"), extender.weight, _INT32) for extender in config.extenders]
    for where, value, most in places:
        if not 0 <= value <= most:
            yield f"{where}: {value}: must be 0..{most}"


def choose_extender(config: SchedulerConfig, prefix: str, url: str) -> tuple[Extender | None, str]:
    """Return the extender that is Kindred: by prefix or URL, by the name in its URL, or the only extender.

    Otherwise return None and the reason.
    """
    extenders = config.extenders
    if not extenders:
        return None, "there is no extender: kube-scheduler does not call Kindred"
    if prefix:
        chosen = [each for each in extenders if each.url_prefix.startswith(prefix)]
        return _one(chosen, f"urlPrefix begins with {prefix}")
    at_url = [each for each in extenders if url and _place(each.url_prefix) == _place(url)]
    called = [each for each in extenders if "kindred" in each.host]
    if len(extenders) == 1 or at_url:
        return (at_url or extenders)[0], ""
    return _one(called, "urlPrefix names a host with kindred in it")


def _one(chosen: Iterable[Extender], which: str) -> tuple[Extender | None, str]:
    found = tuple(chosen)
    if len(found) == 1:
        return found[0], ""
    return None, f"there are {len(found)} extenders whose {which}, and one of them must be Kindred"


def _place(url: str) -> tuple[str, int | None]:
    try:
        parsed = urlsplit(url)
        return parsed.hostname or "", parsed.port or _DEFAULT_PORTS.get(parsed.scheme)
    except ValueError:
        return url, None


def parse_scheduler_config(text: str) -> Reading:
    """Read a text. Raises UnreadableError if it is not a YAML mapping."""
    duplicates: list[str] = []

    class Loader(yaml.SafeLoader):
        """Records duplicate keys. PyYAML itself uses the last one."""

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
        raise UnreadableError("not a KubeSchedulerConfiguration: expected fields with values")
    written, findings = read_document(documents[0])
    return Reading(
        None if written is None else _config(written), (*_document_findings(documents, duplicates), *findings)
    )


def _duplicates(node: yaml.MappingNode) -> Iterator[str]:
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):  # any other key is an error anyway
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


def _config(written: WrittenConfig) -> SchedulerConfig:
    profiles = [
        Profile(**msgspec.structs.asdict(each), index=index)
        for index, each in enumerate(written.profiles or (WrittenProfile(),))
    ]
    if len(profiles) == 1:
        profiles = [msgspec.structs.replace(each, name=each.name or DEFAULT_SCHEDULER) for each in profiles]
    extenders = [Extender(**msgspec.structs.asdict(each), index=index) for index, each in enumerate(written.extenders)]
    return SchedulerConfig(
        written.percentage_of_nodes_to_score,
        tuple(profiles),
        tuple(extenders),
        written.leader_election,
    )

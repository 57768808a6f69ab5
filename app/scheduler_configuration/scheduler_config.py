"""A KubeSchedulerConfiguration: read from a file, with upstream's defaults, and which of its extenders is Kindred."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
import yaml

from app.objects.decode import DecodeError, decoding
from app.objects.yaml_documents import UNREADABLE
from app.process.files import MAX_CONFIGURATION_BYTES, read_file
from app.process.logs import one_line
from app.process.yaml_traps import refuse_traps
from app.scheduler_configuration.schema import (
    API_VERSION,
    KIND,
    LeaderElection,
    Profile,
    WrittenConfig,
    WrittenExtender,
    WrittenProfile,
    parse_go_duration,
)
from app.scheduler_configuration.validation import UnreadableError, rejected_parts
from core.objects.labels import label_key_errors

DEFAULT_TIMEOUT: Final = 5.0
"""Seconds: k8s.io/kubernetes pkg/scheduler/extender.go, DefaultExtenderTimeout."""
DEFAULT_SCHEDULER: Final = "default-scheduler"
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_ALL: Final = 100  # percent
_INT32: Final = 2**31 - 1
_MAX_LENGTH: Final = 60  # characters of a value in a message
_decoder: Final = msgspec.json.Decoder(WrittenConfig)


class _Loader(yaml.SafeLoader):
    """A loader that rejects a repeated key, as kube-scheduler does. PyYAML itself takes the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002  # PyYAML's
        """Return the mapping of a node."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):  # any other key is an error anyway
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"{key.value} is there twice", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


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
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return {field: verb for field, verb in fields.items() if field.endswith("Verb") and verb}

    @property
    def place(self) -> tuple[str, int | None]:
        """Host and port of the extender's URL."""
        return _place(self.url_prefix)

    def is_at(self, place: tuple[str, int | None]) -> bool:
        """Return whether a place is the extender's, perhaps by another name of its Service: `a`, `a.b`, `a.b.svc`."""
        (host, port), (other, other_port) = self.place, place
        if host == other or port != other_port:
            return port == other_port
        ours, theirs = (_of_service(each) for each in (host, other))
        shorter = min(len(ours), len(theirs))
        return shorter > 0 and ours[:shorter] == theirs[:shorter]

    def gets_requests_for(self, resources: Container[str]) -> bool:
        """Return whether kube-scheduler calls the extender for pods that request these resources: IsInterested."""
        return not self.managed_resources or any(each.name in resources for each in self.managed_resources)

    def at(self, field: str = "") -> str:
        """Return the path of a field of the extender."""
        return f"extenders[{self.index}]" + (f".{field}" if field else "")


def _of_service(host: str) -> list[str]:
    """Return the name of a Service, and its namespace if it is there. Nothing for other hosts."""
    name = host.split(".")
    return name[:2] if len(name) <= 2 or name[2] == "svc" else []  # noqa: PLR2004  # NAME.NAMESPACE


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


def load_scheduler_config(path: Path) -> SchedulerConfig:
    """Read the file of a kube-scheduler. Raises UnreadableError if kube-scheduler would reject it."""
    try:
        return parse_scheduler_config(read_file(path, MAX_CONFIGURATION_BYTES).decode())
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnreadableError(f"{path}: not UTF-8") from None
    except UnreadableError as error:
        raise UnreadableError(f"{path}: {error}") from None


def _rejected_values(config: SchedulerConfig) -> Iterator[str]:
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


def _rejected_extenders(config: SchedulerConfig) -> Iterator[str]:
    """Yield "PLACE: RULE" for extenders that kube-scheduler rejects. A missing weight is 0: no default fills it.

    Source: k8s.io/kubernetes pkg/scheduler/apis/config/validation/validation.go (validateExtenders).
    """
    seen: set[str] = set()
    for extender in config.extenders:
        if extender.prioritize_verb and not extender.weight:
            yield f"{extender.at('weight')}: 0, or not set: must be positive with a prioritizeVerb"
        for index, resource in enumerate(extender.managed_resources):
            where = f"{extender.at(f'managedResources[{index}].name')}: {resource.name[:_MAX_LENGTH]!r}"
            if not _is_extended(resource.name):
                yield f"{where}: must be the name of an extended resource, such as example.com/gpu"
            elif resource.name in seen:
                yield f"{where}: only one extender can manage it, and name it once"
            seen.add(resource.name)
    binders = [extender.at("bindVerb") for extender in config.extenders if extender.bind_verb]
    if len(binders) > 1:
        yield f"{', '.join(binders)}: only one extender can implement bind"
    for extender in config.extenders:
        if parse_go_duration(extender.http_timeout) is None:
            yield f"{extender.at('httpTimeout')}: {extender.http_timeout!r}: must be a duration such as 5s or 500ms"


def _is_extended(resource: str) -> bool:
    """k8s.io/kubernetes pkg/apis/core/v1/helper/helpers.go (IsExtendedResourceName), for a qualified name."""
    if "/" not in resource or "kubernetes.io/" in resource or resource.startswith("requests."):
        return False
    return not label_key_errors(resource) and not label_key_errors(f"requests.{resource}")


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
    at_url = [each for each in extenders if url and each.is_at(_place(url))]
    called = [each for each in extenders if "kindred" in each.place[0]]
    if _is_one(extenders) or at_url:
        return (at_url or extenders)[0], ""
    return _one(called, "urlPrefix names a host with kindred in it")


def _one(chosen: Iterable[Extender], which: str) -> tuple[Extender | None, str]:
    found = tuple(chosen)
    if found and _is_one(found):
        return found[0], ""
    return None, f"there are {len(found)} extenders whose {which}, and one of them must be Kindred"


def _is_one(extenders: Sequence[Extender]) -> bool:
    return all(one.is_at(other.place) for one, other in combinations(extenders, 2))


def _place(url: str) -> tuple[str, int | None]:
    try:
        parsed = urlsplit(url)
        return parsed.hostname or "", parsed.port or DEFAULT_PORTS.get(parsed.scheme)
    except ValueError:
        return url, None


def parse_scheduler_config(text: str) -> SchedulerConfig:
    """Read a text, or the one in a ConfigMap among its documents.

    Raises UnreadableError if kube-scheduler would reject it.
    """
    documents = [each for each in _documents(text) if each is not None]
    inside = [text for each in documents for text in _inside(each)]
    if inside:
        return _parse_data(inside)
    if _kind(next(iter(documents), None)) == KIND:
        del documents[1:]  # kube-scheduler reads the first document alone
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise UnreadableError("not a KubeSchedulerConfiguration: expected one document, with fields and values")
    document = documents[0]
    if _kind(document) in (_CONFIG_MAP, *_LISTS):
        raise UnreadableError("a ConfigMap without a KubeSchedulerConfiguration in its data")
    if _kind(document) == _POLICY or (_kind(document) != KIND and document.keys() & _OF_A_POLICY):
        raise UnreadableError(_NO_POLICY)
    for key, required in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(key) != required:
            hint = f". This is {_OTHERS[kind]}" if (kind := str(_kind(document))) in _OTHERS else ""
            raise UnreadableError(f"{key}: expected {required}, found {str(document.get(key))[:_MAX_LENGTH]!r}{hint}")
    try:
        written = decoding(_decoder.decode, msgspec.json.encode(document))
    except DecodeError as error:
        raise UnreadableError(str(error).replace("key` in `$.", "a key of ")) from None
    config = _config(written)
    if problems := [*_rejected_values(config), *_rejected_extenders(config), *rejected_parts(written, config.profiles)]:
        raise UnreadableError("; ".join(problems))
    return config


_CONFIG_MAP: Final = "ConfigMap"
_OTHERS: Final = {
    "KindredConfiguration": "a file of Kindred's settings, which --config takes",
    "Pod": "a pod: its kube-scheduler reads the file that --config names there",
    "Deployment": "a Deployment: its kube-scheduler reads the file that --config names there",
}
_LISTS: Final = ("List", "ConfigMapList")
_POLICY: Final = "Policy"
_OF_A_POLICY: Final = frozenset({"predicates", "priorities"})
_NO_POLICY: Final = (
    "a Policy: kube-scheduler has read none since 1.23 (--policy-config-file was removed). Write a "
    f"KubeSchedulerConfiguration of {API_VERSION}: predicates and priorities are plugins of a profile there, "
    "enableHttps is enableHTTPS, and httpTimeout is a duration such as 5s, not nanoseconds. docs/register.md has one"
)


def _documents(text: str) -> list[Any]:
    """Return the YAML documents of a text, as values that can be JSON."""
    try:
        refuse_traps(text, _Loader)
        documents = [_without_nulls(each) for each in yaml.load_all(text, _Loader)]
        msgspec.json.encode(documents)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark is not None else ""
        raise UnreadableError(f"no YAML: {line}{error.problem}") from None
    except (yaml.YAMLError, *UNREADABLE) as error:
        raise UnreadableError(f"no YAML: {one_line(str(error))}") from None
    return documents


def _kind(document: Any) -> Any:  # noqa: ANN401  # whatever YAML holds
    return document.get("kind") if isinstance(document, dict) else None


def _inside(document: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401  # as above
    """Yield the configurations and policies in the data of a ConfigMap, or of those in a List, with their keys."""
    if _kind(document) in _LISTS and isinstance(items := document.get("items"), list):
        for item in items:
            if _kind(item) == _CONFIG_MAP:
                yield from _inside(item)
    data = document.get("data") if _kind(document) == _CONFIG_MAP else None
    for key, text in data.items() if isinstance(data, dict) else ():
        if isinstance(text, str) and (KIND in text or _POLICY in text):
            yield f"data[{key!r}]", text


def _parse_data(found: Sequence[tuple[str, str]]) -> SchedulerConfig:
    found = [each for each in found if KIND in each[1]] or found  # a Policy beside a configuration is left over
    if len(found) > 1:
        raise UnreadableError(f"several configurations: {', '.join(place for place, _ in found)}; give one of them")
    place, text = found[0]
    try:
        return parse_scheduler_config(text)
    except UnreadableError as error:
        raise UnreadableError(f"{place}: {error}") from None


def _without_nulls(value: Any) -> Any:  # noqa: ANN401  # whatever YAML holds
    """Return a value as Go reads it: null is a missing field, and in a list an empty struct."""
    match value:
        case dict():
            return {key: _without_nulls(each) for key, each in value.items() if each is not None}
        case list():
            return [{} if each is None else _without_nulls(each) for each in value]
    return value


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

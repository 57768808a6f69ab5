"""The pod that the API server would store for a manifest: API defaults, then admission, then the registry's strategy.

Only what a rule reads is completed. docs/explain.md has the table of what admission does with a pod. This is beside the
requests of people, and not among the decoders: pods of watches, dumps and schedulers are stored already.

Source: k8s.io/kubernetes pkg/apis/core/v1/defaults.go, pkg/registry/core/pod/strategy.go, and the plugins in
plugin/pkg/admission, in the order of pkg/kubeapiserver/options/plugins.go (AllOrderedPlugins).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from app.objects.decode import DecodeError, decoding
from app.objects.decode_pod import decode_pod
from app.objects.resources import OF_MANIFESTS
from core.explaining.words import listed
from core.objects.quantity import QuantityError, nanos
from core.releases.release import Release, Rules

Json: TypeAlias = dict[str, Any]
"""A JSON object as `read_json` returns it."""
Objects: TypeAlias = Callable[[str], Sequence[Mapping[str, Any]]]
"""Kind -> the objects of that kind that are at hand. None means that they are unknown."""


def no_objects(_kind: str) -> Sequence[Mapping[str, Any]]:
    """Return no object: a service watches none of the kinds that admission reads."""
    return ()


class Completion(msgspec.Struct, frozen=True):
    """What the manifest lacks of the pod that is judged, in a few words each."""

    completed: Sequence[str] = ()
    """What the API server, or the controller, would have added."""
    unknown: Sequence[str] = ()
    """What it would have added, too, but cannot be known here. So it is not judged."""


class Notes(NamedTuple):
    """The texts of a Completion that is being made."""

    done: list[str]
    unknown: list[str]
    of_priority: list[str]
    """What is unknown, and matters only for a pod that fits nowhere."""


_decoder: Final = msgspec.json.Decoder(dict[str, Any], float_hook=lambda text: msgspec.Raw(text.encode()))
"""A fraction stays text, because a float would lose digits of a quantity."""
_RATIO: Final = "maxLimitRequestRatio"
_WHOLE: Final = 10**9  # the unit of `nanos`
_LONGEST: Final = 60  # characters of a value that is shown
_MAX_LISTED: Final = 4
_MOST_OF_RANGES: Final = 4_000_000  # bytes of LimitRanges times containers: each takes 50 ns
_OF_PODS: Final = ("cpu", "memory", "hugepages-")  # resources of a pod as a whole, or how they begin
_SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Source: pkg/apis/scheduling/v1/helpers.go. Every cluster has these classes."""
_WORKLOADS: Final = Release(1, 35)
_LIFECYCLE_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
TERMS: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def read_json(raw: bytes) -> Json:
    """Decode an object. Raises DecodeError."""
    return decoding(_decoder.decode, raw)


def member(of: object, *path: str) -> Json:
    """Return an object inside of another, or an empty one. Other values there are for the decoder to reject."""
    for name in path:
        of = of.get(name) if isinstance(of, dict) else None
    return of if isinstance(of, dict) else {}


def elements(of: object, name: str) -> list[Json]:
    """Return the objects of a list in an object."""
    listed = of.get(name) if isinstance(of, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def is_stored(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is from an API server, which gives each one a uid, in a server-side dry run, too.

    Source: k8s.io/apiserver pkg/registry/rest/meta.go (FillObjectMetaSystemFields).
    """
    return bool(member(pod, "metadata").get("uid"))


def complete(pod: Json, rules: Rules, objects: Objects, notes: Notes, *, of_cluster: Objects) -> None:
    """Complete a pod in place, as a create request would. Raises DecodeError where the API server would refuse it.

    `of_cluster` are `objects` without those of the file of the pod: only a cluster's classes say that one is absent.
    """
    spec = member(pod, "spec")
    if not spec:
        return
    _drop_groups(spec, rules.release, notes)
    spec["schedulerName"] = spec.get("schedulerName") or "default-scheduler"  # SetDefaults_PodSpec
    _default_requests(spec, notes)
    _default_host_ports(spec, notes)
    if not rules.pod_level_defaults_last:
        _default_pod_level_requests(spec, rules, notes)
    _limit_ranges(pod, spec, objects("LimitRange"), notes)
    _priority(spec, objects("PriorityClass"), notes, are_all=bool(of_cluster("PriorityClass")))
    _tolerate_for_a_time(spec)
    _runtime_class(spec, objects("RuntimeClass"), notes, are_all=bool(of_cluster("RuntimeClass")))
    _merge_label_keys(pod, spec, notes)
    if rules.pod_level_defaults_last:
        _default_pod_level_requests(spec, rules, notes)


def _drop_groups(spec: Json, release: Release, notes: Notes) -> None:
    """Drop the field that the release lacks: workloadRef is of 1.35 alone, and schedulingGroup of later ones.

    Source: k8s.io/api core/v1/types.go.
    """
    for name, is_known in (("workloadRef", release == _WORKLOADS), ("schedulingGroup", release > _WORKLOADS)):
        if not is_known and spec.pop(name, None):
            notes.done.append(f"no {name}, which Kubernetes {release} drops")


def _containers(spec: Json) -> Iterator[Json]:
    yield from elements(spec, "containers")
    yield from elements(spec, "initContainers")


def _default_requests(spec: Json, notes: Notes) -> None:
    """SetDefaults_Pod: a limit is the request, too, where a container of a pod has none. Not in a template."""
    added: list[str] = []
    for container in _containers(spec):
        resources = container.get("resources")
        if isinstance(resources, dict):
            added += _filled(resources, "requests", member(resources, "limits"))
    _note(notes.done, "requests", added, "from limits")


def _default_host_ports(spec: Json, notes: Notes) -> None:
    """Source: defaults.go (defaultHostNetworkPorts)."""
    if spec.get("hostNetwork") is not True:
        return
    added = []
    for container in _containers(spec):
        for port in elements(container, "ports"):
            if not port.get("hostPort") and port.get("containerPort"):
                port["hostPort"] = port["containerPort"]
                added.append(str(port["containerPort"]))
    _note(notes.done, "host ports", added, "of hostNetwork")


def _default_pod_level_requests(spec: Json, rules: Rules, notes: Notes) -> None:
    """defaultPodRequests; since 1.37 DefaultPodLevelResources (pkg/api/pod/util.go).

    What containers request of cpu, memory and huge pages are requests of the pod, and of the rest its limits are.
    """
    resources = spec.get("resources")
    if not isinstance(resources, dict) or not (
        member(resources, "limits") or (rules.pod_level_defaults_last and member(resources, "requests"))
    ):
        return
    limits = {name: limit for name, limit in member(resources, "limits").items() if name.startswith(_OF_PODS)}
    whole = {
        name: amount
        for name, amount in of_all_containers(spec, "requests").items()
        if name.startswith(_OF_PODS) and not (name.startswith("hugepages-") and name in limits)
    }
    _filled(resources, "requests", whole)
    _note(notes.done, "requests", _filled(resources, "requests", limits), "from limits of the pod")


def of_all_containers(spec: Json, of: str, *, whole: bool = False) -> Json:
    """Return the sums of requests or limits. With `whole`, amounts of the pod itself take their places.

    Source: limitranger/admission.go (podRequests, podLimits), component-helpers/resource/helpers.go (PodRequests).
    """
    summed = {
        kind: [{**each, "resources": {"requests": member(each, "resources", of)}} for each in elements(spec, kind)]
        for kind in ("containers", "initContainers")
    }
    own = member(spec, "resources", of) if whole else {}
    pod = {"metadata": {"name": "summed"}, "spec": {**summed, "resources": {"requests": own}}}
    amounts = decode_pod(msgspec.json.encode(pod)).requests
    return {name: f"{amount}{'m' if name == 'cpu' else ''}" for name, amount in amounts.items()}


def _limit_ranges(pod: Json, spec: Json, ranges: Sequence[Mapping[str, Any]], notes: Notes) -> None:
    """Source: limitranger/admission.go (PodMutateLimitFunc for all, then PodValidateLimitFunc)."""
    namespace = member(pod, "metadata").get("namespace") or "default"
    found = [each for each in ranges if (member(each, "metadata").get("namespace") or "default") == namespace]
    if len(msgspec.json.encode(found)) * len([*_containers(spec)]) > _MOST_OF_RANGES:
        raise DecodeError("spec.containers", "too many to hold each against the LimitRanges of its namespace")
    for each in found:
        _default_by_limit_range(spec, each, notes)
    of_pod = cache(lambda kind: of_all_containers(spec, kind, whole=True))
    for each in found:
        name = rendered(member(each, "metadata").get("name"))
        for item in elements(member(each, "spec"), "limits"):
            for where, resources in _limited(spec, item.get("type"), of_pod):
                refuse_outside(where, resources, item, name)


def _limited(spec: Json, of: object, of_pod: Callable[[str], Json]) -> Iterator[tuple[str, Json]]:
    """Yield the requests and limits that an item of a type is about, each with its place."""
    if of == "Container":
        for container in _containers(spec):
            yield f"spec: container {rendered(container.get('name'))}", member(container, "resources")
    elif of == "Pod":
        yield "spec: all containers", {kind: of_pod(kind) for kind in ("requests", "limits")}


def _default_by_limit_range(spec: Json, limit_range: Mapping[str, Any], notes: Notes) -> None:
    """Add what PodMutateLimitFunc adds, with SetDefaults_LimitRangeItem before it."""
    limits: Json = {}
    requests: Json = {}
    for item in elements(member(limit_range, "spec"), "limits"):
        if item.get("type") == "Container":
            default = {**member(item, "max"), **member(item, "default")}
            limits |= default
            requests |= {**member(item, "min"), **default, **member(item, "defaultRequest")}
    added: list[str] = []
    name = rendered(member(limit_range, "metadata").get("name"))
    for container in _containers(spec):
        resources = container.get("resources") or {}
        container["resources"] = resources
        if isinstance(resources, dict):
            _refuse_less_than_requested(container, resources, limits, name)
            _filled(resources, "limits", limits)
            added += _filled(resources, "requests", requests)
    _note(notes.done, "requests", added, f"of LimitRange {name}")


def refuse_outside(where: str, resources: Json, item: Json, name: str, what: str = "pod") -> None:
    """Raise DecodeError for requests or limits outside of an item of a LimitRange of this name."""
    requests, limits = member(resources, "requests"), member(resources, "limits")
    for bound in ("min", "max", _RATIO):
        for resource, enforced in member(item, bound).items():
            why = _outside(bound, requests.get(resource), limits.get(resource), enforced)
            if why:
                of_range = f"the {bound} {rendered(enforced)} of LimitRange {name}"
                raise DecodeError(f"{where}, {rendered(resource)}", rejected(f"{why} {of_range}", what))


def _outside(bound: str, request: object, limit: object, enforced: object) -> str:
    """Source: limitranger/admission.go (minConstraint, maxConstraint, limitRequestRatioConstraint)."""
    requested, most, edge = amount_of(request), amount_of(limit), amount_of(enforced)
    if edge is None:
        return ""
    if bound == _RATIO:
        if not requested or not most:
            return "needs a request and a limit for"
        return "limit / request is more than" if most * _WHOLE > edge * requested else ""
    if (request if bound == "min" else limit) is None:
        return f"needs a {'request' if bound == 'min' else 'limit'} for"
    for of, given, amount in (("requests", request, requested), ("limits", limit, most)):
        if amount is not None and (amount < edge if bound == "min" else amount > edge):
            return f"{rendered(given)} of {of} is {'less' if bound == 'min' else 'more'} than"
    return ""


def _refuse_less_than_requested(container: Json, resources: Json, limits: Json, name: str) -> None:
    """Source: pkg/apis/core/validation/validation.go (ValidateContainerResourceRequirements)."""
    for resource, requested in member(resources, "requests").items():
        limit = limits.get(resource) if resource not in member(resources, "limits") else None
        if limit is not None and (amount_of(requested) or 0) > (amount_of(limit) or 0):
            why = f"{rendered(requested)} is more than the limit {rendered(limit)} that LimitRange {name} adds"
            raise DecodeError(f"spec: container {rendered(container.get('name'))}, {rendered(resource)}", rejected(why))


def amount_of(value: object) -> int | None:
    """Return a quantity, or None for anything else, which the decoder rejects."""
    try:
        return nanos(rendered(value))
    except QuantityError:
        return None


def _priority(spec: Json, classes: Sequence[Mapping[str, Any]], notes: Notes, *, are_all: bool) -> None:
    """Source: priority/admission.go (admitPod). A priority that the manifest has is that of its class."""
    name = spec.get("priorityClassName")
    if not name:
        defaults = [each for each in classes if each.get("globalDefault") is True]
        differs = spec.get("priority") or spec.get("preemptionPolicy") == "Never"
        none = {"value": 0} if are_all and differs else None
        found = min(
            defaults, key=lambda each: value if isinstance(value := each.get("value"), int) else 0, default=none
        )
    elif str(name) in _SYSTEM_PRIORITIES:
        found = {"value": _SYSTEM_PRIORITIES[str(name)]}
    else:
        found = next((each for each in classes if member(each, "metadata").get("name") == name), None)
        if found is None and are_all:
            raise DecodeError("spec.priorityClassName", rejected(f"there is no PriorityClass {rendered(name)}"))
        if found is None and spec.get("priority") is None:
            notes.of_priority.append(
                f"priorityClassName {rendered(name)}: {absent('PriorityClass')}, so its priority is 0"
            )
    if found is None:
        return
    named = rendered(member(found, "metadata").get("name") or name)
    defaults_to = {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    for field, of_class in (("priority", "value"), ("preemptionPolicy", "preemptionPolicy")):
        value = found.get(of_class) or defaults_to[field]
        if spec.get(field) not in (None, value):
            of = f"PriorityClass {named}" if name or "metadata" in found else "no default PriorityClass"
            why = f"{rendered(spec[field])}, but with {of} it is {rendered(value)}"
            raise DecodeError(f"spec.{field}", rejected(why))
    if spec.get("priority") is None:
        spec["priority"] = found.get("value")
        _note(notes.done, "priority", [rendered(found.get("value"))], f"of PriorityClass {named}")
    taken = {"priorityClassName": member(found, "metadata").get("name"), **found}
    for field in ("priorityClassName", "preemptionPolicy"):
        spec[field] = spec.get(field) or taken.get(field)


def _tolerate_for_a_time(spec: Json) -> None:
    """Source: defaulttolerationseconds/admission.go (Admit)."""
    tolerations = elements(spec, "tolerations")
    for key in _LIFECYCLE_TAINTS:
        if not any(
            (each.get("key") or key) == key and (each.get("effect") or "NoExecute") == "NoExecute"
            for each in tolerations
        ):
            add_tolerations(spec, [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}])


def add_tolerations(spec: Json, added: Sequence[Mapping[str, Any]]) -> None:
    """Add tolerations that the pod does not have."""
    present = spec.get("tolerations") or []
    if isinstance(present, list):
        spec["tolerations"] = [*{_text(each): each for each in (*present, *added)}.values()]


def _text(value: object) -> bytes:
    """Return JSON that is the same for equal values. To look a value up among many costs no pass over them."""
    return msgspec.json.encode(value, order="deterministic")


def _runtime_class(spec: Json, classes: Sequence[Mapping[str, Any]], notes: Notes, *, are_all: bool) -> None:
    """Source: runtimeclass/admission.go (setOverhead, setScheduling, validateOverhead)."""
    name = spec.get("runtimeClassName")
    if not name:
        return
    found = next((each for each in classes if member(each, "metadata").get("name") == name), None)
    if found is None and are_all:
        raise DecodeError("spec.runtimeClassName", rejected(f"there is no RuntimeClass {rendered(name)}"))
    if found is None:
        why = f"{absent('RuntimeClass')}, so its overhead, node selector and tolerations are not judged"
        notes.unknown.append(f"runtimeClassName {rendered(name)}: {why}")
        return
    overhead, scheduling = member(found, "overhead", "podFixed"), member(found, "scheduling")
    selector = member(scheduling, "nodeSelector")
    present = member(spec, "overhead")
    if present and _amounts(present) != _amounts(overhead):
        of_class = f"RuntimeClass {rendered(name)} has {', '.join(_pairs(overhead)) or 'none'}"
        raise DecodeError("spec.overhead", rejected(f"{', '.join(_pairs(present))}, but {of_class}"))
    if overhead:
        spec["overhead"] = overhead
    if selector:
        spec["nodeSelector"] = {**_agreed(member(spec, "nodeSelector"), selector, name), **selector}
    add_tolerations(spec, elements(scheduling, "tolerations"))
    _note(notes.done, "overhead", [*_pairs(overhead)], f"of RuntimeClass {rendered(name)}")
    _note(notes.done, "node selector", [*_pairs(selector)], f"of RuntimeClass {rendered(name)}")


def _amounts(resources: Json) -> Mapping[str, int | None]:
    return {name: amount_of(amount) for name, amount in resources.items()}


def _agreed(selector: Json, of_class: Json, name: str) -> Json:
    for key, value in of_class.items():
        if selector.get(key, value) != value:
            why = f"{rendered(selector[key])}, but RuntimeClass {rendered(name)} has {rendered(value)}"
            raise DecodeError(f"spec.nodeSelector.{rendered(key)}", rejected(why))
    return selector


def _merge_label_keys(pod: Json, spec: Json, notes: Notes) -> None:
    """strategy.go (mutatePodAffinity). kube-scheduler merges the keys of spread constraints itself.

    Source of the latter: pkg/scheduler/framework/plugins/podtopologyspread/common.go.
    """
    labels = member(pod, "metadata", "labels")
    merged: list[str] = []
    for side in ("podAffinity", "podAntiAffinity"):
        affinity = member(spec, "affinity", side)
        preferred = [member(each, "podAffinityTerm") for each in elements(affinity, PREFERRED)]
        for term in (*elements(affinity, TERMS), *preferred):
            selector = term.get("labelSelector")
            if isinstance(selector, dict):
                merged += _merged(selector, term, labels)
    _note(notes.done, "", [*dict.fromkeys(merged)], "in selectors of affinity terms")


def _merged(selector: Json, term: Json, labels: Json) -> list[str]:
    """Add the labels that a term names to its selector, as requirements. A key that the pod lacks is ignored."""
    present = selector.get("matchExpressions") or []
    if not isinstance(present, list):
        return []
    found, added = {_text(each): each for each in present}, list[str]()
    for member_name, relation in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        keys = term.get(member_name)
        for key in keys if isinstance(keys, list) else ():
            if isinstance(key, str) and key in labels:
                label = "" if labels[key] is None else labels[key]  # as the API server decodes it
                requirement = {"key": key, "operator": relation, "values": [label]}
                if found.setdefault(_text(requirement), requirement) is requirement:  # else it was stored, without uid
                    added.append(f"{key} {'=' if relation == 'In' else '!='} {rendered(label)}".rstrip())
    if added:
        selector["matchExpressions"] = [*found.values()]
    return added


def _filled(resources: Json, name: str, defaults: Mapping[str, Any]) -> list[str]:
    """Add the missing amounts to requests or limits. Return them as text."""
    present = resources.get(name) or {}
    added = {key: value for key, value in defaults.items() if key not in present} if isinstance(present, dict) else {}
    if added:
        resources[name] = {**present, **added}
    return [*_pairs(added)]


def _pairs(amounts: Mapping[str, Any]) -> Iterator[str]:
    return (f"{name}={rendered(value)}" for name, value in amounts.items())


def absent(kind: str) -> str:
    """Return that a kind of OF_MANIFESTS is unknown, and what prints its objects."""
    return f"no {kind} is at hand (`kubectl get -o json {OF_MANIFESTS[kind]}` prints them)"


def rendered(value: object) -> str:
    """Return a value of the manifest for people. Commands and the page escape what it contains."""
    text = bytes(value).decode() if isinstance(value, msgspec.Raw) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def rejected(why: str, what: str = "pod") -> str:
    """Return what an error says of a pod that the API server would refuse."""
    return f"{why}: the API server refuses this {what}"


def _note(notes: list[str], what: str, added: Sequence[str], whence: str) -> None:
    """Note some additions of one kind, if there are any."""
    distinct = [*dict.fromkeys(added)]
    if distinct:
        notes.append(f"{what} {listed(distinct, _MAX_LISTED)} {whence}".strip())

"""What the API server would refuse, or drop, of a manifest: fields that no pod has, and values that no pod may have.

Only what rules read is checked. kubectl asks for strict decoding, so the API server refuses a field that it does not
know. For other clients it drops the field.

Source: k8s.io/api core/v1/types.go, and k8s.io/kubernetes pkg/apis/core/validation/validation.go (ValidateTolerations,
validateTopologySpreadConstraints, validatePodAffinityTerm, ValidatePreferredSchedulingTerms,
validateResourceRequirements); for selectors pkg/apis/apps/validation/validation.go.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

from app.explain.stored_pod import PREFERRED, TERMS, Json, Notes, amount_of, member, rejected, rendered
from app.objects.decode import DecodeError

_TERM_LISTS: Final = f"{TERMS}:{{}} {PREFERRED}:{{}}"
_TYPES: Final[Mapping[str, str]] = {
    "PodSpec": "activeDeadlineSeconds affinity:Affinity automountServiceAccountToken containers:Container dnsConfig "
    "dnsPolicy enableServiceLinks ephemeralContainers evictionResponders hostAliases hostIPC hostNetwork hostPID "
    "hostUsers hostname hostnameOverride imagePullSecrets initContainers:Container nodeName nodeSelector os overhead "
    "preemptionPolicy priority priorityClassName readinessGates resourceClaims resources:ResourceRequirements "
    "restartPolicy runtimeClassName schedulerName schedulingGates schedulingGroup securityContext serviceAccount "
    "serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds "
    "tolerations:Toleration topologySpreadConstraints:TopologySpreadConstraint volumes workloadRef",
    "Container": "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports:ContainerPort "
    "readinessProbe resizePolicy resources:ResourceRequirements restartPolicy restartPolicyRules securityContext "
    "startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts "
    "workingDir",
    "ContainerPort": "containerPort hostIP hostPort name protocol",
    "ResourceRequirements": "claims limits requests",
    "Affinity": "nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAffinity",
    "NodeAffinity": _TERM_LISTS.format("NodeSelector", "PreferredSchedulingTerm"),
    "NodeSelector": "nodeSelectorTerms:NodeSelectorTerm",
    "NodeSelectorTerm": "matchExpressions:NodeSelectorRequirement matchFields:NodeSelectorRequirement",
    "NodeSelectorRequirement": "key operator values",
    "PreferredSchedulingTerm": "preference:NodeSelectorTerm weight",
    "PodAffinity": _TERM_LISTS.format("PodAffinityTerm", "WeightedPodAffinityTerm"),
    "WeightedPodAffinityTerm": "podAffinityTerm:PodAffinityTerm weight",
    "PodAffinityTerm": "labelSelector:LabelSelector matchLabelKeys mismatchLabelKeys namespaceSelector:LabelSelector "
    "namespaces topologyKey",
    "LabelSelector": "matchExpressions:LabelSelectorRequirement matchLabels",
    "LabelSelectorRequirement": "key operator values",
    "Toleration": "effect key operator tolerationSeconds value",
    "TopologySpreadConstraint": "labelSelector:LabelSelector matchLabelKeys maxSkew minDomains nodeAffinityPolicy "
    "nodeTaintsPolicy topologyKey whenUnsatisfiable",
}
FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    name: {field: inner for field, _, inner in (each.partition(":") for each in text.split())}
    for name, text in _TYPES.items()
}
"""Type -> its fields in any release, each with its own type if that is one of these."""
_OF_SPEC: Final = frozenset({"affinity", "nodeSelector", "tolerations", "topologySpreadConstraints", "schedulerName"})
"""Fields of a pod's spec that no workload of these groups has further up."""
_GROUPS: Final = frozenset({"apps", "batch", "v1"})
_ROLLED: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_MAX_LISTED: Final = 4
_LONGEST: Final = 120  # characters of a path, whose end says the most


def note_unknown_fields(manifest: Json, path: str, pod: Json, notes: Notes) -> None:
    """Note the fields of a pod's spec that no release has. `path` is that of the template in the manifest."""
    found, above = [], ""
    if path and str(manifest.get("apiVersion")).partition("/")[0] in _GROUPS:
        for name in ("", *path.split(".")):
            above, manifest = (f"{above}{name}.", member(manifest, name)) if name else ("", manifest)
            found += [f"{above}{each}" for each in sorted(manifest.keys() & _OF_SPEC)]
    spec = _typed(pod.get("spec"), "PodSpec", f"{path}.spec".removeprefix("."))
    unknown = (f"{place}.{name}" for place, of, each in spec for name in each if name not in FIELDS[of])
    found += islice(unknown, _MAX_LISTED + 1)
    if found:
        names = ", ".join(each[-_LONGEST:] for each in found[:_MAX_LISTED]) + (", ..." if found[_MAX_LISTED:] else "")
        notes.unknown.append(f"{names}: there is no such field, so the API server refuses or drops it")


def _typed(value: object, of: str, path: str) -> Iterator[tuple[str, str, Json]]:
    """Yield each object of a known type in a value of one, with its place."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _typed(each, of, f"{path}[{index}]")
    elif isinstance(value, dict):
        yield path, of, value
        for name, inner in FIELDS[of].items():
            if inner:
                yield from _typed(value.get(name), inner, f"{path}.{name}")


def refuse_other_labels(manifest: Json, template: Json) -> None:
    """Raise DecodeError for a selector that the labels of the template do not match.

    Source: pkg/apis/apps/validation/validation.go (ValidatePodTemplateSpecForReplicaSet and others).
    """
    labels, kind = member(template, "metadata", "labels"), str(manifest.get("kind"))
    for key, value in member(manifest, "spec", "selector", "matchLabels").items():
        if kind in _ROLLED and labels.get(key) != value:
            why = f"{rendered(key)}={rendered(value)} is no label of the template"
            raise DecodeError("spec.selector", f"{why}: the API server refuses this {kind}")


def refuse_invalid(spec: Json) -> None:
    """Raise DecodeError for a value of a completed spec that the API server refuses.

    Values of another type are for the decoder to reject.
    """
    for path, of, each in _typed(spec, "PodSpec", "spec"):
        for field, why in _CHECKS[of](each) if of in _CHECKS else ():
            raise DecodeError(f"{path}.{field}", rejected(why))


Found: TypeAlias = Iterator[tuple[str, str]]
"""Fields, and what is wrong with them."""


def _of_resources(resources: Json) -> Found:
    """Yield requests beyond their limits. Those of extended resources and huge pages have to be equal to them."""
    limits = member(resources, "limits")
    for of in ("requests", "limits"):
        for resource in member(resources, of):
            if "/" not in resource and not resource.startswith("hugepages-") and resource not in _STANDARD:
                yield f"{of}.{rendered(resource)}", f"is none of {', '.join(_STANDARD)}"
    for resource, requested in member(resources, "requests").items():
        is_native = ("/" not in resource or "kubernetes.io/" in resource) and not resource.startswith("hugepages-")
        limit, amount = amount_of(limits.get(resource)), amount_of(requested)
        if resource not in limits and not is_native:
            yield f"limits.{rendered(resource)}", "required for a resource of this kind"
        elif limit is not None and amount is not None and (amount > limit or (amount < limit and not is_native)):
            than = "more" if amount > limit else "less"
            yield (
                f"requests.{rendered(resource)}",
                f"{rendered(requested)} is {than} than its limit {rendered(limits[resource])}",
            )


def _of_toleration(each: Json) -> Found:
    operator, effect = each.get("operator") or "Equal", each.get("effect") or ""
    yield from _one_of("operator", operator, ("Equal", "Exists", "Lt", "Gt"))
    yield from _one_of("effect", effect, ("", "NoSchedule", "PreferNoSchedule", "NoExecute"))
    if operator != "Exists" and not each.get("key"):
        yield "operator", "without a key it has to be Exists"
    if operator == "Exists" and each.get("value"):
        yield "value", "Exists has none"
    if effect != "NoExecute" and each.get("tolerationSeconds") is not None:
        yield "effect", "with tolerationSeconds it has to be NoExecute"


def _of_constraint(each: Json) -> Found:
    yield from (found for name in ("maxSkew", "minDomains") for found in _positive(name, each))
    yield from _of_term(each)
    yield from _one_of("whenUnsatisfiable", each.get("whenUnsatisfiable"), ("DoNotSchedule", "ScheduleAnyway"))


def _of_term(each: Json) -> Found:
    if not each.get("topologyKey"):
        yield "topologyKey", "required"


def _of_weight(each: Json) -> Found:
    yield from _positive("weight", each, 100)


def _positive(name: str, of: Json, most: int = 2**31 - 1) -> Found:
    number = of.get(name, int(name == "minDomains"))  # which alone may be left out
    if isinstance(number, int) and not 0 < number <= most:
        yield name, f"{number} is not from 1 to {most}"


def _one_of(name: str, value: object, known: Sequence[str]) -> Found:
    if value not in known:
        yield name, f"{rendered(value)} is none of {', '.join(each for each in known if each)}"


_CHECKS: Final[Mapping[str, Callable[[Json], Found]]] = {
    "ResourceRequirements": _of_resources,
    "Toleration": _of_toleration,
    "TopologySpreadConstraint": _of_constraint,
    "PodAffinityTerm": _of_term,
    "WeightedPodAffinityTerm": _of_weight,
    "PreferredSchedulingTerm": _of_weight,
}

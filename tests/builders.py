"""Fluent builders of v1 objects for table tests: `make_pod("p").in_namespace("x").label("app", "a").on("n1").obj()`.

A builder is immutable: every method returns a new one, so rows of a table can share a base.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias

Object: TypeAlias = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class _Labelled:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def label(self, key: str, value: str) -> Self:
        """Add or replace a label."""
        return replace(self, labels={**self.labels, key: value})

    def without_label(self, key: str) -> Self:
        """Remove a label."""
        return replace(self, labels={name: value for name, value in self.labels.items() if name != key})

    def obj(self) -> Object:
        """Return the v1 object in the API server's form, without fields that scheduling does not read."""
        return {"metadata": {"name": self.name, "labels": dict(self.labels)}}

    def json(self) -> bytes:
        """Return the v1 object as JSON."""
        return json.dumps(self.obj()).encode()


@dataclass(frozen=True, slots=True)
class NodeBuilder(_Labelled):
    """Builds a v1.Node. Repeated calls of a method add up."""

    taints: Sequence[Object] = ()
    cordoned: bool = False
    amounts: Mapping[str, str | int] = field(default_factory=dict)
    images: Sequence[Object] = ()
    conditions: Sequence[Object] = ()
    whole: Mapping[str, str | int] = field(default_factory=dict)

    def taint(self, key: str, value: str, effect: str) -> Self:
        """Add a taint. An empty value is left out."""
        taint = {"key": key, "value": value, "effect": effect}
        return replace(self, taints=[*self.taints, {name: text for name, text in taint.items() if text}])

    def unschedulable(self) -> Self:
        """Set `spec.unschedulable`."""
        return replace(self, cordoned=True)

    def allocatable(self, **amounts: str | int) -> Self:
        """Set allocatable resources: `allocatable(cpu="4", memory="16Gi", pods=110)`."""
        return replace(self, amounts={**self.amounts, **amounts})

    def capacity(self, **amounts: str | int) -> Self:
        """Set the capacity, which includes resources that are reserved for the system."""
        return replace(self, whole={**self.whole, **amounts})

    def image(self, size: int, *names: str) -> Self:
        """Add an image with its names and its size in bytes."""
        return replace(self, images=[*self.images, {"names": list(names), "sizeBytes": size}])

    def condition(self, kind: str, status: str) -> Self:
        """Add a condition of a type."""
        return replace(self, conditions=[*self.conditions, {"type": kind, "status": status}])

    def obj(self) -> Object:
        """Return the v1 object; members that were not set are absent."""
        spec = {"taints": [dict(taint) for taint in self.taints], "unschedulable": self.cordoned}
        status = {
            "allocatable": dict(self.amounts),
            "capacity": dict(self.whole),
            "images": [dict(image) for image in self.images],
            "conditions": [dict(condition) for condition in self.conditions],
        }
        node: Object = {"metadata": {"name": self.name, "labels": dict(self.labels)}}
        for member, content in (("spec", spec), ("status", status)):
            stated = {name: value for name, value in content.items() if value}
            if stated:
                node[member] = stated
        return node


@dataclass(frozen=True, slots=True)
class NamespaceBuilder(_Labelled):
    """Builds a v1.Namespace."""


@dataclass(frozen=True, slots=True)
class PodBuilder(_Labelled):
    """Builds a v1.Pod. Repeated calls of a method add up.

    `image` starts a container. `requests` and `host_port` apply to the last container, or start the first one.
    """

    namespace: str = "default"
    identity: str = ""
    node: str = ""
    phase_name: str = ""
    deletion: str = ""
    creation: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    attract: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    repel: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    nodes: Mapping[str, Any] = field(default_factory=dict)
    selected: Mapping[str, str] = field(default_factory=dict)
    containers: Sequence[Object] = ()
    lists: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    owners: Sequence[Object] = ()
    spec: Mapping[str, object] = field(default_factory=dict)
    status: Mapping[str, object] = field(default_factory=dict)

    def in_namespace(self, namespace: str) -> Self:
        """Put the pod into a namespace."""
        return replace(self, namespace=namespace)

    def uid(self, uid: str) -> Self:
        """Set the uid. The default is NAMESPACE/NAME."""
        return replace(self, identity=uid)

    def on(self, node: str) -> Self:
        """Bind the pod to a node."""
        return replace(self, node=node)

    def phase(self, phase: str) -> Self:
        """Set `status.phase`."""
        return replace(self, phase_name=phase)

    def terminating(self) -> Self:
        """Give the pod a deletionTimestamp."""
        return replace(self, deletion="2026-01-01T00:00:00Z")

    def required_affinity(self, *terms: Object) -> Self:
        """Add required affinity terms."""
        return replace(self, attract=_extended(self.attract, REQUIRED, terms))

    def preferred_affinity(self, weight: int, term: Object) -> Self:
        """Add a preferred affinity term."""
        return replace(self, attract=_extended(self.attract, PREFERRED, [_weighted(weight, term)]))

    def required_anti_affinity(self, *terms: Object) -> Self:
        """Add required anti-affinity terms."""
        return replace(self, repel=_extended(self.repel, REQUIRED, terms))

    def preferred_anti_affinity(self, weight: int, term: Object) -> Self:
        """Add a preferred anti-affinity term."""
        return replace(self, repel=_extended(self.repel, PREFERRED, [_weighted(weight, term)]))

    def node_selector(self, labels: Mapping[str, str]) -> Self:
        """Add labels that the node must have."""
        return replace(self, selected={**self.selected, **labels})

    def required_node_affinity(self, *terms: Object) -> Self:
        """Add terms. The node must match one of them. A selector without terms matches no node."""
        known = self.nodes.get(REQUIRED, {}).get("nodeSelectorTerms", ())
        return replace(self, nodes={**self.nodes, REQUIRED: {"nodeSelectorTerms": [*known, *terms]}})

    def preferred_node_affinity(self, weight: int, term: Object) -> Self:
        """Add a preferred node affinity term."""
        return replace(self, nodes=_extended(self.nodes, PREFERRED, [{"weight": weight, "preference": term}]))

    def toleration(self, key: str = "", operator: str = "", value: str = "", effect: str = "") -> Self:
        """Add a toleration. Empty values are left out."""
        return self._with("tolerations", _stated(key=key, operator=operator, value=value, effect=effect))

    def volume(self, volume: Object) -> Self:
        """Add a volume."""
        return self._with("volumes", volume)

    def spread(
        self,
        topology_key: str,
        label_selector: Object | None = None,
        *,
        max_skew: int = 1,
        when: str = "DoNotSchedule",
        **members: object,
    ) -> Self:
        """Add a topology spread constraint. Further fields have the names of the API."""
        constraint = {"maxSkew": max_skew, "topologyKey": topology_key, "whenUnsatisfiable": when, **members}
        if label_selector is not None:
            constraint["labelSelector"] = label_selector
        return self._with("topologySpreadConstraints", constraint)

    def image(self, image: str) -> Self:
        """Add a container of an image."""
        return replace(self, containers=[*self.containers, {"image": image}])

    def requests(self, **amounts: str | int) -> Self:
        """Set requests of the last container: `requests(cpu="100m", memory="1Gi")`."""
        return self._with_resources("requests", amounts)

    def limits(self, **amounts: str | int) -> Self:
        """Set limits of the last container: `limits(cpu="100m")`."""
        return self._with_resources("limits", amounts)

    def host_port(self, port: int, protocol: str = "", host_ip: str = "") -> Self:
        """Add a host port to the last container. An empty protocol or address is left out."""
        ports = self._last_container().get("ports", ())
        taken = {"containerPort": port, "hostPort": port, **_stated(protocol=protocol, hostIP=host_ip)}
        return self._with_container(ports=[*ports, taken])

    def owned_by(self, kind: str, name: str, uid: str) -> Self:
        """Give the pod a controller."""
        owner = {"kind": kind, "name": name, "uid": uid, "controller": True}
        return replace(self, owners=[*self.owners, owner])

    def priority(self, priority: int) -> Self:
        """Set `spec.priority`. Without this call it is absent."""
        return replace(self, spec={**self.spec, "priority": priority})

    def scheduler(self, name: str) -> Self:
        """Set `spec.schedulerName`."""
        return replace(self, spec={**self.spec, "schedulerName": name})

    def preemption_policy(self, policy: str) -> Self:
        """Set `spec.preemptionPolicy`."""
        return replace(self, spec={**self.spec, "preemptionPolicy": policy})

    def created(self, time: str) -> Self:
        """Set `metadata.creationTimestamp`, RFC 3339."""
        return replace(self, creation=time)

    def annotated(self, key: str, value: str) -> Self:
        """Add or replace an annotation."""
        return replace(self, annotations={**self.annotations, key: value})

    def of_group(self, name: str, minimum: int | str = "", timeout: int | str = "") -> Self:
        """Put the pod into a group. Empty values get no annotation."""
        stated = _stated(**{"kindred.dev/group-minimum": str(minimum), "kindred.dev/group-timeout": str(timeout)})
        return replace(self.label("kindred.dev/group", name), annotations={**self.annotations, **stated})

    def in_scheduling_group(self, name: str) -> Self:
        """Set `spec.schedulingGroup`."""
        return replace(self, spec={**self.spec, "schedulingGroup": {"podGroupName": name}})

    def packed(self, way: str, topology_key: str = "") -> Self:
        """Set the packing of the pod's group."""
        stated = _stated(**{"kindred.dev/group-packing": way, "kindred.dev/group-topology-key": topology_key})
        return replace(self, annotations={**self.annotations, **stated})

    def gated(self, *names: str) -> Self:
        """Set `spec.schedulingGates`."""
        return replace(self, spec={**self.spec, "schedulingGates": [{"name": name} for name in names]})

    def unschedulable(self, message: str, since: str = "") -> Self:
        """Add the condition PodScheduled as kube-scheduler writes it after an attempt that failed."""
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        if since:
            condition["lastTransitionTime"] = since
        return replace(self, status={**self.status, "conditions": [condition]})

    def started(self, time: str) -> Self:
        """Set `status.startTime`."""
        return replace(self, status={**self.status, "startTime": time})

    def nominated(self, node: str) -> Self:
        """Set `status.nominatedNodeName`."""
        return replace(self, status={**self.status, "nominatedNodeName": node})

    def preempted(self) -> Self:
        """Make the pod terminate because of a preemption."""
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        return replace(self.terminating(), status={**self.status, "conditions": [condition]})

    def _with(self, member: str, item: Object) -> Self:
        return replace(self, lists=_extended(self.lists, member, [item]))

    def _last_container(self) -> Object:
        return self.containers[-1] if self.containers else {}

    def _with_resources(self, member: str, amounts: Mapping[str, str | int]) -> Self:
        stated = self._last_container().get("resources", {})
        return self._with_container(resources={**stated, member: {**stated.get(member, {}), **amounts}})

    def _with_container(self, **members: object) -> Self:
        return replace(self, containers=[*self.containers[:-1], {**self._last_container(), **members}])

    def obj(self) -> Object:
        """Return the v1 object; members that were not set are absent."""
        metadata: Object = {
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.identity or f"{self.namespace}/{self.name}",
            "labels": dict(self.labels),
        }
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        if self.creation:
            metadata["creationTimestamp"] = self.creation
        if self.deletion:
            metadata["deletionTimestamp"] = self.deletion
        if self.owners:
            metadata["ownerReferences"] = list(self.owners)
        affinity = _stated(
            podAffinity=dict(self.attract), podAntiAffinity=dict(self.repel), nodeAffinity=dict(self.nodes)
        )
        spec = _stated(
            nodeName=self.node,
            nodeSelector=dict(self.selected),
            affinity=affinity,
            containers=list(self.containers),
            **self.lists,
        )
        pod: Object = {"metadata": metadata, "spec": {**spec, **self.spec}}
        status = {**_stated(phase=self.phase_name), **self.status}
        if status:
            pod["status"] = status
        return pod


def make_node(name: str) -> NodeBuilder:
    """Start a node without labels."""
    return NodeBuilder(name)


def make_namespace(name: str) -> NamespaceBuilder:
    """Start a namespace without labels."""
    return NamespaceBuilder(name)


def make_pod(name: str) -> PodBuilder:
    """Start a pod in the namespace `default`, on no node."""
    return PodBuilder(name)


def term(
    topology_key: str,
    label_selector: Object | None = None,
    *,
    namespaces: Sequence[str] = (),
    namespace_selector: Object | None = None,
) -> Object:
    """Make a PodAffinityTerm. A selector that is None is absent, which means null."""
    made: Object = {"topologyKey": topology_key}
    if label_selector is not None:
        made["labelSelector"] = label_selector
    if namespaces:
        made["namespaces"] = list(namespaces)
    if namespace_selector is not None:
        made["namespaceSelector"] = namespace_selector
    return made


def labelled(**labels: str) -> Object:
    """Make a selector of matchLabels. Without arguments it is `{}`, which matches everything."""
    return {"matchLabels": labels} if labels else {}


def expressed(key: str, operator: str, *values: str) -> Object:
    """Make a selector, or a node selector term, of one matchExpression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def named(operator: str, *names: str) -> Object:
    """Make a node selector term of one matchField, the node's name."""
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(names)}]}


def _stated(**members: object) -> Object:
    return {name: member for name, member in members.items() if member}


def _weighted(weight: int, term: Object) -> Object:
    return {"weight": weight, "podAffinityTerm": term}


def _extended(
    lists: Mapping[str, Sequence[Object]], kind: str, terms: Sequence[Object]
) -> Mapping[str, Sequence[Object]]:
    return {**lists, kind: [*lists.get(kind, ()), *terms]}

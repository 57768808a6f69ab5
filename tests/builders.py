"""Fluent builders of v1 objects for table tests: `make_pod("p").in_namespace("x").label("app", "a").on("n1").obj()`.

A builder is a value: every method gives a new one, so a row of a table can start from a shared base.
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
        """Take a label away."""
        return replace(self, labels={name: value for name, value in self.labels.items() if name != key})

    def obj(self) -> Object:
        """Give the v1 object as the API server would write it, without what scheduling does not read."""
        return {"metadata": {"name": self.name, "labels": dict(self.labels)}}

    def json(self) -> bytes:
        """Give the v1 object as JSON."""
        return json.dumps(self.obj()).encode()


@dataclass(frozen=True, slots=True)
class NodeBuilder(_Labelled):
    """Builds a v1.Node."""


@dataclass(frozen=True, slots=True)
class NamespaceBuilder(_Labelled):
    """Builds a v1.Namespace."""


@dataclass(frozen=True, slots=True)
class PodBuilder(_Labelled):
    """Builds a v1.Pod; repeated calls that add affinity terms add to the list."""

    namespace: str = "default"
    identity: str = ""
    node: str = ""
    phase_name: str = ""
    deletion: str = ""
    attract: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    repel: Mapping[str, Sequence[Object]] = field(default_factory=dict)

    def in_namespace(self, namespace: str) -> Self:
        """Put the pod into a namespace."""
        return replace(self, namespace=namespace)

    def uid(self, uid: str) -> Self:
        """Set the uid, which is NAMESPACE/NAME otherwise."""
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

    def obj(self) -> Object:
        """Give the v1 object; members that were not set are absent."""
        metadata: Object = {
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.identity or f"{self.namespace}/{self.name}",
            "labels": dict(self.labels),
        }
        if self.deletion:
            metadata["deletionTimestamp"] = self.deletion
        spec: Object = {"nodeName": self.node} if self.node else {}
        affinity = {
            member: {kind: list(terms) for kind, terms in lists.items()}
            for member, lists in (("podAffinity", self.attract), ("podAntiAffinity", self.repel))
            if lists
        }
        if affinity:
            spec["affinity"] = affinity
        pod: Object = {"metadata": metadata, "spec": spec}
        if self.phase_name:
            pod["status"] = {"phase": self.phase_name}
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
    """Make a PodAffinityTerm; a selector that is None is absent, i.e. null."""
    made: Object = {"topologyKey": topology_key}
    if label_selector is not None:
        made["labelSelector"] = label_selector
    if namespaces:
        made["namespaces"] = list(namespaces)
    if namespace_selector is not None:
        made["namespaceSelector"] = namespace_selector
    return made


def labelled(**labels: str) -> Object:
    """Make a selector of matchLabels; without arguments it is `{}`, which matches everything."""
    return {"matchLabels": labels} if labels else {}


def expressed(key: str, operator: str, *values: str) -> Object:
    """Make a selector of one matchExpression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def _weighted(weight: int, term: Object) -> Object:
    return {"weight": weight, "podAffinityTerm": term}


def _extended(
    lists: Mapping[str, Sequence[Object]], kind: str, terms: Sequence[Object]
) -> Mapping[str, Sequence[Object]]:
    return {**lists, kind: [*lists.get(kind, ()), *terms]}

"""The verbs' messages as JSON Schema, for the OpenAPI description. The verbs themselves do not use these structs.

Source: k8s.io/kube-scheduler extender/v1/types.go. The verbs read keys in any case and write responses without a
struct, so the messages are declared here. Pods and nodes are described by the structs that decode them.
"""

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from app.admin.object_schemas import Name, NodeSchema, PodSchema
from app.objects.limits import MAX_NODES
from core.framework.interface import MAX_NODE_SCORE

Schema: TypeAlias = dict[str, Any]

REFERENCE: Final = "#/components/schemas/{name}"
_DNS_NAME: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_Pod: TypeAlias = Annotated[Schema, msgspec.Meta(extra_json_schema={"$ref": REFERENCE.format(name="Pod")})]
_Node: TypeAlias = Annotated[Schema, msgspec.Meta(extra_json_schema={"$ref": REFERENCE.format(name="Node")})]
_Violations: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Reasons: TypeAlias = Annotated[
    dict[str, str] | None, msgspec.Meta(description="Name of a node -> why it failed; null beside an Error.")
]


class _Part(msgspec.Struct, rename="camel"):
    """A part of an API object. The object may have more fields."""


class _Message(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """A message of the extender, with these fields and no other."""


class NodeList(_Part):
    """v1.NodeList."""

    items: Annotated[list[_Node], msgspec.Meta(min_length=1, max_length=MAX_NODES)]


class ExtenderArgsOfNames(_Message):
    """With `nodeCacheCapable: true`."""

    pod: _Pod
    node_names: Annotated[
        list[str], msgspec.Meta(min_length=1, max_length=MAX_NODES, extra_json_schema={"uniqueItems": True})
    ]
    nodes: None = None


class ExtenderArgsOfObjects(_Message):
    """With `nodeCacheCapable: false`."""

    pod: _Pod
    nodes: NodeList
    node_names: None = None


class PassedNodeList(_Part):
    """v1.NodeList: the nodes passed on."""

    items: list[Schema]


class ExtenderFilterResult(_Message):
    """The nodes have the form of the request. Objects are returned byte for byte."""

    nodes: PassedNodeList | None
    node_names: list[str] | None
    failed_nodes: _Reasons
    failed_and_unresolvable_nodes: _Reasons
    error: Annotated[str, msgspec.Meta(description="Empty, or the reason why the scheduling attempt fails.")]


class HostPriority(_Message):
    """The score of one node."""

    host: str
    score: Annotated[int, msgspec.Meta(ge=0, le=MAX_NODE_SCORE)]


class NoPriorities(_Message):
    """In place of a HostPriorityList if the nodes of the request are unreadable. kube-scheduler logs it and goes on."""

    error: Name


class ExtenderBindingArgs(_Message):
    """The pod of a binding, and its node."""

    pod_name: Annotated[str, msgspec.Meta(pattern=_DNS_NAME, max_length=253)]
    pod_namespace: Annotated[str, msgspec.Meta(pattern=_DNS_NAME, max_length=63)]
    pod_uid: Name = msgspec.field(name="PodUID")
    node: Name


class ExtenderBindingResult(_Message):
    """The outcome of a binding."""

    error: Annotated[
        str,
        msgspec.Meta(
            description="Empty if the pod is bound, otherwise the reason. kube-scheduler then tries it again."
        ),
    ]


class PodUID(_Part):
    """The UID of a pod."""

    uid: Name = msgspec.field(name="UID")


class OfferedMetaVictims(_Part, rename="pascal"):
    """MetaVictims."""

    pods: list[PodUID] | None = None
    violations: _Violations | None = msgspec.field(default=None, name="NumPDBViolations")


class VictimMetadata(_Part):
    """metav1.ObjectMeta."""

    uid: Name


class Victim(_Part):
    """v1.Pod."""

    metadata: VictimMetadata


class OfferedVictims(_Part, rename="pascal"):
    """Victims."""

    pods: list[Victim] | None = None
    violations: _Violations | None = msgspec.field(default=None, name="NumPDBViolations")


class ExtenderPreemptionArgsOfUIDs(_Message):
    """With `nodeCacheCapable: true`."""

    pod: _Pod
    node_name_to_meta_victims: dict[str, OfferedMetaVictims]
    node_name_to_victims: None = None


class ExtenderPreemptionArgsOfPods(_Message):
    """With `nodeCacheCapable: false`."""

    pod: _Pod
    node_name_to_victims: dict[str, OfferedVictims]
    node_name_to_meta_victims: None = None


class MetaPod(_Message):
    """The UID of a pod."""

    uid: Name = msgspec.field(name="UID")


class MetaVictims(_Message):
    """The pods that must be preempted on a node."""

    pods: list[MetaPod]
    violations: _Violations = msgspec.field(name="NumPDBViolations")


class ExtenderPreemptionResult(_Message):
    """The nodes on which the pod fits without these pods; none if no pod must be preempted."""

    node_name_to_meta_victims: dict[str, MetaVictims]
    error: Annotated[str, msgspec.Meta(description="Why there is no node, for people; upstream has no such field.")] = (
        ""
    )


_KINDS: Final = (
    PodSchema,
    NodeSchema,
    ExtenderArgsOfNames,
    ExtenderArgsOfObjects,
    ExtenderFilterResult,
    NoPriorities,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderPreemptionArgsOfUIDs,
    ExtenderPreemptionArgsOfPods,
    ExtenderPreemptionResult,
)


def extender_schemas() -> dict[str, Schema]:
    """Return the messages, and their parts, by name."""
    (scores, *_), schemas = msgspec.json.schema_components([list[HostPriority], *_KINDS], ref_template=REFERENCE)
    return {
        **schemas,
        "HostPriorityList": {**scores, "description": "A score for each node of the request, in its order."},
        "ExtenderArgs": _either(
            "The request of `filter` and `prioritize`. Keys may be written in any case, as Go reads them.",
            ExtenderArgsOfNames,
            ExtenderArgsOfObjects,
        ),
        "ExtenderPreemptionArgs": _either(
            "The pod that preempts, and the victims that kube-scheduler chose on each node.",
            ExtenderPreemptionArgsOfUIDs,
            ExtenderPreemptionArgsOfPods,
        ),
    }


def _either(description: str, *kinds: type[_Message]) -> Schema:
    return {"description": description, "oneOf": [{"$ref": REFERENCE.format(name=kind.__name__)} for kind in kinds]}

"""The verbs' messages as JSON Schema, for the OpenAPI description. Nothing reads them to answer a question.

Source: k8s.io/kube-scheduler extender/v1/types.go, and of v1.Pod and v1.Node what the plugins read. As Go reads it,
null stands for an absent field, and unknown fields inside of a Pod or Node are passed over.
"""

from typing import Any, Final, TypeAlias

from app.limits import MAX_NODES
from core.framework.interface import MAX_NODE_SCORE

Schema: TypeAlias = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_INT32: Final[Schema] = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
_NAME: Final[Schema] = {"type": "string", "minLength": 1}
_NULL: Final[Schema] = {"type": "null"}
_NOT_NEGATIVE: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, _NULL]}


def _list(items: Schema, **rules: int) -> Schema:
    return {"type": "array", "items": items, **rules}


def _map(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _object(description: str, *required: str, **properties: Schema) -> Schema:
    """Return a part of an API object: what is not required may be null, and there may be more."""
    fields = {name: schema if name in required else _or_null(schema) for name, schema in properties.items()}
    return {"type": "object", "description": description, "properties": fields, "required": [*required]}


def _message(description: str, **properties: Schema) -> Schema:
    """Return a message of the extender: all of its fields, and no other."""
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


_LABELS: Final = _map(_TEXT)
_AMOUNTS: Final = _map(
    {
        "anyOf": [{"type": "string", "pattern": r"^[0-9]{1,9}(\.[0-9]{1,3})?(m|k|M|G|Ki|Mi|Gi)?$"}, _NOT_NEGATIVE],
        "description": "A quantity",
    }
)
_RESOURCES: Final = _object("ResourceRequirements", requests=_AMOUNTS, limits=_AMOUNTS)

_OF_PODS: Final[dict[str, Schema]] = {
    "LabelSelector": _object(
        "metav1.LabelSelector",
        matchLabels=_LABELS,
        matchExpressions=_list(
            _object(
                "A requirement",
                "key",
                "operator",
                key=_NAME,
                operator={"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                values=_list(_TEXT),
            )
        ),
    ),
    "PodAffinityTerm": _object(
        "v1.PodAffinityTerm",
        "topologyKey",
        topologyKey=_NAME,
        labelSelector=_ref("LabelSelector"),
        namespaceSelector=_ref("LabelSelector"),
        namespaces=_list(_NAME),
    ),
    "PodAffinity": _object(
        "v1.PodAffinity and v1.PodAntiAffinity",
        requiredDuringSchedulingIgnoredDuringExecution=_list(_ref("PodAffinityTerm")),
        preferredDuringSchedulingIgnoredDuringExecution=_list(
            _object(
                "v1.WeightedPodAffinityTerm",
                "weight",
                "podAffinityTerm",
                weight={"type": "integer", "minimum": 1, "maximum": 100},
                podAffinityTerm=_ref("PodAffinityTerm"),
            )
        ),
    ),
    "NodeSelectorTerm": _object(
        "v1.NodeSelectorTerm",
        matchExpressions=_list(
            _object(
                "v1.NodeSelectorRequirement",
                "key",
                "operator",
                key=_NAME,
                operator={"enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]},
                values=_list(_TEXT),
            )
        ),
    ),
    "NodeAffinity": _object(
        "v1.NodeAffinity",
        requiredDuringSchedulingIgnoredDuringExecution=_object(
            "v1.NodeSelector", "nodeSelectorTerms", nodeSelectorTerms=_list(_ref("NodeSelectorTerm"))
        ),
        preferredDuringSchedulingIgnoredDuringExecution=_list(
            _object(
                "v1.PreferredSchedulingTerm",
                "weight",
                "preference",
                weight={"type": "integer", "minimum": 1, "maximum": 100},
                preference=_ref("NodeSelectorTerm"),
            )
        ),
    ),
    "Container": _object(
        "v1.Container",
        "name",
        name=_NAME,
        image=_TEXT,
        resources=_RESOURCES,
        ports=_list(
            _object(
                "v1.ContainerPort",
                hostPort={"type": "integer", "minimum": 0, "maximum": 65535},
                hostIP=_TEXT,
                protocol={"enum": ["TCP", "UDP", "SCTP"]},
            )
        ),
    ),
    "PodSpec": _object(
        "v1.PodSpec",
        containers=_list(_ref("Container")),
        initContainers=_list(_ref("Container")),
        nodeName=_TEXT,
        nodeSelector=_LABELS,
        schedulerName=_TEXT,
        affinity=_object(
            "v1.Affinity",
            podAffinity=_ref("PodAffinity"),
            podAntiAffinity=_ref("PodAffinity"),
            nodeAffinity=_ref("NodeAffinity"),
        ),
        tolerations=_list(_object("v1.Toleration", key=_TEXT, operator=_TEXT, value=_TEXT, effect=_TEXT)),
        topologySpreadConstraints=_list(
            _object(
                "v1.TopologySpreadConstraint",
                "maxSkew",
                "topologyKey",
                "whenUnsatisfiable",
                maxSkew={"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
                topologyKey=_NAME,
                whenUnsatisfiable={"enum": ["DoNotSchedule", "ScheduleAnyway"]},
                labelSelector=_ref("LabelSelector"),
            )
        ),
        overhead=_AMOUNTS,
        priority=_INT32,
        preemptionPolicy={"enum": ["PreemptLowerPriority", "Never"]},
    ),
    "Pod": _object(
        "v1.Pod: what may be read of it",
        "metadata",
        metadata=_object(
            "metav1.ObjectMeta",
            "name",
            name=_NAME,
            namespace=_TEXT,
            uid=_TEXT,
            labels=_LABELS,
            ownerReferences=_list(
                _object(
                    "metav1.OwnerReference",
                    apiVersion=_TEXT,
                    kind=_TEXT,
                    name=_TEXT,
                    uid=_TEXT,
                    controller={"type": "boolean"},
                )
            ),
        ),
        spec=_ref("PodSpec"),
        status=_object("v1.PodStatus", phase=_TEXT, nominatedNodeName=_TEXT),
    ),
}

_OF_NODES: Final[dict[str, Schema]] = {
    "Node": _object(
        "v1.Node: what is read of one that is not known",
        "metadata",
        metadata=_object("metav1.ObjectMeta", "name", name=_NAME, labels=_LABELS),
        spec=_object(
            "v1.NodeSpec",
            unschedulable={"type": "boolean"},
            taints=_list(_object("v1.Taint", "key", "effect", key=_NAME, value=_TEXT, effect=_NAME)),
        ),
        status=_object(
            "v1.NodeStatus",
            allocatable=_AMOUNTS,
            conditions=_list(_object("v1.NodeCondition", type=_TEXT, status=_TEXT)),
            images=_list(_object("v1.ContainerImage", names=_list(_TEXT), sizeBytes=_NOT_NEGATIVE)),
        ),
    ),
    "NodeList": {
        **_object("v1.NodeList", "items", items=_list(_ref("Node"), minItems=1, maxItems=MAX_NODES)),
    },
}

_REASONS: Final = _or_null({**_map(_TEXT), "description": "Name of a node -> why it failed; null beside an Error."})
_VIOLATIONS: Final = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}


def _victims(description: str, pod: Schema) -> Schema:
    return _object(description, Pods=_list(pod), NumPDBViolations=_VIOLATIONS)


def _args(description: str, **fields: Schema) -> Schema:
    """Return ExtenderArgs or the like in one of its two forms."""
    required = [name for name, schema in fields.items() if schema is not _NULL]
    return {**_message(description, **fields), "required": required}


SCHEMAS: Final[dict[str, Schema]] = {
    **_OF_PODS,
    **_OF_NODES,
    "ExtenderArgs": {
        "description": "What `filter` and `prioritize` are asked. Keys may be written in any case, as Go reads them.",
        "oneOf": [
            _args(
                "With `nodeCacheCapable: true`",
                Pod=_ref("Pod"),
                NodeNames=_list(_TEXT, minItems=1, maxItems=MAX_NODES) | {"uniqueItems": True},
                Nodes=_NULL,
            ),
            _args("With `nodeCacheCapable: false`", Pod=_ref("Pod"), Nodes=_ref("NodeList"), NodeNames=_NULL),
        ],
    },
    "ExtenderFilterResult": _message(
        "Nodes come back in the form in which they were asked about, objects byte for byte.",
        Nodes=_or_null(_object("v1.NodeList: the nodes passed on", "items", items=_list({"type": "object"}))),
        NodeNames=_or_null(_list(_TEXT)),
        FailedNodes=_REASONS,
        FailedAndUnresolvableNodes=_REASONS,
        Error={"type": "string", "description": "Empty, or why there is no answer: the scheduling attempt fails."},
    ),
    "HostPriorityList": _list(
        _message(
            "The score of one node",
            Host=_TEXT,
            Score={"type": "integer", "minimum": 0, "maximum": MAX_NODE_SCORE},
        )
    )
    | {"description": "A score for each node asked, in their order."},
    "NoPriorities": _message(
        "In place of a HostPriorityList where not even the nodes can be read; kube-scheduler logs it and goes on.",
        Error=_NAME,
    ),
    "ExtenderBindingArgs": _message(
        "Which pod is to be bound to which node.",
        PodName={"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 253},
        PodNamespace={"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63},
        PodUID=_NAME,
        Node=_NAME,
    ),
    "ExtenderBindingResult": _message(
        "How the binding ended.",
        Error={"type": "string", "description": "Empty where the pod is bound, else why not: the pod is tried again."},
    ),
    "ExtenderPreemptionArgs": {
        "description": "Who wants to preempt, and whom kube-scheduler would evict, node by node.",
        "oneOf": [
            _args(
                "With `nodeCacheCapable: true`",
                Pod=_ref("Pod"),
                NodeNameToMetaVictims=_map(
                    _victims("MetaVictims", _object("The UID of a pod", "UID", UID=_NAME)),
                ),
                NodeNameToVictims=_NULL,
            ),
            _args(
                "With `nodeCacheCapable: false`",
                Pod=_ref("Pod"),
                NodeNameToVictims=_map(
                    _victims(
                        "Victims",
                        _object("v1.Pod", "metadata", metadata=_object("metav1.ObjectMeta", "uid", uid=_NAME)),
                    )
                ),
                NodeNameToMetaVictims=_NULL,
            ),
        ],
    },
    "ExtenderPreemptionResult": {
        **_message(
            "The nodes on which the pod fits once these pods are gone; none where nobody is to be preempted.",
            NodeNameToMetaVictims=_map(
                _message("MetaVictims", Pods=_list(_message("MetaPod", UID=_NAME)), NumPDBViolations=_VIOLATIONS)
            ),
            Error={
                "type": "string",
                "description": "Why there is no node, for people; upstream has no such field.",
            },
        ),
        "required": ["NodeNameToMetaVictims"],
    },
}

"""Common parts of encoding for all kinds: core values to v1 objects that decode to equal values.

The reverse of app/objects/decode*.py. Quantities are written in one form, lists that are sets are sorted, and missing
fields are left out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from core.objects.labels import OPERATORS, Operator, Requirement, Selector
from core.objects.node_selector import NodeSelector, NodeSelectorTerm
from core.objects.pod import Pod
from core.objects.volumes import PersistentVolumeClaim

V1: TypeAlias = dict[str, object]

_OPERATOR_NAMES: Final[Mapping[Operator, str]] = {operator: name for name, operator in OPERATORS.items()}
_MILLIS: Final = 1000


class NotExpressibleError(ValueError):
    """An object without a v1 form, because decoding dropped too much of it. The message has its name and the reason."""


class Encoder:
    """Encodes the objects of one kind by a table: path of a member -> field of the value, or a function of the value.

    Empty, zero and false members are left out. A path that ends with = is left out only for None. All objects have a
    name, a uid and a resourceVersion, and most have a namespace and labels.
    """

    def __init__(self, members: Mapping[str, str | Callable[[Any], object]]) -> None:
        self._members = [
            (path.rstrip("=").split("."), path.endswith("="), source)
            for path, source in {**_METADATA, **members}.items()
        ]

    def __call__(self, found: object) -> V1:
        """Return the v1 object. Raises NotExpressibleError."""
        written: V1 = {}
        for (*parents, name), even_empty, source in self._members:
            value = getattr(found, source, None) if isinstance(source, str) else source(found)
            if value or (even_empty and value is not None):
                place: Any = written
                for parent in parents:
                    place = place.setdefault(parent, {})
                place[name] = value
        return written


_METADATA: Final[Mapping[str, str | Callable[[Any], object]]] = {
    "metadata.name": "name",
    "metadata.namespace": "namespace",
    "metadata.labels": lambda found: dict(getattr(found, "labels", ())),
    "metadata.uid": "uid",
    "metadata.resourceVersion": "resource_version",
}
IN_TREE_DISKS: Final = {  # plugin -> member of a volume, and the disk's name there
    "kubernetes.io/aws-ebs": ("awsElasticBlockStore", "volumeID"),
    "kubernetes.io/gce-pd": ("gcePersistentDisk", "pdName"),
    "kubernetes.io/azure-disk": ("azureDisk", "diskURI"),
    "kubernetes.io/cinder": ("cinder", "volumeID"),
    "kubernetes.io/portworx-volume": ("portworxVolume", "volumeID"),
    "kubernetes.io/iscsi": ("iscsi", "iqn"),
}
DELETED: Final = "1970-01-01T00:00:00Z"  # the time is unknown, and affects no result


def present(members: Mapping[str, object]) -> V1:
    """Return the members that are not empty, zero or false."""
    return {name: value for name, value in members.items() if value}


def owners_of(found: Pod | PersistentVolumeClaim) -> Sequence[V1]:
    """Return the ownerReferences."""
    controller = found.controller
    if controller is None:
        return ()
    said = {"apiVersion": controller.api_version, "kind": controller.kind, "name": controller.name}
    return [{**present({**said, "uid": controller.uid}), "controller": True}]


def quantities_of(amounts: Mapping[str, int]) -> dict[str, str]:
    """Return a v1.ResourceList of amounts in the scheduler's units: cpu in millicores, all others in whole numbers."""
    return {name: cpu_quantity(amount) if name == "cpu" else str(amount) for name, amount in amounts.items()}


def cpu_quantity(millis: int) -> str:
    """Return millicores as a quantity."""
    return f"{millis}m" if millis % _MILLIS else str(millis // _MILLIS)


def label_selector(selector: Selector) -> V1 | None:
    """Return a LabelSelector. None (null) is the selector that matches nothing."""
    if selector.nothing:
        return None
    labels: dict[str, str] = {}
    expressions: list[V1] = []
    for requirement in selector.requirements:
        one_value = requirement.operator is Operator.IN and len(requirement.values) == 1
        if one_value and requirement.key not in labels:
            labels[requirement.key] = requirement.values[0]
        else:
            expressions.append(_expression(requirement))
    return present({"matchLabels": labels, "matchExpressions": expressions})


def node_selector(selector: NodeSelector, whose: str) -> V1:
    """Return a v1.NodeSelector. Raises NotExpressibleError for an invalid term: only its error is known."""
    return {"nodeSelectorTerms": [node_selector_term(term, whose) for term in selector.terms]}


def node_selector_term(term: NodeSelectorTerm, whose: str) -> V1:
    """Return a v1.NodeSelectorTerm. Raises NotExpressibleError for an invalid term."""
    if term.errors:
        raise NotExpressibleError(f"{whose}: a broken node selector term cannot be written again: {term.errors[0]}")
    comparisons: Iterable[V1] = (
        {"key": each.key, "operator": "Gt" if each.greater else "Lt", "values": [str(each.bound)]}
        for each in term.comparisons
    )
    fields = [
        {"key": each.key, "operator": "NotIn" if each.negated else "In", "values": [each.value]} for each in term.fields
    ]
    expressions = [*map(_expression, term.requirements), *comparisons]
    return present({"matchExpressions": expressions, "matchFields": fields})


def simple(found: Iterable[msgspec.Struct]) -> list[V1]:
    """Return values whose fields have the names of their members."""
    return [present(msgspec.structs.asdict(each)) for each in found]


def _expression(requirement: Requirement) -> V1:
    said: V1 = {"key": requirement.key, "operator": _OPERATOR_NAMES[requirement.operator]}
    return {**said, "values": list(requirement.values)} if requirement.values else said

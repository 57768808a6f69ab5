"""Field selectors, as a kube-apiserver reads them from a request and matches objects with them.

Source: k8s.io/apimachinery pkg/fields/selector.go, k8s.io/kubernetes pkg/apis/core/v1/conversion.go (what a pod has).
"""

from dataclasses import dataclass
from typing import Final

from tests.fake_apiserver.resources import PODS, Resource
from tests.fake_apiserver.statuses import RefusedError, bad_request
from tests.fake_apiserver.stored import Stored

_ALL_FIELDS: Final = ("metadata.name", "metadata.namespace")
_POD_FIELDS: Final = (*_ALL_FIELDS, "status.phase", "spec.nodeName")


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All requirements must hold. Without requirements it selects everything."""

    requirements: tuple[tuple[str, bool, str], ...] = ()  # field, whether it must be equal, value

    def matches(self, stored: Stored) -> bool:
        """Return whether an object is selected. A missing field is empty."""
        return all((_value(stored, field) == value) is equal for field, equal, value in self.requirements)


def parse_field_selector(text: str, resource: Resource) -> FieldSelector:
    """Read the `fieldSelector` of a request. Raises RefusedError (400)."""
    requirements = []
    for term in filter(None, text.split(",")):
        operator = next((each for each in ("!=", "==", "=") if each in term), "")
        if not operator:
            raise RefusedError(bad_request(f"invalid selector: '{text}'; can't understand '{term}'"))
        field, _, value = term.partition(operator)
        if field not in (_POD_FIELDS if resource is PODS else _ALL_FIELDS):
            raise RefusedError(bad_request(f"field label not supported: {field}"))
        requirements.append((field, operator != "!=", value))
    return FieldSelector(tuple(requirements))


def _value(stored: Stored, field: str) -> str:
    match field:
        case "metadata.name":
            return stored.name
        case "metadata.namespace":
            return stored.namespace
        case "status.phase":
            return stored.phase
        case _:
            return stored.node_name

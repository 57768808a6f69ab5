"""Forms of a pod's requirements for its node: node selector, node affinity, tolerations, a name."""

from collections.abc import Callable
from typing import Final

from tests.bench.cluster import HOST, PREFERRED, REQUIRED, node_name
from tests.cost.attack import Object, grown, grown_map, longest
from tests.cost.forms.form import Form, expression, of_spec

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute", "")


def _required(terms: list[Object]) -> Object:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def _of_terms(name: str, term: Callable[[int], Object], *, of_issue: bool = False) -> Form:
    return of_spec(f"node-{name}-terms", "NodeAffinity", lambda size: _required(grown(size, term)), of_issue=of_issue)


def _of_requirements(name: str, requirement: Callable[[int], Object], *, of_issue: bool = False) -> Form:
    def spec(size: int) -> Object:
        return _required([{"matchExpressions": grown(size, requirement)}])

    return of_spec(f"node-{name}", "NodeAffinity", spec, of_issue=of_issue)


def _of_preferences(name: str, term: Callable[[int], Object], *, of_issue: bool = False) -> Form:
    def spec(size: int) -> Object:
        made = grown(size, lambda index: {"weight": 1 + index % 100, "preference": term(index)})
        return {"affinity": {"nodeAffinity": {PREFERRED: made}}}

    return of_spec(f"node-preferred-{name}", "NodeAffinity", spec, of_issue=of_issue)


def _of_values(name: str, operator: str, key: str = HOST, text: Callable[[int], str] = node_name) -> Form:
    def spec(size: int) -> Object:
        return _required([{"matchExpressions": [expression(key, operator, grown(size, text))]}])

    return of_spec(f"node-{name}", "NodeAffinity", spec)


def _of_tolerations(name: str, toleration: Callable[[int], Object]) -> Form:
    return of_spec(f"tolerations-{name}", "TaintToleration", lambda size: {"tolerations": grown(size, toleration)})


def _matching(*requirements: Object) -> Object:
    return {"matchExpressions": list(requirements)}


def _field(values: list[str], operator: str = "In") -> Object:
    return {"matchFields": [expression("metadata.name", operator, values)]}


def _toleration(key: str, operator: str, effect: str, **more: str) -> Object:
    return {"key": key, "operator": operator, "effect": effect, **more}


FORMS: Final = [
    of_spec(
        "node-selector-keys",
        "NodeAffinity",
        lambda size: {"nodeSelector": grown_map(size, lambda index: (f"k-{index}", "v"))},
        of_issue=True,
    ),
    of_spec(
        "node-selector-long", "NodeAffinity", lambda size: {"nodeSelector": {longest(size // 2): "v" * (size // 2)}}
    ),
    _of_terms("keys", lambda index: _matching(expression(f"k-{index}", "Exists")), of_issue=True),
    _of_terms("hosts", lambda index: _matching(expression(HOST, "In", [node_name(index)]))),
    _of_terms("excluding", lambda index: _matching(expression(HOST, "NotIn", [f"v-{index}"]))),
    _of_terms("fields", lambda index: _field([node_name(index)])),
    _of_terms("not-fields", lambda index: _field([node_name(index)], "NotIn")),
    _of_requirements("requirements-in", lambda index: expression(f"k-{index}", "In", ["v"]), of_issue=True),
    _of_requirements("requirements-not-in", lambda index: expression(f"k-{index}", "NotIn", ["v"])),
    _of_requirements("requirements-exists", lambda index: expression(f"k-{index}", "Exists")),
    _of_requirements("requirements-absent", lambda index: expression(f"k-{index}", "DoesNotExist")),
    _of_requirements("requirements-gt", lambda index: expression(f"k-{index}", "Gt", [str(index)])),
    _of_requirements("requirements-lt", lambda index: expression(HOST, "Lt", [str(index)])),
    _of_requirements("requirements-one-key", lambda index: expression(HOST, "NotIn", [f"v-{index}"])),
    _of_values("hosts", "In"),
    _of_values("not-hosts", "NotIn"),
    _of_values("values-unknown", "In", "k", lambda index: f"v-{index}"),
    of_spec("node-fields", "NodeAffinity", lambda size: _required([_field(grown(size, node_name))])),
    of_spec("node-not-fields", "NodeAffinity", lambda size: _required([_field(grown(size, node_name), "NotIn")])),
    _of_preferences("keys", lambda index: _matching(expression(f"k-{index}", "DoesNotExist")), of_issue=True),
    _of_preferences("hosts", lambda index: _matching(expression(HOST, "In", [node_name(index)]))),
    _of_preferences("fields", lambda index: _field([node_name(index)])),
    _of_preferences("gt", lambda index: _matching(expression(f"k-{index}", "Gt", ["1"]))),
    of_spec("pod-node-name-long", "NodeName", lambda size: {"nodeName": longest(size)}),
    _of_tolerations("keys", lambda index: _toleration(f"k-{index}", "Exists", "NoSchedule")),
    _of_tolerations("effects", lambda index: _toleration(f"k-{index}", "Exists", _EFFECTS[index % 4])),
    _of_tolerations("values", lambda index: _toleration("dedicated", "Equal", "NoSchedule", value=f"v-{index}")),
    _of_tolerations("preferred", lambda index: _toleration("spot", "Equal", "PreferNoSchedule", value=f"v-{index}")),
]

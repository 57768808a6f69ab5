"""Forms of inter-pod affinity."""

from typing import Final

from tests.bench.cluster import HOST, RACK, ZONE, app_name
from tests.cost.attack import Object, grown, longest
from tests.cost.forms.form import Form, expression, of_affinity, of_spec

_ANTI: Final = "podAntiAffinity"
_TO: Final = "podAffinity"
_APP: Final[Object] = {"matchLabels": {"app": "app-0000"}}
_EVERYTHING: Final[Object] = {}
_KEYS: Final = (HOST, ZONE, RACK)


def _term(selector: Object, key: str = HOST, **more: object) -> Object:
    return {"labelSelector": selector, "topologyKey": key, **more}


def _expressions(*requirements: Object) -> Object:
    return {"matchExpressions": list(requirements)}


def _values(size: int, text: str = "v-{}") -> list[str]:
    return grown(size, text.format)


def _namespaces_and_values(size: int) -> list[Object]:
    values = _values(size // 2)
    return [_term(_expressions(expression("app", "In", values)), namespaces=_values(size // 2, "ns-{:03d}"))]


def _of_keys(size: int) -> list[Object]:
    return grown(size, lambda index: _term(_APP, f"k-{index}"))


def _of_same_pods(size: int) -> list[Object]:
    """Terms that all select the same pods. They exclude different labels, which no pod has."""
    return grown(size, lambda index: _term(_expressions(expression("app", "NotIn", [f"v-{index}"])), _KEYS[index % 3]))


def _of_nobody(size: int) -> list[Object]:
    """Terms that select labels that no pod has. An explanation searches for labels that all terms select."""
    return grown(size, lambda index: _term(_expressions(expression("app", "In", ["nobody", f"v-{index}"])), ZONE))


def _of_apps(size: int) -> list[Object]:
    return grown(size, lambda index: _term({"matchLabels": {"app": app_name(index)}}))


def _of_everything(size: int) -> list[Object]:
    return grown(size, lambda index: _term(_EVERYTHING, f"k-{index}", namespaceSelector=_EVERYTHING))


def _namespace_selectors(size: int) -> list[Object]:
    def of(index: int) -> Object:
        selector = _expressions(expression("team", "NotIn", [f"team-{index}"]))
        return _term(_APP, namespaceSelector=selector)

    return grown(size, of)


def _of_requirements(operator: str, *values: str) -> "list[Form]":
    def terms(size: int) -> list[Object]:
        return [_term({"matchExpressions": grown(size, lambda index: expression(f"k-{index}", operator, values))})]

    return [of_affinity(f"anti-{operator.lower()}-keys", _ANTI, terms)]


FORMS: Final = [
    of_affinity("anti-namespaces-x-values", _ANTI, _namespaces_and_values, of_issue=True),
    of_affinity("affinity-namespaces-x-values", _TO, _namespaces_and_values),
    of_affinity("preferred-namespaces-x-values", _ANTI, _namespaces_and_values, preferred=True),
    of_affinity("anti-topology-keys", _ANTI, _of_keys, of_issue=True),
    of_affinity("affinity-topology-keys", _TO, _of_keys),
    of_affinity("affinity-nobody", _TO, _of_nobody),
    of_affinity("preferred-topology-keys", _ANTI, _of_keys, preferred=True),
    of_affinity("anti-values", _ANTI, lambda size: [_term(_expressions(expression("app", "In", _values(size))))]),
    of_affinity("anti-namespaces", _ANTI, lambda size: [_term(_APP, namespaces=_values(size, "ns-{:03d}"))]),
    of_affinity("anti-not-in", _ANTI, lambda size: [_term(_expressions(expression("app", "NotIn", _values(size))))]),
    *_of_requirements("Exists"),
    *_of_requirements("DoesNotExist"),
    *_of_requirements("In", "v"),
    *_of_requirements("NotIn", "v"),
    of_affinity("anti-same-pods", _ANTI, _of_same_pods),
    of_affinity("affinity-same-pods", _TO, _of_same_pods),
    of_affinity("preferred-same-pods", _TO, _of_same_pods, preferred=True),
    of_affinity("anti-apps", _ANTI, _of_apps),
    of_affinity("affinity-apps", _TO, _of_apps),
    of_affinity("preferred-apps", _TO, _of_apps, preferred=True),
    of_affinity("anti-everything", _ANTI, _of_everything),
    of_affinity("preferred-everything", _ANTI, _of_everything, preferred=True),
    of_affinity(
        "namespace-selector-values",
        _ANTI,
        lambda size: [_term(_APP, namespaceSelector=_expressions(expression("team", "In", _values(size, "team-{}"))))],
    ),
    of_affinity(
        "namespace-selector-requirements",
        _ANTI,
        lambda size: [
            _term(
                _APP,
                namespaceSelector=_expressions(*grown(size, lambda index: expression(f"k-{index}", "NotIn", ["v"]))),
            )
        ],
    ),
    of_affinity("namespace-selectors", _ANTI, _namespace_selectors),
    of_affinity("preferred-namespace-selectors", _TO, _namespace_selectors, preferred=True),
    of_affinity(
        "affinity-match-label-keys",
        _TO,
        lambda size: [_term(_APP, matchLabelKeys=_values(size // 2), mismatchLabelKeys=_values(size // 2, "w-{}"))],
    ),
    of_affinity("anti-long-key", _ANTI, lambda size: [_term(_APP, longest(size))]),
    of_affinity("anti-long-value", _ANTI, lambda size: [_term({"matchLabels": {"app": longest(size)}})]),
    of_affinity("anti-long-namespace", _ANTI, lambda size: [_term(_APP, namespaces=[longest(size)])]),
    of_spec(
        "weights-extreme",
        "InterPodAffinity",
        lambda size: {
            "affinity": {
                _TO: {
                    "preferredDuringSchedulingIgnoredDuringExecution": grown(
                        size,
                        lambda index: {
                            "weight": (-1) ** index * (2**31 - 1),
                            "podAffinityTerm": _term({"matchLabels": {"tier": f"tier-{index % 4}"}}, _KEYS[index % 3]),
                        },
                    )
                }
            }
        },
    ),
]

"""Forms of topology spread constraints."""

from collections.abc import Callable
from typing import Final

from tests.bench.cluster import HOST, RACK, REGION, ZONE, app_name
from tests.cost.attack import ROOM, Object, grown, grown_map
from tests.cost.forms.form import Form, expression, of_spec, pod

_APP: Final[Object] = {"matchLabels": {"app": "app-0000"}}
_KEYS: Final = (HOST, ZONE, RACK, REGION)
_HARD: Final = "DoNotSchedule"
_SOFT: Final = "ScheduleAnyway"


def _constraint(key: str, when: str = _HARD, selector: Object = _APP, **more: object) -> Object:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector, **more}


def _form(name: str, constraint: Callable[[int], Object], *, of_issue: bool = False) -> Form:
    def spec(size: int) -> Object:
        return {"topologySpreadConstraints": grown(size, constraint)}

    return of_spec(f"spread-{name}", "PodTopologySpread", spec, of_issue=of_issue)


def _one(name: str, constraint: Callable[[int], Object]) -> Form:
    def spec(size: int) -> Object:
        return {"topologySpreadConstraints": [constraint(size)]}

    return of_spec(f"spread-{name}", "PodTopologySpread", spec)


def _selector_of_values(size: int) -> Object:
    values = grown(size, app_name)
    return {"matchExpressions": [expression("app", "In", values)]}


def _with_policies(index: int) -> Object:
    honor = "Honor", "Ignore"
    policies = {"nodeAffinityPolicy": honor[index % 2], "nodeTaintsPolicy": honor[index // 2 % 2]}
    return _constraint(_KEYS[index % 4], _HARD if index % 3 else _SOFT, _other(index), **policies)


def _other(index: int) -> Object:
    return {"matchExpressions": [expression("app", "NotIn", [f"v-{index}"])]}


def _match_label_keys(size: int) -> Object:
    half = (size - ROOM) // 2
    keys = grown(half, lambda index: f"k-{index}")
    labels = {"app": "app-0000", **grown_map(half, lambda index: (f"k-{index}", "v"))}
    return pod({"topologySpreadConstraints": [_constraint(HOST, matchLabelKeys=keys)]}, {"labels": labels})


FORMS: Final = [
    _form("keys", lambda index: _constraint(f"k-{index}"), of_issue=True),
    _form("soft-keys", lambda index: _constraint(f"k-{index}", _SOFT)),
    _form("hosts", lambda index: _constraint(HOST, selector={"matchLabels": {"app": app_name(index)}})),
    _form("soft-hosts", lambda index: _constraint(HOST, _SOFT, {"matchLabels": {"app": app_name(index)}})),
    _form("same-pods", lambda index: _constraint(_KEYS[index % 4], selector=_other(index))),
    _form("soft-same-pods", lambda index: _constraint(_KEYS[index % 4], _SOFT, _other(index))),
    _form("skews", lambda index: _constraint(ZONE, maxSkew=index + 1, minDomains=index + 1)),
    _form("policies", _with_policies),
    _one("values", lambda size: _constraint(HOST, selector=_selector_of_values(size))),
    _one(
        "requirements",
        lambda size: _constraint(
            ZONE,
            selector={"matchExpressions": grown(size, lambda index: expression(f"k-{index}", "DoesNotExist"))},
        ),
    ),
    Form("spread-match-label-keys", "PodTopologySpread", "pod", _match_label_keys),
]

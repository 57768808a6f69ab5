"""Claims and slices that no API server of today accepts, but that an older or a newer one may have stored."""

from collections.abc import Sequence
from random import Random

from tests.parity.random_nodes import V1, ZONE


def make_odd(random: Random, claims: Sequence[V1], slices: Sequence[V1]) -> None:
    """Change some claims and slices."""
    for claim in claims:
        devices = claim["spec"]["devices"]
        for request in devices["requests"]:
            if "exactly" in request and random.random() < 0.2:
                _change_request(random, request)
        if random.random() < 0.1:
            devices["constraints"] = [*devices.get("constraints", ()), {}]
        if random.random() < 0.03:
            claim["spec"] = {}
    for each in slices:
        if random.random() < 0.25:
            _change_slice(random, each["spec"])


def _change_request(random: Random, request: V1) -> None:
    change: V1 = random.choice(
        ({"allocationMode": "Some"}, {"deviceClassName": ""}, {"selectors": [{}]}, {"count": 0}, {})
    )
    if change:
        request["exactly"] |= change
    else:
        del request["exactly"]


def _change_slice(random: Random, spec: V1) -> None:
    kind = random.random()
    if kind < 0.2:
        spec["pool"] = {**spec["pool"], "generation": 0}
    elif kind < 0.4:
        spec.pop("nodeName", None)
    else:
        spec.pop("nodeName", None)
        spec["nodeSelector"] = {"nodeSelectorTerms": _terms(random)}


def _terms(random: Random) -> list[V1]:
    """Return at most one term, because every API server refuses more."""
    zone: V1 = {"key": ZONE, "operator": "In", "values": ["a", "b", "c"]}
    odd: V1 = random.choice(
        ({"operator": "Gt", "values": ["x"]}, {"operator": "Near"}, {"operator": "In", "values": []})
    )
    choices: list[list[V1]] = [[], [{}], [{"matchExpressions": [zone]}], [{"matchExpressions": [{**zone, **odd}]}]]
    return random.choice(choices)

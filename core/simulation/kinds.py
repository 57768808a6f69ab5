"""Which pods are judged alike, so that one of them is tried and the others share what becomes of it."""

from collections.abc import Hashable
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from core.objects.pod import Pod

_IDENTITY: Final = frozenset({"uid", "name", "resource_version", "start_time", "waiting", "group"})
_all_but_identity: Final = attrgetter(*(field for field in Pod.__struct_fields__ if field not in _IDENTITY))


def alike(one: Pod, other: Pod) -> bool:
    """Return whether two pods are equal but for their names, so that rules judge them alike.

    Claims of their own have names of their own.
    """
    return bool(one.waiting.gates == other.waiting.gates and _all_but_identity(one) == _all_but_identity(other))


def kind_of(pod: Pod) -> Hashable:
    """Return a key that is the same for pods that are alike, if neither is gated and their requests are as counted."""
    labels, requests = frozenset(pod.labels.items()), frozenset(pod.requests.items())
    named = replace(pod, labels=labels, requests=requests, demand=replace(pod.demand, resources=None))
    kind: Hashable = _all_but_identity(named)
    return kind

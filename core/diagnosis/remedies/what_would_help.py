"""The search for remedies: proposals of each kind are tried out until one of the kind helps, within bounds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.pod_names import PodText
from core.diagnosis.remedies.cost import cost
from core.diagnosis.remedies.more_nodes import more_nodes
from core.diagnosis.remedies.obstacles import Obstacles
from core.diagnosis.remedies.pod_proposals import change_ports, drop_name, relax, run_beside
from core.diagnosis.remedies.pods_gone import pods_gone
from core.diagnosis.remedies.proposal import Proposal
from core.diagnosis.remedies.proposals import (
    combine,
    drop,
    label,
    lower_one_request,
    raise_skew,
    tolerate,
    uncordon_node,
)
from core.diagnosis.remedies.remedy import (
    AddNode,
    ChangeHostPort,
    DropNodeName,
    DropRequirement,
    Kind,
    LowerRequest,
    RaiseMaxSkew,
    RelaxSpread,
    Remedy,
    RemovePod,
    RunPod,
    SetLabel,
    Step,
    TolerateTaint,
    Uncordon,
)
from core.diagnosis.remedies.trials import Trials
from core.diagnosis.remedies.volume_proposals import allow_topology, provide_claims, resize_claim
from core.diagnosis.remedies.volume_steps import AllowTopology, CreateClaim, ProvideVolume, ResizeClaim

_PER_KIND: Final = 2
"""Remedies of one kind."""
_FAILURES: Final = 4
"""Proposals of one kind that did not help, after which the search goes on with the next kind."""

_SINGLE: Final[Sequence[Callable[[Obstacles], Iterator[Proposal]]]] = (
    uncordon_node,
    lower_one_request,
    tolerate,
    raise_skew,
    label,
    drop,
    change_ports,
    relax,
    drop_name,
    allow_topology,
    resize_claim,
    run_beside,
)

_KINDS: Final[Mapping[type[Step], Kind]] = {
    Uncordon: Kind.UNCORDON_NODE,
    LowerRequest: Kind.LOWER_REQUESTS,
    TolerateTaint: Kind.TOLERATE_TAINTS,
    RaiseMaxSkew: Kind.RAISE_MAX_SKEW,
    RelaxSpread: Kind.RELAX_SPREAD,
    ChangeHostPort: Kind.CHANGE_HOST_PORTS,
    DropNodeName: Kind.DROP_NODE_NAME,
    CreateClaim: Kind.CREATE_CLAIMS,
    ProvideVolume: Kind.PROVIDE_VOLUMES,
    AllowTopology: Kind.ALLOW_TOPOLOGY,
    ResizeClaim: Kind.RESIZE_CLAIM,
    RunPod: Kind.RUN_POD,
    SetLabel: Kind.LABEL_NODE,
    DropRequirement: Kind.DROP_REQUIREMENTS,
    RemovePod: Kind.REMOVE_POD,
    AddNode: Kind.ADD_NODE,
}
_NAMES_NODE: Final = frozenset({Kind.UNCORDON_NODE, Kind.LABEL_NODE, Kind.ADD_NODE})
"""Kinds whose steps say where the pod then fits."""


def what_would_help(decision: Diagnosis, limit: int) -> Sequence[Remedy]:
    """Return up to `limit` of the smallest changes, each of which alone lets the pod fit on a node.

    None where it fits on a node already, and none that is not tried out: filter_nodes passes the node for the changed
    pod, over the mirror with the change supposed. Each is the smallest of its kind, as far as trials are left. With one
    unit more of a single lowered request, or without any one of several steps, the pod fits on no known node. A pod
    that is removed is the smallest on its node of those that help, of the four smallest that could. Combined remedies
    are looked for where no step or steps of one kind help, but to remove a pod or to add a node. In the order of how
    little they change, roughly.

    At most 48 trials are made, most of them over one node, and as many as 30 million units of work allow (see Trials).
    Stale after the next event.
    """
    if not limit or len(decision.fitting) or not len(decision.known):
        return ()
    trials, obstacles = Trials(decision), Obstacles(decision)
    found = [remedy for kind in _SINGLE for remedy in _tried(kind(obstacles), trials)]
    found += _tried(provide_claims(obstacles), trials, most=1)  # the next ones are other ways to the same
    if not found:
        found += _tried(combine(obstacles), trials, most=1)
    found += _nodes_added(decision, trials)
    gone: list[Remedy] = []
    for proposals in pods_gone(obstacles):
        new = (each for each in proposals if all(other.steps != [*each.steps] for other in gone))
        gone += _tried(new, trials, most=1)
        if len(gone) >= _PER_KIND:
            break
    return sorted([*found, *gone], key=lambda each: (cost(decision, each.kind, each.steps), each.node, each.text))[
        :limit
    ]


def _tried(proposals: Iterable[Proposal], trials: Trials, most: int = _PER_KIND) -> list[Remedy]:
    """Return the first proposals that help."""
    found: list[Remedy] = []
    failures = 0
    for each in proposals:
        if len(found) >= most or failures >= _FAILURES or not trials.are_left:
            break
        if trials.fitting(each.steps, each.node) is None:
            failures += 1
            continue
        remedy = _remedy(*_least(each.steps, each.node, trials))
        if all(other.steps != remedy.steps for other in found):
            found.append(remedy)
    return found


def _least(steps: Sequence[Step], node: str, trials: Trials) -> tuple[Sequence[Step], str]:
    """Return the steps without those that can be left out, and a node on which the pod fits after them."""
    left = [*steps]
    for step in steps:
        fewer = [each for each in left if each is not step]
        elsewhere = trials.fitting(fewer) if fewer else None
        if elsewhere is not None:
            left, node = fewer, elsewhere
    return left, node


def _nodes_added(decision: Diagnosis, trials: Trials) -> list[Remedy]:
    """Return the nodes that help if there is one more like them, each with the other zones in which it would."""
    found: list[Remedy] = []
    for proposals in more_nodes(decision):
        helping = [each.steps[0] for each in proposals if trials.fitting(each.steps, each.node)]
        steps = [each for each in helping if isinstance(each, AddNode)]
        if steps:
            step = replace(steps[0], zones=tuple(each.zone for each in steps[1:]))
            found.append(_remedy([step], step.name))
        if len(found) >= _PER_KIND:
            break
    return found


def _remedy(steps: Sequence[Step], node: str) -> Remedy:
    kinds = {_KINDS[type(step)] for step in steps}
    kind = kinds.pop() if len(kinds) == 1 else Kind.COMBINED
    texts = [piece for step in steps for piece in (", and ", step.text)][1:]
    where = "" if kind in _NAMES_NODE else f" (then it fits on {node})"
    return Remedy(kind, node, steps, PodText(*texts, where))

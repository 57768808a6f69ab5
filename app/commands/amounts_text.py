"""Measurements of plugins, remedies, and the events that wake the pod, as lines for people."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final

from app.commands.output import Part, Styled, wrapped
from core.diagnosis.wakes import ANY_EVENT, REGISTERING, Wake
from core.explaining.remedy import Remedy
from core.plugins.amounts import ClusterAmounts, NodeAmounts

_MAX_WAKES: Final = 12


def cluster_amounts_text(amounts: ClusterAmounts, nodes: int) -> Part:
    """Return the obstacles on `nodes` nodes, plugin by plugin; nothing if there is none."""
    items = [wrapped(line, 4, "  ") for line in amounts.lines(nodes)]
    return Part(items, Styled("What was measured", bold=True), item="measurement", name="measurements")


def node_amounts_text(amounts: NodeAmounts) -> Part:
    """Return the obstacles on one node."""
    return Part([wrapped(line, 6, "    ") for line in amounts.lines(_time)], "  Measured")


def remedies_text(helps: Sequence[Remedy], *, fits: bool = False) -> Part:
    """Return the remedies. For a pod that fits nowhere and has none, say so."""
    if not helps:
        return Part([] if fits else [[Styled("No change that was tried would help", bold=True)]], least=1)
    thens = dict.fromkeys(each.then for each in helps if each.then)
    return Part(
        [wrapped(each.text, 4, "  - ") for each in helps],
        Styled("Changes that would help, each by itself", bold=True),
        [line for then in thens for line in wrapped(f"After a change of the pod, {then}", 4, "  ")],
        item="change",
        least=1,
    )


def wakes_text(wakes: Sequence[Wake], refusing: Collection[str]) -> Part:
    """Return the events after which kube-scheduler tries the pod again.

    `refusing` are the plugins that rejected the nodes. If they wait for no event, it tries every five minutes:
    k8s.io/kubernetes pkg/scheduler/backend/queue/scheduling_queue.go (DefaultPodMaxInUnschedulablePodsDuration).
    """
    if refusing and not wakes and REGISTERING.issuperset(refusing):
        none = Styled("kube-scheduler tries it again every five minutes: no event can help", bold=True)
        return Part([[none]], name="retries", in_short=False)
    by_kind: dict[str, dict[str, None]] = {}
    for wake in wakes:
        kind = "this Pod" if wake.of_pod_itself else wake.resource
        by_kind.setdefault(kind, {}).update(dict.fromkeys(wake.actions))
    items = [wrapped(f"{kind}: {', '.join(actions)}", 4, "  ") for kind, actions in [*by_kind.items()][:_MAX_WAKES]]
    if any(wake.resource == ANY_EVENT.resource for wake in wakes):
        items = [["  any event, as after every rejection by an extender"]]
    return Part(items, Styled("kube-scheduler tries it again after", bold=True), name="retries", in_short=False)


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")

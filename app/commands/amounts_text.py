"""Measurements of plugins, remedies, and the events that wake the pod, as lines for people."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from app.commands.output import Part, Styled, counted, wrapped
from core.diagnosis.wakes import ANY_EVENT, REGISTERING, Wake
from core.explaining.pod_steps import taint_text
from core.explaining.remedy import Remedy
from core.explaining.requirements import UnmetRequirement
from core.objects.affinity import label_number
from core.objects.quantity import quantity_text
from core.plugins.amounts import ClusterAmounts, NodeAmounts
from core.plugins.load.explaining import MeasuredResource, UsageOnNode
from core.plugins.nodeports import PortInCluster, PortOnNode
from core.plugins.noderesources.explaining import ResourceInCluster, ResourceOnNode, WaitingResize
from core.plugins.podtopologyspread.explaining import SpreadInCluster, SpreadOnNode

_EMPTY: Final = "''"
_MAX_WAKES: Final = 12


def cluster_amounts_text(amounts: ClusterAmounts, nodes: int) -> Part:
    """Return the obstacles on `nodes` nodes, plugin by plugin; nothing if there is none."""
    items = [wrapped(line, 4, "  ") for line in _cluster_lines(amounts, nodes)]
    return Part(items, Styled("What was measured", bold=True), item="measurement", name="measurements")


def node_amounts_text(amounts: NodeAmounts) -> Part:
    """Return the obstacles on one node."""
    return Part([wrapped(line, 6, "    ") for line in _node_lines(amounts)], "  Measured")


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


def _cluster_lines(amounts: ClusterAmounts, nodes: int) -> Iterator[str]:
    if amounts.exclusion:
        yield amounts.exclusion
    yield from (_resource(each) for each in amounts.resources if each.nodes < nodes)
    yield from (f"the request of {each}" for each in amounts.overflows)
    yield from map(_resize, amounts.resizes)
    yield from _labels_and_taints(amounts)
    for port in amounts.ports:
        yield f"host port {_port(port)}: in use on {counted(port.nodes, 'node')}"
    yield from (_spread(each) for each in amounts.spread if each.nodes_refused or each.nodes_without_key)
    yield from _cluster_volume_lines(amounts)
    if amounts.node_name:
        yield f"spec.nodeName: only {amounts.node_name}{'' if amounts.node_is_known else ', which does not exist'}"
    for feature in amounts.missing_features:
        yield f"needs the feature {feature.feature}: not declared by {counted(feature.nodes, 'node')}"
    usage = amounts.usage
    if usage is not None and (usage.too_old or usage.not_measured):
        yield (
            f"usage: measured on {counted(usage.measured, 'node')}; the plugins that follow it pass over "
            f"{usage.too_old:,} measured too long ago and {usage.not_measured:,} not measured"
        )


def _resize(each: WaitingResize) -> str:
    holds, actual, asked = (quantity_text(each.resource, amount) for amount in (each.holds, each.actual, each.asked))
    return f"{each.pod} on {each.node} holds {each.resource} {holds}: its resize from {actual} to {asked} is not done"


def _labels_and_taints(amounts: ClusterAmounts) -> Iterator[str]:
    for taint in amounts.taints:
        yield f"taint {taint_text(taint.key, taint.value, taint.effect)}: {_on(taint.nodes, taint.examples)}"
    if amounts.cordoned is not None:
        yield f"cordoned: {_on(amounts.cordoned.nodes, amounts.cordoned.examples)}"
    for requirement in amounts.requirements:
        has = f", which have {requirement.has}" if requirement.has else ""
        yield f"requires {requirement.asked.text}: not met by {counted(requirement.nodes, 'node')}{has}"
    for impossible in amounts.impossible:
        yield f"required node affinity that no node can match, whatever its labels: {impossible}"
    if amounts.nearest is not None:
        yield f"nearest by labels: {amounts.nearest.node}, which lacks {_unmet(amounts.nearest.unmet)}"


def _port(port: PortInCluster | PortOnNode) -> str:
    return f"{port.ip}:{port.port}/{port.protocol}"


def _spread(each: SpreadInCluster) -> str:
    shown = ", ".join(f"{one.value} {one.pods} (skew {one.skew})" for one in each.shown)
    text = (
        f"spread by {each.topology_key}, maxSkew {each.max_skew}: {shown or 'no domain'}; "
        f"too uneven on {counted(each.nodes_refused, 'node')}, no such label on {each.nodes_without_key:,}"
    )
    if each.domains < each.min_domains:
        text += f"; minDomains {each.min_domains}, and there are {each.domains}: the minimum counts as 0"
    if each.domains_holding:
        held = counted(each.domains_holding, "domain")
        hold = "holds" if each.domains_holding == 1 else "hold"
        text += f"; {held} with nodes that only refuse the pod {hold} the minimum at {each.fewest:,}: "
        text += such_as(each.holding, each.domains_holding)
    return text


def _cluster_volume_lines(amounts: ClusterAmounts) -> Iterator[str]:
    for bound in amounts.bound_elsewhere:
        nodes = counted(bound.nodes, "node")
        has = f", which have {bound.has}" if bound.has else ""
        yield f"claim {bound.claim}: volume {bound.volume} needs {bound.needs}; out of reach of {nodes}{has}"
    for claim in amounts.claims:
        yield f"claim {claim.claim}: {claim.why}"
    for driver in amounts.drivers:
        yield (
            f"volumes of {driver.driver}: needs {driver.added}; most free on any node: {driver.most_free} "
            f"of a limit of {driver.limit}, on {driver.most_free_node}"
        )
    for used in amounts.claims_in_use:
        yield f"ReadWriteOncePod claim {used.name}: in use by {', '.join(used.pods) or 'other pods'}"


def _resource(each: ResourceInCluster) -> str:
    asked, most = (quantity_text(each.resource, amount) for amount in (each.requested, each.most_free))
    fits = f"enough on {counted(each.nodes, 'node')}" if each.nodes else "enough on no node"
    if each.resource == "pods":
        return f"pods: {fits}; most free on any node: {most}, on {each.most_free_node}"
    origin = f" ({each.origin})" if each.origin else ""
    if not each.most_free_node:
        instead = f", but {', '.join(each.instead)}" if each.instead else ""
        return f"needs {each.resource} {asked}{origin}; no node offers it{instead}"
    return f"needs {each.resource} {asked}{origin}; most free on any node: {most}, on {each.most_free_node}; {fits}"


def _node_lines(amounts: NodeAmounts) -> Iterator[str]:
    yield from (_on_node(each) for each in amounts.resources if each.missing)
    if amounts.taints:
        taints = ", ".join(taint_text(each.key, each.value, each.effect) for each in amounts.taints)
        yield f"taints that are not tolerated: {taints}"
    if amounts.cordoned:
        yield "cordoned"
    if amounts.requirements:
        yield f"lacks {_unmet(amounts.requirements)}"
    for port in amounts.ports:
        yield f"host port {_port(port)}: held by {', '.join(port.pods) or 'pods'}"
    yield from map(_spread_on_node, amounts.spread)
    yield from _node_volume_lines(amounts)
    if amounts.missing_features:
        yield f"does not declare {', '.join(amounts.missing_features)}"
    if amounts.usage is not None:
        yield _usage(amounts.usage)


def _usage(usage: UsageOnNode) -> str:
    if usage.measured_at is None:
        return "usage: not measured, so the plugins that follow it pass the node over"
    at = datetime.fromtimestamp(usage.measured_at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    if usage.too_old:
        return f"usage: measured at {at}, too long ago, so the plugins that follow it pass the node over"
    parts = [_measured(each) for each in usage.resources]
    more = f"; not measured yet: {counted(usage.pods_not_covered, 'pod')}" if usage.pods_not_covered else ""
    return f"usage at {at}: {', '.join(parts) or 'nothing measured'}{more}"


def _measured(each: MeasuredResource) -> str:
    average, capacity = (quantity_text(each.resource, amount) for amount in (each.average, each.capacity))
    steady = "" if each.deviation is None else f", deviation {quantity_text(each.resource, each.deviation)}"
    return f"{each.resource} {average} of {capacity}{steady}"


def _spread_on_node(each: SpreadOnNode) -> str:
    if each.domain is None:
        return f"spread by {each.topology_key}: no such label"
    pods = f"{each.domain} has {counted(each.pods, 'pod')}, the fewest {each.fewest}"
    return f"spread by {each.topology_key}: {pods}: skew {each.skew} of at most {each.max_skew}"


def _node_volume_lines(amounts: NodeAmounts) -> Iterator[str]:
    for bound in amounts.bound_elsewhere:
        yield f"claim {bound.claim}: volume {bound.volume} needs {bound.needs}; the node has {bound.has}"
    for driver in amounts.drivers:
        limit = "no limit" if driver.limit is None else f"limit {driver.limit}"
        yield f"volumes of {driver.driver}: {driver.attached} attached, {driver.added} more, {limit}"
    for disk in amounts.disks:
        yield f"disk {disk.name}: in use by {', '.join(disk.pods) or 'pods'}"


def _on_node(each: ResourceOnNode) -> str:
    asked, free, in_use, allocatable = (
        quantity_text(each.resource, amount) for amount in (each.requested, each.free, each.in_use, each.allocatable)
    )
    missing = quantity_text(each.resource, each.missing, round_up=True)
    return f"needs {each.resource} {asked}; free {free} ({in_use} of {allocatable} in use): {missing} too little"


def _unmet(unmet: Sequence[UnmetRequirement]) -> str:
    return ", ".join(f"{each.asked.text} ({_has(each)})" for each in unmet)


def _has(unmet: UnmetRequirement) -> str:
    if unmet.has is None:
        return "no such label"
    is_text = unmet.asked.operator in ("Gt", "Lt") and label_number(unmet.has) is None
    return f"has {unmet.has or _EMPTY}{', which is no integer' if is_text else ''}"


def _on(number: int, examples: Sequence[str]) -> str:
    return f"{counted(number, 'node')}, {such_as(examples, number)}"


def such_as(examples: Sequence[str], number: int) -> str:
    """Return examples of a number of nodes: `such as a, b`, or the names alone if these are all."""
    return f"{'such as ' if len(examples) < number else ''}{', '.join(examples)}"

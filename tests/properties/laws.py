"""The laws of the verbs beside a hostile API server. They are held against the truth, and against what could be known.

A pod that Kindred placed is held against the pods that counted when its node was decided: all that Kindred itself had
placed before, by whichever replica, and those that other schedulers have bound, as far as the watch, or a GET of the
same replica for a request, had shown them (docs/decide.md, "Who cannot wait for Kindred" and "What is assumed"). The
allocatable resources of its node are those that the watch had shown.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.objects.volumes import PersistentVolumeClaim
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.store import Object
from tests.properties.simulated_api import Sent, SimulatedApi, SimulatedClient

if TYPE_CHECKING:
    from tests.properties.hostile_cluster import Replica

TTL: Final = 40.0
"""Seconds for which a place counts that the watch does not show."""
_ENDED: Final = frozenset({"Succeeded", "Failed"})


class _Intent(NamedTuple):
    """A decision about a pod, with what could be known then."""

    order: int
    node: str
    others: frozenset[str]
    """The uids of pods that other schedulers have bound."""
    cpu: int
    """The allocatable millicores of the node."""
    with_claims: frozenset[str]
    """The nodes whose pods may use the claim. As in-tree, a claim that the watch lacks, or a deleted node, has none."""


class _Nomination(NamedTuple):
    preemptor: str
    node: str
    was_pending: bool


class Laws:
    """Looks on, and notes what is broken."""

    def __init__(self, api: SimulatedApi, *, kindred_binds: bool, decides: bool) -> None:
        self.broken: list[str] = []
        self.counts = dict.fromkeys(("bound", "beside others", "evicted"), 0)
        """How often the laws had something to say."""
        self._kindred_binds = kindred_binds
        self._decides = decides
        self._store = api.store
        self._replicas: dict[SimulatedClient, Replica] = {}
        self._intents: dict[str, _Intent] = {}  # uid -> its last one
        self._posting: dict[str, asyncio.Task[Any] | None] = {}  # uid -> what posts its binding
        self._ours: dict[str, _Intent] = {}  # uid of a bound pod -> the one that was carried out
        self._since: dict[str, float] = {}  # uid -> when that was
        self._others: set[str] = set()
        self._read: dict[SimulatedClient, set[str]] = {}
        self._nominations: dict[SimulatedClient, _Nomination] = {}
        self._number = 0
        api.sent, api.carried_out, api.received = self._sent, self._carried_out, self._received

    def follow(self, replica: "Replica") -> None:
        """Look at what a process sends."""
        self._replicas[replica.client] = replica
        self._read[replica.client] = set()

    def bound_by_others(self, uid: str) -> None:
        """Note that a pod was not placed by Kindred."""
        self._others.add(uid)

    def decided(self, replica: "Replica", pod: Object, node: str) -> None:
        """Note a response of `filter` with a node."""
        if not self._kindred_binds:
            self._intents[pod["metadata"]["uid"]] = self._intent(replica, node)

    # What goes over the wire.

    def _sent(self, sent: Sent) -> None:
        replica = self._replicas.get(sent.client)
        if replica is None:
            return
        match sent.kind:
            case "bind":
                binding = json.loads(sent.body)
                uid, task = binding["metadata"]["uid"], asyncio.current_task()
                if self._posting.get(uid) is not task or uid not in self._intents:  # a retry decides nothing
                    self._intents[uid] = self._intent(replica, binding["target"]["name"])
                    self._posting[uid] = task
                if not replica.leads():
                    self.broken.append(f"{replica.name} binds, and does not lead")
            case "patch":
                patch = json.loads(sent.body)
                uid, node = (
                    patch["metadata"].get("uid", "") if "metadata" in patch else "",
                    patch["status"].get("nominatedNodeName"),
                )
                if node:
                    self._nominations[sent.client] = _Nomination(uid, node, uid in replica.mirror.pending)
            case "delete":
                self._check_eviction(replica, json.loads(sent.body)["preconditions"]["uid"])

    def _received(self, sent: Sent, body: bytes) -> None:
        replica = self._replicas.get(sent.client)
        if sent.kind == "get" and "/pods/" in sent.path and replica is not None and not replica.is_background():
            pod = json.loads(body)
            if pod["spec"].get("nodeName"):
                self._read[sent.client].add(pod["metadata"]["uid"])

    def _carried_out(self, sent: Sent) -> None:
        if sent.kind == "bind":
            uid = json.loads(sent.body)["metadata"]["uid"]
            self._ours[uid], self._since[uid] = self._intents[uid], asyncio.get_running_loop().time()
            self._check_placed(uid, self._intents[uid])

    # (a) No rule is broken by a decision: what could be known counts, and nothing is placed beside it against a rule.

    def check_places(self, replicas: Sequence["Replica"]) -> None:
        """Check that what is bound counts for the leader where it is, if Kindred has placed it, or a GET has shown it.

        Not if the mirror is stale, as nothing is decided then, nor when the time of a place is over.
        """
        now = asyncio.get_running_loop().time()
        for replica in replicas:
            if not replica.leads() or replica.is_stale():
                continue
            for uid, pod in self._placed().items():
                at, is_known = replica.mirror.get_pod(uid), uid in self._ours or uid in self._read[replica.client]
                node = pod["spec"]["nodeName"]
                if is_known and (at is None or at.node_name != node) and now - self._since.get(uid, now) < TTL - 1.0:
                    where = "nowhere" if at is None else f"on {at.node_name}"
                    self.broken.append(f"{replica.name}: {pod['metadata']['name']} is on {node}, and counts {where}")

    def _placed(self) -> dict[str, Object]:
        return {
            pod["metadata"]["uid"]: pod
            for pod in self._store.objects(PODS.path)
            if pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") not in _ENDED
        }

    def _intent(self, replica: "Replica", node: str) -> _Intent:
        mirror = replica.mirror
        self._number += 1
        watched = {uid for uid in self._others if mirror.is_mirrored(uid) and not mirror.is_assumed(uid)}
        known = mirror.nodes.known.values.get(node)
        cpu = known.node.allocatable["cpu"] if known is not None and known.node is not None else 0
        claims = mirror.objects(PersistentVolumeClaim)
        others = frozenset(watched | (self._read[replica.client] & self._others))
        nodes = frozenset(mirror.nodes.slots) if "default/claim" in claims else frozenset[str]()
        return _Intent(self._number, node, others, cpu, nodes)

    def _check_placed(self, uid: str, intent: _Intent) -> None:
        placed = self._placed()
        earlier = {each for each, its in self._ours.items() if its.order < intent.order} | intent.others
        own = placed.pop(uid)
        counted = [pod for each, pod in placed.items() if each in earlier]
        neighbours = [pod for pod in counted if pod["spec"]["nodeName"] == intent.node]
        self.counts["bound"] += 1
        self.counts["beside others"] += bool(neighbours)
        if _cpu(own) and sum(map(_cpu, [own, *neighbours])) > intent.cpu:
            self._note(f"more than {intent.cpu} m of cpu", own, neighbours)
        for what, has, among in (
            ("host port", _has_port, neighbours),
            ("anti-affinity", _is_loner, neighbours),
            (
                "ReadWriteOncePod claim",
                _has_claim,
                [pod for pod in counted if pod["spec"]["nodeName"] in intent.with_claims],
            ),
        ):
            if has(own) and any(map(has, among)):
                self._note(what, own, [pod for pod in among if has(pod)])

    def _note(self, what: str, own: Object, others: Sequence[Object]) -> None:
        names = [pod["metadata"]["name"] for pod in others]
        self.broken.append(f"{own['metadata']['name']} on {own['spec']['nodeName']} beside {names}: {what}")

    # (b) No pod is deleted for nothing.

    def _check_eviction(self, replica: "Replica", victim: str) -> None:
        nomination, mirror = self._nominations[replica.client], replica.mirror
        self.counts["evicted"] += 1
        uid = nomination.preemptor
        if mirror.is_mirrored(uid):
            self.broken.append(f"{victim} is evicted for {uid}, which has a node")
        pending = mirror.pending.get(uid)
        if nomination.was_pending and (pending is None or pending.terminating):
            self.broken.append(f"{victim} is evicted for {uid}, which is deleted")
        at = mirror.get_pod(victim)
        if at is None or at.node_name != nomination.node:
            self.broken.append(f"{victim} is evicted, and is not on {nomination.node}")
        elif pending is not None and at.priority >= pending.priority:
            self.broken.append(f"{victim} is evicted for {uid}, which is not more important")
        if not replica.leads():
            self.broken.append(f"{replica.name} evicts, and does not lead")

    # (d) Responses are well formed.

    def check_filter(self, response: Any, names: Sequence[str]) -> None:  # noqa: ANN401 - JSON
        """Check an ExtenderFilterResult."""
        if response["Error"]:
            if any(response[key] for key in ("Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes")):
                self.broken.append(f"an Error beside nodes: {response}")
            return
        failed = [*response["FailedNodes"], *response["FailedAndUnresolvableNodes"]]
        passed = response["NodeNames"]
        if passed is None:
            passed = [item["metadata"]["name"] for item in response["Nodes"]["items"]]
        elif not set(passed) <= set(names):
            self.broken.append(f"a node that is not in the request: {response}")
        well_formed = (
            len(passed) <= 1 and bool(passed or failed)
            if self._decides
            else sorted([*passed, *failed]) == sorted(names)
        )
        if not well_formed:
            self.broken.append(f"for {names}: {response}")

    def check_prioritize(self, response: Any, names: Sequence[str]) -> None:  # noqa: ANN401 - JSON
        """Check a HostPriorityList."""
        if [each["Host"] for each in response] != list(names) or any(
            not 0 <= each["Score"] <= 100 for each in response
        ):
            self.broken.append(f"for {names}: {response}")

    def check_bind(self, response: Any) -> None:  # noqa: ANN401 - JSON
        """Check an ExtenderBindingResult."""
        if response.keys() != {"Error"} or not isinstance(response["Error"], str):
            self.broken.append(f"a binding: {response}")

    def check_preempt(self, replica: "Replica", preemptor: Object, response: Any) -> None:  # noqa: ANN401 - JSON
        """Check an ExtenderPreemptionResult: it names pods that are there, and that are less important."""
        for node, victims in response["NodeNameToMetaVictims"].items():
            found = [replica.mirror.get_pod(each["UID"]) for each in victims["Pods"]]
            priority = preemptor["spec"]["priority"]
            if not found or any(pod is None or pod.node_name != node or pod.priority >= priority for pod in found):
                self.broken.append(f"victims on {node}: {response}")


def _cpu(pod: Object) -> int:
    return sum(
        1000 * int(container.get("resources", {}).get("requests", {}).get("cpu", 0))
        for container in pod["spec"].get("containers", ())
    )


def _has_port(pod: Object) -> bool:
    return any("ports" in container for container in pod["spec"].get("containers", ()))


def _is_loner(pod: Object) -> bool:
    return "db" in pod["metadata"].get("labels", {}).values()


def _has_claim(pod: Object) -> bool:
    return bool(pod["spec"].get("volumes"))

"""The four questions about what would happen: what a caller sends, and how each is asked of a cluster.

A question is asked in steps, so that its caller can show how far it is, and stop. Its fields are the options of the
command of its name.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Annotated, ClassVar, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from app.explain.explain_request import MAX_MANIFESTS
from app.explain.pod_names import pod_query
from app.objects.decode import DecodeError, under
from app.simulation.assumptions import Assumptions, Lack
from app.simulation.chosen_nodes import QuestionError, chosen_nodes
from app.simulation.comes_again import ClusterFacts, Uncertainty
from app.simulation.quotas import KIND, Allowed, within_quotas
from app.simulation.raw_objects import RawObjects
from app.simulation.replicas import Replica, Replicas, namespaces_of
from app.simulation.responses import (
    CapacityResponse,
    DrainResponse,
    LossResponse,
    RemovalResponse,
    drain_response,
    loss_response,
)
from core.events import Kind
from core.explaining.words import counted, listed
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import PodDisruptionBudget
from core.objects.node import HOSTNAME, ZONE
from core.scheduling_cycle import ALL
from core.simulation.capacity import MOST, capacity
from core.simulation.drain import drain
from core.simulation.loss import Keep, domains_of, lose_each
from core.simulation.lost_nodes import NodeState
from core.simulation.moves import Basis
from core.simulation.new_nodes import NodeLike
from core.simulation.placing import Schedulers, Steps
from core.simulation.removal import remove_each

MAX_ORDERS: Final = 100
_MAX_LISTED: Final = 5_000
"""Limit of the nodes and values in a question."""
_MAX_TEMPLATES: Final = 100
"""Limit of the templates in a question, and of the shares of a mix. Each name costs a loop over all pods."""
MAX_ADDED: Final = 1_000
_MAX_KEYS: Final = 3
_KEYS: Final = {"zone": ZONE, "region": "topology.kubernetes.io/region", "node": HOSTNAME}

Flag: TypeAlias = Literal["--ignore-daemonsets", "--delete-emptydir-data", "--force"]
Orders: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MAX_ORDERS)]
Names: TypeAlias = Annotated[list[str], msgspec.Meta(max_length=_MAX_LISTED)]
Result = TypeVar("Result")


class QuestionCluster(NamedTuple):
    """A cluster with what a question needs of it. Stale after the next event."""

    mirror: ClusterMirror
    facts: ClusterFacts
    raw: RawObjects
    schedulers: Schedulers
    kubernetes: str
    lacks: Sequence[Lack]
    without_quotas: Sequence[Lack] = ()
    """What is not known if there is no ResourceQuota. Empty for a cluster whose quotas were listed."""
    keep: Keep = list
    """How the moves of a loss are kept."""

    def basis(self, orders: int) -> Basis:
        """Return what the questions of core.simulation take."""
        return Basis(self.mirror, self.schedulers, self.facts, orders)

    def assumed(self, orders: int) -> Assumptions:
        """Return what a response assumes. To be called after the question, because uncertainties are found by it."""
        return Assumptions(self.kubernetes, [*self.schedulers], ALL, orders, self.lacks, self.facts.uncertainties)


class Running(NamedTuple, Generic[Result]):
    """A question that is being asked."""

    steps: Steps[Result]
    length: int
    """About how many steps it takes."""


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What all questions have."""

    name: ClassVar[str]
    """The name of the command."""
    kinds: ClassVar[Sequence[Kind]] = ()
    """Objects that it reads beside those that plugins read."""
    reads_quotas: ClassVar[bool] = False

    @property
    def namespaces(self) -> Mapping[str, Collection[str]]:
        """Field -> the namespaces of the pods and workloads that it names. The empty one: any namespace.

        Raises DecodeError.
        """
        return {}

    def check(self) -> None:
        """Raise QuestionError for fields that do not go together. Needs no cluster."""


class NodesQuestion(Question, frozen=True, kw_only=True):
    """A question about some nodes."""

    kinds: ClassVar[Sequence[Kind]] = (PodDisruptionBudget,)
    nodes: Names = []
    """Names."""
    selector: str = ""
    """Labels of nodes, as for kubectl."""
    zone: str = ""

    @property
    def has_chosen(self) -> bool:
        """Whether it names nodes."""
        return bool(self.nodes or self.selector or self.zone)

    def chosen(self, mirror: ClusterMirror, *, may_be_all: bool = False) -> list[str]:
        """Return the names of the nodes. Raises QuestionError."""
        return chosen_nodes(mirror, self.nodes, self.selector, self.zone, may_be_all=may_be_all)


class DrainQuestion(NodesQuestion, frozen=True, kw_only=True):
    """What `kubectl drain` would refuse and evict, and where the pods would go."""

    name = "drain"
    flags: list[Flag] = []
    """The flags that kubectl is given."""
    orders: Orders = 3
    """In how many orders pods arrive and ties are broken."""

    def check(self) -> None:
        """Raise QuestionError for fields that do not go together. Needs no cluster."""
        if not self.has_chosen:
            raise QuestionError("nodes", "give nodes by name, by labels or by zone")

    def ask(self, cluster: QuestionCluster) -> Running[DrainResponse]:
        """Begin. Raises QuestionError."""
        nodes = self.chosen(cluster.mirror)
        pods = _pods_on(cluster.mirror, nodes)
        return Running(self._steps(cluster, nodes), pods * self.orders)

    def _steps(self, cluster: QuestionCluster, nodes: Sequence[str]) -> Steps[DrainResponse]:
        drained = yield from drain(cluster.basis(self.orders), nodes)
        selectors = [*filter(None, (self.selector, self.zone and f"{ZONE}={self.zone}"))]
        selector = selectors[0] if len(selectors) == 1 and not self.nodes else None
        return drain_response(drained, self.flags, cluster.assumed(self.orders), selector)


class LossQuestion(Question, frozen=True, kw_only=True):
    """Which zone, rack or node can fail at once, and which pods find no place then."""

    name = "loss"
    by: str = "zone"
    """zone, region, node, or a label."""
    only: Names = []
    """Only these zones, or values. Without it: all."""
    orders: Orders = 3

    def ask(self, cluster: QuestionCluster) -> Running[LossResponse]:
        """Begin. Raises QuestionError."""
        key = _KEYS.get(self.by, self.by)
        domains = domains_of(cluster.mirror, key)
        unknown = sorted(set(self.only) - domains.keys())
        if not domains:
            raise QuestionError("by", f"no node has the label {key}{_named_alike(cluster.mirror, key)}", self.by)
        if unknown:
            raise QuestionError("only", f"no node has it as {key}", unknown[0])
        chosen = [value for value in domains if not self.only or value in self.only]
        if len(domains) == 1 and len(domains[chosen[0]]) == len(cluster.mirror.nodes.slots):
            raise QuestionError("by", f"all nodes have {key}={chosen[0]}, so that none is left", self.by)
        pods = _pods_on(cluster.mirror, chain.from_iterable(domains[value] for value in chosen))
        return Running(self._steps(cluster, key, chosen), pods * self.orders * len(NodeState))  # most are in both

    def _steps(self, cluster: QuestionCluster, key: str, chosen: Sequence[str]) -> Steps[LossResponse]:
        loss = yield from lose_each(cluster.basis(self.orders), key, chosen, keep=cluster.keep, keeps_other=False)
        return loss_response(loss, cluster.assumed(self.orders))


class RemovalQuestion(NodesQuestion, frozen=True, kw_only=True):
    """Which nodes could go, and what is in the way of the others. Without a choice of nodes: all are tried."""

    name = "removal"
    tries: Annotated[int, msgspec.Meta(ge=0)] = 200
    """How many nodes the search for a set that can go together tries. 0: none."""
    orders: Orders = 3

    def ask(self, cluster: QuestionCluster) -> Running[RemovalResponse]:
        """Begin. Raises QuestionError."""
        nodes = self.chosen(cluster.mirror, may_be_all=True)
        number = len(nodes or cluster.mirror.nodes.slots)
        return Running(self._steps(cluster, nodes), number + min(number, self.tries))

    def _steps(self, cluster: QuestionCluster, nodes: Sequence[str]) -> Steps[RemovalResponse]:
        removal = yield from remove_each(cluster.basis(self.orders), nodes, tries=self.tries)
        return RemovalResponse(**asdict(removal), assumed=cluster.assumed(self.orders))


class CapacityQuestion(Question, frozen=True, kw_only=True):
    """How many more pods fit, after the pending ones, and what stops the next one."""

    name = "capacity"
    reads_quotas = True
    of: Annotated[list[str], msgspec.Meta(max_length=_MAX_TEMPLATES)] = []
    """[NAMESPACE/][TYPE/]NAME of workloads and pods."""
    namespace: str = ""
    """The namespace of names without one. Empty: any."""
    manifests: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=_MAX_TEMPLATES)] = []
    """Manifests of pods and workloads."""
    replicas: Annotated[int, msgspec.Meta(ge=1, le=MOST)] | None = None
    """Whether so many fit. Without it: as many as fit."""
    mix: Annotated[list[int], msgspec.Meta(max_length=_MAX_TEMPLATES)] = []
    """How many of each in turn. Without it: one each."""
    add_node_like: str = ""
    """Add nodes like this one where a pod fits nowhere."""
    in_zone: str = ""
    """The zone of the added nodes. Empty: that of the node."""
    orders: Orders = 3

    @property
    def namespaces(self) -> Mapping[str, Collection[str]]:
        """Field -> the namespaces of the pods and workloads that it names. The empty one: any namespace.

        Raises DecodeError.
        """
        if sum(len(bytes(each)) for each in self.manifests) > MAX_MANIFESTS:
            raise DecodeError("manifests", f"larger than {MAX_MANIFESTS} bytes, for a caller who is no admin")
        of_manifests = set[str]()
        for place, manifest in enumerate(self.manifests):
            with under(f"manifests[{place}]"):
                of_manifests.update(namespaces_of(manifest))
        named = {pod_query(each).namespace or self.namespace for each in self.of}
        return {"of": named, "manifests": of_manifests}

    def check(self) -> None:
        """Raise QuestionError for fields that do not go together. Needs no cluster."""
        given = bool(self.of or self.manifests)
        if not (given or self.add_node_like):
            raise QuestionError("of", "give a workload, a pod or a manifest, or a node to add for the pending pods")
        if self.add_node_like and given and self.replicas is None:
            raise QuestionError("addNodeLike", "give replicas, too, because any number fits on more nodes")
        if self.in_zone and not self.add_node_like:
            raise QuestionError("inZone", "give a node to add, too")

    def ask(self, cluster: QuestionCluster) -> Running[CapacityResponse]:
        """Begin. Raises QuestionError, DecodeError."""
        replicas = Replicas(cluster.mirror, cluster.raw, cluster.facts)
        named = [replicas.named(each, self.namespace) for each in self.of]
        of_manifests = (_of_manifest(replicas, place, each) for place, each in enumerate(self.manifests))
        found = [*named, *of_manifests]
        allowed = within_quotas(self._shared(found), cluster.raw)
        number = len(cluster.mirror.nodes.slots) if self.replicas is None else self.replicas
        return Running(self._steps(cluster, found, allowed, self._like(cluster)), number * self.orders)

    def _steps(
        self, cluster: QuestionCluster, found: Sequence[Replica], allowed: Allowed, like: NodeLike | None
    ) -> Steps[CapacityResponse]:
        counts = yield from capacity(cluster.basis(self.orders), allowed.templates, self.replicas, like=like)
        assumed = cluster.assumed(self.orders)
        unknown = [Uncertainty(each.of, f"not judged: {each.uncertainty}", 1) for each in found if each.uncertainty]
        of_quotas = cluster.without_quotas if found and not cluster.raw.has(KIND) else ()
        lacks = [*assumed.lacks, *of_quotas, *allowed.lacks]
        assumed = replace(assumed, uncertainties=[*assumed.uncertainties, *unknown], lacks=lacks)
        enough = counts.least >= (self.replicas or 1) if found else not counts.pending_unplaced
        return CapacityResponse([each.of for each in found], self.replicas, enough, counts, assumed)

    def _shared(self, found: Sequence[Replica]) -> list[Replica]:
        shares = self.mix or [1] * len(found)
        if len(shares) != len(found) or not all(0 < share <= MOST for share in shares):
            expected = f"expected {counted(len(found), 'number')} of at least 1"
            raise QuestionError("mix", expected, ",".join(map(str, shares)))
        pairs = zip(found, shares, strict=True)
        return [each._replace(template=each.template._replace(share=share)) for each, share in pairs]

    def _like(self, cluster: QuestionCluster) -> NodeLike | None:
        if not self.add_node_like:
            return None
        if self.add_node_like not in cluster.mirror.nodes.slots:
            raise QuestionError("addNodeLike", "no such node", self.add_node_like)
        return NodeLike(self.add_node_like, MAX_ADDED, self.in_zone)


def _pods_on(mirror: ClusterMirror, nodes: Iterable[str]) -> int:
    return sum(len(mirror.nodes.infos[name].rows) for name in nodes)


def _named_alike(mirror: ClusterMirror, key: str) -> str:
    """Return which labels of nodes have the name of a label, with other prefixes: `example.com/rack` for `rack`."""
    keys = {each for _, node in mirror.nodes for each in node.labels}
    found = sorted(each for each in keys if each.rpartition("/")[2] == key.rpartition("/")[2])
    return f"; there is {listed(found, _MAX_KEYS)}" if found else ""


def _of_manifest(replicas: Replicas, place: int, manifest: msgspec.Raw) -> Replica:
    with under(f"manifests[{place}]"):
        return replicas.of_manifest(bytes(manifest))


AnyQuestion: TypeAlias = CapacityQuestion | DrainQuestion | LossQuestion | RemovalQuestion
Response: TypeAlias = CapacityResponse | DrainResponse | LossResponse | RemovalResponse

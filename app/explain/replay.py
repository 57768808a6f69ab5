"""Evaluates recorded decisions again with the present mirror, and compares the results."""

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from typing import Final, TypeAlias

import msgspec

from app.explain.decisions import RecordedDecision
from app.verbs.extender import Extender
from app.verbs.observation import VerbOutcome, VerbResponse
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT

Said: TypeAlias = str | int | None
"""The result for a node in a response: its score, or the reason of its rejection (empty: passed). None: no result."""
REPLAYED: Final = ("filter", "prioritize")
"""The verbs that can be replayed. `bind` and `preempt` have effects."""


class NotReplayableError(ValueError):
    """A decision that cannot be replayed. The message has the reason."""


class ReplayedResult(msgspec.Struct, frozen=True):
    """The outcome of a request."""

    generation: int
    """Generation of the mirror. A mirror from a saved state counts its own generations."""
    outcome: VerbOutcome
    nodes: int
    passed: int
    error: str
    kubernetes: str
    """Release of Kubernetes whose rules applied, `1.37`. Empty if it was not recorded."""


class NodeDifference(msgspec.Struct, frozen=True):
    """A node with another result now. For the form of a result see Said."""

    node: str
    then: Said
    now: Said


class Replay(msgspec.Struct, frozen=True):
    """A decision, then and now."""

    id: int
    at: str
    """Time of the recorded response, RFC 3339."""
    verb: str
    pod: str
    """NAMESPACE/NAME"""
    nodes_asked: str
    """`as then`, or `all known` if the nodes of the request were too many to keep."""
    then: ReplayedResult
    now: ReplayedResult
    differing_nodes: int | None
    """None: the recorded response was too large to keep, or had no nodes."""
    differences: list[NodeDifference]
    """The first differing nodes, in their present order."""

    @property
    def same(self) -> bool:
        """Whether the result is the same. Without nodes to compare, whether the outcome is the same."""
        if self.differing_nodes is not None:
            return not self.differing_nodes
        then, now = self.then, self.now
        return (then.outcome, then.passed, then.error) == (now.outcome, now.passed, now.error)


class Replayer:
    """Evaluates decisions again, without the equivalence cache, and as if the pod were not bound yet."""

    def __init__(self, mirror: ClusterMirror, make_extender: Callable[[Collection[str]], Extender]) -> None:
        """`make_extender` returns an extender over the mirror, without a cache and without observers.

        Its argument has the nodes of the recorded response. A decider prefers these nodes among equally good ones, so
        that an arbitrary choice among the best causes no difference.
        """
        self._mirror = mirror
        self._make_extender = make_extender

    def replay(self, decision: RecordedDecision, limit: int) -> Replay:
        """Evaluate again. Return at most `limit` differences. Raises NotReplayableError."""
        if decision.verb not in REPLAYED:
            raise NotReplayableError(f"only {' and '.join(REPLAYED)} can be replayed, and this was {decision.verb}")
        then = _said(decision.verb, decision.response)
        answer = self._ask(decision, decision.request or self._request(decision, list(then)), then)
        now = _said(decision.verb, answer.body)
        differences = [
            NodeDifference(node, then.get(node), now.get(node))
            for node in dict.fromkeys([*now, *then])
            if then.get(node) != now.get(node)
        ]
        return Replay(
            id=decision.number,
            at=decision.answered_at,
            verb=decision.verb,
            pod=decision.asked.pod,
            nodes_asked="as then" if decision.request or len(then) == decision.asked.nodes else "all known",
            then=ReplayedResult(
                decision.generation,
                decision.outcome,
                decision.asked.nodes,
                decision.asked.passed,
                decision.error,
                decision.release,
            ),
            now=ReplayedResult(
                self._mirror.generation,
                answer.outcome,
                answer.asked.nodes,
                answer.asked.passed,
                answer.error,
                str(self._mirror.rules.release),
            ),
            differing_nodes=len(differences) if then else None,
            differences=differences[:limit] if then else [],
        )

    def _ask(self, decision: RecordedDecision, request: bytes, then: Mapping[str, Said]) -> VerbResponse:
        extender = self._make_extender([node for node, said in then.items() if said == ""])
        ask = extender.filter if decision.verb == "filter" else extender.prioritize
        held = self._mirror.get_pod(decision.asked.uid)
        with ExitStack() as stack:
            if held is not None and self._mirror.pods.slot_of_row[self._mirror.pods.rows[held.uid]] != NO_SLOT:
                stack.enter_context(self._mirror.suppose()).remove(held)
            return ask(request, cached=False)

    def _request(self, decision: RecordedDecision, names: list[str]) -> bytes:
        """Return a request with these nodes, or else with all known nodes."""
        if not decision.pod:
            raise NotReplayableError("the service no longer has its request or its pod")
        whole = len(names) == decision.asked.nodes  # false for a decision, whose response has one node
        asked = names if names and whole else list(self._mirror.nodes.slots)
        if not asked:
            raise NotReplayableError("the service no longer has its request, and the mirror has no node")
        return b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (decision.pod, msgspec.json.encode(asked))


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _Node(msgspec.Struct):
    metadata: _Metadata = _Metadata()


class _Nodes(msgspec.Struct):
    items: list[_Node] | None = None


class _FilterResult(msgspec.Struct, rename="pascal"):
    nodes: _Nodes | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None


class _HostPriority(msgspec.Struct, rename="pascal"):
    host: str
    score: int


def _said(verb: str, response: bytes) -> Mapping[str, Said]:
    """Return node -> result of a response. Empty for an error, or if the response was not kept."""
    try:
        if verb == "prioritize":
            return {each.host: each.score for each in msgspec.json.decode(response, type=list[_HostPriority])}
        result = msgspec.json.decode(response, type=_FilterResult)
    except msgspec.DecodeError:
        return {}
    items = (result.nodes.items if result.nodes is not None else None) or []
    passed = [*(result.node_names or []), *(node.metadata.name for node in items)]
    return {
        **dict.fromkeys(passed, ""),
        **(result.failed_nodes or {}),
        **(result.failed_and_unresolvable_nodes or {}),
    }

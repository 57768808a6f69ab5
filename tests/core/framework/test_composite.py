"""A composite has all reasons of all its failing parts, and its answers are invalid when those of any part are."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

import numpy as np
import pytest

from core.events import ClusterEvent, Kind, Object
from core.framework.evaluation import Composite, FreshEvaluation
from core.framework.interface import (
    SKIP,
    SUCCESS,
    AnyFilter,
    Code,
    FilterPlugin,
    InvalidationRule,
    Operation,
    Scope,
    Status,
    Verdicts,
    Versions,
)
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodename import NodeName
from core.plugins.nodeports import NodePorts
from tests.builders import labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, node_of, pod_of
from tests.core.plain_plugin import PlainPlugin
from tests.core.plugins.cached_answers import assert_cached_verdicts_are_fresh, random_events

A: Final = Status(Code.UNSCHEDULABLE, ("a",))
B: Final = Status(Code.UNSCHEDULABLE, ("b1", "b2"))
NEVER: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("never",))
BROKEN: Final = Status(Code.ERROR, ("broken",))
WORSE: Final = Status(Code.ERROR, ("worse",))
NODES: Final = ("n1", "n2", "n3")
POD: Final = pod_of(make_pod("p"))

Failures = Mapping[str, Status]


class Part(PlainPlugin, FilterPlugin[Failures]):
    """Fails some nodes, by name; or says one thing of all nodes in its PreFilter."""

    name = "Part"
    kinds: tuple[Kind, ...] = (Node,)

    def __init__(self, failures: Failures | None = None, everywhere: Status = SKIP, version: int = 0) -> None:
        self._failures = failures
        self._everywhere = everywhere
        self._version = version

    def pre_filter(self, _mirror: ClusterMirror, _pod: Pod) -> tuple[Status, Failures | None]:
        return (self._everywhere, None) if self._failures is None else (SUCCESS, self._failures)

    def filter(self, state: Failures, batch: NodeBatch) -> Verdicts:
        statuses = (SUCCESS, *state.values())
        codes = [statuses.index(state.get(name, SUCCESS)) for name in batch.names]
        return Verdicts(np.array(codes, np.uint8), statuses)

    def filter_versions(self, _state: object) -> Versions:
        return (self._version,)


def found_of(*parts: AnyFilter) -> list[Status]:
    mirror = mirror_of(*map(make_node, NODES))
    verdicts = FreshEvaluation(mirror, POD).verdicts(Composite("Both", parts), mirror.batch(NODES))
    return [SUCCESS if verdicts is None else verdicts.status(at) for at in range(len(NODES))]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([Part({}), Part({})], [SUCCESS, SUCCESS, SUCCESS], id="nothing-fails"),
        pytest.param([Part({"n1": A}), Part({})], [A, SUCCESS, SUCCESS], id="the-first-fails"),
        pytest.param([Part({}), Part({"n2": B})], [SUCCESS, B, SUCCESS], id="the-second-fails"),
        pytest.param(
            [Part({"n1": A, "n2": A}), Part({"n2": B, "n3": B})],
            [A, Status(Code.UNSCHEDULABLE, ("a", "b1", "b2")), B],
            id="all-reasons-in-the-order-of-the-parts",
        ),
        pytest.param(
            [Part({"n1": NEVER}), Part({"n1": A})],
            [Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("never", "a")), SUCCESS, SUCCESS],
            id="unresolvable-if-the-first-is",
        ),
        pytest.param(
            [Part({"n1": A}), Part({"n1": B}), Part({"n1": NEVER})],
            [Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("a", "b1", "b2", "never")), SUCCESS, SUCCESS],
            id="unresolvable-if-the-last-is",
        ),
        pytest.param(
            [Part(everywhere=NEVER), Part({"n2": A})],
            [NEVER, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("never", "a")), NEVER],
            id="a-part-that-fails-all-nodes-at-once-is-a-reason-on-all",
        ),
        pytest.param([Part(everywhere=SKIP), Part({"n1": A})], [A, SUCCESS, SUCCESS], id="a-part-that-skips-is-none"),
        # GeneralPredicates returns the error alone.
        pytest.param([Part({"n1": A}), Part({"n1": BROKEN})], [BROKEN, SUCCESS, SUCCESS], id="an-error-stands-alone"),
        pytest.param(
            [Part({"n1": BROKEN}), Part({"n1": A}), Part({"n1": WORSE})],
            [BROKEN, SUCCESS, SUCCESS],
            id="the-first-error-is-told",
        ),
        pytest.param([Part({"n1": A}), Part(everywhere=BROKEN)], [BROKEN] * 3, id="an-error-for-all-nodes"),
    ],
)
def test_a_node_has_all_reasons_of_all_failing_parts(parts: Sequence[Part], expected: Sequence[Status]) -> None:
    assert expected == found_of(*parts)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([Part(), Part()], SKIP, id="all-skip"),
        pytest.param([Part(everywhere=SUCCESS), Part()], SKIP, id="success-without-a-state-is-a-skip"),
        pytest.param([Part(), Part(everywhere=A)], A, id="one-fails"),
        pytest.param(
            [Part(everywhere=NEVER), Part(everywhere=A)],
            Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("never", "a")),
            id="all-fail",
        ),
        pytest.param([Part(everywhere=A), Part({}), Part(everywhere=BROKEN)], BROKEN, id="an-error"),
    ],
)
def test_without_a_state_of_any_part_one_status_is_that_of_all_nodes(parts: Sequence[Part], expected: Status) -> None:
    assert Composite("Both", parts).pre_filter(mirror_of(), POD) == (expected, None)


def test_any_number_of_different_statuses_can_be_combined() -> None:
    names = [f"n{number}" for number in range(700)]  # more pairs of statuses than 16 bits can tell apart
    nodes = mirror_of(*map(make_node, names))
    parts = []
    for prefix in ("x", "y"):
        failures = {name: Status(Code.UNSCHEDULABLE, (f"{prefix}{number // 2}",)) for number, name in enumerate(names)}
        parts.append(Wide(failures))
    verdicts = FreshEvaluation(nodes, POD).verdicts(Composite("Both", parts), nodes.batch(names))
    assert verdicts is not None
    expected = [(f"x{number // 2}", f"y{number // 2}") for number in range(700)]
    assert expected == [verdicts.status(at).reasons for at in range(700)]


class Wide(Part):
    """Has more statuses than 8 bits can tell apart."""

    def filter(self, state: Failures, batch: NodeBatch) -> Verdicts:
        codes = [1 + at for at in range(len(batch))]
        return Verdicts(np.array(codes, np.int64), (SUCCESS, *(state[name] for name in batch.names)))


def rule(kind: Kind, scope: Scope) -> InvalidationRule:
    return InvalidationRule(kind=kind, operations=(Operation.ADD,), scope=scope, because="it does")


class Reads(Part):
    """A part of which only what it tells of itself matters."""

    def __init__(self, kinds: Sequence[Kind], fields: Sequence[str], rules: Sequence[InvalidationRule]) -> None:
        super().__init__()
        self.kinds = tuple(kinds)
        self.class_fields = tuple(fields)
        self.invalidated_by = tuple(rules)


def test_what_a_composite_tells_of_itself_is_what_any_part_does() -> None:
    of_node, of_pods, of_names = rule(Node, Scope.NODE), rule(Pod, Scope.COUNTERS), rule(Namespace, Scope.ALL)
    composite = Composite(
        "Both",
        [
            Reads((Node, Pod), ("labels", "spread"), (of_node, of_pods)),
            Reads((Namespace, Node), ("spread", "affinity"), (of_names, of_node)),
        ],
    )
    assert composite.name == "Both"
    assert composite.kinds == (Node, Pod, Namespace)
    assert composite.class_fields == ("labels", "spread", "affinity")
    assert composite.invalidated_by == (of_node, of_pods, of_names)


class Refers(Part):
    """Refers to something."""

    def __init__(self, reference: Hashable) -> None:
        super().__init__()
        self._reference = reference

    def references(self, _mirror: ClusterMirror, _pod: Pod) -> Hashable:
        return self._reference


def test_a_composite_refers_to_what_its_parts_refer_to() -> None:
    def reference(*parts: Hashable) -> Hashable:
        return Composite("Both", [*map(Refers, parts)]).references(mirror_of(), POD)

    assert reference(None, None) is None
    assert len({reference("a", None), reference(None, "a"), reference("a", "b"), reference("b", "a")}) == 4
    assert reference("a", None) == reference("a", None)


def versions_of(*parts: Part) -> Versions:
    composite = Composite("Both", parts)
    _, state = composite.pre_filter(mirror_of(), POD)
    assert state is not None
    return composite.filter_versions(state)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param([Part({}, version=2), Part({}, version=1)], id="the-counters-of-the-first"),
        pytest.param([Part({}, version=1), Part({}, version=2)], id="the-counters-of-the-second"),
        pytest.param([Part({}, version=1), Part()], id="a-part-that-skips-now"),
        pytest.param([Part({}, version=1), Part(everywhere=A)], id="a-part-that-fails-all-nodes-now"),
    ],
)
def test_versions_differ_when_anything_of_any_part_does(other: Sequence[Part]) -> None:
    before = versions_of(Part({}, version=1), Part({}, version=1))
    assert before == versions_of(Part({}, version=1), Part({}, version=1))
    assert before != versions_of(*other)
    assert hash(versions_of(*other)) == hash(versions_of(*other))


def test_a_node_that_the_mirror_does_not_know_is_judged_by_all_parts() -> None:
    mirror = mirror_of(make_node("n1"), make_pod("there").host_port(80).on("n1"))
    pod = pod_of(make_pod("p").on("new").host_port(80))
    batch = mirror.batch(["n1", "new", "gone"], {1: node_of(make_node("new"))})
    verdicts = FreshEvaluation(mirror, pod).verdicts(Composite("Both", [NodeName(), NodePorts()]), batch)
    assert verdicts is not None
    assert verdicts.status(0) == Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        (
            "node(s) didn't match the requested node name",
            "node(s) didn't have free ports for the requested pod ports",
        ),
    )
    assert verdicts.status(1) == SUCCESS


def test_cached_answers_of_a_composite_are_fresh_whichever_part_changes() -> None:
    # PR 70991: results of a composite and of its parts were not dropped together. One part here is invalidated node by
    # node, and the other by its counters.
    web, db = make_pod("web").label("app", "web"), make_pod("db").label("app", "db")
    away = term("zone", labelled(app="web"))
    pool: list[Object] = [
        *(node_of(make_node(name).label("zone", zone)) for name in ("n1", "n2") for zone in ("a", "b")),
        *(pod_of(each.on(node)) for node in ("n1", "n2") for each in (web, web.host_port(80), db.host_port(443))),
    ]
    asked = [
        pod_of(make_pod("p").host_port(80).required_anti_affinity(away)),
        pod_of(make_pod("q").host_port(443)),
        pod_of(make_pod("r").required_affinity(away)),
    ]
    events: list[ClusterEvent] = random_events(7, pool, 200)
    assert_cached_verdicts_are_fresh(Composite("Both", [NodePorts(), InterPodAffinity()]), events, asked)

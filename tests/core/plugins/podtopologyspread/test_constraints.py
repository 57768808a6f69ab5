"""PodTopologySpread: which constraints hold for a pod, with which selectors, and the nodes and domains that count."""

from collections.abc import Sequence
from typing import Any, Final

import pytest
from msgspec.structs import replace

from core.events import Object
from core.mirror.cluster import ClusterMirror
from core.mirror.label_columns import LabelColumn, LabelColumns
from core.objects.affinity import NodeAffinity, NodeSelector, NodeSelectorTerm
from core.objects.kinds import ControllerRef, ReplicaSet, ReplicationController, Service, StatefulSet
from core.objects.labels import EVERYTHING, NOTHING, Operator, Selector, requirement
from core.objects.pod import DO_NOT_SCHEDULE, HONOR, IGNORE, SCHEDULE_ANYWAY, Pod, SpreadConstraint, Taint, Toleration
from core.plugins.podtopologyspread.constraints import (
    SYSTEM_DEFAULTS,
    BrokenConstraintError,
    ConstrainedDomains,
    CountedNodes,
    Domains,
    NodeDomains,
    check_arguments,
    default_selector,
    own_constraints,
)
from core.plugins.podtopologyspread.pod_counts import PodCounts
from tests.core.plugins.podtopologyspread.spreading import (
    A1,
    B1,
    HOST,
    ZONE,
    incoming,
    mirror_of,
    must,
    placed,
    selecting,
    should,
    tell,
)

HAS_TIER: Final = Selector((requirement("tier", Operator.EXISTS, ()),))
DEFAULT: Final = SpreadConstraint(1, ZONE, SCHEDULE_ANYWAY)


@pytest.mark.parametrize(
    ("selector", "keys", "expected"),
    [
        pytest.param(selecting(app="web"), ("hash",), selecting(app="web", hash="7"), id="are-added"),
        pytest.param(selecting(app="web"), ("rack",), selecting(app="web"), id="that-the-pod-lacks-are-not"),
        pytest.param(selecting(), ("hash", "rack"), selecting(hash="7"), id="make-an-empty-selector-select"),
        pytest.param(selecting(app="web"), ("app",), selecting(app="web"), id="that-are-there-are-not-added-again"),
        pytest.param(NOTHING, ("hash",), NOTHING, id="leave-a-null-selector"),
        pytest.param(selecting(), ("void",), selecting(void=""), id="may-have-an-empty-value"),
        pytest.param(
            HAS_TIER,
            ("app",),
            Selector((*selecting(app="web").requirements, *HAS_TIER.requirements)),
            id="are-sorted-in",
        ),
    ],
)
def test_match_label_keys(selector: Selector, keys: tuple[str, ...], expected: Selector) -> None:
    # common.go: filterTopologySpreadConstraints, mergeLabelSetWithSelector
    pod = incoming(must(ZONE, 1, selector, match_label_keys=keys), labels={"app": "web", "hash": "7", "void": ""})
    assert [expected] == [constraint.selector for constraint in own_constraints(pod, DO_NOT_SCHEDULE)]


def test_the_first_broken_selector_is_told_of_the_constraints_that_are_looked_at() -> None:
    pod = incoming(
        should(ZONE, selector_error="soft"), must(HOST, selector_error="one"), must(ZONE, selector_error="2")
    )
    with pytest.raises(BrokenConstraintError, match=r"^one$"):
        own_constraints(pod, DO_NOT_SCHEDULE)
    with pytest.raises(BrokenConstraintError, match=r"^soft$"):
        own_constraints(pod, SCHEDULE_ANYWAY)


def test_the_system_s_defaults_are_those_of_upstream() -> None:
    assert [(each.max_skew, each.topology_key, each.when_unsatisfiable) for each in SYSTEM_DEFAULTS] == [
        (3, "kubernetes.io/hostname", "ScheduleAnyway"),
        (5, "topology.kubernetes.io/zone", "ScheduleAnyway"),
    ]


def test_defaults_for_both_actions_of_one_key_are_accepted() -> None:
    check_arguments("List", (DEFAULT, SpreadConstraint(1, ZONE), SpreadConstraint(1, HOST)))
    check_arguments("System", ())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"max_skew": 0}, r"\[0\]\.maxSkew: must be greater than 0, got 0", id="max-skew"),
        pytest.param({"topology_key": ""}, r"\[0\]\.topologyKey: must not be empty", id="no-topology-key"),
        pytest.param({"topology_key": "a b"}, r"\[0\]\.topologyKey: name part must .*, got a b", id="topology-key"),
        pytest.param(
            {"when_unsatisfiable": "Never"},
            r"\[0\]\.whenUnsatisfiable: must be DoNotSchedule or ScheduleAnyway, got Never",
            id="when-unsatisfiable",
        ),
        pytest.param(
            {"selector": selecting(app="web")}, r"\[0\]\.labelSelector: must be absent, as it is .*", id="selector"
        ),
        pytest.param(
            {"selector_error": "broken"}, r"\[0\]\.labelSelector: must be absent, as it is .*", id="broken-selector"
        ),
    ],
)
def test_a_default_constraint_is_refused_by_the_upstream_name_of_what_is_wrong(
    changes: dict[str, Any], message: str
) -> None:
    # ValidatePodTopologySpreadArgs of validation_pluginargs.go
    fields = {"max_skew": 1, "topology_key": ZONE, "when_unsatisfiable": SCHEDULE_ANYWAY, **changes}
    with pytest.raises(ValueError, match=f"^defaultConstraints{message}$"):
        check_arguments("List", (SpreadConstraint(**fields),))


def test_a_default_constraint_is_refused_that_is_there_twice() -> None:
    with pytest.raises(
        ValueError, match=r"^defaultConstraints\[1\]: must not be there twice, got zone, ScheduleAnyway$"
    ):
        check_arguments("List", (DEFAULT, SpreadConstraint(9, ZONE, SCHEDULE_ANYWAY)))


@pytest.mark.parametrize(
    ("defaulting_type", "message"),
    [
        pytest.param("Custom", "must be System or List, got Custom", id="unknown"),
        pytest.param("System", "must be List where defaultConstraints are not empty, got System", id="with-a-list"),
    ],
)
def test_a_defaulting_type_is_refused(defaulting_type: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^defaultingType: {message}$"):
        check_arguments(defaulting_type, (DEFAULT,))


LABELS: Final = {"app": "web", "tier": "front", "hash": "7"}
WEB: Final = Service("default", "web", selecting(app="web"))
FRONT: Final = Service("default", "front", selecting(tier="front"))
REPLICA_SET: Final = ReplicaSet("default", "owner", selector=selecting(hash="7"))
STATEFUL_SET: Final = StatefulSet("default", "owner", selecting(hash="7"))
CONTROLLER: Final = ReplicationController("default", "owner", selecting(hash="7"))
OF_REPLICA_SET: Final = ControllerRef("ReplicaSet", "owner", "uid", "apps/v1")
OF_STATEFUL_SET: Final = ControllerRef("StatefulSet", "owner", "uid", "apps/v1")
OF_CONTROLLER: Final = ControllerRef("ReplicationController", "owner", "uid", "v1")
NOT_BACK: Final = requirement("tier", Operator.NOT_IN, ["back"])


def pod(controller: ControllerRef | None = None) -> Pod:
    return Pod("p", "default", "p", LABELS, controller=controller)


@pytest.mark.parametrize(
    ("objects", "controller", "expected"),
    [
        # TestDefaultSelector of spread_test.go
        pytest.param([], None, EVERYTHING, id="nothing"),
        pytest.param([WEB], None, selecting(app="web"), id="a-service"),
        pytest.param([WEB, REPLICA_SET], OF_REPLICA_SET, selecting(app="web", hash="7"), id="replica-set"),
        pytest.param([WEB, CONTROLLER], OF_CONTROLLER, selecting(app="web", hash="7"), id="replication-controller"),
        pytest.param([WEB, STATEFUL_SET], OF_STATEFUL_SET, selecting(app="web", hash="7"), id="stateful-set"),
        # TestGetPodServices of spread_test.go
        pytest.param([WEB, Service("default", "db", selecting(app="db"))], None, WEB.selector, id="its-own-service"),
        pytest.param([Service("default", "db", selecting(app="db"))], None, EVERYTHING, id="not-a-service-of-others"),
        # GetPodServices of spread.go
        pytest.param([WEB, FRONT], None, selecting(app="web", tier="front"), id="two-services-together"),
        pytest.param([WEB, Service("default", "w", WEB.selector)], None, selecting(app="web"), id="two-alike"),
        pytest.param(
            [Service("default", "both", selecting(app="web", tier="back"))],
            None,
            EVERYTHING,
            id="not-a-service-in-part",
        ),
        pytest.param([Service("other", "web", WEB.selector)], None, EVERYTHING, id="not-of-another-namespace"),
        pytest.param([Service("default", "external", NOTHING)], None, EVERYTHING, id="not-a-service-without-selector"),
    ],
)
def test_pods_are_told_by_services_and_the_controller(
    objects: Sequence[Object], controller: ControllerRef | None, expected: Selector
) -> None:
    assert expected == default_selector(mirror_of(*objects), pod(controller))


OWNERS: Final = (REPLICA_SET, STATEFUL_SET, CONTROLLER)


@pytest.mark.parametrize(
    ("objects", "controller", "expected"),
    [
        # The switch of DefaultSelector in spread.go
        pytest.param(OWNERS, None, EVERYTHING, id="none-that-does-not-own-it"),
        pytest.param(
            OWNERS, replace(OF_REPLICA_SET, uid="former"), selecting(hash="7"), id="by-its-name-whatever-the-uid"
        ),
        pytest.param(OWNERS, replace(OF_REPLICA_SET, name="gone"), EVERYTHING, id="none-that-is-gone"),
        pytest.param(OWNERS, replace(OF_REPLICA_SET, kind="Job"), EVERYTHING, id="none-of-another-kind"),
        pytest.param(
            OWNERS,
            replace(OF_REPLICA_SET, api_version="extensions/v1beta1"),
            EVERYTHING,
            id="no-replica-set-of-another-api",
        ),
        pytest.param(
            OWNERS, replace(OF_STATEFUL_SET, api_version="v1"), EVERYTHING, id="no-stateful-set-of-another-api"
        ),
        pytest.param(
            OWNERS, replace(OF_CONTROLLER, api_version="apps/v1"), EVERYTHING, id="no-controller-of-another-api"
        ),
        pytest.param(OWNERS, replace(OF_CONTROLLER, api_version=""), EVERYTHING, id="none-of-no-api"),
        pytest.param(
            [replace(each, namespace="other") for each in OWNERS], OF_REPLICA_SET, EVERYTHING, id="none-elsewhere"
        ),
        pytest.param([STATEFUL_SET, CONTROLLER], OF_REPLICA_SET, EVERYTHING, id="none-that-has-its-name-alone"),
        pytest.param([replace(REPLICA_SET, selector=NOTHING)], OF_REPLICA_SET, EVERYTHING, id="one-without-selector"),
    ],
)
def test_a_controller_is_found_by_api_version_kind_and_name(
    objects: Sequence[Object], controller: ControllerRef | None, expected: Selector
) -> None:
    assert expected == default_selector(mirror_of(*objects), pod(controller))


@pytest.mark.parametrize(
    ("owner", "reference"),
    [
        pytest.param(REPLICA_SET, OF_REPLICA_SET, id="replica-set"),
        pytest.param(STATEFUL_SET, OF_STATEFUL_SET, id="stateful-set"),
    ],
)
@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(Selector((NOT_BACK,)), Selector((*WEB.selector.requirements, NOT_BACK)), id="expressions"),
        pytest.param(
            selecting(app="db"),
            Selector((*WEB.selector.requirements, *selecting(app="db").requirements)[::-1]),
            id="also-what-contradicts-a-service",
        ),
        pytest.param(WEB.selector, WEB.selector, id="the-same-as-the-service"),
        pytest.param(EVERYTHING, WEB.selector, id="empty"),
        pytest.param(NOTHING, WEB.selector, id="absent-or-broken"),
    ],
)
def test_the_requirements_of_a_set_are_added(
    owner: ReplicaSet | StatefulSet, reference: ControllerRef, selector: Selector, expected: Selector
) -> None:
    mirror = mirror_of(WEB, replace(owner, selector=selector))
    assert expected == default_selector(mirror, pod(reference))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        # labels.Merge of k8s.io/apimachinery pkg/labels/labels.go: the second of two values
        pytest.param(selecting(app="db"), selecting(app="db", tier="front"), id="another-value"),
        pytest.param(selecting(app="web"), selecting(app="web", tier="front"), id="the-same-value"),
        pytest.param(NOTHING, selecting(app="web", tier="front"), id="absent"),
    ],
)
def test_the_labels_of_a_replication_controller_replace_those_of_services(
    selector: Selector, expected: Selector
) -> None:
    mirror = mirror_of(WEB, FRONT, replace(CONTROLLER, selector=selector))
    assert expected == default_selector(mirror, pod(OF_CONTROLLER))


ALL: Final = CountedNodes((ZONE,), None, None)
EVERYWHERE: Final = placed(a1="web", a2="web web", b1="web", zoneless="web", bare="web")
NO_SCHEDULE: Final = Taint("dedicated", "x", "NoSchedule")


def domains(mirror: ClusterMirror, counted: CountedNodes = ALL, key: str = ZONE) -> dict[str, int]:
    """Return the number of pods of the app web by the value of each domain."""
    found = domains_of(mirror, counted, key)
    sums = found.sums(mirror.derived(PodCounts).of("default", selecting(app="web")))
    return {found.column.values[value_id]: int(sums[value_id]) for value_id in found.ids.tolist()}


def domains_of(mirror: ClusterMirror, counted: CountedNodes, key: str = ZONE) -> Domains:
    """Return the domains of a topology key that some node has."""
    of_nodes = mirror.derived(NodeDomains)
    column = mirror.derived(LabelColumns).of((key,)).get(key) or LabelColumn(key, mirror.nodes.capacity)
    return of_nodes.of(column, of_nodes.counted(counted))


def affinity(*terms: NodeSelectorTerm, **labels: str) -> NodeAffinity:
    return NodeAffinity(selecting(**labels), NodeSelector(terms) if terms else None)


def test_each_constraint_of_a_pod_counts_the_nodes_of_its_own_policies() -> None:
    mirror = mirror_of(nodes=(A1, replace(B1, taints=(NO_SCHEDULE,))))
    of_pod = ConstrainedDomains(mirror, incoming(node_affinity=affinity(**{HOST: "b1"})), (ZONE,))
    column = mirror.affinity.columns.acquire(ZONE, mirror.nodes)
    found = {
        (one, two): {column.values[value_id] for value_id in of_pod.of(constraint, column).ids.tolist()}
        for one in (HONOR, IGNORE)
        for two in (HONOR, IGNORE)
        for constraint in (must(ZONE, node_affinity_policy=one, node_taints_policy=two),)
    }
    assert found == {
        (HONOR, HONOR): set(),
        (HONOR, IGNORE): {"b"},
        (IGNORE, HONOR): {"a"},
        (IGNORE, IGNORE): {"a", "b"},
    }


def test_domains_are_kept_while_no_label_or_taint_changes() -> None:
    mirror = mirror_of()
    before = domains_of(mirror, ALL)
    tell(mirror, "Update", replace(A1, allocatable={"cpu": 1}, conditions={"Ready": "True"}), *EVERYWHERE)
    assert domains_of(mirror, ALL) is before
    tell(mirror, "Update", replace(A1, taints=(NO_SCHEDULE,)))
    assert domains_of(mirror, ALL) is not before


@pytest.mark.parametrize("bound", ["MAX_DOMAINS", "MAX_COUNTED"])
def test_the_domains_asked_for_last_are_kept(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(f"core.plugins.podtopologyspread.constraints.{bound}", 2)
    mirror = mirror_of()
    others = [CountedNodes((), None, frozenset({Toleration(key)})) for key in "xy"]
    first, second = domains_of(mirror, ALL), domains_of(mirror, others[0])
    assert domains_of(mirror, ALL) is first
    domains_of(mirror, others[1])
    assert domains_of(mirror, ALL) is first
    assert domains_of(mirror, others[0]) is not second


def test_nodes_counted_by_what_a_large_pod_asks_are_not_kept() -> None:
    mirror = mirror_of()
    large = CountedNodes((), None, frozenset({Toleration(f"key-{number}") for number in range(1000)}))
    assert domains_of(mirror, large) is not domains_of(mirror, large)


@pytest.mark.parametrize("retained", [0, 1])
def test_a_request_whose_columns_are_too_large_to_keep_is_answered_right(
    monkeypatch: pytest.MonkeyPatch, retained: int
) -> None:
    monkeypatch.setattr("core.mirror.label_columns.MAX_BYTES", retained)
    mirror = mirror_of(*EVERYWHERE)
    both = CountedNodes((HOST, ZONE), None, None)
    assert domains(mirror, both) == {"a": 3, "b": 1}
    assert domains(mirror, both, HOST) == {"a1": 1, "a2": 2, "b1": 1}

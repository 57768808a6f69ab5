"""What selects the pods that belong together with a pod which has no constraints of its own."""

from collections.abc import Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from core.events import Action, Object
from core.objects.kinds import ControllerRef, ReplicaSet, ReplicationController, Service, StatefulSet
from core.objects.labels import EVERYTHING, NOTHING, Operator, Selector, requirement
from core.objects.pod import Pod
from core.plugins.podtopologyspread.constraints import default_selector
from tests.core.plugins.podtopologyspread.spreading import mirror_of, selecting, tell

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


ALL: Final = (REPLICA_SET, STATEFUL_SET, CONTROLLER)


@pytest.mark.parametrize(
    ("objects", "controller", "expected"),
    [
        # The switch of DefaultSelector in spread.go
        pytest.param(ALL, None, EVERYTHING, id="none-that-does-not-own-it"),
        pytest.param(
            ALL, replace(OF_REPLICA_SET, uid="former"), selecting(hash="7"), id="by-its-name-whatever-the-uid"
        ),
        pytest.param(ALL, replace(OF_REPLICA_SET, name="gone"), EVERYTHING, id="none-that-is-gone"),
        pytest.param(ALL, replace(OF_REPLICA_SET, kind="Job"), EVERYTHING, id="none-of-another-kind"),
        pytest.param(
            ALL,
            replace(OF_REPLICA_SET, api_version="extensions/v1beta1"),
            EVERYTHING,
            id="no-replica-set-of-another-api",
        ),
        pytest.param(ALL, replace(OF_STATEFUL_SET, api_version="v1"), EVERYTHING, id="no-stateful-set-of-another-api"),
        pytest.param(ALL, replace(OF_CONTROLLER, api_version="apps/v1"), EVERYTHING, id="no-controller-of-another-api"),
        pytest.param(ALL, replace(OF_CONTROLLER, api_version=""), EVERYTHING, id="none-of-no-api"),
        pytest.param(
            [replace(each, namespace="other") for each in ALL], OF_REPLICA_SET, EVERYTHING, id="none-elsewhere"
        ),
        pytest.param([STATEFUL_SET, CONTROLLER], OF_REPLICA_SET, EVERYTHING, id="none-that-has-its-name-alone"),
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


def test_services_are_followed() -> None:
    mirror = mirror_of(WEB)
    found = [default_selector(mirror, pod())]
    events: list[tuple[Action, Object]] = [
        ("Update", Service("default", "web", FRONT.selector)),
        ("Add", Service("default", "hash", selecting(hash="7"))),
        ("Delete", WEB),
        ("Add", REPLICA_SET),
    ]
    for action, each in events:
        tell(mirror, action, each)
        found.append(default_selector(mirror, pod()))
    hashed = selecting(hash="7")
    assert [WEB.selector, FRONT.selector, selecting(hash="7", tier="front"), hashed, hashed] == found


@pytest.mark.parametrize(
    ("owner", "reference"),
    [
        pytest.param(REPLICA_SET, OF_REPLICA_SET, id="replica-set"),
        pytest.param(STATEFUL_SET, OF_STATEFUL_SET, id="stateful-set"),
        pytest.param(CONTROLLER, OF_CONTROLLER, id="replication-controller"),
    ],
)
def test_controllers_are_followed(
    owner: ReplicaSet | StatefulSet | ReplicationController, reference: ControllerRef
) -> None:
    mirror = mirror_of()
    found = []
    events: list[tuple[Action, Object]] = [
        ("Add", owner),
        ("Update", replace(owner, selector=selecting(tier="front"))),
        ("Delete", owner),
    ]
    for action, each in events:
        tell(mirror, action, each)
        found.append(default_selector(mirror, pod(reference)))
    assert [selecting(hash="7"), selecting(tier="front"), EVERYTHING] == found

"""What selects the pods that belong together with a pod which has no constraints of its own."""

from collections.abc import Sequence
from typing import Final

import pytest

from core.events import Action, Object
from core.objects.labels import EVERYTHING, NOTHING, Selector
from core.objects.owner import ControllerRef, ReplicaSet
from core.objects.pod import Pod
from core.objects.service import Service
from core.plugins.podtopologyspread.default_selector import default_selector
from tests.core.plugins.podtopologyspread.spreading import mirror_of, selecting, tell

LABELS: Final = {"app": "web", "tier": "front", "hash": "7"}
WEB: Final = Service("default", "web", selecting(app="web"))
FRONT: Final = Service("default", "front", selecting(tier="front"))
OWNED: Final = ControllerRef("ReplicaSet", "rs", "uid")
OWNER: Final = ReplicaSet("default", "rs", {"app": "web", "hash": "7"})


def pod(controller: ControllerRef | None = None) -> Pod:
    return Pod("p", "default", "p", LABELS, controller=controller)


@pytest.mark.parametrize(
    ("objects", "controller", "expected"),
    [
        # spread.go: DefaultSelector, GetPodServices
        pytest.param([], None, EVERYTHING, id="nothing"),
        pytest.param([WEB], None, selecting(app="web"), id="a-service"),
        pytest.param([WEB, FRONT], None, selecting(app="web", tier="front"), id="two-services-together"),
        pytest.param([WEB, Service("default", "w", WEB.selector)], None, selecting(app="web"), id="two-alike"),
        pytest.param([Service("default", "db", selecting(app="db"))], None, EVERYTHING, id="not-a-service-of-others"),
        pytest.param(
            [Service("default", "both", selecting(app="web", tier="back"))],
            None,
            EVERYTHING,
            id="not-a-service-in-part",
        ),
        pytest.param([Service("other", "web", WEB.selector)], None, EVERYTHING, id="not-of-another-namespace"),
        pytest.param([Service("default", "external", NOTHING)], None, EVERYTHING, id="not-a-service-without-selector"),
        pytest.param([OWNER], OWNED, selecting(app="web", hash="7"), id="the-replica-set"),
        pytest.param([OWNER, FRONT], OWNED, selecting(**LABELS), id="the-replica-set-and-a-service"),
        pytest.param([OWNER], None, EVERYTHING, id="not-a-replica-set-that-does-not-own-it"),
        pytest.param([], OWNED, EVERYTHING, id="not-a-replica-set-that-is-gone"),
        pytest.param(
            [ReplicaSet("other", "rs", OWNER.labels)], OWNED, EVERYTHING, id="not-a-replica-set-of-another-namespace"
        ),
        pytest.param([OWNER], ControllerRef("Job", "rs", "uid"), EVERYTHING, id="not-an-owner-of-another-kind"),
        pytest.param(
            [ReplicaSet("default", "rs", {"app": "web", "note": "mine"})],
            OWNED,
            selecting(app="web"),
            id="its-pods-alone",
        ),
    ],
)
def test_pods_are_told_by_services_and_the_replica_set(
    objects: Sequence[Object], controller: ControllerRef | None, expected: Selector
) -> None:
    assert expected == default_selector(mirror_of(*objects), pod(controller))


def test_services_are_followed() -> None:
    mirror = mirror_of(WEB)
    found = [default_selector(mirror, pod())]
    events: list[tuple[Action, Object]] = [
        ("Update", Service("default", "web", FRONT.selector)),
        ("Add", Service("default", "hash", selecting(hash="7"))),
        ("Delete", WEB),
        ("Add", OWNER),
    ]
    for action, each in events:
        tell(mirror, action, each)
        found.append(default_selector(mirror, pod()))
    hashed = selecting(hash="7")
    assert [WEB.selector, FRONT.selector, selecting(hash="7", tier="front"), hashed, hashed] == found

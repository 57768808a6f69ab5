"""What a pod is to the API server, by the watch and by asking."""

import asyncio
import json

import pytest
from msgspec import structs

from app.api_server.client import ConnectionFailedError
from app.objects.decode_pod import decode_pod
from app.verbs.filter import Patient
from app.verbs.pods import BindingArgs, LookupState, PodLookup
from app.verbs.request import Request, VerbOutcome, VerbResponse
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from tests.app.questions import mirror_of
from tests.app.verbs.deciding.deciding_setting import DecidingSetting, FakePods, args, node_of
from tests.builders import make_node, make_pod

LIVE = Pod("u", "default", "p", resource_version="7")


class Looking:
    """A lookup with its clock and its API server."""

    def __init__(self) -> None:
        self.now = 0.0
        self.mirror = ClusterMirror()
        self.pods = FakePods()
        self.lookup = PodLookup(self.mirror, self.pods, lambda: self.now)

    def state(self, pod: Pod) -> LookupState:
        return self.lookup.of(pod).state

    def requested(self, pod: Pod = LIVE) -> LookupState:
        assert asyncio.run(self.lookup.ask(pod)) == ""
        return self.state(pod)


def test_a_pod_without_a_version_was_written_by_no_api_server() -> None:
    assert Looking().state(Pod("u", "default", "p")) is LookupState.SETTLED


def test_a_mirror_without_a_cluster_has_nothing_to_decide() -> None:
    lookup = PodLookup(ClusterMirror(), None, lambda: 0.0)
    assert lookup.of(LIVE).state is LookupState.SETTLED
    assert asyncio.run(lookup.ask(LIVE)) == ""


def test_the_watch_tells_of_most_pods() -> None:
    looking = Looking()
    assert looking.state(LIVE) is LookupState.UNKNOWN
    looking.mirror.pending.put(LIVE)
    assert looking.state(LIVE) is LookupState.PENDING
    looking.mirror.pending.remove("u")
    looking.mirror.assume(LIVE, "n1", 0)
    assert looking.state(LIVE) is LookupState.UNKNOWN, "an assumed pod may be bound, deleted or neither by now"
    looking.mirror.forget("u")
    looking.mirror.apply(ClusterEvent("Add", Pod("u", "default", "p", node_name="n1")))
    assert looking.state(LIVE) is LookupState.SETTLED
    assert looking.pods.requested == 0


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param(LIVE, LookupState.PENDING, id="there"),
        pytest.param(None, LookupState.SETTLED, id="gone"),
        pytest.param(Pod("v", "default", "p"), LookupState.SETTLED, id="another-of-the-name"),
        pytest.param(Pod("u", "default", "p", node_name="n1"), LookupState.SETTLED, id="bound"),
        pytest.param(Pod("u", "default", "p", terminal=True), LookupState.SETTLED, id="ended"),
    ],
)
def test_the_api_server_tells_of_others_for_a_while(live: Pod | None, expected: LookupState) -> None:
    looking = Looking()
    if live is not None:
        looking.pods.live["default/p"] = live
    assert looking.requested() is expected
    looking.now = 30.0
    assert looking.state(LIVE) is LookupState.UNKNOWN


def test_that_the_api_server_has_a_pod_serves_one_decision_as_the_pod_may_come_and_go_unseen_between_two() -> None:
    looking = Looking()
    looking.pods.live["default/p"] = LIVE
    assert looking.requested() is LookupState.PENDING
    assert looking.state(LIVE) is LookupState.UNKNOWN
    del looking.pods.live["default/p"]
    assert looking.requested() is LookupState.SETTLED
    assert looking.state(LIVE) is LookupState.SETTLED


def test_a_pending_pod_that_no_decision_took_is_not_kept_for_a_later_one() -> None:
    looking = Looking()
    looking.pods.live["default/p"] = LIVE
    assert asyncio.run(looking.lookup.ask(LIVE)) == ""
    looking.mirror.pending.put(LIVE)
    assert looking.lookup.of(LIVE).pod is LIVE, "the watch was faster, so what the GET has shown is left over"
    looking.now = 1.0
    newer = structs.replace(LIVE, resource_version="9", labels={"app": "web"})
    assert looking.state(newer) is LookupState.UNKNOWN, "or the pod would be decided for as it was before its change"
    looking.mirror.pending.remove("u")
    assert looking.state(LIVE) is LookupState.UNKNOWN, "or a deleted pod would be assumed"


def test_only_so_many_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.pods._MAX_PODS", 2)
    looking = Looking()
    pods = [Pod(uid, "default", uid, resource_version="7") for uid in "abc"]
    for pod in pods:
        looking.requested(pod)
    assert [looking.state(pod) for pod in pods] == [LookupState.UNKNOWN, LookupState.SETTLED, LookupState.SETTLED]


def patient(setting: DecidingSetting) -> Patient:
    return Patient(setting.extender.filter, setting.extender.unread, setting.effects)


def requested(setting: DecidingSetting, monkeypatch: pytest.MonkeyPatch, *, dry_run: bool = False) -> VerbResponse:
    monkeypatch.setattr("app.verbs.filter._RETRY_DELAYS", (0.0, 0.0, 0.0))

    async def once() -> VerbResponse:
        response = patient(setting)(Request(args(make_pod("p").uid("u"), ["n1"]), dry_run=dry_run))
        return response if isinstance(response, VerbResponse) else await response

    return asyncio.run(once())


def test_a_pod_that_the_watch_is_late_with_is_looked_up_and_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = DecidingSetting(mirror_of(make_node("n1").allocatable(pods=10)))
    setting.pods.live["default/p"] = decode_pod(make_pod("p").uid("u").json())
    assert node_of(requested(setting, monkeypatch)) == "n1"
    assert (setting.assumed(), setting.pods.requested) == ({"u": "n1"}, 1)
    setting.tell(make_pod("p").uid("u").on("n1"))
    assert setting.assumed() == {}


@pytest.mark.parametrize("bound", [True, False])
def test_a_pod_that_was_decided_for_is_read_before_its_place_is_given_away(
    monkeypatch: pytest.MonkeyPatch, *, bound: bool
) -> None:
    """The response to its binding may be lost while the watch is late, as where an API server starts anew."""
    setting = DecidingSetting(mirror_of(*(make_node(name).allocatable(pods=10) for name in ("n0", "n1"))))
    assert setting.decide(make_pod("p").uid("u"), ["n0"]) == "n0"
    pod = make_pod("p").uid("u")
    setting.pods.live["default/p"] = decode_pod((pod.on("n0") if bound else pod).json())
    assert node_of(requested(setting, monkeypatch)) == "n1"
    assert setting.pods.requested == 1
    assert setting.assumed() == {"u": "n0" if bound else "n1"}
    assert setting.counts() == {"assumed": 1, "not_assumed" if bound else "replaced": 1}


def test_a_pod_is_decided_for_as_soon_as_the_watch_shows_it_and_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.filter._RETRY_DELAYS", (60.0,))
    setting = DecidingSetting(mirror_of(make_node("n1").allocatable(pods=10)))

    async def requested_before_it_is_rendered() -> VerbResponse:
        response = patient(setting)(Request(args(make_pod("p").uid("u"), ["n1"])))
        assert not isinstance(response, VerbResponse)
        asyncio.get_running_loop().call_later(0.01, setting.tell, make_pod("p").uid("u"))
        async with asyncio.timeout(30):
            return await response

    assert node_of(asyncio.run(requested_before_it_is_rendered())) == "n1"
    assert (setting.assumed(), setting.pods.requested) == ({"u": "n1"}, 0)


def test_the_wait_for_a_pod_that_was_shown_before_it_began_ends_at_once() -> None:
    looking = Looking()
    looking.mirror.pending.put(LIVE)

    async def wait() -> None:
        async with asyncio.timeout(30):
            await looking.lookup.wait(LIVE, 60.0)

    asyncio.run(wait())


def test_the_wait_for_a_pod_that_is_not_shown_ends() -> None:
    looking = Looking()
    asyncio.run(looking.lookup.wait(LIVE, 0.01))
    assert looking.state(LIVE) is LookupState.UNKNOWN


def test_a_deleted_pod_that_is_asked_about_late_is_assumed_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = DecidingSetting(mirror_of(make_node("n1").allocatable(pods=10)))
    setting.tell(make_pod("p").uid("u"))
    setting.tell(make_pod("p").uid("u"), "Delete")
    assert node_of(requested(setting, monkeypatch)) == "n1"
    assert (setting.assumed(), setting.counts()) == ({}, {"not_assumed": 1})


def test_nothing_is_decided_if_it_cannot_be_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = DecidingSetting(mirror_of(make_node("n1").allocatable(pods=10)))
    setting.pods.error = ConnectionFailedError("no route", unsent=True)
    response = requested(setting, monkeypatch)
    assert response.outcome is VerbOutcome.REJECTED
    assert "not in the watch yet, and could not be read: no route" in response.error
    assert setting.assumed() == {}


def test_a_dry_run_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = DecidingSetting(mirror_of(make_node("n1").allocatable(pods=10)))
    assert node_of(requested(setting, monkeypatch, dry_run=True)) == "n1"
    assert (setting.assumed(), setting.pods.requested) == ({}, 0)


def test_a_replica_that_has_lost_the_lease_meanwhile_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = DecidingSetting(mirror_of(make_node("n1").allocatable(pods=10)))
    setting.pods.live["default/p"] = decode_pod(make_pod("p").uid("u").json())
    setting.rejection = "not leading: another replica leads"
    response = requested(setting, monkeypatch)
    assert (response.outcome, response.error) == (VerbOutcome.NOT_LEADING, setting.rejection)
    assert (setting.assumed(), setting.pods.requested) == ({}, 1)


@pytest.mark.parametrize(
    ("namespace", "name"), [("../../..", "p"), ("a", "../secrets/s"), ("a", "p?x=1"), ("a/b", "p")]
)
def test_what_is_no_name_is_asked_of_nobody(namespace: str, name: str) -> None:
    assert Looking().state(Pod("u", namespace, name, resource_version="7")) is LookupState.SETTLED


def test_an_api_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.pods._PATIENCE", 0.01)

    async def silence(_: BindingArgs) -> None:
        await asyncio.Event().wait()

    looking = Looking()
    monkeypatch.setattr(looking.pods, "get", silence)
    assert asyncio.run(looking.lookup.ask(LIVE)) == "the API server did not respond within 0.01 s"
    assert looking.state(LIVE) is LookupState.UNKNOWN


@pytest.mark.parametrize(
    ("metadata", "is_rendered"),
    [
        pytest.param({}, True, id="the-same"),
        pytest.param({"resourceVersion": "8"}, False, id="another-version"),
        pytest.param({"resourceVersion": None}, False, id="no-version"),
        pytest.param({"name": "q"}, False, id="another-name"),
        pytest.param({"namespace": "other"}, False, id="another-namespace"),
        pytest.param({"uid": "v"}, False, id="another-uid"),
        pytest.param({"uid": 7}, False, id="no-text"),
    ],
)
def test_the_watchs_pod_takes_the_place_of_a_copy_in_its_version(
    metadata: dict[str, object], *, is_rendered: bool
) -> None:
    looking = Looking()
    looking.mirror.pending.put(LIVE)
    same = {"uid": "u", "namespace": "default", "name": "p", "resourceVersion": "7"}
    copy = json.dumps({"metadata": {**same, **metadata}, "spec": {"nodeSelector": {"no": "such"}}}).encode()
    assert looking.lookup.from_watch(copy) is (LIVE if is_rendered else None)


@pytest.mark.parametrize("copy", [b"", b"{", b"[]", b'{"metadata":null}'])
def test_a_copy_that_is_no_pod_is_not_the_watchs(copy: bytes) -> None:
    looking = Looking()
    looking.mirror.pending.put(LIVE)
    assert looking.lookup.from_watch(copy) is None


def test_a_mirror_without_a_cluster_shows_no_pod_in_the_place_of_a_copy() -> None:
    mirror = ClusterMirror()
    mirror.pending.put(LIVE)
    copy = b'{"metadata":{"uid":"u","namespace":"default","name":"p","resourceVersion":"7"}}'
    assert PodLookup(mirror, None, lambda: 0.0).from_watch(copy) is None

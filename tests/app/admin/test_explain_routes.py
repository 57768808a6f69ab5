"""`POST /explain`, its nodes and manifests: a question in, the decision with its parts out, the mirror as it was."""

import asyncio
import json
import re
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Response

from app.admin import explain_routes
from app.admin.access import Access
from app.admin.explain_routes import explain_router
from app.explain.explainer import Explainer, Explanation
from app.explain.known_pods import KnownPods
from app.feeds.freshness import OF_A_DUMP
from app.feeds.release import ReleaseTracker
from app.settings.settings import Settings
from app.verbs.filter import Extender
from app.verbs.request import Request
from app.wiring.main import create_service
from core.diagnosis.explained_profile import served_alone
from core.diagnosis.summary import Summary
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent, Object
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from core.profile import Profile, parse_profile
from tests.app.asgi import ask
from tests.app.verbs.receptions import effects_over
from tests.builders import make_namespace, make_node, make_pod
from tests.builders import term as affinity_term
from tests.conformance.engine import decoded_pod, load
from tests.core.mirror.audit import audit
from tests.core.profile_parts import affinity_profile

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WEB = {"matchLabels": {"app": "web"}}
MAX = 100_000


def node(name: str, zone: str) -> dict[str, Any]:
    return make_node(name).label(ZONE, zone).label(HOST, name).obj()


def devices(of_node: str) -> dict[str, Any]:
    return {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {"nodeName": of_node}}


REPELLED = make_pod("next").label("app", "web").required_anti_affinity(affinity_term(ZONE, WEB)).obj()
ATTRACTED = make_pod("near").required_affinity(affinity_term(ZONE, WEB)).obj()


class Setting:
    """Three nodes in two zones; a pod `web` in the zone a, and one that wants no `web` on its host, in b."""

    def __init__(self, profile: Profile, most: int = MAX) -> None:
        self.mirror = load(
            [make_namespace("default").obj()],
            [node("n1", "a"), node("n2", "a"), node("n3", "b")],
            [
                make_pod("web").label("app", "web").on("n1").obj(),
                make_pod("shy").required_anti_affinity(affinity_term(HOST, WEB)).on("n3").obj(),
            ],
        )
        self.cache = EquivalenceCache(self.mirror, profile.plugins, CacheOptions(mode="spec"))
        self.extender = Extender(profile, self.mirror, self.cache)
        self.effects = effects_over(self.mirror)
        explainer = Explainer(
            served_alone(profile),
            KnownPods(self.mirror, self.effects.recent_pods),
            self.cache,
            OF_A_DUMP,
            release=ReleaseTracker(Settings(), self.mirror),
        )
        self.app = FastAPI()
        self.app.include_router(explain_router(explainer, most, Access(None)))

    def post(self, body: object, query: str = "") -> Response:
        """Ask for an answer, whatever it is, that leaves the mirror alone."""
        before = self.mirror.dump(), self.mirror.generation, len(self.cache)
        response = ask(self.app, "POST", f"/explain{query}", content=json.dumps(body).encode())
        assert (self.mirror.dump(), self.mirror.generation, len(self.cache)) == before
        assert audit(self.mirror) == []
        return response

    def explained(self, body: object, query: str = "") -> dict[str, Any]:
        """Ask for an explanation."""
        response = self.post(body, query)
        assert response.status_code == 200, response.text
        reported: dict[str, Any] = response.json()
        return reported


@pytest.fixture
def setting() -> Setting:
    return Setting(affinity_profile())


def test_a_summary_tells_reasons_domains_and_terms(setting: Setting) -> None:
    reported = setting.explained({"pod": REPELLED})["summary"]
    assert (reported["nodes"], reported["fit"]) == (3, 0)
    assert reported["message"] == (
        "0/3 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules, "
        "2 node(s) didn't match pod anti-affinity rules."
    )
    assert [(each["reason"], each["nodes"], each["examples"]) for each in reported["reasons"]] == [
        ("node(s) didn't match pod anti-affinity rules", 2, ["n1", "n2"]),
        ("node(s) didn't satisfy existing pods anti-affinity rules", 1, ["n3"]),
    ]
    zones, hosts = reported["topologies"]
    assert (zones["topology_key"], zones["domains"], zones["domains_with_fit"]) == (ZONE, 2, 0)
    assert [(each["value"], each["nodes"], each["fit"]) for each in zones["shown"]] == [("a", 2, 0), ("b", 1, 0)]
    assert (hosts["topology_key"], hosts["domains"]) == (HOST, 3)
    assert [(each["direction"], each["rule"], each["selects"], each["shown"]) for each in reported["terms"]] == [
        ("incoming", "requiredAntiAffinity", "pods with app=web in default", [{"value": "a", "pods": 1}]),
        ("existing", "requiredAntiAffinity", "pods with app=web in default", [{"value": "n3", "pods": 1}]),
    ]


def test_a_node_tells_which_pods_keep_the_pod_off(setting: Setting) -> None:
    (first, second) = setting.explained({"pod": REPELLED}, "?node=n2&node=n3")["nodes"]
    by_zone, by_host = first["decision"]["terms"]
    assert (by_zone["effect"], by_zone["domain"], by_zone["pods"]) == ("blocks", "a", 1)
    assert by_zone["named"] == [{"pod": "default/web", "uid": "default/web", "node": "n1"}]
    assert (by_host["effect"], by_host["named"]) == ("none", [])
    assert second["decision"]["terms"][1]["named"] == [{"pod": "default/shy", "uid": "default/shy", "node": "n3"}]
    assert (first["decision"]["plugin"], first["decision"]["fits"], first["decision"]["score"]) == (
        "InterPodAffinity",
        False,
        None,
    )


def test_extender_args_are_explained_as_filter_answers_them(setting: Setting) -> None:
    args = {"Pod": ATTRACTED, "NodeNames": ["n3", "n1", "n7"]}
    responded = json.loads(setting.extender.filter(Request(json.dumps(args).encode())).body)
    reported = setting.explained(args, "?node=n3&node=n1&node=n7")
    assert {each["decision"]["node"]: ", ".join(each["decision"]["reasons"]) for each in reported["nodes"]} == {
        **dict.fromkeys(responded["NodeNames"], ""),
        **responded["FailedNodes"],
        **responded["FailedAndUnresolvableNodes"],
    }
    assert reported["nodes"][2]["decision"]["plugin"] == ""  # unknown nodes are no plugin's affair


def test_a_pod_that_is_placed_is_not_in_its_own_way(setting: Setting) -> None:
    reported = setting.explained({"pod": "default/shy"}, "?node=n3")
    assert reported["summary"]["pod"] == "default/shy"
    assert reported["supposed"] == {
        "added_nodes": [],
        "added_slices": [],
        "removed": ["default/shy"],
        "assumed": [],
    }
    assert setting.explained({"pod": "default/shy"}) == setting.explained(
        {"pod": "default/shy", "remove": ["default/shy"]}
    )


def test_a_pod_that_is_placed_may_be_on_any_node() -> None:
    setting = Setting(parse_profile("NodeName,InterPodAffinity"))
    assert setting.explained({"pod": "default/web"})["summary"]["fit"] == 2
    placed = make_pod("web").label("app", "web").on("n1").obj()
    assert setting.explained({"pod": placed})["summary"]["fit"] == 2
    # As filter answers it: only its own node is the one that it names.
    assert setting.explained({"Pod": placed, "NodeNames": ["n1", "n2", "n3"]})["summary"]["fit"] == 1


def test_a_pod_of_a_node_that_is_not_known_is_in_nobodys_way(setting: Setting) -> None:
    lost = make_pod("lost").on("n8").obj()
    setting.mirror.apply(ClusterEvent("Add", decoded_pod(lost)))
    reported = setting.explained({"pod": "default/lost"})
    assert (reported["summary"]["fit"], reported["supposed"]["removed"]) == (3, [])


def test_a_pod_that_was_asked_about_is_known_by_its_name(setting: Setting) -> None:
    setting.extender.filter(Request(json.dumps({"Pod": REPELLED, "NodeNames": ["n1"]}).encode()), setting.effects)
    assert setting.explained({"pod": "default/next"})["summary"] == setting.explained({"pod": REPELLED})["summary"]


def test_what_is_supposed_changes_the_answer(setting: Setting) -> None:
    def fit(**forked: object) -> int:
        reported: int = setting.explained({"pod": REPELLED, **forked})["summary"]["fit"]
        return reported

    assert fit(remove=["default/web"]) == 2
    assert fit(remove=["default/web", "default/shy"]) == 3
    assert fit(add_nodes=[node("n9", "c")]) == 1
    web = make_pod("web-2").label("app", "web").obj()
    assert fit(add_nodes=[node("n9", "c")], assume=[{"pod": web, "node": "n9"}]) == 0
    assert fit(remove=["default/web", "default/shy"], assume=[{"pod": web, "node": "n3"}]) == 2
    assert fit(remove=["default/web", "default/shy"], assume=[{"pod": "default/web", "node": "n3"}]) == 2


def test_a_pod_that_is_supposed_on_a_node_takes_a_volume_that_waits_for_it() -> None:
    setting = Setting(parse_profile("VolumeBinding"))
    waits, nobody = "WaitForFirstConsumer", "kubernetes.io/no-provisioner"
    objects: tuple[Object, ...] = (
        StorageClass(name="static", provisioner=nobody, volume_binding_mode=waits),
        PersistentVolume(name="v", storage_class="static", capacity=1, phase="Available"),
        *(PersistentVolumeClaim(namespace="default", name=n, storage_class="static", requested=1) for n in "ab"),
    )
    for each in objects:
        setting.mirror.apply(ClusterEvent("Add", each))
    a, b = (make_pod(n).volume({"name": "v", "persistentVolumeClaim": {"claimName": n}}).obj() for n in "ab")
    assert setting.explained({"pod": a})["summary"]["fit"] == 3
    assert setting.explained({"pod": a, "assume": [{"pod": b, "node": "n1"}]})["summary"]["fit"] == 0


@pytest.mark.parametrize(
    ("forked", "query", "status", "field", "message"),
    [
        (
            {"pod": "default/nobody"},
            "",
            404,
            "pod",
            "pod default/nobody: neither in the mirror nor in a recent request",
        ),
        ({"assume": [{"pod": "x/y", "node": "n1"}]}, "", 404, "assume[0].pod", "neither in the mirror"),
        ({}, "?node=n7", 404, "node", "node n7: not among the nodes of the request"),
        ({"remove": ["default/web", "default/web"]}, "", 409, "remove[1]", "cannot be removed"),
        ({"assume": [{"pod": "default/web", "node": "n2"}]}, "", 409, "assume[0]", "cannot be placed on n2"),
        ({"add_nodes": [node("n1", "a")]}, "", 409, "add_nodes[0]", "node n1 cannot be added: there is one"),
        ({"add_nodes": [devices("n7")]}, "", 404, "add_nodes[0].spec.nodeName", "node n7: neither known nor added"),
        ({"add_nodes": [devices("n1")] * 2}, "", 409, "add_nodes[1]", "ResourceSlice s cannot be added: there is one"),
        ({"pod": {"metadata": {}}}, "", 400, "pod.metadata.name", "required"),
        ({"pod": {"metadata": {"name": "x" * MAX}}}, "", 413, "body", "body: larger than 100000 bytes"),
    ],
)
def test_what_is_wrong_is_told_with_its_field(  # noqa: PLR0913, PLR0917  # columns
    setting: Setting, forked: dict[str, object], query: str, status: int, field: str, message: str
) -> None:
    response = setting.post({"pod": REPELLED, **forked}, query)
    assert (response.status_code, response.json()["field"]) == (status, field)
    assert message in response.json()["detail"]


@pytest.mark.parametrize(
    "query", ["?limit=-1", "?limit=201", "?score=none", "?node=", "?nodes=n1", "?" + "node=n1&" * 21]
)
def test_what_is_no_query_is_refused(setting: Setting, query: str) -> None:
    assert setting.post({"pod": REPELLED}, query).status_code == 422


def test_a_service_decodes_no_more_than_a_mebibyte_of_manifests_and_more_of_nodes() -> None:
    setting = Setting(affinity_profile(), 2**22)
    long = {"metadata": {"name": "long", "annotations": {"of": "x" * 600_000}}}
    placed = {"pod": {**long, "kind": "Pod"}, "node": "n1"}
    wide = {"metadata": {"name": "n1", "annotations": {"of": "x" * 2**20}}}
    requests: list[tuple[int, dict[str, object]]] = [
        (413, {"kind": "Pod", "metadata": {"name": "p", "annotations": {"of": "x" * 2**20}}}),
        (413, {"pod": long, "assume": [placed]}),
        (200, {"pod": long}),
        (200, {"pod": REPELLED, "add_nodes": [wide | {"metadata": wide["metadata"] | {"name": "n9"}}]}),
        (
            200,
            {"Pod": REPELLED, "Nodes": {"items": [{"metadata": {"name": "n1", "annotations": {"of": "x" * 2**20}}}]}},
        ),
    ]
    for status, body in requests:
        response = setting.post(body)
        assert (response.status_code, response.json().get("field")) == (status, "body" if status == 413 else None)
        assert status == 200 or "manifests of pods larger than 1048576 bytes" in response.json()["detail"]


def test_the_class_and_its_cells_are_told_and_not_touched(setting: Setting) -> None:
    args = {"Pod": REPELLED, "NodeNames": ["n1", "n2"]}
    fresh = setting.explained(args, "?node=n1")
    assert (fresh["equivalence"]["kept"], fresh["nodes"][0]["cells"]) == (False, None)
    setting.extender.filter(Request(json.dumps(args).encode()), setting.effects)
    reported = setting.explained(args, "?node=n1")
    use = {"kept": True, "first_pod": "default/next", "questions": 1, "misses": 2}
    assert reported["equivalence"] == {**fresh["equivalence"], **use}
    (cell,) = reported["nodes"][0]["cells"]["predicates"]
    assert (cell["plugin"], cell["fit"], cell["invalid"]) == ("InterPodAffinity", False, False)
    assert setting.explained({"pod": REPELLED, "remove": ["default/web"]}, "?node=n1")["nodes"][0]["cells"] is None


def test_a_pod_that_takes_too_much_work_is_a_problem_of_its_field() -> None:
    setting = Setting(affinity_profile())
    setting.mirror.work.limit = 1
    response = setting.post({"pod": REPELLED})
    assert (response.status_code, response.json()["field"]) == (413, "Pod.spec.affinity")
    assert "too much work" in response.json()["detail"]
    setting.mirror.work.limit = None
    assert setting.post({"pod": REPELLED}).status_code == 200


@pytest.fixture(scope="module")
def admin() -> FastAPI:
    service = create_service(
        Settings(admin="127.0.0.1:0"), load([], [make_node("n1").allocatable(pods=9).obj()], []), None
    )
    assert service.admin is not None
    return service.admin


def test_the_admin_port_has_the_page_and_what_it_asks(admin: FastAPI) -> None:
    assert ask(admin, "GET", "/").status_code == 200
    body = json.dumps({"pod": make_pod("p").obj()}).encode()
    drawn: dict[str, Any] = ask(admin, "POST", "/explain/nodes", body).json()
    of_taints, of_all = 3, 12  # the weights of the full profile; its other plugins have nothing to score here
    assert (drawn["names"], drawn["verdict"], drawn["score"]) == (["n1"], [0], [100 * of_taints // of_all])


@pytest.mark.parametrize(
    ("body", "query", "status", "field"),
    [
        (b"{", "", 400, ""),
        (b'{"pod": "a/b"}', "", 404, "pod"),
        (b'{"pod": {"metadata": {"name": "p"}}, "add_nodes": [{"metadata": {"name": "n1"}}]}', "", 409, "add_nodes[0]"),
        (b'{"pod": {"metadata": {"name": "p"}}}', "?rack=a%20b", 400, "rack"),
        (b'{"pod": {"metadata": {"name": "p"}}}', "?rack=example.com/rak", 404, "rack"),
        (b'{"pod": {"metadata": {"name": "p"}}}', "?score=best", 422, None),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_as_explain_tells_it(
    admin: FastAPI, body: bytes, query: str, status: int, field: str | None
) -> None:
    response = ask(admin, "POST", f"/explain/nodes{query}", body)
    assert (response.status_code, response.json().get("field")) == (status, field)
    if status != 422 and field != "rack":
        assert response.json() == ask(admin, "POST", "/explain", body).json()


def test_what_a_manifest_lacked_is_told_of_a_list_with_one_workload(admin: FastAPI) -> None:
    spec = {"runtimeClassName": "kata", "containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}
    job = {"kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": spec}}}
    body = {"pod": {"kind": "List", "items": [{"kind": "Service"}, job]}}
    reported: dict[str, Any] = ask(admin, "POST", "/explain", json.dumps(body).encode()).json()["manifest"]
    assert reported["completed"] == ["labels of Job j", "requests cpu=1 from limits"]
    assert [each.partition(":")[0] for each in reported["unknown"]] == ["runtimeClassName kata"]
    by_name = {"pod": make_pod("p").uid("u").obj()}
    assert ask(admin, "POST", "/explain", json.dumps(by_name).encode()).json()["manifest"] is None


def test_yaml_is_read_for_the_page(admin: FastAPI) -> None:
    marked = ask(admin, "POST", "/explain/manifest", b'\xef\xbb\xbf{"kind":"Pod"}')
    assert marked.json() == {"kind": "Pod"}
    reported = ask(admin, "POST", "/explain/manifest", b"kind: Pod\nmetadata: {name: p}\n")
    assert (reported.status_code, reported.json()) == (200, {"kind": "Pod", "metadata": {"name": "p"}})


def test_one_text_of_yaml_is_read_at_a_time(admin: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    both, met = Barrier(2), []

    def documents(text: bytes) -> list[bytes]:
        with suppress(BrokenBarrierError):
            both.wait(0.5)
            met.append(text)
        return [text]

    monkeypatch.setattr(explain_routes, "documents", documents)

    async def two() -> list[int]:
        async with AsyncClient(transport=ASGITransport(admin), base_url="http://localhost") as client:
            sent = (client.post("/explain/manifest", content=b'{"kind":"Pod"}') for _ in range(2))
            return [each.status_code for each in await asyncio.gather(*sent)]

    assert asyncio.run(two()) == [200, 200]
    assert not met


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        (b"", 400, "found nothing"),
        (b"- a\n", 400, "expected object, got array"),
        (b"a: 1\n---\nb: 2\n", 400, "expected a pod or an object with a pod template"),
        (b' {"a": ', 400, "malformed JSON"),
        (b"a: [", 400, "neither JSON nor YAML"),
        (b"a: " + b"x" * 300_000, 413, "larger than 262144 bytes"),
    ],
)
def test_what_is_no_manifest_is_refused(admin: FastAPI, text: bytes, status: int, message: str) -> None:
    response = ask(admin, "POST", "/explain/manifest", text)
    assert (response.status_code, response.json()["field"]) == (status, "pod")
    assert message in response.json()["detail"]


def test_a_rack_can_be_any_label() -> None:
    nodes = [make_node("n1").label("row", "7").label("example.com/rack", "r").obj()]
    service = create_service(Settings(admin="127.0.0.1:0"), load([], nodes, []), None)
    assert service.admin is not None
    body = json.dumps({"pod": make_pod("p").obj()}).encode()
    racks = [ask(service.admin, "POST", f"/explain/nodes{query}", body).json()["racks"] for query in ("", "?rack=row")]
    assert racks == [["", "r"], ["", "7"]]


def test_a_rack_can_be_the_label_of_a_node_that_is_supposed_or_that_the_mirror_does_not_have(admin: FastAPI) -> None:
    pod, row = make_pod("p").obj(), make_node("n2").label("row", "8").obj()
    requested = {"pod": pod, "add_nodes": [row]}, {"Pod": pod, "Nodes": {"items": [row]}}
    drawn = [ask(admin, "POST", "/explain/nodes?rack=row", json.dumps(body).encode()).json() for body in requested]
    assert [each["racks"][each["rack"][-1]] for each in drawn] == ["8", "8"]
    gone = ask(admin, "POST", "/explain/nodes?rack=row", json.dumps({"pod": pod}).encode())
    assert (gone.status_code, gone.json()["detail"]) == (404, "rack: no node has the label row")


@pytest.mark.parametrize("struct", [Explanation, Summary])
def test_every_member_of_the_response_is_in_the_docs(struct: type[Explanation | Summary]) -> None:
    page = Path("docs/explain.md").read_text("utf-8")
    table = page.partition("\n### The response\n")[2].partition("\n### ")[0]
    reported = set(re.findall(r"`(?:summary\.)?(\w+)(?:\[\]\.\w+)?`", table))
    assert {*struct.__struct_fields__} - reported - {"summary"} == set()

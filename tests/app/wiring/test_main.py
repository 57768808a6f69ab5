"""The wiring: every setting reaches what it is for, and nothing more is served than the verbs and the probes."""

import json
from pathlib import Path

import pytest
import yaml

from app.settings.limits import Limits
from app.settings.settings import Settings, SettingsError
from app.verbs.request import Request
from app.wiring.engine import create_extender, create_profile, followed_kinds, for_simulations, simulated_schedulers
from app.wiring.main import create_service
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import Service
from core.simulation.orders import FIRST, ties
from core.simulation.placing import Fate, Placing, finished
from tests.app.asgi import ask
from tests.app.explain.configured import configured
from tests.app.questions import NEAR_WEB, ZONE, by_name, mirror_of, scores, shop
from tests.builders import labelled, make_node, make_pod, term
from tests.core.decoded import pod_of

ANYWHERE = by_name(make_pod("p"), "a1", "b1", "c1")
LIKES_WEB = make_pod("p").preferred_affinity(10, NEAR_WEB)

# An existing pod that must be near app=x, and one that would like to be: both draw x, the first by the hard weight.
SUITORS = (
    make_node("n1").label(ZONE, "a"),
    make_node("n2").label(ZONE, "b"),
    make_node("n3").label(ZONE, "c"),
    make_pod("must").on("n1").required_affinity(term(ZONE, labelled(app="x"))),
    make_pod("may").on("n2").preferred_affinity(50, term(ZONE, labelled(app="x"))),
)
X = by_name(make_pod("p").label("app", "x"), "n1", "n2", "n3")


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        pytest.param(0, {"n1": 0, "n2": 100, "n3": 0}, id="none"),
        pytest.param(1, {"n1": 2, "n2": 100, "n3": 0}, id="default"),
        pytest.param(100, {"n1": 100, "n2": 50, "n3": 0}, id="most"),
    ],
)
def test_hard_pod_affinity_weight_is_what_a_required_term_of_an_existing_pod_adds(
    weight: int, expected: dict[str, int]
) -> None:
    extender = create_extender(
        Settings(plugin_args=json.dumps({"InterPodAffinity": {"hardPodAffinityWeight": weight}})), mirror_of(*SUITORS)
    )
    assert expected == scores(extender.prioritize(Request(X)).body)


def test_preferred_terms_of_existing_pods_can_be_ignored_for_pods_without_preferences() -> None:
    extender = create_extender(
        Settings(plugin_args='{"InterPodAffinity": {"ignorePreferredTermsOfExistingPods": true}}'), mirror_of(*SUITORS)
    )
    assert scores(extender.prioritize(Request(X)).body) == {"n1": 0, "n2": 0, "n3": 0}


def test_max_score_and_max_body_bytes_reach_the_service() -> None:
    app = create_service(Settings(max_score=10), shop(), None, limits=Limits(max_body_bytes=2048)).app
    question = by_name(LIKES_WEB, "a1", "b1", "c1")
    assert scores(ask(app, "POST", "/prioritize", question).content) == {"a1": 10, "b1": 3, "c1": 0}
    error = ask(app, "POST", "/filter", question.ljust(2049)).json()["Error"]
    assert error == "body: larger than 2048 bytes"


def test_a_pod_that_takes_more_work_than_allowed_is_refused_by_the_service() -> None:
    app = create_service(Settings(), shop(), None, limits=Limits(max_work=1)).app
    away_from_web = make_pod("p").required_anti_affinity(NEAR_WEB)
    error = ask(app, "POST", "/filter", by_name(away_from_web, "a1")).json()["Error"]
    assert error.startswith("Pod.spec.affinity: too much work: ")
    assert error.endswith(" of 1 units")


def test_the_limit_of_work_of_a_service_is_that_of_docs_security() -> None:
    mirror = shop()
    create_service(Settings(), mirror, None)
    assert mirror.work.limit == 100_000_000


def test_two_apps_do_not_share_anything() -> None:
    full, empty = create_service(Settings(), shop(), None).app, create_service(Settings(), mirror_of(), None).app
    question = by_name(LIKES_WEB, "a1")
    assert ask(full, "POST", "/filter", question).json()["NodeNames"] == ["a1"]
    assert ask(empty, "POST", "/filter", question).json()["NodeNames"] == []


def test_the_partition_of_the_settings_holds_from_the_start() -> None:
    rule = {"selector": {"matchLabels": {ZONE: "a"}}, "in": [], "out": []}
    service = create_service(Settings(partition=json.dumps(rule)), shop(), None)
    assert ask(service.app, "POST", "/filter", ANYWHERE).json()["NodeNames"] == ["a1"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ('{"in":["a1"],"out":["a1"]}', "out[0]: a1 is in[0], too"),
        ('{"inside":["a1"]}', "object contains unknown field inside"),
        ("pool=batch", "malformed JSON"),
    ],
    ids=["contradiction", "unknown-field", "no-json"],
)
def test_a_partition_that_is_no_rule_is_refused_by_the_name_of_its_setting(rule: str, message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        create_service(Settings(partition=rule), shop(), None)
    assert str(raised.value).startswith(f"KINDRED_PARTITION={rule!r}: ")
    assert message in str(raised.value)


def test_a_scheduler_configuration_that_cannot_be_read_ends_the_start(tmp_path: Path) -> None:
    settings = Settings(admin="127.0.0.1:0", scheduler_config=tmp_path / "absent.yaml")
    with pytest.raises(SettingsError, match=r"^KINDRED_SCHEDULER_CONFIG: .*absent\.yaml: No such file or directory$"):
        create_service(settings, ClusterMirror(), None)


def test_simulations_preempt_for_the_pods_of_the_profiles_that_do(tmp_path: Path) -> None:
    off = {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": "patient", "plugins": off}]
    file = tmp_path / "scheduler.yaml"
    file.write_text(yaml.safe_dump(configured({}, profiles=profiles)))
    found = simulated_schedulers(for_simulations(Settings(scheduler_config=file)), ClusterMirror())
    assert {name: each.preempts for name, each in found.items()} == {"default-scheduler": True, "patient": False}


@pytest.mark.parametrize(
    ("namespace", "requests", "managed", "judged"),
    [
        ("shop", {}, [], True),
        ("kube-system", {}, [], False),
        ("shop", {}, [{"name": "example.com/gpu"}], False),
        ("shop", {"example.com/gpu": 1}, [{"name": "example.com/gpu"}], True),
    ],
)
def test_simulations_judge_pods_that_kindred_does_not_see_by_kube_scheduler_alone(
    tmp_path: Path, namespace: str, requests: dict[str, int], managed: list[dict[str, str]], *, judged: bool
) -> None:
    """In a full offload kube-scheduler has no plugin that keeps a pod off a node with a taint."""
    off = {"filter": {"disabled": [{"name": "*"}]}, "score": {"disabled": [{"name": "*"}]}}
    kindred = {"urlPrefix": "http://kindred:8888", "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1}
    file = tmp_path / "scheduler.yaml"
    file.write_text(yaml.safe_dump(configured({"plugins": off}, extenders=[{**kindred, "managedResources": managed}])))
    mirror = mirror_of(make_node("n1").taint("a", "b", "NoSchedule").allocatable(pods=9, **{"example.com/gpu": 1}))
    settings = Settings(scheduler_config=file, bypass_namespaces=("kube-system",))
    schedulers = simulated_schedulers(for_simulations(settings), mirror)
    pod = pod_of(make_pod("p").in_namespace(namespace).requests(**requests))
    with mirror.fork(cache_follows=True) as fork:
        (found,) = finished(Placing(mirror, fork, schedulers, ties(mirror, FIRST)).place([pod]))
    assert found.fate is (Fate.UNSCHEDULABLE if judged else Fate.PLACED)


def test_the_kinds_that_a_scheduler_configuration_may_need_are_followed_without_reading_it(tmp_path: Path) -> None:
    args = '{"PodTopologySpread": {"defaultingType": "List"}}'
    for file, expected in ((None, False), (tmp_path / "absent.yaml", True)):
        settings = Settings(admin="127.0.0.1:0", plugin_args=args, scheduler_config=file)
        assert (Service in followed_kinds(settings, create_profile(settings))) is expected


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/"])
def test_no_page_for_browsers_is_served(path: str) -> None:
    assert ask(create_service(Settings(), shop(), None).app, "GET", path).status_code == 404

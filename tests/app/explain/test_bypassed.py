"""Pods that Kindred passes untouched are not explained by what it says of others."""

import pytest

from app.explain.explainer import Explainer
from app.explain.known_pods import KnownPods
from app.feeds.freshness import OF_A_DUMP
from app.feeds.release import ReleaseTracker
from app.settings.settings import Settings
from app.verbs.filter import create_bypass
from app.verbs.request import RecentPods
from app.wiring.engine import create_profile, explained_profile, untouched_profile
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.explained_profile import Judge, served_alone
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import Service
from core.objects.labels import parse_selector
from core.objects.pod import Pod
from tests.app.commands.doctor.registrations import DECIDE, DECIDING, FULL_OFFLOAD
from tests.app.explain.configured import scheduler_profiles
from tests.builders import make_node, make_pod, term
from tests.core.decoded import mirror_of, pod_of
from tests.core.profile_parts import affinity_profile

HOST = "kubernetes.io/hostname"
ONE_HOST = '{"ServiceAffinity": {"affinityLabels": ["kubernetes.io/hostname"]}}'
PASSING = Settings(bypass_namespaces=("kube-system",))


def cluster() -> ClusterMirror:
    node = make_node("n1").label(HOST, "n1").allocatable(pods=9)
    return mirror_of(node, make_pod("web").label("app", "web").on("n1"))


def shy(namespace: str) -> Pod:
    """Return a pod that the only node repels by inter-pod affinity."""
    apart = term(HOST, {"matchLabels": {"app": "web"}}, namespaces=["default"])
    return pod_of(make_pod("shy").in_namespace(namespace).required_anti_affinity(apart))


@pytest.mark.parametrize(("namespace", "fits"), [("default", 0), ("kube-system", 1)])
def test_a_rule_of_kindred_alone_keeps_no_such_pod_off(namespace: str, fits: int) -> None:
    mirror, pod = cluster(), shy(namespace)
    found = Diagnosis(scheduler_profiles(FULL_OFFLOAD, settings=PASSING).of(pod), mirror, pod, mirror.batch(["n1"]))
    assert found.scheduler is not None
    assert (len(found.fitting), found.scheduler.filters_off) == (fits, ["InterPodAffinity"] * fits)
    assert int(found.response.codes[0] == 0) == fits


@pytest.mark.parametrize(("namespace", "rejects"), [("default", True), ("kube-system", False)])
def test_without_a_configuration_it_is_no_judgement_of_kindred(namespace: str, *, rejects: bool) -> None:
    mirror = cluster()
    explainer = Explainer(
        served_alone(affinity_profile()),
        KnownPods(mirror, RecentPods()),
        None,
        OF_A_DUMP,
        release=ReleaseTracker(PASSING, mirror),
        bypass=create_bypass(PASSING),
    )
    found = explainer.look_at(shy(namespace), lambda it: (it.judge_of("InterPodAffinity"), bool(it.response.codes[0])))
    assert found == (Judge.KINDRED if rejects else Judge.SCHEDULER, rejects)


@pytest.mark.parametrize("settings", [Settings(), PASSING])
def test_a_rule_that_kube_scheduler_does_not_have_is_none_for_such_a_pod(settings: Settings) -> None:
    pod = make_pod("next").in_namespace("kube-system").label("app", "web")
    running = make_pod("web").in_namespace("kube-system").label("app", "web").on("n1")
    mirror = mirror_of(*(make_node(name).label(HOST, name).allocatable(pods=9) for name in ("n1", "n2")), running)
    selector = parse_selector({"app": "web"}, ())
    mirror.apply(ClusterEvent("Add", Service(namespace="kube-system", name="web", selector=selector)))
    served = settings.model_copy(update={"profile": "full,ServiceAffinity", "plugin_args": ONE_HOST})
    explained = explained_profile(served, create_profile(served))
    explainer = Explainer(
        explained,
        KnownPods(mirror, RecentPods()),
        None,
        OF_A_DUMP,
        release=ReleaseTracker(served, mirror),
        bypass=create_bypass(served),
        untouched=untouched_profile(served),
    )
    fitting, rejected = explainer.look_at(pod_of(pod), lambda it: (len(it.fitting), int(it.response.codes.sum() > 0)))
    assert (fitting, rejected) == ((2, 0) if settings is PASSING else (1, 1))


def test_no_program_decides_or_evicts_for_a_pod_that_passes() -> None:
    pod = pod_of(make_pod("next").scheduler("kindred"))
    for passing, filters in ((), "InterPodAffinity"), (("kindred",), ""):
        settings = Settings.model_validate({**DECIDING, "decide_schedulers": (), "bypass_schedulers": passing})
        rules = scheduler_profiles(DECIDE, settings=settings).of(pod)
        assert rules.configured is not None
        assert ",".join(rules.configured.extender_filters) == filters
        assert rules.preempts is bool(filters)

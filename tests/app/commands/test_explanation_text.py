"""An explanation as text: what stands in it, in which order, and that it is never wider than 80 columns."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click import unstyle

from app.commands.explanation_text import _whole, explanation_text, profile_text, sample_text
from app.commands.output import MOST_LINES, WIDTH, Part, laid_out, shortened
from app.explain.explain_request import decode_explain_request
from app.explain.explainer import Detail, Explainer
from app.explain.known_pods import KnownPods
from app.feeds.dump_text import read_dump
from app.feeds.freshness import OF_A_DUMP, Freshness, ResourceState
from app.feeds.release import ReleaseTracker
from app.feeds.snapshot_file import load_items
from app.objects.decode_pod import decode_pod
from app.objects.resources import RESOURCES
from app.settings.settings import Settings
from app.verbs.filter import Extender
from app.verbs.request import Request
from core.diagnosis.explained_profile import SchedulerRules, SchedulerState, served_alone
from core.diagnosis.not_judged import NotJudged
from core.diagnosis.wakes import AwaitedVictim
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent
from core.gangs.unit import PackingStatus, SchedulingStatus, UnitStatus
from core.mirror.cluster import ClusterMirror
from core.objects.groups import GroupCondition, PackingWay, SchedulingGroup
from core.objects.node import Node
from core.objects.pod import Pod
from core.profile import Profile, full_profile, parse_profile
from tests.app.verbs.receptions import effects_over
from tests.builders import PodBuilder, make_namespace, make_node, make_pod, term
from tests.conformance.engine import load
from tests.conformance.golden_files import read
from tests.core.profile_parts import affinity_profile

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WEB = {"matchLabels": {"app": "web"}}
CASES = Path(__file__).parents[2] / "conformance" / "data" / "cases.jsonl.gz"
DEMO = Path(str(resources.files("app") / "demo"))
LONG = "a-name-that-goes-on-" * 13  # 260 characters, and no longer fits in two lines
NEXT = make_pod("next").label("app", "web").required_anti_affinity(term(ZONE, WEB))


class Reported(Explainer):
    """An explainer of pods that wait for what a test says."""

    def __init__(self, setting: "Setting", *parts: Any, **more: Any) -> None:  # noqa: ANN401  # of an Explainer
        super().__init__(*parts, **more)
        self._setting = setting

    def unit_of(self, pod: Pod) -> UnitStatus | None:
        return super().unit_of(pod) or self._setting.unit

    def victims_of(self, _: Pod) -> Sequence[AwaitedVictim]:
        return self._setting.victims


class Setting:
    """A mirror with all that explains it."""

    def __init__(self, mirror: ClusterMirror, profile: Profile, freshness: Freshness = OF_A_DUMP) -> None:
        self.unit: UnitStatus | None = None
        self.victims: list[AwaitedVictim] = []
        self.mirror = mirror
        cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec"))
        self.extender = Extender(profile, mirror, cache)
        self.effects = effects_over(mirror)
        known, release = KnownPods(mirror, self.effects.recent_pods), ReleaseTracker(Settings(), mirror)
        self._explainer = Reported(self, served_alone(profile), known, cache, freshness, release=release)

    def text(self, question: dict[str, Any], detail: Detail, *, wide: bool = True) -> str:
        body = json.dumps(question).encode()
        requested = decode_explain_request(body, self._explainer.mirror)
        return laid_out(explanation_text(asyncio.run(self._explainer.explain(requested, detail)), wide=wide))

    def lines(self, question: dict[str, Any], *nodes: str) -> list[str]:
        return unstyle(self.text(question, Detail(nodes))).splitlines()


@pytest.fixture
def small() -> ClusterMirror:
    return load(
        [make_namespace("default").obj()],
        [make_node(name).label(ZONE, name[0]).label(HOST, name).obj() for name in ("a1", "a2", "b1")],
        [
            make_pod("web").label("app", "web").on("a1").obj(),
            make_pod("shy").required_anti_affinity(term(HOST, WEB)).on("b1").obj(),
        ],
    )


def of_demo(profile: Profile) -> Setting:
    mirror = ClusterMirror()
    load_items(read_dump((DEMO / "cluster.json").read_bytes()).items, mirror, skip_invalid=False)
    return Setting(mirror, profile)


def test_all_of_a_pod_that_fits_nowhere_is_told(small: ClusterMirror) -> None:
    assert Setting(small, affinity_profile()).lines({"pod": NEXT.obj()}, "a2") == [
        "Pod default/next fits on none of 3 nodes.",
        "",
        "Why not, by nodes",
        "  2  node(s) didn't match pod anti-affinity rules",
        "     (InterPodAffinity, Unschedulable) a1, a2",
        "  1  node(s) didn't satisfy existing pods anti-affinity rules",
        "     (InterPodAffinity, Unschedulable) b1",
        "",
        "What was measured",
        "  two rules exclude each other: its pod anti-affinity by",
        "    topology.kubernetes.io/zone (only zone b) and the anti-affinity of other",
        "    pods by kubernetes.io/hostname (only zone a)",
        "",
        "Changes that would help, each by itself",
        "  - set topologyKey of the required pod anti-affinity from",
        "    topology.kubernetes.io/zone to kubernetes.io/hostname (then it fits on a2)",
        "  - turn the required pod anti-affinity by topology.kubernetes.io/zone into a",
        "    preferred one (then it fits on a1)",
        "  - remove pod default/web, which no owner makes again, from a1 (then it fits on",
        "    a1)",
        "  - remove pod default/shy, which no owner makes again, from b1 (then it fits on",
        "    b1)",
        "  - add a node like b1 in zone b",
        "",
        "kube-scheduler tries it again after",
        "  Pod: UpdatePodLabel, Delete",
        "  Node: Add, UpdateNodeLabel",
        "",
        "By topology.kubernetes.io/zone: 2 domains, 0 with a node that fits",
        "  DOMAIN  NODES  FIT  BEST SCORE",
        "  a           2    0           -",
        "  b           1    0           -",
        "By kubernetes.io/hostname: 3 domains, one for each node, 0 with a node that fits",
        "",
        "Inter-pod affinity terms",
        "  its own rule: required anti-affinity by topology.kubernetes.io/zone",
        "    selects pods with app=web in default",
        "    1 placed pod, in 1 domain: a (1)",
        "  rule of placed pods: required anti-affinity by kubernetes.io/hostname",
        "    selects pods with app=web in default",
        "    1 placed pod has it, in 1 domain: b1 (1)",
        "",
        "Node a2: it does not fit: node(s) didn't match pod anti-affinity rules",
        "  (InterPodAffinity, Unschedulable)",
        "  Predicates, each by itself",
        "    InterPodAffinity: node(s) didn't match pod anti-affinity rules",
        "      (Unschedulable)",
        "  Inter-pod affinity terms",
        "    keeps it off: its own rule: required anti-affinity by",
        "      topology.kubernetes.io/zone=a",
        "      selects pods with app=web in default",
        "      1 placed pod: default/web on a1",
        "    1 term without effect here",
        "  Not scored",
        "",
        "Class     " + class_of(small, NEXT) + ", not cached",
        f"Mirror    fresh, at generation {small.generation}: 3 nodes, 2 pods",
        "Release   Kubernetes 1.34, the default: no source reports the release",
    ]


def test_nominated_pods_are_told_with_what_they_do(small: ClusterMirror) -> None:
    waits = make_pod("waits").priority(7).required_anti_affinity(term(HOST, WEB))
    mirror = small
    for pod in (waits.nominated("a2"), make_pod("plain").nominated("b1")):
        mirror.apply(ClusterEvent("Add", decode_pod(pod.json())))
    lines = Setting(mirror, affinity_profile()).lines({"pod": make_pod("next").label("app", "web").obj()}, "a2", "b1")
    assert lines[lines.index("Refused together with nominated pods: 2 nodes") :][:3] == [
        "Refused together with nominated pods: 2 nodes",
        "  a2: default/waits",
        "  b1: default/plain",
    ]
    reported = lines.index("  Nominated for it, and counted: default/waits (priority 7); with them it does")
    assert lines[reported + 1 :][:3] == [
        "    not fit",
        "  Predicates, each by itself, without nominated pods",
        "    passed: InterPodAffinity",
    ]


def class_of(mirror: ClusterMirror, pod: PodBuilder) -> str:
    cache = EquivalenceCache(mirror, affinity_profile().plugins, CacheOptions(mode="spec"))
    decoded = decode_explain_request(json.dumps({"pod": pod.obj()}).encode(), mirror).pod
    assert not isinstance(decoded, str)
    return cache.class_of(decoded)[0]


def test_scores_come_with_their_parts_and_the_best_nodes(small: ClusterMirror) -> None:
    likes = make_pod("likes").preferred_affinity(10, term(ZONE, WEB))
    lines = Setting(small, affinity_profile()).lines({"pod": likes.obj()}, "a1")
    assert lines[0] == "Pod default/likes fits on 3 of 3 nodes."
    begin = lines.index("Scores by plugin, of all nodes that are scored")
    assert lines[begin : begin + 7] == [
        "Scores by plugin, of all nodes that are scored",
        "  PLUGIN            WEIGHT      RAW  NORMALIZED",
        "  InterPodAffinity       2  0 to 10    0 to 100",
        "",
        "Best scores",
        "  100  a1",
        "  100  a2",
    ]
    assert "    each adds +10 to the raw score of the nodes of its domain" in lines
    begin = lines.index("Node a1: it fits")
    reported = lines.index("    scores +10: its own rule: preferred affinity by", begin)
    assert lines[reported + 1] == "      topology.kubernetes.io/zone=a"
    assert lines[lines.index("  Score 100") + 2] == "    InterPodAffinity       2   10         100"


def test_the_first_pod_of_its_kind_is_told_so(small: ClusterMirror) -> None:
    first = make_pod("db").label("app", "db").required_affinity(term(ZONE, {"matchLabels": {"app": "db"}}))
    lines = Setting(small, affinity_profile()).lines({"pod": first.obj()}, "a1")
    assert "the first one of its kind may be in any domain" in " ".join(" ".join(lines).split())
    assert any(line.startswith("    satisfied, as it would be the first pod of its kind: ") for line in lines)


def test_a_member_of_a_gang_is_told_with_the_state_of_its_gang(small: ClusterMirror) -> None:
    setting = Setting(small, affinity_profile())
    assert not any("group" in line for line in setting.lines({"pod": NEXT.obj()}))
    waits = "waits for 5 more members of 8"
    setting.unit = UnitStatus(
        unit="shop/train", status=SchedulingStatus.PENDING, reason=waits, minimum=8, members=3, pending=3
    )
    lines = setting.lines({"pod": NEXT.obj()})
    at = lines.index("Placed together with its group")
    assert lines[at + 1 : at + 5] == [
        "  shop/train is pending: waits for 5 more members of 8",
        "  3 members, 8 are needed: 0 bound, 0 decided, 0 with a reserved place, 3",
        "    pending",
        "  packing: spread; on 0 nodes so far",
    ]
    packing = PackingStatus(way=PackingWay.NEAR, topology_key="rack", nodes=3, domains=1)
    setting.unit = UnitStatus(unit="shop/train", status=SchedulingStatus.SCHEDULED, members=1, packing=packing)
    lines = setting.lines({"pod": NEXT.obj()})
    assert "  shop/train is scheduled" in lines
    assert "  packing: near rack (1 domain); on 3 nodes so far" in lines
    wrong = PackingStatus(problem="metadata.annotations[a]: is wrong")
    setting.unit = UnitStatus(unit="shop/train", status=SchedulingStatus.SCHEDULED, members=1, packing=wrong)
    assert "  placed as spread: metadata.annotations[a]: is wrong" in setting.lines({"pod": NEXT.obj()})


def test_a_member_of_a_group_of_kube_scheduler_is_told_with_its_conditions(small: ClusterMirror) -> None:
    condition = GroupCondition("PodGroupInitiallyScheduled", "False", "Unschedulable", "0/3 nodes", "2026-01-01")
    group = SchedulingGroup(namespace="default", name="team", minimum=2, conditions=(condition,))
    small.apply(ClusterEvent("Add", group))
    pod = NEXT.in_scheduling_group("team")
    small.apply(ClusterEvent("Add", decode_pod(pod.on("a1").terminating().json())))
    lines = Setting(small, affinity_profile()).lines({"pod": pod.obj()})
    at = lines.index("Placed together with its group, by kube-scheduler")
    assert lines[at + 1 : at + 7] == [
        "  default/team is pending: waits for 1 more member of 2",
        "  1 member, 2 are needed: 0 bound, 0 decided, 0 with a reserved place, 0",
        "    pending, 1 terminating",
        "  condition PodGroupInitiallyScheduled=False (Unschedulable): 0/3 nodes, since",
        "    2026-01-01",
        "",
    ]


def test_the_victims_that_a_pod_waits_for_are_told(small: ClusterMirror) -> None:
    setting = Setting(small, affinity_profile())
    assert not any("victim" in line for line in setting.lines({"pod": NEXT.obj()}))
    setting.victims = [AwaitedVictim("shop/batch-3", "u", "node-7", 40.4)]
    lines = setting.lines({"pod": NEXT.obj()})
    at = lines.index("Waits for victims of preemption")
    assert lines[at + 1] == "  waits for shop/batch-3 on node-7 to end, since 40 s"


def test_what_was_supposed_is_told_last(small: ClusterMirror) -> None:
    question = {
        "pod": NEXT.obj(),
        "remove": ["default/web"],
        "add_nodes": [make_node("c1").obj(), {"kind": "ResourceSlice", "metadata": {"name": "c1-gpus"}}],
        "assume": [{"pod": "default/web", "node": "c1"}],
    }
    assert Setting(small, affinity_profile()).lines(question)[-4:] == [
        "Supposed  more nodes: c1",
        "          more devices: c1-gpus",
        "          gone: default/web",
        "          placed: default/web on c1",
    ]


def test_the_class_and_what_is_kept_of_it_are_told(small: ClusterMirror) -> None:
    setting = Setting(small, affinity_profile())
    setting.extender.filter(Request(json.dumps({"Pod": NEXT.obj(), "NodeNames": ["a1"]}).encode()), setting.effects)
    lines = setting.lines({"pod": NEXT.obj()}, "a1", "b1")
    reported = "first pod default/next: 1 request, 0 hits, 1 miss"
    assert reported in " ".join(" ".join(lines).split()).partition("Class ")[2]
    assert "    InterPodAffinity: does not fit: node(s) didn't match pod anti-affinity rules" in lines
    assert any(line.startswith("    InterPodAffinity: invalid (") for line in lines)


def test_a_mirror_that_is_not_fresh_says_why(small: ClusterMirror) -> None:
    freshness = Freshness([ResourceState(RESOURCES[Node])], 60, lambda: 0.0)
    lines = Setting(small, affinity_profile(), freshness).lines({"pod": NEXT.obj()})
    assert lines[-3:-1] == [
        f"Mirror    not synced, at generation {small.generation}: 3 nodes, 2 pods",
        "          nodes: not synced",
    ]


def test_terms_and_reasons_beyond_the_most_are_counted(small: ClusterMirror) -> None:
    many = [term(ZONE, {"matchLabels": {"app": f"app-{number}"}}) for number in range(25)]
    lines = Setting(small, affinity_profile()).lines({"pod": make_pod("many").required_anti_affinity(*many).obj()})
    assert "  ... and 5 more terms, see -o json" in lines
    assert sum(line.startswith("  its own rule: ") for line in lines) == 20


def test_more_domains_than_are_shown_are_counted(small: ClusterMirror) -> None:
    text = unstyle(Setting(small, affinity_profile()).text({"pod": NEXT.obj()}, Detail(("a2",), limit=1)))
    assert "  ... and 1 more domain, see --limit" in text.splitlines()


class Sizes(NamedTuple):
    """The lines of a short explanation, of all of it, and of the rules that were not judged."""

    short: list[str]
    all: list[str]
    not_judged: list[str]


def sizes_of(setting: Setting, pod: object) -> Sizes:
    short, every = (
        unstyle(setting.text({"pod": pod}, Detail((), 200), wide=wide)).splitlines() for wide in (False, True)
    )
    return Sizes(short, every, [each for each in every if each.startswith("Not judged: ")])


STORED = [*read(CASES)][::47]
REMEDIES = sorted(Path("tests/remedies/data").glob("*.json"))


def worlds() -> Iterator[tuple[ClusterMirror, object]]:
    """Yield clusters of the demo and of stored tests, each with a pod; some of the latter are in a group."""
    for file in sorted((DEMO / "requests").glob("*.json")):
        yield of_demo(full_profile()).mirror, json.loads(file.read_bytes())["Pod"]
    for case in (each.content for each in STORED):
        spec = case["pod"]["spec"] | {"schedulingGroup": {"podGroupName": "g"}}
        yield load(case["namespaces"], case["nodes"], case["pods"]), case["pod"] | {"spec": spec}
    for file in REMEDIES:
        mirror, dump = ClusterMirror(), read_dump(file.read_bytes())
        load_items(dump.items, mirror, skip_invalid=False)
        yield mirror, next(iter(mirror.pending)).full_name


def test_at_most_25_lines_are_told_of_any_pod_and_the_last_one_says_what_is_left_out() -> None:
    cut, unjudged = 0, 0
    for mirror, pod in worlds():
        short, every, not_judged = sizes_of(Setting(mirror, full_profile()), pod)
        assert len(short) <= MOST_LINES == 25, short
        assert short[0] == every[0]
        assert {*not_judged} <= {*short}
        assert any(each.startswith("-o wide shows more: ") for each in short[-2:])
        begin = " ".join(short[:6])
        is_rejected, is_tried = " fits on none of " in begin, "no scheduler places it" not in begin
        assert ("Best scores" in short) is not is_rejected, short
        assert any("would help" in line for line in short) in {is_rejected, is_rejected and is_tried}, short
        cut += any(line.endswith(", see -o wide") for line in short)
        unjudged += any(not_judged)
    assert cut > 10
    assert unjudged > 10


def test_lines_that_are_always_told_are_not_cut() -> None:
    retained = _whole(f"Not judged: {number}" for number in range(30))
    rest = Part([[f"  - {number}"] * 9 for number in range(9)], "Changes", item="change", least=1)
    nodes = Part([["Node n1: it fits"] * 40], is_extra=True)
    lines = [*shortened([retained, rest, nodes, Part([["a"]], name="scores", in_short=False)])]
    assert lines[:31] == [f"Not judged: {number}" for number in range(30)] + [""]
    assert lines[31:37] == ["Changes", *["  - 0"] * 4, "    ..."]
    assert lines[37:40] == ["  ... and 8 more changes, see -o wide", "", "Node n1: it fits"]
    assert lines[-2:] == ["", "-o wide shows more: scores"]


QUESTIONS = sorted((DEMO / "requests").glob("*.json"))


@pytest.mark.parametrize("profile", [affinity_profile(), full_profile()], ids=["affinity", "full"])
@pytest.mark.parametrize("file", QUESTIONS, ids=[file.stem for file in QUESTIONS])
def test_the_demo_cluster_is_no_wider_than_80_columns(file: Path, profile: Profile) -> None:
    lines = of_demo(profile).lines(json.loads(file.read_bytes()), "node1", "node42")
    assert len(lines) > 20
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize("limit", [0, 5, 200])
def test_long_names_make_it_no_wider(limit: int) -> None:
    nodes = [f"{letter}-{LONG}"[:253] for letter in "abc"]
    mirror = load(
        [make_namespace("n" * 63).obj()],
        [make_node(name).label(ZONE, f"z{LONG}"[:63]).label(HOST, name[:63]).obj() for name in nodes],
        [
            make_pod(f"p-{name}"[:253]).in_namespace("n" * 63).label("app", "v" * 63).on(name).obj()
            for name in nodes[:2]
        ],
    )
    placed = f"{'n' * 63}/p-{nodes[0]}"[: 64 + 253]
    wide = term(HOST, {"matchLabels": {"app": "v" * 63}})
    pod = make_pod(f"q-{LONG}"[:253]).in_namespace("n" * 63).label("app", "v" * 63)
    question = {"pod": pod.required_anti_affinity(wide).preferred_affinity(10, wide).obj(), "remove": [placed]}
    setting = Setting(mirror, full_profile())
    lines = unstyle(setting.text(question, Detail(nodes, limit, score_all=True), wide=False)).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert nodes[0] in "".join(line.strip() for line in lines)


RULES = SchedulerRules(
    "mine",
    has_profile=True,
    off=parse_profile("NodeName,ImageLocality"),
    not_scored=(NotJudged("Mine", "no in-tree plugin"),),
    percentage_of_nodes_to_score=0,
)


def state(rules: SchedulerRules = RULES, nodes: int = 5000) -> SchedulerState:
    return rules.state(nodes)


def text(lines: object) -> str:
    assert hasattr(lines, "__iter__")
    return " ".join(" ".join(lines).split())


def test_the_profile_and_the_extender_are_named() -> None:
    assert text(profile_text(state())) == "Scheduler profile mine; Kindred is not its extender"
    extender = SchedulerRules("mine", has_profile=True, extender="http://kindred:8888")
    assert text(profile_text(state(extender))).endswith("; Kindred is its extender http://kindred:8888")
    assert not [*profile_text(state(SchedulerRules("other"))), *profile_text(None)]


def test_a_sample_is_told_where_more_nodes_fit() -> None:
    reported = text(sample_text(state(), 600))
    assert "kube-scheduler looks for 500 nodes that fit" in reported
    assert "(percentageOfNodesToScore: by the size of the cluster)" in reported
    assert not [*sample_text(state(), 500)]

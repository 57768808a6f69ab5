"""Pending pods as text: summed up in a line, then a line for each, by namespace where there are several."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click import unstyle
from click.testing import CliRunner, Result
from msgspec.structs import replace

from app.commands.cli import main
from app.commands.output import WIDTH, laid_out
from app.commands.pending import pending_text
from app.explain.pending import PendingClass, PendingPod, PendingPods, PendingState
from app.settings.settings import Settings
from app.wiring.main import create_service
from core.diagnosis.not_judged import NotJudged
from core.diagnosis.wakes import AwaitedVictim
from core.gangs.unit import SchedulingStatus, UnitStatus
from tests.app.commands.running import running
from tests.app.feeds.dumps import as_json, kinded, listed
from tests.builders import make_namespace, make_node, make_pod
from tests.conformance.engine import load

TAINT = "node(s) had untolerated taint {dedicated: batch}"
OLD = PendingPod(
    pod="shop/web-0",
    uid="u0",
    since="2026-01-02T03:04:05Z",
    seconds=190.0,
    scheduler="default-scheduler",
    state=PendingState.UNSCHEDULABLE,
    gates=(),
    nominated_node="",
    condition=None,
    place=0,
)
GATED = replace(
    OLD, pod="dev/gated", uid="u1", seconds=None, state=PendingState.GATED, gates=("example.com/a", "example.com/b")
)
WAITING = replace(
    OLD, pod="dev/fits", uid="u2", seconds=5.0, state=PendingState.FITS, nominated_node="n7", scheduler="mine", place=1
)
CLAIMING = replace(OLD, pod="dev/claims", uid="u3", seconds=1.0, state=PendingState.NOT_JUDGED, place=2)
LEFT = replace(OLD, pod="dev/left", uid="u4", seconds=0.0, state=PendingState.NO_REQUEST, place=None)
NOWHERE = PendingClass(
    pods=2,
    first_pod="shop/web-0",
    oldest="2026-01-02T03:04:05Z",
    state=PendingState.UNSCHEDULABLE,
    nodes=5000,
    fit=0,
    plugin="TaintToleration",
    first_reason=TAINT,
    message="",
    reasons=(),
    not_judged=(),
    helps=("tolerate the taint dedicated=batch:NoSchedule (then it fits on n1)", "uncordon n2"),
)
SOMEWHERE = replace(NOWHERE, pods=1, state=PendingState.FITS, fit=17, plugin="", first_reason="", helps=())
UNKNOWN = replace(
    SOMEWHERE, state=PendingState.NOT_JUDGED, not_judged=(NotJudged("VolumeBinding", "storageclasses: forbidden"),)
)
PENDING = PendingPods(
    generation=12,
    nodes=5000,
    standing="fresh",
    problems=(),
    pods=(OLD, GATED, WAITING, CLAIMING, LEFT),
    classes=(NOWHERE, SOMEWHERE, UNKNOWN),
)


def lines(pending: PendingPods, namespace: str | None = None, *, wide: bool = False) -> list[str]:
    found = unstyle(laid_out(pending_text(pending, namespace=namespace, wide=wide))).splitlines()
    assert wide or max(map(len, found)) <= WIDTH
    return found


def test_the_first_line_sums_up_and_every_pod_has_its_age_and_its_reason() -> None:
    assert lines(PENDING) == [
        "5 pending pods of 3 classes; 2 fit nowhere; 1 of more classes, not judged",
        "",
        "NAMESPACE  NAME    AGE        STATE          FIT       REASON",
        "shop       web-0   3m10s      unschedulable  0/5,000   node(s) had untolerated",
        "                                                       taint {dedicated: batch}",
        "dev        gated   <unknown>  gated          0/5,000   scheduling gates:",
        "                                                       example.com/a,",
        "                                                       example.com/b",
        "dev        fits    5s         fits           17/5,000  -",
        "dev        claims  1s         not judged     17/5,000  VolumeBinding:",
        "                                                       storageclasses: forbidden",
        "dev        left    0s         not asked      -         -",
    ]


def test_wide_text_has_the_scheduler_the_nominated_node_and_what_would_help_too() -> None:
    found = lines(PENDING, wide=True)
    assert len(found) == 3 + 5
    assert found[2].endswith("  SCHEDULER          NOMINATED NODE  WOULD HELP")
    assert f"  {TAINT}  " in found[3]
    assert found[3].endswith("; or ".join(NOWHERE.helps))
    assert "  default-scheduler  -  " in found[3]
    assert found[5].split()[-3:] == ["mine", "n7", "-"]


def test_a_pod_that_waits_for_victims_of_preemption_says_so_behind_its_reason() -> None:
    victims = [AwaitedVictim(f"shop/batch-{number}", "u", "node-7", 40.4) for number in range(5)]
    one, many, fits = replace(OLD, waits_for=victims[:1]), replace(OLD, waits_for=victims), replace(WAITING, place=0)
    pods = (one, many, replace(fits, waits_for=victims[:1]))
    classes = (replace(SOMEWHERE, pods=3, state=PendingState.UNSCHEDULABLE, first_reason="Insufficient cpu"),)
    found = lines(replace(PENDING, pods=pods, classes=classes), wide=True)[3:]
    waits = "waits for shop/batch-{} on node-7 to end, since 40 s"
    assert f"  Insufficient cpu; {waits.format(0)}  " in found[0]
    assert f"; {waits.format(1)}; {waits.format(2)}; and for 2 more victims  " in found[1]
    silent = replace(SOMEWHERE, pods=1)
    (alone,) = lines(replace(PENDING, pods=(pods[2],), classes=(silent,)), wide=True)[3:]
    assert f"17/5,000  {waits.format(0)}  " in alone


def test_a_member_of_a_group_has_the_state_of_its_group_and_each_group_its_reason_once() -> None:
    waits = UnitStatus(unit="shop/train", status=SchedulingStatus.PENDING, reason="waits for 1 more member of 2")
    runs = UnitStatus(unit="shop/web", status=SchedulingStatus.SCHEDULED)
    pods = (replace(OLD, unit=0), replace(WAITING, unit=1))
    found = lines(replace(PENDING, pods=pods, units=(waits, runs)), wide=True)[3:]
    assert f"  {TAINT}; group shop/train is pending  " in found[0]
    assert "17/5,000  group shop/web is scheduled  " in found[1]
    assert found[2:] == ["", "Group shop/train is pending: waits for 1 more member of 2"]


def test_pods_that_the_caller_may_not_see_are_counted_with_why() -> None:
    found = lines(replace(PENDING, left_out=2, names_hidden="no caller is known"))
    assert found[0] == "2 pending pods of other namespaces left out: no caller is known"
    none = lines(replace(PENDING, pods=(), classes=(), left_out=1, names_hidden="the API server is down"))
    assert none == ["1 pending pod of other namespaces left out: the API server is down", "No pending pods."]


def test_the_pods_of_one_namespace_do_not_repeat_it() -> None:
    one = replace(PENDING, pods=(OLD,), classes=(replace(NOWHERE, pods=1),))
    assert lines(one, "shop")[:4] == [
        "1 pending pod in namespace shop of 1 class; 1 fits nowhere",
        "",
        "NAME   AGE    STATE          FIT      REASON",
        "web-0  3m10s  unschedulable  0/5,000  node(s) had untolerated taint {dedicated:",
    ]


def test_a_mirror_that_is_behind_is_said_first() -> None:
    stale = replace(PENDING, standing="stale", problems=("pods: nothing for 200 s", "nodes: forbidden"))
    assert lines(stale)[0] == "The mirror is stale: pods: nothing for 200 s; nodes: forbidden"
    assert lines(replace(PENDING, standing="not synced"))[0] == "The mirror is not synced."


NODES = [make_node(name).allocatable(cpu=4, memory="8Gi", pods=10) for name in ("n1", "n2")]
PODS = [
    make_pod("late").in_namespace("shop").requests(cpu=5).created("2026-01-02T00:00:00Z"),
    make_pod("early").in_namespace("shop").requests(cpu=5).created("2026-01-01T00:00:00Z"),
    make_pod("small").requests(cpu=1).created("2026-01-03T00:00:00Z"),
    make_pod("bound").requests(cpu=1).on("n1"),
]


@pytest.fixture
def dump(tmp_path: Path) -> str:
    (tmp_path / "dump.json").write_bytes(as_json(listed(*kinded(*NODES, *PODS, make_namespace("shop")))))
    return str(tmp_path / "dump.json")


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """Serve the same cluster, and give the URL of the admin port."""
    mirror = load([], [node.obj() for node in NODES], [pod.obj() for pod in PODS])
    admin = create_service(Settings(admin="127.0.0.1:0", profile="full"), mirror, None).admin
    assert admin is not None
    with running(admin) as server:
        yield server.url


def pending(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["pending", *arguments])


def names(*arguments: str) -> list[str]:
    result = pending(*arguments, "-o", "name")
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_pods_are_listed_oldest_first_of_all_namespaces_unless_one_is_named(service: str) -> None:
    at = ("--server", service)
    assert names(*at) == ["pod/early", "pod/late", "pod/small"]
    assert names(*at, "-n", "shop") == ["pod/early", "pod/late"]
    assert names(*at, "-n", "shop", "-A") == names(*at, "-A") == names(*at)
    assert names(*at, "-n", "nowhere") == []


def test_a_dump_is_answered_as_a_service_answers(service: str, dump: str) -> None:
    found = [json.loads(pending(*ways, "-o", "json").stdout) for ways in (("--server", service), ("--snapshot", dump))]
    for each in found:
        for pod in each["pods"]:
            assert pod.pop("seconds") > 0
    of_service, of_dump = found
    assert of_service["classes"] == of_dump["classes"]
    assert of_service["pods"] == of_dump["pods"]
    assert names("--snapshot", dump, "-n", "shop") == ["pod/early", "pod/late"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--server", "http://127.0.0.1:1"], "use --snapshot FILE, or `kubectl kindred", id="no-service"),
        pytest.param(["--demo", "--server", "http://x"], "--server is for a running service, not", id="both"),
        pytest.param(["--profile", "full"], "--profile is for a dump (--snapshot or --demo), not", id="profile"),
        pytest.param(["--demo", "--profile", "none"], "none", id="unknown-profile"),
        pytest.param(["--snapshot", "/dev/null"], "Error: ", id="empty-dump"),
    ],
)
def test_what_is_wrong_is_said_with_exit_status_2(arguments: list[str], message: str) -> None:
    result = pending(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr.splitlines()[-1]


def test_pods_of_several_schedulers_are_judged_by_the_profile_of_each(tmp_path: Path) -> None:
    spec = {"containers": [{"resources": {"requests": {"cpu": "5"}}}]}
    pods = [
        {"kind": "Pod", "metadata": {"name": name, "namespace": "shop"}, "spec": {**spec, "schedulerName": name}}
        for name in ("strict", "lax", "unknown")
    ]
    (tmp_path / "dump.json").write_bytes(as_json(listed(*kinded(*NODES, make_namespace("shop")), *pods)))
    (tmp_path / "scheduler.yaml").write_text(
        """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: strict
  - schedulerName: lax
    plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}
""",
        "utf-8",
    )
    arguments = ("--snapshot", f"{tmp_path}/dump.json", "--scheduler-config", f"{tmp_path}/scheduler.yaml")
    response = json.loads(pending(*arguments, "-o", "json").stdout)
    by_name = {each["pod"]: response["classes"][each["class"]] for each in response["pods"]}
    assert {name: each["fit"] for name, each in by_name.items()} == {"shop/strict": 0, "shop/lax": 2, "shop/unknown": 0}
    assert by_name["shop/lax"]["scheduler"]["filters_off"] == ["NodeResourcesFit"]
    table = pending(*arguments).stdout
    assert "no scheduler profile unknown" in " ".join(table.split())

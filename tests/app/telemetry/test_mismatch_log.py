"""What operators are told of a cache that was wrong."""

import json
import logging

import pytest

from app.objects.decode_pod import decode_pod
from app.telemetry.mismatch_log import MismatchLog
from core.equivalence.cache import CacheOptions, EquivalenceCache, Mismatch
from core.equivalence.shadow_check import Difference
from core.events import ClusterEvent
from core.framework.interface import SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.nodeunschedulable import NodeUnschedulable
from tests.builders import Object, PodBuilder, labelled, make_pod, term

UNFIT = Status(Code.UNSCHEDULABLE, ("no room",))
POD = Pod("u1", "shop", "web")
ADVICE = "run with KINDRED_EQUIVALENCE_CACHE=false"


def mismatch_of(pod: Pod, first_pod: str = "shop/first") -> Mismatch:
    return Mismatch(
        equivalence_hash="0123456789abcdef",
        differences=[Difference("NodeResourcesFit", "n1", SUCCESS, UNFIT), Difference("ImageLocality", "n2", 7, None)],
        pod=pod,
        first_pod=first_pod,
        generation=42,
        invalidated={"NodeResourcesFit": 3},
    )


def logged(caplog: pytest.LogCaptureFixture) -> tuple[str, Object]:
    """Return the only message in front of its JSON, and the JSON."""
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    text, brace, rest = record.getMessage().partition("{")
    found: Object = json.loads(brace + rest)
    return text, found


def test_the_first_mismatch_is_logged_with_what_is_needed_to_reproduce_it(caplog: pytest.LogCaptureFixture) -> None:
    MismatchLog()(mismatch_of(POD))
    text, found = logged(caplog)
    assert ADVICE in text
    assert found["equivalence_hash"] == "0123456789abcdef"
    assert found["first_pod"] == "shop/first"
    assert found["generation"] == 42
    assert found["invalidated"] == {"NodeResourcesFit": 3}
    assert (found["pod"]["namespace"], found["pod"]["name"], found["pod"]["uid"]) == ("shop", "web", "u1")
    assert found["differences"] == [
        {
            "plugin": "NodeResourcesFit",
            "node": "n1",
            "cached": {"code": Code.SUCCESS, "reasons": []},
            "fresh": {"code": Code.UNSCHEDULABLE, "reasons": ["no room"]},
        },
        {"plugin": "ImageLocality", "node": "n2", "cached": 7, "fresh": None},
    ]


def test_later_mismatches_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = MismatchLog()
    for name in ("first", "second", "third"):
        log(mismatch_of(POD, name))
    assert logged(caplog)[1]["first_pod"] == "first"


def test_every_service_logs_its_own_first_one(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("one", "other"):
        MismatchLog()(mismatch_of(POD, name))
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(
            make_pod("p").required_affinity(term("zone", labelled(app="web"), namespace_selector={})), id="affinity"
        ),
        pytest.param(
            make_pod("p").preferred_node_affinity(
                3, {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]}
            ),
            id="node-affinity",
        ),
        pytest.param(make_pod("p").toleration("gpu", "Exists").spread("zone", labelled(app="web")), id="spread"),
        pytest.param(make_pod("p").image("web:1").requests(cpu="1").host_port(80), id="containers"),
        pytest.param(
            make_pod("p").volume({"name": "v", "persistentVolumeClaim": {"claimName": "c"}}).owned_by("Job", "j", "j1"),
            id="claim",
        ),
        pytest.param(make_pod("p").volume({"name": "v", "gcePersistentDisk": {"pdName": "d"}}), id="disk"),
    ],
)
def test_a_pod_with_anything_that_plugins_read_can_be_logged(pod: PodBuilder, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    MismatchLog()(mismatch_of(decode_pod(pod.json())))
    _, of_the_pod = caplog.records
    assert json.loads(of_the_pod.getMessage().removeprefix("its pod: "))["name"] == "p"


def test_what_the_pod_is_like_is_not_told_above_level_debug(caplog: pytest.LogCaptureFixture) -> None:
    MismatchLog()(mismatch_of(decode_pod(make_pod("p").label("app", "s3cr3t").json())))
    assert logged(caplog)[1]["pod"].keys() == {"namespace", "name", "uid"}
    assert "s3cr3t" not in caplog.text


def test_a_line_feed_from_the_cluster_does_not_begin_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    MismatchLog()(mismatch_of(POD, "shop/first\nERROR forged"))
    (record,) = caplog.records
    assert "\n" not in record.getMessage()


def test_a_cache_with_a_wrong_cell_tells_it(caplog: pytest.LogCaptureFixture) -> None:
    mirror = ClusterMirror()
    for name in ("n1", "n2"):
        mirror.apply(ClusterEvent("Add", Node(name)))
    plugin = NodeUnschedulable()
    cache = EquivalenceCache(mirror, (plugin,), CacheOptions(mode="spec", shadow_share=1.0), MismatchLog())
    batch = mirror.batch(["n1", "n2"])
    cache.evaluation(POD).verdicts(plugin, batch)
    (entry,) = cache
    row = entry.filters[plugin.name]
    assert row.cells is not None
    row.cells.put(batch.slots[1:], row.codes_of((UNFIT,)))
    assert not caplog.records
    cache.evaluation(POD).verdicts(plugin, batch)
    _, found = logged(caplog)
    (difference,) = found["differences"]
    assert (difference["plugin"], difference["node"]) == ("NodeUnschedulable", "n2")
    assert difference["cached"]["reasons"] == ["no room"]
    assert difference["fresh"]["reasons"] == []
    assert found["equivalence_hash"] == f"{entry.hash:016x}"

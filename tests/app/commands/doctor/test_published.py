"""Extenders as people have published them, in whole configurations: what is right, and what is told."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from app.settings.configuration import HEAD
from tests.app.commands.doctor.registrations import SCORE_OFFLOAD
from tests.app.commands.doctor.test_command import report, written

KINDRED: Final = {**SCORE_OFFLOAD["extenders"][0], "urlPrefix": "http://kindred.kindred.svc:8888"}
GPU_SHARE: Final = {
    "urlPrefix": "http://127.0.0.1:32766/gpushare-scheduler",
    "filterVerb": "filter",
    "bindVerb": "bind",
    "enableHTTPS": False,
    "nodeCacheCapable": True,
    "managedResources": [{"name": "aliyun.com/gpu-mem", "ignoredByScheduler": False}],
    "ignorable": False,
}
"""https://github.com/AliyunContainerService/gpushare-scheduler-extender/issues/128"""
OF_INTEL: Final = [
    {
        "urlPrefix": f"https://{name}-service.default.svc.cluster.local:9001",
        "filterVerb": "scheduler/filter",
        verb: verb.removesuffix("Verb"),
        "weight": 1,
        "enableHTTPS": True,
        "managedResources": [{"name": resource, "ignoredByScheduler": name == "tas"}],
        "ignorable": True,
        "tlsConfig": {"insecure": False, "certFile": "/host/certs/client.crt", "keyFile": "/host/certs/client.key"},
    }
    for name, verb, resource in (
        ("tas", "prioritizeVerb", "telemetry/scheduling"),
        ("gas", "bindVerb", "gpu.intel.com/i915"),
    )
]
"""https://github.com/intel/platform-aware-scheduling: both of its extenders at one kube-scheduler"""
SERVICE_PROXY: Final = "http://192.168.3.76:6443/api/v1/namespaces/kube-system/services/kindred/proxy/scheduler"
NODE_PORT: Final = "http://10.177.140.16:32760"


def at(url: str, **fields: object) -> dict[str, Any]:
    return {**KINDRED, "urlPrefix": url, **fields}


@pytest.mark.parametrize(
    ("extenders", "reported"),
    [
        pytest.param([GPU_SHARE, KINDRED], [], id="gpushare-scheduler-extender#128 beside Kindred"),
        pytest.param([*OF_INTEL, KINDRED], [], id="platform-aware-scheduling beside Kindred"),
        pytest.param(
            [at("/prefix")],
            [("error", "urlPrefix: http://kindred.kindred.svc:8888")],
            id="cnych/qikqiak.com#148: a path alone",
        ),
        pytest.param(
            [at(SERVICE_PROXY)],
            [("warning", "urlPrefix: http://kindred.kindred.svc:8888")],
            id="elastic-gpu-scheduler#8: the proxy of the API server",
        ),
        pytest.param(
            [at(NODE_PORT)],
            [("warning", "otherwise urlPrefix: http://10.177.140.16:8888")],
            id="tkestack/galaxy#123: a NodePort",
        ),
        pytest.param(
            [at("http://[fd00::10]:8889")],
            [("error", "urlPrefix: http://[fd00::10]:8888")],
            id="a health port in an IPv6 cluster",
        ),
    ],
)
def test_what_is_told_of_it_is_the_mistake_and_its_fix_leads_to_kindred(
    tmp_path: Path, extenders: list[dict[str, Any]], reported: list[tuple[str, str]]
) -> None:
    findings = report("--scheduler-config", written(tmp_path, {**SCORE_OFFLOAD, "extenders": extenders}))["findings"]
    assert [(finding["severity"], finding["fix"]) for finding in findings] == reported
    assert all(finding["id"] == "url-prefix" for finding in findings)


OFFLOAD, FULL, DECIDES = (
    (Path("manifests/scheduler") / f"{name}.yaml").read_text("utf-8")
    for name in ("score-offload", "full-offload", "decide")
)
DISABLED: Final = "          - name: InterPodAffinity\n"
CERTIFICATE: Final = "      certFile: /etc/kubernetes/kindred/tls.crt\n      keyFile: /etc/kubernetes/kindred/tls.key\n"
ALONE: Final = {**SCORE_OFFLOAD["profiles"][0]["plugins"], "score": {"disabled": [{"name": "*"}]}}


@pytest.mark.parametrize(
    ("text", "old", "new", "reported"),
    [
        pytest.param(
            OFFLOAD,
            "name: InterPodAffinity",
            "name: InterPodAffinityPriority",
            "plugin-name",
            id="kubernetes#91625: 1.17",
        ),
        pytest.param(
            OFFLOAD, "name: InterPodAffinity", "name: PodInterAffinity", "plugin-name", id="a slip of the pen"
        ),
        pytest.param(
            OFFLOAD, f"      preScore:\n        disabled:\n{DISABLED}", "", "half-switched-off", id="the score alone"
        ),
        pytest.param(
            OFFLOAD,
            f"      preScore:\n        disabled:\n{DISABLED}      score:\n        disabled:\n{DISABLED}",
            '      score:\n        disabled:\n          - name: "*"\n',
            "half-switched-off",
            id="all scores, and two that still prepare theirs",
        ),
        pytest.param(
            OFFLOAD, f"      score:\n        disabled:\n{DISABLED}", "", "half-switched-off", id="the preScore alone"
        ),
        pytest.param(
            OFFLOAD,
            "    plugins:\n",
            "    pluginConfig: [{args: {name: InterPodAffinity, hardPodAffinityWeight: 5}}]\n    plugins:\n",
            "plugin-name",
            id="kubernetes#103478: the name in the arguments",
        ),
        pytest.param(
            OFFLOAD,
            "    plugins:\n",
            "    pluginConfig: [{name: NodeResourceFit, args: {ignoredResources: [a.b/c]}}]\n    plugins:\n",
            "plugin-name",
            id="arguments of a name that is misspelled",
        ),
        pytest.param(
            OFFLOAD,
            "    plugins:\n",
            "    plugins:\n      filter: {enabled: [{name: NodeResourceFit}]}\n",
            "plugin-name",
            id="kube-scheduler v1.36.3: FilterPlugin does not exist",
        ),
        pytest.param(
            OFFLOAD, "weight: 1\n", "weight: 100\n", "weight-balance", id="notes.darshanraul.me: a large weight"
        ),
        pytest.param(OFFLOAD, "kindred.kindred.svc", "${EXTENDER_IP}", "url-prefix", id="a text of a guide to fill in"),
        pytest.param(OFFLOAD, "    prioritizeVerb: prioritize\n", "", "verb-name", id="no verb"),
        pytest.param(FULL, CERTIFICATE, "", "tls", id="kubernetes#122494: a binder without a certificate"),
        pytest.param(FULL, CERTIFICATE.splitlines()[1] + "\n", "", "tls", id="platform-aware-scheduling: no keyFile"),
        pytest.param(FULL, "https:", "http:", "tls", id="kubernetes#13580: enableHTTPS of an http URL"),
        pytest.param(FULL, "percentageOfNodesToScore: 100\n", "", "sampling", id="a sample"),
        pytest.param(FULL, "ignorable: false", "ignorable: true", "ignorable", id="kubernetes#91489: ignorable"),
        pytest.param(DECIDES, "  resourceName: kindred-scheduler\n", "", "decide-scheduler", id="one Lease"),
    ],
)
def test_one_mistake_in_a_shipped_file_is_one_finding(
    tmp_path: Path, text: str, old: str, new: str, reported: str
) -> None:
    assert old in text
    (tmp_path / "scheduler.yaml").write_text(text.replace(old, new))
    assert [finding["id"] for finding in report("--scheduler-config", tmp_path / "scheduler.yaml")["findings"]] == [
        reported
    ]


@pytest.mark.parametrize("name", ["Coscheduling", "CapacityScheduling", "NodeResourcesAllocatable", "NodeNUMAResource"])
def test_the_arguments_of_a_plugin_outside_of_the_tree_have_no_misspelled_name(tmp_path: Path, name: str) -> None:
    """Of scheduler-plugins and Koordinator. Profiles may share the arguments, and only one enable the plugin."""
    own = f"    pluginConfig: [{{name: {name}, args: {{}}}}]\n    plugins:\n"
    (tmp_path / "scheduler.yaml").write_text(OFFLOAD.replace("    plugins:\n", own))
    assert not report("--scheduler-config", tmp_path / "scheduler.yaml")["findings"]


@pytest.mark.parametrize(
    ("document", "settings", "reported"),
    [
        pytest.param(
            DECIDES,
            {"decide": "any-node", "decideSchedulers": ["batch"], "decideClaimsScheduler": "kindred-volumes"},
            ("other-registration", "batch: not the profile kindred, which has no filter"),
            id="a schedulerName changed in one of two files",
        ),
        pytest.param(
            yaml.safe_dump({**SCORE_OFFLOAD, "profiles": [{"schedulerName": "a", "plugins": ALONE}]}),
            {"maxScore": 20},
            (
                "score-once",
                "kube-scheduler scores by no plugin in the profile a, and Kindred by InterPodAffinity alone",
            ),
            id="all scores disabled for one",
        ),
        pytest.param(
            OFFLOAD,
            {"maxScore": 20, "httpTimeout": 1, "profile": "full"},
            ("score-once", "counted twice, by kube-scheduler and by Kindred"),
            id="all scores in Kindred, and one disabled",
        ),
    ],
)
def test_a_mistake_between_both_files_is_one_finding(
    tmp_path: Path, document: str, settings: dict[str, Any], reported: tuple[str, str]
) -> None:
    (tmp_path / "scheduler.yaml").write_text(document)
    effects = {"profile": "full", "preempt": "evict", "leaderElection": "kindred", "tlsDirectory": "/nowhere"}
    given = {**HEAD, **settings, **(effects if "decide" in settings else {})}
    files = ("--scheduler-config", tmp_path / "scheduler.yaml", "--config", written(tmp_path, given, "kindred.yaml"))
    (finding,) = report(*files)["findings"]
    assert (finding["id"], finding["message"][: len(reported[1])]) == reported

"""Extenders as people have published them, in whole configurations: what is right, and what is told."""

from pathlib import Path
from typing import Any, Final

import pytest

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
    ("extenders", "told"),
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
    tmp_path: Path, extenders: list[dict[str, Any]], told: list[tuple[str, str]]
) -> None:
    findings = report("--scheduler-config", written(tmp_path, {**SCORE_OFFLOAD, "extenders": extenders}))["findings"]
    assert [(finding["severity"], finding["fix"]) for finding in findings] == told
    assert all(finding["id"] == "url-prefix" for finding in findings)

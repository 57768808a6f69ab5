"""Registrations to look at: good ones, with what a test makes of them, and what the doctor finds."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import yaml

from app.commands.doctor.examination import REGISTRATION_CHECKS
from app.commands.doctor.findings import Finding, Severity
from app.commands.doctor.registration import Registration
from app.scheduler_configuration.scheduler_config import choose_extender, parse_scheduler_config
from app.settings.settings import Settings
from app.wiring.engine import create_profile

OFF: Final = {"disabled": [{"name": "InterPodAffinity"}]}
SCORE_OFFLOAD: Final[dict[str, Any]] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "default-scheduler", "plugins": {"preScore": OFF, "score": OFF}}],
    "extenders": [
        {
            "urlPrefix": "http://10.96.0.10:8888",
            "prioritizeVerb": "prioritize",
            "weight": 1,
            "nodeCacheCapable": True,
            "httpTimeout": "5s",
        }
    ],
}
"""Of which the doctor has nothing to say."""
FULL_OFFLOAD: Final[dict[str, Any]] = {
    **SCORE_OFFLOAD,
    "percentageOfNodesToScore": 100,
    "profiles": [{"schedulerName": "default-scheduler", "plugins": {"multiPoint": OFF}}],
    "extenders": [
        {**SCORE_OFFLOAD["extenders"][0], "filterVerb": "filter", "bindVerb": "bind", "preemptVerb": "preempt"},
    ],
}
"""Likewise."""
NEXT_TO: Final[dict[str, Any]] = {
    **SCORE_OFFLOAD,
    "profiles": [{"schedulerName": "default-scheduler"}],
    "extenders": [{**SCORE_OFFLOAD["extenders"][0], "filterVerb": "filter", "ignorable": True}],
}
NOTHING_IN_TREE: Final = {
    "multiPoint": {
        "disabled": [{"name": "*"}],
        "enabled": [
            {"name": name} for name in ("PrioritySort", "SchedulingGates", "DefaultPreemption", "DefaultBinder")
        ],
    }
}
CLAIMS_IN_TREE: Final = {
    "multiPoint": {
        "disabled": [
            {"name": name}
            for name in (
                *(
                    "NodeUnschedulable",
                    "NodeDeclaredFeatures",
                    "NodeName",
                    "TaintToleration",
                    "NodeAffinity",
                    "NodePorts",
                    "NodeResourcesFit",
                ),
                *("PodTopologySpread", "InterPodAffinity", "NodeResourcesBalancedAllocation", "ImageLocality"),
                "DefaultPreemption",
            )
        ]
    }
}
DECIDE: Final[dict[str, Any]] = {
    **SCORE_OFFLOAD,
    "clientConnection": {"qps": 2000, "burst": 2000},
    "leaderElection": {"resourceNamespace": "kindred", "resourceName": "kindred-scheduler"},
    "profiles": [
        {"schedulerName": "kindred", "percentageOfNodesToScore": 1, "plugins": NOTHING_IN_TREE},
        {"schedulerName": "kindred-volumes", "percentageOfNodesToScore": 100, "plugins": CLAIMS_IN_TREE},
        {"schedulerName": "kindred-groups", "percentageOfNodesToScore": 100},
    ],
    "extenders": [
        {
            "urlPrefix": "http://10.96.0.10:8888",
            "filterVerb": "filter",
            "nodeCacheCapable": True,
            "httpTimeout": "5s",
        }
    ],
}
"""Of which the doctor has nothing to say, with the settings DECIDING."""
DECIDING: Final = {
    "profile": "full",
    "decide": "any-node",
    "decide_schedulers": ["kindred"],
    "decide_claims_scheduler": "kindred-volumes",
    "decide_groups_scheduler": "kindred-groups",
    "preempt": "evict",
    "bind": False,
}


class Case(NamedTuple):
    """A registration that is to be complained of, and one that is like it and right."""

    severity: Severity
    check: str
    where: str
    wrong: Registration
    right: Registration


error = partial(Case, Severity.ERROR)
warning = partial(Case, Severity.WARNING)
info = partial(Case, Severity.INFO)


def registration(
    document: Mapping[str, Any] = SCORE_OFFLOAD,
    *,
    settings: Mapping[str, Any] | None = None,
    assumed: bool = False,
    **extender: object,
) -> Registration:
    """Make one of a document, with fields of its last extender changed; None takes a field out."""
    extenders = [dict(each) for each in document["extenders"]]
    extenders[-1] = {name: value for name, value in {**extenders[-1], **extender}.items() if value is not None}
    config = parse_scheduler_config(yaml.safe_dump({**document, "extenders": extenders}))
    chosen, problem = choose_extender(config, "", "http://10.96.0.10:8888")
    assert chosen is not None, problem
    made = Settings(
        **{"max_score": 20, "preempt": "verb", "bind": True, "leader_election": "kindred", **(settings or {})}
    )
    return Registration(config, chosen, made, create_profile(made), assumed)


def deciding(
    document: Mapping[str, Any] = DECIDE,
    settings: Mapping[str, Any] | None = None,
    **extender: Any,  # noqa: ANN401  # a value of YAML
) -> Registration:
    """Make one with the settings DECIDING, some of them changed, and fields of the extender changed."""
    return registration(document, settings={**DECIDING, **(settings or {})}, **extender)


def profile_changed(index: int, **fields: object) -> dict[str, Any]:
    """Return DECIDE with fields of a profile changed."""
    changed = [dict(each) for each in DECIDE["profiles"]]
    changed[index].update(fields)
    return {**DECIDE, "profiles": changed}


def profiles(document: Mapping[str, Any], *plugins: Mapping[str, Any], **fields: object) -> dict[str, Any]:
    """Return a document with profiles that have these plugins."""
    several = [{"schedulerName": f"scheduler-{index}", "plugins": each, **fields} for index, each in enumerate(plugins)]
    return {**document, "profiles": several}


def extenders(document: Mapping[str, Any], *before: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with other extenders before its own."""
    return {**document, "extenders": [*before, *document["extenders"]]}


def found(looked_at: Registration, check: str) -> list[Finding]:
    """Look, and give what one check has found."""
    (chosen,) = [each for each in REGISTRATION_CHECKS if each.id == check]
    return chosen.findings(looked_at)


def assert_reported_apart(case: Case) -> None:
    """Assert that the wrong one is found, there and as bad as it is, and the right one is not."""
    assert found(case.right, case.check) == []
    findings = found(case.wrong, case.check)
    assert [(case.severity, case.where)] == [(finding.severity, finding.where) for finding in findings]
    assert all(finding.message and finding.reference for finding in findings)

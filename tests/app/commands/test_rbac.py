"""`kindred rbac`: what each setting makes necessary, and nothing else; manifests that say what they are meant to."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from click.testing import CliRunner

from app.commands.cli import main
from app.commands.rbac import cluster_rules, namespaced_rules, rbac_documents, rbac_text
from app.objects.resources import RESOURCES
from app.settings.settings import Settings
from app.simulation.objects_at_hand import OF_OWNERS
from core.profile import full_profile, with_devices

HEAD = "apiVersion: kindred.dev/v1alpha1\nkind: KindredConfiguration\n"
AFFINITY = {"nodes": "list watch", "pods": "list watch", "namespaces": "list watch"}
FULL = {RESOURCES[kind].plural: "list watch" for kind in full_profile().kinds}
JUDGED = {RESOURCES[kind].plural: "list watch" for kind in with_devices(full_profile()).kinds}
BOUND = {"pods": "list watch get", "pods/binding": "create"}
UNITS = {"podgroups.scheduling.k8s.io": "list watch"}
BUDGETS = {"poddisruptionbudgets": "list watch"}
OWNERS = {each.plural: "list" for each in OF_OWNERS}
EVICTED = {"pods": "list watch get delete", "pods/status": "patch", "events": "create"}


def allowed(settings: Settings) -> dict[str, str]:
    """Return resource -> verbs. Two groups have podgroups."""
    rules = cluster_rules(settings)
    assert all(len(rule["resources"]) == len(rule["apiGroups"]) == 1 for rule in rules)
    return {
        ".".join(rule["resources"] + (rule["apiGroups"] if rule["resources"] == ["podgroups"] else [])): " ".join(
            rule["verbs"]
        )
        for rule in rules
    }


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param(Settings(), AFFINITY, id="the-default"),
        pytest.param(Settings(profile="full"), FULL, id="the-full-profile"),
        pytest.param(Settings(profile="NodeName"), {"nodes": "list watch", "pods": "list watch"}, id="a-list"),
        pytest.param(Settings(bind=True), {**AFFINITY, **BOUND}, id="bind"),
        pytest.param(
            Settings(decide="listed-nodes"),
            {**AFFINITY, "pods": "list watch get", "podgroups.scheduling.x-k8s.io": "list watch", **UNITS},
            id="decide-which-looks-pods-up",
        ),
        pytest.param(Settings(preempt="verb"), {**AFFINITY, **BUDGETS, **UNITS}, id="preempt"),
        pytest.param(
            Settings(preempt="evict", bind=True), {**AFFINITY, **BUDGETS, **BOUND, **EVICTED, **UNITS}, id="evict"
        ),
        pytest.param(
            Settings(admin="127.0.0.1:1"), {**AFFINITY, **JUDGED, **BUDGETS, **UNITS, **OWNERS}, id="explanations"
        ),
        pytest.param(Settings(leader_election="kindred"), AFFINITY, id="a-lease-is-not-of-the-cluster"),
        pytest.param(Settings(explain_access="review"), AFFINITY, id="callers-review-themselves"),
    ],
)
def test_the_cluster_role_allows_what_is_done_with_the_settings_and_nothing_else(
    settings: Settings, expected: dict[str, str]
) -> None:
    assert expected == allowed(settings)


def test_default_constraints_that_are_listed_need_no_services_nor_controllers() -> None:
    arguments = '{"PodTopologySpread": {"defaultingType": "List"}}'
    spread, listed = (allowed(Settings(profile="PodTopologySpread", plugin_args=args)) for args in ("", arguments))
    assert listed.items() <= spread.items()


def test_the_groups_are_those_of_the_resources() -> None:
    groups = {rule["resources"][0]: rule["apiGroups"] for rule in cluster_rules(Settings(profile="full", bind=True))}
    assert {RESOURCES[kind].plural: [RESOURCES[kind].group] for kind in full_profile().kinds}.items() <= groups.items()
    assert groups["pods/binding"] == [""]
    evicting = cluster_rules(Settings(preempt="evict"))
    assert {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]} in evicting


@pytest.mark.parametrize(("source", "expected"), [("off", 0), ("prometheus", 0), ("metrics-api", 1)], ids=str)
def test_the_usage_of_nodes_may_be_read_only_where_it_is_read_from_the_api_server(
    source: Literal["off", "prometheus", "metrics-api"], expected: int
) -> None:
    settings = Settings(profile="full,LoadAware", usage_source=source, usage_prometheus_url="http://prometheus")
    rule = {"apiGroups": ["metrics.k8s.io"], "resources": ["nodes"], "verbs": ["get", "list"]}
    assert cluster_rules(settings).count(rule) == expected


def test_one_lease_may_be_made_read_and_changed_in_the_namespace_of_the_replica() -> None:
    settings = Settings(leader_election="mine")
    (role,) = (each for each in rbac_documents(settings, namespace="there") if each["kind"] == "Role")
    assert role["metadata"] == {"name": "kindred", "namespace": "there"}
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert role["rules"] == [
        {**leases, "verbs": ["create"]},
        {**leases, "resourceNames": ["mine"], "verbs": ["get", "update"]},
        {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
    ]


def test_a_replica_that_takes_over_may_mark_its_pod() -> None:
    mark = {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]}
    assert namespaced_rules(Settings(decide="any-node")) == [mark]
    assert namespaced_rules(Settings(leader_election="mine"))[-1] == mark


def test_without_leader_election_nothing_is_asked_for_a_lease() -> None:
    assert [each["kind"] for each in rbac_documents(Settings(bind=True))] == ["ClusterRole", "ClusterRoleBinding"]


def test_each_role_is_bound_to_the_service_account() -> None:
    settings = Settings(leader_election="kindred")
    documents = rbac_documents(settings, account="somebody", namespace="there")
    for role, binding in zip(documents[::2], documents[1::2], strict=True):
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": role["metadata"]["name"]}
        assert (binding["kind"], binding["metadata"]) == (f"{role['kind']}Binding", role["metadata"])
        assert binding["roleRef"] == reference
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "somebody", "namespace": "there"}]


def printed(*arguments: str, variables: dict[str, str] | None = None) -> list[dict[str, Any]]:
    result = CliRunner().invoke(main, ["rbac", *arguments], env=variables)
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.stdout))


def test_it_is_printed_as_manifests_for_the_settings_of_a_file_the_environment_and_flags(tmp_path: Path) -> None:
    file = tmp_path / "kindred.yaml"
    file.write_text(f"{HEAD}preempt: verb\nleaderElection: kindred\nprofile: full\n")
    rendered = printed(
        "--config", str(file), "--profile", "affinity", "--bind", "true", variables={"KINDRED_PREEMPT": "evict"}
    )
    settings = Settings(preempt="evict", bind=True, leader_election="kindred")
    assert rbac_documents(settings) == rendered


def test_what_is_printed_is_what_is_meant_also_for_names_that_look_like_numbers() -> None:
    settings = Settings(leader_election="on", plugin_args='{\n"NodeName": {}}')
    text = rbac_text(settings, account="3e4", namespace="12")
    assert rbac_documents(settings, account="3e4", namespace="12") == list(yaml.safe_load_all(text))


def output(form: str) -> str:
    result = CliRunner().invoke(main, ["rbac", "--leader-election", "kindred", "-o", form])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_json_is_a_list_as_kubectl_prints_several_objects() -> None:
    found = json.loads(output("json"))
    assert {"apiVersion": "v1", "kind": "List"}.items() <= found.items()
    assert rbac_documents(Settings(leader_election="kindred")) == found["items"]


def test_names_are_those_that_kubectl_prints() -> None:
    group = "rbac.authorization.k8s.io"
    kinds = ("clusterrole", "clusterrolebinding", "role", "rolebinding")
    assert output("name").splitlines() == [f"{kind}.{group}/kindred" for kind in kinds]


def test_the_table_has_a_line_for_each_rule() -> None:
    head, *lines = output("table").splitlines()
    assert head.split() == ["ROLE", "GROUP", "RESOURCE", "VERBS"]
    assert lines[0].split() == ["ClusterRole", "nodes", "list", "watch"]
    assert lines[-2].split() == ["Role", "coordination.k8s.io", "leases", "kindred", "get", "update"]
    assert lines[-1].split() == ["Role", "pods/status", "patch"]


@pytest.mark.parametrize("key", ["decideClaimsScheduler", "decideGroupsScheduler"])
def test_a_scheduler_whose_pods_have_devices_is_a_flag_and_in_the_head(key: str) -> None:
    flag = {"decideClaimsScheduler": "--decide-claims-scheduler", "decideGroupsScheduler": "--decide-groups-scheduler"}
    arguments = ["rbac", "--profile", "full", "--decide", "any-node", flag[key], "volumes"]
    head, _, roles = CliRunner().invoke(main, arguments).output.partition("apiVersion")
    assert f"{key} volumes" in " ".join(head.replace("#", "").split())
    assert "resources: [resourceclaims]" in roles

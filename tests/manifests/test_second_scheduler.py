"""The overlays with a second kube-scheduler: its configuration, roles and certificates, and the pods sent to it."""

import re
from pathlib import PurePosixPath

import pytest
import yaml

from app.settings.configuration import Configuration
from app.verbs.scopes import decide_scopes
from tests.manifests.conftest import DECIDE_NAMESPACES, VARIANTS, Variant
from tests.manifests.install_commands import INSTALL
from tests.manifests.kustomize import DECIDE, Manifest, of_kind, only

each_variant = pytest.mark.parametrize(
    "variant", [each for each in VARIANTS if each.overlay == DECIDE], ids=str, indirect=True
)
NAME = "kindred-scheduler"


@pytest.fixture
def scheduler_config(of_second_scheduler: list[Manifest]) -> Manifest:
    (text,) = only(of_second_scheduler, "ConfigMap")["data"].values()
    loaded: Manifest = yaml.safe_load(text)
    return loaded


def test_only_the_overlay_of_decide_brings_a_scheduler(variant: Variant, of_second_scheduler: list[Manifest]) -> None:
    assert bool(of_second_scheduler) == (variant.overlay == DECIDE)


@each_variant
def test_kindred_decides_for_each_profile_of_the_scheduler_and_for_no_other(
    scheduler_config: Manifest, configuration: Configuration
) -> None:
    scopes = decide_scopes(configuration.settings)
    assert scopes is not None
    names = {profile["schedulerName"] for profile in scheduler_config["profiles"]}
    assert names == scopes.by_scheduler.keys()
    assert configuration.settings.decide_claims_scheduler in names
    assert configuration.settings.decide_groups_scheduler in names
    assert scopes.of("default-scheduler") is None


@each_variant
def test_the_one_lease_of_the_scheduler_is_the_one_that_its_role_is_for(
    of_second_scheduler: list[Manifest], scheduler_config: Manifest
) -> None:
    election, (rule,) = scheduler_config["leaderElection"], only(of_second_scheduler, "Role")["rules"]
    assert only(of_second_scheduler, "Role")["metadata"]["namespace"] == election["resourceNamespace"]
    assert (rule["resources"], rule["resourceNames"]) == (["leases"], [election["resourceName"]])
    assert {"get", "update"} <= set(rule["verbs"]), "system:kube-scheduler may create any"
    assert only(of_second_scheduler, "Deployment")["spec"]["replicas"] > 1


@each_variant
def test_it_has_the_roles_of_a_kube_scheduler_under_its_own_account(of_second_scheduler: list[Manifest]) -> None:
    account = only(of_second_scheduler, "ServiceAccount")["metadata"]
    assert only(of_second_scheduler, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]
    bindings = [
        *of_kind(of_second_scheduler, "ClusterRoleBinding").values(),
        *of_kind(of_second_scheduler, "RoleBinding").values(),
    ]
    subject = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    assert all(binding["subjects"] == [subject] for binding in bindings)
    assert {(each["roleRef"]["name"], each["metadata"].get("namespace")) for each in bindings} == {
        ("system:kube-scheduler", None),
        ("system:volume-scheduler", None),
        (NAME, "kindred"),
        ("extension-apiserver-authentication-reader", "kube-system"),
    }


@each_variant
def test_the_files_that_it_shows_kindred_are_mounted_from_a_secret_that_the_docs_make(
    of_second_scheduler: list[Manifest], scheduler_config: Manifest
) -> None:
    pod = only(of_second_scheduler, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (extender,) = scheduler_config["extenders"]
    paths = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    folders = {str(PurePosixPath(file).parent) for key, file in extender["tlsConfig"].items() if key.endswith("File")}
    assert folders == {paths["tls"]}
    (secret,) = (volume["secret"]["secretName"] for volume in pod["volumes"] if volume["name"] == "tls")
    (command,) = re.findall(rf"create secret generic {secret} \\\n(.*)", INSTALL)
    made = {each.partition("=")[0] for each in re.findall(r"--from-file=(\S+)", command)}
    assert made == {PurePosixPath(file).name for file in extender["tlsConfig"].values()}


@each_variant
def test_neither_waits_for_the_scheduler_that_waits_for_kindred(rendered: list[Manifest]) -> None:
    deployments = of_kind(rendered, "Deployment").values()
    specs = [each["spec"]["template"]["spec"] for each in deployments]
    assert all("schedulerName" not in spec for spec in specs), "the cluster's own places them"
    assert all(spec["priorityClassName"] == "system-cluster-critical" for spec in specs)


@each_variant
def test_the_policy_sends_pods_to_schedulers_that_there_are_and_leaves_those_that_must_not_wait(
    variant: Variant, rendered: list[Manifest], of_second_scheduler: list[Manifest], scheduler_config: Manifest
) -> None:
    policies, bindings = (of_kind(rendered, f"MutatingAdmissionPolicy{kind}") for kind in ("", "Binding"))
    assert bool(policies) == bool(bindings) == (DECIDE_NAMESPACES in variant.components)
    sent_to: set[str] = set()
    for (name, policy), binding in zip(policies.items(), bindings.values(), strict=True):
        assert binding["spec"]["policyName"] == name
        selected = binding["spec"]["matchResources"]["namespaceSelector"]
        assert selected == {"matchLabels": {"kindred.dev/schedule": "decide"}}
        (mutation,) = policy["spec"]["mutations"]
        sent_to |= set(re.findall(r'"([\w-]+)"', mutation["applyConfiguration"]["expression"]))
        constraints = policy["spec"]["matchConstraints"]
        (namespaces,) = constraints["namespaceSelector"]["matchExpressions"]
        assert {namespaces["operator"], *namespaces["values"]} == {"NotIn", "kindred", "kube-system"}
        (labels,) = constraints["objectSelector"]["matchExpressions"]
        deployments = of_kind(rendered, "Deployment").values()
        own = {each["spec"]["template"]["metadata"]["labels"][labels["key"]] for each in deployments}
        assert (labels["operator"], set(labels["values"])) == ("NotIn", own)
    names = {profile["schedulerName"] for profile in scheduler_config["profiles"]}
    assert sent_to == (names if policies else set())
    assert only(of_second_scheduler, "Deployment")["metadata"]["namespace"] == "kindred"

"""The overlays with a second kube-scheduler: its configuration, roles and certificates, and the pods sent to it."""

import re
from pathlib import PurePosixPath

import pytest
import yaml

from app.commands.doctor.cluster_checks import gate_findings
from app.settings.configuration import Configuration
from app.verbs.scopes import decide_scopes
from tests.manifests.chart_equality import UNSET
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
def test_its_gates_are_off_in_every_release_and_no_release_is_the_default(
    of_second_scheduler: list[Manifest], configuration: Configuration
) -> None:
    (container,) = only(of_second_scheduler, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"registry.k8s.io/kube-scheduler:{UNSET}", "which no registry has"
    assert container["command"][2:] == ["--feature-gates=SchedulerAsyncAPICalls=false,SchedulerPopFromBackoffQ=false"]
    assert not [*gate_findings(container["command"][2].partition("=")[2], configuration.settings)]
    assert [*gate_findings("", configuration.settings)], "it decides, so the doctor asks for one of them"


@each_variant
def test_it_is_kept_apart_bounded_and_drained_as_kindred_itself(
    of_second_scheduler: list[Manifest], manifests: list[Manifest], pod: Manifest
) -> None:
    own = only(of_second_scheduler, "Deployment")["spec"]["template"]["spec"]
    for field in ("topologySpreadConstraints", "affinity", "tolerations", "nodeSelector"):
        assert named_as_kindred(own[field]) == pod["spec"][field]
    (container,) = own["containers"]
    assert container["resources"]["limits"] == {"memory": "4Gi"}
    (budget,) = of_kind(of_second_scheduler, "PodDisruptionBudget").values()
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels_of_its_pods(of_second_scheduler).items()
    assert budget["spec"]["minAvailable"] < only(of_second_scheduler, "Deployment")["spec"]["replicas"]
    assert only(manifests, "Deployment")["spec"]["replicas"] == 2


def labels_of_its_pods(of_second_scheduler: list[Manifest]) -> Manifest:
    labels: Manifest = only(of_second_scheduler, "Deployment")["spec"]["template"]["metadata"]["labels"]
    return labels


def named_as_kindred(value: object) -> object:
    return yaml.safe_load(yaml.safe_dump(value).replace(NAME, "kindred"))


@each_variant
def test_the_network_lets_it_reach_the_api_server_and_kindred_and_lets_monitoring_in(
    of_second_scheduler: list[Manifest], manifests: list[Manifest], pod: Manifest
) -> None:
    ours, theirs = only(of_second_scheduler, "NetworkPolicy")["spec"], only(manifests, "NetworkPolicy")["spec"]
    assert ours["podSelector"]["matchLabels"].items() <= labels_of_its_pods(of_second_scheduler).items()
    assert ours["policyTypes"] == theirs["policyTypes"]
    (container,) = only(of_second_scheduler, "Deployment")["spec"]["template"]["spec"]["containers"]
    (monitoring,) = (rule for rule in theirs["ingress"] if "from" in rule)
    assert ours["ingress"] == [{**monitoring, "ports": [{"port": each["name"]} for each in container["ports"]]}]
    (to_kindred,) = (rule for rule in ours["egress"] if rule not in theirs["egress"])
    assert len(ours["egress"]) == len(theirs["egress"]) + 1
    assert to_kindred["to"][0]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert to_kindred["ports"] == [{"port": "extender"}]


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

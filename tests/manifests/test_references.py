"""What the manifests say of each other: every name that one refers to is there, every selector finds what it is for."""

import shutil

import pytest

from app import __version__
from tests.manifests.conftest import Variant
from tests.manifests.install_commands import INSTALL
from tests.manifests.kustomize import (
    MANIFESTS,
    OVERLAYS,
    Manifest,
    built_renderer,
    of_kind,
    only,
    render,
    renderer,
    selects,
)

OF_THE_CLUSTER = {
    "Namespace",
    "ClusterRole",
    "ClusterRoleBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
}


def test_all_is_in_the_namespace_that_is_made_and_has_a_name_of_its_own(manifests: list[Manifest]) -> None:
    (namespace,) = of_kind(manifests, "Namespace")
    assert manifests[0]["kind"] == "Namespace"
    for manifest in manifests:
        expected = None if manifest["kind"] in OF_THE_CLUSTER else namespace
        assert expected == manifest["metadata"].get("namespace")
    assert len({(each["kind"], each["metadata"]["name"]) for each in manifests}) == len(manifests)


def test_all_can_be_found_by_one_label(manifests: list[Manifest]) -> None:
    assert all(selects({"app.kubernetes.io/name": "kindred"}, manifest) for manifest in manifests)


def test_the_pods_run_under_the_service_account_that_the_roles_are_bound_to(
    manifests: list[Manifest], pod: Manifest
) -> None:
    account = only(manifests, "ServiceAccount")
    assert account["metadata"]["name"] == pod["spec"]["serviceAccountName"]
    assert (account["automountServiceAccountToken"], pod["spec"]["automountServiceAccountToken"]) == (False, True)
    subject = {"kind": "ServiceAccount", **{key: account["metadata"][key] for key in ("name", "namespace")}}
    for kind in ("ClusterRole", "Role"):
        for name, binding in of_kind(manifests, f"{kind}Binding").items():
            assert binding["subjects"] == [subject]
            assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (kind, name)
            assert name in of_kind(manifests, kind)


def test_what_is_mounted_is_made_here_or_told_in_the_docs(
    manifests: list[Manifest], pod: Manifest, container: Manifest
) -> None:
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}
    certified = {each["spec"]["secretName"] for each in of_kind(manifests, "Certificate").values()}
    for volume in pod["spec"]["volumes"]:
        if "configMap" in volume:
            assert volume["configMap"]["name"] in of_kind(manifests, "ConfigMap")
        else:
            name = volume["secret"]["secretName"]
            assert f"create secret generic {name}" in INSTALL
            assert not certified or name in certified


def test_the_deployment_and_what_guards_it_select_the_pods(manifests: list[Manifest], pod: Manifest) -> None:
    specs = [each["spec"] for each in manifests if "spec" in each]
    selectors = [spec["selector"]["matchLabels"] for spec in specs if "matchLabels" in spec.get("selector", {})]
    selectors += [each["spec"]["podSelector"]["matchLabels"] for each in of_kind(manifests, "NetworkPolicy").values()]
    selectors += [each["labelSelector"]["matchLabels"] for each in pod["spec"]["topologySpreadConstraints"]]
    monitors = [each["spec"]["selector"]["matchLabels"] for each in of_kind(manifests, "ServiceMonitor").values()]
    of_pods = [selector for selector in selectors if selector not in monitors]
    assert len(of_pods) >= 4
    assert all(selects(selector, pod) for selector in of_pods)


def test_services_lead_to_ports_of_the_pods(manifests: list[Manifest], pod: Manifest, container: Manifest) -> None:
    numbers = {port["name"]: port["containerPort"] for port in container["ports"]}
    services = of_kind(manifests, "Service")
    assert [port["name"] for port in services["kindred"]["spec"]["ports"]] == ["extender"]
    for service in services.values():
        assert selects(service["spec"]["selector"], pod)
        for port in service["spec"]["ports"]:
            assert (port["targetPort"], port["port"]) == (port["name"], numbers[port["name"]])


def test_a_service_monitor_finds_one_service_and_a_port_of_it(variant: Variant, manifests: list[Manifest]) -> None:
    monitors = of_kind(manifests, "ServiceMonitor")
    assert bool(monitors) == bool(variant.components)
    for monitor in monitors.values():
        found = [
            service
            for service in of_kind(manifests, "Service").values()
            if selects(monitor["spec"]["selector"]["matchLabels"], service)
        ]
        (service,) = found
        assert service["spec"]["publishNotReadyAddresses"], "a replica that is not ready is what one wants to see"
        ports = {port["name"] for port in service["spec"]["ports"]}
        assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports


def test_probes_ask_at_the_port_that_needs_no_certificate(container: Manifest) -> None:
    probes = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe["port"] for probe in probes.values()} == {"health"}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startupProbe": "/livez",
        "livenessProbe": "/livez",
        "readinessProbe": "/readyz",
    }


def test_the_network_lets_in_the_scheduler_and_monitoring_and_nobody_to_the_admin_port(
    manifests: list[Manifest], container: Manifest
) -> None:
    spec = only(manifests, "NetworkPolicy")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert all(rule["ports"] for rule in spec["ingress"]), "a rule without ports is for all of them"
    let_in = [port["port"] for rule in spec["ingress"] for port in rule["ports"]]
    assert let_in == [port["name"] for port in container["ports"]]
    for rule in spec["ingress"]:
        assert ("from" in rule) == ({"port": "health"} in rule["ports"])


def test_certificates_are_signed_by_an_issuer_that_is_there(variant: Variant, manifests: list[Manifest]) -> None:
    issuers, certificates = of_kind(manifests, "Issuer"), of_kind(manifests, "Certificate")
    assert bool(certificates) == ("components/cert-manager" in variant.components)
    for certificate in certificates.values():
        assert certificate["spec"]["issuerRef"]["name"] in issuers
    signing = {each["spec"]["ca"]["secretName"] for each in issuers.values() if "ca" in each["spec"]}
    authorities = {each["spec"]["secretName"] for each in certificates.values() if each["spec"].get("isCA")}
    assert signing == authorities


def test_the_image_is_of_this_version(container: Manifest) -> None:
    assert container["image"] == f"kindred:{__version__}"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_kustomize_that_is_built_here_renders_the_same(overlay: str) -> None:
    if shutil.which("go") is None:
        pytest.skip("no Go to build kustomize with")
    commands = renderer(), built_renderer()
    by_kind_and_name = [
        {(each["kind"], each["metadata"]["name"]): each for each in render(MANIFESTS / "overlays" / overlay, command)}
        for command in commands
    ]
    assert by_kind_and_name[0] == by_kind_and_name[1]


def test_the_alerts_and_the_dashboard_come_with_observability(variant: Variant, manifests: list[Manifest]) -> None:
    chosen = "observability" in variant.components
    assert [*of_kind(manifests, "PrometheusRule")] == (["kindred"] if chosen else [])
    dashboards = [
        each for each in of_kind(manifests, "ConfigMap").values() if selects({"grafana_dashboard": "1"}, each)
    ]
    assert [[*each["data"]] for each in dashboards] == ([["grafana-dashboard.json"]] if chosen else [])

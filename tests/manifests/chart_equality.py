"""The objects of the chart beside those of the overlays, without what a chart has to name by itself.

These are the labels and annotations of Helm, the hash in a ConfigMap's name, the Namespace, which `helm install
--create-namespace` makes, the comments of settings, and the order of lists whose members have names: a patch of
kustomize puts new members first.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import yaml

from tests.manifests.conftest import CERT_MANAGER, DECIDE_NAMESPACES
from tests.manifests.kustomize import DECIDE, Manifest

Key: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""

REGISTRATION: Final = "kindred-registration"
"""The ConfigMap with the configuration for kube-scheduler, which the overlays leave to a person."""
UNSET: Final = "set-the-version-of-your-cluster"
"""The tag of kube-scheduler in the overlays."""
_OF_HELM: Final = ("helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by")
_CHECKSUM: Final = "checksum/config"
_NAMED: Final = ("env", "ports", "volumeMounts", "volumes")
_HASHED: Final = re.compile(r"(kindred-(?:scheduler-)?config)-[a-z0-9]{10}")

OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "components/service-monitor": {"serviceMonitor": {"enabled": True}},
    "components/critical-pods-quota": {"criticalPodsQuota": {"enabled": True}},
    "components/admin-service": {"adminService": {"enabled": True}},
    "observability": {"observability": {"enabled": True}},
    CERT_MANAGER: {"tls": {"source": "cert-manager"}},
    DECIDE_NAMESPACES: {"decideNamespaces": {"enabled": True}},
}
"""Component of the kustomizations -> the values of the chart that stand for it."""


def values_of(registration: str, components: Sequence[str] = ()) -> dict[str, Any]:
    """Return the values for an overlay with components."""
    values: dict[str, Any] = {"registration": registration}
    if registration == DECIDE:
        values["scheduler"] = {"image": {"tag": UNSET}}
    for component in components:
        values.update(OPTIONS[component])
    return values


def comparable(manifests: Iterable[Manifest]) -> dict[Key, Manifest]:
    """Return the objects by what they are, without what differs between Helm and kustomize."""
    return {
        _key(each): each
        for each in (_comparable(manifest) for manifest in manifests if manifest["kind"] != "Namespace")
        if each["metadata"]["name"] != REGISTRATION
    }


def _key(manifest: Manifest) -> Key:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def _comparable(manifest: Manifest) -> Manifest:
    made: Manifest = _settled(manifest)
    for metadata in _metadata_of(made):
        for label in _OF_HELM:
            metadata.get("labels", {}).pop(label, None)
        metadata.get("annotations", {}).pop(_CHECKSUM, None)
        if metadata.get("annotations") == {}:
            del metadata["annotations"]
    if made["kind"] == "ConfigMap":
        made["data"] = {key: yaml.safe_load(text) for key, text in made["data"].items()}
    return made


def _metadata_of(manifest: Manifest) -> list[dict[str, Any]]:
    template = manifest.get("spec", {}).get("template", {})
    return [manifest["metadata"], *([template["metadata"]] if "metadata" in template else [])]


def _settled(value: Any) -> Any:  # noqa: ANN401  # any value of YAML
    if isinstance(value, dict):
        return {key: _sorted(each) if key in _NAMED else _settled(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_settled(each) for each in value]
    return _HASHED.sub(r"\1", value) if isinstance(value, str) and _HASHED.fullmatch(value) else value


def _sorted(members: list[Any]) -> list[Any]:
    return sorted((_settled(each) for each in members), key=lambda each: str(each.get("name")))

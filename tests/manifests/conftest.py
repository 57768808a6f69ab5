"""Each overlay as it is rendered, alone and with every component."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml

from app.settings.configuration import Configuration, load_configuration
from tests.manifests.kustomize import (
    MANIFESTS,
    Manifest,
    NoRendererError,
    of_kindred,
    of_scheduler,
    only,
    render,
    renderer,
    with_components,
)

OPTIONS: Final = ("components/service-monitor", "components/critical-pods-quota", "observability")
CERT_MANAGER: Final = "components/cert-manager"
DECIDE_NAMESPACES: Final = "components/decide-namespaces"


class Variant(NamedTuple):
    """An overlay, with components."""

    overlay: str
    components: Sequence[str] = ()

    def __str__(self) -> str:
        return " with ".join([self.overlay, *(["components"] if self.components else [])])


VARIANTS: Final = (
    Variant("score-offload"),
    Variant("full-offload"),
    Variant("score-offload", OPTIONS),
    Variant("full-offload", (*OPTIONS, CERT_MANAGER)),
    Variant("decide"),
    Variant("decide", (*OPTIONS, CERT_MANAGER, DECIDE_NAMESPACES)),
)


ADMIN: Final = Variant("score-offload", ("components/admin-service",))
"""Beside the others, whose admin port nobody reaches but from the pod."""


@pytest.fixture(scope="session", params=VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> Variant:
    chosen: Variant = request.param
    return chosen


@pytest.fixture(scope="session")
def _renders() -> None:
    """Skip what nothing here can render."""
    try:
        renderer()
    except NoRendererError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def rendered(_renders: None, variant: Variant, tmp_path_factory: pytest.TempPathFactory) -> list[Manifest]:
    """Return all objects."""
    if not variant.components:
        return render(MANIFESTS / "overlays" / variant.overlay)
    return render(with_components(tmp_path_factory.mktemp("mine"), variant.overlay, variant.components))


@pytest.fixture(scope="session")
def manifests(rendered: list[Manifest]) -> list[Manifest]:
    """Return the objects without those of the second scheduler, where there is one."""
    return of_kindred(rendered)


@pytest.fixture(scope="session")
def of_second_scheduler(rendered: list[Manifest]) -> list[Manifest]:
    """Return the objects of the second scheduler; none where there is none."""
    return [manifest for manifest in rendered if of_scheduler(manifest)]


@pytest.fixture(scope="session")
def pod(manifests: list[Manifest]) -> Manifest:
    """Return the template of the pods."""
    template: Manifest = only(manifests, "Deployment")["spec"]["template"]
    return template


@pytest.fixture(scope="session")
def container(pod: Manifest) -> Manifest:
    (found,) = pod["spec"]["containers"]
    first: Manifest = found
    return first


@pytest.fixture
def configuration(
    manifests: list[Manifest], container: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Configuration:
    """Load the settings as a container does, which has a file of the ConfigMap and variables of its own."""
    for variable in container.get("env", ()):
        field = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        monkeypatch.setenv(variable["name"], variable["value"] if field is None else f"the-{field}")
    (config,) = (each for each in manifests if each["metadata"]["name"].startswith("kindred-config-"))
    file = tmp_path / "kindred.yaml"
    file.write_text(config["data"][file.name])
    return load_configuration(file)


@pytest.fixture
def extender(variant: Variant) -> Manifest:
    """Return what the registration at kube-scheduler says of Kindred."""
    text = (MANIFESTS / "scheduler" / f"{variant.overlay}.yaml").read_text("utf-8")
    (found,) = yaml.safe_load(text)["extenders"]
    registered: Manifest = found
    return registered

"""docs/install.md: commands that can be run here are, and what they name is there."""

import re
import socket
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from app.commands.rbac import rbac_text
from app.settings.configuration import load_configuration
from tests.manifests.install_commands import INSTALL, commands
from tests.manifests.kustomize import (
    MANIFESTS,
    OVERLAYS,
    of_kind,
    of_kindred,
    only,
    render,
    with_components,
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the commands that make certificates."""
    folder = tmp_path_factory.mktemp("certificates")
    for command in commands("openssl "):
        subprocess.run(command, shell=True, check=True, cwd=folder, capture_output=True)  # noqa: S602  # of our docs
    return folder


def test_the_certificates_of_the_docs_let_the_scheduler_in_and_nobody_without(certificates: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificates / "tls.crt", certificates / "tls.key")
    server.load_verify_locations(certificates / "ca.crt")
    server.verify_mode = ssl.CERT_REQUIRED
    client = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    client.load_cert_chain(certificates / "scheduler.crt", certificates / "scheduler.key")
    for name in ("kindred.kindred.svc", "127.0.0.1"):  # kube-scheduler's, and that of a port-forward
        peer = shaken_hands(server, client, name)
        assert ("commonName", "kube-scheduler") in [pair for (pair,) in peer["subject"]]
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        shaken_hands(server, ssl.create_default_context(cafile=str(certificates / "ca.crt")))


def shaken_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str = "kindred.kindred.svc") -> dict[str, Any]:
    """Return whom the server sees after a handshake with a client that looks for a name."""
    of_server, of_client = socket.socketpair()
    of_server.settimeout(30.0)

    def connect() -> None:
        # Who is refused hears of it, too, and the server tells why.
        with (
            suppress(OSError),
            of_client,
            client.wrap_socket(of_client, server_hostname=name) as connected,
        ):
            connected.recv(1)

    with of_server:
        thread = Thread(target=connect, daemon=True)
        thread.start()
        with server.wrap_socket(of_server, server_side=True) as accepted:
            peer = accepted.getpeercert()
    thread.join(30.0)
    assert peer is not None
    return dict(peer)


def test_the_secret_of_the_docs_is_made_of_files_that_are_there(certificates: Path) -> None:
    of_kindred_itself, of_scheduler = (
        [each.rpartition("=")[2] for each in re.findall(r"--from-file=(\S+)", command)]
        for command in commands("kubectl -n kindred create secret")
    )
    assert of_kindred_itself == ["tls.crt", "tls.key", "ca.crt"]
    assert of_scheduler == ["ca.crt", "scheduler.crt", "scheduler.key"]
    assert all((certificates / file).is_file() for file in [*of_kindred_itself, *of_scheduler])


@pytest.mark.parametrize("overlay", OVERLAYS)
@pytest.mark.usefixtures("_renders")
def test_a_kustomization_with_settings_and_roles_of_ones_own_is_rendered(overlay: str, tmp_path: Path) -> None:
    basis, further = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", INSTALL, re.DOTALL))
    assert basis["resources"] == ["../kindred/manifests/overlays/score-offload"]
    components = [path.removeprefix("../kindred/manifests/") for path in basis["components"]]
    file = with_components(tmp_path, overlay, components) / "kustomization.yaml"
    file.write_text(yaml.safe_dump({**basis, **further, **yaml.safe_load(file.read_text())}))
    settings = tmp_path / "kindred.yaml"
    mine = (MANIFESTS / "overlays" / overlay / "kindred.yaml").read_text().replace("affinity", "full")
    settings.write_text(mine)
    roles = rbac_text(load_configuration(settings).settings)
    (tmp_path / "rbac.yaml").write_text(roles)
    manifests = of_kindred(render(tmp_path))
    (container,) = only(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/kindred:0.1.0"
    (config,) = of_kind(manifests, "ConfigMap").values()
    assert config["data"] == {"kindred.yaml": mine}
    assert only(manifests, "ClusterRole")["rules"] == next(yaml.safe_load_all(roles))["rules"]


def test_every_folder_of_the_table_is_there() -> None:
    table = INSTALL.partition("\nAll is in the namespace")[0]
    rows = re.findall(r"^\| (`[a-z].*?) \|", table, re.MULTILINE)
    folders = [folder for row in rows for folder in re.findall(r"`([\w/-]+)`", row)]
    assert len(folders) > 8
    assert all((MANIFESTS / folder).is_dir() for folder in folders)

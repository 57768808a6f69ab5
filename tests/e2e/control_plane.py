"""etcd and kube-apiserver on the loopback, with throw-away certificates and no controller-manager."""

import os
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Final

import httpx
import yaml
from msgspec.json import encode

from tests.e2e.api import Api
from tests.e2e.binaries import API_SERVER, ETCD
from tests.e2e.programs import Program, free_port
from tests.openssl import Authority, trusting

_ACCOUNTS: Final = "accounts"
_MAX_OPERATIONS: Final = 128  # of a transaction, by default of etcd
_STORE_TIMEOUT: Final = 30.0  # seconds


class ControlPlaneAuthority(Authority):
    """The authority of a control plane, with the certificate of its servers on the loopback."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.make("server", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        self.make_key(_ACCOUNTS)

    @property
    def accounts_key(self) -> Path:
        """The key that signs tokens of service accounts."""
        return self.key(_ACCOUNTS)

    def issue_client(self, name: str, user: str, group: str | None = None) -> None:
        """Sign the certificate of a user, who is in a group (kube-apiserver reads CN as user and O as groups)."""
        subject = f"/O={group}/CN={user}" if group is not None else f"/CN={user}"
        self.make(name, "extendedKeyUsage=clientAuth", subject=subject)

    def client_tls(self, name: str | None = None) -> ssl.SSLContext:
        """Return the TLS context of a client that trusts the authority, with a certificate or without."""
        context = trusting(self.crt())
        if name is not None:
            context.load_cert_chain(self.crt(name), self.key(name))
        return context

    def kubeconfig(self, path: Path, server: str, *, client: str | None = None, token_file: Path | None = None) -> Path:
        """Write the kubeconfig of a user with a certificate or a token, and return its path."""
        user = {"tokenFile": str(token_file)} if token_file is not None else {}
        if client is not None:
            user = {"client-certificate": str(self.crt(client)), "client-key": str(self.key(client))}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "e2e",
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
            "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority": str(self.crt())}}],
            "users": [{"name": "e2e", "user": user}],
        }
        path.write_text(yaml.safe_dump(document))
        return path


ADMIN: Final = "admin"
SCHEDULER_USER: Final = "scheduler"

# Without a controller-manager nobody makes the `default` service accounts that every pod would be given, and nobody
# takes the not-ready taint off a node that TaintNodesByCondition has put on it.
_NO_CONTROLLERS: Final = "ServiceAccount,TaintNodesByCondition"


class ControlPlane:
    """A running etcd and kube-apiserver; either can be killed and started again over the same data."""

    def __init__(self, folder: Path, binaries: Mapping[str, Path], api_server_flags: Sequence[str] = ()) -> None:
        self.folder = folder
        self.authority = ControlPlaneAuthority(folder)
        self.authority.issue_client(ADMIN, "admin", "system:masters")
        self.authority.issue_client(SCHEDULER_USER, "system:kube-scheduler")
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self._etcd_url = f"http://127.0.0.1:{free_port()}"
        self._peer_url = f"http://127.0.0.1:{free_port()}"
        self._binaries = binaries
        self._flags = tuple(api_server_flags)
        self._data = folder / "etcd"
        self.api = Api(self.url, self.authority.client_tls(ADMIN))
        self.start_etcd()
        try:
            self.start_api_server()
        except BaseException:
            self.etcd.end()
            raise

    def start_etcd(self, data: str = "etcd") -> None:
        """Start etcd over the data of a name, which are made if they are not there."""
        command = [
            str(self._binaries[ETCD]),
            f"--data-dir={self.folder / data}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls={self._peer_url}",
            f"--initial-advertise-peer-urls={self._peer_url}",
            f"--initial-cluster=default={self._peer_url}",
            # The data are thrown away, and disks of test machines are slow.
            "--unsafe-no-fsync",
            # 4 GiB: 50,000 pods and their histories between two compactions.
            "--quota-backend-bytes=4294967296",
            "--log-level=warn",
        ]
        self.etcd = Program(ETCD, command, self.folder / "etcd.log")
        self.etcd.wait_until(lambda: _healthy(f"{self._etcd_url}/health"))

    def serve_with(self, *flags: str) -> None:
        """Start kube-apiserver anew with these further flags, unless it was started with them last."""
        if flags != self._further_flags or not self.api_server.running:
            self.api_server.kill()
            self.start_api_server(*flags)

    def start_api_server(self, *flags: str) -> None:
        """Start kube-apiserver, with further flags."""
        self._further_flags = flags
        made_by = self.authority
        command = [
            str(self._binaries[API_SERVER]),
            f"--etcd-servers={self._etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--tls-cert-file={made_by.crt('server')}",
            f"--tls-private-key-file={made_by.key('server')}",
            f"--client-ca-file={made_by.crt()}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={made_by.accounts_key}",
            f"--service-account-signing-key-file={made_by.accounts_key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--disable-admission-plugins={_NO_CONTROLLERS}",
            *self._flags,
            *flags,
        ]
        self.api_server = Program(API_SERVER, command, self.folder / "kube-apiserver.log")
        self.api_server.wait_until(self.api.is_ready)

    def compact(self) -> None:
        """Let etcd forget all versions but the latest, as kube-apiserver does every five minutes."""
        with httpx.Client(base_url=self._etcd_url) as client:
            # The zero byte is the first of all keys.
            status = client.post("/v3/kv/range", json={"key": "AA==", "limit": "1"}).raise_for_status().json()
            revision = status["header"]["revision"]
            client.post("/v3/kv/compaction", json={"revision": revision, "physical": True}).raise_for_status()

    def store(self, objects: Iterable[tuple[str, object]]) -> int:
        """Put objects into etcd by their keys below `/registry/`, past the API server; return the version of the last.

        This is several times as fast as its requests. They are to be as it has answered with such an object. The API
        server sees them later: a hundred thousand after some twenty seconds.
        """
        puts = ({"requestPut": {"key": f"/registry/{key}".encode(), "value": encode(each)}} for key, each in objects)
        with httpx.Client(base_url=self._etcd_url, timeout=_STORE_TIMEOUT) as client:

            def store(batch: Sequence[object]) -> int:
                response = client.post("/v3/kv/txn", content=encode({"success": batch})).raise_for_status()
                return int(response.json()["header"]["revision"])

            # All objects of a transaction have one version, and the API server's cache reaches it with the first of
            # them. So the last object has a transaction of its own: a list of the newest version then has all objects.
            last = next(puts)
            while following := [*islice(puts, _MAX_OPERATIONS)]:
                store([last, *following[:-1]])
                last = following[-1]
            return store([last])

    def kubeconfig(
        self, name: str, *, client: str | None = None, token_file: Path | None = None, server: str = ""
    ) -> Path:
        """Write the kubeconfig of a user, for this API server or what stands before it."""
        path = self.folder / f"{name}.kubeconfig"
        return self.authority.kubeconfig(path, server or self.url, client=client, token_file=token_file)

    def end(self) -> None:
        """Stop both."""
        self.api.close()
        self.api_server.end()
        self.etcd.end()


@contextmanager
def control_plane(
    folder: Path, binaries: Mapping[str, Path], api_server_flags: Sequence[str] = ()
) -> Iterator[ControlPlane]:
    """Run a control plane in a folder, which has to be there."""
    os.chmod(folder, 0o700)  # noqa: PTH101  # etcd warns of others
    plane = ControlPlane(folder, binaries, api_server_flags)
    try:
        yield plane
    finally:
        plane.end()


def _healthy(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(url, timeout=1.0).status_code == httpx.codes.OK
    return False

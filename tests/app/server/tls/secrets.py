"""Certificates of Kindred and of its clients, in files that change as kubelet changes a mounted Secret."""

import itertools
import ssl
from collections.abc import Mapping
from pathlib import Path

from tests.openssl import Authority


class Certificates(Authority):
    """An authority that has signed for Kindred, for a scheduler, and for somebody else."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        super().__init__(folder)
        self.make("server", "subjectAltName=DNS:kindred,IP:127.0.0.1")
        self.make("scheduler", "extendedKeyUsage=clientAuth", subject="/CN=system:kube-scheduler")
        self.make("stranger", "subjectAltName=DNS:stranger.example")

    def secret(self, server: str = "server") -> dict[str, bytes]:
        """Return the files that cert-manager writes."""
        return {
            "tls.crt": self.crt(server).read_bytes(),
            "tls.key": self.key(server).read_bytes(),
            "ca.crt": self.crt().read_bytes(),
        }

    def client_tls(self, name: str = "", trusted: Authority | None = None) -> ssl.SSLContext:
        """Make the context of a client that trusts this authority or another, and shows a certificate of this one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations((trusted or self).crt())
        if name:
            context.load_cert_chain(self.crt(name), self.key(name))
        return context


class MountedSecret:
    """A folder as kubelet's atomic writer makes it: files point into `..data`, which points to where they are."""

    def __init__(self, folder: Path, files: Mapping[str, bytes]) -> None:
        self._folder = folder
        self._versions = itertools.count()
        folder.mkdir()
        self.replace(files)
        for name in files:
            (folder / name).symlink_to(Path("..data", name))

    def file(self, name: str) -> Path:
        return self._folder / name

    def replace(self, files: Mapping[str, bytes]) -> None:
        """Put other files in the place of all of them, at once."""
        version = f"..{next(self._versions)}"
        (self._folder / version).mkdir()
        for name, content in files.items():
            (self._folder / version / name).write_bytes(content)
        (self._folder / "..data_tmp").symlink_to(version)
        (self._folder / "..data_tmp").rename(self._folder / "..data")

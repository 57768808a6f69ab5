"""The certificates of a service under load, replaced at run time like a Secret by kubelet."""

import shutil
import ssl
from pathlib import Path
from typing import Final

from tests.load.client_tls import client_tls
from tests.openssl import Authority

CLIENT_NAME: Final = "kube-scheduler"
_SERVER: Final = "subjectAltName=IP:127.0.0.1"
_CLIENT: Final = "extendedKeyUsage=clientAuth"


class Certificates:
    """One authority, a client's certificate, and a server's certificate that can be renewed at any time."""

    def __init__(self, folder: Path) -> None:
        self._authority = Authority(folder)
        self._authority.make(CLIENT_NAME, _CLIENT)
        self._current = folder / "current"
        self.rotations = -1  # the first is none
        self.rotate()

    @property
    def settings(self) -> dict[str, str]:
        """The environment of a Kindred with the server's certificate, which requires the client's."""
        return {
            "KINDRED_TLS_DIRECTORY": str(self._current),
            "KINDRED_TLS_CLIENT_NAMES": CLIENT_NAME,
        }

    @property
    def authority(self) -> Path:
        """The certificate of the authority that signed all others."""
        return self._authority.crt()

    @property
    def client(self) -> tuple[Path, Path]:
        """The client's certificate and key."""
        return self._authority.crt(CLIENT_NAME), self._authority.key(CLIENT_NAME)

    def client_tls(self) -> ssl.SSLContext:
        """Return the TLS of a client that sends its certificate, and trusts only the authority."""
        return client_tls(self.authority, *self.client)

    def rotate(self) -> None:
        """Replace the server's certificate and key at once, by a link to their folder."""
        self.rotations += 1
        name = f"server-{self.rotations}"
        self._authority.make(name, _SERVER)
        folder = self._authority.folder / name
        folder.mkdir()
        shutil.copy(self._authority.crt(name), folder / "tls.crt")
        shutil.copy(self._authority.key(name), folder / "tls.key")
        shutil.copy(self.authority, folder / "ca.crt")
        link = self._current.with_suffix(".new")
        link.symlink_to(folder)
        link.replace(self._current)

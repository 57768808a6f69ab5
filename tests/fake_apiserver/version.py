"""GET /version: the release of the server.

Source: k8s.io/apiserver pkg/server/routes/version.go, k8s.io/apimachinery pkg/version (Info).
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from tests.fake_apiserver.faults import Kind
from tests.fake_apiserver.store import Store
from tests.fake_apiserver.wire import Request

PATH: Final = "/version"


@dataclass(frozen=True, slots=True)
class VersionRequest:
    """A request for the version. `git_version` is the server's present one."""

    git_version: str
    kind: Kind = "version"
    method: str = "GET"

    def answer(self, _store: Store, _request: Request) -> tuple[int, bytes]:
        """Return status and body."""
        major, _, rest = self.git_version.removeprefix("v").partition(".")
        info = {
            "major": major,
            "minor": rest.partition(".")[0],
            "gitVersion": self.git_version,
            "platform": "linux/amd64",
        }
        return 200, msgspec.json.encode(info)


def version_request(request: Request, git_version: str) -> VersionRequest | None:
    """Read the path. None if it is another one."""
    return VersionRequest(git_version) if request.path == PATH else None

"""Kindred as a process, with the permissions that `kindred rbac` gives it."""

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from app.commands.rbac import rbac_documents
from app.settings.settings import PREFIX, Settings
from tests.e2e.api import Api, Manifest
from tests.e2e.programs import Program, free_port, wait_until

ROOT: Final = Path(__file__).parents[2]
MANIFESTS: Final = ROOT / "manifests"
BINDS: Final = {"KINDRED_BIND": "true"}
_ACCOUNTS: Final = "/api/v1/namespaces/kindred/serviceaccounts"
_MAX_EXPLAINED: Final = 20
"""Nodes that are explained one by one in an answer."""
_CAUGHT_UP: Final = 60.0  # seconds, far more than any test holds events back
_SAMPLE: Final = re.compile(r"^(\w+(?:\{[^}]*\})?) (\S+)$", re.MULTILINE)


def grant(api: Api, variables: Mapping[str, str]) -> None:
    """Make Kindred's service account, and the roles that it needs with settings, given as variables, and no others."""
    settings = {
        name.removeprefix(PREFIX).lower(): value for name, value in variables.items() if name.startswith(PREFIX)
    }
    for file in ("namespace", "serviceaccount"):
        api.apply(yaml.safe_load((MANIFESTS / "base" / f"{file}.yaml").read_text("utf-8")))
    for document in rbac_documents(Settings.model_validate({"admin": "127.0.0.1:0", **settings})):
        api.apply(document)


def write_token(api: Api, path: Path, account: str = "kindred") -> Path:
    """Write a token of a service account to a file, as a kubelet does for a pod."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    token: str = api.request("POST", f"{_ACCOUNTS}/{account}/token", request)["status"]["token"]
    path.write_text(token)
    return path


class Kindred:
    """`kindred serve` following an API server; it can be killed and started again at the same address."""

    def __init__(  # noqa: PLR0913  # what it is started with
        self,
        folder: Path,
        kubeconfig: Path,
        settings: Mapping[str, str] | None = None,
        *,
        module: str = "app.commands.cli",
        follows: bool = False,
        port: int = 0,
    ) -> None:
        """Start it. `follows`: another replica leads, so that it will not be ready. `port`: 0 is any that is free."""
        self._follows = follows
        self.port = port or free_port()
        self.admin_port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", module, "serve", "--kubeconfig", str(kubeconfig)]
        self._log = folder / "kindred.log"
        self._environment = {
            "PYTHONPATH": str(ROOT),
            "KINDRED_LISTEN": f"127.0.0.1:{self.port}",
            "KINDRED_ADMIN": f"127.0.0.1:{self.admin_port}",
            # What the registrations in manifests/scheduler ask for.
            "KINDRED_MAX_SCORE": "20",
            **(settings or {}),
        }
        self.start()

    def start(self) -> None:
        """Start it, and wait until it is ready, or as ready as one that follows can be."""
        self.program = Program("kindred", self._command, self._log, self._environment)
        self.program.wait_until(self._only_follows if self._follows else self.is_ready)

    def wait_for_explanations(self) -> None:
        """Wait until the resources that only explanations read are synced, too. Readiness does not depend on them."""
        self.program.wait_until(self._explains)

    def _explains(self) -> bool:
        with suppress(httpx.HTTPError):
            resources: dict[str, dict[str, Any]] = self.readiness()["resources"]
            return all(each["synced"] or each["absent"] for each in resources.values())
        return False

    def is_ready(self) -> bool:
        """Whether every resource is followed that requests of schedulers need."""
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/readyz", timeout=5.0).status_code == httpx.codes.OK
        return False

    def _only_follows(self) -> bool:
        with suppress(httpx.HTTPError):
            problems: list[str] = self.readiness()["problems"]
            return len(problems) == 1 and problems[0].startswith("another replica leads: ")
        return False

    def readiness(self) -> dict[str, Any]:
        """Return the body of /readyz."""
        body: dict[str, Any] = httpx.get(f"{self.url}/readyz", timeout=30.0).json()
        return body

    def ask(self, verb: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401  # JSON
        """Return the answer of a verb."""
        return httpx.post(f"{self.url}/{verb}", json=body, timeout=30.0).raise_for_status().json()

    def version(self) -> dict[str, Any]:
        """Return the body of /version."""
        body: dict[str, Any] = httpx.get(f"{self.url}/version", timeout=30.0).raise_for_status().json()
        return body

    def explain(self, pod: Manifest, nodes: Sequence[str]) -> list[dict[str, Any]]:
        """Return what is explained of each node, for a pod that is not there yet."""
        url, found = f"http://127.0.0.1:{self.admin_port}/explain", []
        for begin in range(0, len(nodes), _MAX_EXPLAINED):
            params = {"node": list(nodes[begin : begin + _MAX_EXPLAINED])}
            response = httpx.post(url, params=params, json={"pod": pod}, timeout=30.0).raise_for_status()
            found += [each["decision"] for each in response.json()["nodes"]]
        return found

    def differences(self) -> dict[str, Any]:
        """Return where the mirror differs from what the API server has."""
        url = f"http://127.0.0.1:{self.admin_port}/debug/mirror/diff"
        found: dict[str, Any] = httpx.get(url, timeout=60.0).raise_for_status().json()
        return found

    def is_equal(self) -> bool:
        """Whether the mirror has what the API server has."""
        found = self.differences().values()
        return not any(each[what] for each in found for what in ("missed", "redundant", "differing"))

    def assert_equal(self) -> None:
        """Wait until the watches have brought what the API server has. Raises AssertionError if they do not."""
        with suppress(TimeoutError):
            wait_until(self.is_equal, _CAUGHT_UP, "the mirror equals the API server's objects", every=0.5)
        assert self.is_equal(), self.differences()

    def has_on_a_node(self, uid: str) -> bool:
        """Whether a pod counts on some node, bound or assumed."""
        url = f"http://127.0.0.1:{self.admin_port}/debug/mirror"
        response = httpx.get(url, params={"pod": uid}, timeout=30.0)
        return response.status_code == httpx.codes.OK and bool(response.json()["nodes"])

    def samples(self) -> dict[str, float]:
        """Return the samples of /metrics: name with labels -> value."""
        text = httpx.get(f"{self.url}/metrics", timeout=30.0).raise_for_status().text
        return {name: float(value) for name, value in _SAMPLE.findall(text)}

    def end(self) -> None:
        """Stop it."""
        self.program.end()


def samples_of(samples: Mapping[str, float], name: str) -> dict[str, float]:
    """Return the samples of one metric: its labels as they are written -> value."""
    return {key.removeprefix(name): value for key, value in samples.items() if key.split("{")[0] == name}

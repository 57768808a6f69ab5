"""kube-scheduler as a process, with a configuration of manifests/scheduler or with its own defaults."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from tests.e2e.binaries import SCHEDULER
from tests.e2e.control_plane import ControlPlane
from tests.e2e.kindred import MANIFESTS
from tests.e2e.programs import PATIENCE, Program, free_port, wait_until

_DEPLOYMENT: Final = MANIFESTS / "second-scheduler" / "deployment.yaml"
SECOND: Final = "kindred-scheduler"
"""The Lease of the second scheduler."""
IN_TREE: Final = "in-tree"
"""The name of no file: kube-scheduler's own defaults, without an extender."""
_DEFAULT_NAME: Final = "default-scheduler"
_SAMPLE: Final = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)


def configuration(name: str, extender_url: str) -> dict[str, Any]:
    """Return a file of manifests/scheduler, with its extender at a URL; `IN_TREE`: one without an extender."""
    if name == IN_TREE:
        return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    text = (MANIFESTS / "scheduler" / f"{name}.yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    for extender in loaded["extenders"]:
        extender["urlPrefix"] = extender_url
        if extender_url.startswith("http:"):
            # Of TLS only what names files: those are where the file says on a node, and nowhere here.
            extender.pop("tlsConfig", None)
            extender.pop("enableHTTPS", None)
    return loaded


def shipped_flags(config: Mapping[str, Any]) -> list[str]:
    """Return the flags that the second scheduler is shipped with, for a configuration with its Lease; else none."""
    if config.get("leaderElection", {}).get("resourceName") != SECOND:
        return []
    (container,) = yaml.safe_load(_DEPLOYMENT.read_text("utf-8"))["spec"]["template"]["spec"]["containers"]
    return [flag for flag in container["command"][1:] if not flag.startswith("--config=")]


def with_in_tree_filters(extender_url: str, *, ignorable: bool = False) -> dict[str, Any]:
    """Return the configuration of no registration: all in-tree plugins, and an extender that filters after them."""
    config = configuration("score-offload", extender_url)
    (extender,) = config["extenders"]
    return {**config, "profiles": [], "extenders": [{**extender, "filterVerb": "filter", "ignorable": ignorable}]}


def scheduler_names(config: Mapping[str, Any]) -> list[str]:
    """Return the names of a configuration's profiles, in their order."""
    return [profile["schedulerName"] for profile in config.get("profiles", [])] or [_DEFAULT_NAME]


class Scheduler:
    """A running kube-scheduler."""

    def __init__(  # noqa: PLR0913  # what it is started with
        self,
        plane: ControlPlane,
        binaries: Mapping[str, Path],
        config: Mapping[str, Any],
        name: str,
        kubeconfig: Path,
        *,
        verbosity: int = 2,
        waits: bool = True,
        elects: bool = False,
        flags: Sequence[str] = (),
    ) -> None:
        """Start it, and wait until it is healthy unless told otherwise. `name` is that of its files.

        It takes part in an election, as the configuration says, only if it `elects`. `flags` come behind the
        shipped ones. kube-scheduler takes the gates of several `--feature-gates` together.
        """
        connection = {
            # What scheduler_perf of upstream sets: by default 50 requests a second are what is measured.
            "qps": 5000,
            "burst": 5000,
            **config.get("clientConnection", {}),
            "kubeconfig": str(kubeconfig),
        }
        election = config.get("leaderElection", {}) if elects else {"leaderElect": False}
        complete = {**config, "clientConnection": connection, "leaderElection": election}
        file = plane.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(complete))
        self._url = f"https://127.0.0.1:{free_port()}"
        command = [
            str(binaries[SCHEDULER]),
            f"--config={file}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._url.rpartition(':')[2]}",
            f"--tls-cert-file={plane.authority.crt('server')}",
            f"--tls-private-key-file={plane.authority.key('server')}",
            # So that whoever looks for where its time goes can ask, too.
            "--authorization-always-allow-paths=/readyz,/metrics,/debug/pprof/*",
            f"-v={verbosity}",
            *shipped_flags(config),
            *flags,
        ]
        self._tls = plane.authority.client_tls()
        self.program = Program(SCHEDULER, command, plane.folder / f"{name}.log")
        if waits:
            self.wait_until_healthy()

    def wait_until_healthy(self) -> None:
        """Wait until it is healthy. Raises ProgramError."""
        self.program.wait_until(self._is_healthy)

    def _is_healthy(self) -> bool:
        try:
            return httpx.get(f"{self._url}/readyz", verify=self._tls, timeout=5.0).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def log(self) -> str:
        """Return all that it has logged."""
        return self.program.log.read_text("utf-8", "replace")

    def wait_until_logged(self, text: str) -> None:
        """Wait until its log has a text."""
        wait_until(lambda: text in self.log(), PATIENCE, f"{text} in the log of kube-scheduler")

    def bound(self) -> int:
        """Count the pods that it has bound, by its log."""
        return self.program.log.read_bytes().count(b'"Successfully bound pod to node"')

    def samples(self) -> dict[tuple[str, str], float]:
        """Return the samples of its /metrics: (name, labels as they are written) -> value."""
        response = httpx.get(f"{self._url}/metrics", verify=self._tls, timeout=30.0).raise_for_status()
        return {(name, labels): float(value) for name, labels, value in _SAMPLE.findall(response.text)}

    def cpu_profile(self, seconds: int) -> bytes:
        """Return what it does in the next seconds, for `go tool pprof`. Raises httpx.HTTPError."""
        url = f"{self._url}/debug/pprof/profile"
        response = httpx.get(url, params={"seconds": seconds}, verify=self._tls, timeout=seconds + 30.0)
        return response.raise_for_status().content

    def failed_bindings(self) -> int:
        """Count the bindings that failed, after each of which it tries the pod again (schedule_one.go)."""
        return self.log().count('"Failed to bind pod"')

    def end(self) -> None:
        """Stop it."""
        self.program.end()

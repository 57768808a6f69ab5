"""A control plane with what stands beside it: nodes and pods, Kindred, a scheduler, a proxy."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from app.api_server.lease_api import MARK
from app.settings.limits import DEFAULTS
from tests.app.server.balancer import Balancer, balancer
from tests.e2e.api import NAMESPACES, NODES, Api, Manifest, condition_of, pods_path
from tests.e2e.binaries import MODULE, binaries, module_of
from tests.e2e.control_plane import SCHEDULER_USER, ControlPlane, control_plane
from tests.e2e.judges import rejections, violations
from tests.e2e.kindred import BINDS, MANIFESTS, Kindred, grant, write_token
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.proxy import ApiProxy, api_proxy
from tests.e2e.scheduler import Scheduler, configuration
from tests.e2e.shapes import node, on, pod

NAMESPACE: Final = "e2e"
PODS: Final = pods_path(NAMESPACE)
_OWN_PODS: Final = "/api/v1/namespaces/kindred/pods"
LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/kindred/leases/kindred"


LED: Final = DEFAULTS.lease_renew_deadline / 0.95
"""Seconds after the last renewal of a leader, by the rates of clocks, at which it has made its last decision."""
TAKEN: Final = 1.2
"""Seconds after the end of a Lease in which another replica tries to take it (docs/operate.md)."""
ROOM: Final = 15.0
"""Seconds beside the waits of a takeover, in which it also works on a busy machine. `make bench` has closer bounds."""


def killed(leader: Kindred) -> None:
    """End a replica as a crash does."""
    leader.program.kill()


def terminated(leader: Kindred) -> None:
    """End a replica as a rollout does."""
    assert leader.program.end(), "it drains for too long"


class Cluster:
    """What a test starts here ends with the test, and what it makes in the namespace `e2e`, and nodes, go too."""

    def __init__(self, plane: ControlPlane, binaries: Mapping[str, Path]) -> None:
        self.plane = plane
        self.api: Api = plane.api
        self._binaries = binaries
        self._started = ExitStack()
        self._numbers = count(1)
        self.api.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})

    def stop_all(self) -> None:
        """End what was started beside the control plane."""
        self._started.close()

    def tidy(self) -> None:
        """End what was started, and delete pods and nodes."""
        self.stop_all()
        if self.plane.api_server.running:
            self.api.delete_all(PODS)
            self.api.delete_all(NODES)

    def add_nodes(self, number: int, zones: int = 3) -> None:
        """Make nodes in some zones."""
        self.api.create_all(NODES, [node(index, zones) for index in range(number)])

    def start_proxy(self, client: str | None = None) -> ApiProxy:
        """Start a proxy before the API server, for those with a token or for the user `client`."""
        return self._started.enter_context(api_proxy(self.plane, client))

    def start_kindred(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        server: str = "",
        module: str = "app.commands.cli",
        follows: bool = False,
    ) -> Kindred:
        """Start Kindred with the roles that it needs; `server` is a proxy's URL, if there is one.

        `follows`: another replica leads.
        """
        token = self.admit_kindred(settings)
        kubeconfig = self.plane.kubeconfig("kindred", token_file=token, server=server)
        kindred = Kindred(self.plane.folder, kubeconfig, settings, module=module, follows=follows)
        self._started.callback(kindred.end)
        return kindred

    @contextmanager
    def two_replicas(
        self, settings: Mapping[str, str], server: str = ""
    ) -> Iterator[tuple[Kindred, Kindred, Balancer]]:
        """Start two replicas, of which the first leads, and a Service before them."""
        if self.api.items(LEASE.rpartition("/")[0]):
            self.api.delete(LEASE)
        elected = {**settings, "KINDRED_LEADER_ELECTION": "kindred", "POD_NAMESPACE": "kindred"}
        grant(self.api, settings)  # which makes the namespace
        deployment = yaml.safe_load((MANIFESTS / "base" / "deployment.yaml").read_text("utf-8"))
        spec = deployment["spec"]["template"]["spec"]
        for each in self.api.items(_OWN_PODS):
            self.api.delete(f"{_OWN_PODS}/{each['metadata']['name']}")
        for name in ("first", "second"):  # the replicas' own pods, which they mark when they take over
            self.api.create(_OWN_PODS, {"metadata": {"name": name}, "spec": {**spec, "nodeName": "elsewhere"}})
        first, second = (
            self.start_kindred({**elected, "POD_NAME": name}, server=server, follows=follows)
            for name, follows in (("first", False), ("second", True))
        )
        with balancer() as service:
            service.backends += [("127.0.0.1", each.port) for each in (first, second)]
            wait_until(lambda: len(service.ready) == 1, PATIENCE, "one ready replica")
            yield first, second, service

    def admit_kindred(self, settings: Mapping[str, str] | None = None) -> Path:
        """Make Kindred's service account and the roles that it needs; return the file of its token, a new one."""
        grant(self.api, settings or {})
        return write_token(self.api, self.plane.folder / "kindred.token")

    def start_scheduler(  # noqa: PLR0913  # each is a property of the one program
        self,
        config: Mapping[str, Any],
        *,
        verbosity: int = 2,
        waits: bool = True,
        account: str = "",
        server: str = "",
        flags: Sequence[str] = (),
    ) -> Scheduler:
        """Start a scheduler, and wait until it is healthy unless told otherwise; `server` is a proxy's URL.

        `account`: a service account of the namespace kindred, under which it runs and takes part in an election.
        """
        name = f"kube-scheduler-{next(self._numbers)}"
        if account:
            token = write_token(self.api, self.plane.folder / f"{name}.token", account)
            kubeconfig = self.plane.kubeconfig(name, token_file=token)
        else:
            kubeconfig = self.plane.kubeconfig(name, client=SCHEDULER_USER, server=server)
        scheduler = Scheduler(
            *(self.plane, self._binaries, config, name, kubeconfig),
            verbosity=verbosity,
            waits=waits,
            elects=bool(account),
            flags=flags,
        )
        self._started.callback(scheduler.end)
        return scheduler

    def full_offload(self, settings: Mapping[str, str] | None = None, *, server: str = "") -> tuple[Kindred, Scheduler]:
        """Start Kindred and a scheduler that is registered with full-offload.yaml."""
        kindred = self.start_kindred({**BINDS, **(settings or {})}, server=server)
        return kindred, self.start_scheduler(configuration("full-offload", kindred.url))

    def create_pods(self, pods: Iterable[Manifest]) -> None:
        """Make pods at once."""
        self.api.create_all(PODS, pods)

    def place(self, manifest: Manifest) -> str:
        """Make a pod, and return the node that a scheduler has bound it to."""
        path = f"{PODS}/{self.api.create(PODS, manifest)['metadata']['name']}"
        wait_until(lambda: "nodeName" in self.api.get(path)["spec"], PATIENCE, f"{path} bound", every=0.02)
        chosen: str = self.api.get(path)["spec"]["nodeName"]
        return chosen

    def wait_until_pods_are_seen(self, scheduler: Scheduler) -> None:
        """Wait until a scheduler, at verbosity 3, has handled all events of pods with a node so far.

        It handles them in the order of the writes, so a pod that is made on a node now is the last one.
        """
        name = f"seen-{next(self._numbers)}"
        self.api.create(PODS, on(pod(name), "elsewhere"))
        scheduler.wait_until_logged(f'"Add event for scheduled pod" pod="{NAMESPACE}/{name}"')

    def wait_until_nodes_are_seen(self, scheduler: Scheduler) -> None:
        """Do that for events of nodes. The node that is made for it has room for no pod."""
        name = f"seen-{next(self._numbers)}"
        self.api.create(NODES, {"metadata": {"name": name}, "spec": {"unschedulable": True}})
        scheduler.wait_until_logged(f'"Add event for node" node="{name}"')

    def pods(self) -> list[dict[str, Any]]:
        """Return the pods as the API server has them."""
        return self.api.items(PODS)

    def bound_names(self) -> set[str]:
        """Return the names of the pods that have a node."""
        return {pod["metadata"]["name"] for pod in self.pods() if pod["spec"].get("nodeName")}

    def bound(self) -> int:
        """Count the pods that have a node."""
        return len(self.bound_names())

    def condition(self, name: str) -> dict[str, Any]:
        """Return the condition PodScheduled of a pod, empty before its first attempt."""
        return condition_of(self.api.get(f"{PODS}/{name}"))

    def wait_bound(self, number: int) -> float:
        """Wait until so many pods have a node, and return the seconds that it took."""
        return wait_until(lambda: self.bound() >= number, PATIENCE, f"{number} pods bound", every=0.25)

    def marked(self) -> set[str]:
        """Return the replicas' own pods that they have marked when they took over."""
        return {
            each["metadata"]["name"]
            for each in self.api.items(_OWN_PODS)
            if any(condition["type"] == MARK for condition in each["status"].get("conditions", ()))
        }

    def lease(self) -> tuple[str, datetime]:
        """Return which replica holds the Lease, empty if it was released, and when that was written last."""
        spec = self.api.get(LEASE)["spec"]
        return spec.get("holderIdentity", "").partition("_")[0], datetime.fromisoformat(spec["renewTime"])

    def violations(self) -> list[str]:
        """Return the rules that the final state breaks."""
        return violations(self.api.items(NODES), self.pods())

    def rejections(self) -> list[str]:
        """Return what kubelets would reject of the final state."""
        return rejections(self.api.items(NODES), self.pods())


@contextmanager
def cluster_of(release: str) -> Iterator[Cluster]:
    """Start a control plane of a release of Kubernetes; without one, of that of tests/e2e/go. Raises BuildError."""
    programs = binaries(module=module_of(release) if release else MODULE)
    with TemporaryDirectory() as folder, control_plane(Path(folder), programs) as plane:
        cluster = Cluster(plane, programs)
        try:
            yield cluster
        finally:
            cluster.stop_all()

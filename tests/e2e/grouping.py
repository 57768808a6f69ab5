"""Kindred beside a kube-scheduler that places groups, each behind a proxy, and what must hold of groups in the end."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from tests.e2e.api import Api, Manifest, condition_of
from tests.e2e.binaries import chosen_minor
from tests.e2e.cluster import NAMESPACE, PODS, Cluster
from tests.e2e.control_plane import SCHEDULER_USER
from tests.e2e.deciding import assert_followed
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.shapes import node, pod
from tests.throughput.modes import LISTED_NODES, MODES, Mode

# Groups of scheduling.k8s.io, which kube-scheduler places together, and the scheduler name of their members.
#
# What differs between releases is here: the version and the kinds of the API, the feature gates, and what they do.

_PART: Final = "part"
"""The name of the only group of a Workload, in 1.35."""
GROUPS: Final = "kindred-groups"
"""The scheduler name of members."""
SETTINGS: Final = {"KINDRED_DECIDE_GROUPS_SCHEDULER": GROUPS, "KINDRED_FEATURE_GATES": "GenericWorkload=true"}
_NO_CONTROLLER: Final = "PodGroupProtection"
"""What gives PodGroups a finalizer that only a controller takes off."""


class _Release(NamedTuple):
    version: str
    """The version of the API that has the groups."""
    gates: str
    cycles: bool = True
    """Whether kube-scheduler places a group as a unit. In 1.35 members wait for each other in Permit."""
    pauses: bool = True
    """Whether it pauses before it tries a gang again. In 1.36 the gang's own Permit activates its members."""


_ALPHA_GATES: Final = "GenericWorkload=true,GangScheduling=true"
_RELEASES: Final[Mapping[int, _Release]] = {
    35: _Release("v1alpha1", _ALPHA_GATES, cycles=False),
    36: _Release("v1alpha2", _ALPHA_GATES, pauses=False),
    37: _Release("v1beta1", "GenericWorkload=true"),
}
"""The minor number of the first release -> what it has."""


def has_cycles() -> bool:
    """Whether the chosen release has PodGroups, each of which kube-scheduler places as a unit."""
    return chosen_minor() >= min(_RELEASES) and _release().cycles


def has_permit() -> bool:
    """Whether the chosen release has gangs that wait in Permit, of a Workload."""
    return chosen_minor() >= min(_RELEASES) and not _release().cycles


def has_pauses() -> bool:
    """Whether kube-scheduler pauses before it tries a gang again that has no room."""
    return _release().pauses


def server_flags() -> Sequence[str]:
    """Return the flags with which kube-apiserver serves PodGroups."""
    release = _release()
    served = (f"--feature-gates={release.gates}", f"--runtime-config=scheduling.k8s.io/{release.version}=true")
    return (*served, f"--disable-admission-plugins={_NO_CONTROLLER}") if release.cycles else served


def scheduler_flags() -> Sequence[str]:
    """Return the flags with which kube-scheduler places groups."""
    return (f"--feature-gates={_release().gates}",)


def settings(mode: Mode) -> dict[str, str]:
    """Return what Kindred is set to. Pods of `kindred` have the scope of the mode."""
    return {**mode.settings, **SETTINGS, "KINDRED_DECIDE_SCHEDULERS": mode.scheduler_name}


def create_group(api: Api, name: str, minimum: int | None) -> None:
    """Make a group: a gang with a minimum, or a basic one."""
    policy: dict[str, Any] = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    spec = {"schedulingPolicy": policy} if _release().cycles else {"podGroups": [{"name": _PART, "policy": policy}]}
    api.create(_collection(), {"metadata": {"name": name}, "spec": spec})


def all_groups(api: Api) -> list[dict[str, Any]]:
    """Return the groups as the API server has them."""
    return api.items(_collection())


def delete_groups(api: Api) -> None:
    """Delete all groups."""
    api.delete_all(_collection())


def member(group: str, number: int, labels: Mapping[str, str] | None = None, **more: Any) -> Manifest:  # noqa: ANN401  # arguments of `pod`
    """Return a member of a group; `more` is what `pod` takes."""
    reference: dict[str, Any] = {"schedulingGroup": {"podGroupName": group}}
    if not _release().cycles:
        reference = {"workloadRef": {"name": group, "podGroup": _PART}}
    return pod(f"{group}-{number}", labels, **{"schedulerName": GROUPS, **reference, **more})


def bound_members(pods: Iterable[Manifest]) -> Counter[str]:
    """Count the members with a node by group."""
    groups = (_group_of(each["spec"]) for each in pods if each["spec"].get("nodeName"))
    return Counter(group for group in groups if group)


def gangs_in_part(groups: Iterable[Manifest], pods: Iterable[Manifest]) -> Iterator[str]:
    """Yield a line for each gang of which fewer members have a node than its minimum, but some. This is the judge."""
    bound = bound_members(pods)
    for each in groups:
        name, spec = each["metadata"]["name"], each["spec"]
        policy = spec["schedulingPolicy"] if "schedulingPolicy" in spec else spec["podGroups"][0]["policy"]
        minimum = policy["gang"]["minCount"] if "gang" in policy else 0
        if 0 < bound[name] < minimum:
            yield f"{bound[name]} members of {name} have a node, which needs {minimum}"


def _group_of(spec: Mapping[str, Any]) -> str | None:
    name: str | None = (spec.get("schedulingGroup") or {}).get("podGroupName") or spec.get("workloadRef", {}).get(
        "name"
    )
    return name


def _collection() -> str:
    plural = "podgroups" if _release().cycles else "workloads"
    return f"/apis/scheduling.k8s.io/{_release().version}/namespaces/{NAMESPACE}/{plural}"


def _release() -> _Release:
    return _RELEASES[max(first for first in _RELEASES if first <= chosen_minor())]


LATE: Final = 1.0  # seconds
PORT: Final = 8080
"""The host port that pods of one place on each node have."""


@contextmanager
def served_groups(cluster: Cluster) -> Iterator[None]:
    """Serve PodGroups, and delete those of a test behind it."""
    cluster.plane.serve_with(*server_flags())
    yield
    cluster.stop_all()
    delete_groups(cluster.api)


class Grouping:
    """Kindred and a kube-scheduler. Kindred sees events a second late from the beginning."""

    def __init__(self, cluster: Cluster, mode: Mode = MODES[LISTED_NODES], module: str = "app.commands.cli") -> None:
        """Start both."""
        self._cluster = cluster
        self.events = cluster.start_proxy()
        self.kindred = cluster.start_kindred(settings(mode), server=self.events.url, module=module)
        self.bindings = cluster.start_proxy(SCHEDULER_USER)
        config = mode.config(self.kindred.url)
        self.scheduler = cluster.start_scheduler(config, server=self.bindings.url, flags=scheduler_flags())
        self.events.delay = LATE

    def restart_kindred(self) -> None:
        """Kill Kindred, and start it."""
        self.kindred.program.kill()
        self.kindred.start()

    def create_members(self, name: str, minimum: int | None, members: Sequence[Manifest]) -> None:
        """Make a group, and its members one after the other, so that their order is known."""
        create_group(self._cluster.api, name, minimum)
        for each in members:
            self._cluster.api.create(PODS, each)

    def hold(self, gang: Sequence[Manifest], minimum: int, stored: Sequence[Manifest] | None = None) -> None:
        """Make a gang, and let no binding of it come to the server; wait until those of `stored`, or all, are sent."""
        self.bindings.hold_bindings(names(gang))
        self.create_members("gang", minimum, gang)
        self.wait_until_bindings_are_stored(names(gang if stored is None else stored))

    def assert_that_others_are_rejected(self, pods: Sequence[Manifest]) -> None:
        """Make ordinary pods that want the places of members, and wait until a scheduler has refused all."""
        self._cluster.create_pods(pods)
        wait_until_rejected(self._cluster, pods)

    def assert_bound(self, number: int, expected: set[str]) -> None:
        """Let bindings go on; then so many members are bound, no other pod is, and no rule is broken."""
        self.bindings.release_bindings()
        wait_until_members_are_bound(self._cluster, "gang", number)
        assert self._cluster.bound_names() == expected
        self.assert_followed()

    def assert_followed(self) -> None:
        """No rule is broken, no pod is assumed, and the mirror equals the cluster."""
        assert broken_rules(self._cluster) == []
        assert_followed(self.kindred)

    def wait_until_bindings_are_stored(self, names: Iterable[str]) -> None:
        """Wait until kube-scheduler has sent the bindings of pods."""
        required = set(names)
        wait_until(lambda: required <= set(self.bindings.bindings), PATIENCE, f"bindings of {sorted(required)}")


def places(number: int, cpu: str = "4") -> list[Manifest]:
    """Return nodes that have room for one pod with the host port each."""
    return [node(at, allocatable={"cpu": cpu, "memory": "64Gi", "pods": "110"}) for at in range(number)]


def members(number: int, group: str = "gang", **more: Any) -> list[Manifest]:  # noqa: ANN401  # arguments of `pod`
    """Return members that take a place each."""
    return [member(group, at, host_port=PORT, **more) for at in range(number)]


def rivals(number: int, first: int = 0, **more: Any) -> list[Manifest]:  # noqa: ANN401  # arguments of `pod`
    """Return ordinary pods that take a place each; `more` is what `pod` takes."""
    shape = {"host_port": PORT, **more}
    return [pod(f"rival-{at}", schedulerName="kindred", **shape) for at in range(first, first + number)]


def names(pods: Iterable[Manifest]) -> list[str]:
    """Return the names of pods."""
    return [each["metadata"]["name"] for each in pods]


def wait_until_rejected(cluster: Cluster, pods: Iterable[Manifest]) -> None:
    """Wait until a scheduler has found no node for any of the pods. It is an error if one has a node."""
    for name in names(pods):
        wait_until(lambda name=name: _outcome(cluster, name) == "Unschedulable", PATIENCE, f"{name} refused")  # type: ignore[misc]


def wait_until_tried(cluster: Cluster, pods: Iterable[Manifest]) -> None:
    """Wait until a scheduler has found no node for any of the pods, or has failed. It is an error if one has a node.

    kube-scheduler 1.37.1 fails behind a gang whose oldest member has no claim: DynamicResources has no state then.
    """
    for name in names(pods):
        wait_until(lambda name=name: bool(_outcome(cluster, name)), PATIENCE, f"{name} tried")  # type: ignore[misc]


def _outcome(cluster: Cluster, name: str) -> str:
    """Return why a pod has no node; empty if nobody has said it yet."""
    found = cluster.api.get(f"{PODS}/{name}")
    assert "nodeName" not in found["spec"], f"{name} has {found['spec'].get('nodeName')}"
    return str(condition_of(found).get("reason", ""))


def wait_until_nominated(cluster: Cluster, number: int) -> dict[str, str]:
    """Wait until so many pods have a nominated node, and return it of each."""

    def found() -> dict[str, str]:
        pods = {each["metadata"]["name"]: each["status"].get("nominatedNodeName") for each in cluster.pods()}
        return {name: node for name, node in pods.items() if node}

    wait_until(lambda: len(found()) == number, PATIENCE, f"{number} pods nominated")
    return found()


def broken_rules(cluster: Cluster) -> list[str]:
    """Return what the API server's objects break: rules, what kubelets reject, and gangs that are there in part."""
    return [*cluster.violations(), *cluster.rejections(), *gangs_in_part(all_groups(cluster.api), cluster.pods())]


def wait_until_members_are_bound(cluster: Cluster, group: str, number: int) -> None:
    """Wait until so many members of a group have a node, and no fewer."""
    wait_until(lambda: bound_members(cluster.pods())[group] >= number, PATIENCE, f"{number} members of {group} bound")

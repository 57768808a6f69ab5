"""Groups of scheduling.k8s.io, which kube-scheduler places together, and the scheduler name of their members.

What differs between releases is here: the version and the kinds of the API, the feature gates, and what they do.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tests.e2e.api import Api, Manifest
from tests.e2e.binaries import chosen_module, kubernetes_version
from tests.e2e.cluster import NAMESPACE
from tests.e2e.shapes import pod
from tests.throughput.modes import Mode

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
    return _minor() >= min(_RELEASES) and _release().cycles


def has_permit() -> bool:
    """Whether the chosen release has gangs that wait in Permit, of a Workload."""
    return _minor() >= min(_RELEASES) and not _release().cycles


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
    return _RELEASES[max(first for first in _RELEASES if first <= _minor())]


def _minor() -> int:
    return int(kubernetes_version(chosen_module()).split(".")[1])

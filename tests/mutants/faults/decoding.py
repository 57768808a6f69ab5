"""Faults of the decoders: fields that are dropped, misread, or given another default."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="toleration-without-an-operator",
        breaks="A toleration without an operator tolerates nothing but by its own name.",
        old='wire.operator or "Equal"',
        new='wire.operator or "Exists"',
    ),
    Fault(
        id="node-taints-honored-by-default",
        breaks="A topology spread constraint without nodeTaintsPolicy leaves tainted nodes out.",
        old="node_taints_policy=IGNORE if wire.node_taints_policy is None else wire.node_taints_policy,",
        new="node_taints_policy=HONOR if wire.node_taints_policy is None else wire.node_taints_policy,",
    ),
    Fault(
        id="namespace-selector-with-the-own-namespace",
        breaks="A term with a namespaceSelector reaches the pod's own namespace as well.",
        old="    if not namespaces and term.namespace_selector is None:",
        new="    if not namespaces:",
    ),
    Fault(
        id="ports-of-init-containers-taken",
        breaks="Host ports of init containers that have ended count as taken.",
        old='taken += ports if each.restart_policy == "Always" else []',
        new="taken += ports",
    ),
    Fault(
        id="last-image-of-a-name-counts",
        breaks="Of several images of one name the size of the last counts.",
        old="            sizes.setdefault(intern(name), _shared_size(image.size_bytes or 0))",
        new="            sizes[intern(name)] = _shared_size(image.size_bytes or 0)",
    ),
    Fault(
        id="disrupted-pods-dropped",
        breaks="A budget comes without the pods whose disruption it has counted.",
        old="        disrupted_pods=frozenset(status.disrupted_pods or ()),\n",
        new="",
        tests=("test_kinds.py",),
    ),
    Fault(
        id="limit-of-zero-is-none",
        breaks="A CSI driver that allows no volume on a node is taken to allow any number.",
        old="if driver.allocatable is not None and driver.allocatable.count is not None",
        new="if driver.allocatable is not None and driver.allocatable.count",
    ),
    Fault(
        id="any-terminating-pod-was-preempted",
        breaks="A pod that terminates for another reason makes its preemptor wait.",
        old='return condition.status == "True" and condition.reason == "PreemptionByScheduler"',
        new='return condition.status == "True"',
    ),
    Fault(
        id="workload-of-1.35-is-no-group",
        breaks="A member of a gang in 1.35 is decided for as if it were alone, and is said to fit.",
        old="    if reference is not None:",
        new="    if False:",
        tests=("test_decode_pod.py", "deciding/test_odd_requests.py"),
    ),
    Fault(
        id="weight-of-a-term-in-the-wrong-list",
        breaks="Preferred anti-affinity is read from podAffinity.",
        old='"preferredAntiAffinityTerms", f"podAntiAffinity.{_PREFERRED}", lambda: _preferred(namespace, repel)',
        new='"preferredAntiAffinityTerms", f"podAntiAffinity.{_PREFERRED}", lambda: _preferred(namespace, attract)',
    ),
    Fault(
        id="kind-of-an-azure-disk-dropped",
        breaks="A volume with an Azure disk of any kind is taken for one of its CSI driver.",
        old="                kind = disk.kind if isinstance(disk, _AzureDisk) else None",
        new="                kind = None",
        tests=("test_decode_storage.py",),
    ),
    Fault(
        id="judged-field-that-no-decoder-reads",
        breaks="The decoder reads a port's address by a name that the API does not have.",
        old='host_ip: str | None = msgspec.field(default=None, name="hostIP")',
        new="host_ip: str | None = None",
        tests=("test_judges.py",),
    ),
)

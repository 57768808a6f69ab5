"""Faults of what is said of devices, of the changes that are tried, and of the events that wake a pod."""

from typing import Final

from tests.mutants.fault import Fault

_EXPLAINING: Final = ("dynamicresources/test_explaining.py",)

FAULTS: Final = (
    Fault(
        id="claim-of-a-pod-that-ends-keeps-its-devices",
        breaks="A claim that no pod uses any more is supposed to keep its devices, so no pod to remove is proposed.",
        old="reserved_for=left, allocation=claim.allocation if left else None)",
        new="reserved_for=left, allocation=claim.allocation)",
        tests=_EXPLAINING,
    ),
    Fault(
        id="claim-that-another-pod-uses-is-freed",
        breaks="A pod is proposed to be removed, although another one still uses its claim.",
        old="reserved_for=left, allocation=claim.allocation if left else None)",
        new="reserved_for=left, allocation=None)",
        tests=_EXPLAINING,
    ),
    Fault(
        id="claim-of-another-namespace-shown",
        breaks="A tenant sees the name of a claim of a namespace whose pods it may not list.",
        old='holder = users[0] if len(users) == 1 else PodText("claim ", ClaimName(name))',
        new='holder = users[0] if len(users) == 1 else PodText("claim ", name)',
        tests=_EXPLAINING,
    ),
    Fault(
        id="every-claim-event-wakes",
        breaks="A pod whose claim is missing is said to wait for changes of other claims, which kube-scheduler skips.",
        old='        return action == "Add"\n    return action == "Update"',
        new="        return True\n    return True",
    ),
    Fault(
        id="device-in-use-counted-as-free",
        breaks="A device that a claim holds is counted among the free ones.",
        old="            is_in_use = position in usage.taken and not need.request.admin_access",
        new="            is_in_use = False",
        tests=_EXPLAINING,
    ),
    Fault(
        id="copied-node-without-devices",
        breaks="A node that is supposed like another one has none of its devices.",
        old="        if each.nodes.node_name == like:",
        new="        if each.nodes.node_name == name:",
        tests=_EXPLAINING,
    ),
    Fault(
        id="devices-after-all-other-measurements",
        breaks="The short text leaves out which device is missing, for a pod that other plugins reject on many nodes.",
        old="        yield from self.facts\n        yield from (each.text for each in self.resources",
        new="        yield from (each.text for each in self.resources",
        tests=_EXPLAINING,
    ),
    Fault(
        id="copies-of-nodes-without-devices",
        breaks="Of a large cluster, nodes without devices are copied for a pod that needs one, and none that helps.",
        old="all(each.matching for each in survey.on(at))]",
        new="survey.on(at)]",
        tests=_EXPLAINING,
    ),
    Fault(
        id="supposed-removal-keeps-the-claim",
        breaks="A pod that is supposed to be gone still holds its devices.",
        old="        if place < len(request.what_if.remove):",
        new="        if place < 0:",
        tests=("tests/app/commands/test_explain_devices.py",),
    ),
    Fault(
        id="numbers-of-devices-of-the-last-plugin",
        breaks="Programs get the numbers of one plugin alone.",
        old='_ADDED_UP: Final = ("bound_elsewhere", "facts", "counts")',
        new='_ADDED_UP: Final = ("bound_elsewhere", "facts")',
        tests=("test_amounts.py",),
    ),
    Fault(
        id="needed-of-all-in-the-cluster",
        breaks="A request for all devices of a node needs all of the cluster, in numbers.",
        old="if is_of_node or request.mode != ALL else {}",
        new="if is_of_node or request.mode else {}",
        tests=("dynamicresources/test_explaining.py",),
    ),
    Fault(
        id="claim-freed-that-others-use",
        breaks="It is said that kube-scheduler frees a claim that other pods use.",
        old="not {*claim.reserved_for} <= {decision.pod.uid} or ",
        new="",
    ),
    Fault(
        id="claim-freed-on-nodes-that-are-never-reached",
        breaks="It is said that kube-scheduler frees a claim though other rules keep the pod off each such node.",
        old="if not any(codes[at] for codes in others))\n    return any(node",
        new="if True)\n    return any(node",
    ),
    Fault(
        id="rule-of-the-taint-of-a-driver",
        breaks="A taint that the driver has set is said to be of a DeviceTaintRule with an equal one.",
        old="        if taint in device.device.taints:\n            return text\n",
        new="",
    ),
    Fault(
        id="nodes-of-slices-that-exist-told-as-lost",
        breaks="ResourceSlices of nodes that exist are said to be for nodes that do not.",
        old="        lost = [each for each in names if each and each not in slots]",
        new="        lost = [each for each in names if each]",
    ),
    Fault(
        id="nearest-node-without-devices-told",
        breaks="Of a pod that other rules keep off the nodes with devices, a node without any is told as the nearest.",
        old="if first is None or (len(positions)",
        new="if first is None or (0 and len(positions)",
    ),
    Fault(
        id="rule-of-other-devices-named",
        breaks="Of several DeviceTaintRules with equal taints, one of other devices is named, which is then deleted.",
        old="[rule for rule in every if rule.taint == taint and rule.is_for(driver, pool)]",
        new="[rule for rule in every if rule.taint == taint]",
    ),
    Fault(
        id="devices-of-replaced-pods-held",
        breaks="The next pod of a workload fits nowhere, because the pods that go before it keep their devices.",
        old="            fork.remove(pod)\n            free_claims(self.mirror, fork, pod)\n",
        new="            fork.remove(pod)\n",
        tests=("commands/test_explain_devices.py",),
    ),
    Fault(
        id="parts-of-amounts-rounded",
        breaks="A claim is to be made with 2 instead of 2 cores, where 1200m instead of 1500m are meant.",
        old="        if amount % (1000 * size):",
        new="        if amount % (1000 * size) < 0:",
        tests=("dynamicresources/test_sentences.py",),
    ),
    Fault(
        id="lower-amount-between-steps",
        breaks="An amount is proposed that the policy of the device rounds up again, so that no remedy is found.",
        old="most - (most - lowest) % (allowed.step or 1)",
        new="most",
        tests=("dynamicresources/test_sentences.py",),
    ),
    Fault(
        id="devices-of-a-node-without-another-resource-told",
        breaks="Free devices are said to be too few together on a node that lacks a resource of a device plugin.",
        old="if lacking := self._survey.lacking(position):",
        new="if lacking := self._survey.lacking(position)[:0]:",
    ),
    Fault(
        id="admin-access-in-any-namespace",
        breaks="A pod is said to fit whose claim the API server refuses.",
        old='labels.get(_FOR_ADMINS) != "true"',
        new='labels.get(_FOR_ADMINS) == "x"',
    ),
)

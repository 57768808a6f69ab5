"""Faults of the mirror: wrong counters, lost state, and missing notifications."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="ended-assumed-pod-stays",
        breaks="An assumed pod that fails before it has a node counts until its TTL is over.",
        old="if not (deleted or pod.terminal or pod.node_name):",
        new="if not (deleted or pod.node_name):",
        tests=("core/mirror/test_placement.py",),
    ),
    Fault(
        id="ttl-counts-from-the-assumption",
        breaks="An assumed pod expires a TTL after its assumption, however long its binding took.",
        old="deadline = now + max(self._ttl, wait)",
        new="deadline = known.assumed_at + max(self._ttl, wait)",
    ),
    Fault(
        id="expires-at-the-deadline-itself",
        breaks="An assumed pod expires at its deadline, the last moment at which it must not.",
        old="            if now <= assumed.deadline:",
        new="            if now < assumed.deadline:",
    ),
    Fault(
        id="later-deadlines-forgotten",
        breaks="After one assumed pod has expired, the others expire only once another binding is finished.",
        old="        self._earliest = earliest\n",
        new="        self._earliest = inf\n",
    ),
    Fault(
        id="a-column-in-use-made-again",
        breaks="Each class that spreads pods has a column of its own for a label whose column was dropped.",
        old="            self._in_use.update(more)\n",
        new="",
    ),
    Fault(
        id="a-dropped-column-in-use-does-not-follow",
        breaks="A column that was dropped, but that a class still uses, has the labels of before.",
        old="            known = self._in_use.get(key)\n",
        new="            known = self._columns.get(key)\n",
    ),
    Fault(
        id="a-version-with-zeros-is-a-number",
        breaks="A resource version that begins with zeros loses them.",
        old='version[0] != "0" and ',
        new="",
    ),
    Fault(
        id="a-version-that-is-no-number-stays",
        breaks="A pod without a resource version has the one of the pod that had its row before.",
        old="            self._other_versions.pop(row, None)\n",
        new="            pass\n",
    ),
    Fault(
        id="pods-with-one-text-of-labels-are-alike",
        breaks="A pod has the requests and the controller of another one with its labels.",
        old="        if before == like:\n",
        new="        if before is not None:\n",
    ),
    Fault(
        id="csi-node-change-has-no-slot",
        breaks="A change of a CSINode makes no cached result of its node invalid.",
        old="slot = self.nodes.slots.get(name, NO_SLOT) if kind in OF_A_NODE else NO_SLOT",
        new="slot = NO_SLOT",
        tests=("core/mirror/test_changes.py",),
    ),
    Fault(
        id="qos-change-leaves-figures",
        breaks="A pod whose QoS class alone changes keeps its requests in the figures of the class before.",
        old="if known.requests != pod.requests or known.best_effort != pod.best_effort:",
        new="if known.requests != pod.requests:",
    ),
    Fault(
        id="relabelled-pod-not-recounted",
        breaks="A pod whose labels change is still counted by the terms that selected the labels before.",
        old="        and known.labels == pod.labels\n",
        new="",
    ),
    Fault(
        id="waiting-pods-not-told-with-their-node",
        breaks="What plugins derive misses the pods that were there before their node.",
        old=(
            "            for row in info.rows:\n"
            "                self.tell(PodChange(info.slot, None, self.pods.pods[row]))\n"
        ),
        new="",
        tests=("core/mirror/test_changes.py", "test_every_plugin.py"),
    ),
    Fault(
        id="partition-change-takes-no-generation",
        breaks="A copy of the mirror keeps a node on its old side of the partition.",
        old="                self.in_partition[info.slot] = inside\n                self.touch(info)\n",
        new="                self.in_partition[info.slot] = inside\n",
        tests=("core/mirror/test_resource_figures.py", "core/mirror/test_node_info.py"),
    ),
    Fault(
        id="excluded-names-keep-the-partition-whole",
        breaks="A node that is set out of the partition by its name is answered as if it were in.",
        old="self.whole = self._selector.everything and not self._outside",
        new="self.whole = self._selector.everything",
        tests=("core/mirror/test_resource_figures.py",),
    ),
    Fault(
        id="term-set-number-not-given-back",
        breaks="Two sets of affinity terms have the same number, so that pods are named for terms of others.",
        old="            self._free_numbers.append(term_set.number)\n",
        new="",
    ),
    Fault(
        id="column-in-use-counts-as-unused",
        breaks="A topology column that is used again is dropped with the unused ones, and counters lose its nodes.",
        old="        elif not column.users:\n            del self._unused[key]\n",
        new="",
        tests=("core/mirror/test_topology.py", "test_affinity_counts.py"),
    ),
    Fault(
        id="many-domains-never-become-empty",
        breaks="Where a term has counted pods in more than 256 domains, the number of domains never falls.",
        old="self.nonzero += (before + delta != 0) - (before != 0)",
        new="self.nonzero += before == 0",
    ),
    Fault(
        id="namespace-label-has-to-move-all-terms",
        breaks="A label of a Namespace that changes one of several terms leaves their common counter as it was.",
        old=("            if any(\n                namespace_is_selected(matcher, name, before) != "),
        new=("            if all(\n                namespace_is_selected(matcher, name, before) != "),
    ),
    Fault(
        id="recount-keeps-the-version",
        breaks="Results stay in the cache though a Namespace has changed what their counters count.",
        old="        self.counts = counts\n        self.version += 1\n",
        new="        self.counts = counts\n",
        tests=("test_affinity_counts.py", "test_design_table.py"),
    ),
    Fault(
        id="selector-reaches-missing-namespace",
        breaks="A namespaceSelector that asks for the absence of a label reaches namespaces that do not exist.",
        old="    return labels is not None and matcher.namespace_selector.matches(labels)",
        new="    return matcher.namespace_selector.matches(labels or {})",
        tests=("test_pod_columns.py", "test_affinity_counts.py"),
    ),
    Fault(
        id="work-limit-is-one-too-low",
        breaks="An evaluation that takes exactly the work that is allowed is refused.",
        old="if self.limit is not None and self.spent > self.limit:",
        new="if self.limit is not None and self.spent >= self.limit:",
    ),
    Fault(
        id="empty-budget-selector-covers-all",
        breaks="A PodDisruptionBudget with an empty selector covers all pods of its namespace.",
        old="return bool(labels) and not self.selector.everything and self.selector.matches(labels)",
        new="return bool(labels) and self.selector.matches(labels)",
        tests=("core/test_preemption.py",),
    ),
    Fault(
        id="changes-during-a-pass-lost",
        breaks="A node that changes while all nodes are copied in steps stays as it was in the copy.",
        old="            yield from names\n            self.generation = generation\n",
        new="            yield from names\n            self.generation = known.latest\n",
    ),
    Fault(
        id="undone-in-the-order-of-supposing",
        breaks="What was supposed is undone first to last, so that a node goes before its pods.",
        old="            self._undo(self._steps.pop())\n        self._savepoint",
        new="            self._undo(self._steps.pop(0))\n        self._savepoint",
        tests=("core/mirror/test_what_if.py",),
    ),
    Fault(
        id="change-of-a-pod-taken-for-a-status",
        breaks="An update of a pod on its node, such as of its requests, reaches no plugin and no cached result.",
        old="            if replace(known, resource_version=pod.resource_version) == pod:\n",
        new="            if known.labels == pod.labels:\n",
        tests=("core/mirror/test_changes.py",),
    ),
    Fault(
        id="cache-misses-what-is-undone",
        breaks="The equivalence cache keeps what it was told of a supposition that it follows.",
        old="followers = self._placement.listeners if cache_follows else self._derived_states",
        new="followers = self._derived_states",
        tests=("core/mirror/test_what_if.py",),
    ),
    Fault(
        id="kept-pod-takes-no-generation",
        breaks="Copies and figures of the mirror miss the members of a gang.",
        old="            self._placement.join(self._placement.pods.rows[pod.uid], pod)\n",
        new="            self._placement.nodes.infos[pod.node_name].rows.add(self._placement.pods.rows[pod.uid])\n",
        tests=("core/mirror/test_what_if.py",),
    ),
    Fault(
        id="removed-pods-in-their-namespace",
        breaks="A pod that is gone counts as a sibling, and keeps an ordinal of a StatefulSet.",
        old="for row in rows if self.rows.get(self.pods[row].uid) == row]",
        new="for row in rows]",
    ),
    Fault(
        id="placed-pod-still-waits",
        breaks="The event that shows a pod of a gang bound reaches every plugin, and invalidates cached results.",
        old="replace(pod, node_name=node_name, waiting=NOT_WAITING), self._placement.counting)",
        new="replace(pod, node_name=node_name), self._placement.counting)",
        tests=("core/mirror/test_what_if.py",),
    ),
)

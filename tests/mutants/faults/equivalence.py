"""Faults of the equivalence cache: results that stay too long, are for the wrong pods, or take too much memory."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="ranking-forgets-which-filter-failed",
        breaks="A node that one filter refused is taken for fitting again as soon as another filter passes there.",
        old="        if not ranking.fits[positions].all():",
        new="        if False:",
        tests=("test_ranking.py",),
    ),
    Fault(
        id="ranking-keeps-sums-of-changed-nodes",
        breaks="A decision compares nodes by scores from before the last pods were placed.",
        old="ranking.rescore(each.plugin.name, each.weight, positions, _normalised(each.plugin, part))",
        new="_normalised(each.plugin, part)",
        tests=("test_ranking.py",),
    ),
    Fault(
        id="ranking-of-other-nodes",
        breaks="A decision among other nodes, or in another order, is made by positions that stand for other nodes.",
        old="        if ranking.slots is not request.batch.slots:",
        new="        if len(ranking.slots) != len(request.batch.slots):",
        tests=("test_ranking.py",),
    ),
    Fault(
        id="chain-skips-nodes-of-counting-plugins",
        breaks="A label of a node that InterPodAffinity reads leaves the first failing filter of the node as it was.",
        old="self._bring_up_to_date(self._entry.filter_row(plugin), batch)\n",
        new=("self._bring_up_to_date(self._entry.filter_row(plugin), batch)\n                continue\n"),
        tests=("test_cached_evaluation.py", "test_planted_faults.py"),
    ),
    Fault(
        id="prepared-before-an-event-used-after",
        breaks="What PreFilter said before an event is used for the cells that the event made invalid.",
        old="        if self._prepared_at != now:  # a state",
        new="        if self._prepared_at == NEVER:  # a state",
        tests=("test_cached_evaluation.py",),
    ),
    Fault(
        id="error-for-all-nodes-kept",
        breaks="An error of PreFilter, which may be gone by the next request, is kept for the class.",
        old="        if status.code is not Code.ERROR:  # an error may not occur again at the next request\n    ",
        new="        if True:\n    ",
        tests=("test_cached_evaluation.py",),
    ),
    Fault(
        id="error-of-a-node-kept",
        breaks="An error of Filter for one node, which may be gone by the next request, is kept for the class.",
        old="cacheable: BoolArray | None = ~np.isin(codes, errors) if errors else None",
        new="cacheable: BoolArray | None = None",
        tests=("test_cached_evaluation.py",),
    ),
    Fault(
        id="ephemeral-claims-shared-in-a-class",
        breaks="Pods with ephemeral volumes, each with claims of its own, are of one class.",
        old="        identity = self._identity(mirror, pod)",
        new="        identity = None",
        tests=("equivalence/test_classes.py",),
    ),
    Fault(
        id="cleared-cache-keeps-its-weight",
        breaks="After a mismatch has emptied the cache, it evicts classes as if it were as full as before.",
        old="        self._entries.clear()\n        self.nbytes = 0\n",
        new="        self._entries.clear()\n",
        tests=("equivalence/test_cache.py", "test_shadow_check.py"),
    ),
    Fault(
        id="asked-class-evicted-first",
        breaks="A class goes in the order in which classes came, however often it is asked about.",
        old="        if entry is not None:\n            self._entries.move_to_end(key)\n",
        new="        if entry is not None:\n            pass\n",
        tests=("equivalence/test_cache.py",),
    ),
    Fault(
        id="low-score-taken-for-a-miss",
        breaks="Scores near the lowest of their width are read as reasons for a miss, and never hit.",
        old="if lowest >= least + len(Miss) and highest <= most)",
        new="if lowest >= least and highest <= most)",
        tests=("equivalence/test_rows.py",),
    ),
    Fault(
        id="shadow-share-rounded-down",
        breaks="Fewer answers are checked than the share of the settings, unless it is one in a whole number.",
        old="        self._due -= 1.0\n",
        new="        self._due = 0.0\n",
        tests=("test_shadow_check.py",),
    ),
    Fault(
        id="refusal-holds-in-a-smaller-cluster",
        breaks="A pod that took too much work stays refused though pods are gone, as long as nodes are not.",
        old="if len(self.mirror.nodes.slots) < nodes or len(self.mirror.pods) < pods:",
        new="if len(self.mirror.nodes.slots) < nodes and len(self.mirror.pods) < pods:",
        tests=("test_work_limit.py", "tests/core/equivalence"),
    ),
    Fault(
        id="versions-without-the-first-pod-exception",
        breaks="A Namespace label that ends the exception for the first pod leaves its class's verdicts as they were.",
        old="            self.first_of_its_kind,\n            tuple(",
        new="            tuple(",
        tests=("test_interpodaffinity.py", "tests/core/equivalence"),
    ),
    Fault(
        id="order-of-taints-not-an-event",
        breaks="The reason of a node stays in the cache though another of its taints is the first one now.",
        old="reads=lambda node: node.taints,",
        new="reads=lambda node: set(node.taints),",
        tests=("plugins/test_invalidation.py",),
    ),
    Fault(
        id="taints-not-an-event-for-spreading",
        breaks="The nodes that count for topology spread constraints stay the same when a taint comes.",
        old="return None if node is None else (node.labels, node.taints)",
        new="return None if node is None else node.labels",
        tests=("plugins/test_invalidation.py",),
    ),
    Fault(
        id="capacity-of-spread-validity-lags",
        breaks="Cells of nodes that came after the cache's tables grew are never made invalid.",
        old="            for validity in self.of.values():\n                validity.grow(capacity)\n",
        new="            for validity in self.of.values():\n                validity.grow(capacity // 2)\n",
        tests=("equivalence/test_validity.py", "test_cached_evaluation.py"),
    ),
)

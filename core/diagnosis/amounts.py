"""The measurements of the plugins, asked for one decision."""

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.exclusion import exclusion
from core.plugins.amounts import ClusterAmounts, NodeAmounts, merged


def node_amounts(decision: Diagnosis, position: int, limit: int) -> NodeAmounts:
    """Return the amounts of one node, with up to `limit` pods and ports each."""
    if decision.node(position) is None:
        return NodeAmounts()
    plugins = decision.profile.explained
    with decision.mirror.work.uncharged():  # the decision was already charged for this work
        facts = [
            (name, of(decision, position, limit)) for each in plugins for name, of in each.measured.on_node.items()
        ]
        return NodeAmounts(**merged(decision, facts))


def cluster_amounts(decision: Diagnosis, limit: int) -> ClusterAmounts:
    """Return the amounts, with up to `limit` taints, requirements, ports, domains and pods each."""
    plugins = decision.profile.explained
    with decision.mirror.work.uncharged():  # as above
        facts = [(name, of(decision, limit)) for each in plugins for name, of in each.measured.in_cluster.items()]
        return ClusterAmounts(**merged(decision, facts), exclusion=exclusion(decision))

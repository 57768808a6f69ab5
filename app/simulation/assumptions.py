"""What a response assumes, so that its reader can say whether it holds for the cluster."""

from collections.abc import Sequence

import msgspec

from app.simulation.comes_again import Uncertainty


class Lack(msgspec.Struct, frozen=True):
    """Objects that are not known, so that their rules are judged as if there were none."""

    why: str
    command: str = ""
    """The command that gets them. Empty if there is none."""


class Assumptions(msgspec.Struct, frozen=True):
    """What a response assumes."""

    kubernetes: str
    """The release whose rules apply, and its source."""
    profiles: Sequence[str]
    """The schedulers whose rules are known. Pods of others are `unknown`."""
    percentage_of_nodes_to_score: int
    """All nodes are judged. Above 100 nodes, kube-scheduler takes a sample of those that fit, unless this is set."""
    orders: int
    """In how many orders the pods arrived and ties were broken. `always` and `never` are over all of them."""
    lacks: Sequence[Lack]
    uncertainties: Sequence[Uncertainty]
    """Owners of whose new pods not everything is known."""
    names_hidden: str = ""
    """Why some pods are not named. Empty if all are."""
    left_out: int = 0
    """How many pods are not named. All numbers count them."""

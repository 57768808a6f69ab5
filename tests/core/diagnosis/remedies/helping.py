"""Remedies of a pod on a hand-made cluster."""

from collections.abc import Sequence
from typing import Final

from core.diagnosis.remedies.remedy import Kind, Remedy, Step
from core.diagnosis.remedies.what_would_help import what_would_help
from core.events import Object
from tests.builders import PodBuilder
from tests.core.decoded import Builder
from tests.core.diagnosis.deciding import decision_of

ALL: Final = 50


def helps(pod: PodBuilder, *builders: Builder, objects: Sequence[Object] = ()) -> list[Remedy]:
    """Return all remedies of a pod."""
    return [*what_would_help(decision_of(pod, *builders, objects=objects), ALL)]


def of_kind(kind: Kind, remedies: Sequence[Remedy]) -> list[tuple[str, list[Step]]]:
    """Return those of a kind, each as the node and the steps."""
    return [(each.node, [*each.steps]) for each in remedies if each.kind is kind]

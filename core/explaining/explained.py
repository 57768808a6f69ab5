"""The protocol of explanations: what a plugin may add to FilterPlugin and ScorePlugin so that people see why.

A plugin may leave it out, or any part of it. Its pods are then explained by codes and reasons alone.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec

from core.events import Kind
from core.explaining.counted_terms import CountedTerm
from core.explaining.decision import Decision
from core.explaining.obstacles import Candidates, Fix, Obstacles, Search
from core.explaining.remedy import NO_LABELS
from core.mirror.cluster import ClusterMirror
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from core.objects.pod import Pod
from core.releases.release import Rules


class Counts(msgspec.Struct, frozen=True, gc=False):
    """What a plugin counted for one thing that the pod asks for. Its `facts` have it in words."""

    plugin: str
    of: Mapping[str, str]
    """Which thing it is, such as the claim and the name of a request."""
    numbers: Mapping[str, int]


class Measured(NamedTuple):
    """What a plugin measures, by the fields of NodeAmounts and ClusterAmounts (core/plugins/amounts.py)."""

    on_node: Mapping[str, Callable[[Decision, int, int], Any]] = {}
    """Measures one known or requested node, by its position, with up to so many pods in a list."""
    in_cluster: Mapping[str, Callable[[Decision, int], Any]] = {}
    """Measures all nodes of a request, with up to so many entries in a list."""


class Remedies(NamedTuple):
    """What can be done against a rejection."""

    searches: Sequence[Search] = ()
    """The remedies that are worth a trial."""
    fix: Fix | None = None
    """Makes the plugin pass a node."""
    removable: Callable[[Obstacles, int], Candidates] | None = None
    """Finds the pods without one of which the plugin may pass a node, by its position."""
    counts_elsewhere: bool = False
    """Whether pods of other nodes may keep the pod off a node."""


def _always(*_: object) -> bool:
    return True


class Event(msgspec.Struct, frozen=True):
    """Events of one kind of object that a plugin registers for the pods that it rejected (EventsToRegister)."""

    resource: str
    """Kind of the object. `Pod` means a pod on a node, unless `of_pod_itself`."""
    actions: tuple[str, ...]
    """Upstream's ActionTypes: Add, Delete, Update, or one of its parts such as UpdateNodeTaint."""
    of_pod_itself: bool = False
    """Whether the event is a change of the waiting pod itself."""
    registered: Callable[[Rules], bool] = _always
    """Whether a release with its feature gates registers it."""
    may_help: Callable[[Decision, str], bool] = _always
    """The queueing hint: false if it skips this action of any object, so that kube-scheduler does not try the pod."""


class DomainRule(NamedTuple):
    """A rule of a plugin about one topology key, with the known nodes that it rejects."""

    name: str
    topology_key: str
    rejected: BoolArray


class Explained:
    """What a plugin adds to explanations. It is a base class beside FilterPlugin and ScorePlugin."""

    name: str
    """The plugin's name, as in Plugin."""
    keeps_off: ClassVar[str] = ""
    """What keeps a pod off, for a sentence about two rules that exclude each other. Empty: the plugin's name."""
    events: ClassVar[Sequence[Event]] = ()
    """The events after which kube-scheduler tries a pod again that the plugin rejected."""
    measured: ClassVar[Measured] = Measured()
    remedies: ClassVar[Remedies] = Remedies()

    def terms(self, _decision: Decision, /) -> Sequence[CountedTerm]:
        """Return the terms about other pods that take part in the decision."""
        return ()

    def rules(self, _decision: Decision, /) -> Iterator[DomainRule] | None:
        """Yield the rules by topology key that the plugin consists of. None: it is one rule."""
        return None

    def reads(self, _mirror: ClusterMirror, _pod: Pod, missing: Collection[Kind], /) -> Collection[Kind]:
        """Return the kinds on which the verdict for this pod depends. `missing` are those that the mirror lacks."""
        return missing

    def reads_to_score(self, mirror: ClusterMirror, pod: Pod, missing: Collection[Kind], /) -> Collection[Kind]:
        """Return the kinds on which the score for this pod depends."""
        return self.reads(mirror, pod, missing)

    def reads_in_part(self, _mirror: ClusterMirror, _pod: Pod, /) -> Mapping[Kind, str]:
        """Return kinds without which only a part of the verdict is unknown, with the name of that part."""
        return {}

    def unsupported(self, _rules: Rules, /) -> str:
        """Return why the plugin cannot judge in a release with its feature gates. Empty if it can."""
        return ""

    def undecided(self, _state: Any, /) -> Mapping[str, str]:  # noqa: ANN401  # each plugin has a type of its own
        """Return the names of nodes that pass because the plugin could not judge them, with the reason."""
        return {}

    def shortage(self, _obstacles: Obstacles, _positions: IntpArray, /) -> Int64Array | None:
        """Return for each of these nodes how much is missing there, to compare them. None: the plugin does not know."""
        return None

    def ending(self, _mirror: ClusterMirror, /) -> Iterable[str]:
        """Return the UIDs of pods that terminate, if the plugin knows them."""
        return ()

    def labels_needed(self, _decision: Decision, /) -> Mapping[str, str]:
        """Return the labels that a new node needs for the pod."""
        return NO_LABELS

    def copies(self, _decision: Decision, /) -> IntpArray | None:
        """Return the positions of the known nodes of which a copy may help. None: of any."""
        return None

    def name_needed(self, _decision: Decision, /) -> str:
        """Return the name that a new node needs for the pod. Empty for any name."""
        return ""

    def topology_keys(self, _decision: Decision, /) -> Collection[str]:
        """Return the keys of domains that may all be full, so that a new one would help."""
        return ()

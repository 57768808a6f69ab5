"""The feature gates of kube-scheduler that change a result, with their stage in each release."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from core.releases.release import RELEASES, Release, nearest


class Stage(NamedTuple):
    """The stage of a feature gate in one release."""

    default: bool
    locked: bool = False


_OFF: Final = Stage(default=False)
_ON: Final = Stage(default=True)
_LOCKED: Final = Stage(default=True, locked=True)


def _stages(since: Mapping[str, Stage]) -> Mapping[Release, Stage]:
    """Return the stage in each release that has the gate, from the release in which each stage began."""
    begun = {nearest(release).release: stage for release, stage in since.items()}
    found: dict[Release, Stage] = {}
    for release in RELEASES:
        if begins := [first for first in begun if first <= release]:
            found[release] = begun[max(begins)]
    return MappingProxyType(found)


GATES: Final[Mapping[str, Mapping[Release, Stage]]] = MappingProxyType(
    {
        "NodeDeclaredFeatures": _stages({"1.35": _OFF, "1.36": _ON, "1.37": _LOCKED}),
        "DRAExtendedResource": _stages({"1.34": _OFF, "1.36": _ON, "1.37": _LOCKED}),
        "StorageCapacityScoring": _stages({"1.34": _OFF, "1.37": _ON}),
        "InPlacePodVerticalScaling": _stages({"1.34": _ON, "1.35": _LOCKED}),
        "InPlacePodLevelResourcesVerticalScaling": _stages({"1.35": _OFF, "1.36": _ON}),
        "PodLevelResources": _stages({"1.34": _ON}),
        "DRANodeAllocatableResources": _stages({"1.36": _OFF}),
        "VolumeLimitScaling": _stages({"1.35": _OFF, "1.37": _ON}),
        "TaintTolerationComparisonOperators": _stages({"1.35": _OFF}),
        "GenericWorkload": _stages({"1.35": _OFF}),
    }
)
"""The feature gates that change a result: name -> release that has it -> its stage there.

Source: k8s.io/kubernetes pkg/features/kube_features.go of v1.34.1, v1.35.4, v1.36.3 and v1.37.1.
"""


class FeatureGateError(ValueError):
    """The release does not have a feature gate, or does not allow it to be set. The message lists its gates."""


def gates_of(release: Release, gates: Mapping[str, bool] | None = None) -> Mapping[str, bool]:
    """Return every gate of a release, with its default or with its value in `gates`.

    A locked gate may be set to its locked value, as upstream allows. Raises FeatureGateError.
    """
    there = {name: stages[release] for name, stages in GATES.items() if release in stages}
    found = {name: stage.default for name, stage in there.items()}
    for name, enabled in (gates or {}).items():
        if name not in there:
            raise FeatureGateError(
                f"feature gate {name} is not known at {release}; there are {', '.join(sorted(there))}"
            )
        if there[name].locked and enabled is not there[name].default:
            free = ", ".join(sorted(each for each, stage in there.items() if not stage.locked))
            state = "on" if there[name].default else "off"
            raise FeatureGateError(f"feature gate {name} is locked {state} at {release}; free to set are {free}")
        found[name] = enabled
    return found

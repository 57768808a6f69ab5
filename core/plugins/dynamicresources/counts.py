"""The numbers of devices for each request, for programs: what the sentences say in words."""

from collections.abc import Mapping, Sequence

from core.explaining.decision import Decision
from core.explaining.explained import Counts
from core.explaining.pod_names import ClaimName
from core.objects.devices import ALL
from core.plugins.dynamicresources.sentences import rejected, survey_of
from core.plugins.dynamicresources.survey import NAME, Found, State


def counts_in_cluster(decision: Decision, limit: int) -> Sequence[Counts]:
    """Return the devices of all nodes for each request and alternative, if the plugin rejects some node."""
    survey = survey_of(decision) if len(rejected(decision)) else None
    found = () if survey is None else survey.everywhere
    if survey is None or survey.is_cut:
        return ()
    return [_counts(each, {"nodes": nodes}, is_of_node=False) for each, nodes in found[:limit]]


def counts_on_node(decision: Decision, position: int) -> Sequence[Counts]:
    """Return the devices of a node for each request. Of several alternatives, for the one that lacks the fewest."""
    survey = survey_of(decision)
    found = () if survey is None else survey.on(position)
    if survey is None or survey.is_cut:
        return ()
    return [_counts(each, {"missing": each.missing}, is_of_node=True) for each in found]


def _counts(found: Found, more: Mapping[str, int], *, is_of_node: bool) -> Counts:
    request, states = found.need.request, {each.name.lower(): len(found.devices.get(each, ())) for each in State}
    needed = {"needed": found.needed} if is_of_node or request.mode != ALL else {}
    of = {"claim": ClaimName(found.claim), "request": found.need.full_name, "device_class": request.device_class}
    return Counts(NAME, of, {**needed, "matching": found.matching, **states, **more})

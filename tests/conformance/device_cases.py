"""Cases with resource claims: DynamicResources is held against its part of a case. `answer` is for other programs, too.

The texts of errors of CEL are compared up to where cel-go's own words begin.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from app.objects.resources import RESOURCES
from core.events import ClusterEvent, Kind
from core.framework.evaluation import FreshEvaluation, everywhere
from core.framework.interface import Code, FilterPlugin, Plugin, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT
from core.objects.devices import DeviceTaintRule, ResourceClaim, ResourceSlice
from core.objects.kinds import DeviceClass
from core.objects.node import Node
from core.objects.quantity import nanos
from core.plugins import DEFAULTS
from core.plugins.dynamicresources.allocator import Result, Search
from core.plugins.dynamicresources.plugin import Claims, DynamicResources
from core.profile import Profile
from tests.conformance.engine import decoded_pod, load
from tests.conformance.golden_files import Line, Members, line_of, other_rules
from tests.conformance.results import Difference, Results, differences

_KINDS: Final[Mapping[str, Kind]] = {
    "deviceclasses": DeviceClass,
    "resourceslices": ResourceSlice,
    "resourceclaims": ResourceClaim,
    "devicetaintrules": DeviceTaintRule,
}
"""Member of a case -> kind of its objects."""
_DEFAULTS: Final[Mapping[str, type[Plugin]]] = {**DEFAULTS, DynamicResources.name: DynamicResources}
_DEFAULT_FILTERS: Final = [each for each in _DEFAULTS.values() if issubclass(each, FilterPlugin)]
_FITS: Final = "Success"
_SCORES: Final = ("raw_scores_feasible", "normalized_feasible", "score_error")
_words_of_cel: Final = re.compile(r"(CEL (?:compile|runtime) error: ).*", re.DOTALL)
_of_the_framework: Final = re.compile(r'^running "\w+" filter plugin: ')
_a_device: Final = re.compile(r"(?<= on device )\S+(?=:)|(?<=cannot add device )\S+|(?<=resource pool )\S+")
_of_a_value: Final = re.compile(r"(failed to perform node selection for |'s range arithmetic).*", re.DOTALL)


def response(case: Members) -> Members:
    """Return what the plugin answers to a case, in the form of `expected` in golden data.

    `undecided` has the nodes that it cannot judge, with the reason; they are among the feasible ones.
    """
    line = line_of({"expected": {"plugins": {}, "feasible": []}, **case}, str(case.get("name", "")))
    return _response(line, _mirror(line))


def run(line: Line, members: Members, results: Results, place: str) -> None:
    """Run the plugin on a case, and compare the nodes that pass it, too."""
    try:
        mirror = _mirror(line)
        found = _response(line, mirror)
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is its answer to this case, a wrong one
        results.add("DynamicResources", place, [Difference("raised", None, repr(error))])
        return
    if found["undecided"]:
        results.left_out["DynamicResources (undecided)"] += 1
        return
    given = found["plugins"]["DynamicResources"]
    if others := [each["DynamicResources"] for each in line.content["expected"].get("others", ())]:
        results.add("DynamicResources", place, _outside([members, *others], given, _names(line.content)))
        return
    results.add("DynamicResources", place, _differences(members, given))
    feasible = {"feasible": line.content["expected"]["feasible"]}
    results.add("nodes with devices", place, differences(feasible, {"feasible": found["feasible"]}))
    if full := line.content["expected"].get("full"):
        need = {"feasible": full["feasible"], "filter_failed": _comparable(full["filter_failed"])}
        results.add("all plugins with devices", place, differences(need, _full(line, mirror)))


def _full(line: Line, mirror: ClusterMirror) -> Members:
    """Return which of all default filters fails first on each node, as RunFilterPlugins tells it."""
    names = _names(line.content)
    profile = Profile(tuple(make() for make in _DEFAULT_FILTERS), ()).under(line.rules)
    batch, evaluation = mirror.batch(names), FreshEvaluation(mirror, decoded_pod(line.content["pod"]))
    failed: dict[str, Members] = {}
    of_pre_filter = False
    for plugin in profile.filters:
        verdicts = evaluation.verdicts(plugin, batch)
        if verdicts is None or (verdicts.of_pre_filter and of_pre_filter):
            continue
        if verdicts.of_pre_filter:
            failed, of_pre_filter = {}, True
        for position, name in enumerate(names):
            status = verdicts.status(position)
            if status.code is not Code.SUCCESS and (verdicts.of_pre_filter or name not in failed):
                failed[name] = _reported(plugin.name, status)
    feasible = [name for name in names if name not in failed]
    return {"feasible": feasible, "filter_failed": _comparable(failed)}


def _reported(plugin: str, status: Status) -> Members:
    return {"code": status.code.label, "plugin": plugin, "reasons": list(status.reasons)}


def _mirror(line: Line) -> ClusterMirror:
    """Load a case while other rules hold, and other objects: the answers do not depend on what held before."""
    case = line.content
    mirror = load(case["namespaces"], case["nodes"], case["pods"], rules=other_rules(line.rules))
    for make in DynamicResources.states:
        mirror.derived(make)
    for changed in (_before, dict):
        for member, kind in _KINDS.items():
            for v1_object in map(changed, case.get(member, ())):
                mirror.apply(ClusterEvent("Add", RESOURCES[kind].decode(msgspec.json.encode(v1_object))))
    mirror.change_rules(line.rules)
    return mirror


def _before(v1_object: Members) -> Members:
    """Return an earlier state of an object: a claim without its allocation, a slice without half of its devices."""
    spec = v1_object.get("spec") or {}
    devices = spec.get("devices")
    fewer = {"devices": devices[1::2]} if isinstance(devices, list) else {}
    return {**v1_object, "status": {}, "spec": {**spec, **fewer, "selectors": [], "deviceSelector": {"pool": "x"}}}


def _response(line: Line, mirror: ClusterMirror) -> Members:
    case, plugin = line.content, DynamicResources()
    names = _names(case)
    batch, pod = mirror.batch(names), decoded_pod(case["pod"])
    status, state = plugin.pre_filter(mirror, pod)
    verdicts = everywhere(status, batch) if state is None else plugin.filter(state, batch)
    statuses = [] if verdicts is None else [verdicts.status(position) for position in range(len(names))]
    failed = {
        name: {"code": each.code.label, "reasons": list(each.reasons)}
        for name, each in zip(names, statuses, strict=False)
        if each.code is not Code.SUCCESS
    }
    feasible = [name for name in names if name not in failed]
    members: dict[str, Any] = {"prefilter": status.code.label, "filter_failed": failed}
    if status.reasons:
        members["prefilter_reasons"] = list(status.reasons)
    if state is not None:
        undecided = state.undecided
        allocations = {name: _allocation(state, mirror, name, undecided) for name in feasible}
        members["allocation"] = {name: found for name, found in allocations.items() if found}
        members |= _scores(plugin, mirror, pod, feasible) if feasible else {}
    return {
        "plugins": {"DynamicResources": members},
        "feasible": feasible,
        "undecided": {} if state is None else state.undecided,
    }


def _allocation(state: Claims, mirror: ClusterMirror, name: str, undecided: Mapping[str, str]) -> Members:
    slot = mirror.nodes.slots.get(name, NO_SLOT)
    node = mirror.nodes.infos[name].node
    if not state.must_allocate or name in undecided or not isinstance(node, Node):
        return {}
    if not state.named and not state.provided(node):
        return {}
    demand, pools = state.needs_of(state.provided(node)), state.pools_of(slot, node)
    search = Search(demand.claims, pools, list(map(state.inventory.usage_of, pools)), node, state.gates)
    search.run()
    return {
        claim.name.partition("/")[2]: {"devices": {"results": [_result(each) for each in found]}}
        for claim, found in zip(demand.claims, search.results, strict=True)
    }


def _result(result: Result) -> Members:
    found: dict[str, Any] = {"request": result.need.full_name, **result.device.id._asdict()}
    if result.need.request.admin_access:
        found["adminAccess"] = True
    if result.consumed:
        found["consumedCapacity"] = dict(result.consumed)
    return found


def _scores(plugin: DynamicResources, mirror: ClusterMirror, pod: Any, feasible: list[str]) -> Members:  # noqa: ANN401
    batch = mirror.batch(feasible)
    status, state = plugin.pre_score(mirror, pod, batch)
    if not mirror.rules.release >= (1, 35):
        return {}
    if status.code is Code.ERROR:
        return {"score_error": status.message}
    if state is None:
        return dict.fromkeys(_SCORES[:2], dict.fromkeys(feasible, 0))
    raw = plugin.score(state, batch)
    return {
        "raw_scores_feasible": dict(zip(feasible, raw.tolist(), strict=True)),
        "normalized_feasible": dict(zip(feasible, plugin.normalize(raw).tolist(), strict=True)),
    }


def _differences(members: Members, found: Members) -> list[Difference]:
    expected = {
        # Skip and Success are the same to the nodes.
        "prefilter": "Success" if members["prefilter"] == "Skip" else members["prefilter"],
        "prefilter_reasons": members.get("prefilter_reasons", []),
        "filter_failed": _comparable(members.get("filter_failed", {})),
        **{member: members[member] for member in _SCORES if member in members},
    }
    got = {
        "prefilter": "Success" if found["prefilter"] == "Skip" else found["prefilter"],
        "prefilter_reasons": found.get("prefilter_reasons", []),
        "filter_failed": _comparable(found["filter_failed"]),
        **{member: found.get(member) for member in _SCORES if member in members},
    }
    if "allocation" in members:
        expected["allocation"] = {node: _allocated(claims) for node, claims in members["allocation"].items()}
        got["allocation"] = found.get("allocation", {})
    return differences(expected, got)


def _outside(allowed: Sequence[Members], found: Members, names: Sequence[str]) -> list[Difference]:
    """Return the nodes of which no order of pools and slices gives what was found.

    Releases before 1.36 take them in the order of a map, for each node anew. A case has what they returned (`others`).
    """
    differing: list[Difference] = []
    for name in names:
        need, got = {_of_node(each, name) for each in allowed}, _of_node(found, name)
        unscored = _FITS in need and got.startswith(_FITS)
        if got not in need and not unscored:
            differing.append(Difference(name, sorted(need), got))
    return differing


def _of_node(members: Members, name: str) -> str:
    """Return the verdict of a node, without the device at which an error was met, or its score if there is one."""
    failed, scores = _comparable(members.get("filter_failed", {})), members.get("raw_scores_feasible", {})
    if name in failed:
        return _a_device.sub("", str(failed[name]))
    return f"{_FITS} {scores.get(name, '')}".rstrip()


def _comparable(failed: Mapping[str, Members]) -> dict[str, Members]:
    """Return verdicts without the words of cel-go and of the framework, a node selector and an amount."""
    return {
        name: {
            **each,
            "reasons": sorted(map(_essential, each["reasons"])),
        }
        for name, each in failed.items()
    }


def _essential(reason: str) -> str:
    return _of_the_framework.sub("", _of_a_value.sub(r"\1", _words_of_cel.sub(r"\1", reason)))


def _allocated(claims: Mapping[str, Members]) -> dict[str, Members]:
    """Return AllocationResults reduced to the devices and what is consumed of them, in billionths."""
    return {
        name: {"devices": {"results": _reduced(each.get("devices", {}).get("results", []))}}
        for name, each in claims.items()
    }


def _reduced(results: Iterable[Members]) -> list[Members]:
    found: list[Members] = []
    for each in results:
        stored: dict[str, Any] = {
            key: each[key] for key in ("request", "driver", "pool", "device", "adminAccess") if key in each
        }
        if "consumedCapacity" in each:
            stored["consumedCapacity"] = {name: nanos(str(value)) for name, value in each["consumedCapacity"].items()}
        found.append(stored)
    return found


def _names(case: Members) -> list[str]:
    return [node["metadata"]["name"] for node in case["nodes"]]

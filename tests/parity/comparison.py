"""Compares a case with the engine, by the runners of the golden cases, and recognises false differences.

The real plugins are compared with the golden data of their release first, before they serve as a reference.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from app.objects.decode import DecodeError
from core.framework.scores import MAX_NODE_SCORE
from core.releases.differences import rules_of
from core.releases.release import FeatureGateError, nearest
from tests.conformance.combined_cases import arguments_of
from tests.conformance.golden_files import GoldenFileError, line_of, read
from tests.conformance.kinds import RUN
from tests.conformance.results import Results
from tests.parity.intree import InTree, Reply
from tests.parity.random_nodes import V1
from tests.parity.random_sequences import consistent
from tests.parity.sequences import PLACED, difference
from tests.parity.shrink import shrunk

_NEGATIVE: Final = frozenset({"NotIn", "DoesNotExist"})
_SCALAR: Final = re.compile(r"Insufficient (?!cpu$|memory$|ephemeral-storage$)\S+$")
_SETTINGS: Final = ("pluginConfig", "featureGates")
_DEPENDENCY: Final = "depends on features that are disabled"  # Kindred does not look at what gates depend on
_REJECTIONS: Final = (*_SETTINGS, "initializing plugin")
_RUNNING: Final = re.compile(r'^running (?:"\w+" filter plugin|PreFilter plugin "\w+"): ')
_DRAWINGS: Final = 200
"""Repeats of a case that differs, because some results of upstream depend on the order of a map.

Go begins a small map at one of eight slots, so one order of two entries occurs in an eighth of the runs. The
probability of a false difference is (7/8)^200, which is 3e-12. With 25 repeats one was seen.
"""
_ANY_ORDER: Final = frozenset({"1.34", "1.35"})
_ORDERS: Final = 30  # for a small case
_SHRINKING: Final = 150  # tries: about two seconds


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a case."""

    failed: frozenset[str] = field(default_factory=frozenset)
    """Plugins that differ, or other lines of the conformance report."""
    text: str = ""
    left_out: str = ""
    """Why the case cannot test the engine. Empty: it can."""


def compared(case: V1, reply: Reply, *, negative_selectors: bool) -> Comparison:
    """Compare the engine with the real plugins. `negative_selectors`: the release has kubernetes#141526 fixed."""
    if reply.rejected.startswith(_REJECTIONS) and _DEPENDENCY not in reply.rejected:
        return _both_refuse(case)
    if reply.expected is None:
        return Comparison(left_out="upstream panics" if reply.panic else "upstream refuses it")
    if "queue" in case:
        return _sequence(case, reply.expected)
    if why := _why_left_out(case, reply.expected, negative_selectors=negative_selectors):
        return Comparison(left_out=why)
    results = Results()
    line = line_of({**case, "expected": sorted_reasons(reply.expected)}, case["name"])
    RUN[line.kind]([line], results)
    if results.left_out and not (results.passed or results.failed):
        return Comparison(left_out=", ".join(results.left_out))
    return Comparison(frozenset(results.failed), results.text() if results.failed else "")


def _why_left_out(case: V1, expected: V1, *, negative_selectors: bool) -> str:
    if not negative_selectors and _has_negative_selector(case["pod"]):
        return "kubernetes#141526"
    if "candidates" in expected and expected["prefilter"] != "Success":
        return "no dry run, as PreFilter failed"
    if not all(0 <= score <= MAX_NODE_SCORE for score in _normalized(expected)):
        return "a score that fails the pod, because amounts overflow"
    return ""


def _both_refuse(case: V1) -> Comparison:
    """Compare a case whose settings kube-scheduler refuses, which does not start with them."""
    try:
        arguments_of(case)
        rules_of(nearest(case["kubernetes"]).release, case.get("featureGates"))
    except (DecodeError, FeatureGateError):
        return Comparison(left_out="settings that both refuse")
    return Comparison(frozenset(_SETTINGS), f"kube-scheduler refuses {[case.get(member) for member in _SETTINGS]}\n")


def _sequence(case: V1, expected: V1) -> Comparison:
    if not consistent(case):
        return Comparison(left_out="the two sides have different clusters")
    text = difference(case, expected)
    return Comparison(frozenset({PLACED}), text) if text else Comparison()


def confirmed(case: V1, found: Comparison, intree: InTree, *, negative_selectors: bool) -> Comparison:
    """Repeat a case that differs. It is no difference if the engine agrees with one of several possible replies."""
    seen: list[V1] = []
    for _ in range(_DRAWINGS):
        reply = _with_others(case, intree.reply(case), seen)
        again = compared(case, reply, negative_selectors=negative_selectors)
        if not again.failed:
            return again if seen else Comparison(left_out="upstream takes the order of a map")
    return again if seen else found


def _with_others(case: V1, reply: Reply, seen: list[V1]) -> Reply:
    """Return a reply with the earlier ones, which `seen` has, if the release allocates devices in any order.

    Since 1.36, DynamicResources sorts pools and slices. Before, each node has the result of some order.
    """
    if reply.expected is None or "resourceslices" not in case or case["kubernetes"] not in _ANY_ORDER:
        return reply
    if reply.expected["plugins"] not in seen:
        seen.append(reply.expected["plugins"])
    return Reply(expected={**reply.expected, "others": seen})


def smallest(case: V1, found: Comparison, intree: InTree, *, negative_selectors: bool) -> V1:
    """Return the smallest found part of a case with the same difference, with the real plugins' `expected`."""

    def still(candidate: V1) -> bool:
        try:
            candidate = {"name": case["name"], "kubernetes": case["kubernetes"], **candidate}
            again = compared(candidate, _requested(candidate, intree), negative_selectors=negative_selectors)
        except (GoldenFileError, KeyError, TypeError, AttributeError):
            return False  # it lacks a required member
        # An error of the engine for half an object is another difference.
        return again.failed == found.failed and ("  answer\n" in again.text) == ("  answer\n" in found.text)

    least: V1 = {"name": case["name"], "kubernetes": case["kubernetes"], **shrunk(case, still, _SHRINKING)}
    return {**least, "expected": sorted_reasons(_requested(least, intree).expected)}


def _requested(case: V1, intree: InTree) -> Reply:
    """Return a reply, with those in other orders if they count, too."""
    seen: list[V1] = []
    reply = _with_others(case, intree.reply(case), seen)
    for _ in range(_ORDERS if seen else 0):
        reply = _with_others(case, intree.reply(case), seen)
    return reply


def sorted_reasons(value: Any) -> Any:  # noqa: ANN401  # any JSON
    """Return a reply with reasons in the engine's form.

    Scalar resources in NodeResourcesFit's reasons are sorted by name, because upstream takes them from a map. An error
    has no prefix of kube-scheduler's framework (pkg/scheduler/framework/runtime/framework.go, RunPreFilterPlugins and
    RunFilterPlugins).
    """
    if isinstance(value, dict):
        return {name: sorted_reasons(each) for name, each in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], str):
        reasons = [_RUNNING.sub("", each) for each in value]
        scalars = sorted(each for each in reasons if _SCALAR.match(each))
        return [*(each for each in reasons if not _SCALAR.match(each)), *scalars]
    return value


def _normalized(expected: V1) -> Iterator[int]:
    """Yield the normalised scores of all plugins. RunScorePlugins fails where one is not 0 to 100."""
    for members in expected.get("plugins", {}).values():
        for over in ("all", "feasible"):
            yield from (members.get(f"normalized_{over}") or {}).values()


def _has_negative_selector(pod: V1) -> bool:
    """Return whether a term of a pod has a namespaceSelector of only negative requirements."""
    affinity = pod["spec"].get("affinity") or {}
    for member in ("podAffinity", "podAntiAffinity"):
        for terms in (affinity.get(member) or {}).values():
            for each in terms or ():
                selector = (each.get("podAffinityTerm", each) or {}).get("namespaceSelector") or {}
                operators = {one.get("operator") for one in selector.get("matchExpressions") or ()}
                if operators and operators <= _NEGATIVE and not selector.get("matchLabels"):
                    return True
    return False


_DATA: Final = Path(__file__).parents[1] / "conformance" / "data"
_FILES: Final = ("cases", "volumes", "preempt", "nominated")
DEVICES: Final = "devices"
_RANDOM_DEVICES: Final = "devices_random"
_FOLDERS: Final = {"1.34": _DATA, "1.35": _DATA / "v1.35", "1.36": _DATA / "v1.36", "1.37": _DATA / "v1.37"}
"""Release -> the folder of its golden data."""
_FOR_PEOPLE: Final = frozenset({"name", "only_with_nominated", "other_refusal", "skipped"})
"""Members of `expected` that explain the others. The program returns only some of them."""
_OF_ORDER: Final = frozenset({"allocation", "raw_scores_feasible", "normalized_feasible"})
"""Members of a device case that it lacks if they depend on the order of a map."""


def newest() -> list[Path]:
    """Return the files of the newest release, one of each kind of cases."""
    return _files(_FOLDERS["1.37"], (*_FILES, DEVICES))


def not_returned(release: str, intree: InTree) -> tuple[int, list[str]]:
    """Return the number of a release's golden cases, and the names of cases with another result of its plugins."""
    cases = [*_cases(release)]
    replies = intree.replies(cases)
    return len(cases), [
        case["name"]
        for case, reply in zip(cases, replies, strict=True)
        if reply.expected is None
        or _essential(case["expected"]) != _essential(_as_much(reply.expected, case["expected"]))
    ]


def _as_much(expected: V1, golden: V1) -> V1:
    """Return a result without members that a golden device case lacks, because they depend on the order of a map."""
    name = "DynamicResources"
    if name not in golden.get("plugins", ()):
        return expected
    lacking = _OF_ORDER.difference(golden["plugins"][name])
    members = {member: value for member, value in expected["plugins"][name].items() if member not in lacking}
    return {**expected, "plugins": {name: members}}


def _cases(release: str) -> Iterator[V1]:
    for file in _files(_FOLDERS[release], (*_FILES, DEVICES, _RANDOM_DEVICES)):
        for line in read(file):
            # In a case with this member, `expected` has the fix of kubernetes#141526, which v1.34 lacks. One with
            # others is returned in any order of pools.
            if "expected_1_34" not in line.content and "others" not in line.content["expected"]:
                yield dict(line.content)


def _files(folder: Path, names: Iterable[str]) -> list[Path]:
    return [file for name in names if (file := folder / f"{name}.jsonl.gz").exists()]


def _essential(expected: V1) -> object:
    return sorted_reasons({name: value for name, value in expected.items() if name not in _FOR_PEOPLE})

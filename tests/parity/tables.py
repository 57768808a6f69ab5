"""Upstream's own unit-test tables: `python -m tests.parity.tables` compares their rows like random cases.

Each call in the tests of a plugin is a case (tests/parity/recording.py). The plugins of the release return the expected
result, with default arguments. So a row with other arguments is just another input.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.e2e.binaries import RELEASES, BuildError, binaries, module_of
from tests.parity.__main__ import DIFFERENT, NOT_BUILT, SAME, Turns
from tests.parity.intree import PROGRAM, InTree
from tests.parity.random_nodes import V1
from tests.parity.recording import recorded

_OF_VOLUMES: Final = frozenset({"nodevolumelimits", "volumebinding", "volumerestrictions", "volumezone"})
_OF_DEVICES: Final = ("deviceclasses", "resourceclaims", "resourceslices", "devicetaintrules")
_DONE: Final = frozenset({"Succeeded", "Failed"})


def cases(calls: Path) -> Iterator[tuple[str, V1]]:
    """Yield the package and the case of each call that is not the same as an earlier one."""
    seen = set()
    for line in calls.read_text("utf-8").splitlines():
        call = json.loads(line)
        made = case_of(call)
        text = json.dumps(made, sort_keys=True)
        if text not in seen:
            seen.add(text)
            yield call["package"], {"name": f"table/{call['package']}/{len(seen)}", **made}


def case_of(call: V1) -> V1:
    """Return a call as a golden case.

    Tests leave out fields that every object of a cluster has: names, namespaces, containers.
    """
    made: V1 = {member: call.get(member) or [] for member in ("namespaces", "nodes", "pods")}
    made |= {member: value for member, value in call.items() if member not in made and member != "package"}
    if call["package"] in _OF_VOLUMES:
        made["storageclasses"] = made.get("storageclasses") or []
    if call["package"] == "dynamicresources":
        made |= {member: made.get(member) or [] for member in _OF_DEVICES}
        _name(made["resourceslices"], "resourceslice")
        _name_alternatives(made["resourceclaims"])
    if call["package"] == "defaultpreemption":
        made["pdbs"] = made.get("pdbs") or []
    made["pods"] = [each for each in made["pods"] if (each.get("status") or {}).get("phase") not in _DONE]
    for each in (
        made["pod"],
        *made["pods"],
        *made.get("pvcs", ()),
        *made.get("resourceclaims", ()),
        *made.get("pdbs", ()),
    ):
        each["metadata"]["namespace"] = each["metadata"].get("namespace") or "default"
    for each in made["pods"] if "pdbs" in made else ():
        # Without a start time, upstream compares the times of two calls of Now, and treats neither pod as older.
        each["status"] = {"startTime": "2026-01-01T00:00:00Z", **each.get("status", {})}
    for each in made["namespaces"]:
        each["metadata"]["name"] = each["metadata"].get("name") or "default"
    for member in ("nodes", "pdbs"):
        _name(made.get(member, []), member)
    only = made["nodes"][0]["metadata"]["name"] if len(made["nodes"]) == 1 else None
    for each in made["pods"]:
        each["spec"]["nodeName"] = each["spec"].get("nodeName") or only
    _name([made["pod"], *made["pods"]], "pod")
    for each in (made["pod"], *made["pods"]):
        each["spec"]["containers"] = each["spec"].get("containers") or [{"name": "c"}]
    return made


def _name(objects: Sequence[V1], kind: str) -> None:
    names, uids = set(), set()
    for number, each in enumerate(objects):
        metadata = each["metadata"]
        if not metadata.get("name") or (metadata.get("namespace"), metadata["name"]) in names:
            metadata["name"] = f"{kind}-{number}"
        if kind == "pod" and (not metadata.get("uid") or metadata["uid"] in uids):
            metadata["uid"] = f"uid-{number}"
        names.add((metadata.get("namespace"), metadata["name"]))
        uids.add(metadata.get("uid"))


def _name_alternatives(claims: Sequence[V1]) -> None:
    """Give the alternatives of a request different names, as an API server wants them."""
    for claim in claims:
        for request in claim["spec"].get("devices", {}).get("requests") or ():
            alternatives = request.get("firstAvailable", ())
            if len({each["name"] for each in alternatives}) < len(alternatives):
                for number, each in enumerate(alternatives):
                    each["name"] = f"alternative-{number}"


def main(arguments: Sequence[str]) -> int:
    """Compare the rows of each release, print the report, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.tables", description=__doc__)
    parser.add_argument("--kubernetes", action="append", choices=RELEASES, help="may be repeated; default: all")
    found = []
    for release in parser.parse_args(arguments).kubernetes or RELEASES:
        try:
            program = binaries([PROGRAM], module_of(RELEASES[release]))[PROGRAM]
            rows = [*cases(recorded(RELEASES[release]))]
        except BuildError as error:
            sys.stderr.write(f"{error}\n")
            return NOT_BUILT
        with InTree([str(program)]) as intree:
            turns = Turns(release, intree, iter(rows))
            turns.turn(len(rows))
        sys.stdout.write(f"{turns.report.text()}\n")
        found.append(turns.report)
    return DIFFERENT if any(report.differing for report in found) else SAME


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Faults of devices: the search, pools, what is in use, capacities, and what events keep."""

from typing import Final

from tests.mutants.fault import Fault

_ALLOCATOR: Final = ("test_allocator.py", "test_releases.py")
_CEL: Final = ("test_selectors.py", "test_recorded_selectors.py")
_STREAMS: Final = ("test_inventory.py", "test_devices.py")

FAULTS: Final = (
    Fault(
        id="device-in-use-of-another-claim-taken",
        breaks="A request takes a device that another request of the pod has taken.",
        old="        return where[1] in self._taken[where[0]] or bool(holders)",
        new="        return where[1] in self._taken[where[0]]",
        tests=_ALLOCATOR,
    ),
    Fault(
        id="next-device-of-a-request-from-the-start",
        breaks="All orders of the devices of one request are tried, instead of all sets.",
        old="code = self._with(at, demand, index, where, (place, number + 1))",
        new="code = self._with(at, demand, index, where, _START)",
        tests=_ALLOCATOR,
    ),
    Fault(
        id="constraint-keeps-a-device-that-was-given-back",
        breaks="A constraint still counts the device that the search has given back.",
        old="        for number in reversed(range(undo.constraints)):",
        new="        for number in reversed(range(undo.constraints - 1)):",
        tests=_ALLOCATOR,
    ),
    Fault(
        id="counters-not-given-back",
        breaks="Counters stay consumed by a device that the search has given back.",
        old="        if undo.reserved:\n",
        new="        if undo.reserved and undo.marked:\n",
        tests=_ALLOCATOR,
    ),
    Fault(
        id="counters-of-devices-in-use-free",
        breaks="A device in use consumes no counters.",
        old="                for counter, amount in each.counters if self._is_allocated(each) else ():",
        new="                for counter, amount in () if self._is_allocated(each) else each.counters:",
        tests=_ALLOCATOR,
    ),
    Fault(
        id="share-forgotten",
        breaks="What is consumed of a shared device is free.",
        old="        if amount + taken.get(name, 0) + taking.get(name, 0) > capacity.value:",
        new="        if amount + taking.get(name, 0) > capacity.value:",
        tests=_ALLOCATOR,
    ),
    Fault(
        id="error-of-a-selector-no-match",
        breaks="A selector that fails does not match, instead of ending the attempt.",
        old="            if isinstance(outcome, SelectorError):\n",
        new="            if isinstance(outcome, SelectorError):\n                return False\n",
        tests=_ALLOCATOR,
    ),
    Fault(
        id="long-search-refuses-the-node",
        breaks="A search that is too long refuses the node, although devices may be free.",
        old="        except UndecidedError as error:\n            return Outcome(SUCCESS, undecided=str(error))\n"
        "        except AllocationError",
        new="        except UndecidedError as error:\n            return Outcome(CANNOT_ALLOCATE)\n"
        "        except AllocationError",
        tests=_ALLOCATOR,
    ),
    Fault(
        id="attributes-not-compared-between-nodes",
        breaks="Nodes whose devices differ in an attribute that a selector reads are judged as one.",
        old="        columns = [self._column(pool, name) for name in sorted(reads.attributes)]",
        new="        columns: list[int] = []",
        tests=_ALLOCATOR,
    ),
    Fault(
        id="usage-not-read-again",
        breaks="The devices of a pool that are in use are counted once, and not after an event.",
        old="            pool.usage = None\n            if pool.whole is not None:\n",
        new="            if pool.whole is not None:\n",
        tests=_STREAMS,
    ),
    Fault(
        id="pools-of-other-nodes-not-forgotten",
        breaks="A slice that changes leaves the pools of other nodes that see its pool as they were.",
        old="            for seeing in (*self._seen_by.pop(pool_id, ()), *(() if slot is None else (slot,))):",
        new="            for seeing in () if slot is None else (slot,):",
        tests=_STREAMS,
    ),
    Fault(
        id="devices-without-a-revision",
        breaks="A cached verdict outlives the allocation of a device.",
        old="            self.revision += 1\n            device = each.device\n",
        new="            device = each.device\n",
        tests=_STREAMS,
    ),
    Fault(
        id="own-claims-not-a-version",
        breaks="A cached verdict outlives a change of the pod's own claim.",
        old="        return (state.inventory.revision, tuple(own))",
        new="        return (state.inventory.revision, len(own))",
        tests=_STREAMS,
    ),
    Fault(
        id="labels-of-a-node-not-for-devices",
        breaks="A node's pools are as its labels were when they were first looked up.",
        old="        if before is None or after is None or before.labels != after.labels:\n            self._of_node",
        new="        if before is None or after is None:\n            self._of_node",
        tests=_STREAMS,
    ),
    Fault(
        id="score-of-another-pods-claims",
        breaks="The score of claims that were allocated before is left out.",
        old="        return found + state.score_of_allocated()",
        new="        return found",
        tests=_ALLOCATOR,
    ),
    Fault(
        id="method-of-a-domain-taken-for-an-attribute",
        breaks="A selector with all() of a domain is evaluated once for devices with different attributes.",
        old=r"([A-Za-z_][A-Za-z0-9_]*)\b(?!\s*\()|",
        new="([A-Za-z_][A-Za-z0-9_]*)|",
        tests=("test_matching.py",),
    ),
    Fault(
        id="shareable-told-in-135",
        breaks="A selector of 1.35 sees that a device may be shared.",
        old="        None if release == _NOT_REPORTED else device.device.shareable,",
        new="        device.device.shareable,",
        tests=_ALLOCATOR,
    ),
    Fault(
        id="partition-without-amounts-taken",
        breaks="Before 1.36 a device that consumes no amount of its counters is allocated.",
        old="(device.device.consumes and not self._gates.partitions)",
        new="(device.counters and not self._gates.partitions)",
        tests=_ALLOCATOR,
    ),
    Fault(
        id="amount-does-not-overflow",
        breaks="Before 1.37 an amount that is rounded up over int64 does not become negative.",
        old="    return int64(rounded) * _NANOS",
        new="    return rounded * _NANOS",
        tests=_ALLOCATOR,
    ),
    Fault(
        id="counters-take-the-slices-of-their-node-along",
        breaks="In 1.36 a slice of counters that goes takes along the slices with devices of its node.",
        old="            del self.counted[each.driver, each.pool]\n        elif",
        new="            del self.counted[each.driver, each.pool]\n        if",
        tests=_STREAMS,
    ),
    Fault(
        id="nodes-of-a-slice-that-is-left-out-read",
        breaks="A slice that a release leaves out makes nodes fail for its selector.",
        old="        if not self._is_used(each):\n            return\n",
        new="",
        tests=_STREAMS,
    ),
    Fault(
        id="counters-without-devices-not-seen",
        breaks="In 1.36 nodes that were judged do not learn of a new pool that cannot be used.",
        old="        self._odd_pools()  # changes",
        new="        # changes",
        tests=_STREAMS,
    ),
    Fault(
        id="claim-that-was-bound-in-time-marked",
        breaks="A claim that was bound, changed or deleted meanwhile is marked with what it was before.",
        old="                self._waiting.pop(change.before.full_name, None)\n",
        new="                pass\n",
        tests=("app/feeds/test_feed.py",),
    ),
    Fault(
        id="binding-timeout-at-decoding-alone",
        breaks="A claim whose time to be bound ends later stays usable until it changes.",
        old="            for claim in self._waiting.overdue(self._wall_clock()):\n",
        new="            for claim in ():\n",
        tests=("app/feeds/test_feed.py",),
    ),
    Fault(
        id="version-among-elements-compared",
        breaks="A version in a list is compared like another value, although cel-go returns an error.",
        old="            elif cel_types.dynamic(kind) and not self._depth:\n",
        new="            elif cel_types.dynamic(kind) and not self._depth:\n                continue\n",
        tests=_CEL,
    ),
    Fault(
        id="missing-value-may-be-a-version",
        breaks="A value that is an error may be a version, so that a usual selector has no result.",
        old="        if found is True or called:",
        new="        if found is not False or called:",
        tests=_CEL,
    ),
    Fault(
        id="anchor-matches-anew",
        breaks="findAll matches the beginning of the text again after each match, as cel-cpp does.",
        old='        differs = function == "findAll" and _anchor.search(text)',
        new="        differs = False",
        tests=_CEL,
    ),
    Fault(
        id="error-of-a-template-lost",
        breaks="indexOf of an empty list does not evaluate the value that is looked for.",
        old='_NONE: Final = "[[b].size() - 2]"',
        new='_NONE: Final = "[-1]"',
        tests=_CEL,
    ),
    Fault(
        id="fractions-of-sums-ignored",
        breaks="A sum of two fractions is an integer, although AsInt64 returns none.",
        old="            return sum(map(self._fractions, operands))",
        new="            return 1",
        tests=_CEL,
    ),
)

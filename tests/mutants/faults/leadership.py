"""Faults of leader election: two replicas that decide at a time, or none."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="trusts-from-the-answer-on",
        breaks="The leader trusts in its Lease from the answer to a renewal, not from when it was sent.",
        old="        self._renewed_at = sent_at\n",
        new="        self._renewed_at = self._clock()\n",
        tests=("test_election.py", "test_election_machine.py"),
    ),
    Fault(
        id="unchanged-lease-never-expires",
        breaks="A Lease that its dead holder no longer renews is respected for ever.",
        old="        if lease.record != self._observed:\n            self._observed = lease.record\n    ",
        new="        if True:\n            self._observed = lease.record\n    ",
        tests=("test_election.py", "test_election_machine.py"),
    ),
    Fault(
        id="clocks-run-alike",
        breaks="The leader trusts in its Lease for as long as others wait, though clocks differ.",
        old="_SAME_RATE: Final = 0.95\n",
        new="_SAME_RATE: Final = 1.0\n",
        tests=("test_election.py", "test_election_machine.py"),
    ),
    Fault(
        id="released-lease-still-trusted",
        breaks="A replica that gives its Lease up goes on to lead until the renew deadline.",
        old="        self._renewed_at = -math.inf\n        response = yield Get()\n",
        new="        response = yield Get()\n",
        tests=("test_election.py", "test_election_machine.py", "test_elector.py"),
    ),
    Fault(
        id="lease-duration-rounded-down",
        breaks="Others wait for less than the Lease's duration where it is no whole number of seconds.",
        old="self._duration = math.ceil(duration)",
        new="self._duration = math.floor(duration)",
        tests=("test_election.py",),
    ),
    Fault(
        id="leads-before-it-has-caught-up",
        breaks="A replica decides before it has listed the pods that the leader before has bound.",
        old="        await self._catch_up()\n        term.caught_up = True\n",
        new="        term.caught_up = True\n        await self._catch_up()\n",
        tests=("test_elector.py", "test_leading.py"),
    ),
    Fault(
        id="late-notice-keeps-the-term",
        breaks="A replica that was stopped for longer than its Lease leads again without a new list of the pods.",
        old="            if not holds:\n",
        new="            if not holds and self._resigned:\n",
        tests=("test_elector.py", "test_leading.py"),
    ),
    Fault(
        id="binds-until-it-stops-leading-alone",
        breaks="Bindings under way end with the renew deadline, though no other replica can lead before its time.",
        old="        return self._election.others_may_acquire_at - self._clock()\n",
        new="        return self._election.holds_until - self._clock()\n",
        tests=("test_elector.py", "test_leading.py"),
    ),
    Fault(
        id="follower-keeps-its-connections",
        breaks="kube-scheduler goes on to ask a replica that does not lead.",
        old="        return self.draining or not self.may_decide()\n",
        new="        return self.draining\n",
        tests=("test_leading.py", "test_failover.py", "test_verb_endpoint.py"),
    ),
)

"""Faults of `kindred doctor`: a dangerous registration that it does not report, or an ordinary one that it does."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="profile-percentage-ignored",
        breaks="A profile that looks at all nodes is blamed for the sample of the others.",
        old='        if profile.percentage_of_nodes_to_score is None:\n            return "percentageOfNodesToScore"',
        new='        if True:\n            return "percentageOfNodesToScore"',
        tests=("test_filter_checks.py",),
    ),
    Fault(
        id="timeout-equal-to-the-deadline",
        breaks="A timeout that is exactly the deadline is not blamed.",
        old="or extender.timeout < 0 or extender.timeout > deadline:",
        new="or extender.timeout < 0 or extender.timeout >= deadline:",
        tests=("test_time_checks.py",),
    ),
    Fault(
        id="milliseconds-read-as-minutes",
        breaks="A Go duration in milliseconds is read as minutes.",
        old='"ms": 1e-3,',
        new='"ms": 60e-3,',
        tests=("test_go_duration.py",),
    ),
    Fault(
        id="expiry-within-a-day-told",
        breaks="A certificate that ends within the week is told only on its last day.",
        old="_SOON: Final = timedelta(days=7)",
        new="_SOON: Final = timedelta(days=1)",
        tests=("test_tls_checks.py",),
    ),
    Fault(
        id="ignorable-binder-not-told",
        breaks="An extender that binds and is ignorable is not blamed, though kube-scheduler then binds by itself.",
        old="        if ours and registration.extender.ignorable:",
        new="        if ours and not registration.extender.ignorable:",
        tests=("test_binding_checks.py",),
    ),
)

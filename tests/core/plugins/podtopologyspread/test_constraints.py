"""Which constraints hold for a pod, with which selectors; and which defaults are refused."""

from typing import Any, Final

import pytest

from core.objects.labels import NOTHING, Operator, Selector, requirement
from core.objects.pod import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, SpreadConstraint
from core.plugins.podtopologyspread.constraints import (
    SYSTEM_DEFAULTS,
    BrokenConstraintError,
    check_arguments,
    default_constraints,
    own_constraints,
)
from tests.core.plugins.podtopologyspread.spreading import HOST, ZONE, incoming, must, selecting, should

HAS_TIER: Final = Selector((requirement("tier", Operator.EXISTS, ()),))
NEITHER: Final = SpreadConstraint(1, ZONE, "")
DEFAULT: Final = SpreadConstraint(1, ZONE, SCHEDULE_ANYWAY)


def test_constraints_are_told_apart_by_what_they_do_where_they_cannot_be_met() -> None:
    pod = incoming(must(ZONE), should(HOST), must(HOST, 2), NEITHER, should("x"))
    assert (must(ZONE), must(HOST, 2)) == own_constraints(pod, DO_NOT_SCHEDULE)
    assert (should(HOST), should("x")) == own_constraints(pod, SCHEDULE_ANYWAY)


@pytest.mark.parametrize(
    ("selector", "keys", "expected"),
    [
        pytest.param(selecting(app="web"), ("hash",), selecting(app="web", hash="7"), id="are-added"),
        pytest.param(selecting(app="web"), ("rack",), selecting(app="web"), id="that-the-pod-lacks-are-not"),
        pytest.param(selecting(), ("hash", "rack"), selecting(hash="7"), id="make-an-empty-selector-select"),
        pytest.param(selecting(app="web"), ("app",), selecting(app="web"), id="that-are-there-are-not-added-again"),
        pytest.param(NOTHING, ("hash",), NOTHING, id="leave-a-null-selector"),
        pytest.param(selecting(), ("void",), selecting(void=""), id="may-have-an-empty-value"),
        pytest.param(
            HAS_TIER,
            ("app",),
            Selector((*selecting(app="web").requirements, *HAS_TIER.requirements)),
            id="are-sorted-in",
        ),
    ],
)
def test_match_label_keys(selector: Selector, keys: tuple[str, ...], expected: Selector) -> None:
    # common.go: filterTopologySpreadConstraints, mergeLabelSetWithSelector
    pod = incoming(must(ZONE, 1, selector, match_label_keys=keys), labels={"app": "web", "hash": "7", "void": ""})
    assert [expected] == [constraint.selector for constraint in own_constraints(pod, DO_NOT_SCHEDULE)]


def test_the_first_broken_selector_is_told_of_the_constraints_that_are_looked_at() -> None:
    pod = incoming(
        should(ZONE, selector_error="soft"), must(HOST, selector_error="one"), must(ZONE, selector_error="2")
    )
    with pytest.raises(BrokenConstraintError, match=r"^one$"):
        own_constraints(pod, DO_NOT_SCHEDULE)
    with pytest.raises(BrokenConstraintError, match=r"^soft$"):
        own_constraints(pod, SCHEDULE_ANYWAY)


def test_default_constraints_get_the_selector_that_was_deduced() -> None:
    hard = SpreadConstraint(2, HOST)
    web = selecting(app="web")
    assert (should(ZONE),) == default_constraints((DEFAULT, hard), SCHEDULE_ANYWAY, web)
    assert (must(HOST, 2),) == default_constraints((DEFAULT, hard), DO_NOT_SCHEDULE, web)


def test_default_constraints_do_not_apply_to_a_pod_that_nothing_selects() -> None:
    assert default_constraints((DEFAULT,), SCHEDULE_ANYWAY, selecting()) == ()


def test_the_system_s_defaults_are_those_of_upstream() -> None:
    assert [(each.max_skew, each.topology_key, each.when_unsatisfiable) for each in SYSTEM_DEFAULTS] == [
        (3, "kubernetes.io/hostname", "ScheduleAnyway"),
        (5, "topology.kubernetes.io/zone", "ScheduleAnyway"),
    ]


def test_defaults_for_both_actions_of_one_key_are_accepted() -> None:
    check_arguments("List", (DEFAULT, SpreadConstraint(1, ZONE), SpreadConstraint(1, HOST)))
    check_arguments("System", ())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"max_skew": 0}, r"\[0\]\.maxSkew: must be greater than 0, got 0", id="max-skew"),
        pytest.param({"topology_key": ""}, r"\[0\]\.topologyKey: must not be empty", id="no-topology-key"),
        pytest.param({"topology_key": "a b"}, r"\[0\]\.topologyKey: name part must .*, got a b", id="topology-key"),
        pytest.param(
            {"when_unsatisfiable": "Never"},
            r"\[0\]\.whenUnsatisfiable: must be DoNotSchedule or ScheduleAnyway, got Never",
            id="when-unsatisfiable",
        ),
        pytest.param(
            {"selector": selecting(app="web")}, r"\[0\]\.labelSelector: must be absent, as it is .*", id="selector"
        ),
        pytest.param(
            {"selector_error": "broken"}, r"\[0\]\.labelSelector: must be absent, as it is .*", id="broken-selector"
        ),
    ],
)
def test_a_default_constraint_is_refused_by_the_upstream_name_of_what_is_wrong(
    changes: dict[str, Any], message: str
) -> None:
    # ValidatePodTopologySpreadArgs of validation_pluginargs.go
    fields = {"max_skew": 1, "topology_key": ZONE, "when_unsatisfiable": SCHEDULE_ANYWAY, **changes}
    with pytest.raises(ValueError, match=f"^defaultConstraints{message}$"):
        check_arguments("List", (SpreadConstraint(**fields),))


def test_a_default_constraint_is_refused_that_is_there_twice() -> None:
    with pytest.raises(
        ValueError, match=r"^defaultConstraints\[1\]: must not be there twice, got zone, ScheduleAnyway$"
    ):
        check_arguments("List", (DEFAULT, SpreadConstraint(9, ZONE, SCHEDULE_ANYWAY)))


@pytest.mark.parametrize(
    ("defaulting_type", "message"),
    [
        pytest.param("Custom", "must be System or List, got Custom", id="unknown"),
        pytest.param("System", "must be List where defaultConstraints are not empty, got System", id="with-a-list"),
    ],
)
def test_a_defaulting_type_is_refused(defaulting_type: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^defaultingType: {message}$"):
        check_arguments(defaulting_type, (DEFAULT,))

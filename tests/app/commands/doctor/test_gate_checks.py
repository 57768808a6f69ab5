"""Whether the gates of kube-scheduler and of Kindred are the same."""

import pytest

from app.commands.doctor.gate_checks import gate_findings
from app.scheduler_configuration.scheduler_config import UnreadableError
from app.settings import Settings

DEVICES_OFF = "DRAExtendedResource=false"


def found(flag: str, **settings: object) -> list[str]:
    findings = gate_findings(flag, Settings.model_validate(settings))
    return [f"{each.severity.value}: {each.message}; {each.fix}" for each in findings]


@pytest.mark.parametrize("kubernetes", ["1.36", "auto"])
def test_devices_that_are_off_in_kube_scheduler_alone_are_an_error(kubernetes: str) -> None:
    (told,) = found(DEVICES_OFF, kubernetes=kubernetes)
    assert told == (
        "error: DRAExtendedResource is off in kube-scheduler and on in Kindred, with Kubernetes 1.36: Kindred passes "
        "nodes for devices that no program allocates; featureGates: DRAExtendedResource=false (KINDRED_FEATURE_GATES)"
    )


def test_groups_that_are_cycles_for_kindred_alone_are_an_error() -> None:
    (told,) = found("", kubernetes="1.37", feature_gates="GenericWorkload=true")
    assert told == (
        "error: GenericWorkload is off in kube-scheduler and on in Kindred, with Kubernetes 1.37: Kindred releases the "
        "places of members that kube-scheduler binds one by one; featureGates: GenericWorkload=false "
        "(KINDRED_FEATURE_GATES)"
    )
    (other,) = found("GenericWorkload=true", kubernetes="1.37")
    assert other.startswith("warning: GenericWorkload is on in kube-scheduler and off in Kindred")
    assert "the places of a group that could not be placed count for minutes" in other


@pytest.mark.parametrize(
    ("flag", "settings"),
    [
        pytest.param("", {"kubernetes": "1.36"}, id="defaults"),
        pytest.param(DEVICES_OFF, {"feature_gates": DEVICES_OFF}, id="both-off"),
        pytest.param(DEVICES_OFF, {"kubernetes": "1.34"}, id="off-by-default"),
        pytest.param(DEVICES_OFF, {"kubernetes": "1.37"}, id="locked"),
        pytest.param("NoSuchGate=true, SchedulerAsyncAPICalls=false", {}, id="gates-that-change-no-result"),
    ],
)
def test_gates_that_are_the_same_are_no_finding(flag: str, settings: dict[str, object]) -> None:
    assert found(flag, **settings) == []


def test_other_differences_are_warnings() -> None:
    (on,) = found("DRAExtendedResource=true", kubernetes="1.35")
    assert on.startswith("warning: DRAExtendedResource is on in kube-scheduler and off in Kindred")
    assert "featureGates: DRAExtendedResource=true" in on
    (ours,) = found("", feature_gates="StorageCapacityScoring=true")
    assert ours.startswith(
        "warning: StorageCapacityScoring is off in kube-scheduler and on in Kindred, with Kubernetes"
    )
    assert "1.34, 1.35, 1.36: verdicts or scores differ" in ours


def test_gates_by_their_stage_are_not_compared() -> None:
    assert found("AllBeta=false") == [
        "info: AllBeta is not compared: it sets gates by their stage; each gate by its name"
    ]


@pytest.mark.parametrize("flag", ["DRAExtendedResource", "DRAExtendedResource=maybe"])
def test_a_flag_that_kube_scheduler_cannot_read_is_an_error(flag: str) -> None:
    with pytest.raises(UnreadableError, match="--scheduler-feature-gates 'DRAExtendedResource"):
        found(flag)

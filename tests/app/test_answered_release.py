"""Which release of Kubernetes is answered for: by the setting, by what a server or kubelets say, or by default."""

import pytest

from app.feeds.release import ReleaseSource, ReleaseTracker, newest
from app.settings.settings import Settings
from core.mirror.cluster import ClusterMirror
from core.releases.differences import rules_of
from core.releases.release import DEFAULT_RELEASE, RELEASES, Release


def test_without_a_word_the_default_release_is_answered_for() -> None:
    mirror = ClusterMirror()
    status = ReleaseTracker(Settings(), mirror).status
    assert (status.release, status.source, status.exact) == (str(DEFAULT_RELEASE), "default", False)
    assert mirror.rules == rules_of(DEFAULT_RELEASE)
    assert str(status) == f"Kubernetes {DEFAULT_RELEASE}, the default: no source reports the release"


@pytest.mark.parametrize("release", [str(each) for each in RELEASES])
def test_the_setting_decides_whatever_others_say(release: str) -> None:
    mirror = ClusterMirror()
    responded = ReleaseTracker(Settings(kubernetes=release), mirror)
    responded.take("v1.35.1", "server")
    assert (responded.status.release, responded.status.source, responded.status.exact) == (release, "setting", True)
    assert str(mirror.rules.release) == release


@pytest.mark.parametrize(
    ("reported", "source", "rendered"),
    [
        pytest.param("v1.37.1", "server", "Kubernetes 1.37 (API server: v1.37.1)", id="known"),
        pytest.param("v1.36.1+k3s1", "server", "Kubernetes 1.36 (API server: v1.36.1+k3s1)", id="fork"),
        pytest.param(
            "v1.33.5-eks-3025e55",
            "server",
            "Kubernetes 1.34, the nearest known release (API server: v1.33.5-eks-3025e55)",
            id="older fork",
        ),
        pytest.param(
            "v1.38.0-alpha.1",
            "server",
            "Kubernetes 1.37, the nearest known release (API server: v1.38.0-alpha.1)",
            id="newer",
        ),
        pytest.param(
            "v2.0.0", "nodes", "Kubernetes 1.37, the nearest known release (newest kubelet: v2.0.0)", id="2.0"
        ),
        pytest.param("", "server", "Kubernetes 1.34, the nearest known release (API server: unknown)", id="nothing"),
    ],
)
def test_what_is_told_becomes_the_nearest_known_release(reported: str, source: ReleaseSource, rendered: str) -> None:
    mirror = ClusterMirror()
    responded = ReleaseTracker(Settings(), mirror)
    responded.take(reported, source)
    assert str(responded.status) == rendered
    assert f"Kubernetes {mirror.rules.release}" == rendered[: len("Kubernetes 1.37")]


def test_a_line_of_a_log_cannot_be_made_up_by_a_version() -> None:
    responded = ReleaseTracker(Settings(), ClusterMirror())
    responded.take("v1.37.1\nERROR all is lost", "server")
    assert "\n" not in str(responded.status)


def test_feature_gates_change_the_rules_of_the_releases_that_have_them() -> None:
    mirror = ClusterMirror()
    responded = ReleaseTracker(Settings(feature_gates={"NodeDeclaredFeatures": False}), mirror)
    assert responded.status.ignored_gates == ["NodeDeclaredFeatures"]  # the default release does not have it
    responded.take("v1.36.2", "server")
    assert mirror.rules == rules_of(Release(1, 36), {"NodeDeclaredFeatures": False})
    assert responded.status.ignored_gates == []


def test_a_gate_that_an_upgrade_locks_is_ignored_and_told() -> None:
    mirror = ClusterMirror()
    gates = {"NodeDeclaredFeatures": False, "PodLevelResources": False}
    responded = ReleaseTracker(Settings(feature_gates=gates), mirror)
    responded.take("v1.37.1", "server")
    assert mirror.rules == rules_of(Release(1, 37), {"PodLevelResources": False})
    rendered = "Kubernetes 1.37 (API server: v1.37.1); ignored feature gates: NodeDeclaredFeatures"
    assert str(responded.status) == rendered


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        pytest.param(["v1.35.2", "v1.36.1", "v1.34.0"], "v1.36.1", id="the newest"),
        pytest.param(["v1.19.10-vk-azure-aci-1.4.8", "v1.35.2"], "v1.35.2", id="an old virtual kubelet"),
        pytest.param(["v2.3.1-vk", "v1.35.2"], "v1.35.2", id="a virtual kubelet with versions of its own"),
        pytest.param(["v1.38.0", "v1.20.1"], "v1.38.0", id="none that is known"),
        pytest.param(["", ""], "", id="none that says it"),
    ],
)
def test_the_newest_kubelet_is_taken_a_known_release_first(versions: list[str], expected: str) -> None:
    assert newest(versions) == expected

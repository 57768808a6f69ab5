"""What else plugins answer differently by release: reasons, images and tolerations."""

import pytest

from core.framework.evaluation import FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.objects.labels import in_bytes, label_key_errors, label_value_errors
from core.objects.pod import Taint, ToleratedTaints, Toleration
from core.plugins.imagelocality import ImageLocality
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.builders import make_node, make_pod
from tests.core.decoded import mirror_of, pod_of


def mirror_at(release: Release, mirror: ClusterMirror, **gates: bool) -> ClusterMirror:
    mirror.change_rules(rules_of(release, gates))
    return mirror


@pytest.mark.parametrize(("release", "expected"), [(Release(1, 35), 0), (Release(1, 36), 99), (Release(1, 37), 49)])
def test_image_volumes_are_scored_since_1_36_and_counted_since_1_37(release: Release, expected: int) -> None:
    node = make_node("n").image(1000 * 2**20, "volume:1")
    pod = pod_of(make_pod("p").image("other:1").volume({"name": "v", "image": {"reference": "volume:1"}}))
    mirror = mirror_at(release, mirror_of(node))
    raw = FreshEvaluation(mirror, pod).raw_scores(ImageLocality(), mirror.all_nodes())
    assert raw is not None
    assert abs(int(raw[0]) - expected) <= 1


NUMERIC = [
    ("Lt", "5", "4", True),
    ("Lt", "5", "5", False),
    ("Gt", "5", "6", True),
    ("Gt", "5", "05", False),
    ("Gt", "x", "6", False),
    ("Gt", "-5", "-4", True),
    ("Gt", "5", "9223372036854775808", False),
]


@pytest.mark.parametrize(("operator", "tolerated", "there", "expected"), NUMERIC)
def test_numbers_are_compared_only_behind_the_gate(
    operator: str, tolerated: str, there: str, *, expected: bool
) -> None:
    toleration, taint = Toleration("k", operator, tolerated, "NoSchedule"), Taint("k", there, "NoSchedule")
    assert toleration.tolerates(taint, numeric=True) is expected
    assert (taint in ToleratedTaints([toleration], numeric=True)) is expected
    assert not toleration.tolerates(taint)
    assert taint not in ToleratedTaints([toleration])


def test_labels_are_said_to_be_too_long_in_bytes_since_1_35() -> None:
    (too_long,) = label_value_errors("v" * 64)
    assert (too_long, in_bytes(too_long)) == ("must be no more than 63 characters", "must be no more than 63 bytes")
    (broken,) = label_key_errors("a/b/c")
    assert broken.startswith("a qualified name must consist of")
    assert in_bytes(broken).startswith("a valid label key must consist of")

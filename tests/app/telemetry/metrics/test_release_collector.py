"""The release of Kubernetes that is answered for, as labels."""

from app.answered_release import AnsweredRelease
from app.settings import Settings
from app.telemetry.metrics.release_collector import ReleaseCollector
from core.mirror.cluster import ClusterMirror


def test_the_release_is_the_one_that_is_answered_for_now() -> None:
    answered = AnsweredRelease(Settings(), ClusterMirror())
    collector = ReleaseCollector(answered)
    seen = []
    for told in ("v1.36.3", "v1.38.0"):
        answered.take(told, "server")
        (family,) = collector.collect()
        seen += [(sample.name, sample.labels, sample.value) for sample in family.samples]
    name = "kindred_kubernetes_release_info"
    assert seen == [
        (name, {"release": "1.36", "source": "server", "exact": "true"}, 1),
        (name, {"release": "1.37", "source": "server", "exact": "false"}, 1),
    ]

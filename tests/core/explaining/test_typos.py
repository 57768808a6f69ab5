"""Which texts are probably meant to be which others."""

import pytest

from core.explaining.typos import mistaken, mistaken_key, mistaken_value


@pytest.mark.parametrize(
    ("requested", "there"),
    [
        ("sdd", "ssd"),
        ("SSD", "ssd"),
        ("eu-west-1a", "eu-west1-a"),
        ("worker_gpu", "worker-gpu"),
        ("disktpye", "disktype"),
        ("disktyp", "disktype"),
        ("productioon", "production"),
        ("ssd-high-iosp", "ssd-high-iops"),
    ],
)
def test_a_typo(requested: str, there: str) -> None:
    assert mistaken(requested, there)
    assert mistaken(there, requested)


@pytest.mark.parametrize(
    ("requested", "there"),
    [
        ("ssd", "ssd"),
        ("ssd", "hdd"),
        ("sdd", "hdd"),
        ("gpu", "cpu"),
        ("eu-west-1a", "eu-west-1b"),
        ("zone-1", "zone-2"),
        ("zone-1", "zone-11"),
        ("v12", "v21"),
        ("a100", "v100"),
        ("m5.large", "m6.large"),
        ("dev", "de"),
        ("red", "blue"),
        ("", "-"),
        ("prod", "production"),
    ],
)
def test_another_name(requested: str, there: str) -> None:
    assert not mistaken(requested, there)
    assert not mistaken(there, requested)


def test_a_key_may_have_been_renamed() -> None:
    """hwameistor/hwameistor#230, dell/csm#319; well_known_labels.go."""
    assert mistaken_key("node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane")
    assert mistaken_key("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
    assert not mistaken_key("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


def test_a_label_that_is_only_there_may_have_been_given_a_value() -> None:
    assert mistaken_value("true", "")
    assert mistaken_value("", "true")
    assert mistaken_value("x86_64", "amd64")
    assert not mistaken_value("false", "true")

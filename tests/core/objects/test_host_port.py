"""Which ports of a node two pods cannot both have, as HostPortInfo.CheckConflict of kube-scheduler v0.34.1."""

import pytest

from core.objects.host_port import HostPort


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(HostPort(80), HostPort(80), True, id="same"),
        pytest.param(HostPort(80), HostPort(81), False, id="other-port"),
        pytest.param(HostPort(80), HostPort(80, "UDP"), False, id="other-protocol"),
        pytest.param(HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.1"), True, id="same-address"),
        pytest.param(HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.2"), False, id="other-address"),
        pytest.param(HostPort(80), HostPort(80, ip="10.0.0.1"), True, id="all-addresses-and-one"),
        pytest.param(HostPort(80, ip="::"), HostPort(80, ip="10.0.0.1"), False, id="only-0.0.0.0-is-all"),
        pytest.param(HostPort(80), HostPort(80, "UDP", "10.0.0.1"), False, id="all-addresses-other-protocol"),
    ],
)
def test_ports_conflict_on_a_common_address(
    one: HostPort,
    other: HostPort,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is one.conflicts_with(other)
    assert expected is other.conflicts_with(one)

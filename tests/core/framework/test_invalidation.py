"""The vocabulary in which plugins declare what makes their results invalid."""

import pytest

from core.framework.interface import NODE_LIFE, InvalidationRule, Operation, Scope, always
from core.objects.node import Node
from core.objects.pod import Pod


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, 1, Operation.ADD, id="comes"),
        pytest.param(1, 2, Operation.UPDATE, id="changes"),
        pytest.param(1, None, Operation.DELETE, id="goes"),
        pytest.param(0, 0, Operation.UPDATE, id="falsy-objects-are-there"),
        pytest.param({}, None, Operation.DELETE, id="a-namespace-without-labels-goes"),
    ],
)
def test_an_operation_follows_from_the_states_before_and_after(
    before: object | None, after: object | None, expected: Operation
) -> None:
    assert Operation.of(before, after) is expected


def test_operations_are_named_as_in_the_design() -> None:
    assert [operation.value for operation in Operation] == ["ADD", "UPDATE", "DELETE"]


def test_scopes_are_told_apart_in_words() -> None:
    assert len({scope.value for scope in Scope}) == len(Scope)


def test_a_rule_touches_always_unless_it_says_when() -> None:
    rule = InvalidationRule(kind=Pod, operations=(Operation.ADD,), scope=Scope.NODE, because="of a reason")

    assert rule.touches is always
    assert rule.touches(None, Pod("p", "default", "p"))
    assert rule.when == ""


def test_every_plugin_is_invalid_on_a_node_that_comes_or_goes() -> None:
    """A slot is reused, and a node of the same name may be another one (hole 9)."""
    (rule,) = NODE_LIFE

    assert rule.kind is Node
    assert set(rule.operations) == {Operation.ADD, Operation.DELETE}
    assert rule.scope is Scope.NODE
    assert rule.touches(None, Node("n"))
    assert rule.because

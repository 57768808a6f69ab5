"""Bounds what evaluating an expression can cost, before it is evaluated: the package cannot set a limit of cel-cpp.

Upstream counts at run time and ends at 1,000,000 units. A call has one, a literal up to thirty, and ten characters of a
text have one. Kindred counts the characters and elements that the expression can touch for any device, and ten for a
call. An expression above LIMIT is not evaluated. One below it is below upstream's limit, too.
"""

from typing import Final, NamedTuple

from core.plugins.dynamicresources import cel_equality, cel_types, checked_expression
from core.plugins.dynamicresources.cel_functions import CostError
from core.plugins.dynamicresources.checked_expression import Node

LIMIT: Final = 1_000_000
"""Characters and elements. 1,000,000 take 20 ms at most."""
_ATTRIBUTE_LENGTH: Final = 64  # DeviceAttributeMaxValueLength
_DOMAINS: Final = 32  # ResourceSliceMaxAttributesAndCapacitiesPerDevice
_NUMBER_LENGTH: Final = 64  # a quantity or a version, as Kindred writes it
_CALL: Final = 10


class Weight(NamedTuple):
    """The most that a value can be: its elements or characters, those of its elements together, those of each."""

    size: int
    total: int
    each: int


_ONE: Final = Weight(1, 1, 1)
_ATTRIBUTE: Final = Weight(_ATTRIBUTE_LENGTH, _ATTRIBUTE_LENGTH * _ATTRIBUTE_LENGTH, _ATTRIBUTE_LENGTH)
_ATTRIBUTES: Final = Weight(_DOMAINS, _DOMAINS * _ATTRIBUTE.total, _ATTRIBUTE.total)
_TEXT: Final = Weight(_NUMBER_LENGTH, _NUMBER_LENGTH, 1)
_FIELDS: Final = frozenset(cel_equality.FIELDS.values())
_COMPARED: Final = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_SEARCHED: Final = frozenset({"contains", "indexOf", "lastIndexOf", "matches", "split", "startsWith", "endsWith"})
_PAIRED: Final = frozenset({"regex.extract", "regex.extractAll", "sets.contains", "sets.intersects", "sets.equivalent"})
_SMALL: Final = frozenset(
    {"size", "type", "hasValue", "_&&_", "_||_", "!_", "-_", "_-_", "_*_", "_/_", "_%_", "int", "double"}
)


class Costs:
    """Sums up the cost of one expression."""

    def __init__(self, checked: Node) -> None:
        self._types = {each.key: each.value for each in checked.type_map}
        self._cost = 0

    def check(self, expression: Node) -> None:
        """Raise CostError if evaluating the expression can cost more than LIMIT."""
        self._weight(expression, {}, 1)

    def _pay(self, amount: int, times: int) -> None:
        self._cost += (amount + _CALL) * times
        if self._cost > LIMIT:
            raise CostError(f"it may cost more than {LIMIT:,} characters and elements")

    def _weight(self, node: Node, names: dict[str, Weight], times: int) -> Weight:
        """Return the weight of a value that is computed so many times."""
        match node.WhichOneof("kind"):
            case "const_expr":
                size = len(node.const_expr.string_value)
                return Weight(size, size, 1) if size else _ONE
            case "ident_expr":
                return self._of_name(node, names)
            case "select_expr" | "call_expr":
                return self._of_call(node, names, times)
            case "comprehension_expr":
                return self._of_loop(node.comprehension_expr, names, times)
        parts = [self._weight(each, names, times) for each in checked_expression.children(node)]
        total = sum(each.total for each in parts) + len(parts)
        self._pay(total, times)
        return Weight(len(parts), total, max((each.total for each in parts), default=0))

    def _of_name(self, node: Node, names: dict[str, Weight]) -> Weight:
        name = checked_expression.name_of(node)
        if name in names:
            return names[name]
        if node.id in self._types and self._types[node.id].HasField("map_type"):
            return _ATTRIBUTES
        return _TEXT

    def _of_call(self, node: Node, names: dict[str, Weight], times: int) -> Weight:
        parts = [self._weight(each, names, times) for each in checked_expression.children(node)]
        function = node.call_expr.function or "_[_]"
        kind = self._types.get(node.id)
        if function in ("_[_]", "_?._", "_[?_]"):
            self._pay(0, times)
            if node.select_expr.field in _FIELDS:
                return _TEXT
            if kind is None or cel_types.dynamic(cel_types.unwrapped(kind)):
                return _ATTRIBUTE
            return _ATTRIBUTES if parts[0] == _ATTRIBUTES else Weight(*[max(parts[0].each, _NUMBER_LENGTH)] * 3)
        if function in _COMPARED:
            self._pay(min(each.total for each in parts), times)
            return _ONE
        if function in _SMALL:
            self._pay(0, times)
            return _ONE
        return self._of_function(function, node, parts, times)

    def _of_function(self, function: str, node: Node, parts: list[Weight], times: int) -> Weight:
        sizes = [each.size for each in parts]
        total = sum(each.total for each in parts)
        made = Weight(sum(sizes), total, max((each.total for each in parts), default=0))
        if function in _SEARCHED:
            total = (sizes[0] + 1) * (sizes[1] + 1)
            made = Weight(sizes[0] + 1, sizes[0] * 2 + 1, sizes[0])
        elif function == "replace":
            total = (sizes[0] + 1) * (sizes[1] + sizes[2] + 1)
            made = Weight(total, total, 1)
        elif function == "join":
            total = parts[0].total + sizes[0] * sum(sizes[1:])
            made = Weight(total, total, 1)
        elif function == "lists.range":
            made = self._of_range(node)
            total = made.total
        elif function in _PAIRED or function in ("distinct", "sort"):
            total = (sizes[0] + 1) * (sizes[-1] + 1) * max(each.each for each in parts)
        elif function == "_?_:_":
            made = Weight(*[max(parts[1][index], parts[2][index]) for index in range(3)])
        self._pay(total, times)
        return made

    def _of_range(self, node: Node) -> Weight:
        end = checked_expression.arguments(node.call_expr)[0].const_expr
        if not end.HasField("int64_value") or end.int64_value > LIMIT:
            raise CostError("a range without a small constant end")
        return Weight(end.int64_value, end.int64_value, 1)

    def _of_loop(self, loop: Node, names: dict[str, Weight], times: int) -> Weight:
        within = self._weight(loop.iter_range, names, times)
        first = self._weight(loop.accu_init, names, times)
        element = Weight(*[max(within.each, 1)] * 3)
        key = _TEXT if within == _ATTRIBUTES else element
        inner = {**names, loop.iter_var: key, loop.iter_var2: element, loop.accu_var: _ONE}
        turns = times * within.size
        self._weight(loop.loop_condition, inner, turns)
        step = self._weight(loop.loop_step, inner, turns)
        grown = Weight(
            first.size + within.size * step.size, first.total + within.size * step.total, max(first.each, step.total)
        )
        return self._weight(loop.result, {**names, loop.accu_var: grown}, times)

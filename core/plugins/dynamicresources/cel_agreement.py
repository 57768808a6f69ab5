"""Which functions do the same in cel-go and cel-cpp, and for which arguments. The others are not evaluated."""

import re
from typing import Final

from core.objects import quantity
from core.plugins.dynamicresources import cel_types, checked_expression
from core.plugins.dynamicresources.cel_equality import ARITHMETIC, Equalities
from core.plugins.dynamicresources.cel_functions import InvalidExpressionError
from core.plugins.dynamicresources.checked_expression import Node

WITHOUT_OFFSET: Final = 2
"""Arguments of indexOf. For an offset that is out of range, engines differ."""
_NUMERIC: Final = frozenset(
    f"{one}_to_{other}" for one in ("int64", "uint64", "double") for other in ("int64", "uint64", "double")
)
_NAMES: Final = """
_&&_ _||_ !_ _?_:_ @not_strictly_false _<_ _<=_ _>_ _>=_ _+_ _-_ _*_ _/_ _%_ -_ _[_] _?._ _[?_] size string
contains startsWith endsWith charAt indexOf lastIndexOf join lowerAscii upperAscii replace split substring trim
optional.of optional.none hasValue value or orValue sets.contains sets.equivalent sets.intersects
distinct lists.range slice sort reverse @sortByAssociatedKeys
optional.ofNonZeroValue first last strings.quote format type bytes duration timestamp
getFullYear getMonth getDate getDayOfMonth getDayOfWeek getDayOfYear getHours getMinutes getSeconds
"""
_NATIVE: Final = frozenset(_NAMES.split())
"""Functions that both engines have, and that were compared."""
_OPTIONAL: Final = ("_?._", "_[?_]", "hasValue", "value", "or", "orValue")
"""Functions whose results differ for an operand that is no optional, and has no fields."""
_DOUBLES: Final = frozenset({"add_double", "subtract_double", "multiply_double", "divide_double"})
"""Arithmetic that may make a NaN. cel-go has an error for its order."""
_KEYED: Final = ("_[_]", "_[?_]")
_DEEP: Final = frozenset(["sets.contains", "sets.equivalent", "sets.intersects", "distinct", "indexOf", "lastIndexOf"])
"""Functions that compare elements of lists for equality."""
_EXACT: Final = 2**53
"""Below, a double is the number that is written."""
_whole: Final = re.compile("[+-]?(?:[0-9]{1,12}|[0-9]{1,5}(?:[KMG]i|[kMG]))")
"""Quantities that AsInt64 returns, also after additions."""
_clause: Final = re.compile("%(.?)", re.DOTALL)


class Agreement(Equalities):
    """Tells for which calls both engines do the same."""

    def _known(self, function: str, overloads: list[str], arguments: list[Node]) -> bool:
        """Return whether both engines do the same."""
        types = [self._type(each) for each in arguments]
        if (
            self._differing(function, arguments)
            or _differing_constant(function, arguments)
            or (_DOUBLES.intersection(overloads) and len(overloads) == 1)
        ):
            return False
        if function in _KEYED and types[0].HasField("map_type") and cel_types.dynamic(types[1]):
            self._note_panic(arguments[1])
        if function in _DEEP and any(cel_types.deep(each) for each in types):
            self._fragile(arguments)
        if function in ("int", "double", "uint"):
            return len(overloads) == 1 and overloads[0] in _NUMERIC
        if function == "@sortByAssociatedKeys":  # of values of unknown type, the result is no list to cel-cpp
            return not any(map(cel_types.deep, types))
        if function in _OPTIONAL:
            return not cel_types.dynamic(types[0])
        return function == "dyn" or function in _NATIVE

    def _differing(self, function: str, arguments: list[Node]) -> bool:
        """Return whether the engines differ for some arguments of a function that both have."""
        types = [self._type(each) for each in arguments]
        match function:
            case "_[_]" | "_[?_]":
                literal = arguments[0]
                return bool(literal.HasField("list_expr")) and not literal.list_expr.elements  # its type is open
            case "dyn":
                return not cel_types.plain(types[0])
            case "string":
                small = 1e-4 <= abs(arguments[0].const_expr.double_value) < 1e6  # noqa: PLR2004  # written alike
                literal = arguments[0].const_expr.bytes_value
                if literal.decode(errors="ignore").encode() != literal:
                    raise InvalidExpressionError("invalid UTF-8 in bytes")
                return types[0].primitive == checked_expression.DOUBLE and not small
            case "format":
                return not self._formats(arguments)
        return False

    def _fractions(self, node: Node) -> int:
        """Return how many parts of a sum are written as a fraction if they are none of whole numbers."""
        operands = checked_expression.children(node)
        overloads = set(self._references[node.id].overload_id) if node.id in self._references else set()
        if checked_expression.root_of(node) == "device.capacity":
            return 1  # in the form of the API server
        if overloads == {"string_to_quantity"} and operands[0].HasField("const_expr"):
            return _fractions_in(operands[0].const_expr.string_value)
        if ARITHMETIC & overloads:
            return sum(map(self._fractions, operands))
        number = node.const_expr
        return 0 if number.HasField("int64_value") and abs(number.int64_value) <= _EXACT else 2

    def _formats(self, arguments: list[Node]) -> bool:
        """Return whether both engines format the values of a list alike."""
        clauses = [each for each in _clause.findall(arguments[0].const_expr.string_value) if each != "%"]
        values = arguments[1].list_expr
        if len(clauses) != len(values.elements) or values.optional_indices or not clauses:
            return False
        for clause, value in zip(clauses, values.elements, strict=True):
            kind = self._type(value)
            if kind.well_known == checked_expression.ANY:  # before 1.37: the validator of formats knows no such type
                raise InvalidExpressionError("a value of type any for a format")
            if clause not in ("s", "d") or not (
                cel_types.dynamic(kind) or kind.primitive in cel_types.FORMATTED[clause]
            ):
                return False
        return True


def _differing_constant(function: str, arguments: list[Node]) -> bool:
    """Return whether the engines differ for the number of arguments, or for some constants."""
    if not arguments:
        return False
    constant = arguments[0].const_expr
    match function:
        case "int" | "uint":
            lowest = 0 if function == "uint" else -_EXACT
            return not lowest <= (constant.double_value or constant.int64_value) <= _EXACT
        case "duration" | "timestamp":
            if constant.string_value and not any(each in "0123456789" for each in constant.string_value):
                raise InvalidExpressionError(f"invalid {function} {constant.string_value}")
            return not cel_types.is_time(function, constant.string_value)
        case "indexOf" | "lastIndexOf":
            return len(arguments) != WITHOUT_OFFSET
        case "split":
            return not arguments[1].const_expr.string_value
    return function.startswith("get") and len(arguments) > 1


def _fractions_in(text: str) -> int:
    if _whole.fullmatch(text):
        return 0
    try:
        return 1 if quantity.nanos(text) % 10**9 else 2
    except quantity.QuantityError:
        return 1  # an error in any case

"""The checked expression of cel-expr-python, as protocol buffer messages that can be read, changed and given back.

The package serializes and deserializes it, but has no Python classes for it. Source: cel/expr/checked.proto and
syntax.proto of github.com/cel-expr/cel-spec, only the fields that Kindred reads or writes. Others are kept as they are.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

BOOL: Final = 1
INT: Final = 2
DOUBLE: Final = 4
STRING: Final = 5
"""Some of Type.primitive."""
ANY: Final = 1
"""One of Type.well_known."""

MAX_BYTES: Final = 256 * 1024
"""Maximum size of an expression, in the package's form."""
_UNUSED: Final = "#unused"

_INT64: Final = 3
_UINT64: Final = 4
_DOUBLE: Final = 1
_INT32: Final = 5
_BOOL: Final = 8
_STRING: Final = 9
_MESSAGE: Final = 11
_BYTES: Final = 12
_REPEATED: Final = True

Node = Any
"""A message of one of the classes that protobuf makes of `_FIELDS`, mostly an Expr."""

_ONE_OF: Final = {"Constant": "constant", "Expr": "kind", "Entry": "key", "Type": "kind"}
"""Messages of which the fields, apart from `id`, `value` and `optional_entry`, are alternatives."""
_FIELDS: Final[dict[str, list[tuple[str, int, int, str, bool]]]] = {
    "Constant": [
        ("null_value", 1, _INT32, "", False),
        ("bool_value", 2, _BOOL, "", False),
        ("int64_value", 3, _INT64, "", False),
        ("uint64_value", 4, _UINT64, "", False),
        ("double_value", 5, _DOUBLE, "", False),
        ("string_value", 6, _STRING, "", False),
        ("bytes_value", 7, _BYTES, "", False),
    ],
    "Expr": [
        ("id", 2, _INT64, "", False),
        ("const_expr", 3, _MESSAGE, "Constant", False),
        ("ident_expr", 4, _MESSAGE, "Ident", False),
        ("select_expr", 5, _MESSAGE, "Select", False),
        ("call_expr", 6, _MESSAGE, "Call", False),
        ("list_expr", 7, _MESSAGE, "CreateList", False),
        ("struct_expr", 8, _MESSAGE, "CreateStruct", False),
        ("comprehension_expr", 9, _MESSAGE, "Comprehension", False),
    ],
    "Ident": [("name", 1, _STRING, "", False)],
    "Select": [
        ("operand", 1, _MESSAGE, "Expr", False),
        ("field", 2, _STRING, "", False),
        ("test_only", 3, _BOOL, "", False),
    ],
    "Call": [
        ("target", 1, _MESSAGE, "Expr", False),
        ("function", 2, _STRING, "", False),
        ("args", 3, _MESSAGE, "Expr", _REPEATED),
    ],
    "CreateList": [
        ("elements", 1, _MESSAGE, "Expr", _REPEATED),
        ("optional_indices", 2, _INT32, "", _REPEATED),
    ],
    "CreateStruct": [("message_name", 1, _STRING, "", False), ("entries", 2, _MESSAGE, "Entry", _REPEATED)],
    "Entry": [
        ("id", 1, _INT64, "", False),
        ("field_key", 2, _STRING, "", False),
        ("map_key", 3, _MESSAGE, "Expr", False),
        ("value", 4, _MESSAGE, "Expr", False),
        ("optional_entry", 5, _BOOL, "", False),
    ],
    "Comprehension": [
        ("iter_var", 1, _STRING, "", False),
        ("iter_range", 2, _MESSAGE, "Expr", False),
        ("accu_var", 3, _STRING, "", False),
        ("accu_init", 4, _MESSAGE, "Expr", False),
        ("loop_condition", 5, _MESSAGE, "Expr", False),
        ("loop_step", 6, _MESSAGE, "Expr", False),
        ("result", 7, _MESSAGE, "Expr", False),
        ("iter_var2", 8, _STRING, "", False),
    ],
    "Reference": [
        ("name", 1, _STRING, "", False),
        ("overload_id", 3, _STRING, "", _REPEATED),
        ("value", 4, _MESSAGE, "Constant", False),
    ],
    "Empty": [],
    "Type": [
        ("dyn", 1, _MESSAGE, "Empty", False),
        ("null", 2, _INT32, "", False),
        ("primitive", 3, _INT32, "", False),
        ("wrapper", 4, _INT32, "", False),
        ("well_known", 5, _INT32, "", False),
        ("list_type", 6, _MESSAGE, "ListType", False),
        ("map_type", 7, _MESSAGE, "MapType", False),
        ("message_type", 9, _STRING, "", False),
        ("type_param", 10, _STRING, "", False),
        ("type", 11, _MESSAGE, "Type", False),
        ("error", 12, _MESSAGE, "Empty", False),
        ("abstract_type", 14, _MESSAGE, "AbstractType", False),
    ],
    "ListType": [("elem_type", 1, _MESSAGE, "Type", False)],
    "MapType": [("key_type", 1, _MESSAGE, "Type", False), ("value_type", 2, _MESSAGE, "Type", False)],
    "AbstractType": [("name", 1, _STRING, "", False), ("parameter_types", 2, _MESSAGE, "Type", _REPEATED)],
    "ReferenceEntry": [("key", 1, _INT64, "", False), ("value", 2, _MESSAGE, "Reference", False)],
    "TypeEntry": [("key", 1, _INT64, "", False), ("value", 2, _MESSAGE, "Type", False)],
    "ParsedExpr": [("expr", 2, _MESSAGE, "Expr", False)],
    "CheckedExpr": [
        ("reference_map", 2, _MESSAGE, "ReferenceEntry", _REPEATED),
        ("type_map", 3, _MESSAGE, "TypeEntry", _REPEATED),
        ("expr", 4, _MESSAGE, "Expr", False),
    ],
}
_COMMON: Final = {"id", "value", "optional_entry"}


@lru_cache(maxsize=1)
def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="kindred_cel.proto", package="kindred.cel", syntax="proto3")
    for message, fields in _FIELDS.items():
        made = file.message_type.add(name=message)
        if message in _ONE_OF:
            made.oneof_decl.add(name=_ONE_OF[message])
        for name, number, kind, of, repeated in fields:
            field = made.field.add(name=name, number=number, type=kind, label=3 if repeated else 1)
            if of:
                field.type_name = f".kindred.cel.{of}"
            if message in _ONE_OF and name not in _COMMON:
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"kindred.cel.{name}")) for name in _FIELDS
    }


def decoded(serialized: bytes) -> Node:
    """Return the CheckedExpr of what the package serialized: an Any."""
    return _classes()["CheckedExpr"].FromString(any_pb2.Any.FromString(serialized).value)


def encoded(checked: Node) -> bytes:
    """Return what the package deserializes."""
    wrapped = any_pb2.Any(type_url="type.googleapis.com/cel.expr.CheckedExpr", value=checked.SerializeToString())
    return bytes(wrapped.SerializeToString())


def parts_of(checked: Node) -> Callable[[Node], Node]:
    """Return what makes a CheckedExpr of a part of one, without what it says of the other parts.

    With all that it says, 230 parts of an expression of 10 KB took a second.
    """
    references = {each.key: each for each in checked.reference_map}
    types = {each.key: each for each in checked.type_map}

    def part(expression: Node) -> Node:
        made, nodes = _classes()["CheckedExpr"](expr=expression), [expression]
        while nodes:
            current = nodes.pop()
            made.reference_map.extend([references[current.id]] if current.id in references else ())
            made.type_map.extend([types[current.id]] if current.id in types else ())
            nodes += children(current)
        return made

    return part


def node(**fields: Node) -> Node:
    """Return a new Expr."""
    return _classes()["Expr"](**fields)


def reference(**fields: Node) -> Node:
    """Return a new Reference."""
    return _classes()["Reference"](**fields)


@lru_cache(maxsize=1)
def dynamic_type() -> Node:
    """Return the Type of a value that can be of any type."""
    return _classes()["Type"](dyn={})


def tests_of_fields(parsed: bytes, variable: str) -> int:
    """Return how often a ParsedExpr has has(VARIABLE.field)."""
    tests, nodes = 0, [_classes()["ParsedExpr"].FromString(parsed).expr]
    while nodes:
        current = nodes.pop()
        select = current.select_expr
        tests += select.test_only and select.operand.ident_expr.name == variable
        nodes += children(current)
    return tests


def fill(within: Node, values: dict[str, Node], new: Callable[[], int]) -> None:
    """Put values in place of names, and give the other expressions new numbers."""
    name = name_of(within)
    if name in values:
        within.CopyFrom(values[name])
        return
    within.id = new()
    for each in children(within):
        fill(each, values, new)


def children(parent: Node) -> list[Node]:
    """Return the expressions directly below one."""
    match parent.WhichOneof("kind"):
        case "select_expr":
            return [parent.select_expr.operand]
        case "call_expr":
            return arguments(parent.call_expr)
        case "list_expr":
            return list(parent.list_expr.elements)
        case "struct_expr":
            entries = parent.struct_expr.entries
            return [each for one in entries for each in (one.map_key, one.value)]
        case "comprehension_expr":
            loop = parent.comprehension_expr
            return [loop.iter_range, loop.accu_init, loop.loop_condition, loop.loop_step, loop.result]
    return []


def arguments(call: Node) -> list[Node]:
    """Return the operands of a call, the target first."""
    return [call.target, *call.args] if call.HasField("target") else list(call.args)


class Inlined(NamedTuple):
    """What was in the bindings of an expression."""

    constants: set[int]
    """The numbers of the constants that are in place of a name now."""
    unused: list[Node]
    """The values of names that nothing uses."""


def inline_bindings(expression: Node) -> Inlined:
    """Replace each cel.bind by its result with the value in place of the name, which both engines evaluate alike.

    cel-cpp (cel-expr-python 0.1.3) gives a name the variable of an earlier loop as its value, if the loop ended early:
    `["a", "b"].all(x, false) || cel.bind(z, 5, z == 5)` is false. Raises ValueError for an expression that gets large,
    and where a name in the value means something else in the result.
    """
    found = Inlined(set(), [])
    for constants, unused in map(inline_bindings, children(expression)):
        found.constants.update(constants)
        found.unused.extend(unused)
    loop = expression.comprehension_expr
    if not expression.HasField("comprehension_expr") or loop.iter_var != _UNUSED or loop.iter_range.list_expr.elements:
        return found
    result = node()
    result.CopyFrom(loop.result)
    _replace(result, loop.accu_var, loop.accu_init, frozenset(_names(loop.accu_init)))
    if result.ByteSize() > MAX_BYTES:
        raise ValueError("an expression that is large after its bindings are replaced")
    if loop.accu_init.HasField("const_expr"):
        found.constants.add(loop.accu_init.id)
    if loop.accu_var not in _names(loop.result):
        value = node()
        value.CopyFrom(loop.accu_init)
        found.unused.append(value)
    expression.CopyFrom(result)
    return found


def _replace(within: Node, name: str, value: Node, free: frozenset[str]) -> None:
    if within.ident_expr.name == name:
        within.CopyFrom(value)
        return
    if not within.HasField("comprehension_expr"):
        for each in children(within):
            _replace(each, name, value, free)
        return
    loop = within.comprehension_expr
    for each in (loop.iter_range, loop.accu_init):
        _replace(each, name, value, free)
    variables = {loop.iter_var, loop.iter_var2, loop.accu_var} - {""}
    if name in variables:
        return
    inner = (loop.loop_condition, loop.loop_step, loop.result)
    if variables & free and any(name in _names(each) for each in inner):
        raise ValueError("a binding whose value has a name that means something else where it is used")
    for each in inner:
        _replace(each, name, value, free)


def _names(expression: Node) -> set[str]:
    found, nodes = set(), [expression]
    while nodes:
        current = nodes.pop()
        if current.HasField("ident_expr"):
            found.add(str(current.ident_expr.name))
        nodes += children(current)
    return found


def name_of(node: Node) -> str:
    """Return the name, or an empty text for another node."""
    return str(node.ident_expr.name)


def is_simple(node: Node) -> bool:
    """Return whether the node is a chain of names and constant keys, which may be evaluated several times."""
    match node.WhichOneof("kind"):
        case "ident_expr" | "const_expr":
            return True
        case "select_expr":
            return is_simple(node.select_expr.operand)
        case "call_expr":
            return node.call_expr.function == "_[_]" and all(map(is_simple, arguments(node.call_expr)))
    return False


def root_of(node: Node) -> str:
    """Return the name at the beginning of a chain of fields and keys."""
    while node.HasField("select_expr") or node.call_expr.function == "_[_]":
        node = children(node)[0]
    return name_of(node)

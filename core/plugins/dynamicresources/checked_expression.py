"""The checked expression of cel-expr-python, as protocol buffer messages that can be read, changed and given back.

The package serializes and deserializes it, but has no Python classes for it. Source: cel/expr/checked.proto and
syntax.proto of github.com/cel-expr/cel-spec, only the fields that Kindred reads or writes. Others are kept as they are.
"""

import re
from collections.abc import Callable, Mapping
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

Node = Any
"""A message of one of the classes that protobuf makes of `_FIELDS`, mostly an Expr."""

_ONE_OF: Final = {"Constant": "constant", "Expr": "kind", "Entry": "key", "Type": "kind"}
"""Messages of which the fields, apart from `id`, `value` and `optional_entry`, are alternatives."""
_FIELDS: Final[Mapping[str, str]] = {
    "Constant": "int32 null_value=1; bool bool_value=2; int64 int64_value=3; uint64 uint64_value=4; "
    "double double_value=5; string string_value=6; bytes bytes_value=7",
    "Expr": "int64 id=2; Constant const_expr=3; Ident ident_expr=4; Select select_expr=5; Call call_expr=6; "
    "CreateList list_expr=7; CreateStruct struct_expr=8; Comprehension comprehension_expr=9",
    "Ident": "string name=1",
    "Select": "Expr operand=1; string field=2; bool test_only=3",
    "Call": "Expr target=1; string function=2; repeated Expr args=3",
    "CreateList": "repeated Expr elements=1; repeated int32 optional_indices=2",
    "CreateStruct": "string message_name=1; repeated Entry entries=2",
    "Entry": "int64 id=1; string field_key=2; Expr map_key=3; Expr value=4; bool optional_entry=5",
    "Comprehension": "string iter_var=1; Expr iter_range=2; string accu_var=3; Expr accu_init=4; "
    "Expr loop_condition=5; Expr loop_step=6; Expr result=7; string iter_var2=8",
    "Reference": "string name=1; repeated string overload_id=3; Constant value=4",
    "Empty": "",
    "Type": "Empty dyn=1; int32 null=2; int32 primitive=3; int32 wrapper=4; int32 well_known=5; ListType list_type=6; "
    "MapType map_type=7; string message_type=9; string type_param=10; Type type=11; Empty error=12; "
    "AbstractType abstract_type=14",
    "ListType": "Type elem_type=1",
    "MapType": "Type key_type=1; Type value_type=2",
    "AbstractType": "string name=1; repeated Type parameter_types=2",
    "ReferenceEntry": "int64 key=1; Reference value=2",
    "TypeEntry": "int64 key=1; Type value=2",
    "ParsedExpr": "Expr expr=2",
    "CheckedExpr": "repeated ReferenceEntry reference_map=2; repeated TypeEntry type_map=3; Expr expr=4",
}
"""Message -> its fields, as the sources declare them."""
_COMMON: Final = {"id", "value", "optional_entry"}
_FIELD: Final = re.compile(r"(?P<repeated>repeated )?(?P<type>\w+) (?P<name>\w+)=(?P<number>\d+)")


@lru_cache(maxsize=1)
def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="kindred_cel.proto", package="kindred.cel", syntax="proto3")
    for message, fields in _FIELDS.items():
        made = file.message_type.add(name=message)
        if message in _ONE_OF:
            made.oneof_decl.add(name=_ONE_OF[message])
        for each in _FIELD.finditer(fields):
            field = made.field.add(name=each["name"], number=int(each["number"]), label=3 if each["repeated"] else 1)
            if each["type"] in _FIELDS:
                field.type_name = f".kindred.cel.{each['type']}"
            else:
                field.type = descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{each['type'].upper()}")
            if message in _ONE_OF and each["name"] not in _COMMON:
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

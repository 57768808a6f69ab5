"""Builds expressions, and rewrites equalities that cel-go and cel-cpp judge otherwise: see `cel_rewriting`."""

from collections.abc import Callable
from typing import Final

from core.plugins.dynamicresources import cel_templates, cel_types, checked_expression
from core.plugins.dynamicresources.cel_functions import Made, UnknownResultError, Value
from core.plugins.dynamicresources.cel_types import PACKAGE
from core.plugins.dynamicresources.checked_expression import Node

FIELDS: Final = {each: f"kindred_{each.lower()}" for each in ("Quantity", "Semver", "IP", "CIDR", "URL", "Format")}
"""The field of each type of Kubernetes. An expression that has such a word is not evaluated."""
MAPS: Final = {"device.attributes": "@attributes", "device.capacity": "@capacity"}
"""The maps with an empty map for each domain that the expression looks up, and those without."""
A_VERSION: Final = "@version"
"""A variable that is a version."""

ARITHMETIC: Final = frozenset({"quantity_add", "quantity_sub", "quantity_add_int", "quantity_sub_int"})


class Building:
    """Makes and replaces nodes of one checked expression."""

    def __init__(self, checked: Node, template: Callable[[str], Node]) -> None:
        self._template = template
        self._references = {each.key: each.value for each in checked.reference_map}
        self._types = {each.key: each.value for each in checked.type_map}
        self._last = max(self._types, default=0)

    def _new(self) -> int:
        self._last += 1
        return self._last

    def _constant(self, value: Value) -> Node:
        if isinstance(value, Made):
            entry = {"id": self._new(), "field_key": FIELDS[value.type], "value": self._constant(value.text)}
            return checked_expression.node(
                id=self._new(), struct_expr={"message_name": f"{PACKAGE}.{value.type}", "entries": [entry]}
            )
        kind = {bool: "bool_value", int: "int64_value", float: "double_value", str: "string_value"}[type(value)]
        return checked_expression.node(id=self._new(), const_expr={kind: value})

    def _made(self, function: str, arguments: list[Node]) -> Node:
        return checked_expression.node(id=self._new(), call_expr={"function": function, "args": arguments})

    def _become(self, node: Node, function: str, arguments: list[Node]) -> None:
        self._replace(node, checked_expression.node(id=node.id, call_expr={"function": function, "args": arguments}))

    def _expand(self, node: Node, template: str, arguments: list[Node]) -> None:
        """Replace a node by a template of `cel_templates`, whose operands are the arguments."""
        made = checked_expression.node()
        made.CopyFrom(self._template(template))
        checked_expression.fill(made, dict(zip("ab", arguments, strict=False)), self._new)
        made.id = node.id
        self._replace(node, made)

    def _replace(self, node: Node, made: Node) -> None:
        self._references.pop(node.id, None)
        node.CopyFrom(made)
        if node.ByteSize() > checked_expression.MAX_BYTES:
            raise UnknownResultError("an expression that is large after it is rewritten")

    def _type(self, node: Node) -> Node:
        return self._types.get(node.id) or checked_expression.dynamic_type()

    def _message(self, node: Node) -> bool:
        return cel_types.message_name(self._type(node)) != ""

    def _text(self, node: Node, of: str) -> Node:
        """Return an expression for the text in a message of Kubernetes."""
        if node.HasField("struct_expr") and node.struct_expr.message_name == f"{PACKAGE}.{of}":
            return node.struct_expr.entries[0].value
        return checked_expression.node(id=self._new(), select_expr={"operand": node, "field": FIELDS[of]})


class Equalities(Building):
    """Rewrites `==` and `in`, where versions and quantities are not equal in cel-go as messages are in cel-cpp."""

    def __init__(self, checked: Node, template: Callable[[str], Node], *, guarded: bool) -> None:
        super().__init__(checked, template)
        self._guarded = guarded
        self._arithmetic = any(ARITHMETIC & set(each.overload_id) for each in self._references.values())
        self._depth = 0
        """The number of comprehensions around."""
        self._versions = self._lists = False
        self.panics: list[Node] = []
        """Expressions that are true if cel-go may panic."""

    def _equality(self, node: Node, arguments: list[Node]) -> None:
        one, other = (self._type(each) for each in arguments)
        special = cel_types.special(other)
        if cel_types.special(one) != special and not (special == "null" and cel_types.dynamic(one)):
            raise UnknownResultError("equality of a type, null, bytes or a time, and another value")
        if special:
            return
        if cel_types.messages(one) or cel_types.messages(other):
            self._equality_of_messages(node, arguments)
        elif cel_types.dynamic(one):
            if cel_types.deep(other):
                self._fragile(arguments)
            self._lists = self._lists or not cel_types.scalar(other)
            if node.call_expr.function == "_==_":  # != is true in both engines
                self._guard(node, arguments[0])
        elif cel_types.deep(one) or cel_types.deep(other):
            self._fragile(arguments)

    def _equality_of_messages(self, node: Node, arguments: list[Node]) -> None:
        one, other = (cel_types.message_name(self._type(each)) for each in arguments)
        if "Quantity" in (one, other) and (one != other or self._arithmetic):
            # A sum is a pointer, which Quantity.Equal does not know as a right operand.
            raise UnknownResultError("equality of a quantity that may be a sum, or with another value")
        if one == other == "":
            raise UnknownResultError("equality of messages in lists or maps")
        if one == "Semver" and other == "" and node.call_expr.function == "_==_":
            if not cel_types.dynamic(self._type(arguments[1])):
                raise UnknownResultError("equality of a version and another value")
            texts = [self._text(each, "Semver") for each in arguments]
            self._become(node, node.call_expr.function, texts)
        elif (
            one != other
            and not (one == "Semver" and cel_types.dynamic(self._type(arguments[1])))
            and not (other == "Semver" and cel_types.dynamic(self._type(arguments[0])))
        ):
            raise UnknownResultError("equality of a message and another value")

    def _within(self, node: Node, arguments: list[Node]) -> None:
        value, container = arguments
        if container.HasField("list_expr") and not container.list_expr.elements:
            raise UnknownResultError("in with an empty list, which cel-go does not evaluate")
        kind = self._type(container)
        if cel_types.versions(self._type(value)) and cel_types.versions(kind):
            return  # of a version and another value, `in` is false in both engines
        if cel_types.messages(self._type(value)) or cel_types.messages(kind):
            if checked_expression.name_of(container) not in MAPS.values() and not kind.HasField("map_type"):
                raise UnknownResultError("messages in a list")
        elif not kind.HasField("map_type") and (cel_types.dynamic(kind) or cel_types.deep(kind)):
            self._fragile([container])
        if cel_types.dynamic(self._type(value)):
            constant = container.HasField("list_expr") and all(
                each.HasField("const_expr") for each in container.list_expr.elements
            )
            if not constant and not kind.HasField("map_type"):
                self._fragile([value])
            self._note_panic(value)
            if kind.HasField("map_type"):
                self._expand(node, cel_templates.IN_MAP, arguments)

    def _note_panic(self, key: Node) -> None:
        """Note that a version would be hashed."""
        self._versions = True
        if self._guarded and self._depth:
            raise UnknownResultError("a value that may be a version as a key, which depends on a variable")
        if self._guarded:
            self.panics.append(self._is_version(key))

    def _is_version(self, value: Node) -> Node:
        version = checked_expression.node(id=self._new(), ident_expr={"name": A_VERSION})
        return self._made("_==_", [self._made("type", [value]), self._made("type", [version])])

    def _guard(self, node: Node, value: Node) -> None:
        """Let the node be an error if the value is a version, or an equality of texts if both are."""
        self._versions = True
        if not self._guarded:
            return
        operands = checked_expression.arguments(node.call_expr)
        texts = [self._text(each, "Semver") for each in operands]
        plain = self._made(node.call_expr.function, operands)
        self._become(node, "_?_:_", [self._is_version(value), self._made("_==_", texts), plain])

    def _fragile(self, values: list[Node]) -> None:
        """Note that elements are compared, of which none may be a version."""
        self._versions = self._lists = True
        for each in values if self._guarded else ():
            kind = self._type(each)
            if each.HasField("list_expr") and cel_types.deep(kind):
                self._fragile(list(each.list_expr.elements))
            elif cel_types.dynamic(kind) and not self._depth:
                self.panics.append(self._is_version(each))
            elif cel_types.dynamic(kind) or cel_types.deep(kind):
                raise UnknownResultError("equality in lists, with a device that has versions")

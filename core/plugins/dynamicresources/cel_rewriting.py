"""Checks a checked expression for what cel-go does otherwise than cel-cpp, and rewrites what only Kubernetes has.

- A quantity, a version or an address is a message with one text, `FIELDS`, by which values of its type are ordered.
  So `isGreaterThan` becomes `>` of two texts.
- Any other function of Kubernetes becomes a lookup of its name and arguments in the map `@calls`. A key that is missing
  is an error with this key. Then the caller calls the function, adds the result and evaluates again. A result that does
  not depend on the missing key is right, because an error that is absorbed by && or || is absorbed in cel-go, too.
  Another error may hide a missing key, so that the caller evaluates all `keys` before it believes in one. Functions in
  Python that the package calls would be simpler, but each call leaks its arguments (0.1.3: 1.8 KB for two quantities).
- `device.attributes["domain"]` is an empty map for a domain that the device does not have, but `in`, `size` and
  comprehensions see only those that it has (mapper in cel/compile.go). They get the map `@attributes` instead.
- An equality whose left operand is a version, but the right one is not, is an error in cel-go (Semver.Equal), while
  cel-cpp returns false. For devices that have versions, such an operand is tested first. A version as the key of a map,
  or looked for among constants, is a panic in cel-go, which nothing absorbs: see `panics`.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from core.plugins.dynamicresources import cel_declarations, cel_templates, cel_types, checked_expression
from core.plugins.dynamicresources.cel_agreement import WITHOUT_OFFSET, Agreement
from core.plugins.dynamicresources.cel_equality import MAPS
from core.plugins.dynamicresources.cel_functions import (
    FUNCTIONS,
    FunctionError,
    InvalidExpressionError,
    Made,
    UnknownResultError,
)
from core.plugins.dynamicresources.checked_expression import Node

SEPARATOR: Final = "\n"
CALLS: Final = "@calls"

_ORDER: Final = {
    "quantity_is_greater_than": "_>_",
    "semver_is_greater_than": "_>_",
    "quantity_is_less_than": "_<_",
    "semver_is_less_than": "_<_",
}
_COMPARE: Final = ("quantity_compare_to", "semver_compare_to")
_INTEGER: Final = frozenset({"quantity_is_integer", "quantity_get_int", "quantity_get_float"})
_ELSEWHERE: Final = frozenset(cel_declarations.ELSEWHERE)
"""Overloads that cel-cpp does not have."""
_DYNAMIC: Final = {"int": "string_to_int64", "double": "string_to_double"}
"""Conversions of an operand whose type is not known: an int, a bool or a string, of which the text is converted."""
_CONVERSIONS: Final = frozenset({"string_to_int64", "string_to_double", "string_to_bool"})
"""cel-go calls them when it compiles, if the operand is a literal."""
_CONVERTING: Final = frozenset(["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint"])
_COMPILED: Final = (_CONVERTING - {"dyn", "string"}) | {"format", "matches", "find", "findAll"}
"""Functions that may be an error then. A name that cel.bind gives to a literal is none."""
_OF_ANY_LIST: Final = frozenset(["reverse", "slice", "sort", "distinct", "first", "last", "value", "or", "orValue"])
"""Functions that return values of the type that the elements of a list have."""
_group: Final = re.compile(r"(\\.|\[(?:\\.|[^\]\\])*\])|\((?!\?)")
_anchor: Final = re.compile(r"\\[bB]|(?<!\[)\^")
"""What findAll sees anew after each match in cel-cpp."""
_ESCAPES: Final = r"dDwWsSbBtnrfv.+*?()|\[\]{}^$/\\-"
_plain_regex: Final = re.compile(
    rf"(?:[ -!#-'*-\[\]-z|}}~\"]|\((?!\?)|\(\?i?[:)]|\)|\\[{_ESCAPES}]|{{)*", re.ASCII
)  # RE2's syntax that both engines have, without flags, names, classes of Unicode


class Needs(NamedTuple):
    """What evaluating a rewritten expression needs of a device."""

    domains: frozenset[str]
    """Domains that the expression looks up."""
    drivers: bool
    """It also looks up the driver's domain by `device.driver`."""
    versions: bool
    """With a device that has versions, it has to be rewritten with `guarded`."""
    lists: bool
    """With a device that has lists of versions, it cannot be evaluated."""


class Rewriting(Agreement):
    """Rewrites one expression, once."""

    def __init__(self, checked: Node, template: Callable[[str], Node], *, guarded: bool) -> None:
        super().__init__(checked, template, guarded=guarded)
        self._checked = checked
        self._lookups: set[int] = set()
        self._as_they_are: set[int] = set()
        self._domains: set[str] = set()
        self._functions: dict[str, Callable[[Node, list[Node]], None]] = {
            **dict.fromkeys(("_==_", "_!=_"), self._equality),
            **dict.fromkeys(("matches", "find", "findAll"), self._matches),
            "@in": self._within,
            "includes": self._includes,
            "sum": self._sum,
        }
        self._drivers = False
        self._bound: set[int] = set()
        """Constants that are in place of a name."""
        self._mixed: set[int] = set()
        """Lists that may have several types."""
        self.patterns: list[str] = []
        """The regular expressions."""
        self.searched: list[str] = []
        """Those that must not match an empty text."""
        self.keys: list[Node] = []
        """The keys that are looked up in `@calls`, inner ones first."""
        self.scoped = False
        """There are others, which depend on a variable of a comprehension."""

    def rewrite(self) -> Needs:
        """Change the expression. Raises InvalidExpressionError or UnknownResultError."""
        for each in self._types.values():
            cel_types.refuse_type(each)
        self._bound, unused = checked_expression.inline_bindings(self._checked.expr)
        for each in (*unused, self._checked.expr):  # cel-go checks those that are not used, too
            self._visit(each)
        before = [(key, each) for key, each in self._references.items()]
        del self._checked.reference_map[:]
        for key, each in before:
            self._checked.reference_map.add(key=key, value=each)
        return Needs(frozenset(self._domains), self._drivers, self._versions, self._lists)

    def _visit(self, node: Node) -> None:
        match node.WhichOneof("kind"):
            case "ident_expr":
                self._ident(node)
            case "select_expr":
                self._select(node)
            case "call_expr":
                self._call(node)
            case "list_expr":
                self._list(node)
            case "struct_expr":
                self._map(node.struct_expr)
            case "comprehension_expr":
                self._comprehension(node.comprehension_expr)

    def _ident(self, node: Node) -> None:
        name = node.ident_expr.name
        if name in self._references and self._references[node.id].HasField("value"):
            raise UnknownResultError(f"the constant {name}")
        if name in MAPS and node.id not in self._lookups:
            if node.id not in self._as_they_are:
                raise UnknownResultError(f"{name} as a value")
            node.ident_expr.name = MAPS[name]
            self._references.pop(node.id, None)

    def _select(self, node: Node) -> None:
        operand = node.select_expr.operand
        if self._message(operand):
            raise UnknownResultError("a field of a message")
        if node.select_expr.test_only and cel_types.dynamic(self._type(operand)):
            # cel-cpp returns an error for a value without fields.
            raise UnknownResultError("has() of a field of a value of unknown type")
        if checked_expression.name_of(operand) in MAPS:
            self._look_up(operand, node.select_expr.field)
        self._visit(operand)

    def _look_up(self, operand: Node, domain: str) -> None:
        self._lookups.add(operand.id)
        self._domains.add(domain)

    def _list(self, node: Node) -> None:
        made = node.list_expr
        optional = set(made.optional_indices)
        if node.id not in self._mixed:
            self._homogeneous([(each, index in optional) for index, each in enumerate(made.elements)])
        for each in made.elements:
            self._visit(each)

    def _map(self, made: Node) -> None:
        if made.message_name:
            raise UnknownResultError("a message")
        keys = [each.map_key for each in made.entries]
        if len({str(each.const_expr) for each in keys if each.HasField("const_expr")}) < len(keys):
            raise UnknownResultError("a map with keys that are not constants, or equal")
        self._homogeneous([(each, False) for each in keys])
        self._homogeneous([(each.value, each.optional_entry) for each in made.entries])
        for each in made.entries:
            self._visit(each.value)

    def _homogeneous(self, nodes: list[tuple[Node, bool]]) -> None:
        """Refuse a literal with values of several types, as ValidateHomogeneousAggregateLiterals of cel-go."""
        types = [cel_types.unwrapped(self._type(node)) if optional else self._type(node) for node, optional in nodes]
        for each in types[1:]:
            if each != types[0]:
                if any(cel_types.has_parameters(one) for one in (each, types[0])):
                    raise UnknownResultError("a list or map of several types")
                raise InvalidExpressionError("a list or map of several types")

    def _comprehension(self, node: Node) -> None:
        if node.iter_range.HasField("list_expr") and not node.iter_range.list_expr.elements:
            raise UnknownResultError("a loop over an empty list, whose elements have no type")
        self._as_they_are.add(node.iter_range.id)
        for each in (node.iter_range, node.accu_init):
            self._visit(each)
        self._depth += 1
        for each in (node.loop_condition, node.loop_step, node.result):
            self._visit(each)
        self._depth -= 1

    def _call(self, node: Node) -> None:
        call = node.call_expr
        arguments = checked_expression.arguments(call)
        overloads = list(self._references[node.id].overload_id) if node.id in self._references else []
        self._operands(call.function, arguments)
        literal = all(each.HasField("const_expr") for each in arguments)
        if _INTEGER.intersection(overloads) and self._fractions(arguments[0]) > 1:
            # AsInt64 depends on how the quantity was written: 1000m is no integer.
            raise UnknownResultError(f"{call.function} of a quantity that may be written as a fraction")
        if call.function in _COMPILED and any(each.id in self._bound or _is_converted(each) for each in arguments):
            raise UnknownResultError(f"{call.function} of a constant that is bound or converted")
        for each in arguments:
            self._visit(each)
        chosen = self._chosen(call.function, overloads, arguments)
        if chosen in _ORDER:
            self._order(node, arguments, chosen)
        elif chosen in FUNCTIONS:
            self._function(node, chosen, arguments, literal=literal)
        elif call.function in self._functions:
            self._functions[call.function](node, arguments)
        elif call.function in cel_templates.OF_LISTS and not _ELSEWHERE.isdisjoint(overloads):
            self._of_list(node, call.function, arguments)
        elif not (
            (call.function == "string" or _ELSEWHERE.isdisjoint(overloads))
            and self._known(call.function, overloads, arguments)
        ):
            raise UnknownResultError(f"the function {call.function}")

    def _operands(self, function: str, arguments: list[Node]) -> None:
        """Note which maps of domains the call looks up, and which it takes as they are."""
        if function == "format":  # a list in it may have several types (strings.go in cel-go's ext)
            self._mixed.add(arguments[1].id)
        if not all(cel_types.allows(self._type(each), function) for each in arguments):
            raise UnknownResultError(f"{function} of a type, null, bytes or a time")
        maps = [each for each in arguments if checked_expression.name_of(each) in MAPS]
        if function in ("_[_]", "_[?_]", "_?._") and maps and maps[0] is arguments[0]:
            if arguments[1].const_expr.HasField("string_value"):
                self._look_up(maps[0], arguments[1].const_expr.string_value)
            elif checked_expression.name_of(arguments[1]) == "device.driver":
                self._lookups.add(maps[0].id)
                self._drivers = True
        elif function in ("@in", "size"):
            self._as_they_are.update(each.id for each in maps)

    def _chosen(self, function: str, overloads: list[str], arguments: list[Node]) -> str:
        """Return the overload that is called. An operand of unknown type is a value of an attribute."""
        if function in _DYNAMIC and cel_types.dynamic(self._type(arguments[0])):
            return _DYNAMIC[function]
        for one, preferred in (
            ("quantity_is_greater_than", "semver_is_greater_than"),
            ("quantity_is_less_than", "semver_is_less_than"),
            ("quantity_compare_to", "semver_compare_to"),
            ("cidr_contains_ip_ip", "cidr_contains_ip_string"),
            ("cidr_contains_cidr", "cidr_contains_cidr_string"),
            ("quantity_add", "quantity_add_int"),
            ("quantity_sub", "quantity_sub_int"),
        ):
            if set(overloads) == {one, preferred}:
                return preferred
        return overloads[0] if len(overloads) == 1 else ""

    def _order(self, node: Node, arguments: list[Node], overload: str) -> None:
        of = "Quantity" if overload.startswith("quantity") else "Semver"
        self._become(node, _ORDER[overload], [self._text(each, of) for each in arguments])

    def _function(self, node: Node, overload: str, arguments: list[Node], *, literal: bool) -> None:
        texts = [self._argument(overload, index, each) for index, each in enumerate(arguments)]
        if overload in _COMPARE and all(checked_expression.is_simple(each) for each in texts):
            self._expand(node, cel_templates.COMPARE, texts)
            return
        if all(each.const_expr.HasField("string_value") for each in texts):
            self._fold(node, overload, [each.const_expr.string_value for each in texts], literal=literal)
            return
        key = self._constant(overload)
        for each in texts:
            key = self._made("_+_", [self._made("_+_", [key, self._constant(SEPARATOR)]), each])
        self._become(node, "_[_]", [self._calls(), key])
        if self._depth:
            self.scoped = True
        else:
            self.keys.append(key)

    def _calls(self) -> Node:
        return checked_expression.node(id=self._new(), ident_expr={"name": CALLS})

    def _fold(self, node: Node, overload: str, texts: list[str], *, literal: bool) -> None:
        try:
            value = FUNCTIONS[overload](*texts)
        except FunctionError as error:
            if literal and overload in _CONVERSIONS:
                raise InvalidExpressionError(str(error)) from error
            # An error at run time: a key that stays missing.
            self._become(node, "_[_]", [self._calls(), self._constant(SEPARATOR.join([overload, *texts]))])
            return
        self._references.pop(node.id, None)
        made = self._constant(value)
        made.id = node.id
        if isinstance(value, Made):
            self._references[made.id] = checked_expression.reference(name=made.struct_expr.message_name)
        node.CopyFrom(made)

    def _argument(self, overload: str, index: int, node: Node) -> Node:
        """Return an expression for the text of an argument."""
        parameter = cel_declarations.parameters(overload)[index]
        match parameter:
            case "string":
                if overload in _DYNAMIC.values() and cel_types.dynamic(self._type(node)):
                    return self._made("string", [node])
                return node
            case "int":
                whole = self._made("_+_", [self._constant(0), node]) if cel_types.dynamic(self._type(node)) else node
                return self._made("string", [whole])
            case "bool":
                return self._made("_?_:_", [node, self._constant("true"), self._constant("false")])
        return self._text(node, parameter)

    def _includes(self, node: Node, arguments: list[Node]) -> None:
        target = arguments[0]
        names = {cel_types.message_name(self._type(each)) for each in arguments}
        if names - {"", "Semver"} or (cel_types.inner(self._type(target)) and cel_types.messages(self._type(target))):
            raise UnknownResultError("includes of a quantity")
        self._expand(node, cel_templates.INCLUDES, arguments)

    def _of_list(self, node: Node, function: str, arguments: list[Node]) -> None:
        """Expand a function of lists. Versions in them are equal to versions alone, as in cel-go."""
        kind = self._type(arguments[0])
        compares = function not in cel_templates.OF_ANY
        self._refuse_guess(function, arguments[0])
        if len(arguments) > WITHOUT_OFFSET or (compares and cel_types.deep(kind)):
            raise UnknownResultError(f"{function} of values of unknown type, or with an offset")
        if not compares:
            self._alike(cel_types.inner(kind), self._type(arguments[1]))
        if not cel_types.dynamic(kind):
            self._expand(node, cel_templates.OF_LISTS[function], arguments)
            return
        self._lists = self._lists or compares
        self._expand(node, (cel_templates.OF_LISTS | cel_templates.OF_ANY)[function], arguments)

    def _refuse_guess(self, function: str, node: Node) -> None:
        """Refuse a list whose elements have a type only because the checker had to choose one."""
        if node.call_expr.function in _OF_ANY_LIST:
            of = checked_expression.arguments(node.call_expr)[0]
            if cel_types.dynamic(self._type(of)):
                raise UnknownResultError(f"{function} of a list of unknown type")
            self._refuse_guess(function, of)

    def _alike(self, elements: list[Node], sought: Node) -> None:
        """Refuse a value that no element can be, as cel-go's checker does."""
        for each in elements:
            if each != sought and not (cel_types.dynamic(each) or cel_types.dynamic(sought)):
                if cel_types.has_parameters(each) or cel_types.has_parameters(sought):
                    raise UnknownResultError("a list in a list")
                raise InvalidExpressionError("found no matching overload for 'indexOf'")

    def _sum(self, node: Node, arguments: list[Node]) -> None:
        zero = {checked_expression.INT: 0, checked_expression.DOUBLE: 0.0}.get(self._type(node).primitive)
        if zero is None:
            raise UnknownResultError("the function sum")
        self._refuse_guess("sum", arguments[0])
        self._expand(node, cel_templates.SUM, arguments)
        loop = node.comprehension_expr
        names = [checked_expression.node(ident_expr={"name": each}) for each in (loop.accu_var, loop.iter_var)]
        loop.accu_init.CopyFrom(self._constant(zero))
        loop.loop_condition.CopyFrom(self._constant(value=True))
        loop.loop_step.CopyFrom(self._made("_+_", names))
        loop.result.CopyFrom(names[0])

    def _matches(self, node: Node, arguments: list[Node]) -> None:
        function, pattern = node.call_expr.function, arguments[1]
        if not pattern.const_expr.HasField("string_value"):
            raise UnknownResultError("a regular expression that is not a constant")
        text = pattern.const_expr.string_value
        if not _plain_regex.fullmatch(text):
            raise UnknownResultError(f"the regular expression {text}")
        self.patterns.append(text)
        if function == "matches":
            return
        differs = function == "findAll" and _anchor.search(text)
        if len(arguments) > WITHOUT_OFFSET or differs or "[]" in text or "[^]" in text:
            raise UnknownResultError(f"{function} of the regular expression {text}")
        template = cel_templates.FIND
        if function == "findAll":
            template = cel_templates.FIND_ALL
            self.searched.append(text)
        ungrouped = _group.sub(lambda found: found[1] or "(?:", text)
        self._expand(node, template, [arguments[0], self._constant(ungrouped)])


def _is_converted(node: Node) -> bool:
    """Return whether the node is the conversion of a constant."""
    operand = node.call_expr.args[0] if node.call_expr.function in _CONVERTING else None
    return operand is not None and (operand.HasField("const_expr") or _is_converted(operand))

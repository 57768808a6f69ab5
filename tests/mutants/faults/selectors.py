"""Faults of the selectors of devices: where cel-cpp alone, or an own function, would not answer as cel-go does."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="selector-domains-without-default",
        breaks="A domain that a device lacks is an error, instead of an empty map.",
        old="domains: dict[str, dict[str, object]] = {each: {} for each in program.needs.domains}",
        new="domains: dict[str, dict[str, object]] = {}",
    ),
    Fault(
        id="selector-looked-up-domains-are-in-the-attributes",
        breaks='`"domain" in device.attributes` is true for a domain that the expression looks up.',
        old='        "@attributes": attributes,',
        new='        "@attributes": domains | attributes,',
    ),
    Fault(
        id="selector-bindings-kept",
        breaks="A name that cel.bind gives has the value of a loop that ended early.",
        old="        self._bound, unused = checked_expression.inline_bindings(self._checked.expr)\n",
        new="        unused: list[Node] = []\n",
        tests=("test_selectors.py",),
    ),
    Fault(
        id="selector-unused-bindings-not-checked",
        breaks="An expression with a wrong value compiles if cel.bind gives it a name that is not used.",
        old="        for each in (*unused, self._checked.expr):",
        new="        for each in (self._checked.expr,):",
        tests=("test_selectors.py",),
    ),
    Fault(
        id="selector-bound-literals-are-literals",
        breaks="A name for a literal does not compile where the literal itself would not.",
        old="each.id in self._bound or _is_converted(each)",
        new="_is_converted(each)",
        tests=("test_selectors.py",),
    ),
    Fault(
        id="selector-lists-as-keys",
        breaks="A list that is looked for in a map is an error.",
        old="                self._expand(node, cel_templates.IN_MAP, arguments)\n",
        new="                return\n",
        tests=("test_selectors.py",),
    ),
    Fault(
        id="selector-versions-equal-to-texts",
        breaks="A version is compared with a text without an error.",
        old="        if versions and self.needs.versions:",
        new="        if versions and self.needs.versions and not plan:",
        tests=("test_selectors.py",),
    ),
    Fault(
        id="selector-hidden-calls-not-made",
        breaks="An error hides that a result of a function is missing. The selector is an error instead of false.",
        old="            if not self._called(error) and not self._called_elsewhere(plan, variables):",
        new="            if not self._called(error):",
        tests=("test_selectors.py",),
    ),
    Fault(
        id="selector-cost-of-loops-not-multiplied",
        breaks="A nested loop costs no more than its body.",
        old="        turns = times * within.size\n",
        new="        turns = times\n",
        tests=("test_selectors.py",),
    ),
    Fault(
        id="selector-mixed-lists-compile",
        breaks="A list of several types compiles.",
        old='                raise InvalidExpressionError("a list or map of several types")',
        new="                break",
        tests=("test_recorded_selectors.py",),
    ),
    Fault(
        id="selector-prerelease-after-release",
        breaks="A pre-release is ordered after its release.",
        old='if identifiers else "~")',
        new='if identifiers else "")',
        tests=("test_selectors.py",),
    ),
    Fault(
        id="selector-includes-in-every-release",
        breaks="The function includes is there before 1.36.",
        old="INCLUDES_SINCE: Final = Release(1, 36)",
        new="INCLUDES_SINCE: Final = Release(1, 34)",
    ),
    Fault(
        id="selector-last-character-left-out",
        breaks="The substring up to the end of a text is an error.",
        old='    "string_substring_int_int": _substring,\n',
        new="",
        tests=("test_recorded_selectors.py",),
    ),
)

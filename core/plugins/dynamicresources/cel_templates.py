"""Functions of Kubernetes that cel-cpp lacks, in terms of those that it has: each is a text of CEL, compiled once.

Source: pkg/cel/library of k8s.io/apiserver (lists.go, regex.go). A template is expanded instead of the call. In it, `a`
and `b` are the operands; they may occur several times. An operand that is an error has to be evaluated.
"""

from typing import Final

_WHERE: Final = "a.transformList(kindred_i, kindred_v, kindred_v == b, kindred_i)"
_UNSORTED: Final = "a.all(kindred_i, kindred_v, kindred_i == 0 || a[kindred_i - 1] <= kindred_v)"
_NONE: Final = "[[b].size() - 2]"
"""[-1], but an error if `b` is one."""
_IS_TEXT: Final = 'type(a) == type("")'

OF_LISTS: Final = {
    "max": "a.sort()[a.size() - 1]",
    "min": "a.sort()[0]",
    "isSorted": _UNSORTED,
    "indexOf": f"({_WHERE} + {_NONE})[0]",
    "lastIndexOf": f"({_NONE} + {_WHERE})[{_WHERE}.size()]",
}
"""Function of a list -> its template."""
OF_ANY: Final = {name: f"{_IS_TEXT} ? a.{name}(b) : {OF_LISTS[name]}" for name in ("indexOf", "lastIndexOf")}
"""Function -> its template for an operand that is a text or a list."""
SUM: Final = "a.exists(kindred_v, kindred_v)"
"""A loop over a list, which becomes its sum."""
COMPARE: Final = "a > b ? 1 : (a == b ? 0 : -1)"
IN_MAP: Final = "type(a) == type([]) || type(a) == type({}) ? b.size() < 0 : a in b"
"""A list or a map is no key: false in cel-go, an error in cel-cpp."""
INCLUDES: Final = "type(a) == type([]) ? b in a : a == b"
FIND: Final = 'regex.extract(a, b).orValue("")'
FIND_ALL: Final = "regex.extractAll(a, b)"

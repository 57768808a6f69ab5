"""Which devices the selectors of a request match. A selector is evaluated once for devices that look alike to it."""

import re
from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple, TypeAlias

from core.objects.devices import Attribute
from core.plugins.dynamicresources.pools import PoolDevice
from core.plugins.dynamicresources.selectors import (
    AttributeValue,
    SelectedDevice,
    SelectorError,
    Version,
    compile_selector,
)
from core.releases.release import Release

Outcome: TypeAlias = bool | SelectorError
_NOT_REPORTED: Final = Release(1, 35)
_MAX_KNOWN: Final = 50_000
"""Outcomes of one selector that are kept."""
_USUAL_LENGTH: Final = 256
"""Characters of an expression whose evaluation counts as one."""
_QUOTED: Final = r"""(?:"([\w./-]*)"|'([\w./-]*)')"""  # a name only: a longer text may have whole expressions in it
_access: Final = re.compile(
    rf"\bdevice\.(attributes|capacity)\[\s*{_QUOTED}\s*\]\s*"
    rf"(?:\.\s*\??\s*([A-Za-z_][A-Za-z0-9_]*)\b(?!\s*\()|\[\s*\??\s*{_QUOTED}\s*\])"
)  # `all(` and the like read a whole domain
_whole: Final = re.compile(r"\bdevice\.(?:driver|allowMultipleAllocations)\b")
_device: Final = re.compile(r"\bdevice\b")


class Reads(NamedTuple):
    """The names of the attributes and capacities that a selector reads, with and without their domain."""

    attributes: frozenset[str] = frozenset()
    capacities: frozenset[str] = frozenset()


def reads_of(expression: str) -> Reads | None:
    """Return what an expression reads of a device. None: it may read anything.

    In one with a comment, what looks like a name or a call may be none.
    """
    if "//" in expression:
        return None
    attributes: set[str] = set()
    capacities: set[str] = set()
    for found in _access.finditer(expression):
        member, *names = found.groups()
        domain, identifier = (next((each for each in some if each is not None), "") for some in (names[:2], names[2:]))
        (attributes if member == "attributes" else capacities).update((f"{domain}/{identifier}", identifier))
    rest = _whole.sub(" ", _access.sub(" ", expression))
    return None if _device.search(rest) else Reads(frozenset(attributes), frozenset(capacities))


class Matcher:
    """A selector of a class or of a request, with its outcomes so far."""

    __slots__ = ("_known", "_release", "_selector", "evaluated", "expression", "reads")

    def __init__(self, expression: str, release: Release) -> None:
        self.expression = expression
        self.reads = reads_of(expression)
        self.evaluated = 0
        self._release = release
        self._selector = compile_selector(expression, release)
        self._known: dict[Hashable, Outcome] = {}

    def of(self, device: PoolDevice) -> Outcome:
        """Return whether the selector matches, or its error."""
        key = self._key(device)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self.evaluated += 1 + len(self.expression) // _USUAL_LENGTH
            try:
                found = self._selector.matches(selected(device, self._release))
            except SelectorError as error:
                found = SelectorError(error.kind, error.message)  # it is kept, so without a traceback and its frames
            self._known[key] = found
        return found

    def _key(self, device: PoolDevice) -> Hashable:
        attributes, capacity = device.device.attributes, device.device.capacity
        if self.reads is None or not device.is_plain:
            return device
        shareable = device.device.shareable
        return (
            device.id.driver,
            shareable,
            *[attributes.get(each) for each in self.reads.attributes],
            *[capacity.get(each) for each in self.reads.capacities],
        )


def selected(device: PoolDevice, release: Release) -> SelectedDevice:
    """Return a device as selectors see it. The allocator of 1.35 does not tell them whether it may be shared."""
    return SelectedDevice(
        device.id.driver,
        {name: _value(each) for name, each in device.device.attributes.items()},
        {name: each.value for name, each in device.device.capacity.items()},
        None if release == _NOT_REPORTED else device.device.shareable,
    )


def _value(attribute: Attribute) -> AttributeValue:
    kind, value = attribute
    if not kind:
        return None
    if isinstance(value, tuple):
        return tuple([Version(str(each)) for each in value]) if kind == "versions" else value
    return Version(str(value)) if kind == "version" else value


def union(reads: Iterable[Reads | None]) -> Reads | None:
    """Return what several selectors read."""
    attributes: set[str] = set()
    capacities: set[str] = set()
    for each in reads:
        if each is None:
            return None
        attributes |= each.attributes
        capacities |= each.capacities
    return Reads(frozenset(attributes), frozenset(capacities))

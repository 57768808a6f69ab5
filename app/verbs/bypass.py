"""Which pods pass untouched: the pods that the settings name, and Kindred's own pods, so that they can always start."""

import re
from collections.abc import Collection, Iterator
from typing import Final

from app.api_server.own_namespace import own_namespace
from app.settings import Settings, SettingsError, variable_of
from core.objects.labels import Selector, SelectorError, parse_selector
from core.objects.pod import Pod

OWN_LABELS: Final = {"app.kubernetes.io/name": "kindred"}
# As kubectl's -l: `a=b,c!=d,e in (x,y),f notin (z),g,!h` (apimachinery pkg/labels/selector.go).
_REQUIREMENT: Final = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<no_key>[^\s!=,()]+)"
    r"|(?P<key>[^\s!=,()]+)\s*(?:(?P<sign>==?|!=)\s*(?P<value>[^\s!=,()]*)"
    r"|(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|$)"
)
_IN: Final = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn"}


class Bypass:
    """Returns whether a pod passes untouched."""

    def __init__(
        self,
        namespaces: Collection[str] = (),
        selector: Selector | None = None,
        schedulers: Collection[str] = (),
        own_namespace: str = "",
    ) -> None:
        """Let pods of these namespaces, labels and schedulers pass, and Kindred's own pods in `own_namespace`."""
        self._namespaces = frozenset(namespaces)
        self._selector = selector
        self._schedulers = frozenset(schedulers)
        self._own_namespace = own_namespace
        self._own = parse_selector(OWN_LABELS, ())

    def covers(self, pod: Pod) -> bool:
        """Whether a pod passes."""
        return (
            pod.namespace in self._namespaces
            or pod.scheduler_name in self._schedulers
            or (self._selector is not None and self._selector.matches(pod.labels))
            or (pod.namespace == self._own_namespace and self._own.matches(pod.labels))
        )


NOBODY: Final = Bypass()


def create_bypass(settings: Settings) -> Bypass:
    """Return the bypass that the settings define. Raises SettingsError."""
    try:
        selector = parse_label_selector(settings.bypass_labels) if settings.bypass_labels.strip() else None
    except SelectorError as error:
        name = variable_of("bypass_labels")
        raise SettingsError(f"{name}={settings.bypass_labels!r}: {error}") from None
    return Bypass(settings.bypass_namespaces, selector, settings.bypass_schedulers, own_namespace(settings))


def parse_label_selector(text: str) -> Selector:
    """Parse a selector in the syntax of kubectl's `-l`. Raises SelectorError."""
    return parse_selector({}, list(_requirements(text)))


def _requirements(text: str) -> Iterator[tuple[str, str, list[str]]]:
    position = 0
    while position < len(text):
        found = _REQUIREMENT.match(text, position)
        if found is None:
            raise SelectorError("", f"expected KEY, !KEY, KEY=VALUE or KEY in (VALUE, ...) at {text[position:]!r}")
        position = found.end()
        if found["absent"]:
            yield found["no_key"], "DoesNotExist", []
        elif found["sign"]:
            yield found["key"], _IN[found["sign"]], [found["value"]]
        elif found["set"]:
            yield found["key"], _IN[found["set"]], [value.strip() for value in found["values"].split(",")]
        else:
            yield found["key"], "Exists", []

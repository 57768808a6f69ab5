"""The pods for which Kindred decides, and the nodes among which it chooses, by `spec.schedulerName`."""

from collections.abc import Mapping
from enum import Enum

from app.settings import Settings, SettingsError, variable_of
from core.objects.pod import Pod


class DecideScope(Enum):
    """The nodes among which Kindred chooses. Also the values of the setting."""

    QUESTION = "question"
    """The nodes of the request."""
    ANY_NODE = "any-node"
    """All nodes of the mirror, whichever the request names. Right only for a scheduler profile without filters."""


class DecideScopes:
    """spec.schedulerName -> scope."""

    def __init__(self, default: DecideScope | None, by_scheduler: Mapping[str, DecideScope] | None = None) -> None:
        """Take scopes by scheduler, and `default` for others. None: Kindred does not decide for their pods."""
        self._default = default
        self._by_scheduler = by_scheduler or {}

    def of(self, pod: Pod) -> DecideScope | None:
        """Return the scope of a pod. None: `filter` returns all nodes that fit."""
        return self.of_scheduler(pod.scheduler_name)

    def of_scheduler(self, name: str) -> DecideScope | None:
        """Return the scope of a scheduler's pods. None: `filter` returns all nodes that fit."""
        return self._by_scheduler.get(name, self._default)

    @property
    def schedulers(self) -> frozenset[str]:
        """The schedulers that have a scope of their own."""
        return frozenset(self._by_scheduler)

    @property
    def decides_by_default(self) -> bool:
        """Whether Kindred decides for schedulers without a scope of their own."""
        return self._default is not None

    @property
    def all(self) -> frozenset[DecideScope]:
        """All scopes in use."""
        found = {*self._by_scheduler.values(), self._default}
        return frozenset(scope for scope in found if scope is not None)


def decide_scopes(settings: Settings) -> DecideScopes | None:
    """Return the scopes that the settings define. None if Kindred does not decide. Raises SettingsError."""
    if settings.answer == "all":
        return None
    text = settings.decide_scope.strip()
    if "=" not in text:
        return DecideScopes(_scope(text, text))
    by_scheduler: dict[str, DecideScope] = {}
    for part in text.split(","):
        scheduler, _, scope = (piece.strip() for piece in part.partition("="))
        if not scheduler or scheduler in by_scheduler:
            raise _wrong(text, f"{part.strip()!r} names {'a scheduler twice' if scheduler else 'no scheduler'}")
        by_scheduler[scheduler] = _scope(scope, text)
    return DecideScopes(None, by_scheduler)


def _scope(word: str, text: str) -> DecideScope:
    try:
        return DecideScope(word)
    except ValueError:
        there = " or ".join(scope.value for scope in DecideScope)
        raise _wrong(text, f"expected {there}, or SCHEDULER={there}, ...; got {word!r}") from None


def _wrong(text: str, problem: str) -> SettingsError:
    return SettingsError(f"{variable_of('decide_scope')}={text!r}: {problem}")

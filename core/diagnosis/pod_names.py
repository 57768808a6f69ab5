"""Names of pods in explanations: text that knows which pods it names, so that a response can leave some of them out.

A caller who may not list the pods of a namespace must not learn their names. The values here are `str` for all who
compute with them. msgspec does not encode them as plain text: it passes each to a hook, and raises TypeError without
one. So the encoding of a response is the one place where names are shown or hidden (app/admin/access.py).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Self, TypeAlias

from core.objects.pod import Pod

Sees: TypeAlias = Callable[[str], bool]
"""Namespace -> whether the names of its pods are shown."""
HIDDEN: Final = "(a pod of another namespace)"
"""In the place of a name."""
HIDDEN_BUDGET: Final = "(a budget of another namespace)"


def every_namespace(_: str) -> bool:
    """Show all names."""
    return True


class PodName(str):
    """NAMESPACE/NAME of a pod."""

    __slots__ = ()

    def namespaces(self) -> Iterator[str]:
        """Yield the namespace of each pod that is named."""
        yield self.partition("/")[0]

    def shown(self, sees: Sees) -> str:
        """Return the text for a caller: HIDDEN where the namespace is not seen."""
        return str(self) if all(map(sees, self.namespaces())) else HIDDEN


class BudgetName(PodName):
    """NAMESPACE/NAME of a PodDisruptionBudget, which is hidden like the pods that it protects."""

    __slots__ = ()

    def shown(self, sees: Sees) -> str:
        """Return the name, or HIDDEN_BUDGET where the namespace is not seen."""
        return str(self) if all(map(sees, self.namespaces())) else HIDDEN_BUDGET


class PodUid(str):
    """Uid of a pod; nothing is shown of it where the namespace is not seen: it stands for the name in requests."""

    __slots__ = ("_namespace",)
    _namespace: str

    def __new__(cls, uid: str, namespace: str) -> Self:
        """Take the namespace of the pod."""
        made = super().__new__(cls, uid)
        made._namespace = namespace
        return made

    def namespaces(self) -> Iterator[str]:
        """Yield the namespace of the pod."""
        yield self._namespace

    def shown(self, sees: Sees) -> str:
        """Return the uid, or nothing."""
        return str(self) if sees(self._namespace) else ""


class PodText(str):
    """Text for people, in pieces; some are names of pods."""

    __slots__ = ("_pieces",)
    _pieces: Sequence[str]

    def __new__(cls, *pieces: str) -> Self:
        """Join the pieces, also of other texts."""
        made = super().__new__(cls, "".join(pieces))
        made._pieces = pieces
        return made

    def namespaces(self) -> Iterator[str]:
        """Yield the namespace of each pod that is named."""
        for piece in self._pieces:
            if isinstance(piece, PodName | PodText):
                yield from piece.namespaces()

    def shown(self, sees: Sees) -> str:
        """Return the text with HIDDEN in the place of the names that are not seen."""
        return "".join(piece.shown(sees) if isinstance(piece, PodName | PodText) else piece for piece in self._pieces)


NamesPods: TypeAlias = PodName | PodUid | PodText


def name_of(pod: Pod) -> PodName:
    """Return NAMESPACE/NAME."""
    return PodName(pod.full_name)


def uid_of(pod: Pod) -> PodUid:
    """Return the uid."""
    return PodUid(pod.uid, pod.namespace)

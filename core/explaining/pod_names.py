"""Names of pods in explanations, as text with their namespaces, so that a response can hide some of them.

A caller who may not list the pods of a namespace must not see their names. The values here are `str` in computations.
msgspec does not encode them as plain text: it passes each value to a hook, and raises TypeError without one. So the
encoding of a response is the only place where names are shown or hidden (app/admin/access.py).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final, Self, TypeAlias

from core.objects.pod import Pod

Sees: TypeAlias = Callable[[str], bool]
"""Namespace -> whether the names of its pods are shown."""
HIDDEN: Final = "(a pod of another namespace)"
"""Replaces a hidden name."""
HIDDEN_NAMESPACE: Final = "(another namespace)"
HIDDEN_OWNER: Final = "(of another namespace)"
HIDDEN_BUDGET: Final = "(a budget of another namespace)"
HIDDEN_CLAIM: Final = "(a claim of another namespace)"


def every_namespace(_: str) -> bool:
    """Show all names."""
    return True


class PodName(str):
    """NAMESPACE/NAME of a pod."""

    __slots__ = ()
    hidden: ClassVar[str] = HIDDEN
    """Stands for the name if the caller may not see the namespace."""

    def namespaces(self) -> Iterator[str]:
        """Yield the namespace of each named pod."""
        yield self.partition("/")[0]

    def rendered(self, sees: Sees) -> str:
        """Return the text for a caller: `hidden` if the caller may not see the namespace."""
        return str(self) if all(map(sees, self.namespaces())) else self.hidden


class BudgetName(PodName):
    """NAMESPACE/NAME of a PodDisruptionBudget. It is hidden like the pods that the budget protects."""

    __slots__ = ()
    hidden = HIDDEN_BUDGET


class ClaimName(PodName):
    """NAMESPACE/NAME of a ResourceClaim. It is hidden like the pods that use the claim."""

    __slots__ = ()
    hidden = HIDDEN_CLAIM


class OwnerName(PodName):
    """NAMESPACE/NAME of the owner of pods. It is hidden like its pods."""

    __slots__ = ()
    hidden = HIDDEN_OWNER


class NamespaceName(PodName):
    """Name of a namespace that is told because of its pods. It is hidden like their names."""

    __slots__ = ()
    hidden = HIDDEN_NAMESPACE


class PodUid(str):
    """UID of a pod. It is hidden with the namespace, because requests accept it in place of the name."""

    __slots__ = ("_namespace",)
    _namespace: str

    def __new__(cls, uid: str, namespace: str) -> Self:
        """`namespace` is the pod's namespace."""
        made = super().__new__(cls, uid)
        made._namespace = namespace
        return made

    def namespaces(self) -> Iterator[str]:
        """Yield the namespace of the pod."""
        yield self._namespace

    def rendered(self, sees: Sees) -> str:
        """Return the UID, or the empty text if the caller may not see the namespace."""
        return str(self) if sees(self._namespace) else ""


class PodText(str):
    """Text in pieces. Some pieces are names of pods."""

    __slots__ = ("_pieces",)
    _pieces: Sequence[str]

    def __new__(cls, *pieces: str) -> Self:
        """Join pieces, which may themselves be texts with names."""
        made = super().__new__(cls, "".join(pieces))
        made._pieces = pieces
        return made

    def namespaces(self) -> Iterator[str]:
        """Yield the namespace of each named pod."""
        for piece in self._pieces:
            if isinstance(piece, PodName | PodText):
                yield from piece.namespaces()

    def rendered(self, sees: Sees) -> str:
        """Return the text, with HIDDEN in place of the names that the caller may not see."""
        return "".join(each.rendered(sees) if isinstance(each, PodName | PodText) else each for each in self._pieces)


NamesPods: TypeAlias = PodName | PodUid | PodText


def name_of(pod: Pod) -> PodName:
    """Return NAMESPACE/NAME."""
    return PodName(pod.full_name)


def uid_of(pod: Pod) -> PodUid:
    """Return the UID."""
    return PodUid(pod.uid, pod.namespace)

"""Which PodDisruptionBudgets cover a pod, or the pods of an owner, as a snapshot saw them."""

from collections.abc import Iterator, Mapping
from typing import Final, Generic, Protocol, TypeVar

from core.mirror.generation_store import GenerationStore
from core.mirror.object_stores import ObjectStores
from core.objects.disruption import PodDisruptionBudget
from core.objects.owner import ReplicaSet
from core.objects.pod import Pod

OWNER_KINDS: Final = {"ReplicaSet": ReplicaSet}
"""Kinds of owners by their names in owner references."""


class _Namespaced(Protocol):
    @property
    def namespace(self) -> str: ...

    @property
    def full_name(self) -> str: ...


_Object = TypeVar("_Object", bound=_Namespaced)


class _ByNamespace(Generic[_Object]):
    """The objects of one store as they were when it was last followed: by full name, and by namespace."""

    def __init__(self) -> None:
        self.all: dict[str, _Object] = {}
        self._of_namespace: dict[str, dict[str, _Object]] = {}  # namespace -> full name -> object

    def follow(self, store: GenerationStore[_Object], generation: int) -> None:
        """Take over the changes of the store after a generation, the one of the last call."""
        for full_name in store.deleted_since(generation, self.all):
            gone = self.all.pop(full_name, None)
            if gone is not None:
                of_namespace = self._of_namespace[gone.namespace]
                del of_namespace[full_name]
                if not of_namespace:
                    del self._of_namespace[gone.namespace]
        for changed in store.changed_since(generation):
            self.all[changed.full_name] = changed
            self._of_namespace.setdefault(changed.namespace, {})[changed.full_name] = changed

    def of_namespace(self, namespace: str) -> Mapping[str, _Object]:
        """Return the objects of a namespace by full name."""
        return self._of_namespace.get(namespace, {})


class DisruptionBudgets:
    """PodDisruptionBudgets and owners of pods, each found by its namespace; several in the order of their names.

    A PodDisruptionBudget whose selector is null or empty covers nothing, and none covers a pod without labels (upstream
    default_preemption.go, filterPodsWithPDBViolation). A budget covers a pod even if it has counted the pod's
    disruption already (`disrupted_pods`): the counter of violations must check that.
    """

    def __init__(self) -> None:
        self._budgets: _ByNamespace[PodDisruptionBudget] = _ByNamespace()
        self._owners: dict[str, _ByNamespace[ReplicaSet]] = {kind: _ByNamespace() for kind in OWNER_KINDS}

    def follow(self, objects: ObjectStores, generation: int) -> None:
        """Take over the changes after the generation of the last call."""
        self._budgets.follow(objects.of(PodDisruptionBudget), generation)
        for kind, owners in self._owners.items():
            owners.follow(objects.of(OWNER_KINDS[kind]), generation)

    def all(self) -> tuple[PodDisruptionBudget, ...]:
        """Return every budget."""
        return tuple(budget for _, budget in sorted(self._budgets.all.items()))

    def of_pod(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that cover a pod."""
        return tuple(self._covering(pod.namespace, pod.labels))

    def of_owner(self, kind: str, full_name: str) -> tuple[PodDisruptionBudget, ...] | None:
        """Return the budgets that cover pods with an owner's labels; None if there is no such owner."""
        owner = self._owner(kind, full_name)
        return None if owner is None else tuple(self._covering(owner.namespace, owner.labels))

    def owners_of(self, full_name: str, kind: str) -> tuple[str, ...]:
        """Return the full names of the owners of a kind whose labels a budget covers; none if there is no budget."""
        budget = self._budgets.all.get(full_name)
        if budget is None or kind not in self._owners:
            return ()
        owners = self._owners[kind].of_namespace(budget.namespace)
        return tuple(name for name, owner in sorted(owners.items()) if covers(budget, owner.labels))

    def owner_labels(self, kind: str, full_name: str) -> Mapping[str, str] | None:
        """Return the labels of an owner; None if there is no such owner."""
        owner = self._owner(kind, full_name)
        return None if owner is None else owner.labels

    def _owner(self, kind: str, full_name: str) -> ReplicaSet | None:
        owners = self._owners.get(kind)
        return None if owners is None else owners.all.get(full_name)

    def _covering(self, namespace: str, labels: Mapping[str, str]) -> Iterator[PodDisruptionBudget]:
        for _, budget in sorted(self._budgets.of_namespace(namespace).items()):
            if covers(budget, labels):
                yield budget


def covers(budget: PodDisruptionBudget, labels: Mapping[str, str]) -> bool:
    """Return whether a budget covers pods of its namespace with these labels."""
    return bool(labels) and not budget.selector.everything and budget.selector.matches(labels)

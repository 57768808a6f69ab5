"""What simulations read of objects beside the mirror: facts of pods, and the owners and defaults that make pods."""

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Final

import msgspec

from app.explain.pod_names import WORKLOADS
from app.explain.stored_pod import Json, read_json
from app.objects.decode import NULL, DecodeError, Metadata, OwnerReference, Unread, Wire, WireObject
from app.objects.decode_groups import Condition, WireCondition
from app.objects.resources import OF_MANIFESTS
from core.objects.kinds import PodDisruptionBudget
from core.objects.pod import Pod
from core.simulation.facts import BudgetFacts, PodFacts

_SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_SAFE_VOLUMES: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
_SAFE: Final = {"true": True, "false": False}
_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
_INDEX_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
_DIGITS: Final = 10
"""Of an int32."""
_DECODED: Final = 256
"""Objects that stay decoded, for the next pods of their owners. Of 3,000 owners all would take 7 MB."""
_PENDING: Final = "Pending"
_SYNC_FAILED: Final = "SyncFailed"
_ALWAYS_ALLOW: Final = "AlwaysAllow"
_STORED: Final = frozenset({*WORKLOADS, *OF_MANIFESTS, "ResourceQuota"})
_IN_NAMESPACES: Final = _STORED - {"PriorityClass", "RuntimeClass"}


_USUAL: Final = PodFacts()
"""Shared by almost all pods."""


class _Metadata(Wire):
    name: str | None = None
    namespace: str | None = None
    annotations: Annotated[msgspec.Raw, Unread(dict[str, str])] = NULL


class _EmptyDir(Wire):
    medium: str | None = None


class _Volume(Wire):
    name: str | None = None
    empty_dir: _EmptyDir | None = None
    host_path: msgspec.Raw = NULL

    @property
    def keeps_data(self) -> bool:
        """Whether its data stays on the node, even if its pod goes.

        Source: kubernetes/autoscaler cluster-autoscaler/utils/drain/drain.go (isLocalVolume).
        """
        return self.host_path != NULL or (self.empty_dir is not None and self.empty_dir.medium != "Memory")


class _Spec(Wire):
    volumes: Sequence[_Volume] | None = None


class _Status(Wire):
    phase: str | None = None
    conditions: Sequence[Condition] | None = None


class _Pod(Wire):
    metadata: _Metadata | None = None
    spec: _Spec | None = None
    status: _Status | None = None


class _BudgetSpec(Wire):
    unhealthy_pod_eviction_policy: str | None = None


class _BudgetStatus(Wire):
    current_healthy: int | None = None
    desired_healthy: int | None = None
    conditions: Sequence[WireCondition] | None = None


class _Budget(Wire):
    metadata: _Metadata | None = None
    spec: _BudgetSpec | None = None
    status: _BudgetStatus | None = None


_pod_decoder: Final = msgspec.json.Decoder(_Pod)
_budget_decoder: Final = msgspec.json.Decoder(_Budget)
_object_decoder: Final = msgspec.json.Decoder(WireObject)
_owners_decoder: Final = msgspec.json.Decoder(list[OwnerReference])
_annotations_decoder: Final = msgspec.json.Decoder(dict[str, str])


class _Stored:
    """An object, which is decoded when it is needed: few of 20,000 ReplicaSets are."""

    __slots__ = ("_kind", "_raw")

    def __init__(self, kind: str, raw: bytes | msgspec.Raw) -> None:
        self._kind = kind
        self._raw = raw

    @property
    @lru_cache(_DECODED)  # noqa: B019  # by identity; few are kept
    def json(self) -> Json:
        """The object, with its kind, which the API server leaves out in lists."""
        return {**read_json(bytes(self._raw)), "kind": self._kind}


class RawObjects:
    """Facts of the pods and budgets of a cluster, and the objects of the kinds that controllers and admission read.

    There are 150,000 pods, so the facts of almost all of them are one object.
    """

    def __init__(self) -> None:
        self._pods: dict[str, PodFacts] = {}
        self._budgets: dict[str, BudgetFacts] = {}
        self._kinds: set[str] = set()
        self._by_name: dict[tuple[str, str], _Stored] = {}
        self._by_namespace: dict[tuple[str, str], list[_Stored]] = {}
        self._by_owner: dict[tuple[str, str, str, str], list[_Stored]] = {}

    def take(self, kind: str, raw: bytes | msgspec.Raw) -> None:
        """Take an object of a kind. One that cannot be decoded is left out: the mirror's reader has reported it."""
        with suppress(DecodeError, msgspec.DecodeError, UnicodeDecodeError):
            if kind == "Pod":
                self._take_pod(raw)
            elif kind == "PodDisruptionBudget":
                self._take_budget(raw)
            elif kind in _STORED:
                self._take_object(kind, raw)

    def _take_pod(self, raw: bytes | msgspec.Raw) -> None:
        pod = _pod_decoder.decode(raw)
        metadata, status = pod.metadata or _Metadata(), pod.status or _Status()
        annotations = {} if metadata.annotations == NULL else _annotations_decoder.decode(metadata.annotations)
        volumes, safe = (pod.spec or _Spec()).volumes or (), annotations.get(_SAFE_VOLUMES, "").split(",")
        facts = PodFacts(
            local_data=any(each.empty_dir is not None for each in volumes),
            node_data=any(each.keeps_data and each.name not in safe for each in volumes),
            is_ready=_is_ready(status),
            has_started=status.phase != _PENDING,
            safe_to_evict=_SAFE.get(annotations.get(_SAFE_TO_EVICT, "")),
            do_not_disrupt=annotations.get(_DO_NOT_DISRUPT) == "true",
            index_failures=_number(annotations.get(_INDEX_FAILURES, "")),
        )
        if facts != _USUAL:
            self._pods[_full_name(metadata)] = facts

    def _take_budget(self, raw: bytes | msgspec.Raw) -> None:
        budget = _budget_decoder.decode(raw)
        spec, status = budget.spec or _BudgetSpec(), budget.status or _BudgetStatus()
        desired = status.desired_healthy or 0
        self._budgets[_full_name(budget.metadata or _Metadata())] = BudgetFacts(
            lacks=max(desired - (status.current_healthy or 0), 0),
            wants_any=desired > 0,
            sync_failed=any(each.reason == _SYNC_FAILED for each in status.conditions or ()),
            always_allows_unhealthy=spec.unhealthy_pod_eviction_policy == _ALWAYS_ALLOW,
        )

    def _take_object(self, kind: str, raw: bytes | msgspec.Raw) -> None:
        metadata = _object_decoder.decode(raw).metadata or Metadata()
        namespace = (metadata.namespace or "default") if kind in _IN_NAMESPACES else ""
        stored = _Stored(kind, raw)
        self._kinds.add(kind)
        self._by_name[kind, f"{namespace}/{metadata.name}"] = stored
        self._by_namespace.setdefault((kind, namespace), []).append(stored)
        owners = () if metadata.owner_references == NULL else _owners_decoder.decode(metadata.owner_references)
        for owner in owners:
            self._by_owner.setdefault((kind, namespace, owner.kind or "", owner.name or ""), []).append(stored)

    def of_pod(self, pod: Pod) -> PodFacts:
        """Return the facts of a pod. Without its object, those of most pods."""
        return self._pods.get(pod.full_name, _USUAL)

    def of_budget(self, budget: PodDisruptionBudget) -> BudgetFacts:
        """Return the facts of a budget."""
        return self._budgets.get(budget.full_name, BudgetFacts())

    def named(self, kind: str, full_name: str) -> Json | None:
        """Return the object of a namespaced kind, NAMESPACE/NAME, or None. Raises DecodeError."""
        stored = self._by_name.get((kind, full_name))
        return stored.json if stored is not None else None

    def has(self, kind: str) -> bool:
        """Return whether there is any object of a kind."""
        return kind in self._kinds

    def objects(self, kind: str) -> Sequence[Json]:
        """Return all objects of a kind. Raises DecodeError."""
        return [each.json for (of, _), found in self._by_namespace.items() if of == kind for each in found]

    def of_name(self, kind: str, name: str, namespace: str) -> Sequence[Json]:
        """Return the objects of a kind and a name, in a namespace, or with the empty one in any. Raises DecodeError."""
        if namespace:
            found = self._by_name.get((kind, f"{namespace}/{name}"))
            return [] if found is None else [found.json]
        return [each.json for (of, full), each in self._by_name.items() if of == kind and full.endswith(f"/{name}")]

    def in_namespace(self, kind: str, namespace: str) -> Sequence[Json]:
        """Return the objects of a kind in a namespace, and all of a kind without namespaces. Raises DecodeError."""
        return [each.json for each in self._by_namespace.get((kind, namespace if kind in _IN_NAMESPACES else ""), ())]

    def owned(self, kind: str, owner_kind: str, owner: str) -> Sequence[Json]:
        """Return the objects of a kind that an object of a namespace owns, NAMESPACE/NAME. Raises DecodeError."""
        namespace, _, name = owner.partition("/")
        return [each.json for each in self._by_owner.get((kind, namespace, owner_kind, name), ())]


def _is_ready(status: _Status) -> bool:
    """Return the condition Ready, which a pod in a dump by hand may lack. Then it counts as ready."""
    ready = [each.status for each in status.conditions or () if each.type == "Ready"]
    return "True" in ready if ready else status.phase != _PENDING


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else 0


def _full_name(metadata: _Metadata) -> str:
    return f"{metadata.namespace or 'default'}/{metadata.name}"

"""The templates of a question: of a manifest, of a workload by its name, or of a pod."""

from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from app.explain.explain_request import Manifest, decode_manifest
from app.explain.made_objects import made_early
from app.explain.pod_names import PodQuery, pod_query
from app.explain.stored_pod import Json, elements, member, read_json
from app.explain.templates import AtHand, namespace_of, pod_templates
from app.explain.workloads import one_workload, split
from app.simulation.chosen_nodes import QuestionError
from app.simulation.comes_again import ClusterFacts
from app.simulation.raw_objects import RawObjects
from core.events import ClusterEvent
from core.explaining.owners import belongs_to_node
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod, PodClaim
from core.objects.volumes import PersistentVolumeClaim, StorageClass
from core.simulation.capacity import Template
from core.simulation.facts import STATEFUL, copy_of_pod, unbound
from core.simulation.moves import owner_text

_NO_POD: Final = "there is no such pod, and no pod of such a workload: ask for a new one by its manifest"
_OF_NODES: Final = "its pods belong to nodes, and it has no replicas"


class Replica(NamedTuple):
    """A template, and what it is of: KIND NAMESPACE/NAME."""

    of: str
    template: Template
    uncertainty: str = ""
    """What of the pod is not known."""
    spec: Json | None = None
    """The spec of the pod as the API server would store it. None: it is like a running pod, without a template."""


class Replicas:
    """Finds templates in a cluster. The objects beside a manifest are added to the mirror."""

    def __init__(self, mirror: ClusterMirror, raw: RawObjects, facts: ClusterFacts) -> None:
        self._mirror = mirror
        self._raw = raw
        self._objects = cache(raw.objects)  # each template looks through all ReplicaSets, of which few stay decoded
        self._facts = facts

    def of_manifest(self, text: bytes) -> Replica:
        """Return the template of a manifest, as JSON. Raises QuestionError, DecodeError."""
        workload, _ = split(one_workload([text]))
        manifest = self._manifest(text, workload)
        kind = str(workload.get("kind") or "Pod")
        name = str(read_json(msgspec.json.encode(workload)).get("metadata", {}).get("name") or manifest.pod.name)
        of = f"{kind} {manifest.pod.namespace}/{name}"
        if belongs_to_node(manifest.pod):
            raise QuestionError("manifests", _OF_NODES, of)
        found = self._of(manifest, of, is_set=kind == STATEFUL)
        first, *others = [path for path, _ in pod_templates(workload)] or [""]
        if not others:
            return found
        why = f"the pods of {', '.join(others)}, as those that fit are of {first}"
        return found._replace(uncertainty="; ".join(filter(None, (why, found.uncertainty))))

    def named(self, text: str, namespace: str = "") -> Replica:
        """Return the template of [NAMESPACE/][TYPE/]NAME: a workload, or a pod. Raises QuestionError, DecodeError."""
        query = pod_query(text)
        query = query._replace(namespace=query.namespace or namespace)
        stored = self._raw.of_name(query.kind, query.name, query.namespace) if query.kind else []
        if len(stored) == 1:
            return self.of_manifest(msgspec.json.encode(stored[0]))
        found = {(pod.namespace, owner_text(pod) if query.kind else pod.name): pod for pod in self._pods(query)}
        namespaces = {each for each, _ in found} | {namespace_of(each) for each in stored}
        if not namespaces:
            raise QuestionError("of", _NO_POD, text)
        if len(namespaces) > 1:
            several = f"there are several of that name, in {', '.join(sorted(namespaces))}: give a namespace"
            raise QuestionError("of", several, text)
        pod = next(iter(found.values()))
        if belongs_to_node(pod):
            raise QuestionError("of", _OF_NODES, text)
        again = self._facts.comes_again(pod) if pod.node_name else ""
        made = copy_of_pod(pod) if isinstance(again, str) else again.instead_of(pod)
        of = owner_text(pod) if query.kind else f"Pod {pod.full_name}"
        return self._like_running(of, made, self._facts.spec_of_template(pod))

    def _pods(self, query: PodQuery) -> Iterator[Pod]:
        for pod in chain((each for _, each in self._mirror.placed_pods()), self._mirror.pending):
            if query.namespace in {"", pod.namespace}:
                is_it = owner_text(pod) == f"{query.kind} {pod.namespace}/{query.name}" if query.kind else False
                if is_it or (not query.kind and query.name in {pod.name, pod.uid}):
                    yield pod

    def _manifest(self, text: bytes, workload: Json) -> Manifest:
        """Decode a manifest as if no claim were left of a former replica, as the others get those of the templates."""
        at_hand, stored = AtHand(self._mirror, self._objects), self._mirror.objects(PersistentVolumeClaim)
        manifest = decode_manifest(text, at_hand)
        pod, templates = manifest.pod, elements(member(workload, "spec"), "volumeClaimTemplates")
        names = (f"{pod.namespace}/{member(each, 'metadata').get('name')}-{pod.name}" for each in templates)
        retained = [claim for name in names if (claim := stored.get(name)) is not None]
        if not retained:
            return manifest
        with self._mirror.fork() as fork:
            for each in retained:
                fork.remove_object(each)
            return decode_manifest(text, at_hand)

    def _of(self, manifest: Manifest, of: str, *, is_set: bool) -> Replica:
        claims = list[PersistentVolumeClaim]()
        for each in manifest.made:
            of_set = is_set and each.full_name.endswith(f"-{manifest.pod.name}")
            if isinstance(each, PersistentVolumeClaim) and (each.controller is not None or of_set):
                claims.append(each)
            elif each.full_name not in self._mirror.objects(type(each)):
                self._mirror.apply(ClusterEvent("Add", each))
        spec = member(read_json(manifest.json), "spec")
        return Replica(of, Template(manifest.pod, claims=claims), "; ".join(manifest.notes.unknown), spec)

    def _like_running(self, of: str, pod: Pod, spec: Json | None) -> Replica:
        """Return a template like a running pod, with claims like those that this one has for itself.

        A volume that would be made before the pod is scheduled is left out (app/explain/made_objects.py).
        """
        classes, own = self._mirror.objects(StorageClass), dict(self._own_claims(pod))
        early = {volume: made_early(claim, classes.get(claim.storage_class)) for volume, claim in own.items()}
        volumes = tuple(each for each in pod.volumes if not (isinstance(each, PodClaim) and early.get(each)))
        claims = [unbound(claim, volume.name, pod) for volume, claim in own.items()]
        template = Template(replace(pod, volumes=volumes), claims=claims)
        return Replica(of, template, "; ".join(filter(None, early.values())), spec)

    def _own_claims(self, pod: Pod) -> Iterator[tuple[PodClaim, PersistentVolumeClaim]]:
        is_set = pod.controller is not None and pod.controller.kind == STATEFUL
        stored = self._mirror.objects(PersistentVolumeClaim)
        for each in pod.volumes:
            if isinstance(each, PodClaim) and (each.ephemeral or (is_set and each.name.endswith(f"-{pod.name}"))):
                claim = stored.get(f"{pod.namespace}/{each.name}")
                if claim is not None:
                    yield each, claim


def namespaces_of(manifest: msgspec.Raw) -> Iterator[str]:
    """Yield the namespaces of the workload of a manifest and of objects beside it. Raises DecodeError."""
    workload, companions = split(one_workload([bytes(manifest)]))
    yield namespace_of(workload)
    for each in companions:
        if member(each, "metadata").get("namespace"):  # others have none, or are not of the workload
            yield namespace_of(each)

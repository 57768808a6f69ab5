"""The pod that comes in the place of one that is evicted or lost: its owner's, and not a copy of the running one.

In between, the template may have changed: in a rollout, by a resize in place, or by an autoscaler of requests. Where a
rollout stands still, an old pod comes again as an old one. The new pod has what its controller, the API server's
defaults and admission add (see docs/explain.md), with the objects that are at hand. With a creator, it is what the API
server itself would store (app/simulation/dry_runs.py). Without its owner's object, it is as the running pod.

Source: k8s.io/kubernetes pkg/controller: deployment/deployment_controller.go and deployment/rolling.go (in a rollout
the pods of old ReplicaSets that are not available go first, so that the newest one makes their successors),
replicaset/replica_set.go, statefulset/stateful_set_control.go, job/job_controller.go.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from app.explain.explain_request import Manifest, decode_manifest
from app.explain.stored_pod import Json, Notes, Objects, elements, member, read_json
from app.explain.templates import AtHand, made_pod, revision_of
from app.objects.decode import DecodeError
from app.objects.decode_pod import decode_pod
from app.simulation.owner_rules import current_revision, of_template, stands_still, why_no_more
from app.simulation.raw_objects import RawObjects
from core.explaining.owners import ordinal, owner_of
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import PodDisruptionBudget
from core.objects.pod import Pod, PodClaim
from core.simulation.facts import STATEFUL, Again, BudgetFacts, PodFacts, copied
from core.simulation.moves import owner_text

_REVISIONS: Final = ("ReplicaSet", "ControllerRevision")
_JOB: Final = "Job"
OF_GROUP: Final = "placed one by one, though all or none of its group's members get places"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"


class Uncertainty(msgspec.Struct, frozen=True):
    """Why the pods that come again may be others than those that were tried."""

    owner: str
    """KIND NAMESPACE/NAME"""
    why: str
    pods: int


class Created(NamedTuple):
    """What an API server would do with a pod. Exactly one member is set."""

    stored: bytes = b""
    """The pod as it would be stored."""
    denied: str = ""
    """Why the API server would not store it."""
    unknown: str = ""
    """Why it is not known."""


class Creator(Protocol):
    """Asks an API server what it would do with pods."""

    def create_all(self, pods: Sequence[Json]) -> Sequence[Created]:
        """Return what becomes of each."""


class _Made(NamedTuple):
    """What the template of an owner makes. `uncertainty` has why it is not known, or not all of it."""

    again: Again
    uncertainty: str = ""


_Key: TypeAlias = tuple[str, str, str]
"""The namespace, and the kind and name of a controller."""


class ClusterFacts:
    """What simulations ask of a cluster beside its mirror. Stale after the next event."""

    def __init__(self, mirror: ClusterMirror, raw: RawObjects, creator: Creator | None = None) -> None:
        self._mirror = mirror
        self._raw = raw
        self._creator = creator
        self._templates: dict[_Key, _Made] = {}
        self._of_name: dict[str, _Made] = {}  # by uid, of pods that are not as the others of their owner
        self._uncertainties = Counter[tuple[str, str]]()  # -> pods
        self._going: Mapping[_Key, int] = {}  # Job -> its pods that leave together
        self._is_counted = bytearray()  # row of the mirror -> whether among them; a set would take 70 bytes a pod

    def of_pod(self, pod: Pod) -> PodFacts:
        """Return what the mirror does not know of a pod."""
        return self._raw.of_pod(pod)

    def of_budget(self, budget: PodDisruptionBudget) -> BudgetFacts:
        """Return what the mirror does not know of a budget."""
        return self._raw.of_budget(budget)

    def prepare(self, pods: Sequence[Pod]) -> None:
        """Hear of pods that leave together. A Job fails if it has fewer retries left. Raises as the creator does."""
        of_jobs = (pod for pod in pods if pod.controller is not None and pod.controller.kind == _JOB)
        self._going = Counter(_key(pod) for pod in of_jobs if not pod.terminating)
        self._ask(pods)

    def _ask(self, pods: Iterable[Pod]) -> None:
        """Ask the API server for what comes in the place of some pods, many at once. Raises as the creator does.

        Of owners whose pods come again alike, it is asked for one.
        """
        if self._creator is None:
            return
        left = [pod for pod in pods if not isinstance(copied(pod), str)]
        firsts = {_key(pod): pod for pod in reversed(left)}
        for wave in ([*firsts.values()], left):
            sent = [(pod, made) for pod in wave if self._known(pod) is None and (made := self._sent(pod)) is not None]
            found = self._creator.create_all([made for _, made in sent]) if sent else ()  # else it takes 0.07 ms
            for (pod, _), created in zip(sent, found, strict=True):
                self._take(pod, self._of_created(pod, created))

    def comes_again(self, pod: Pod) -> Again | str:
        """Return what comes in the place of a pod on a node, or why nothing comes elsewhere."""
        copy = copied(pod)
        if isinstance(copy, str) or pod.controller is None:
            return copy
        if pod.controller.kind == _JOB and (why := self._why_no_more(pod, pod.controller.name)):
            return why
        self._ask([pod])
        made = self._known(pod)
        if made is None:
            made = self._of_template(pod)
            if _suits_all(made.again):
                self._take(pod, made)
        uncertainty = "; ".join(filter(None, (made.uncertainty, OF_GROUP if pod.group is not None else "")))
        if uncertainty:
            self._add_uncertainty(pod, uncertainty)
        return made.again

    def _why_no_more(self, pod: Pod, job: str) -> str:
        found: Json | None = None
        with suppress(DecodeError):
            found = self._raw.named(_JOB, f"{pod.namespace}/{job}")
        going = max(1, self._going.get(_key(pod), 0))
        return "" if found is None else why_no_more(found, going, self._raw.of_pod(pod).index_failures)

    def spec_of_template(self, pod: Pod) -> Json | None:
        """Return the spec that the API server would store of what comes in the place of a pod, None if not known."""
        with suppress(DecodeError):
            owner, _ = self._template_owner(pod)
            if owner is not None:
                return member(read_json(self._manifest(pod, owner).json), "spec")
        return None

    def _manifest(self, pod: Pod, owner: Json) -> Manifest:
        at_hand = AtHand(self._mirror, self._objects_of(pod, owner))
        return decode_manifest(msgspec.json.encode(owner), at_hand, pod)

    def _known(self, pod: Pod) -> _Made | None:
        return self._of_name.get(pod.uid) or self._templates.get(_key(pod))

    def _take(self, pod: Pod, made: _Made) -> None:
        if _suits_all(made.again):
            self._templates[_key(pod)] = made
        else:
            self._of_name[pod.uid] = made

    def _sent(self, pod: Pod) -> Json | None:
        """Return the pod that its controller would send to the API server, None if that is not known."""
        with suppress(DecodeError):
            owner, _ = self._template_owner(pod)
            if owner is not None:
                at_hand = AtHand(self._mirror, self._objects_of(pod, owner))
                copied = read_json(msgspec.json.encode(owner))  # parts of it are in the pod, and are changed there
                return made_pod(copied, at_hand, Notes([], [], []), pod).pod
        return None

    @property
    def uncertainties(self) -> Sequence[Uncertainty]:
        """What is not known of the pods that came again so far, once for each owner, in order."""
        return [Uncertainty(owner, why, pods) for (owner, why), pods in sorted(self._uncertainties.items())]

    def _add_uncertainty(self, pod: Pod, why: str) -> None:
        row = self._mirror.pods.rows[pod.uid]
        self._is_counted.extend(bytes(max(row + 1 - len(self._is_counted), 0)))
        if not self._is_counted[row]:
            self._is_counted[row] = 1
            self._uncertainties[owner_text(pod) or pod.full_name, why] += 1

    def _of_template(self, pod: Pod) -> _Made:
        try:
            owner, why = self._template_owner(pod)
            if owner is None:
                return _Made(Again(), f"as the running pod, {why}")
            manifest = self._manifest(pod, owner)
        except DecodeError as error:
            return _Made(Again(), f"as the running pod, because of its template: {error}")
        uncertainty = f"not judged: {'; '.join(manifest.notes.unknown)}" if manifest.notes.unknown else ""
        if self._raw.has("PriorityClass") and not manifest.notes.of_priority:
            return _Made(Again(manifest.pod), uncertainty)
        made = replace(manifest.pod, priority=pod.priority, preemption_policy=pod.preemption_policy)
        return _Made(Again(made), uncertainty)

    def _of_created(self, pod: Pod, created: Created) -> _Made:
        """Return what comes, by what the API server says."""
        if created.stored:
            try:
                stored = read_json(created.stored)
                named = {**stored, "metadata": {**member(stored, "metadata"), "name": pod.name}}
                return _Made(Again(decode_pod(msgspec.json.encode(named))))
            except DecodeError as error:
                created = Created(unknown=str(error))
        here = self._of_template(pod)
        if created.denied:
            return here._replace(again=replace(here.again, denied=created.denied))
        why = f"as made here and not by the API server: {created.unknown}"
        return here._replace(uncertainty="; ".join(filter(None, (here.uncertainty, why))))

    def _objects_of(self, pod: Pod, owner: Json) -> Objects:
        name = f"{pod.namespace}/{member(owner, 'metadata').get('name')}"

        def objects(kind: str) -> Sequence[Json]:
            if kind in _REVISIONS:
                return self._raw.owned(kind, str(owner.get("kind")), name)
            return self._raw.in_namespace(kind, pod.namespace)

        return objects

    def _template_owner(self, pod: Pod) -> tuple[Json | None, str]:
        """Return the object with the template that counts, or None and why there is none."""
        controller, above = pod.controller, owner_of(pod)
        if controller is None or above is None:
            return None, "it has no controller"
        kind, name = controller.kind, f"{pod.namespace}/{controller.name}"
        found, made_of = self._raw.named(kind, name), None
        if kind == "ReplicaSet":
            references = elements(member(found, "metadata"), "ownerReferences")
            named = [f"{pod.namespace}/{each.get('name')}" for each in references if each.get("kind") == "Deployment"]
            if named or (found is None and above.kind == "Deployment"):
                made_of, kind, name = found, "Deployment", [*named, str(above.name)][0]
                found = self._raw.named(kind, name) or self._newest(name)
        if found is None:
            return None, f"there is no {kind} of its name" if self._raw.has(kind) else f"no {kind} is at hand"
        if kind == "Deployment" and stands_still(found):
            return made_of, "because the rollout of its Deployment stands still, and its ReplicaSet is not at hand"
        if kind == STATEFUL and (revision := current_revision(found, ordinal(pod), int(not pod.terminating))):
            of_revision = self._raw.of_name("ControllerRevision", revision, pod.namespace)
            why = f"because of the rollout of its StatefulSet: revision {revision} is not at hand"
            return (of_template(found, of_revision[0]), "") if of_revision else (None, why)
        return found, ""

    def _newest(self, deployment: str) -> Json | None:
        """Return the newest ReplicaSet of a Deployment, NAMESPACE/NAME."""
        return max(self._raw.owned("ReplicaSet", "Deployment", deployment), key=revision_of, default=None)


def _key(pod: Pod) -> _Key:
    controller = pod.controller
    return (pod.namespace, "", "") if controller is None else (pod.namespace, controller.kind, controller.name)


def _suits_all(again: Again) -> bool:
    """Return whether the owner's other pods come again alike, but for their names."""
    made = again.of_template
    if made is None:
        return True
    is_of_name = made.controller is None or made.controller.kind == STATEFUL or _INDEX in made.labels
    has_own = any(isinstance(each, PodClaim) and each.ephemeral for each in made.volumes)
    return not (is_of_name or has_own or made.resource_claims)

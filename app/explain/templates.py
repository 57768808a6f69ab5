"""The pod that a controller would make of a template, by kind.

Source: k8s.io/kubernetes pkg/controller/deployment/sync.go (getNewReplicaSet), daemon/util/daemonset_util.go,
statefulset/stateful_set_utils.go, job/indexed_job_utils.go, pkg/registry/batch/job/strategy.go (generateSelector);
sigs.k8s.io/jobset pkg/controllers/jobset_controller.go (labelAndAnnotateObject); sigs.k8s.io/lws
pkg/controllers/leaderworkerset_controller.go and pkg/webhooks/pod_webhook.go. None of these controllers copies a
name, a namespace or an owner out of a template (pkg/controller/controller_utils.go, GetPodFromTemplate).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

import msgspec

from app.explain.equal_templates import alike
from app.explain.stored_pod import Json, Notes, Objects, add_tolerations, elements, member, rendered
from app.objects.decode import DecodeError
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod

NEW_REVISION: Final = "new-revision"
"""The value of a label with the hash of a template that no pod has yet. Real hashes have no dash."""
_APPS: Final = ("apps", "extensions")
_KNOWN: Final[Mapping[str, tuple[Sequence[str], str]]] = {
    **dict.fromkeys(("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"), (_APPS, "spec.template")),
    "Job": (("batch",), "spec.template"),
    "CronJob": (("batch",), "spec.jobTemplate.spec.template"),
    "ReplicationController": (("",), "spec.template"),
    "PodTemplate": (("",), "template"),
    "JobSet": (("jobset.x-k8s.io",), ""),
    "LeaderWorkerSet": (("leaderworkerset.x-k8s.io",), ""),
}
"""Kinds whose controllers are known -> their API groups, as Volcano has a Job, too, and the path of a template."""
_DEEPEST: Final = 12  # levels in which a template is looked for
_DAEMON_TAINTS: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_EXCLUSIVE: Final = ("alpha.jobset.sigs.k8s.io/exclusive-topology", "leaderworkerset.sigs.k8s.io/exclusive-topology")
_MAX_LISTED: Final = 10  # templates that a note names
_REVISION: Final = "deployment.kubernetes.io/revision"
_DIGITS: Final = 20  # more than an int64 has
_ANY_PERCENT: Final = re.compile(r"[0-9]{1,9}%")


class Made(NamedTuple):
    """The pod of a manifest, the path of its template, the pods that it replaces, and the volumeClaimTemplates."""

    pod: Json
    path: str = ""
    replaced: Sequence[Pod] = ()
    claim_templates: Sequence[Json] = ()


class AtHand:
    """What controllers read of a cluster: the pods of the mirror, and `objects` of other kinds."""

    def __init__(self, mirror: ClusterMirror, objects: Objects) -> None:
        self.mirror: Final = mirror
        self.objects: Final = objects

    def with_objects(self, more: Sequence[Json]) -> "AtHand":
        """Return the same with the objects of a file."""

        def objects(kind: str) -> Sequence[Mapping[str, Any]]:
            return [*self.objects(kind), *(each for each in more if each.get("kind") == kind)]

        return AtHand(self.mirror, objects)


class _Owner(NamedTuple):
    kind: str
    name: str
    namespace: str
    uid: str
    manifest: Json
    notes: Notes
    at_hand: AtHand
    again: Pod | None = None
    """The pod in whose place the new one is made. None: the new one is one more."""

    def reference(self, kind: str = "", name: str = "", uid: str = "") -> list[Json]:
        """Return the owners of a pod: this object, or the one that it would make."""
        group = {"ReplicationController": "v1", "Job": "batch/v1"}.get(kind or self.kind, "apps/v1")
        version = self.manifest.get("apiVersion") if not kind else None
        named = {"kind": kind or self.kind, "name": name or self.name, "uid": uid or self.uid}
        return [{"apiVersion": version or group, **named, "controller": True}]

    @property
    def stored_pods(self) -> Sequence[Pod]:
        """The pods that a DaemonSet or Deployment has on nodes."""
        mirror = self.at_hand.mirror
        pods = mirror.pods.in_namespace(self.namespace)
        return [pod for pod in pods if pod.node_name in mirror.nodes.slots and self._has(pod)]

    def _has(self, pod: Pod) -> bool:
        controller = pod.controller
        if controller is None:
            return False
        if self.kind == "DaemonSet":
            return (controller.kind, controller.name) == ("DaemonSet", self.name)
        revision = pod.labels.get("pod-template-hash")
        return revision is not None and (controller.kind, controller.name) == ("ReplicaSet", f"{self.name}-{revision}")

    def made(self, kind: str, template: Json) -> Mapping[str, Any] | None:
        """Return the newest object that this one has made of an equal template, if it is at hand."""
        equal: list[Mapping[str, Any]] = []
        for each in self.at_hand.objects(kind):
            found = member(each, *(("data",) if kind == "ControllerRevision" else ()), "spec", "template")
            if namespace_of(each) == self.namespace and alike(template, found):
                owners = elements(member(each, "metadata"), "ownerReferences")
                if any((owner.get("kind"), owner.get("name")) == (self.kind, self.name) for owner in owners):
                    equal.append(each)
        return max(equal, key=revision_of, default=None)


def namespace_of(manifest: object) -> str:
    """Return the namespace of an object, which without one gets into the default one."""
    return str(member(manifest, "metadata").get("namespace") or "default")


def revision_of(made: Mapping[str, Any]) -> int:
    """Return the number of a ReplicaSet (pkg/controller/deployment/util, SetNewReplicaSetAnnotations) or revision."""
    number = str(made.get("revision") or member(made, "metadata", "annotations").get(_REVISION) or "")
    return int(number) if number.isdecimal() and len(number) < _DIGITS else 0


def made_pod(manifest: Json, at_hand: AtHand, notes: Notes, again: Pod | None = None) -> Made:
    """Return a Pod, or the first pod that a controller would make of its template. Raises DecodeError.

    With `again`, it is the one that the controller would make in the place of that pod.
    """
    if manifest.get("kind") is None and not manifest.keys() & {"metadata", "spec"}:
        found = rendered(", ".join(manifest) or "nothing")
        raise DecodeError("kind", f"expected Pod, or a kind with a pod template, found {found}")
    if manifest.get("kind") in (None, "Pod"):  # a kind may be anything, and a set needs a hash
        return Made(manifest)
    templates = pod_templates(manifest)
    kind, metadata = str(manifest["kind"]), member(manifest, "metadata")
    if not templates:
        raise DecodeError("kind", f"expected Pod, or a kind with a pod template; this {rendered(kind)} has none")
    path, template = templates[0]
    if len(templates) > 1:
        others = ", ".join(path for path, _ in templates[1:_MAX_LISTED])
        notes.done.append(f"the template {path}; this {rendered(kind)} has others, too: {others}")
    name = str(metadata.get("name") or metadata.get("generateName") or kind.lower())
    owner = _Owner(kind, name, namespace_of(manifest), str(metadata.get("uid") or ""), manifest, notes, at_hand, again)
    pod = _of_template(template, owner)
    if kind == "DaemonSet" and _is_known(manifest):
        return Made(pod, path, _of_daemon_set(pod, template, owner))
    if kind == "StatefulSet" and _is_known(manifest):
        return Made(pod, path, (), _of_stateful_set(pod, template, owner))
    _labelled(pod, template, path, owner)
    _note_webhooks(pod, owner)
    is_deployment = kind == "Deployment" and _is_known(manifest)
    return Made(pod, path, _replaced_by_deployment(pod, owner) if is_deployment else ())


def _of_template(template: Json, owner: _Owner) -> Json:
    given = member(template, "metadata")
    metadata = {name: given[name] for name in ("labels", "annotations") if given.get(name) is not None}
    # A pod without a uid, of a dump by hand, is known by its name.
    names = (f"{owner.name}-{number}" for number in count())
    mirror = owner.at_hand.mirror
    free = (
        each
        for each in names
        if (known := f"{owner.namespace}/{each}") not in mirror.pending and mirror.get_pod(known) is None
    )
    own = next(free) if owner.again is None else owner.again.name
    metadata |= {"name": own, "namespace": owner.namespace, "ownerReferences": owner.reference()}
    return {"kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def _add_labels(pod: Json, labels: Mapping[str, str]) -> None:
    present = pod["metadata"].get("labels") or {}
    if isinstance(present, dict):
        pod["metadata"]["labels"] = {**present, **labels}


def _labelled(pod: Json, template: Json, path: str, owner: _Owner) -> None:
    """Add the labels of the controllers that add nothing else."""
    kind = owner.kind if _is_known(owner.manifest) else ""
    if kind == "Deployment":
        _of_deployment(pod, template, owner)
    elif kind == "Job":
        _of_job(pod, member(owner.manifest, "spec"), owner.name, owner)
    elif kind == "CronJob":
        job = f"{owner.name}-0"
        pod["metadata"]["ownerReferences"] = owner.reference("Job", job)
        _of_job(pod, member(owner.manifest, "spec", "jobTemplate", "spec"), job, owner)
    elif kind == "JobSet":
        _of_job_set(pod, owner)
    elif kind == "LeaderWorkerSet":
        _of_leader_worker_set(pod, path, owner)
    elif not kind and (member(pod, "spec", "affinity") or elements(member(pod, "spec"), "topologySpreadConstraints")):
        owner.notes.unknown.append(f"kind {rendered(owner.kind)}: the labels that its controller adds are not known")


def _of_deployment(pod: Json, template: Json, owner: _Owner) -> None:
    found = owner.made("ReplicaSet", template)
    metadata = member(found, "metadata")
    known = member(metadata, "labels").get("pod-template-hash") or _present_revision(owner, "ReplicaSet")
    value = str(known or NEW_REVISION)
    name = str(metadata.get("name") or f"{owner.name}-{value}")
    pod["metadata"]["ownerReferences"] = owner.reference("ReplicaSet", name, str(metadata.get("uid") or ""))
    _add_labels(pod, {"pod-template-hash": value})
    if not _unknown_revision(owner):
        _note_revision(pod, "pod-template-hash", value, owner)


def _unknown_revision(owner: _Owner) -> bool:
    """Return whether the Deployment has pods, and no ReplicaSet says of which template."""
    return not owner.at_hand.objects("ReplicaSet") and bool(owner.stored_pods)


def _replaced_by_deployment(pod: Json, owner: _Owner) -> Sequence[Pod]:
    """Return the pods that go before the first one of a new template is made.

    Without maxSurge at least one goes (pkg/controller/deployment/util/deployment_util.go, ResolveFenceposts).
    """
    spec = member(owner.manifest, "spec")
    strategy = member(spec, "strategy")
    rolling = member(strategy, "rollingUpdate")
    is_recreated, is_without_surge = strategy.get("type") == "Recreate", rolling.get("maxSurge") in (0, "0%")
    if _unknown_revision(owner):
        named = b'"pod-template-hash"' in msgspec.json.encode(pod["spec"])
        if named or is_recreated or is_without_surge:
            why = "whether the template is new is not known, without its ReplicaSets (`kubectl get -o json rs`)"
            owner.notes.unknown.append(f"pod-template-hash: {why}")
        return ()
    if member(pod, "metadata", "labels").get("pod-template-hash") != NEW_REVISION:
        return ()
    if is_recreated:
        return _replaced(owner)
    if not is_without_surge:
        return ()
    replicas = spec.get("replicas", 1)
    unavailable = _scaled(rolling.get("maxUnavailable", "25%"), replicas if isinstance(replicas, int) else 1)
    return _replaced(owner, max(1, unavailable))


def _scaled(value: object, of: int) -> int:
    """Return a number, or a share rounded down."""
    if isinstance(value, str) and _ANY_PERCENT.fullmatch(value):
        return int(value[:-1]) * of // 100
    return value if isinstance(value, int) else 0


def _note_revision(pod: Json, label: str, value: str, owner: _Owner) -> None:
    """Note the label of the revision, if the pod names it in a term or a constraint."""
    if f'"{label}"'.encode() in msgspec.json.encode(pod["spec"]):
        of = f"={rendered(value)}" if value != NEW_REVISION else " of a new revision"
        owner.notes.done.append(f"label {label}{of}")


def _of_daemon_set(pod: Json, template: Json, owner: _Owner) -> Sequence[Pod]:
    """AddOrUpdateDaemonPodTolerations. The pin to one node is left out: the question is which nodes get a pod.

    Returns the pods that the DaemonSet has already: without maxSurge, each is deleted before its successor is made.
    """
    found = owner.made("ControllerRevision", template)
    spec = pod["spec"]
    network = (("network-unavailable", "NoSchedule"),) if member(spec).get("hostNetwork") is True else ()
    if isinstance(spec, dict):
        keys = [*_DAEMON_TAINTS, *network]
        tolerated = [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect} for key, effect in keys
        ]
        add_tolerations(spec, tolerated)
    revision = str(member(found, "metadata", "labels").get("controller-revision-hash") or NEW_REVISION)
    _add_labels(pod, {"controller-revision-hash": revision})
    _note_revision(pod, "controller-revision-hash", revision, owner)
    owner.notes.done.append(
        "tolerations of a DaemonSet, which makes a pod for each node whose labels and taints let it, room or not"
    )
    surge = member(owner.manifest, "spec", "updateStrategy", "rollingUpdate").get("maxSurge")
    return _replaced(owner) if surge in (None, 0, "0%") else ()


def _replaced(owner: _Owner, most: int | None = None) -> Sequence[Pod]:
    """Return the pods, all or some, that a controller deletes before it makes the next one."""
    stored = owner.stored_pods
    gone = stored if most is None else sorted(stored, key=lambda each: each.full_name)[:most]
    if len(gone) < len(stored):
        names = ", ".join(each.name for each in gone[:_MAX_LISTED])
        owner.notes.done.append(
            f"{len(gone)} of its {len(stored)} present pods are supposed gone, without maxSurge: {names}"
        )
    elif stored:
        owner.notes.done.append(f"its present pods are supposed gone: {len(stored)}")
    return gone


def _of_stateful_set(pod: Json, template: Json, owner: _Owner) -> Sequence[Json]:
    """newVersionedStatefulSetPod, for the first ordinal that no pod on a node has; with the volumes of updateStorage.

    The controller makes no other pod before one that waits has run (stateful_set_control.go, processReplica), so that
    one is made again. Returns the volumeClaimTemplates.
    """
    spec = member(owner.manifest, "spec")
    name = owner.again.name if owner.again is not None else _missing_replica(spec, owner)
    found = owner.made("ControllerRevision", template)
    revision = str(
        member(found, "metadata").get("name") or _present_revision(owner, "ControllerRevision") or NEW_REVISION
    )
    pod["metadata"]["name"] = name
    labels = {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": name.rpartition("-")[2]}
    _add_labels(pod, {**labels, "controller-revision-hash": revision})
    _note_revision(pod, "controller-revision-hash", revision, owner)
    templates = elements(spec, "volumeClaimTemplates")
    claims = [str(member(each, "metadata").get("name") or "") for each in templates]
    if claims and isinstance(pod["spec"], dict):
        own = [{"name": each, "persistentVolumeClaim": {"claimName": f"{each}-{name}"}} for each in claims]
        remaining = [each for each in elements(pod["spec"], "volumes") if each.get("name") not in claims]
        pod["spec"]["volumes"] = [*own, *remaining]
    return templates


def _missing_replica(spec: Json, owner: _Owner) -> str:
    start = member(spec, "ordinals").get("start")
    mirror = owner.at_hand.mirror
    taken = {pod.name for pod in mirror.pods.in_namespace(owner.namespace)}
    names = (f"{owner.name}-{ordinal}" for ordinal in count(start if isinstance(start, int) else 0))
    name = next(each for each in names if each not in taken)
    waits = any((pod.namespace, pod.name) == (owner.namespace, name) for pod in mirror.pending)
    which = "which waits for a node, made again" if waits else "the first that is missing"
    owner.notes.done.append(f"pod {rendered(name)}, {which}, with its labels")
    return name


def _present_revision(owner: _Owner, kind: str) -> str:
    """Return the revision of the pod in whose place the new one is made, if no object of a template is at hand."""
    if owner.again is None or owner.at_hand.objects(kind):
        return ""
    return owner.again.labels.get("pod-template-hash" if kind == "ReplicaSet" else "controller-revision-hash", "")


def _of_job(pod: Json, spec: Json, name: str, owner: _Owner) -> None:
    """generateSelector, and addCompletionIndexLabel. A stored Job has the labels of the former in its template."""
    labels: dict[str, str] = {}
    if spec.get("manualSelector") is not True:
        uid = (owner.uid if owner.kind == "Job" else "") or NEW_REVISION
        for key, value in (("job-name", name), ("controller-uid", uid)):
            labels |= {key: value, f"batch.kubernetes.io/{key}": value}
    if spec.get("completionMode") == "Indexed":
        index = "batch.kubernetes.io/job-completion-index"
        labels[index] = "0" if owner.again is None else owner.again.labels.get(index, "0")
    _add_labels(pod, {**labels, **member(pod, "metadata", "labels")})
    if labels:
        owner.notes.done.append(f"labels of Job {rendered(name)}")


def _of_job_set(pod: Json, owner: _Owner) -> None:
    jobs = elements(member(owner.manifest, "spec"), "replicatedJobs") or [{}]
    replicas = [each.get("replicas", 1) for each in jobs]
    of, job = str(jobs[0].get("name") or ""), f"{owner.name}-{jobs[0].get('name') or ''}-0"
    labels = {
        "jobset-name": owner.name,
        "replicatedjob-name": of,
        "restart-attempt": "0",
        "replicatedjob-replicas": str(replicas[0]),
        "global-replicas": str(sum(each for each in replicas if isinstance(each, int))),
        "job-index": "0",
        "job-key": NEW_REVISION,
        "job-global-index": "0",
    }
    _add_labels(pod, {f"jobset.sigs.k8s.io/{key}": value for key, value in labels.items()})
    pod["metadata"]["name"] = f"{job}-0"
    pod["metadata"]["ownerReferences"] = owner.reference("Job", job)
    spec = member(jobs[0], "template", "spec")
    _of_job(pod, {"completionMode": "Indexed", **spec}, job, owner)  # the default of a JobSet's webhook


def _of_leader_worker_set(pod: Json, path: str, owner: _Owner) -> None:
    """Add the labels of the leader of the first group: pod 0 of a StatefulSet with the name of the LeaderWorkerSet."""
    labels = {"name": owner.name, "group-index": "0", "worker-index": "0"}
    labels |= {"group-key": NEW_REVISION, "template-revision-hash": NEW_REVISION}
    _add_labels(pod, {f"leaderworkerset.sigs.k8s.io/{key}": value for key, value in labels.items()})
    index = {"statefulset.kubernetes.io/pod-name": f"{owner.name}-0", "apps.kubernetes.io/pod-index": "0"}
    _add_labels(pod, index)
    pod["metadata"]["ownerReferences"] = owner.reference("StatefulSet", owner.name)
    owner.notes.done.append(f"labels of the leader of group 0 ({path.rpartition('.')[2]})")


def _note_webhooks(pod: Json, owner: _Owner) -> None:
    """Note an annotation by which a webhook of a known kind would add affinity."""
    for annotations in (member(owner.manifest, "metadata", "annotations"), member(pod, "metadata", "annotations")):
        for key in annotations.keys() & {*_EXCLUSIVE}:
            owner.notes.unknown.append(f"annotation {key}: the affinity that its webhook adds is not judged")


# Templates in objects of any kind.


def _is_known(manifest: Json) -> bool:
    kind, version = str(manifest.get("kind")), manifest.get("apiVersion")
    return kind in _KNOWN and (not version or str(version).rpartition("/")[0] in _KNOWN[kind][0])


def pod_templates(manifest: Json) -> list[tuple[str, Json]]:
    """Return the pod templates of an object with their paths, in the order in which they are written."""
    path = _KNOWN[str(manifest["kind"])][1] if _is_known(manifest) else ""
    if path:
        template = member(manifest, *path.split("."))
        return [(path, template)] if template else []
    return sorted(
        _walk(manifest), key=lambda each: not each[0].endswith("leaderTemplate")
    )  # the first pod is the leader's


def _walk(manifest: Json) -> Iterator[tuple[str, Json]]:
    """Yield each object inside of another one that has containers in its `spec`."""
    waiting: list[tuple[str, Any, int]] = [("", manifest, 0)]
    while waiting:
        path, value, depth = waiting.pop()
        if isinstance(value, dict):
            if path and elements(member(value, "spec"), "containers"):
                yield path, value
                continue
            inner = [(f"{path}.{name}" if path else name, each) for name, each in value.items()]
        else:
            inner = [(f"{path}[{index}]", each) for index, each in enumerate(value)]
        if depth < _DEEPEST:
            waiting += [(name, each, depth + 1) for name, each in reversed(inner) if isinstance(each, dict | list)]

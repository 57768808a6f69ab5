"""What the object of an owner says about the pod that it makes next, beside the template.

Source: k8s.io/kubernetes v1.37 pkg/controller: deployment/deployment_controller.go (syncDeployment: one that is paused
only scales), deployment/rolling.go (reconcileOldReplicaSets: no old pod goes while the new ones are not available) and
progress.go, statefulset/stateful_set_utils.go (newVersionedStatefulSetPod), job/job_controller.go (syncJob:
exceedsBackoffLimit, manageJob: wantActive, isPodFailed), job/indexed_job_utils.go (isIndexFailed).
"""

from typing import Final

from app.explain.stored_pod import Json, elements, member

NO_RETRY: Final = "its Job fails: a pod that goes counts as failed, and spec.backoffLimit allows no more"
INDEX_FAILS: Final = "its index fails: a pod that goes counts as failed, and spec.backoffLimitPerIndex allows no more"
NO_MORE: Final = "its Job has no spec.completions and one success, and makes no more pods"
_BATCH: Final = "batch/"
_RETRIES: Final = 6
"""spec.backoffLimit, if neither it nor spec.backoffLimitPerIndex is set."""


def why_no_more(job: Json, going: int, index_failures: int) -> str:
    """Return why a Job makes no pod in the place of one that goes, of `going` together. Empty: it makes one.

    `index_failures` are those of the index of the pod. What a podFailurePolicy says is not known.
    """
    spec, status = member(job, "spec"), member(job, "status")
    if not str(job.get("apiVersion") or _BATCH).startswith(_BATCH):  # Volcano has Jobs, too
        return ""
    if spec.get("completions") is None and status.get("succeeded"):
        return NO_MORE
    per_index, failed, limit = spec.get("backoffLimitPerIndex"), status.get("failed") or 0, spec.get("backoffLimit")
    if spec.get("podFailurePolicy"):
        return ""
    if isinstance(per_index, int) and index_failures >= per_index:
        return INDEX_FAILS
    if limit is None and per_index is None:
        limit = _RETRIES
    if isinstance(limit, int) and isinstance(failed, int) and failed + going > limit:
        return NO_RETRY
    return ""


def stands_still(deployment: Json) -> bool:
    """Return whether a Deployment's ReplicaSets keep their pods, of the old template and of the new one."""
    conditions = elements(member(deployment, "status"), "conditions")
    is_stuck = any((each.get("type"), each.get("status")) == ("Progressing", "False") for each in conditions)
    return is_stuck or member(deployment, "spec").get("paused") is True


def current_revision(stateful_set: Json, ordinal: int, leaving: int) -> str:
    """Return the ControllerRevision that a replica is made of if it is below the partition, and not of the template.

    Without spec.updateStrategy.rollingUpdate, the replicas that are left of this revision stand for the partition.
    `leaving` of them are still in the status.
    """
    spec, status = member(stateful_set, "spec"), member(stateful_set, "status")
    start, strategy = member(spec, "ordinals").get("start"), member(spec, "updateStrategy")
    partition, current = member(strategy, "rollingUpdate").get("partition"), status.get("currentRevision")
    if strategy.get("type") == "RollingUpdate" and strategy.get("rollingUpdate") is None:  # else it has a default
        left = status.get("currentReplicas")
        partition = left - leaving if isinstance(left, int) else 0
    if not isinstance(partition, int) or ordinal >= partition + (start if isinstance(start, int) else 0):
        return ""
    return str(current) if current and current != status.get("updateRevision") else ""


def of_template(stateful_set: Json, revision: Json) -> Json:
    """Return a StatefulSet as it was at a ControllerRevision."""
    template = member(revision, "data", "spec", "template")
    return {**stateful_set, "spec": {**member(stateful_set, "spec"), "template": template}}

"""Values of single fields that `random_nodes`, `random_pods` and `random_volumes` leave out.

Among them are values that an API server refuses. What a plugin says of them is right all the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.parity.random_nodes import GPU, HOST, IMAGES, NAMESPACES, RACK, ZONE
from tests.parity.random_volumes import CSI, EBS, REGION

ABSENT: Final = "<absent>"
"""The field is removed."""
_NULL: Final = (None, ABSENT)
QUANTITIES: Final = (
    *("0", "1", "-1", "+1", "1.5", ".5", "5.", "0.0001", "1e3", "1E3", "1e-3", "2E", "1n", "1u", "999999999n", "0.1m"),
    *("1500m", "1k", "1M", "2G", "1T", "1P", "8Ei", "1Ki", "1.5Ki", "0.5Gi", "1Ti", "1Pi", "-500m", "-2Gi", "00010"),
    *("9223372036854775807", "9223372036854775808", "9223372036854775807m", "9e18", "9.3E", "1e30", "-9e9"),
    *("4611686018427387904", "1.0000000001", "3m", "2097152000m", "100000000000000000000n", " 1 ", "0Ki", "0m"),
    *(0, 1, 2.5, 1000000, -3),
)
"""None is below -9e9: upstream takes the low bits of a lower sum in nano units (scaledValue). The API refuses it."""
RESOURCES: Final = (
    *("cpu", "memory", "ephemeral-storage", "pods", "hugepages-2Mi", "hugepages-1Gi", GPU, "storage", "foo"),
    *("attachable-volumes-aws-ebs", "kubernetes.io/batch-cpu", "requests.example.com/gpu", "example.com/a/b", "a.b/"),
)
_SELECTORS: Final[Sequence[Any]] = (
    *_NULL,
    {},
    {"matchLabels": {}},
    {"matchLabels": {"app": ""}},
    {"matchLabels": {"app": "not valid"}},
    {"matchLabels": {"not valid": "x"}},
    {"matchLabels": {"": "x"}},
    {"matchLabels": {"app": "x", "tier": "1"}, "matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]},
    *(
        {"matchExpressions": [each]}
        for each in (
            {"key": "app", "operator": "In"},
            {"key": "app", "operator": "In", "values": []},
            {"key": "app", "operator": "NotIn", "values": []},
            {"key": "app", "operator": "In", "values": ["x", "x", ""]},
            {"key": "app", "operator": "In", "values": ["-x"]},
            {"key": "app", "operator": "Exists", "values": ["x"]},
            {"key": "app", "operator": "DoesNotExist", "values": ["x"]},
            {"key": "team", "operator": "In", "values": ["red", "blue"]},
            {"key": "team", "operator": "Exists"},
            {"key": "tier", "operator": "Gt", "values": ["0"]},
            {"key": "app", "operator": "in", "values": ["x"]},
            {"key": "app", "operator": "Equals", "values": ["x"]},
            {"key": "app"},
            {"operator": "Exists"},
            {"key": "none", "operator": "NotIn", "values": ["x"]},
        )
    ),
)
_REQUIREMENT: Final = {"key": "disk", "operator": "In", "values": ["ssd"]}
NUMBERS: Final = (
    *("x", "", "-1", "+4", "007", " 4", "4.0", "9223372036854775807", "9223372036854775808", "1_0", "0x10", "1e1"),
    *("4", "8", "-5"),
)
_NODE_TERMS: Final = (
    {},
    {"matchExpressions": []},
    {"matchExpressions": None, "matchFields": None},
    {"matchFields": []},
    {"matchExpressions": [_REQUIREMENT], "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
    *(
        {"matchFields": [each]}
        for each in (
            {"key": "metadata.name", "operator": "In", "values": []},
            {"key": "metadata.name", "operator": "In", "values": ["n0", "n1"]},
            {"key": "metadata.name", "operator": "NotIn", "values": ["n0", "n1"]},
            {"key": "metadata.name", "operator": "Exists"},
            {"key": "metadata.name", "operator": "Gt", "values": ["1"]},
            {"key": "metadata.namespace", "operator": "In", "values": ["n1"]},
            {"key": "metadata.namespace", "operator": "NotIn", "values": ["n1"]},
            {"key": "", "operator": "NotIn", "values": ["n1"]},
            {"key": "metadata.name", "operator": "In", "values": [""]},
        )
    ),
    *(
        {"matchExpressions": [each]}
        for each in (
            {"key": "disk", "operator": "In"},
            {"key": "disk", "operator": "NotIn", "values": []},
            {"key": "disk", "operator": "Exists", "values": ["x"]},
            {"key": "disk", "operator": "DoesNotExist", "values": ["x"]},
            {"key": "disk", "operator": "Is", "values": ["ssd"]},
            {"key": "disk"},
            {"key": "", "operator": "Exists"},
            {"key": "not valid", "operator": "Exists"},
            {"key": "disk", "operator": "In", "values": ["not valid"]},
            {"key": "none", "operator": "NotIn", "values": ["x"]},
            {"key": "none", "operator": "DoesNotExist"},
            {"key": "none", "operator": "Lt", "values": ["5"]},
            {"key": "cores", "operator": "Gt", "values": ["1", "2"]},
            {"key": "cores", "operator": "Lt"},
            *(
                {"key": "cores", "operator": operator, "values": [each]}
                for each in NUMBERS
                for operator in ("Gt", "Lt")
            ),
        )
    ),
)
_LABELS: Final = {ZONE: ("", "a", ABSENT), HOST: ("", "n0", "other"), RACK: ("",), "disk": ("",), "cores": NUMBERS}
_TERM: Final = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}

_CLAIM_ANNOTATIONS: Final = (
    *(*_NULL, {}),
    *(
        {key: value}
        for key, values in (
            ("pv.kubernetes.io/bind-completed", ("", "yes", "no")),
            ("volume.beta.kubernetes.io/storage-class", ("", "late", "static", "none")),
            ("volume.kubernetes.io/selected-node", ("", "n0", "none")),
            ("volume.kubernetes.io/storage-provisioner", (CSI,)),
            ("volume.beta.kubernetes.io/storage-provisioner", (EBS,)),
            ("pv.kubernetes.io/migrated-to", (EBS,)),
        )
        for value in values
    ),
    {"pv.kubernetes.io/bind-completed": "yes", "volume.kubernetes.io/selected-node": "n1"},
)

ODD: Final[Mapping[tuple[str, str], Sequence[Any]]] = {
    # nodes
    **{("nodes.metadata.labels", key): values for key, values in _LABELS.items()},
    ("nodes.metadata", "labels"): (*_NULL, {}),
    ("nodes", "status"): (*_NULL, {}),
    ("nodes", "spec"): (*_NULL,),
    ("nodes.status", "allocatable"): (*_NULL, {}),
    ("nodes.status", "capacity"): ({"cpu": "64", "memory": "64Gi", "pods": "200"},),
    ("nodes.status", "declaredFeatures"): (*_NULL, ["none"], ["RestartAllContainersOnContainerExits"] * 2),
    ("nodes.status", "images"): (*_NULL, [], [{}], [{"names": [IMAGES[0]] * 2}], [{"sizeBytes": 5}]),
    ("nodes.status", "conditions"): ([{"type": "Ready", "status": "False"}],),
    ("nodes.status.images", "names"): (*_NULL, [], [""], ["unknown:latest"] * 2),
    ("nodes.status.images", "sizeBytes"): (ABSENT, 0, -(2**40), 2**40, 2**62, 2**63 - 1),
    ("nodes.spec", "unschedulable"): (*_NULL, False, True),
    ("nodes.spec", "taints"): (*_NULL, [], [{"key": "gpu"}], [{}], [{"key": "gpu", "effect": "NoSchedule"}] * 2),
    ("nodes.spec.taints", "effect"): (ABSENT, "", "None", "noschedule"),
    ("nodes.spec.taints", "key"): ("", ABSENT, "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready"),
    ("nodes.spec.taints", "value"): ("", ABSENT, *NUMBERS, "5", "10"),
    ("nodes.spec.taints", "timeAdded"): ("2026-01-01T00:00:00Z",),
    # amounts
    **{
        (object_, name): QUANTITIES
        for object_ in ("allocatable", "requests", "limits", "overhead", "allocatedResources")
        for name in RESOURCES
    },
    # pods
    ("pod.metadata", "labels"): (*_NULL, {}, {"app": ""}, {"app": "not valid"}),
    ("pod.metadata", "namespace"): ("none",),
    ("pods.metadata", "labels"): (*_NULL, {}),
    ("pods.metadata", "namespace"): ("none",),
    ("namespaces.metadata", "labels"): (*_NULL, {}),
    ("pod.spec", "nodeName"): ("", None, "n1", "none"),
    ("spec", "priority"): (*_NULL, -(2**31), 2**31 - 1),
    ("spec", "hostNetwork"): (True, False, None),
    ("spec", "overhead"): (None, {}, {"cpu": "500m", GPU: "1"}),
    ("spec", "resources"): (
        *(None, {}, {"requests": {}}, {"limits": {"cpu": "1"}}, {"requests": {"hugepages-2Mi": "4Mi"}}),
        *({"requests": {"cpu": "1", GPU: "1"}}, {"requests": {"ephemeral-storage": "1Gi"}}, {"requests": {"cpu": "0"}}),
    ),
    ("spec", "containers"): (
        *_NULL,
        [],
        [{}],
        [{"name": "c0"}, {"name": "c0", "resources": {"requests": {"cpu": "1"}}}],
    ),
    ("spec", "initContainers"): (
        *(None, []),
        [
            {"name": "i0", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
            {"name": "i1", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}},
            {"name": "i2", "restartPolicy": "Always", "resources": {"requests": {"memory": "1Gi"}}},
            {"name": "i3", "resources": {"requests": {"cpu": "250m"}}},
        ],
        [
            {
                "name": "i0",
                "restartPolicy": "Never",
                "resources": {"requests": {"cpu": "2"}},
                "ports": [{"hostPort": 80}],
            }
        ],
        [{"name": "i0", "restartPolicy": "Always", "ports": [{"hostPort": 80, "containerPort": 80}]}],
    ),
    ("spec", "ephemeralContainers"): ([{"name": "e", "resources": {"requests": {"cpu": "2"}}, "image": IMAGES[3]}],),
    ("spec", "nodeSelector"): (
        None,
        {},
        {"disk": ""},
        {"none": ""},
        {"not valid": "x"},
        {"disk": "not valid"},
        {"": ""},
    ),
    ("spec", "affinity"): (None, {}, {"podAffinity": {}, "podAntiAffinity": {}, "nodeAffinity": {}}),
    ("spec", "topologySpreadConstraints"): (None, []),
    ("spec", "tolerations"): (None, [], [{}], [{"operator": "Exists", "effect": "NoSchedule"}]),
    ("spec", "schedulingGates"): ([{"name": "x"}],),
    ("spec", "unknown"): ({"a": 1},),
    ("containers", "resources"): (*_NULL, {}, {"requests": None}, {"limits": {"cpu": "2", "memory": "1Gi"}}),
    ("containers", "volumeMounts"): ([], [{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}]),
    ("initContainers", "volumeMounts"): ([{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}],),
    ("initContainers", "restartPolicyRules"): ([{"action": "RestartAllContainers"}], [{"action": "Restart"}]),
    ("containers", "restartPolicy"): ("Always", "Never", "", "x"),
    ("initContainers", "restartPolicy"): ("Always", "Never", "", ABSENT, "OnFailure"),
    ("containers", "name"): ("c0", "", ABSENT),
    ("containers", "image"): (
        "",
        ABSENT,
        "a",
        "registry.example:5000/b",
        f"registry.example/d:1@sha256:{'ab' * 32}",
        "Not Valid:",
    ),
    ("containers", "ports"): (
        *_NULL,
        [],
        [{}],
        [{"hostPort": 80}, {"hostPort": 80}],
        [{"containerPort": 443, "hostPort": 443}],
    ),
    ("initContainers", "ports"): ([{"hostPort": 80}], [{"hostPort": 443, "protocol": "UDP"}]),
    ("ports", "hostPort"): (0, -1, 99999, 80, None),
    ("ports", "protocol"): ("", "SCTP", "tcp", None),
    ("ports", "hostIP"): ("", "::", "127.0.0.1", "0.0.0.0", "10.0.0.1", "::1"),  # noqa: S104  # of a made-up pod
    ("tolerations", "operator"): ("", ABSENT, "Exists", "Equal", "Gt", "Lt", "In"),
    ("tolerations", "key"): ("", ABSENT),
    ("tolerations", "value"): ("", ABSENT, *NUMBERS, "7"),
    ("tolerations", "effect"): ("", None, "None", "noschedule"),
    ("tolerations", "tolerationSeconds"): (0, -1, 300),
    # in-place resize
    ("pods.status", "resize"): ("Infeasible", "Deferred", "InProgress", ""),
    ("pods.status", "conditions"): (
        *(None, [], [{"type": "PodResizePending", "status": "True"}]),
        [{"type": "PodResizeInProgress", "status": "True", "reason": "Infeasible"}],
        [{"type": "PodResizePending", "reason": "Infeasible"}],
        [{"type": "Ready", "status": "False"}, {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
    ),
    ("containerStatuses", "name"): ("c0", "i0", "", "none"),
    ("containerStatuses", "resources"): (*_NULL, {}, {"requests": {}}, {"requests": None}),
    ("containerStatuses", "allocatedResources"): (*_NULL, {}),
    ("pods.status", "initContainerStatuses"): ([{"name": "c0", "allocatedResources": {"cpu": "2"}}],),
    ("pods.status", "allocatedResources"): (*_NULL, {}, {"cpu": "1", GPU: "1"}),
    ("pods.status", "resources"): (*_NULL, {}, {"requests": {}}, {"requests": {GPU: "1", "cpu": "1"}}),
    # devices
    ("deviceclasses", "spec"): (*_NULL, {}),
    ("deviceclasses.spec", "extendedResourceName"): (None, "", GPU, "cpu", "not valid", "hugepages-2Mi"),
    # affinity
    ("podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"): (None, [], [{}], [_TERM, _TERM]),
    ("podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"): (None, [], [{}], [_TERM, _TERM]),
    ("preferredDuringSchedulingIgnoredDuringExecution", "weight"): (0, -1, -100, 101, 2**31 - 1, ABSENT),
    ("preferredDuringSchedulingIgnoredDuringExecution", "podAffinityTerm"): (*_NULL, {}),
    ("preferredDuringSchedulingIgnoredDuringExecution", "preference"): (*_NULL, *_NODE_TERMS),
    ("TERM", "labelSelector"): _SELECTORS,
    ("TERM", "namespaceSelector"): _SELECTORS,
    ("TERM", "namespaces"): (None, [], [""], ["none"], [*NAMESPACES, "a"]),
    ("TERM", "topologyKey"): ("", ABSENT, "none", "not valid", "disk"),
    ("TERM", "matchLabelKeys"): (["app"], ["tier"], ["none"], []),
    ("TERM", "mismatchLabelKeys"): (["app"], ["tier"]),
    ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"): (
        *(None, {}, {"nodeSelectorTerms": []}, {"nodeSelectorTerms": None}),
        *({"nodeSelectorTerms": [each]} for each in _NODE_TERMS),
        *({"nodeSelectorTerms": [each, {"matchExpressions": [_REQUIREMENT]}]} for each in _NODE_TERMS),
    ),
    # topology spread
    ("topologySpreadConstraints", "labelSelector"): _SELECTORS,
    ("topologySpreadConstraints", "maxSkew"): (0, -1, 5, 2**31 - 1, ABSENT),
    ("topologySpreadConstraints", "topologyKey"): ("", ABSENT, "none", "disk", "not valid"),
    ("topologySpreadConstraints", "whenUnsatisfiable"): ("", ABSENT, "Whatever"),
    ("topologySpreadConstraints", "minDomains"): (None, 0, -1, 1, 3, 2**31 - 1),
    ("topologySpreadConstraints", "nodeAffinityPolicy"): (None, "", "Whatever"),
    ("topologySpreadConstraints", "nodeTaintsPolicy"): (None, "", "Whatever"),
    ("topologySpreadConstraints", "matchLabelKeys"): ([], ["none"], ["app"], ["app", "tier"], ["tier", "tier"], [""]),
    # preemption
    ("spec", "preemptionPolicy"): ("Never", "PreemptLowerPriority", "", "x"),
    ("pod.status", "nominatedNodeName"): ("n0", "none", ""),
    ("pdbs.spec", "selector"): _SELECTORS,
    ("pdbs.status", "disruptionsAllowed"): (-1, 0, 3, ABSENT, 2**31 - 1),
    ("pdbs.status", "disruptedPods"): (None, {}, {"p0": "2026-01-01T00:00:00Z", "p1": None}),
    ("pdbs", "status"): (*_NULL, {}),
    ("pdbs", "spec"): (*_NULL, {}, {"minAvailable": 1, "selector": {}}),
    # volumes
    ("spec.volumes", "persistentVolumeClaim"): (None, {}, {"claimName": ""}, {"claimName": "none"}),
    ("spec.volumes", "ephemeral"): (None, {}),
    ("spec.volumes", "csi"): (None, {}, {"driver": CSI}),
    ("persistentVolumeClaim", "readOnly"): (True,),
    ("awsElasticBlockStore", "volumeID"): (
        "",
        "aws://us-a/vol-1",
        "aws:///vol-1",
        "aws://",
        "vol-",
        "/",
        "aws://a/b/c",
    ),
    ("awsElasticBlockStore", "partition"): (1, -1),
    ("gcePersistentDisk", "pdName"): ("", "a/b"),
    ("gcePersistentDisk", "partition"): (1,),
    ("iscsi", "iqn"): ("", ABSENT),
    ("iscsi", "lun"): (1,),
    ("rbd", "monitors"): (*_NULL, []),
    ("rbd", "pool"): ("", ABSENT, "q"),
    ("pvcs.metadata", "annotations"): _CLAIM_ANNOTATIONS,
    ("pvcs.metadata", "deletionTimestamp"): ("2026-01-01T00:00:00Z",),
    ("pvcs.metadata", "labels"): (*_NULL, {}),
    ("pvcs.metadata", "ownerReferences"): (*_NULL, []),
    ("pvcs.metadata.ownerReferences", "controller"): (ABSENT, False),
    ("pvcs.metadata.ownerReferences", "kind"): ("ReplicaSet", ""),
    ("pvcs.metadata.ownerReferences", "name"): ("other",),
    ("pvcs", "spec"): (*_NULL,),
    ("pvcs", "status"): (*_NULL, {"phase": "Lost"}, {"phase": "Pending"}, {"phase": "x"}),
    ("pvcs.spec", "accessModes"): (
        *_NULL,
        [],
        ["ReadWriteOnce", "ReadWriteOncePod"],
        ["ReadOnlyMany"],
        ["x"],
        ["ReadWriteOncePod"],
    ),
    ("pvcs.spec", "resources"): (*_NULL, {}, {"requests": {}}),
    ("pvcs.spec.resources.requests", "storage"): QUANTITIES,
    ("pvcs.spec", "storageClassName"): ("", ABSENT, None, "none", "static", "late"),
    ("pvcs.spec", "volumeName"): ("", "pv0", "pv1", "none", ABSENT),
    ("pvcs.spec", "volumeMode"): ("Block", "Filesystem", "", "x"),
    ("pvcs.spec", "selector"): _SELECTORS,
    ("pvcs.spec", "dataSource"): ({"kind": "VolumeSnapshot", "name": "x", "apiGroup": "snapshot.storage.k8s.io"},),
    ("pvcs.spec", "volumeAttributesClassName"): ("gold", ""),
    ("pvs.metadata", "labels"): (
        *(
            *_NULL,
            {},
            {ZONE: "us-a", REGION: "us"},
            {ZONE: "__"},
            {ZONE: "us-a__"},
            {ZONE: "us-a__us-b__us-a"},
            {REGION: ""},
        ),
        *({"failure-domain.beta.kubernetes.io/region": "us"}, {REGION: "eu"}),
    ),
    ("pvs.metadata", "annotations"): (
        *({"volume.beta.kubernetes.io/storage-class": "late"}, {"pv.kubernetes.io/provisioned-by": CSI}),
        *({"pv.kubernetes.io/migrated-to": EBS}, {"volume.alpha.kubernetes.io/node-affinity": "x"}),
    ),
    ("pvs.metadata", "deletionTimestamp"): ("2026-01-01T00:00:00Z",),
    ("pvs", "status"): (*_NULL, {"phase": "Failed"}, {"phase": "Bound"}, {"phase": "Available"}),
    ("pvs.spec", "capacity"): (*_NULL, {}, {"storage": "0"}),
    ("pvs.spec.capacity", "storage"): QUANTITIES,
    ("pvs.spec", "accessModes"): (*_NULL, [], ["ReadWriteOncePod"], ["ReadOnlyMany", "ReadWriteMany"]),
    ("pvs.spec", "storageClassName"): ("", ABSENT, "static", "late"),
    ("pvs.spec", "volumeMode"): ("Block", "Filesystem", "", None),
    ("pvs.spec", "claimRef"): (
        *(None, {}, {"namespace": "a", "name": "claim0", "uid": "other"}, {"namespace": "b", "name": "claim0"}),
        *({"namespace": "a", "name": "claim1", "uid": "uid-claim1"}, {"namespace": "a", "name": "claim2"}),
    ),
    ("pvs.spec", "volumeAttributesClassName"): ("gold", ""),
    ("pvs.spec", "nodeAffinity"): (
        *(None, {}, {"required": None}, {"required": {}}, {"required": {"nodeSelectorTerms": []}}),
        *({"required": {"nodeSelectorTerms": [each]}} for each in _NODE_TERMS),
    ),
    ("pvs.spec", "local"): ({"path": "/x"},),
    ("pvs.spec", "hostPath"): ({"path": "/x"},),
    ("csi", "driver"): ("", "none", EBS),
    ("csi", "volumeHandle"): ("", "h-shared", "aws://us-a/vol-1"),
    ("storageclasses", "provisioner"): ("", ABSENT, "kubernetes.io/no-provisioner", "kubernetes.io/aws-ebs", "none"),
    ("storageclasses", "volumeBindingMode"): (*_NULL, "", "x", "Immediate", "WaitForFirstConsumer"),
    ("storageclasses", "allowedTopologies"): (
        *(None, [], [{}], [{"matchLabelExpressions": []}]),
        *([{"matchLabelExpressions": [{"key": ZONE, "values": each}]}] for each in ([], [""], ["us-a", "us-a"])),
        [{"matchLabelExpressions": [{"key": ZONE, "values": ["us-a"]}, {"key": "disk", "values": ["ssd"]}]}],
        [
            {"matchLabelExpressions": [{"key": ZONE, "values": ["us-a"]}]},
            {"matchLabelExpressions": [{"key": "disk", "values": ["ssd"]}]},
        ],
        [{"matchLabelExpressions": [{"key": "", "values": ["us-a"]}]}],
    ),
    ("storageclasses.metadata", "annotations"): ({"storageclass.kubernetes.io/is-default-class": "true"},),
    ("csinodes", "spec"): (*_NULL, {}),
    ("csinodes.spec", "drivers"): (*_NULL, []),
    ("csinodes.spec.drivers", "allocatable"): (
        *_NULL,
        {},
        {"count": 0},
        {"count": -1},
        {"count": 2**31 - 1},
        {"count": None},
    ),
    ("csinodes.spec.drivers", "topologyKeys"): (*_NULL, []),
    ("csinodes.spec.drivers", "name"): ("none", ""),
    ("csinodes.metadata", "annotations"): (
        *(*_NULL, {"storage.alpha.kubernetes.io/migrated-plugins": ""}),
        *(
            {"storage.alpha.kubernetes.io/migrated-plugins": each}
            for each in (
                "kubernetes.io/aws-ebs, kubernetes.io/gce-pd",
                ",kubernetes.io/aws-ebs,",
                "kubernetes.io/cinder",
            )
        ),
    ),
    ("csidrivers", "spec"): (*_NULL, {}),
    ("csidrivers.spec", "storageCapacity"): (*_NULL, True, False),
    ("csidrivers.spec", "attachRequired"): (False,),
    ("csidrivers.spec", "preventPodSchedulingIfMissing"): (None, True, False),
    ("csistoragecapacities", "capacity"): (*_NULL, *QUANTITIES),
    ("csistoragecapacities", "maximumVolumeSize"): (*_NULL, *QUANTITIES),
    ("csistoragecapacities", "nodeTopology"): _SELECTORS,
    ("csistoragecapacities", "storageClassName"): ("", ABSENT, "none"),
    ("volumeattachments", "spec"): (*_NULL, {}),
    ("volumeattachments.spec", "attacher"): ("", "none"),
    ("volumeattachments.spec", "nodeName"): ("", "none"),
    ("volumeattachments.spec", "source"): (
        *(*_NULL, {}, {"persistentVolumeName": "none"}, {"persistentVolumeName": "pv0"}),
        {"inlineVolumeSpec": {"capacity": {"storage": "1Gi"}, "csi": {"driver": CSI, "volumeHandle": "h"}}},
    ),
    ("volumeattachments", "status"): (*_NULL, {"attached": False}),
}
"""The end of an object's path, and its member -> values."""

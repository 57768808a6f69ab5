"""Manifests of public threads: with the rest of their cluster, the nodes a and b, and what is right of them."""

from collections.abc import Sequence
from typing import Final, NamedTuple


class Published(NamedTuple):
    """A manifest, further objects of its cluster, the nodes that fit, and a text of the explanation."""

    source: str
    manifest: str
    objects: str
    nodes: Sequence[str]
    text: str


_PORT_80: Final = """
- kind: Pod
  metadata: {name: old, namespace: default, uid: u1, ownerReferences: [{kind: %s, name: %s, uid: o1, controller: true}]}
  spec: {nodeName: a, containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]}
"""
_LIMITED: Final = """
- kind: LimitRange
  metadata: {name: mem-limit-range, namespace: default}
  spec: {limits: [{type: Container, default: {memory: 512Mi}, defaultRequest: {memory: 256Mi}}]}
- kind: Pod
  metadata: {name: full, namespace: default, uid: u1}
  spec: {nodeName: a, containers: [{name: c, resources: {requests: {memory: 7400Mi}}}]}
"""
KATA: Final = """
- kind: RuntimeClass
  metadata: {name: runsc}
  handler: runsc
  overhead: {podFixed: {cpu: 500m}}
  scheduling: {nodeSelector: {zone: b}, tolerations: [{key: storage, value: slow, effect: NoSchedule}]}
"""
_LOCAL: Final = """
- kind: StorageClass
  metadata: {name: local-disk}
  provisioner: p
  volumeBindingMode: WaitForFirstConsumer
  allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [b]}]}]
- {kind: PersistentVolumeClaim, metadata: {name: other, namespace: default}, spec: {accessModes: [ReadWriteOnce]}}
"""
PUBLISHED: Final = (
    Published(
        "kubernetes/website#7734: a limit without a request beats the default request of a LimitRange",
        "{kind: Pod, metadata: {name: demo}, spec: {containers: [{name: c, resources: {limits: {memory: 1Gi}}}]}}",
        _LIMITED,
        ["b"],
        "requests memory=1Gi from limits",
    ),
    Published(
        "kubernetes/kubernetes#14817: the requests of a container that names none",
        "{kind: Pod, metadata: {name: demo}, spec: {containers: [{name: c, image: x}, {name: d, image: x}]}}"
        "\n---\n{kind: Service, metadata: {name: demo}}",
        _LIMITED.replace("256Mi", "512Mi"),
        ["b"],
        "requests memory=512Mi of LimitRange mem-limit-range",
    ),
    Published(
        "ministryofjustice/cloud-platform#4490: a LimitRange that has only a maximum",
        "{kind: Pod, metadata: {name: demo}, spec: {initContainers: [{name: i, image: x}], containers: [{name: c}]}}",
        _LIMITED.replace("default: {memory: 512Mi}, defaultRequest: {memory: 256Mi}", "max: {memory: 2Gi}"),
        ["b"],
        "requests memory=2Gi of LimitRange",
    ),
    Published(
        "kubernetes/kubernetes#90669: hostNetwork makes host ports of the ports of a Deployment",
        """
kind: Deployment
apiVersion: apps/v1
metadata: {name: nginx-deployment}
spec:
  template:
    metadata: {labels: {app: nginx}}
    spec: {hostNetwork: true, containers: [{name: nginx, image: nginx, ports: [{containerPort: 80}]}]}
""",
        _PORT_80 % ("ReplicaSet", "nginx-deployment-old"),
        ["b"],
        "host ports 80 of hostNetwork",
    ),
    Published(
        "newrelic/nri-kubernetes#356: a DaemonSet with host ports replaces its own pods",
        """
kind: DaemonSet
apiVersion: apps/v1
metadata: {name: nrk8s, namespace: default}
spec:
  template:
    metadata: {labels: {app: nrk8s}}
    spec: {hostNetwork: true, containers: [{name: c, image: x, ports: [{containerPort: 80}]}]}
""",
        _PORT_80 % ("DaemonSet", "nrk8s"),
        ["a", "b"],
        "its present pods are supposed gone: 1",
    ),
    Published(
        "kubernetes/kubernetes#67845: a cordoned node gets the pod of a DaemonSet",
        "{kind: DaemonSet, metadata: {name: pause}, spec: {template: {spec: {containers: [{name: c}]}}}}",
        """
- kind: Node
  metadata: {name: kube-node-2}
  spec: {unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}
  status: {allocatable: {cpu: "1", memory: 1Gi, pods: "110"}}
""",
        ["a", "b", "kube-node-2"],
        "tolerations of a DaemonSet",
    ),
    Published(
        "vmware/nsx-container-plugin-operator#77: a network is no need of a DaemonSet with the network of the host",
        "{kind: DaemonSet, spec: {template: {spec: {hostNetwork: true, containers: [{name: c}]}}}}",
        """
- kind: Node
  metadata: {name: new}
  spec: {taints: [{key: node.kubernetes.io/network-unavailable, effect: NoSchedule}]}
  status: {allocatable: {cpu: "1", memory: 1Gi, pods: "110"}}
""",
        ["a", "b", "new"],
        "one pod for each node that fits",
    ),
    Published(
        "kubernetes/kubernetes#116891: anti-affinity of the present revision alone",
        """
kind: Deployment
apiVersion: apps/v1
metadata: {name: nginx-deployment, namespace: default}
spec:
  template:
    metadata: {labels: {app: nginx}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - labelSelector: {matchLabels: {app: nginx}}
            topologyKey: kubernetes.io/hostname
            matchLabelKeys: [pod-template-hash]
      containers: [{name: nginx, image: "nginx:1.8.1"}]
""",
        """
- kind: Pod
  metadata: {name: old, namespace: default, uid: u1, labels: {app: nginx, pod-template-hash: 6d4b}}
  spec: {nodeName: a, containers: [{name: nginx}]}
""",
        ["a", "b"],
        "pod-template-hash = new-revision in selectors of affinity terms",
    ),
    Published(
        "kubernetes/kubernetes#116891, scaled: the ReplicaSet of this template is there already",
        """
kind: Deployment
apiVersion: apps/v1
metadata: {name: web, namespace: default}
spec:
  template:
    metadata: {labels: {app: nginx}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {labelSelector: {matchLabels: {app: nginx}}, topologyKey: zone, matchLabelKeys: [pod-template-hash]}
      containers: [{name: nginx, image: "nginx:1.7.9", resources: {limits: {cpu: 0.5}}, ports: [{containerPort: 80}]}]
""",
        """
- kind: ReplicaSet
  apiVersion: apps/v1
  metadata: {name: web-6d4b, namespace: default, uid: r1, labels: {pod-template-hash: 6d4b}, ownerReferences: [
    {kind: Deployment, name: web, uid: d1, controller: true}]}
  spec:
    template:
      metadata: {creationTimestamp: null, labels: {app: nginx, pod-template-hash: 6d4b}}
      spec:
        affinity:
          podAntiAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
            - {labelSelector: {matchLabels: {app: nginx}}, topologyKey: zone, matchLabelKeys: [pod-template-hash]}
        containers:
        - name: nginx
          image: nginx:1.7.9
          imagePullPolicy: IfNotPresent
          ports: [{containerPort: 80, protocol: TCP}]
          resources: {limits: {cpu: 500m}}
          terminationMessagePath: /dev/termination-log
          terminationMessagePolicy: File
        dnsPolicy: ClusterFirst
        restartPolicy: Always
        schedulerName: default-scheduler
        securityContext: {}
        terminationGracePeriodSeconds: 30
- kind: Pod
  metadata: {name: old, namespace: default, uid: u1, labels: {app: nginx, pod-template-hash: 6d4b}}
  spec: {nodeName: a, containers: [{name: nginx}]}
""",
        ["b"],
        "label pod-template-hash=6d4b; requests cpu=0.5 from limits",
    ),
    Published(
        "kubernetes/kubernetes#127371: the tolerations of a RuntimeClass",
        "{kind: Pod, metadata: {name: busybox}, spec: {runtimeClassName: runsc, containers: [{name: c}]}}",
        KATA
        + """
- kind: Node
  metadata: {name: slow, labels: {zone: b}}
  spec: {taints: [{key: storage, value: slow, effect: NoSchedule}]}
  status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
""",
        ["b", "slow"],
        "node selector zone=b of RuntimeClass runsc",
    ),
    Published(
        "kai-scheduler/KAI-Scheduler#373: the overhead of a RuntimeClass",
        "{kind: Job, metadata: {name: j}, spec: {template: {spec: {runtimeClassName: runsc, containers: [{name: c, "
        "resources: {requests: {cpu: 3600m}}}]}}}}",
        KATA,
        [],
        "overhead cpu=500m of RuntimeClass runsc",
    ),
    Published(
        "kubernetes/website#43157: a RuntimeClass that the dump lacks",
        "{kind: Pod, metadata: {name: p}, spec: {runtimeClassName: kata-fc, containers: [{name: c}]}}",
        "",
        ["a", "b"],
        "runtimeClassName kata-fc: no RuntimeClass is at hand (`kubectl get -o json runtimeclasses` prints them), so",
    ),
    Published(
        "hashicorp/terraform-provider-kubernetes#2627: the claim of a StatefulSet waits for its pod",
        """
kind: StatefulSet
apiVersion: apps/v1
metadata: {name: app, namespace: default}
spec:
  template: {spec: {containers: [{name: c, image: x}]}}
  volumeClaimTemplates:
  - metadata: {name: local-disk-pvc}
    spec: {accessModes: [ReadWriteOnce], storageClassName: local-disk, resources: {requests: {storage: 10Gi}}}
""",
        _LOCAL,
        ["b"],
        "claim local-disk-pvc-app-0 of class local-disk",
    ),
    Published(
        "kubernetes/kubernetes#89910: the second pod of a StatefulSet is missing",
        """
kind: StatefulSet
apiVersion: apps/v1
metadata: {name: nginx-deployment, namespace: default}
spec:
  ordinals: {start: 1}
  template: {spec: {containers: [{name: c, image: x}]}}
  volumeClaimTemplates: [{metadata: {name: nginx-logs}, spec: {storageClassName: local-disk}}]
""",
        _LOCAL
        + """
- kind: Pod
  metadata: {name: nginx-deployment-1, namespace: default, uid: u1}
  spec: {nodeName: a, containers: [{name: c}]}
""",
        ["b"],
        "pod nginx-deployment-2, the first that is missing",
    ),
    Published(
        "camunda/camunda-platform-helm#6522: a generic ephemeral volume, of the default class",
        """
kind: Pod
metadata: {name: identity}
spec:
  containers: [{name: c, image: x}]
  volumes: [{name: tmp, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce]}}}}]
""",
        _LOCAL.replace(
            "{name: local-disk}", '{name: d, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}'
        ),
        ["b"],
        "claim identity-tmp of class d",
    ),
    Published(
        "kubernetes/website docs/tasks/configure-persistent-volume-storage: the claim beside its pod, in one file",
        """
{kind: StorageClass, apiVersion: storage.k8s.io/v1, metadata: {name: manual}, provisioner: kubernetes.io/no-provisioner,
  volumeBindingMode: WaitForFirstConsumer}
---
kind: PersistentVolume
metadata: {name: task-pv-volume}
spec:
  storageClassName: manual
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [b]}]}]}}
status: {phase: Available}
---
kind: PersistentVolumeClaim
metadata: {name: task-pv-claim}
spec: {storageClassName: manual, accessModes: [ReadWriteOnce], resources: {requests: {storage: 3Gi}}}
---
kind: Pod
metadata: {name: task-pv-pod}
spec:
  volumes: [{name: task-pv-storage, persistentVolumeClaim: {claimName: task-pv-claim}}]
  containers: [{name: task-pv-container, image: nginx}]
""",
        _LOCAL + "- {kind: PersistentVolume, metadata: {name: other}}\n",
        ["b"],
        "claim task-pv-claim of class manual",
    ),
    Published(
        "kubernetes/kubernetes#79247: a RuntimeClass beside its pod, in one file",
        "{kind: RuntimeClass, metadata: {name: r}, scheduling: {nodeSelector: {zone: a}}}\n---\n"
        "{kind: Pod, metadata: {name: p}, spec: {runtimeClassName: r, containers: [{name: c}]}}",
        "",
        ["a"],
        "node selector zone=a of RuntimeClass r",
    ),
    Published(
        "apache/yunikorn-release#125: a Deployment with host ports that is recreated",
        """
kind: Deployment
apiVersion: apps/v1
metadata: {name: yunikorn, namespace: default}
spec:
  strategy: {type: Recreate}
  template: {spec: {hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80}]}]}}
""",
        (_PORT_80 % ("ReplicaSet", "yunikorn-7f")).replace("uid: u1,", "uid: u1, labels: {pod-template-hash: 7f},")
        + "- {kind: ReplicaSet, metadata: {name: yunikorn-7f, namespace: default}, spec: {template: {spec: {}}}}\n",
        ["a", "b"],
        "its present pods are supposed gone: 1",
    ),
    Published(
        "ray-project/kuberay#2519: the head of a RayCluster, and its workers",
        """
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: raycluster-complete}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: ray-head, resources: {limits: {cpu: 14, memory: 54G}}}]}}}
  workerGroupSpecs:
  - {groupName: small, template: {spec: {containers: [{name: ray-worker, image: x}]}}}
""",
        "",
        [],
        "the template spec.headGroupSpec.template; this RayCluster has others, too: spec.workerGroupSpecs[0].template",
    ),
    Published(
        "kubernetes-sigs/lws#391: the leader of a LeaderWorkerSet",
        """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: sglang}
spec:
  leaderWorkerTemplate:
    workerTemplate: {spec: {containers: [{name: worker, resources: {limits: {nvidia.com/gpu: "8"}}}]}}
    leaderTemplate: {spec: {nodeSelector: {zone: a}, containers: [{name: sglang-head, image: x}]}}
""",
        "",
        ["a"],
        "the template spec.leaderWorkerTemplate.leaderTemplate",
    ),
    Published(
        "kubernetes-sigs/jobset#1068: a JobSet with a webhook that keeps others off its domain",
        """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: zone}}
spec: {replicatedJobs: [{name: w, template: {spec: {template: {spec: {containers: [{name: c, image: x}]}}}}}]}
""",
        "",
        ["a", "b"],
        "exclusive-topology: the affinity that its webhook adds is not judged",
    ),
)

"""Random clusters for volumes: claims, volumes, classes, drivers, capacities and attachments that often match."""

from random import Random
from typing import Final

from tests.parity.random_nodes import HOST, NAMESPACES, V1, ZONE, allocatable

CSI: Final = "csi.example.com"
EBS: Final = "ebs.csi.aws.com"
GCE: Final = "pd.csi.storage.gke.io"
DRIVERS: Final = (CSI, EBS, GCE)
IN_TREE: Final = {"kubernetes.io/aws-ebs": EBS, "kubernetes.io/gce-pd": GCE}
_OTHER_IN_TREE: Final = {
    "kubernetes.io/azure-disk": (
        "disk.csi.azure.com",
        {"azureDisk": {"diskName": "d", "diskURI": "/subscriptions/s/d"}},
    ),
    "kubernetes.io/azure-file": ("file.csi.azure.com", {"azureFile": {"secretName": "s", "shareName": "f"}}),
    "kubernetes.io/cinder": ("cinder.csi.openstack.org", {"cinder": {"volumeID": "c"}}),
    "kubernetes.io/portworx-volume": ("pxd.portworx.com", {"portworxVolume": {"volumeID": "p"}}),
    "kubernetes.io/vsphere-volume": ("csi.vsphere.vmware.com", {"vsphereVolume": {"volumePath": "[d] v"}}),
}
"""In-tree plugin -> its CSI driver, and a volume of it, in a pod as in a PersistentVolume."""
REGION: Final = "topology.kubernetes.io/region"
ZONES: Final = ("us-a", "us-b", "us-c")
_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_TOPOLOGY_KEYS: Final = {
    CSI: "topology.csi.example.com/zone",
    EBS: "topology.ebs.csi.aws.com/zone",
    GCE: "topology.gke.io/zone",
    "cinder.csi.openstack.org": "topology.cinder.csi.openstack.org/zone",
}
_BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes"}
_CLASSES: Final = ("late", "late", "late", "static", "now", "csi-late", "capacity", "")


def nodes(random: Random) -> list[V1]:
    """Give nodes with the topology labels of drivers, some of which are missing."""
    found = []
    for index in range(random.randint(2, 6)):
        name, zone = f"n{index}", random.choice(ZONES)
        labels = {HOST: name, "disk": random.choice(("ssd", "hdd"))}
        labels |= {key: zone for key in (ZONE, *_TOPOLOGY_KEYS.values()) if random.random() < 0.9}
        if random.random() < 0.4:
            labels[_BETA_ZONE] = zone
        if random.random() < 0.5:
            labels[REGION] = "us"
        found.append(
            {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"allocatable": allocatable(random)}}
        )
    return found


def storage(random: Random, nodes: list[V1], pods: list[V1]) -> dict[str, list[V1]]:
    """Return everything but nodes and pods that a volume case has. Claims are of the pods' namespaces and owners."""
    names = [node["metadata"]["name"] for node in nodes]
    volumes = [_volume(random, f"pv{index}") for index in range(random.randint(2, 7))]
    claims = [_claim(random, f"claim{index}", volumes) for index in range(5)]
    claims += [
        _owned(random, pod, each, volumes)
        for pod in pods
        for each in pod["spec"].get("volumes", ())
        if "ephemeral" in each
    ]
    return {
        "pvs": volumes,
        "pvcs": [each for each in claims if random.random() < 0.95],
        "storageclasses": _storage_classes(random),
        "csinodes": [_csi_node(random, name) for name in names if random.random() < 0.85],
        "csidrivers": [_csi_driver(random, driver) for driver in DRIVERS if random.random() < 0.7],
        "csistoragecapacities": [_capacity(random, f"capacity{index}") for index in range(random.randint(0, 5))],
        "volumeattachments": [
            _attachment(random, f"attachment{index}", names, volumes) for index in range(random.choice((0, 0, 1, 2)))
        ],
    }


def pod(random: Random, name: str, node: str = "", *, most: int = 3) -> V1:
    """Return a pod with volumes, on a node if one is given."""
    made: V1 = {
        "metadata": {
            "name": name,
            "namespace": NAMESPACES[0] if random.random() < 0.9 else NAMESPACES[1],
            "uid": f"uid-{name}",
        },
        "spec": {"containers": [{"name": "c", "image": "img"}]},
        "status": {"phase": "Running" if node else "Pending"},
    }
    if node:
        made["spec"]["nodeName"] = node
    if volumes := [pod_volume(random, f"v{index}") for index in range(random.randint(0 if node else 1, most))]:
        made["spec"]["volumes"] = volumes
    return made


def pod_volume(random: Random, name: str) -> V1:
    """Return a volume of a pod: mostly a claim."""
    if random.random() < 0.65:
        return {"name": name, "persistentVolumeClaim": {"claimName": f"claim{random.randint(0, 4)}"}}
    read_only = random.random() < 0.5
    source: V1 = random.choice(
        (
            {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
            {
                "awsElasticBlockStore": {
                    "volumeID": random.choice(("vol-1", "vol-2", "aws://z/vol-1")),
                    "readOnly": read_only,
                }
            },
            {"gcePersistentDisk": {"pdName": random.choice(("d1", "d2")), "readOnly": read_only}},
            {
                "iscsi": {
                    "targetPortal": "10.0.0.1",
                    "iqn": random.choice(("iqn1", "iqn2")),
                    "lun": 0,
                    "readOnly": read_only,
                }
            },
            {
                "rbd": {
                    "monitors": random.sample(("m1", "m2", "m3"), 2),
                    "pool": "p",
                    "image": random.choice("ij"),
                    "readOnly": read_only,
                }
            },
            random.choice([volume for _, volume in _OTHER_IN_TREE.values()]),
            {"csi": {"driver": CSI}},
            {"emptyDir": {}},
        )
    )
    return {"name": name, **source}


def _claim(random: Random, name: str, volumes: list[V1]) -> V1:
    spec: V1 = {
        "accessModes": [random.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"))],
        "resources": {"requests": {"storage": random.choice(("1Gi", "3Gi", "5Gi"))}},
    }
    if storage_class := random.choice(_CLASSES):
        spec["storageClassName"] = storage_class
    if random.random() < 0.1:
        spec["volumeMode"] = random.choice(("Block", "Filesystem"))
    annotations: dict[str, str] = {}
    bound = random.random() < 0.5
    if bound:
        spec["volumeName"] = random.choice(volumes)["metadata"]["name"] if random.random() < 0.95 else "pv-none"
        annotations = dict(_BOUND) if random.random() < 0.95 else {}
    elif random.random() < 0.07:
        annotations["volume.kubernetes.io/selected-node"] = random.choice(("n0", "n1"))
    if random.random() < 0.1:
        spec["selector"] = {"matchLabels": {"tier": "fast"}}
    return {
        "metadata": {"name": name, "namespace": NAMESPACES[0], "uid": f"uid-{name}", "annotations": annotations},
        "spec": spec,
        "status": {"phase": "Bound" if bound else "Pending"},
    }


def _owned(random: Random, owner: V1, volume: V1, volumes: list[V1]) -> V1:
    """Return the claim of an ephemeral volume. Rarely it belongs to another pod."""
    made = _claim(random, f"{owner['metadata']['name']}-{volume['name']}", volumes)
    uid = owner["metadata"]["uid"] if random.random() < 0.95 else "uid-other"
    reference = {"apiVersion": "v1", "kind": "Pod", "name": owner["metadata"]["name"], "uid": uid, "controller": True}
    made["metadata"] |= {"namespace": owner["metadata"]["namespace"], "ownerReferences": [reference]}
    return made


def _volume(random: Random, name: str) -> V1:
    zone = random.choice(ZONES)
    labels = {}
    if random.random() < 0.4:
        labels[random.choice((ZONE, ZONE, _BETA_ZONE))] = random.choice((zone, zone, "us-a__us-b", ""))
    if random.random() < 0.2:
        labels["tier"] = "fast"
    spec: V1 = {
        "capacity": {"storage": random.choice(("1Gi", "2Gi", "4Gi", "10Gi"))},
        "accessModes": ["ReadWriteOnce", "ReadWriteMany"] if random.random() < 0.3 else ["ReadWriteOnce"],
        "storageClassName": random.choice(_CLASSES),
        **_source(random, name),
    }
    if random.random() < 0.5:
        key = random.choice((ZONE, HOST, *_TOPOLOGY_KEYS.values()))
        values = [random.choice(("n0", "n1", "n2"))] if key == HOST else [zone]
        expression = {"key": key, "operator": "In", "values": values}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if random.random() < 0.15:
        spec["claimRef"] = {"namespace": NAMESPACES[0], "name": f"claim{random.randint(0, 4)}"}
    phase = random.choice(("Available", "Available", "Available", "Bound", "Released"))
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"phase": phase}}


def _source(random: Random, name: str) -> V1:
    csi = {"csi": {"driver": random.choice(DRIVERS), "volumeHandle": random.choice((f"h-{name}", "h-shared"))}}
    in_tree = (
        {"awsElasticBlockStore": {"volumeID": random.choice(("vol-1", f"vol-{name}"))}},
        {"gcePersistentDisk": {"pdName": random.choice(("d1", f"d-{name}"))}},
    )
    if random.random() < 0.06:
        return random.choice([volume for _, volume in _OTHER_IN_TREE.values()])
    return csi if random.random() < 0.75 else random.choice(in_tree)


def _storage_classes(random: Random) -> list[V1]:
    late = "WaitForFirstConsumer"
    found: list[V1] = [
        {"metadata": {"name": "late"}, "provisioner": random.choice((EBS, CSI, *IN_TREE)), "volumeBindingMode": late},
        {"metadata": {"name": "csi-late"}, "provisioner": CSI, "volumeBindingMode": late},
        {"metadata": {"name": "capacity"}, "provisioner": CSI, "volumeBindingMode": late},
        {"metadata": {"name": "static"}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": late},
        {"metadata": {"name": "now"}, "provisioner": CSI, "volumeBindingMode": "Immediate"},
    ]
    for each in found:
        if random.random() < 0.15:
            expression = {"key": ZONE, "values": random.sample(ZONES, random.randint(1, 2))}
            each["allowedTopologies"] = [{"matchLabelExpressions": [expression]}]
    if random.random() < 0.1:
        found[0]["provisioner"] = random.choice(sorted(_OTHER_IN_TREE))
    if random.random() < 0.05:
        del found[0]["volumeBindingMode"]
    return [each for each in found if random.random() < 0.97]


def _csi_node(random: Random, name: str) -> V1:
    drivers: list[V1] = []
    for driver in (*DRIVERS, *(other for other, _ in _OTHER_IN_TREE.values())):
        if random.random() < (0.7 if driver in DRIVERS else 0.4):
            count = {"allocatable": {"count": random.choice((0, 1, 1, 2, 3))}} if random.random() < 0.8 else {}
            drivers.append(
                {"name": driver, "nodeID": name, "topologyKeys": [_TOPOLOGY_KEYS.get(driver, ZONE)], **count}
            )
    annotations = {}
    if random.random() < 0.6:
        migrated = random.sample(sorted(IN_TREE), random.randint(1, 2))
        migrated += [each for each in _OTHER_IN_TREE if random.random() < 0.5]
        annotations["storage.alpha.kubernetes.io/migrated-plugins"] = ",".join(migrated)
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}}


def _csi_driver(random: Random, name: str) -> V1:
    spec: V1 = {"storageCapacity": random.random() < 0.6}
    if random.random() < 0.3:
        spec["preventPodSchedulingIfMissing"] = random.random() < 0.7
    return {"metadata": {"name": name}, "spec": spec}


def _capacity(random: Random, name: str) -> V1:
    made: V1 = {
        "metadata": {"name": name, "namespace": "default"},
        "storageClassName": random.choice(("capacity", "capacity", "csi-late", "late")),
        "capacity": random.choice(("2Gi", "4Gi", "20Gi", "100Gi")),
    }
    if random.random() < 0.9:
        key = random.choice((ZONE, _TOPOLOGY_KEYS[CSI]))
        made["nodeTopology"] = {"matchLabels": {key: random.choice(ZONES)}} if random.random() < 0.8 else {}
    if random.random() < 0.2:
        made["maximumVolumeSize"] = random.choice(("1Gi", "4Gi"))
    return made


def _attachment(random: Random, name: str, nodes: list[str], volumes: list[V1]) -> V1:
    spec = {
        "attacher": random.choice(DRIVERS),
        "nodeName": random.choice(nodes),
        "source": {"persistentVolumeName": random.choice(volumes)["metadata"]["name"]},
    }
    return {"metadata": {"name": name}, "spec": spec, "status": {"attached": True}}

"""The profile `full` scores as kube-scheduler of the cluster's release: every plugin, every node, and their sum.

A kube-scheduler without an extender places pods one by one and logs its scores. Right before each, Kindred explains the
same pod over the same cluster. KINDRED_E2E_KUBERNETES chooses the release.
"""

from random import Random
from typing import Any, Final

import msgspec

from tests.e2e.api import NODES, Manifest
from tests.e2e.cluster import NAMESPACE, PODS, Cluster
from tests.e2e.conftest import Note
from tests.e2e.kindred import Kindred
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.scheduler import IN_TREE, configuration
from tests.e2e.scores import VERBOSITY, PodScores, Scores, scores_of
from tests.e2e.shapes import HOSTNAME, ZONE, apart, node, pod, preferred, term

SIZES: Final = ({"cpu": "4", "memory": "32Gi"}, {"cpu": "16", "memory": "16Gi"}, {"cpu": "32", "memory": "64Gi"})
IMAGES: Final = ("registry.invalid/web:1", "registry.invalid/db:2", "registry.invalid/models:3")
ZONES: Final = (range(0, 48, 3), range(1, 28, 3), range(2, 14, 3))  # 16, 9 and 4 nodes
GROUPS: Final = [{"app": name} for name in ("web", "db", "cache")]
DISK: Final = "example.com/disk"
ROUNDS: Final = 5
IMAGE_VOLUMES: Final = 35  # the minor release from which on the API server takes them by default


class PluginScores(msgspec.Struct, frozen=True):
    """What Kindred says of a pod: scores by plugin, times the weight, of the nodes that fit, and their sum."""

    plugins: dict[str, Scores]
    totals: Scores


def nodes() -> list[Manifest]:
    """Return nodes of different sizes, taints, images and disks, in zones of different sizes."""
    made: list[Manifest] = []
    for index in (index for zone in ZONES for index in zone):
        each = node(index, allocatable={**SIZES[index % 7 % 3], "pods": "110"})
        each["metadata"]["labels"][DISK] = ("ssd", "hdd")[index % 5 % 2]
        if index % 4 == 1:
            each = {**each, "spec": {"taints": [{"key": f"busy-{index % 3}", "effect": "PreferNoSchedule"}]}}
        images = [{"names": [name], "sizeBytes": 300_000_000 * (place + 1)} for place, name in enumerate(IMAGES)]
        each["status"]["images"] = [image for place, image in enumerate(images) if (index + place) % 3]
        made.append(each)
    return made


def pods_of_a_round(number: int, random: Random, minor: int) -> list[Manifest]:
    """Return a pod for each thing that a default plugin scores by, of random groups, weights and requests."""
    group = random.choice(GROUPS)
    disk = {"matchExpressions": [{"key": DISK, "operator": "In", "values": ["ssd"]}]}
    liked = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": random.randint(1, 100), "preference": disk}]
    }
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": group},
        }
        for key in (ZONE, HOSTNAME)
    ]
    volumes = [{"name": "models", "image": {"reference": IMAGES[2]}}] if minor >= IMAGE_VOLUMES else []
    specs: dict[str, dict[str, Any]] = {
        "plain": {},
        "near": {"affinity": preferred("podAffinity", random.randint(1, 100), [term(group, ZONE)])},
        "away": {"affinity": preferred("podAntiAffinity", random.randint(1, 100), [term(group, HOSTNAME)])},
        "alone": {"affinity": apart({"alone": str(number % 2)})},
        "spread": {"topologySpreadConstraints": spread},
        "disk": {"affinity": {"nodeAffinity": liked}},
        "tolerant": {"tolerations": [{"key": f"busy-{number % 3}", "operator": "Exists"}]},
        "image": {"volumes": volumes},
    }
    made: list[Manifest] = []
    for name, spec in specs.items():
        each = pod(f"{name}-{number}", {**group, "alone": str(number % 2)}, cpu=f"{random.randint(1, 30)}00m", **spec)
        container = each["spec"]["containers"][0]
        container["resources"]["requests"]["memory"] = f"{random.randint(1, 60)}00Mi"
        if name == "image":
            container["image"] = IMAGES[number % 2]
        made.append({**each, "metadata": {**each["metadata"], "namespace": NAMESPACE}})
    return made


def explained(kindred: Kindred, manifest: Manifest, names: list[str]) -> PluginScores:
    """Ask Kindred for the parts of all scores of a pod that is not there yet."""
    found = PluginScores({}, {})
    for detail in kindred.explain(manifest, names):
        if detail["fits"]:
            found.totals[detail["node"]] = 0
            for part in detail["score_parts"]:
                score = part["weight"] * part["normalized"]
                found.plugins.setdefault(part["plugin"], {})[detail["node"]] = score
                found.totals[detail["node"]] += score
    return found


def compare(there: PodScores, here: PluginScores) -> None:
    """Hold all scores of a pod against those of kube-scheduler. A plugin that is not named scores 0."""
    zero = dict.fromkeys(there.totals, 0)
    for plugin in sorted(there.plugins.keys() | here.plugins.keys()):
        assert (plugin, there.plugins.get(plugin, zero)) == (plugin, here.plugins.get(plugin, zero))
    assert there.totals == here.totals


def test_every_plugin_scores_as_kube_scheduler_of_the_same_release(cluster: Cluster, note: Note) -> None:
    version = cluster.api.get("/version")["gitVersion"]
    minor = int(version.split(".")[1])
    cluster.api.create_all(NODES, nodes())
    kindred = cluster.start_kindred({"KINDRED_PROFILE": "full"})
    release = kindred.version()["kubernetes"]
    assert (release["release"], release["source"], release["told"]) == (f"1.{minor}", "server", version)
    scheduler = cluster.start_scheduler(configuration(IN_TREE, ""), verbosity=VERBOSITY)
    names = [each["metadata"]["name"] for each in nodes()]
    random = Random(minor)  # noqa: S311  # the same pods in each run
    here: dict[str, PluginScores] = {}
    for manifest in (each for number in range(ROUNDS) for each in pods_of_a_round(number, random, minor)):
        name = manifest["metadata"]["name"]
        here[name] = explained(kindred, manifest, names)
        cluster.place(manifest)
        uid = cluster.api.get(f"{PODS}/{name}")["metadata"]["uid"]
        wait_until(lambda uid=uid: kindred.has_on_a_node(uid), PATIENCE, f"{name} on its node", every=0.02)  # type: ignore[misc]
    there = scores_of(scheduler.log())
    varied: set[str] = set()
    for name, scores in here.items():
        compare(there[f"{NAMESPACE}/{name}"], scores)
        varied |= {plugin for plugin, each in scores.plugins.items() if len(set(each.values())) > 1}
    note(f"{version}: {len(here)} pods on {len(names)} nodes, scores that differ by {', '.join(sorted(varied))}")
    assert len(here) == 8 * ROUNDS
    # Or nothing was compared.
    assert varied == {
        "ImageLocality",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "TaintToleration",
    }
